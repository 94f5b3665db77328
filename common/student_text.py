"""Text that came from student code: a type of its own, which no sentence can hold unnoticed.

StudentText is no str: what joins, searches or concatenates strings refuses it. Where it is printed
(`str`, `repr`, `%`, f-strings), each of its characters is written in a part of Unicode that nothing
else uses, and stays so however the result is cut or put together. So everything that is shown can
distinguish the words of student code from our own, character by character.
"""

import json
import re
import struct
from collections.abc import Callable
from typing import Any

MARK = 0xF0000  # U+F0000 to U+FFFFF are for private use: one for each unit of UTF-16
PRINTED = 8000  # characters of a text that are ever printed
# A marked character, or what `repr` makes of one.
MARKED = re.compile("((?:[\U000f0000-\U000fffff]|\\\\+U000[fF][0-9a-fA-F]{4})+)")
ESCAPED = re.compile(r"\\+U(000[fF][0-9a-fA-F]{4})")
WITHHELD = "(This message contains text from your code, which hidden tests don't show.)"
NO_METHODS = {"encode", "format", "format_map", "join", "maketrans", "translate"}
METHODS = {name for name in dir(str) if not name.startswith("_")} - NO_METHODS


class StudentText:
    """A string of student code, for tests to compare with strings of their own."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # so that isinstance finds a string where tests expect one
        return str

    def __str__(self) -> str:
        return marked(self._text[:PRINTED])

    def __repr__(self) -> str:
        return marked(repr(self._text[:PRINTED]))

    def __format__(self, form: str) -> str:
        return marked(format(self._text[:PRINTED], form))

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return self._text == plain(other)

    def __lt__(self, other: Any) -> bool:
        return bool(self._text < plain(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self._text > plain(other))

    def __contains__(self, part: Any) -> bool:
        return plain(part) in self._text

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, index: Any) -> "StudentText":
        return StudentText(self._text[index])

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        method = getattr(self._text, name)
        return lambda *args: as_student_text(method(*map(plain, args)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.asarray(str(self), dtype)  # NumPy would take it for a sequence, without end


class StudentBytes(bytes):
    """Bytes of student code, for tests to read: a string by another name."""

    def __repr__(self) -> str:
        return marked(bytes.__repr__(self[:PRINTED]))

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return repr(self)

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        return StudentBytes(part) if isinstance(part, bytes) else part

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> Any:
        return StudentText(super().decode(encoding, errors))

    def hex(self, *separator: Any) -> Any:
        return StudentText(super().hex(*separator))


def as_student_text(value: Any) -> Any:
    """A string, and the strings in a list or a tuple of them, as text of student code."""
    if type(value) in (list, tuple):
        return type(value)(map(as_student_text, value))
    return StudentText(value) if type(value) is str else value


def plain(value: Any) -> Any:
    """The string itself. For what decides or sends; nothing that is shown is made from it."""
    return value._text if type(value) is StudentText else value


def read_json(content: bytes) -> Any:
    """What JSON in UTF-8 holds, marked where it is student code's; else a ValueError."""
    try:
        found = json.loads(bytes(content).decode("utf-8"))
        return strings_marked(found) if type(content) is StudentBytes else found
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def strings_marked(value: Any) -> Any:
    """What JSON gave, with each string as text of student code."""
    if type(value) is dict:
        return {StudentText(name): strings_marked(item) for name, item in value.items()}
    return [*map(strings_marked, value)] if type(value) is list else as_student_text(value)


def contains_pattern(text: Any, pattern: str, flags: int = 0) -> bool:
    """Whether a text or what an error says, of student code or not, contains a pattern."""
    return re.search(pattern, unmarked(str(text)), flags) is not None


def marked(text: str) -> str:
    """Text in the characters that only student code's is printed in."""
    units = struct.iter_unpack("<H", text.encode("utf-16-le", "surrogatepass"))
    return "".join(chr(MARK + unit) for (unit,) in units)


def unmarked(text: str) -> str:
    """A text with the words of student code as they were: for whoever may read them."""
    return MARKED.sub(lambda found: original(found[0]), text)


def original(run: str) -> str:
    """A run of marked characters as it was."""
    run = ESCAPED.sub(lambda found: chr(int(found[1], 16)), run)
    units = [ord(character) - MARK for character in run]
    return struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "replace")


def is_marked(text: str) -> bool:
    """Whether a text contains words of student code."""
    return MARKED.search(text) is not None


def edited(text: str, change: Callable[[str], str]) -> str:
    """A text with all its parts changed; those of student code stay marked."""
    return "".join(
        marked(change(original(part))) if is_marked(part) else change(part)
        for part in MARKED.split(text)
    )


def withheld(text: str) -> str:
    """The text if none of it is student code's, else a sentence that stands for all of it."""
    return WITHHELD if is_marked(text) else text
