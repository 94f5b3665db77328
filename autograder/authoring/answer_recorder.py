"""Records the oracle's answers for public tests into answers.npz (`make answers`)."""

from pathlib import Path

import numpy as np
import pytest

from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.testing.fixtures import ANSWERS_FILE, RECORDING, decorator_value, run_graded_tests
from common.testing.graded_tests import PUBLIC_FILE, TRAINING
from common.testing.stored_answers import RecordingOracle, write_answers


class Recorder:
    """The pytest plugin that installs the recording oracle."""

    def __init__(self) -> None:
        self.oracles: dict[str, RecordingOracle] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[RECORDING] = self.oracles

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Training asks no oracle, and takes long; what a lab answers can't be foreseen."""
        items[:] = [
            item
            for item in items
            if TRAINING not in decorator_value(item, "__tags__", ())
            and "lab" not in getattr(item, "fixturenames", ())
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid.rpartition('::')[2]}: {report.longreprtext}")


def record(assignment: Assignment) -> dict[str, np.ndarray]:
    """Every answer that the public tests ask for."""
    file = ROOT / "tests" / assignment.name / PUBLIC_FILE
    recorder = Recorder()
    code = run_graded_tests([file], recorder, "--impl=solutions")
    if code != pytest.ExitCode.OK:
        reason = recorder.failed[0] if recorder.failed else code.name
        raise CourseError(f"{file}: the reference must pass while recording, but: {reason}")
    oracle = recorder.oracles.get(assignment.name)
    return dict(oracle.answers) if oracle else {}


def answers_file(assignment: Assignment) -> Path:
    """Where an assignment's answers are stored."""
    return ROOT / "tests" / assignment.name / ANSWERS_FILE


def record_to_file(assignment: Assignment) -> Path:
    """Record and store."""
    file = answers_file(assignment)
    write_answers(file, record(assignment))
    return file
