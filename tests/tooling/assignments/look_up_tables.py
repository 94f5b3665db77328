"""Plays look-up tables over a handout's public tests, in the same process as the tests.

Run as `python -m tests.tooling.assignments.look_up_tables aN [tables]`: prints the public tests
that have the same inputs in a handout and in a term, and those that tables of a handout's inputs
pass there. A table holds what functions return: what they do with objects is in none.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from common.assignment import ROOT, Assignment, load_assignment
from common.student_code.values import Handle, as_numpy, is_container, is_generator, is_tensor
from common.testing.direct_face import DirectFace
from common.testing.fixtures import FACE, decorator_value, run_graded_tests
from common.testing.graded_tests import PRACTICE_SALT, PUBLIC_FILE, TRAINING

TERM_SALT = "the secret of a term"
Key = Callable[[Any], str]


def by_value(value: Any) -> str:
    """What was asked, to the last bit. An object that stays with student code is its name."""
    if isinstance(value, Handle):
        return value._label
    if is_container(value) or isinstance(value, list | tuple | dict):
        items = value.items() if isinstance(value, dict) else value
        return f"{type(value).__mro__[-2].__name__}({', '.join(map(by_value, items))})"
    if is_tensor(value):
        try:
            return f"tensor {by_value(as_numpy(value))}"
        except TypeError:  # a type that NumPy doesn't have
            return f"tensor {value.dtype} {value.tolist()}"
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value).tobytes()
        return f"{by_shape(value)} {hashlib.sha256(content).hexdigest()}"
    if is_generator(value):
        return str(value.bit_generator.state)
    return repr(value).partition(" at 0x")[0]


def by_shape(value: Any) -> str:
    """What was asked, but for the numbers in arrays."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape}"
    if isinstance(value, list | tuple):
        return f"({', '.join(map(by_shape, value))})"
    return by_value(value)


KEYS: tuple[Key, ...] = (by_value, by_shape)


class CopyingFace(DirectFace):
    """The reference, noting what each test asks and, by each key, what the answer is."""

    def __init__(self, assignment: Assignment) -> None:
        folder = ROOT / "solutions" / assignment.name
        super().__init__(assignment, {assignment.name: folder}, assignment.standins)
        self.asked: list[str] = []
        self.answers: dict[tuple[Key, str], Any] = {}

    def run(self, function: Any, label: str, args: Any, kwargs: Any) -> Any:
        question = args, list(kwargs.items())
        self.asked.append(f"{label} {by_value(question)}")
        try:
            answer = super().run(function, label, args, kwargs)
        except Exception as error:
            answer = error
        for key in KEYS:
            self.answers[key, f"{label} {key(question)}"] = answer
        return given(answer)


class TableFace(CopyingFace):
    """A submission that computes nothing, and knows what the reference answered."""

    def __init__(self, source: CopyingFace, key: Key) -> None:
        super().__init__(source.assignment)
        self.answers = source.answers
        self.key = key

    def run(self, function: Any, label: str, args: Any, kwargs: Any) -> Any:
        question = f"{label} {self.key((args, list(kwargs.items())))}"
        self.asked.append(question)
        return given(self.answers.get((self.key, question)))


def given(answer: Any) -> Any:
    """An answer as a test gets it: an error is raised."""
    if isinstance(answer, Exception):
        raise answer
    return answer


class Watcher:
    """The pytest plugin that puts a face before the tests, and notes what it earns."""

    def __init__(self, face: CopyingFace) -> None:
        self.face = face
        self.asked: dict[str, list[str]] = {}
        self.passed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[FACE] = lambda assignment: self.face

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Tests that train take long; a lab is asked nothing."""
        items[:] = [
            item
            for item in items
            if TRAINING not in decorator_value(item, "__tags__", ())
            and "lab" not in getattr(item, "fixturenames", ())
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            name = report.nodeid.rpartition("::")[2]
            self.asked[name], self.face.asked = self.face.asked, []
            self.passed += [name] if report.passed else []


def play(face: CopyingFace, salt: str) -> Watcher:
    """What the public tests ask a face under a salt, and which it passes."""
    watcher = Watcher(face)
    file = ROOT / "tests" / face.assignment.name / PUBLIC_FILE
    run_graded_tests([file], watcher, "--impl=solutions", f"--salt={salt}")
    return watcher


def findings(assignment: Assignment, tables: bool) -> dict[str, list[str]]:
    """The tests with fixed inputs, and those that tables pass, by how a table is keyed."""
    source = CopyingFace(assignment)
    handout, term = play(source, PRACTICE_SALT), play(CopyingFace(assignment), TERM_SALT)
    fixed = [name for name, asked in handout.asked.items() if asked == term.asked[name]]
    found = {"reference": term.passed, "fixed": fixed}
    if not tables:
        return found
    found["in the handout"] = play(TableFace(source, by_value), PRACTICE_SALT).passed
    return found | {key.__name__: play(TableFace(source, key), TERM_SALT).passed for key in KEYS}


if __name__ == "__main__":
    print("\n" + json.dumps(findings(load_assignment(sys.argv[1]), "tables" in sys.argv)))
