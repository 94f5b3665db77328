"""Tests of the stand-ins: they do what their assignments ask for."""

import msgspec
import numpy as np
import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, STANDINS, load_all, load_assignment
from common.errors import Failure, ForbiddenCall
from common.student_code.loader import PREREQUISITES
from common.testing.compare import assert_close
from common.testing.direct_face import DirectFace
from common.testing.feedback.failure import explain
from common.testing.fixtures import FACE, decorator_value, run_graded_tests
from common.testing.graded_tests import TIMING
from tests.tooling.grading_fixtures import code_in


class Outcomes:
    """Runs tests on a stand-in, and hears which failed."""

    def __init__(self, package: str) -> None:
        # What students may not use is what a stand-in is made of.
        assignment = msgspec.structs.replace(load_assignment(package), forbidden=())
        self.face = DirectFace(assignment, {package: STANDINS / package}, assignment.standins)
        self.passed: list[str] = []
        self.failed: dict[str, str] = {}

    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[FACE] = lambda assignment: self.face

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """How fast a stand-in is doesn't matter, and it answers no questions."""
        items[:] = [
            item
            for item in items
            if TIMING not in decorator_value(item, "__tags__", ())
            and "lab" not in item.fixturenames
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)
        elif report.when == "call":
            self.passed.append(report.nodeid)


@pytest.mark.parametrize("package", PREREQUISITES)
def test_a_stand_in_gets_every_point_of_its_assignment(package):
    outcomes = Outcomes(package)
    folder = ROOT / "tests" / package
    run_graded_tests([folder / "test_public.py", folder / "test_hidden.py"], outcomes)
    assert outcomes.failed == {}
    assert len(outcomes.passed) > 10


def test_every_prerequisite_has_a_stand_in():
    needed = {name for assignment in load_all() for name in assignment.prerequisites}
    assert needed <= set(PREREQUISITES)


# An assignment that builds on the first one, and may not use PyTorch itself.
A1 = load_assignment("a1")
LATER = msgspec.structs.replace(
    A1,
    exercises=tuple(msgspec.structs.replace(exercise, needs={}) for exercise in A1.exercises),
    name="a2_lenet",
    files=("lenet.py",),
    prerequisites=("a1_convolution",),
)
SNOOP = """
import sys
import numpy as np
from assignments.a1_convolution import convolution


def relu_forward(x):
    out, _ = convolution.max_pool2d_forward(x, 1)  # PyTorch works in there
    return out, None


def relu_backward(dout, cache):
    seen = [hasattr(convolution, name) for name in ("F", "torch", "ATEN")]
    return [*seen, "torch" in sys.modules]


def linear_forward(x, w, b):
    import torch
"""


@pytest.mark.parametrize("kind", ["direct", "isolated"])
def test_a_stand_in_may_use_what_the_code_that_calls_it_may_not(kind, tmp_path):
    folder = tmp_path / LATER.name
    folder.mkdir()
    (folder / "lenet.py").write_text(SNOOP)
    packages = {LATER.name: folder}
    x = np.arange(8.0).reshape(1, 2, 2, 2)
    with Sandbox(LATER) as sandbox:
        sandbox.admit(code_in(packages))
        face = (
            IsolatedFace(sandbox)
            if kind == "isolated"
            else DirectFace(LATER, packages, LATER.standins)
        )
        with face.open("1.2") as student:
            assert_close(student.relu_forward(x)[0], x)
            assert student.relu_backward(x, None) == [False] * 4
            with pytest.raises(ForbiddenCall, match="don't allow torch"):
                student.linear_forward(x, x, x)
            assert_close(student.relu_forward(x)[0], x)


def test_a_missing_earlier_assignment_is_named(tmp_path):
    folder = tmp_path / LATER.name
    folder.mkdir()
    (folder / "lenet.py").write_text(SNOOP)
    with (
        DirectFace(LATER, {LATER.name: folder}).open("1.2") as student,
        pytest.raises(Failure) as raised,
    ):
        _ = student.relu_forward
    reported = explain(raised.value)
    assert reported.sentence == "lenet.py needs your assignments/a1_convolution, which is missing."
    assert "--prerequisites=standin" in reported.help
