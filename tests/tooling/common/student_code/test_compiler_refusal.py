"""Tests that torch.compile is refused in one sentence, by both faces, where it would compile."""

import pytest
import torch  # noqa: F401  # a guard refuses what is loaded when it is made, as in tests

from common.assignment import load_assignment
from common.errors import ForbiddenCall
from common.student_code.compiler_refusal import COMPILER_REFUSED
from common.testing.feedback.failure import explain
from tests.tooling.grading_fixtures import FACES, attention_faces

ATTENTION = load_assignment("a5")
CODE = """
import torch
from torch import compile, nn


def function():
    return torch.compile(torch.sin)(torch.ones(2))


def alias():
    return compile(torch.sin, mode="max-autotune")(torch.ones(2))


def decorator():
    @torch.compile(dynamic=True)
    def double(x):
        return 2 * x

    return double(torch.ones(2))


def default_backend():
    return torch.compile(torch.sin, backend=None)(torch.ones(2))


def module():
    layer = nn.Linear(2, 2)
    layer.compile()
    return layer(torch.ones(2))


def without_compiler():
    return torch.compile(torch.abs, backend="eager")(-torch.ones(2))
"""


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    with attention_faces(tmp_path_factory.mktemp("package"), CODE.encode()) as made:
        yield made


@pytest.mark.parametrize("kind", FACES)
@pytest.mark.parametrize("name", ["function", "alias", "decorator", "default_backend", "module"])
def test_what_runs_a_compiler_is_refused_when_it_is_called(faces, kind, name):
    with faces[kind].open("5.3") as student, pytest.raises(ForbiddenCall) as raised:
        getattr(student.attention, name)()
    assert explain(raised.value).text(hidden=True) == COMPILER_REFUSED


@pytest.mark.parametrize("kind", FACES)
def test_what_compiles_nothing_is_not(faces, kind):
    with faces[kind].open("5.3") as student:
        assert student.attention.without_compiler().tolist() == [1, 1]
