"""Cleans a play's text: removes stage directions and headings, normalizes speeches.

The rules, in the order in which they are applied:

1. Misprints are corrected, entities such as &egrave; and accents become plain letters, rows of
   signs such as @@@ and underscores go, and indentation and runs of spaces are dropped.
2. What stands before the first act, prologue or induction goes: title, author, persons.
3. Stage directions in brackets go, wherever they stand. One that is never closed ends with its
   paragraph; a paragraph that closes what it did not open is the rest of one.
4. Headings of acts and scenes go, with all that follows until somebody speaks: places, directions.
5. Paragraphs that begin with Enter, Exit, Exeunt or Re-enter go, and so do an Exit or Exeunt at the
   end of a line, labels of songs, and singers' numbers.
6. A paragraph that begins with a name is a speech. The name becomes a line of its own, in capitals
   with a colon: "HAMLET:". A paragraph without one continues the speech before it.
"""

import html
import itertools
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from common.data.speakers import is_name, name_pattern, speaker

BEGINNING = re.compile(r"^(?:ACT (?:I|1|FIRST)\b|(?:THE )?PROLOGUE\b|INDUCTION\b)", re.I | re.M)
NUMBER = r"(?:[IVX]+|[0-9]+|FIRST|SECOND|THIRD|FOURTH|FIFTH)"
HEADING = re.compile(
    rf"(?:(?:ACT|SCENE) {NUMBER}\b|INDUCTION\b|THE END\b|THE ORDER OF THE CORONATION\b)", re.I
)
# Spoken by nobody that is named, so that they name the speaker, unless a name follows.
FRAME = re.compile(r"(?:THE )?(PROLOGUE|EPILOGUE)\.?")
LABEL = re.compile(r"(?:SONG|SPRING|WINTER|DUMB SHOW|[IVX]+)\.?", re.I)
MOVEMENT = re.compile(r"(?:Enter|Exit|Exeunt|Re-enter)\b")
CLOSED_DIRECTION = re.compile(r"\[(?:[^][\n]|\n(?!\n))*\]")
OPEN_DIRECTION = re.compile(r"\[(?:[^\n]|\n(?!\n))*")
EXIT = re.compile(r"(?<=[.!?]) ?(?:Exit|Exeunt)(?: [A-Z][a-z]+)?\.?$")
SONG = re.compile(r"SONG\.?")
COUNT = re.compile(r"^[0-9]+\. ")  # which singer has the line
SIGNS = re.compile(r"^[@*#=]+$|_", re.M)  # underscores stand around slanted words


@dataclass
class Speech:
    """Who speaks, and the lines."""

    name: str
    lines: list[str]


def clean_play(
    text: str,
    full_names: Mapping[str, str] | None = None,
    misprints: Mapping[str, str] | None = None,
) -> str:
    """The play's speeches, with an empty line between two."""
    for wrong, right in (misprints or {}).items():
        text = text.replace(wrong, right)
    text = without_directions(without_front_matter(tidy(text)))
    speeches = find_speeches(split_paragraphs(text), full_names or {})
    return (
        "\n\n".join("\n".join([f"{one.name}:", *one.lines]) for one in speeches if one.lines) + "\n"
    )


def tidy(text: str) -> str:
    """Plain letters, one kind of line end, no indentation, no runs of spaces, no rows of signs."""
    letters = unicodedata.normalize("NFKD", html.unescape(text))
    plain = letters.encode("ascii", "ignore").decode("ascii")
    lines = "\n".join(" ".join(line.split()) for line in plain.splitlines())
    return SIGNS.sub("", lines)


def without_front_matter(text: str) -> str:
    """The play from its first act, prologue or induction on."""
    match = BEGINNING.search(text)
    return text[match.start() :] if match else text


def without_directions(text: str) -> str:
    """The play without what stands in brackets; some of its brackets are braces by mistake."""
    text = text.replace("{", "[").replace("}", "]")
    text = OPEN_DIRECTION.sub("", CLOSED_DIRECTION.sub("[]", text).replace("[]", "\0"))
    # Before a comma nothing is left, elsewhere a space.
    text = re.sub(r" ?\0(?=[,;:.!?])", "", text)
    text = re.sub(r"[ \0]*\0[ \0]*", " ", text)
    return "\n".join(line.strip() for line in text.split("\n"))


def split_paragraphs(text: str) -> list[list[str]]:
    """The lines of each paragraph that has any."""
    return [part.strip("\n").split("\n") for part in re.split(r"\n{2,}", text) if part.strip("\n")]


def find_speeches(paragraphs: list[list[str]], full_names: Mapping[str, str]) -> list[Speech]:
    """The speeches of a play without directions."""
    spoken = [paragraph for paragraph in paragraphs if not HEADING.match(paragraph[0])]
    pattern = name_pattern([paragraph[0] for paragraph in spoken])
    known = {paragraph[0] for paragraph in spoken if is_name(paragraph[0], pattern)} | {"ALL."}
    speeches: list[Speech] = []
    current: Speech | None = None
    for paragraph in paragraphs:
        first, *rest = without_labels(paragraph)
        name, words = split_name(first, pattern, known)
        if HEADING.match(first):
            current = None
        elif name:
            current = Speech(speaker(name, full_names), spoken_lines([words, *rest]))
            speeches.append(current)
        elif current and not MOVEMENT.match(first) and "]" not in "".join(paragraph):
            current.lines += spoken_lines([first, *rest])
    return speeches


def without_labels(paragraph: list[str]) -> list[str]:
    """The paragraph from its first line on that is not a label."""
    return list(itertools.dropwhile(LABEL.fullmatch, paragraph)) or [""]


def split_name(line: str, pattern: re.Pattern[str], known: set[str]) -> tuple[str, str]:
    """The name and the words of a speech's first line, or empty strings if it has no name.

    "WIDOW. So, now they come" has both, if WIDOW is somebody in this play.
    """
    if frame := FRAME.fullmatch(line):
        return frame[1], ""
    if is_name(line, pattern):
        return line, ""
    name, dot, words = line.partition(".")
    return (name + dot, words.strip()) if name + dot in known else ("", "")


def spoken_lines(lines: list[str]) -> list[str]:
    """The lines that hold words, without exits and singers' numbers, and with etc. for &c."""
    words = [EXIT.sub("", COUNT.sub("", line)) for line in lines]
    return [re.sub(r"& ?c\.", "etc.", line) for line in words if line and not SONG.fullmatch(line)]
