"""Shows control characters and invisible characters as escapes, such as \\x1b, in text of others.

A submission's text reaches terminals, tables and pages. There, such characters would move the
cursor, hide what is around them, or reverse it.
"""

import re
import unicodedata

# Controls, formats (zero-width and bidirectional), halves of characters, separators of lines.
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
NOT_PLAIN = re.compile(r"[^\n\t -~]")


def visible(text: str) -> str:
    """The text, with all that can't be seen as escapes; lines and tabs stay what they are."""
    return NOT_PLAIN.sub(in_python, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """The same on one line: ends of lines and tabs are shown, too."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def visible_json(text: str) -> str:
    """JSON of the same content in which nothing is unseen: what it holds comes back unchanged."""
    return NOT_PLAIN.sub(in_json, text)


def in_python(found: re.Match[str]) -> str:
    """A character as Python would write it, if it can't be seen."""
    letter = found[0]
    return letter.encode("unicode_escape").decode() if is_unseen(letter) else letter


def in_json(found: re.Match[str]) -> str:
    """A character as JSON can write it, if it can't be seen."""
    letter = found[0]
    if not is_unseen(letter):
        return letter
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def is_unseen(letter: str) -> bool:
    """Whether a character shows nothing of itself."""
    return unicodedata.category(letter) in UNSEEN
