"""Tests of check_refused: its message, and what is raised instead."""

import warnings

import numpy as np
import pytest

from common.errors import Failure
from common.student_text import unmarked
from common.testing.checks import check_refused
from common.testing.feedback.failure import explain


def test_a_refusal_comes_back_with_what_it_says(student):
    assert check_refused("a bad number", student.fail, "value") == "so"
    assert check_refused("a bad number", student.fail, "own") == "too big"
    with pytest.raises(Failure) as raised:
        check_refused("a bad number", student.same, 1)
    assert raised.value.explanation.sentence == (
        "Expected a ValueError for a bad number, but nothing was raised."
    )


@pytest.mark.parametrize(
    ("kind", "what", "message", "line"),
    [
        ("key", "a KeyError", "so", "raise {"),
        ("division", "a ZeroDivisionError", "division by zero", "return 1 / 0"),
        ("attribute", "an AttributeError", "no attribute 'shape'", "return [].shape"),
    ],
)
def test_another_error_than_a_refusal_is_reported_with_the_situation(
    student, kind, what, message, line
):
    with pytest.raises(Failure) as raised:
        check_refused("a bad number", student.fail, kind)
    reported = raised.value.explanation
    assert reported.sentence == f"Expected a ValueError for a bad number, got {what}."
    details = unmarked(reported.details)
    assert message in details and line in details
    assert raised.value.evidence is None  # the same error has many causes


@pytest.mark.parametrize(("kind", "error"), [("none", NotImplementedError), ("exit", Failure)])
def test_what_is_no_answer_to_bad_input_stays_what_it_is(student, kind, error):
    with pytest.raises(error) as raised:
        check_refused("a bad number", student.fail, kind)
    assert "bad number" not in explain(raised.value).sentence


def test_an_error_of_the_test_itself_is_not_the_students(student):
    with pytest.raises(TypeError, match="a test"):
        check_refused("a bad number", broken_test)


def test_what_overflows_before_it_is_refused_prints_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_refused("a rate of 1e300", overflow) == "step 2"


def overflow():
    infinite = np.float32([1]) * np.array([1e300]).astype("float32")
    if not np.isfinite(infinite - infinite).all():
        raise ValueError("step 2")


def broken_test():
    raise TypeError("a test")
