"""Tests that a handout's test modules hold only what public tests use."""

import ast
import zipfile

import pytest

from autograder.packaging.leak_check import check_helpers
from autograder.packaging.public_helpers import public_part, unused_helpers
from autograder.packaging.zip_contents import handout
from common.assignment import ROOT, load_all
from common.errors import CourseError

PUBLIC = b'''"""Public tests."""

from tests.a0_example import lookup
from tests.a0_example.cases import check_sum


def test_sum(student):
    check_sum(student.add(1, 2))
    lookup.by_name("named_by_a_string")
'''
CASES = b'''"""Helpers."""

import math

import numpy as np
from tests.a0_example.lookup import ANSWER, LIMIT

AXES = ("row", "column")
SECRET = np.float64(ANSWER)  # which the lab asks for


def check_sum(result):
    assert result == total(1, 2) and result < LIMIT


# What only a hidden test needs.
@staticmethod
def check_secret(result):
    assert math.isclose(result, SECRET)


def total(*numbers):
    return sum(numbers)
'''
LOOKUP = b'''"""Looks things up."""

LIMIT = 10
ANSWER = 3


def by_name(name):
    return globals()[name]()


def named_by_a_string():
    return None
'''
ANSWERS = b'''"""Answers."""


def answer():
    return 42
'''
MEMBERS = {
    "tests/a0_example/test_public.py": PUBLIC,
    "tests/a0_example/cases.py": CASES,
    "tests/a0_example/lookup.py": LOOKUP,
    "tests/a0_example/answers.py": ANSWERS,
}
EACH = pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.name)


def test_what_only_hidden_tests_use_stays_out():
    kept = public_part(MEMBERS)
    assert set(kept) == set(MEMBERS) - {"tests/a0_example/answers.py"}
    cases = kept["tests/a0_example/cases.py"].decode()
    assert cases == (
        '"""Helpers."""\n\nfrom tests.a0_example.lookup import LIMIT\n\n\n'
        "def check_sum(result):\n    assert result == total(1, 2) and result < LIMIT\n\n\n"
        "def total(*numbers):\n    return sum(numbers)\n"
    )
    lookup = kept["tests/a0_example/lookup.py"].decode()
    assert "named_by_a_string" in lookup and "LIMIT" in lookup and "ANSWER" not in lookup
    assert kept["tests/a0_example/test_public.py"] == PUBLIC
    assert public_part(kept) == kept
    assert not unused_helpers(kept)


def test_helpers_that_no_public_test_uses_are_named():
    assert unused_helpers(MEMBERS) == {
        "tests/a0_example/cases.py": ["AXES", "SECRET", "check_secret"],
        "tests/a0_example/lookup.py": ["ANSWER"],
        "tests/a0_example/answers.py": ["answer"],
    }


def test_the_leak_check_refuses_a_handout_with_helpers_of_hidden_tests(tmp_path):
    file = tmp_path / "handout.zip"
    for members, complaint in ((MEMBERS, "AXES, SECRET, check_secret"), (public_part(MEMBERS), "")):
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with zipfile.ZipFile(file) as archive:
            if not complaint:
                check_helpers(file, archive)
                continue
            with pytest.raises(CourseError, match=complaint):
                check_helpers(file, archive)


@EACH
def test_every_helper_in_a_handout_is_named_by_a_public_test_or_by_another_helper(assignment):
    members = {
        name: content.decode()
        for name, content in handout(assignment).items()
        if name.startswith(f"tests/{assignment.name}/") and name.endswith(".py")
    }
    for name, content in members.items():
        compile(content, name, "exec")
        if name.endswith("test_public.py"):
            continue
        for node in ast.parse(content).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                others = sum(text.count(node.name) for text in members.values())
                assert others > 1, f"{name}: {node.name}"


def test_answers_of_labs_stay_out_of_handouts():
    for short, helper in (("a1", "most_vertical_digit"), ("a5", "check_same_numbers")):
        (assignment,) = (each for each in load_all() if each.short == short)
        assert helper in (ROOT / "tests" / assignment.name / "lab_cases.py").read_text("utf-8")
        members = handout(assignment)
        assert not [name for name, content in members.items() if helper.encode() in content]
