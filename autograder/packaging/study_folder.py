"""Lays a handout out in a folder for people who learn alone (`make study`), keeping their work."""

from dataclasses import dataclass
from pathlib import Path

from autograder.packaging.zip_contents import handout
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT, Assignment
from common.errors import CourseError

DEFAULT = ROOT.parent / "conv2gpt-study"
WORK = "assignments/"  # what is written there belongs to the student
MARK = "pytest.ini"  # every handout has it


@dataclass(frozen=True)
class StudyFolder:
    """What was laid out."""

    folder: Path
    written: list[str]  # new or updated files
    kept: list[str]  # of the student, which differ from the handout's


def lay_out(assignment: Assignment, folder: Path) -> StudyFolder:
    """Write the handout to a folder. Files below assignments/ that are there stay as they are."""
    if folder.is_file() or (folder.is_dir() and is_strange(folder)):
        raise CourseError(
            f"{folder} exists and holds no handout: name another folder with TO=path."
        )
    if ROOT in (folder, *folder.parents):
        raise CourseError(f"{folder} is part of this checkout: name a folder outside with TO=path.")
    written, kept = [], []
    for name, content in sorted(handout(assignment).items()):
        target = folder / name
        if name.startswith(WORK) and target.exists():
            if target.read_bytes() != content:
                kept.append(name)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if write_if_changed(target, content):
            written.append(name)
    return StudyFolder(folder, written, kept)


def is_strange(folder: Path) -> bool:
    """Whether a folder holds something, but no handout."""
    return any(folder.iterdir()) and not (folder / MARK).is_file()
