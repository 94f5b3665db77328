"""Remote operations for any student code: held values, changed inputs, warnings, calls."""

import inspect
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.errors import MALFORMED, ChildFailure
from common.student_code.values import Handle, Held, JudgeFunction, is_tensor
from common.testing import cuda
from common.testing.remote.battery_calls import BATTERY_OPERATIONS
from common.testing.remote.input_changes import changed_by
from common.testing.remote.scratch_files import SCRATCH_OPERATIONS
from common.testing.remote.timed_calls import TIMED_OPERATIONS, on_device
from common.testing.remote.torch_modules import MODULE_OPERATIONS
from common.testing.remote.torch_objects import TORCH_OBJECT_OPERATIONS
from common.training.peak_memory import cpu_peak_memory


def changed_inputs(function: Handle, *args: Any, **kwargs: Any) -> list[str]:
    """Call the function, and name the array arguments that the call changed."""
    return function._face.changed_inputs(function, function._label, args, kwargs)


def call_each(function: Handle, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call the function with each tuple of arguments; read the results only after the last call.

    So a result that lives in memory which the next call writes to shows up as wrong.
    """
    results = function._face.operate("call_each", function._label, (function, list(calls)), {})
    if not isinstance(results, list) or len(results) != len(calls):
        raise ChildFailure(MALFORMED)
    return results


def write_into(owner: Handle, attribute: str, values: dict[str, np.ndarray]) -> None:
    """Overwrite, in place, arrays of a dict that an object of the student's code has.

    Such as the weights of a network: write_into(model, "parameters", {"w": ...}).
    """
    label = f"{owner._label}.{attribute}"
    owner._face.operate("write_into", label, (owner, attribute, values), {})


def hold(student: Handle, value: Any) -> Handle:
    """Send a value to the student's process once, to be passed many times."""
    return student._face.operate("hold", "hold", (value,), {})


def call_with_held(function: Handle, *args: Any) -> None:
    """Call the function with held and other values; what it returns stays there."""
    function._face.operate("call_with_held", function._label, (function, args), {})


def peak_memory_of(function: Handle, call: Sequence[Any], device: str, **kwargs: Any) -> int:
    """Call the function with tensors on a device; the bytes of tensors alive at the peak.

    The student's process counts them itself: a figure to show, and nothing to grade by.
    """
    details = (function, list(call), device)
    return function._face.operate("peak_memory_of", function._label, details, kwargs)


def fetch(held: Handle) -> Any:
    """The value of what was held."""
    return held._face.operate("fetch", held._label, (held,), {})


def warnings_of(function: Handle, *args: Any) -> list[str]:
    """Call the function; the texts of all warnings that it gave."""
    return function._face.operate("warnings_of", function._label, (function, args), {})


def _call_each(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    return [function(*args) for args in calls]


def _call_with_held(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    function(*(arg.value if isinstance(arg, Held) else arg for arg in args))


def _peak_memory_of(
    function: Callable[..., Any], call: list[Any], device: str, **kwargs: Any
) -> int:
    values = on_device(call, device)
    measure = cpu_peak_memory if device == "cpu" else cuda.peak_memory
    return measure(lambda: function(*values, **kwargs))


def _write_into(owner: object, attribute: str, values: dict[str, np.ndarray]) -> None:
    arrays = getattr(owner, attribute)
    for name, value in values.items():
        arrays[name][...] = value


def _fetch(held: Held) -> Any:
    return held.value


def _warnings_of(function: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return [str(warning.message) for warning in caught]


def with_substitute(function: Handle, name: str, substitute: JudgeFunction, *args: Any) -> Any:
    """Call a function whose calls of another one of its file, by that one's name, are replaced.

    substitute: gives in each call what the other function returns. Where its second argument is a
    tensor, the first item is a matrix, and what comes back is the product of both.
    Numbers that student code was not given by the substitute differ from what it gives.
    """
    details = (function, name, substitute, args)
    return function._face.operate("with_substitute", function._label, details, {})


def _with_substitute(
    function: Callable[..., Any],
    name: str,
    substitute: Callable[[], list[Any]],
    args: tuple[Any, ...],
) -> Any:
    names = getattr(inspect.unwrap(function), "__globals__", {})
    if name not in names:
        return function(*args)
    other = names[name]

    def replaced(_: Any, x: Any = None, *inner: Any, **settings: Any) -> tuple[Any, ...]:
        first, *rest = substitute()
        return (first.to(x.dtype) @ x if is_tensor(x) else first, *rest)

    names[name] = replaced
    try:
        return function(*args)
    finally:
        names[name] = other


def paced_function(delays_ms: Sequence[float]) -> JudgeFunction:
    """A function that takes these milliseconds at its first call, its second, and so on.

    The last delay is that of all further calls. What it is called with doesn't matter. It sleeps
    where the test runs, so that how long and how often is known there alone.
    """
    left = iter(delays_ms)
    last = delays_ms[-1]
    return JudgeFunction(lambda: time.sleep(next(left, last) / 1000))


OPERATIONS: dict[str, Callable[..., Any]] = {
    "changed_inputs": changed_by,
    "call_each": _call_each,
    "write_into": _write_into,
    "hold": Held,
    "call_with_held": _call_with_held,
    "peak_memory_of": _peak_memory_of,
    "fetch": _fetch,
    "warnings_of": _warnings_of,
    "with_substitute": _with_substitute,
    **BATTERY_OPERATIONS,
    **TIMED_OPERATIONS,
    **MODULE_OPERATIONS,
    **TORCH_OBJECT_OPERATIONS,
    **SCRATCH_OPERATIONS,
}
