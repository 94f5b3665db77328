"""Tests that torch.compile is refused in one sentence, by both faces, where it would compile."""

import pytest
import torch  # noqa: F401  # a guard refuses what is loaded when it is made, as in tests

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import load_assignment
from common.errors import ForbiddenCall
from common.student_code.compiler_refusal import COMPILER_REFUSED
from common.testing.direct_face import DirectFace
from common.testing.feedback.failure import explain
from tests.tooling.grading_fixtures import FACES

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
    folder = tmp_path_factory.mktemp("package") / ATTENTION.name
    folder.mkdir()
    code = dict.fromkeys(ATTENTION.files, b"") | {"attention.py": CODE.encode()}
    for name, content in code.items():
        (folder / name).write_bytes(content)
    with Sandbox(ATTENTION) as sandbox:
        sandbox.admit(code)
        direct = DirectFace(ATTENTION, {ATTENTION.name: folder})
        yield {"direct": direct, "isolated": IsolatedFace(sandbox)}


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
