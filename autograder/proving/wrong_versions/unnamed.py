"""Reads unnamed.toml: mistakes that no hint names, by which the proof tries hints."""

import tomllib
from typing import Annotated

import msgspec
from msgspec import Meta

from autograder.proving.right_versions import reference
from autograder.proving.wrong_versions.mistakes import newly_undefined, patched_file
from autograder.proving.wrong_versions.source_patch import Patch, apply_patch
from common.assignment import ROOT, Assignment, ExerciseNumber, Name, Record
from common.errors import CourseError


class Unnamed(Record, frozen=True):
    """A patch of the reference, written without a look at the tests, and its exercise."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    function: Name  # or Class.method
    find: Name
    replace: str
    exercise: ExerciseNumber
    file: str = ""  # may be left out where an assignment has one file


class UnnamedFile(Record, frozen=True):
    """The whole of `unnamed.toml`."""

    mistakes: list[Unnamed]


def load_unnamed(assignment: Assignment) -> list[Unnamed]:
    """The mistakes that no hint names, none without a file; an error names all that don't fit."""
    file = ROOT / "solutions" / assignment.name / "unnamed.toml"
    if not file.is_file():
        return []
    where = file.relative_to(ROOT)
    try:
        content = msgspec.convert(tomllib.loads(file.read_text("utf-8")), UnnamedFile)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{where}: {error}") from None
    known = {exercise.number for exercise in assignment.exercises}
    names = [entry.name for entry in content.mistakes]
    problems = []
    for entry in content.mistakes:
        here = f"{where}, {entry.name}"
        if names.count(entry.name) > 1:
            problems.append(f"{here}: the name is used more than once.")
        if entry.exercise not in known:
            problems.append(f"{here}: there is no exercise {entry.exercise}.")
        try:
            changed = apply_unnamed(entry, assignment)
        except CourseError as error:
            problems.append(str(error))
            continue
        for name, before in reference(assignment).items():
            if changed[name] != before:
                problems += newly_undefined(before.decode(), changed[name].decode(), here)
    if problems:
        raise CourseError("\n".join(problems))
    return content.mistakes


def apply_unnamed(entry: Unnamed, assignment: Assignment) -> dict[str, bytes]:
    """The reference's files with the mistake made."""
    files = reference(assignment)
    here = f"solutions/{assignment.name}/unnamed.toml, {entry.name}"
    name = patched_file(entry.file, assignment, here)
    patch = Patch(name, entry.function, entry.find, entry.replace)
    return files | {name: apply_patch(files[name].decode("utf-8"), patch, here).encode()}
