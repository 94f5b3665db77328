"""Helpers of the grading tests: small assignments, submissions, and both faces of `student`."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from autograder.authoring.lab_master import read_master, solved_notebook
from autograder.grading import grade as grading
from autograder.grading import judge_inputs
from autograder.grading.judge import Settings
from autograder.grading.results import Result
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission
from autograder.semester import Semester
from common.assignment import LAB_FILE, ROOT, Assignment, Limits, load_assignment
from common.testing.direct_face import DirectFace
from common.testing.student_face import StudentFace

SEMESTER = Semester("testing", "a salt for tests")
FILE = "convolution.py"
REFERENCE = ROOT / "solutions" / "a1_convolution" / FILE
STUB = ROOT / "assignments" / "a1_convolution" / FILE
FACES = ("direct", "isolated")


def assignment(
    test_seconds: float = 5,
    total_seconds: float = 60,
    memory_mb: int = 512,
    wall_seconds: float | None = None,
) -> Assignment:
    """Assignment 1 with limits that suit a test."""
    limits = Limits(test_seconds, total_seconds, memory_mb, wall_seconds)
    return msgspec.structs.replace(load_assignment("a1"), limits=limits)


def submission(source: str | bytes) -> Submission:
    """A submission of one file with that content."""
    content = dedent(source).encode() if isinstance(source, str) else source
    return Submission({FILE: content})


def with_lab(source: str | bytes) -> Submission:
    """A submission of that code, and of the solved lab."""
    files = submission(source).files
    return Submission(files | {LAB_FILE: solved_notebook(read_master(load_assignment("a1")))})


def write_package(folder: Path, source: str | bytes) -> dict[str, Path]:
    """That submission, laid out so that either face can import it."""
    return {"a1_convolution": submission(source).write_to(folder / "a1_convolution")}


def code_in(packages: dict[str, Path]) -> dict[str, bytes]:
    """The code of the one package, as a sandbox takes it in."""
    (folder,) = packages.values()
    return {file.name: file.read_bytes() for file in folder.glob("*.py")}


def make_face(kind: str, sandbox: Sandbox | None, packages: dict[str, Path]):
    """One of the two faces on the same code."""
    if kind == "direct":
        return DirectFace(assignment(), packages)
    return IsolatedFace(sandbox)


@contextmanager
def admitted(packages: dict[str, Path], private: Iterable[Path] = ()) -> Iterator[tuple]:
    """A sandbox that has taken a submission in, and the defenses in force."""
    with Sandbox(assignment()) as sandbox:
        yield sandbox, sandbox.admit(code_in(packages), private)


@contextmanager
def both_faces(folder: Path, source: str | bytes) -> Iterator[dict]:
    """Both faces of the same code, by name."""
    packages = write_package(folder, source)
    with admitted(packages) as (sandbox, _):
        yield {kind: make_face(kind, sandbox, packages) for kind in FACES}


def grade(
    source: str | bytes | Submission,
    chosen: Assignment | None = None,
    out: Path | None = None,
    direct: bool = False,
    tests: Path | None = None,
    on_test=lambda outcome: None,
    compare_all: bool = False,
    gpu: bool = False,
) -> Result:
    """Grade in this process, against the tests of assignment 1 or against those in a folder."""
    taken = source if isinstance(source, Submission) else submission(source)
    settings = Settings(
        SEMESTER, out=out, direct=direct, on_test=on_test, compare_all=compare_all, gpu=gpu
    )
    path = list(sys.path)
    with pytest.MonkeyPatch.context() as patch:
        if tests is not None:
            patch.setattr(judge_inputs, "ROOT", tests)
        try:
            # All tests of a made-up file may belong to one exercise, and several may hang.
            patch.setattr("autograder.grading.sandbox.isolated_face.TIMEOUTS", 99)
            return grading.grade(chosen or assignment(), taken, settings)
        finally:
            sys.path[:] = path


def write_tests(folder: Path, public: str, hidden: str = "") -> Path:
    """A tree with tests of its own, to be given to `grade` as `tests`."""
    place = folder / "tests" / "a1_convolution"
    place.mkdir(parents=True)
    head = """
        import numpy as np
        from gradescope_utils.autograder_utils.decorators import number, tags, weight
        from common.testing.compare import assert_close, assert_equal, unpack
        """
    for name, body in (("test_public.py", public), ("test_hidden.py", hidden)):
        if body:
            (place / name).write_text(dedent(head) + dedent(body))
    return folder


def outcome(result: Result, name: str):
    """How the test of that name ended."""
    return next(item for item in result.all_outcomes if item.test.name == name)


@contextmanager
def attention_faces(folder: Path, source: bytes) -> Iterator[dict[str, StudentFace]]:
    """Both faces on an assignment 5 whose attention.py is that source, and whose rest is empty."""
    assignment = load_assignment("a5")
    code = dict.fromkeys(assignment.files, b"") | {"attention.py": source}
    package = Submission(code).write_to(folder / assignment.name)
    with Sandbox(assignment) as sandbox:
        sandbox.admit(code)
        direct = DirectFace(assignment, {assignment.name: package})
        yield {"direct": direct, "isolated": IsolatedFace(sandbox)}
