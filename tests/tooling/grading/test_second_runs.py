"""Tests of error carried forward: a failed test is run once more on what it needs, made right."""

import json

import pytest

from autograder.grading.results import to_gradescope
from autograder.grading.sandbox.isolated_face import IsolatedFace
from common.testing.direct_face import DirectFace
from tests.tooling.grading_fixtures import grade, outcome, write_tests

HEAD = """
@weight(1)
@number("{number}")
def test_{name}(student):
    '''{name}.'''
    assert_equal(student.{call}, {right}, "the number")

"""
SIZES = HEAD.format(number="1.1", name="size", call="conv_output_size(5, 3)", right=3)
DOUBLE = HEAD.format(number="1.2", name="double", call="conv2d_forward(5, 3)", right=6)
TRIPLE = HEAD.format(number="1.6", name="triple", call="conv2d_forward_fast(5, 3)", right=9)
COUNT = HEAD.format(number="1.7", name="count", call="conv_parameters(5, 3)", right=3)
PUBLIC = SIZES + DOUBLE + TRIPLE + COUNT
HIDDEN = "".join(
    text.replace("def test_", "def test_hidden_").replace("5, 3", "7, 3").replace(*right)
    for text, right in ((SIZES, (", 3,", ", 5,")), (DOUBLE, (", 6,", ", 10,")))
)
# 1.2 and 1.7 only lack a right size, and 1.6 is wrong itself.
WRONG = """
import sys

def conv_output_size(size, kernel_size):
    print("size", kernel_size)
    return 4

def conv2d_forward(size, kernel_size):
    print("asked")
    return 2 * conv_output_size(size, kernel_size)

def conv2d_forward_fast(size, kernel_size):
    return 4 * conv_output_size(size, kernel_size)

conv_parameters = conv_output_size
"""
SENTENCE = "Passed: graded with our `conv_output_size` instead of yours (exercise 1.1). With yours:"


@pytest.fixture
def tests(tmp_path):
    return write_tests(tmp_path, PUBLIC, HIDDEN)


def passed(result):
    return {one.test.name.removeprefix("test_") for one in result.all_outcomes if one.passed}


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "isolated"])
def test_what_is_right_but_for_what_it_needs_gets_its_points_and_says_so(tests, direct):
    result = grade(WRONG, tests=tests, direct=direct)
    assert passed(result) == {"double", "hidden_double"}
    assert result.score == 2
    double = outcome(result, "test_double")
    assert double.text().startswith(f"double.\n\n{SENTENCE}\n\nthe number is wrong.")
    assert "got 8, expected 6" in double.text()
    hidden = outcome(result, "test_hidden_double")
    assert SENTENCE in hidden.text() and "got" not in hidden.text()
    for name in ("test_triple", "test_size", "test_count"):
        assert SENTENCE not in outcome(result, name).text()
    assert "got 16, expected 9" in outcome(result, "test_triple").text()
    entries = {test["extra_data"]["test"]: test for test in to_gradescope(result)["tests"]}
    assert entries["test_double"]["extra_data"]["replaced"] == ["conv_output_size"]
    assert (entries["test_double"]["status"], entries["test_double"]["score"]) == ("passed", 1)
    assert "replaced" not in entries["test_triple"]["extra_data"]
    assert json.dumps(to_gradescope(result))


def test_nothing_is_replaced_where_what_is_needed_is_right(tests):
    right = WRONG.replace("return 4", "return size - kernel_size + 1")
    spoiled = right.replace("return 2 *", "return 3 *")
    result = grade(spoiled, tests=tests)
    assert passed(result) == {"size", "hidden_size", "count"}
    assert not any(one.replaced for one in result.all_outcomes)


def test_no_test_of_the_function_that_is_replaced_is_run_on_its_stand_in(tests):
    result = grade("def conv2d_forward(size, k):\n    return 0\n", tests=tests)
    assert passed(result) == set()


@pytest.mark.parametrize(("face", "direct"), [(DirectFace, True), (IsolatedFace, False)])
def test_public_tests_are_run_once_more_before_the_first_hidden_one(
    tests, monkeypatch, face, direct
):
    opened, open_face = [], face.open

    def noted(self, exercise, test="", share=1.0, *, needed=()):
        opened.append((test, [one.function for one in needed]))
        return open_face(self, exercise, test, share, needed=needed)

    monkeypatch.setattr(face, "open", noted)
    grade(WRONG, tests=tests, direct=direct)
    again = ["conv_output_size"]
    assert opened == [
        *[(name, []) for name in ("size", "double", "triple", "count")],
        *[("double", again), ("triple", again)],
        *[("hidden tests", [])] * 2,
        ("hidden tests", again),
    ]


def test_what_is_printed_in_a_second_run_is_shown_nowhere(tests):
    loud = WRONG.replace('print("asked")', 'print("asked", conv_output_size.__module__)')
    text = json.dumps(to_gradescope(grade(loud.replace("2 *", "5 *"), tests=tests)))
    assert text.count("asked") == 1


def test_copies_of_a_function_by_other_names_are_replaced_too(tests):
    copied = WRONG.replace("def conv2d_forward(", "size_of = conv_output_size\ndef conv2d_forward(")
    result = grade(copied.replace("2 * conv_output_size", "2 * size_of"), tests=tests)
    assert passed(result) == {"double", "hidden_double"}


def test_a_fault_of_the_machinery_in_a_second_run_costs_nothing(tests, monkeypatch):
    open_face, faults = IsolatedFace.open, [OSError("no descriptors left")]

    def failing(self, exercise, test="", share=1.0, *, needed=()):
        if needed and faults:
            raise faults.pop()
        return open_face(self, exercise, test, share, needed=needed)

    monkeypatch.setattr(IsolatedFace, "open", failing)
    result = grade(WRONG, tests=tests)
    assert passed(result) == {"double", "hidden_double"} and not faults
