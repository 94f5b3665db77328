"""Checks the CPU time of each graded test and lab on correct code against its limit.

Public and hidden tests count. Tests tagged `timing` are quick ones; those tagged `gpu` count where
there is a GPU. The tests of a lab share one run of the notebook, which the first of them starts.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from autograder.authoring.reference_artifacts import reference_artifacts
from autograder.benchmarks.benchmark_row import NotMeasured, Row
from autograder.benchmarks.public_test_benchmarks import last_line, on_one_core, seconds_row
from common.assignment import ROOT, Assignment, load_all
from common.testing.graded_tests import GradedTest, Pace, read_graded_tests

MEASURE = "autograder.benchmarks.processor_time"
# What one test may take, and all tests of a lab together.
SLOWEST = ((Pace.QUICK, "quick test", 1.0), (Pace.TRAINING, "training test", 15.0))
LAB_SECONDS = 10.0


def assignment_rows(assignment: Assignment) -> Iterator[Row | NotMeasured]:
    """The slowest quick test of an assignment, its slowest training test, and its lab."""
    reference_artifacts(assignment)  # writes the solved lab, which pytest reads
    with TemporaryDirectory(prefix="conv2gpt-bench-") as scratch:
        file = Path(scratch) / "seconds.json"
        finished = on_one_core("-m", MEASURE, assignment.short, str(file))
        if finished.returncode:
            name = f"processor time of {assignment.short}'s graded tests"
            yield NotMeasured(name, f"The measurement failed: {last_line(finished)}")
            return
        seconds = msgspec.json.decode(file.read_bytes(), type=dict[str, float])
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    yield from limit_rows(assignment.short, graded_tests, seconds)


def limit_rows(
    short: str, graded_tests: list[GradedTest], seconds: Mapping[str, float]
) -> Iterator[Row]:
    """The rows of tests that took so many seconds; a test that was not run has none."""
    ran = [test for test in graded_tests if test.name in seconds]
    for pace, what, allowed in SLOWEST:
        taken = {test.name: seconds[test.name] for test in ran if test.pace is pace}
        if taken:
            slowest = max(taken, key=taken.__getitem__)
            name = f"processor time of {short}'s slowest {what}, {slowest}"
            yield seconds_row(name, taken[slowest], allowed)
    lab = [seconds[test.name] for test in ran if test.pace is Pace.LAB]
    if lab:
        name = f"processor time of {short}'s solved lab with its {len(lab)} tests"
        yield seconds_row(name, sum(lab), LAB_SECONDS)


def rows() -> Iterator[Row | NotMeasured]:
    """All assignments."""
    for assignment in load_all():
        yield from assignment_rows(assignment)
