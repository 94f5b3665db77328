"""A small class, graded once for all tests that use its batch."""

from pathlib import Path

import pytest

from autograder.classroom.disturbed_batch import batch_command
from autograder.classroom.synthetic_class import HOSTILE, make_class
from autograder.classroom.synthetic_export import write_class
from common.assignment import ROOT, load_assignment
from tests.tooling.made_once import made_once
from tests.tooling.scratch_copies import python

STUDENTS = 6


def graded_class(factory: pytest.TempPathFactory) -> Path:
    """A folder with a `class` without attacks, whose results may depend on time; and its `batch`.

    Whoever changes something takes a copy.
    """
    return made_once(factory, "class", grade_class)


def grade_class(folder: Path) -> None:
    """Make the class, and grade it in peace."""
    assignment = load_assignment("a1")
    handed = make_class(assignment, STUDENTS, 3, without=(HOSTILE,))
    export = write_class(handed, assignment, folder / "class")
    done = python(*batch_command("a1", export, folder / "batch")[1:], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
