"""Assertions about a lab's answers, for graded tests: numbers, choices, sizes, arrays."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.check_log import check
from common.labs.lab_run import Lab
from common.student_code.values import as_float, as_numpy, is_tensor, kind_of

REAL = int | float | np.integer | np.floating
MOST_CONVERTED = 1 << 20  # entries of an array of another shape
LARGEST_EXACT = 2**53  # up to which a float holds every whole number


def check_number(lab: Lab, name: str, expected: float, tolerance: float = 1e-6) -> None:
    """The answer is that number, which no message reveals. tolerance: the largest error."""
    value = unwrapped(lab.answer(name))
    check(is_real(value), f"{name} must be a number, got {kind_of(value)}.")
    value = as_float(value)
    check(
        bool(abs(value - expected) <= tolerance),
        f"{name} is wrong.",
        f"got {value:g}",
        value=np.asarray(value),
    )


def check_choice(lab: Lab, name: str, expected: str, choices: Sequence[str]) -> None:
    """The answer is that choice. Capital letters and spaces around it don't matter."""
    value = lab.answer(name)
    check(isinstance(value, str), f"{name} must be a string, got {kind_of(value)}.")
    chosen = value.strip().lower()
    offered = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
    check(chosen in choices, f"{name} must be {offered}.", f"got {value[:20]!r}")
    check(chosen == expected, f"{name} is not the right choice.", f"got {chosen!r}")


def check_sizes(lab: Lab, name: str, expected: Sequence[int]) -> None:
    """The answer is that tuple of whole numbers."""
    value = lab.answer(name)
    many = len(expected)
    if is_tensor(value) or isinstance(value, np.ndarray):
        value = value.tolist() if math.prod(value.shape) == many else None
    check(
        isinstance(value, tuple | list) and len(value) == many,
        f"{name} must be a tuple of {many} numbers.",
    )
    value = [unwrapped(size) for size in value]
    check(all(map(is_whole, value)), f"{name} must contain integers only.")
    sizes = np.asarray([int(size) for size in value])
    right = sizes.tolist() == list(expected)
    check(right, f"{name} is wrong.", f"got {(*sizes.tolist(),)}", value=sizes)


def array_answer(lab: Lab, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The answer as an array of finite numbers, of that shape. Nested lists will do."""
    value: Any = lab.answer(name)
    try:
        plain = as_numpy(value) if is_tensor(value) else np.asarray(value)
        if np.iscomplexobj(plain):
            raise TypeError
        fits = plain.shape == shape or plain.size <= MOST_CONVERTED
        array = plain.astype(float) if fits else plain
    except (TypeError, ValueError, OverflowError):
        check(False, f"{name} must be an array of numbers, got {kind_of(value)}.")
    check(
        array.shape == shape,
        f"{name} must have shape {shape}.",
        f"got shape {array.shape}",
        value=array,
    )
    check(bool(np.isfinite(array).all()), f"{name} contains NaN or infinity.", value=array)
    return array


def unwrapped(value: Any) -> Any:
    """The number that an array or a tensor of one entry holds; all else as it is."""
    array = is_tensor(value) or isinstance(value, np.ndarray)
    return value.item() if array and math.prod(value.shape) == 1 else value


def is_real(value: Any) -> bool:
    """Whether a value is a number, and no bool."""
    return isinstance(value, REAL) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number of a size that arrays hold."""
    return is_real(value) and abs(value) < LARGEST_EXACT and value == int(value)
