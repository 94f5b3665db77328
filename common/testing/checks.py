"""Assertions that many tests share: refused inputs, unchanged arguments, array layouts."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from common.check_log import check
from common.errors import Failure, kind_in_words
from common.student_code.values import Handle, kind_of
from common.student_text import contains_pattern
from common.testing.feedback.failure import explain, is_students
from common.testing.remote.operations import changed_inputs

STANDARD_ERRORS = 7  # correct code exceeds this with probability below 1e-8, per comparison


def check_refused(situation: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The call raises ValueError; what it says comes back."""
    try:
        # What must be refused may overflow first, as a training with a rate of 1e300 does.
        with np.errstate(over="ignore", invalid="ignore"):
            function(*args, **kwargs)
    except ValueError as error:
        return error.args[0] if len(error.args) == 1 else str(error)
    except Exception as error:
        if not is_students(error):
            raise
        raise Failure(
            f"Expected a ValueError for {situation}, got {kind_in_words(error)}.",
            explain(error).details,
        ) from error
    return check(False, f"Expected a ValueError for {situation}, but nothing was raised.")


def check_unchanged(name: str, function: Handle, *args: Any) -> None:
    """The call leaves its array arguments as they were."""
    changed = changed_inputs(function, *args)
    check(not changed, f"{name} modifies an input.", f"It modifies {', '.join(map(str, changed))}.")


def check_float(value: Any, what: str) -> None:
    """A loss or a norm is a Python float. NumPy's float64 is one too."""
    check(
        isinstance(value, float),
        f"{what} must be a Python float, got {kind_of(value)}.",
        help="float(...) converts a number, and an array or a tensor with one element.",
    )


def sliced(array: np.ndarray) -> np.ndarray:
    """The same numbers as a view into a larger array, with gaps between them."""
    large = np.full((*array.shape[:-1], 2 * array.shape[-1]), 99, dtype=array.dtype)
    large[..., ::2] = array
    return large[..., ::2]


def transposed(array: np.ndarray) -> np.ndarray:
    """The same numbers, laid out in memory from the last axis to the first."""
    return np.ascontiguousarray(array.T).T


def check_names_step(message: Any, *steps: int) -> None:
    """An error's message says "step N". steps: the numbers that N may be."""
    numbers = "|".join(map(str, steps))
    check(
        contains_pattern(message, rf"step\D*(?<!-)(?:{numbers})\b", re.IGNORECASE),
        'The ValueError for a non-finite loss must name the step, as "step N".',
        f"expected step {' or '.join(map(str, steps))}, got the message: {message}",
        "The docstring says how steps are counted.",
    )


def check_normal(values: Any, deviation: float, name: str) -> None:
    """The values of a tensor come from a normal distribution around 0. 3,000 or more are enough.

    Mean, standard deviation and the fraction of values beyond two of them each exceed their limit
    with probability below 1e-8.
    """
    count, scaled = values.numel(), values.double() / deviation
    share, right_share = float((scaled.abs() > 2).double().mean()), 0.0455
    for what, found, right, error in (
        ("mean", float(scaled.mean()), 0.0, 1.0),
        ("standard deviation", float(scaled.std()), 1.0, math.sqrt(0.5)),
        ("fraction of large values", share, right_share, math.sqrt(right_share)),
    ):
        check(
            abs(found - right) <= STANDARD_ERRORS * error / math.sqrt(count),
            f"The initial values of {name} have the wrong {what}.",
            f"got {found:.3f}, expected {right:.3g}, in units of {deviation:.3g}",
        )
