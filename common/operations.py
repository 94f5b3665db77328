"""What tests ask of student code beyond calling it. Each runs beside that code, in either face."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.modules import MODULE_OPERATIONS
from common.values import Handle, as_numpy, is_tensor


def changed_inputs(function: Handle, *args: Any, **kwargs: Any) -> list[str]:
    """Call the function, and name the array arguments that the call changed."""
    return function._face.operate("changed_inputs", function._label, (function, args, kwargs), {})


def call_each(function: Handle, calls: Sequence[tuple]) -> list[Any]:
    """Call the function with each tuple of arguments; read the results only after the last call.

    So a result that lives in memory which the next call writes to shows up as wrong.
    """
    return function._face.operate("call_each", function._label, (function, list(calls)), {})


def write_into(owner: Handle, attribute: str, values: dict[str, np.ndarray]) -> None:
    """Overwrite, in place, arrays of a dict that an object of the student's code has.

    Such as the weights of a network: write_into(model, "parameters", {"w": ...}).
    """
    label = f"{owner._label}.{attribute}"
    owner._face.operate("write_into", label, (owner, attribute, values), {})


def hold(student: Handle, value: Any) -> Handle:
    """Put a value beside the student's code once, to be handed in many times."""
    return student._face.operate("hold", "hold", (value,), {})


def call_each_held(function: Handle, calls: Sequence[tuple], **kwargs: Any) -> Handle:
    """Call the function with each tuple of held and other values, and leave the results there.

    So that a clock around this measures the calls, and not the copying of arrays.
    """
    return function._face.operate(
        "call_each_held", function._label, (function, list(calls)), kwargs
    )


def fetch(held: Handle) -> Any:
    """The value of what was held, or the list of results that call_each_held left."""
    return held._face.operate("fetch", held._label, (held,), {})


@dataclass(frozen=True)
class Held:
    """A value that stays beside the student's code, even if it could cross."""

    value: Any


def _changed_inputs(function: Callable, args: tuple, kwargs: dict) -> list[str]:
    arrays = {
        key: value
        for key, value in [*enumerate(args), *kwargs.items()]
        if isinstance(value, np.ndarray) or is_tensor(value)
    }
    before = {key: content(value) for key, value in arrays.items()}
    function(*args, **kwargs)
    names = positional_names(function)
    return [
        names[key] if isinstance(key, int) and key < len(names) else str(key)
        for key, value in arrays.items()
        if content(value) != before[key]
    ]


def content(array: Any) -> tuple:
    """All that a call could change about an array. Bytes, since NaN isn't equal to itself."""
    array = as_numpy(array) if is_tensor(array) else array
    return array.dtype, array.shape, array.tobytes()


def positional_names(function: Callable) -> list[str]:
    """The names of the function's parameters, where they can be told."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _call_each(function: Callable, calls: list[tuple]) -> list[Any]:
    return [function(*args) for args in calls]


def _call_each_held(function: Callable, calls: list[tuple], **kwargs: Any) -> Held:
    values = [[arg.value if isinstance(arg, Held) else arg for arg in args] for args in calls]
    return Held([function(*args, **kwargs) for args in values])


def _write_into(owner: object, attribute: str, values: dict[str, np.ndarray]) -> None:
    arrays = getattr(owner, attribute)
    for name, value in values.items():
        arrays[name][...] = value


def _fetch(held: Held) -> Any:
    return held.value


OPERATIONS: dict[str, Callable] = {
    "changed_inputs": _changed_inputs,
    "call_each": _call_each,
    "write_into": _write_into,
    "hold": Held,
    "call_each_held": _call_each_held,
    "fetch": _fetch,
    **MODULE_OPERATIONS,
}
