"""Tests of comparisons: the order of the checks, and messages that hide hidden values."""

import re

import numpy as np
import pytest

from common.errors import ChildFailure, Failure, ForbiddenCall
from common.student_code.values import keep
from common.testing.compare import (
    assert_close,
    assert_equal,
    check,
    index_in_words,
    unpack,
)
from common.testing.feedback.failure import explain
from common.testing.remote.input_changes import content
from common.testing.speed_ratio import compare

AXES = ("image", "row")
RIGHT = np.array([[1234.5, 2, 3], [4, 5, 6]])


def explanation_of(actual, expected, **options):
    """What a comparison says: the sentence that hidden tests show too, and the details."""
    with pytest.raises(Failure) as raised:
        assert_close(actual, expected, **options)
    explanation = raised.value.explanation
    assert explanation.text(hidden=True).startswith(explanation.sentence)
    if explanation.details:
        assert explanation.details not in explanation.text(hidden=True)
        assert explanation.details in explanation.text(hidden=False)
    return explanation


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def test_each_thing_is_said_before_what_comes_after_it():
    """Wrong in every way, and then right in one more way each time."""
    short = np.full((2, 2), np.nan, dtype=np.float32)
    for actual, sentence in (
        (None, "out is None."),
        ([[1, 2, 3]], "out must be a NumPy array, got a list."),
        (short[0], "out has too few axes: it must have 2 (image, row)."),
        (short, "out has the wrong size along row."),
        (short[:1], "out has the wrong size along image and row."),
        (np.full((2, 3), np.nan, dtype=np.float32), "out must have dtype float64, got"),
        (changed(RIGHT + 1, (0, 1), np.nan), "out contains NaN where finite values are expected."),
        (changed(RIGHT + 1, (0, 1), -np.inf), "out contains infinity where finite"),
        (changed(changed(RIGHT, 0, np.inf), (1, 1), np.nan), "out contains NaN and infinity"),
        (RIGHT + 1, "out has the right shape, but all of its values are wrong."),
        (changed(RIGHT, (0, 1), 7), "out has the right shape, but some of its values are wrong."),
    ):
        assert explanation_of(actual, RIGHT, axes=AXES).sentence.startswith(sentence)
    assert_close(RIGHT.copy(), RIGHT, axes=AXES)


def test_the_details_say_where_and_what():
    details = explanation_of(changed(RIGHT, (1, 2), 9.25), RIGHT, axes=AXES).details
    assert "1 of 6 values" in details and "image 1, row 2: got 9.25, expected 6" in details
    details = explanation_of(changed(RIGHT, (0, 0), 1234.5001), RIGHT).details
    assert "got 1234.5001, expected 1234.5 " in details
    assert "got shape (2, 2), expected (2, 3)" in explanation_of(RIGHT[:, :2], RIGHT).details
    help = explanation_of(RIGHT.astype(np.float32), RIGHT).help  # nothing of float32 came in here
    assert help == ("The docstring and the conventions at the top of the file specify the dtype.")
    assert "along axis 1." in explanation_of(RIGHT[:, :2], RIGHT).sentence
    assert (
        explanation_of(changed(RIGHT, (0, 0), np.nan), RIGHT).details
        == f"1 NaN among {RIGHT.size} values."
    )
    assert explanation_of(np.array(np.inf), np.array(1.0)).details == ""


def test_epochs_and_training_steps_count_from_one_and_all_else_from_zero():
    assert index_in_words((0, 0), ("epoch", "image")) == "epoch 1, image 0"
    assert index_in_words((2, 3), ("training step", "step")) == "training step 3, step 3"
    assert index_in_words((0, 1), None) == "[0, 1]"


@pytest.mark.parametrize(
    "actual",
    [
        RIGHT[:, :2],
        RIGHT.astype("f4"),
        RIGHT * np.nan,
        RIGHT + 17,
        changed(RIGHT, (0, 0), 0),
        RIGHT[None],
        None,
        "text",
    ],
    ids=range(8),
)
def test_what_hidden_tests_show_has_no_number_of_the_case(actual):
    text = explanation_of(actual, RIGHT).text(hidden=True)
    allowed = {"0", "1", "2", "3", "32", "64"}  # axes and dtypes
    assert set(re.findall(r"\d+", text)) <= allowed
    assert not re.search(r"\d\.\d", text)


def test_nothing_broadcasts():
    for actual, expected in (
        (np.ones((1, 3)), np.ones((2, 3))),
        (np.ones(3), np.ones((1, 3))),
        (np.ones(()), np.ones(1)),
        (np.ones(1), np.ones(())),
        (np.ones((0, 3)), np.ones((2, 3))),
    ):
        assert (
            "axes" in explanation_of(actual, expected).sentence
            or "wrong size" in explanation_of(actual, expected).sentence
        )


def test_the_error_is_measured_by_the_largest_entry():
    expected = np.array([1e6, 1e-6, 0.0])
    noise = np.array([0.0, 5e-4, -5e-4])  # 5e-10 of the largest, 500 times the second
    assert_close(expected + noise, expected)
    explanation_of(expected + 4 * noise, expected)
    assert_close(expected + 4 * noise, expected, tolerance=1e-8)
    explanation_of(np.full(3, 1e-8), np.zeros(3))
    assert_close(np.full(3, 1e-10), np.zeros(3))
    assert_close(expected.astype("f4") * np.float32(1 + 1e-5), expected.astype("f4"))
    explanation_of(expected.astype("f4") * np.float32(1 + 1e-3), expected.astype("f4"))


