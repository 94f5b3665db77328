"""What the lab of assignment 5 asks of a query, of a head's scores, and of lists of numbers."""

import numpy as np

from common.labs.answer_checks import is_whole, unwrapped
from common.student_code.values import is_tensor
from common.testing.compare import check, kind_of

FACTOR = 30 / np.sqrt(12)  # what the lab's layer makes of a position score of 1
SMALL = 1e-6


def check_nearest_hour(query, hour):
    """The hour has the largest score, by the lab's keys."""
    hours = np.arange(24.0)
    best = int(np.argmax(np.stack([hours, -(hours**2) / 2], axis=1) @ query))
    check(best == hour, "q1_query finds another hour.", f"it finds {best}", value=query)


def check_time(query, time):
    """The score, as a function of the hour, has its only peak at the time."""
    check(query[1] > 0, "With q1_query the scores have no peak.", value=query)
    peak = query[0] / query[1]
    check(abs(peak - time) < SMALL, "q1_query asks for another time.", f"{peak:g}", value=query)


def head_weights(scores):
    """The weights that the lab's head makes of its position scores."""
    exponents = FACTOR * (scores - scores.max(axis=1, keepdims=True))
    return np.exp(exponents) / np.exp(exponents).sum(axis=1, keepdims=True)


def check_two_further(scores, positions):
    """Each of the positions gives nearly all its weight to the one two further."""
    weights = head_weights(scores)
    for position in positions:
        check(
            weights[position, position + 2] > 0.9,
            f"Position {position} doesn't look at position {position + 2}.",
            f"its weight there is {weights[position, position + 2]:.2f}",
            value=scores,
        )


def check_evenly(scores, positions):
    """Each of the positions gives all six the same weight."""
    weights = head_weights(scores)
    for position in positions:
        even = np.abs(weights[position] - 1 / 6).max() < SMALL
        check(even, f"Position {position} doesn't look at all six alike.", value=scores)


def check_same_numbers(lab, name, expected):
    """The answer is a list of these whole numbers, in any order."""
    value = lab.answer(name)
    value = value.tolist() if is_tensor(value) or isinstance(value, np.ndarray) else value
    check(isinstance(value, list | tuple), f"{name} must be a list, but it is {kind_of(value)}.")
    value = [unwrapped(one) for one in value]
    check(all(map(is_whole, value)), f"{name} must hold whole numbers.")
    found = sorted({int(one) for one in value})
    check(found == sorted(expected), f"{name} is wrong.", f"got {found}", value=np.array(found))
