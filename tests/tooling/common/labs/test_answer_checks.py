"""Tests of the checks of lab answers: one sentence for every kind of wrong answer."""

import math

import numpy as np
import pytest
import torch

from common.errors import Failure
from common.labs.answer_checks import array_answer, check_choice, check_number, check_sizes
from common.labs.lab_run import Lab
from tests.a5_attention.lab_cases import check_same_numbers


def answering(value):
    """A lab that gives this one answer."""
    return Lab({"q1_a": ["data", value]})


THREE = [3, 3.0, np.float32(3), np.int64(3), np.array([3.0]), torch.tensor(3.0), torch.tensor([3])]


@pytest.mark.parametrize("value", THREE, ids=repr)
def test_a_number_may_come_in_every_form(value):
    check_number(answering(value), "q1_a", 3)


SIZES = [(4, 9), [4.0, 9], np.array([4, 9]), torch.tensor([4, 9]), (np.array(4), torch.tensor(9))]


@pytest.mark.parametrize("value", SIZES, ids=repr)
def test_sizes_may_come_in_every_form(value):
    check_sizes(answering(value), "q1_a", (4, 9))
    check_same_numbers(answering(value), "q1_a", {9, 4})


ODD = [
    *(
        None,
        True,
        "3",
        b"3",
        1j,
        np.complex128(1j),
        math.nan,
        math.inf,
        [],
        {},
        (1, "x"),
        (True, 9),
    ),
    *((math.nan, 9), (math.inf, 9), (1j, 9), (10**30, 9), (np.complex64(4), 9), [[4], [9]]),
    *(np.array([]), np.array([1j]), np.array(True), torch.zeros(0), torch.tensor([1j, 9])),
    *(10**400, -(10**400), torch.ones(3, 3, dtype=torch.bfloat16)),
    *(torch.tensor(True), [10**400, 1], [4, [9]], "\n", np.zeros((2, 2)), torch.zeros(2, 2)),
]


@pytest.mark.parametrize("value", ODD, ids=lambda value: repr(value)[:30])
def test_whatever_is_answered_the_check_itself_does_not_break(value):
    lab = answering(value)
    for check in (
        lambda: check_number(lab, "q1_a", 3.5),
        lambda: check_choice(lab, "q1_a", "c", ("a", "b", "c")),
        lambda: check_sizes(lab, "q1_a", (4, 9)),
        lambda: check_same_numbers(lab, "q1_a", {4, 9}),
        lambda: array_answer(lab, "q1_a", (3, 3)),
    ):
        with pytest.raises(Failure, match="q1_a"):
            check()


def test_a_wrong_number_is_reported_without_the_right_one():
    with pytest.raises(Failure) as failure:
        check_number(answering(0.75), "q1_a", 0.4476, tolerance=0.001)
    assert "got 0.75" in str(failure.value)
    assert "0.4476" not in str(failure.value)
