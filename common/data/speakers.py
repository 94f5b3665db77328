"""Recognizes and normalizes speakers' names in a play's text.

The texts have "Ham.", "LAFEU.", "QUINCE", "1 Clown.", "I Player." and "Ros. and Guil.". The one
form is the whole name in capitals, without dots: "HAMLET", "FIRST CLOWN", "HORATIO AND MARCELLUS".
"""

import re
from collections.abc import Mapping, Sequence

LONGEST_NAME = 40
WORD = r"[A-Z][A-Za-z'-]*\.?"
# Nothing else stands in capitals, so these need no dot: some plays have none.
IN_CAPITALS = re.compile(r"(?:[A-Z0-9'.,& -]|\bof\b|\band\b|&c)*[A-Z]{2}(?:[A-Z'., &-]|&c)*")
IN_TITLE_CASE = re.compile(rf"(?:[1-9] )?{WORD}(?: (?:and )?{WORD})*(?<=\.)")
ORDINAL = re.compile(r"(1|I|2|3) (?=.)")
ORDINALS = {"1": "FIRST", "I": "FIRST", "2": "SECOND", "3": "THIRD"}


def name_pattern(first_lines: Sequence[str]) -> re.Pattern[str]:
    """How this play writes names, judged by the first lines of its paragraphs.

    A play that has them in capitals also has short sentences such as "Ay.", which are no names.
    """
    capitals = sum(IN_CAPITALS.fullmatch(line) is not None for line in first_lines)
    title_case = sum(IN_TITLE_CASE.fullmatch(line) is not None for line in first_lines)
    return IN_CAPITALS if capitals >= title_case - capitals else IN_TITLE_CASE


def is_name(line: str, pattern: re.Pattern[str]) -> bool:
    """Whether a line is a name and nothing else."""
    return len(line) <= LONGEST_NAME and pattern.fullmatch(line) is not None


def speaker(line: str, full_names: Mapping[str, str]) -> str:
    """The name in its one form; `full_names` has what is shortened or misspelt in this play."""
    plain = " ".join(line.replace(".", " ").upper().replace("&C", "OTHERS").split())
    parts = re.split(r" ?, (?:AND |& )?| AND | & ", plain)
    numbered = [
        ORDINAL.sub(lambda match: ORDINALS[match[1]] + " ", part, count=1) for part in parts
    ]
    return " AND ".join(full_names.get(name, name) for name in numbered)
