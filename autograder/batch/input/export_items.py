"""Decides which entries of an export are submissions, and their identifiers."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

PREFIX = "submission_"
IGNORED = ("__MACOSX", "Thumbs.db", "desktop.ini")
NAME_LENGTH = 80


@dataclass(frozen=True)
class Item:
    """Something that lies where submissions lie."""

    name: str
    problem: str = ""  # why it is none

    @property
    def title(self) -> str:
        """Its name without .zip: other dots may be a person's, as in maria.garcia."""
        return self.name[:-4] if self.name.lower().endswith(".zip") else self.name

    @property
    def identifier(self) -> str:
        """Its name as far as that is fit for a file's name."""
        name = self.title.removeprefix(PREFIX)
        return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:NAME_LENGTH].lstrip(".") or "unnamed"


def is_ignored(name: str) -> bool:
    """Whether the operating system left that in a folder or zip, and nobody submitted it."""
    return name in IGNORED or name.startswith(".")


def is_only_a_zip(names: list[str]) -> bool:
    """Whether a student's folder holds one zip and nothing else: some systems hand work out so.

    Gradescope doesn't: there a zip inside is the student's slip, and graded as one.
    """
    return len(names) == 1 and "/" not in names[0] and names[0].lower().endswith(".zip")


def hides(path: str) -> bool:
    """Whether a member of a zip is one that systems leave there."""
    return is_ignored(PurePosixPath(path).name)