def test_integers_are_compared_exactly():
    small = np.array([0, 255], dtype=np.uint8)
    assert (
        "all of its values" in explanation_of(small[::-1].copy(), small).sentence
    )  # 0 - 255 wraps to 1
    assert_close(small.copy(), small)
    large = np.array([2**53, 2**62])
    details = explanation_of(large + np.array([1, 0]), large).details
    assert "got 9007199254740993, expected 9007199254740992 " in details
    unsigned = np.array([2**64 - 1], dtype=np.uint64)
    explanation_of(unsigned - np.uint64(1), unsigned)
    explanation_of(np.array([True]), np.array([False]))


def test_infinities_that_agree_are_right_and_others_are_not():
    expected = np.array([-np.inf, 1.0])
    assert_close(expected.copy(), expected)
    for wrong in (np.inf, 0.0, np.nan):
        explanation_of(np.array([wrong, 1.0]), expected)
    explanation_of(np.array([-np.inf, 1.1]), expected)


def test_empty_arrays_and_arrays_without_axes():
    assert_close(np.zeros((0, 3)), np.zeros((0, 3)))
    explanation_of(np.zeros((3, 0)), np.zeros((0, 3)))
    assert_close(np.array(2.0), np.array(2.0))
    alone = explanation_of(np.array(3.0), np.array(2.0))
    assert alone.sentence == "out is wrong."
    assert alone.details.startswith("got 3, expected 2 ")


def test_numbers():
    assert_close(np.float32(2), 2.0)
    assert_close(2, 2.0)
    assert "must be a number, got a bool" in explanation_of(True, 1.0).sentence
    assert "must be a number, got a NumPy array" in explanation_of(np.ones(()), 1.0).sentence
    assert "contains NaN" in explanation_of(float("nan"), 1.0).sentence
    assert "wrong" in explanation_of(2.1, 2.0).sentence


def test_equal_takes_numpy_integers_and_what_came_from_student_code():
    kept = keep([1, np.int64(2)], None)
    assert_equal(np.int64(3), 3, "n")
    assert_equal(kept, [1, 2], "n")
    assert_equal(keep((1, kept), None), (1, [1, 2]), "n")
    assert_equal(kept, (1, 2), "n")
    assert_equal(keep({"a": 1}, None), {"a": 1}, "n")


@pytest.mark.parametrize(
    ("actual", "expected", "sentence"),
    [
        (None, 3, "n is None."),
        (True, 1, "n must be an int, got a bool."),
        (3.0, 3, "n must be an int, got a float."),
        (np.float64(3), 3, "n must be an int, got a float."),
        ("3", 3, "n must be an int, got a string."),
        (np.array(3), 3, "n must be an int, got a NumPy array."),
        (4, 3, "n is wrong."),
        ((1, 2, 3), (1, 2), "n is wrong."),
        ((np.array([1, 2]), 2), (1, 2), "n is wrong."),
        (object(), 3, "n must be an int, got another type of object."),
    ],
    ids=range(10),
)
def test_equal_says_what_is_wrong(actual, expected, sentence):
    with pytest.raises(Failure) as raised:
        assert_equal(actual, expected, "n")
    assert raised.value.explanation.text(hidden=True).startswith(sentence)


def test_unpack():
    assert unpack((1, 2), 2, "f") == (1, 2)
    for result, sentence in (
        (None, "f returned None."),
        (np.ones(2), "f must return a tuple of 2 values, got a NumPy array."),
        ((1, 2, 3), "f must return 2 values, but it returned more."),
    ):
        with pytest.raises(Failure) as raised:
            unpack(result, 2, "f")
        assert raised.value.explanation.sentence == sentence


def test_an_unforeseen_error_of_a_test_is_owned_up_to():
    reported = explain(ZeroDivisionError("12345"))
    assert "a bug in the course, not in your code" in reported.sentence
    assert "12345" not in reported.text(hidden=True) and "12345" in reported.text(hidden=False)
    assert explain(AssertionError("12345")).text(hidden=True) == (
        "An assertion of this test failed."
    )
    assert explain(ForbiddenCall("No.")).sentence == explain(ChildFailure("No.")).sentence == "No."
    with pytest.raises(Failure):
        check(False, "No.")


def test_what_a_call_can_change_about_an_array():
    array = np.array([np.nan, 0.0])
    before = content(array)
    assert content(array) == before  # NaN is the same NaN
    array[1] = -0.0
    assert content(array) != before
    array[1] = 0.0
    array.shape = (2, 1)
    assert content(array) != before


def test_timing_compares_the_best_of_alternating_runs():
    order = []
    comparison = compare(lambda: order.append("c"), lambda: order.append("y"), repeats=3)
    assert order == ["y", "c"] * 3
    assert comparison.ratio == comparison.baseline_seconds / comparison.candidate_seconds
