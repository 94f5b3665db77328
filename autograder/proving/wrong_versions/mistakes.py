"""Reads mistakes.toml, and applies known student mistakes as patches of the reference."""

import tomllib
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from autograder.authoring.answer_dependencies import questions_that_may_change
from autograder.authoring.lab_master import MASTER, read_master, solved_notebook
from autograder.proving.right_versions import reference
from autograder.proving.wrong_versions.source_patch import Patch, apply_patch
from autograder.proving.wrong_versions.undefined_names import undefined_names
from common.assignment import LAB_FILE, ROOT, Assignment, ExerciseNumber, Name, Record
from common.errors import CourseError


class Mistake(Record, frozen=True):
    """A patch of the reference, the exercises that it must cost, and the hint for it.

    Comments and layout of `find` needn't be those of the reference; `replace` moves to its column.
    """

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    find: Name
    replace: str
    exercises: Annotated[list[ExerciseNumber], Meta(min_length=1)]
    hint: Name
    file: str = ""  # may be left out where an assignment has one file
    function: str = ""  # or Class.method, where `find` is; left out for code outside of them
    trained: bool = False  # tests that train grade it; each of them must be failed by one that is
    hidden: bool = False  # only hidden tests catch it, for the reason given
    reason: str = ""
    raises: str = ""  # a NameError or AttributeError that is part of the mistake


class MistakeFile(Record, frozen=True):
    """The whole of `mistakes.toml`."""

    mistakes: list[Mistake]


def load_mistakes(assignment: Assignment) -> list[Mistake]:
    """The catalog of an assignment; an error names the file and the mistake."""
    file = ROOT / "solutions" / assignment.name / "mistakes.toml"
    where = file.relative_to(ROOT)
    try:
        content = msgspec.convert(tomllib.loads(file.read_text("utf-8")), MistakeFile)
    except FileNotFoundError:
        raise CourseError(f"{where} is missing: every assignment lists its mistakes.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{where}: {error}") from None
    problems = [
        problem
        for mistake in content.mistakes
        for problem in problems_of(mistake, content, assignment)
    ]
    if problems:
        raise CourseError("\n".join(problems))
    return content.mistakes


def problems_of(mistake: Mistake, content: MistakeFile, assignment: Assignment) -> Iterator[str]:
    """What is wrong with one mistake of a catalog."""
    here = place_of(mistake, assignment)
    if [other.name for other in content.mistakes].count(mistake.name) > 1:
        yield f"{here}: the name is used more than once."
    known = {exercise.number for exercise in assignment.exercises}
    for number in mistake.exercises:
        if number not in known:
            yield f"{here}: there is no exercise {number}."
    if mistake.hidden and not mistake.reason:
        yield f"{here}: hidden = true needs a reason."
    try:
        changed = apply(mistake, assignment)
    except CourseError as error:
        yield str(error)
        return
    for name, source in reference(assignment).items():
        if changed[name] != source and mistake.raises != "NameError":
            yield from newly_undefined(source.decode(), changed[name].decode(), here)


def newly_undefined(before: str, after: str, here: str) -> Iterator[str]:
    """The names that a patch uses and nothing defines: it would fail for a reason not its own."""
    for name in sorted(undefined_names(after) - undefined_names(before)):
        yield f"{here}: the name {name} is not defined in the patched file."


def place_of(mistake: Mistake, assignment: Assignment) -> str:
    """Where a mistake is written down, for an error."""
    return f"solutions/{assignment.name}/mistakes.toml, {mistake.name}"


def apply(mistake: Mistake, assignment: Assignment) -> dict[str, bytes]:
    """The reference's files with the mistake made, and the lab if that is where it is made."""
    files = reference(assignment)
    here = place_of(mistake, assignment)
    if mistake.file == MASTER and assignment.lab:
        *_, last = affected_questions(mistake, assignment)
        return files | {LAB_FILE: solved_notebook(wrong_master(mistake, assignment), last)}
    name = patched_file(mistake.file, assignment, here)
    patch = Patch(name, mistake.function, mistake.find, mistake.replace)
    return files | {name: apply_patch(files[name].decode("utf-8"), patch, here).encode()}


def patched_file(named: str, assignment: Assignment, here: str) -> str:
    """The file to patch, which may be left unnamed where an assignment has one only."""
    name = named or assignment.files[0]
    if name not in assignment.files or (not named and len(assignment.files) > 1):
        raise CourseError(f"{here}: `file` must name one of {', '.join(assignment.files)}.")
    return name


def wrong_master(mistake: Mistake, assignment: Assignment) -> str:
    """The master of the lab with the mistake made."""
    patch = Patch(MASTER, mistake.function, mistake.find, mistake.replace)
    return apply_patch(read_master(assignment), patch, place_of(mistake, assignment))


def affected_questions(mistake: Mistake, assignment: Assignment) -> tuple[str, ...]:
    """The questions of the lab whose answers a mistake may change."""
    wrong = wrong_master(mistake, assignment)
    found = questions_that_may_change(read_master(assignment), wrong)
    if not found:
        raise CourseError(f"{place_of(mistake, assignment)}: no answer of the lab depends on it.")
    return found
