"""Finds the parts in which two results of any kind differ; floats agree up to rounding."""

from typing import Any

import numpy as np

from common.student_code.values import Handle, as_numpy, is_container, is_kept, is_tensor
from common.testing.compare import TOLERANCES


def array_of(value: Any) -> np.ndarray | None:
    """An array as evidence, by which a known mistake is recognized."""
    if is_container(value) or is_kept(value):
        items = value.values() if isinstance(value, dict) else value
        return next((array for array in map(array_of, items) if array is not None), None)
    if is_tensor(value):
        return as_numpy(value)
    return value if isinstance(value, np.ndarray) else None


def differences(actual: Any, expected: Any) -> list[Any]:
    """The parts of a result that aren't as expected. Objects that stay with the student count not.

    Float results agree up to rounding.
    """
    if isinstance(actual, Handle) and isinstance(expected, Handle):
        return []
    if isinstance(actual, dict) and isinstance(expected, dict):
        if list(actual) != list(expected):
            return [actual]
        actual, expected = tuple(actual.values()), tuple(expected.values())
    if isinstance(actual, tuple | list) and isinstance(expected, tuple | list):
        if len(actual) != len(expected):
            return [actual]
        pairs = zip(actual, expected, strict=True)
        return [wrong for pair in pairs for wrong in differences(*pair)]
    if is_tensor(actual) and is_tensor(expected):
        same = actual.dtype == expected.dtype and agree(as_numpy(actual), as_numpy(expected))
    elif isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray):
        same = actual.dtype == expected.dtype and agree(actual, expected)
    elif isinstance(actual, float) and isinstance(expected, float):
        same = agree(np.asarray(actual), np.asarray(expected))
    else:
        same = type(actual) is type(expected) and bool(np.all(actual == expected))
    return [] if same else [actual]


def agree(actual: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two arrays of one dtype are equal; floats up to rounding."""
    if actual.shape != expected.shape:
        return False
    if actual.dtype.kind not in "fc":
        return np.array_equal(actual, expected)
    finite = expected[np.isfinite(expected)]
    scale = float(np.max(np.abs(finite), initial=0.0))
    allowed = TOLERANCES.get(str(expected.dtype), 0.0) * scale
    return bool(np.allclose(actual, expected, rtol=0, atol=allowed, equal_nan=True))
