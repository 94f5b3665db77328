"""Finds and reads artifacts: submitted files that aren't Python, such as weights."""

from pathlib import Path

from common.assignment import LAB_FILE, ROOT, Artifact, Assignment
from common.errors import Failure


def own_artifact_folder(assignment: Assignment) -> Path:
    """The folder of a student's own artifacts: that of the code."""
    return ROOT / "assignments" / assignment.name


def reference_artifact(assignment: Assignment, file: str) -> Path:
    """Where one of the reference's lies: trained ones are committed, the lab is generated."""
    if file == LAB_FILE:
        return ROOT / "dist" / f"{assignment.short}-solved" / file
    return ROOT / "solutions" / assignment.name / "artifacts" / file


def read_artifact(file: Path, limit: int) -> bytes | None:
    """The content of a file; None if there is none, or more than is taken."""
    try:
        with file.open("rb") as stream:
            content = stream.read(limit + 1)
    except OSError:
        return None
    return content if len(content) <= limit else None


def missing_artifact(artifact: Artifact, reference: bool = False) -> Failure:
    """What a test says that needs an artifact which isn't there."""
    if reference:
        command = "make" if artifact.file == LAB_FILE else "make artifacts"
        return Failure(f"The reference's {artifact.file} is missing: run `{command}`.")
    made = (
        f"Create it with `{artifact.command}`; `make submission` includes it."
        if artifact.command
        else "It comes with the handout. If it is too large, clear its outputs and save it again."
    )
    return Failure(
        f"{artifact.file} is missing or larger than {artifact.megabytes:g} MB.", help=made
    )
