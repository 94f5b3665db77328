"""Measures the CPU time of each graded test on the reference, in a separate process.

Run as `python -m autograder.benchmarks.processor_time aN FILE`, by the benchmark alone.
"""

import importlib
import sys
import time
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from common.assignment import ROOT, Assignment, load_assignment
from common.errors import CourseError
from common.testing.fixtures import run_graded_tests
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE

# Grading loads them once for all tests; here the first test to need one would pay for it.
PRELOADED = ("torch", "torch._dynamo")


class ProcessorTimes:
    """The pytest plugin that measures each test, with its fixtures, and notes which failed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.skipped: set[str] = set()  # without a GPU, or where a library is missing
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.name] = time.process_time() - start

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::")[2]
        if report.skipped:
            self.skipped.add(name)
        if report.failed:
            self.failed.append(name)


def processor_times(assignment: Assignment) -> dict[str, float]:
    """The seconds of each public and hidden test that was run, by its name."""
    for name in PRELOADED:
        importlib.import_module(name)
    folder = ROOT / "tests" / assignment.name
    times = ProcessorTimes()
    files = [folder / PUBLIC_FILE, folder / HIDDEN_FILE]
    code = run_graded_tests(files, times, "--impl=solutions")
    if code != pytest.ExitCode.OK:
        failed = "".join(f", and the reference fails {name}" for name in times.failed[:1])
        raise CourseError(f"pytest ended with {code.name}{failed}")
    return {name: taken for name, taken in times.seconds.items() if name not in times.skipped}


if __name__ == "__main__":
    try:
        found = processor_times(load_assignment(sys.argv[1]))
    except CourseError as error:
        sys.exit(str(error))
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(found))
