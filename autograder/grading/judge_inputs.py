"""Reads what a judge needs of an assignment: its graded tests and its hint files."""

from dataclasses import dataclass
from pathlib import Path

from autograder.semester import Semester, hints_folder
from common.assignment import ROOT, Assignment
from common.testing.feedback.diagnosis import Hints
from common.testing.feedback.hints import HINT_FILES
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE, GradedTest, read_graded_tests


@dataclass(frozen=True)
class JudgeInputs:
    """The tests of an assignment, and what is known of mistakes."""

    tests: list[GradedTest]
    hints: Hints


def read_judge_inputs(assignment: Assignment, semester: Semester) -> JudgeInputs:
    """All that a judge reads of an assignment, for a semester."""
    return JudgeInputs(read_tests(assignment), read_hints(assignment, semester))


def tests_folder(assignment: Assignment) -> Path:
    """Where an assignment's tests lie."""
    return ROOT / "tests" / assignment.name


def read_tests(assignment: Assignment) -> list[GradedTest]:
    """An assignment's tests, with their points."""
    return read_graded_tests(tests_folder(assignment))


def read_hints(assignment: Assignment, semester: Semester) -> Hints:
    """The hints that fit a semester's inputs."""
    folder = hints_folder(assignment, semester)
    return Hints(folder / name for name in HINT_FILES)


def test_files(assignment: Assignment) -> list[Path]:
    """The files with an assignment's tests."""
    folder = tests_folder(assignment)
    return [folder / name for name in (PUBLIC_FILE, HIDDEN_FILE) if (folder / name).is_file()]
