"""Checks of answers in the lab of assignment 5: a head's scores, and lists of numbers."""

import numpy as np

from common.labs.answer_checks import is_whole, unwrapped
from common.student_code.values import is_tensor
from common.testing.compare import check, kind_of

FACTOR = 30 / np.sqrt(12)  # what the lab's layer turns a position score of 1 into


def head_weights(scores):
    """The weights that the lab's head computes from its position scores."""
    exponents = FACTOR * (scores - scores.max(axis=1, keepdims=True))
    return np.exp(exponents) / np.exp(exponents).sum(axis=1, keepdims=True)


def check_two_ahead(scores, positions):
    """Each of the positions gives nearly all its weight to the position two ahead."""
    weights = head_weights(scores)
    for position in positions:
        check(
            weights[position, position + 2] > 0.9,
            f"Position {position} doesn't attend to position {position + 2}.",
            f"its weight there is {weights[position, position + 2]:.2f}",
            value=scores,
        )


def check_same_numbers(lab, name, expected):
    """The answer is a list of these whole numbers, in any order."""
    value = lab.answer(name)
    value = value.tolist() if is_tensor(value) or isinstance(value, np.ndarray) else value
    check(isinstance(value, list | tuple), f"{name} must be a list, but it is {kind_of(value)}.")
    value = [unwrapped(one) for one in value]
    check(all(map(is_whole, value)), f"{name} must hold whole numbers.")
    found = sorted({int(one) for one in value})
    check(found == sorted(expected), f"{name} is wrong.", f"got {found}", value=np.array(found))
