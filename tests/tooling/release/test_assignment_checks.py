"""Tests of what `make` refuses before it builds: wrong points, no oracle, stale answers."""

import numpy as np
import pytest

from autograder.authoring import answer_recorder
from autograder.authoring.answer_recorder import same_answers
from autograder.release import assignment_checks
from autograder.release.assignment_checks import (
    answers_state,
    check_tests,
    problems_of_exercises,
    problems_of_points,
)
from common.assignment import load_all, load_assignment
from common.testing.graded_tests import GradedTest
from tests.tooling.scratch_copies import copy_repo, run

A1 = load_assignment("a1")
TESTS = f"tests/{A1.name}"
ORACLE, ANSWERS = f"{TESTS}/oracle.py", f"{TESTS}/answers.npz"
PUBLIC, HIDDEN = f"{TESTS}/test_public.py", f"{TESTS}/test_hidden.py"


@pytest.mark.parametrize("assignment", load_all(), ids=lambda one: one.short)
def test_no_assignment_of_the_course_is_refused(assignment):
    check_tests(assignment)


def graded(points, hidden=False, exercise="1.1"):
    return GradedTest(f"test_{points}", exercise, points, hidden, "A title.", "visible")


@pytest.mark.parametrize(
    ("public", "hidden", "problems"),
    [
        (55, 45, []),
        (65, 35, []),
        (54.5, 45.5, ["54.5 of 100 points are public, but it must be 55 to 65."]),
        (66, 34, ["66 of 100 points are public, but it must be 55 to 65."]),
        (60, 39.5, ["the points sum to 99.5, not to 100."]),
        (70, 31, ["the points sum to 101, not to 100."]),
    ],
)
def test_points_sum_to_100_and_55_to_65_of_them_are_public(public, hidden, problems):
    assert [*problems_of_points([graded(public), graded(hidden, hidden=True)])] == problems


def test_each_exercise_has_public_and_hidden_tests():
    tests = [
        graded(1, hidden, one.number)
        for one in A1.exercises
        for hidden in (False, True)
        if (one.number, hidden) not in (("1.3", True), ("1.7", False))
    ]
    problems = ["exercise 1.7 has no public test.", "exercise 1.3 has no hidden test."]
    assert [*problems_of_exercises(A1, tests)] == problems


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A scratch copy, whose files each test puts back."""
    return copy_repo(tmp_path_factory.mktemp("refused") / "repo")


REFUSED = {
    "points": (HIDDEN, ("@weight(1)", "@weight(3)"), f"{TESTS}: the points sum to 102, not to 100"),
    "no oracle": (ORACLE, None, f"{ORACLE} is missing: test_public.py asks it for expected values"),
    "no answers": (ANSWERS, None, f"{ANSWERS} is missing: run `make answers A=a1`."),
    "stale answers": (
        PUBLIC,
        ("(2, 3, 6, 7), (4, 3, 3, 2)", "(2, 3, 7, 7), (4, 3, 3, 2)"),
        f"{ANSWERS} is stale: run `make answers A=a1`.",
    ),
}


@pytest.mark.parametrize(("name", "change", "sentence"), REFUSED.values(), ids=REFUSED)
def test_make_refuses_in_one_sentence_and_builds_nothing(root, name, change, sentence):
    file = root / name
    before = file.read_bytes()
    try:
        if change is None:
            file.unlink()
        else:
            old, new = (part.encode() for part in change)
            assert old in before
            file.write_bytes(before.replace(old, new, 1))
        finished = run(["make", "A=a1"], root)
    finally:
        file.write_bytes(before)
    assert finished.returncode == 2
    assert sentence in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (root / "dist").exists()


def test_answers_are_the_same_but_for_float_noise():
    stored = {"a": np.array([1.0, 1e6]), "b": np.array([1, 2]), "c": np.array([np.nan, 1.0])}
    assert same_answers(stored, dict(stored))
    assert same_answers(stored | {"a": np.array([1.0 + 1e-8, 1e6])}, stored)
    for changed in (
        stored | {"a": np.array([1.0 + 1e-4, 1e6])},
        stored | {"a": stored["a"].astype(np.float32)},
        stored | {"a": stored["a"][None]},
        stored | {"b": np.array([1, 3])},
        stored | {"c": np.array([1.0, 1.0])},
        stored | {"d": np.array([1.0])},
        {"a": stored["a"]},
    ):
        assert not same_answers(changed, stored)


@pytest.mark.parametrize("name", [ORACLE, ANSWERS, f"solutions/{A1.name}/convolution.py"])
def test_answers_are_checked_again_if_what_decides_them_has_changed(root, monkeypatch, name):
    for module in (assignment_checks, answer_recorder):
        monkeypatch.setattr(module, "ROOT", root)
    state, file = answers_state(A1), root / name
    before = file.read_bytes()
    assert answers_state(A1) == state
    try:
        file.write_bytes(before + b"#")
        assert answers_state(A1) != state
    finally:
        file.write_bytes(before)
    assert answers_state(A1) == state
