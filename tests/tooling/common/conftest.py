"""Fixtures of both faces of `student`: a submission in NumPy, and one in PyTorch."""

from pathlib import Path

import msgspec
import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import load_assignment
from common.testing.direct_face import DirectFace
from tests.tooling.grading_fixtures import FACES, both_faces, code_in

HERE = Path(__file__).parent
FILES = {
    "layers.py": (HERE / "torch_submission.py").read_text(),
    "wrong.py": "def broken(:\n",
    "borrowing.py": "from assignments.a1_convolution.wrong import broken\n",
}


@pytest.fixture(scope="module")
def faces(request, tmp_path_factory):
    """Both faces of the code that a test's module holds as CODE, or else of one in NumPy."""
    shared = (HERE / "numpy_submission.py").read_bytes()
    source = getattr(request.module, "CODE", shared)
    with both_faces(tmp_path_factory.mktemp("numpy"), source) as made:
        yield made


@pytest.fixture(params=FACES)
def student(request, faces):
    with faces[request.param].open("1.1") as code:
        yield code


@pytest.fixture(scope="module")
def torch_faces(tmp_path_factory):
    """Both faces of a submission of several files."""
    assignment = msgspec.structs.replace(
        load_assignment("a1"), files=tuple(FILES), libraries=("numpy", "torch"), forbidden=()
    )
    folder = tmp_path_factory.mktemp("torch") / assignment.name
    folder.mkdir()
    for name, source in FILES.items():
        (folder / name).write_text(source)
    packages = {assignment.name: folder}
    with Sandbox(assignment) as sandbox:
        sandbox.admit(code_in(packages))
        yield {"direct": DirectFace(assignment, packages), "isolated": IsolatedFace(sandbox)}


@pytest.fixture(params=FACES)
def torch_student(request, torch_faces):
    with torch_faces[request.param].open("1.1") as code:
        yield code
