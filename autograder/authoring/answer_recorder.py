"""Records the oracle's answers for public tests into answers.npz (`make answers`)."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.testing.fixtures import ANSWERS_FILE, RECORDING, decorator_value, run_graded_tests
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE, TRAINING
from common.testing.stored_answers import RecordingOracle, write_answers

ORACLE_FILE = "oracle.py"
# By the largest entry: another order of summing moves small entries by more.
SAME, SAME_IN_FLOAT32 = 1e-12, 1e-6


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
    check_oracle(assignment)
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


def check_oracle(assignment: Assignment) -> None:
    """There is an oracle if tests ask one."""
    folder = ROOT / "tests" / assignment.name
    tests = [folder / name for name in (PUBLIC_FILE, HIDDEN_FILE)]
    asking = [file.name for file in tests if file.is_file() and "oracle" in file.read_text("utf-8")]
    if asking and not (folder / ORACLE_FILE).is_file():
        raise CourseError(
            f"tests/{assignment.name}/{ORACLE_FILE} is missing: {asking[0]} asks it for expected "
            "values."
        )


def check_answers(assignment: Assignment) -> None:
    """The stored answers are there, and are those that the oracle gives now."""
    file = answers_file(assignment)
    if not file.is_file():
        problem = "is missing"
    else:
        with np.load(file, allow_pickle=False) as stored:
            if same_answers(record(assignment), dict(stored)):
                return
        problem = "is stale"
    raise CourseError(
        f"{file.relative_to(ROOT)} {problem}: run `make answers A={assignment.short}`."
    )


def same_answers(new: Mapping[str, np.ndarray], stored: Mapping[str, np.ndarray]) -> bool:
    """Whether two records hold the same answers, but for float noise."""
    return new.keys() == stored.keys() and all(same(new[key], stored[key]) for key in new)


def same(new: np.ndarray, stored: np.ndarray) -> bool:
    """Whether two answers are the same, but for float noise."""
    if (new.dtype, new.shape) != (stored.dtype, stored.shape):
        return False
    if new.dtype.kind not in "fc":
        return np.array_equal(new, stored)
    bar = SAME if new.dtype == np.float64 else SAME_IN_FLOAT32
    largest = np.abs(new[np.isfinite(new)]).max(initial=0)
    return np.allclose(new, stored, rtol=0, atol=bar * largest, equal_nan=True)
