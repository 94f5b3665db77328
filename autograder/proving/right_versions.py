"""Reads an assignment's reference, its alternatives and its stub, for proofs."""

from pathlib import Path

from autograder.authoring.overlay import compose
from common.assignment import LAB_FILE, ROOT, Assignment
from common.errors import CourseError


def reference(assignment: Assignment) -> dict[str, bytes]:
    """The reference's files."""
    return read_files(assignment, f"solutions/{assignment.name}")


def stub(assignment: Assignment) -> dict[str, bytes]:
    """The untouched stub's files, and the lab as it is handed out."""
    folder = f"assignments/{assignment.name}"
    lab = {LAB_FILE: (ROOT / folder / LAB_FILE).read_bytes()} if assignment.lab else {}
    return read_files(assignment, folder) | lab


def alternatives(assignment: Assignment) -> dict[str, dict[str, bytes]]:
    """Valid solutions written another way, by name: overlays, composed to whole files."""
    top = ROOT / "solutions" / assignment.name / "alternatives"
    base = reference(assignment)
    return {
        folder.name: base | composed_files(folder, base)
        for folder in sorted(top.glob("*"))
        if folder.is_dir()
    }


def composed_files(folder: Path, base: dict[str, bytes]) -> dict[str, bytes]:
    """The files in which an alternative differs from the reference."""
    overlays = sorted(folder.glob("*.py"))
    where = folder.relative_to(ROOT).as_posix()
    if not overlays:
        raise CourseError(f"{where} has no Python file.")
    found = {}
    for file in overlays:
        place = f"{where}/{file.name}"
        if file.name not in base:
            raise CourseError(f"{place} is not a file of the assignment: {', '.join(base)}.")
        found[file.name] = compose(base[file.name], file.read_bytes(), place)
    return found


def read_files(assignment: Assignment, folder: str) -> dict[str, bytes]:
    """An assignment's files from one folder."""
    for name in assignment.files:
        if not (ROOT / folder / name).is_file():
            raise CourseError(f"{folder}/{name} is missing.")
    return {name: (ROOT / folder / name).read_bytes() for name in assignment.files}
