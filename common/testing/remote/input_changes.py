"""Finds changed inputs as the process of student code sees them: modes, flags, keys, order."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from common.student_code.values import as_numpy, is_tensor


def changed_by(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[int | str, str]:
    """Call the function; the names of the array arguments that it changed, by place or keyword."""
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    arrays = {
        key: value for key, value in given if isinstance(value, np.ndarray) or is_tensor(value)
    }
    before = {key: content(value) for key, value in arrays.items()}
    function(*args, **kwargs)
    names = positional_names(function)
    return {
        key: names[key] if isinstance(key, int) and key < len(names) else str(key)
        for key, value in arrays.items()
        if content(value) != before[key]
    }


def content(array: Any) -> tuple[Any, ...]:
    """All that a call could change about an array. Bytes, since NaN isn't equal to itself."""
    array = as_numpy(array) if is_tensor(array) else array
    return array.dtype, array.shape, array.tobytes()


def positional_names(function: Callable[..., Any]) -> list[str]:
    """The names of the function's parameters, where they can be determined."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
