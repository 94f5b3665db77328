"""Tests that what PyTorch does in one process works in a child, and libraries show their source."""

import ast
from pathlib import Path

import numpy as np
import pytest

from common.assignment import load_assignment
from common.student_text import plain
from tests.tooling.grading_fixtures import FACES, attention_faces
from tests.tooling.weakened_sandbox import needs_root

pytestmark = needs_root
ATTENTION = load_assignment("a5")
SOURCE = Path(__file__).with_name("pytorch_features.py")
TEXTS = ("sources", "opened", "tracebacks")
FEATURES = [
    part.name
    for part in ast.parse(SOURCE.read_text()).body
    if isinstance(part, ast.FunctionDef) and part.name not in ("f", "jacobian", *TEXTS)
]


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    with attention_faces(tmp_path_factory.mktemp("package"), SOURCE.read_bytes()) as made:
        yield made


@pytest.mark.parametrize("kind", FACES)
@pytest.mark.parametrize("name", FEATURES)
def test_it_computes_the_same_in_a_childs_process_as_in_ones_own(faces, kind, name):
    with faces[kind].open("5.7") as student:
        got, expected = getattr(student.attention, name)()
    assert got.shape == expected.shape
    assert np.allclose(got.detach(), expected.detach())


@pytest.mark.parametrize("kind", FACES)
def test_sources_of_pytorch_numpy_python_and_its_own_can_be_inspected(faces, kind):
    with faces[kind].open("5.7") as student:
        texts = [plain(text) for text in student.attention.sources()]
    for text, name in zip(texts, ("softmax", "norm", "dumps", "f"), strict=True):
        assert f"def {name}(" in text


@pytest.mark.parametrize("kind", FACES)
def test_files_and_resources_of_libraries_are_where_they_say(faces, kind):
    with faces[kind].open("5.7") as student:
        assert student.attention.opened() == [True] * 4


@pytest.mark.parametrize("kind", FACES)
def test_tracebacks_show_lines_of_libraries(faces, kind):
    with faces[kind].open("5.7") as student:
        python, *pytorch = [plain(text) for text in student.attention.tracebacks()]
    assert "raise JSONDecodeError(" in python
    assert "result = torch.relu(input)" in pytorch[1]
