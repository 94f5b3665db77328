"""Chooses the assignment's files among a submission's paths by name, renamed files included."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from common.assignment import LAB_FILE
from common.visible_text import visible_line

# What browsers, file managers and Jupyter add to the name of a copy, and students to a version.
# A number of more digits is a date or a time, as in the history that an editor keeps.
NUMBER = r"\d{1,3}"
COPY = rf"copy(?: ?{NUMBER}| \({NUMBER}\))?"
BEFORE = rf"(?:copy (?:\({NUMBER}\) )?of )?"
AFTER = rf"(?: ?\({NUMBER}\)|[-_ ]{NUMBER}|(?: - |[-_ ]){COPY}| \({COPY}\))?"


class FileNames:
    """The paths of a submission, by the file of the assignment that each is or may be.

    wanted: the files to find. given: modules of the handout, whose copies are no other file's.
    """

    def __init__(self, wanted: Iterable[str], given: Iterable[str]) -> None:
        self.exact: dict[str, list[str]] = {file: [] for file in wanted}
        self.renamed: dict[str, list[str]] = {file: [] for file in self.exact}
        self.others: list[str] = []  # all that have other names, but for a renamed file that counts
        self.other_notebook = ""
        self.patterns = {file: renamed_pattern(file) for file in (*self.exact, *given)}

    def add(self, path: str, plain: bool) -> None:
        """Sort a path in. plain: whether it is a regular file."""
        name = PurePosixPath(path).name
        if name in self.exact:
            if plain:
                self.exact[name].append(path)
        elif not name.startswith("."):
            self.others.append(path)
            meant = "" if is_hidden(path) else self.meant_by(name)
            if plain and meant in self.renamed:
                self.renamed[meant].append(path)
            elif name.endswith(".ipynb"):
                self.other_notebook = self.other_notebook or path

    def meant_by(self, name: str) -> str:
        """The one file that a name can mean, or "".

        Of attention.py and attention_2.py, Attention_2.py can only mean the second.
        """
        fitting = [file for file, pattern in self.patterns.items() if pattern.fullmatch(name)]
        return max(fitting, key=len, default="")

    def choose(self, file: str) -> tuple[str, str]:
        """The path of the file with that name nearest to the top, or why none is chosen."""
        nearest = nearest_two(self.exact[file])
        if len(nearest) == 2 and nearest[0].count("/") == nearest[1].count("/"):
            first, second = map(printable_name, nearest)
            return "", f"{file} was found twice ({first} and {second}). Submit only one."
        return (nearest[0], "") if nearest else ("", "")

    def choose_renamed(self, file: str) -> tuple[str, str]:
        """The path of the only renamed file that can be meant, or why none is chosen."""
        nearest = nearest_two(self.renamed[file])
        if len(nearest) == 2:
            first, second = map(printable_name, nearest)
            both = f"{first} and {second} could both be {file}."
            return "", f"{both} Submit only one, named {file}."
        if nearest:
            self.others.remove(nearest[0])
            return nearest[0], ""
        if file == LAB_FILE and self.other_notebook:
            skipped = printable_name(self.other_notebook)
            return "", f"{skipped} was skipped: the lab must be named {LAB_FILE}."
        return "", ""


def renamed_pattern(file: str) -> re.Pattern[str]:
    """What a file may be called after it was renamed, in small letters or large ones."""
    path = PurePosixPath(file)
    stem, ending = re.escape(path.stem), re.escape(path.suffix)
    return re.compile(BEFORE + stem + AFTER + ending, re.ASCII | re.IGNORECASE)


def is_hidden(path: str) -> bool:
    """Whether a path leads through what systems and editors keep for themselves."""
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(path).parts)


def nearest_two(paths: list[str]) -> list[str]:
    """The two paths nearest to the top."""
    return sorted(paths, key=lambda path: (path.count("/"), path))[:2]


def printable_name(name: str) -> str:
    """A name as a sentence may hold it: on one line, and not endless."""
    shown = visible_line(name)
    return shown if len(shown) <= 100 else f"{shown[:50]}...{shown[-47:]}"
