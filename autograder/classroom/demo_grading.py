"""Grades a small submission with one wrong line, for `make demo`."""

import difflib
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autograder.authoring.lab_master import read_master, solved_notebook
from autograder.batch.batch_records import writing
from autograder.grading.grade import grade
from autograder.grading.judge import Settings
from autograder.grading.results import Outcome, Result
from autograder.grading.submission import read_submission
from autograder.proving.right_versions import reference
from autograder.proving.wrong_versions.mistakes import Mistake, MistakeFile, apply
from autograder.semester import PRACTICE
from common.assignment import LAB_FILE, ROOT, Assignment, load_assignment
from common.atomic_write import write_atomically
from common.errors import CourseError
from common.testing.graded_tests import read_graded_tests

ASSIGNMENT = "a1"
MISTAKE = "kernel-flipped"


@dataclass(frozen=True)
class WrongLine:
    """The line in which the submission differs from the reference."""

    file: str
    number: int
    right: str
    wrong: str


@dataclass(frozen=True)
class Demo:
    """A graded submission, what is wrong in it, and where everything lies."""

    result: Result
    line: WrongLine
    submission: Path
    results: Path


def grade_demo(folder: Path, on_test: Callable[[int, int], None]) -> Demo:
    """Write the submission into a folder, and grade it as any other, into results.json beside it.

    on_test: takes how many of how many tests are done.
    """
    assignment = load_assignment(ASSIGNMENT)
    files, line = broken_reference(assignment)
    submission, results = folder / "submission", folder / "results.json"
    with writing(folder):
        submission.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(submission / name, content)
    count = len(read_graded_tests(ROOT / "tests" / assignment.name))
    done: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        done.append(outcome)
        on_test(len(done), count)

    settings = Settings(
        semester=PRACTICE,  # whose hints are committed, whatever term this checkout is in
        out=results,
        unsafe=True,  # the code is our own, so the demo runs on any machine
        private=(folder.resolve(),),
        on_test=note,
    )
    result = grade(assignment, read_submission(submission, assignment), settings)
    return Demo(result, line, submission, results)


def broken_reference(assignment: Assignment) -> tuple[dict[str, bytes], WrongLine]:
    """The reference with the mistake made, the solved lab, and the line that is wrong."""
    catalog = f"solutions/{assignment.name}/mistakes.toml"
    right = reference(assignment)
    try:
        files = apply(find_mistake(assignment, catalog), assignment)
    except CourseError as error:
        raise CourseError(f"The demo can't find the line to break: {error}") from None
    line = changed_line(right, files)
    if line is None:
        raise CourseError(f"The demo breaks one line, but {MISTAKE} in {catalog} changes several.")
    return files | {LAB_FILE: solved_notebook(read_master(assignment))}, line


def find_mistake(assignment: Assignment, catalog: str) -> Mistake:
    """The mistake to make. The rest of the catalog isn't tried, which takes seconds."""
    try:
        content = tomllib.loads((ROOT / catalog).read_text("utf-8"))
        known = msgspec.convert(content, MistakeFile).mistakes
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{catalog} can't be read: {error}") from None
    for mistake in known:
        if mistake.name == MISTAKE:
            return mistake
    raise CourseError(f"{catalog} has no mistake named {MISTAKE}.")


def changed_line(right: dict[str, bytes], wrong: dict[str, bytes]) -> WrongLine | None:
    """The only line in which two versions differ; None where there is no such line."""
    found = []
    for file, content in right.items():
        before, after = (text.decode("utf-8").splitlines() for text in (content, wrong[file]))
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        for _, first, last, start, end in matcher.get_opcodes():
            if before[first:last] == after[start:end]:
                continue
            if (last - first, end - start) != (1, 1):
                return None
            found.append(WrongLine(file, start + 1, before[first].strip(), after[start].strip()))
    return found[0] if len(found) == 1 else None
