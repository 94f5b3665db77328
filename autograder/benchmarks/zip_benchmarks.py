"""Benchmarks grading reference and stub with a built zip, training included."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.benchmarks.benchmark_row import Row
from autograder.packaging.zip_build import build
from autograder.release.zip_check import ZipCheck
from autograder.semester import PRACTICE
from common.assignment import ROOT, Assignment, load_all
from common.testing.graded_tests import read_graded_tests

ALLOWED_SECONDS = 30


def zip_row(assignment: Assignment) -> Row:
    """Both gradings of one assignment, one after the other."""
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    with TemporaryDirectory(prefix="conv2gpt-bench-") as scratch:
        built = build(assignment, Path(scratch), PRACTICE)
        checked = ZipCheck(assignment, built, graded_tests, training=True).run(
            "", lambda name, doing: None
        )
    name = f"reference and stub of {assignment.short} by the zip, training included"
    return Row(name, f"{ALLOWED_SECONDS} seconds", checked.seconds, ALLOWED_SECONDS, bar=1)


def rows() -> Iterator[Row]:
    """All assignments."""
    yield from map(zip_row, load_all())
