"""Finds changed inputs as the process of student code sees them: modes, flags, keys, order."""

import inspect
import sys
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
        key: name_of_argument(key, names)
        for key, value in arrays.items()
        if content(value) != before[key]
    }


def content(array: Any) -> tuple[Any, ...]:
    """All that a call could change about an array. Bytes, since NaN isn't equal to itself."""
    array = as_numpy(array) if is_tensor(array) else array
    return array.dtype, array.shape, array.tobytes()


def name_of_argument(key: int | str, names: list[str]) -> str:
    """What a message calls an argument: by its name, or by its place where it has none."""
    if isinstance(key, str):
        return key
    return names[key] if key < len(names) else f"input {key + 1}"


def positional_names(function: Callable[..., Any]) -> list[str]:
    """The names of the function's positional parameters, where they can be determined.

    Calling a PyTorch module takes what its `forward` takes; the module itself says *args.
    """
    if "torch" in sys.modules and isinstance(function, sys.modules["torch"].nn.Module):
        function = function.forward
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        each.name
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
