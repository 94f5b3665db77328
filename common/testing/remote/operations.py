"""Remote operations for any student code: held values, changed inputs, warnings, calls."""

import hashlib
import inspect
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from common.check_log import check
from common.errors import ChildFailure
from common.student_code.values import (
    MAX_DEPTH,
    Handle,
    Held,
    as_numpy,
    is_container,
    is_numeric,
    is_tensor,
    map_items,
)
from common.testing import cuda
from common.testing.remote.input_changes import changed_by
from common.testing.remote.scratch_files import SCRATCH_OPERATIONS
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
        raise ChildFailure("Your code's process sent a malformed reply to the grader.")
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


def hold_each(student: Handle, values: Sequence[Any]) -> list[Handle]:
    """Send values to the student's process once, each to be passed on its own."""
    return student._face.operate("hold_each", "hold_each", (list(values),), {})


def hold_on(student: Handle, value: Any, device: str) -> Handle:
    """Send a value to the student's process, with its tensors on a device."""
    return student._face.operate("hold_on", "hold_on", (value, device), {})


def call_each_held(
    function: Handle, calls: Sequence[tuple[Any, ...]], outputs: int | None = None, **kwargs: Any
) -> "Sealed":
    """Call the function with each tuple of held and other values, and leave the results there.

    So that a clock around this measures the calls, and not the copying of arrays. What comes back
    is a seal on them: nothing that is computed once the clock has stopped fits it.
    outputs: of results that are tuples, this many items are sealed; a cache after them is not.
    """
    details = (function, list(calls), outputs)
    held, seal = function._face.operate("call_each_held", function._label, details, kwargs)
    return Sealed(held, seal, outputs)


def vjp_each_held(function: Handle, calls: Sequence[tuple[Handle, Handle]]) -> "Sealed":
    """Run vjp for each pair of held inputs and held cotangents, and leave the results there."""
    details = (function, list(calls))
    held, seal = function._face.operate("vjp_each_held", function._label, details, {})
    return Sealed(held, seal, None)


def peak_memory_held(function: Handle, call: Sequence[Any], device: str, **kwargs: Any) -> int:
    """Call the function with held and other values; the bytes of tensors alive at the peak."""
    details = (function, list(call), device)
    return function._face.operate("peak_memory_held", function._label, details, kwargs)


def fetch(held: "Handle | Sealed") -> Any:
    """The value of what was held, or the list of results that call_each_held left."""
    if not isinstance(held, Sealed):
        return held._face.operate("fetch", held._label, (held,), {})
    results = fetch(held.results)
    check(
        seal_of(results, held.outputs) == held.seal,
        "The results of the timed calls were missing or not final when the calls returned.",
        help="Finish the work before returning: no background threads, no deferred computation.",
    )
    return results


def warnings_of(function: Handle, *args: Any) -> list[str]:
    """Call the function; the texts of all warnings that it gave."""
    return function._face.operate("warnings_of", function._label, (function, args), {})


@dataclass(frozen=True)
class Sealed:
    """Results that stay in the student's process, and a hash of them at the time of the call."""

    results: Handle
    seal: bytes
    outputs: int | None


def _call_each(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    return [function(*args) for args in calls]


def _call_each_held(
    function: Callable[..., Any], calls: list[tuple[Any, ...]], outputs: int | None, **kwargs: Any
) -> tuple[Held, bytes]:
    values = [[arg.value if isinstance(arg, Held) else arg for arg in args] for args in calls]
    results = [function(*args, **kwargs) for args in values]
    cuda.synchronize()
    return Held(results), seal_of(results, outputs)


def _hold_each(values: list[Any]) -> list[Held]:
    return [Held(value) for value in values]


def _hold_on(value: Any, device: str) -> Held:
    return Held(on_device(value, device))


def on_device(value: Any, device: str) -> Any:
    """A value, with the tensors in it on a device."""
    if is_container(value):
        return map_items(value, lambda item: on_device(item, device))
    return value.to(device) if is_tensor(value) else value


def _peak_memory_held(
    function: Callable[..., Any], call: list[Any], device: str, **kwargs: Any
) -> int:
    values = [arg.value if isinstance(arg, Held) else arg for arg in call]
    measure = cpu_peak_memory if device == "cpu" else cuda.peak_memory
    return measure(lambda: function(*values, **kwargs))


def _vjp_each_held(
    function: Callable[..., Any], calls: list[tuple[Any, ...]]
) -> tuple[Held, bytes]:
    return _call_each_held(partial(MODULE_OPERATIONS["vjp"], function), calls, None, kwargs={})


def seal_of(results: Any, outputs: int | None) -> bytes:
    """A hash of all numbers in a list of results, the same in both processes."""
    seal = hashlib.sha256()
    if isinstance(results, list):
        for result in results:
            add_to_seal(seal, result[:outputs] if isinstance(result, tuple) else result, 0)
    return seal.digest()


def add_to_seal(seal: Any, value: Any, depth: int) -> None:
    """Arrays, tensors and numbers count, and what they lie in; other objects can't be read."""
    if isinstance(value, tuple | list | dict) and depth < MAX_DEPTH:
        seal.update(f"{len(value)} items".encode())
        for item in value.values() if isinstance(value, dict) else value:
            add_to_seal(seal, item, depth + 1)
    elif is_tensor(value) or is_numeric(value):
        with suppress(TypeError):  # a type that NumPy doesn't have can't be fetched either
            array = as_numpy(value) if is_tensor(value) else np.asarray(value)
            seal.update(f"{array.dtype.str} {array.shape}".encode())
            seal.update(np.ascontiguousarray(array).data)
    elif type(value) in (bool, int, float):
        seal.update(repr(value).encode())


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


def calls_during(function: Handle, name: str, *args: Any) -> int:
    """Call a function, and count its calls of another function of its file, by that one's name."""
    return function._face.operate("calls_during", function._label, (function, name, args), {})


def _calls_during(function: Callable[..., Any], name: str, args: tuple[Any, ...]) -> int:
    names = getattr(inspect.unwrap(function), "__globals__", {})
    if name not in names:
        return 0
    other, calls = names[name], 0

    def counted(*inner: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        return other(*inner, **kwargs)

    names[name] = counted
    try:
        function(*args)
    finally:
        names[name] = other
    return calls


def paced_function(student: Handle, delays_ms: Sequence[float]) -> Handle:
    """A function that takes these milliseconds at its first call, its second, and so on.

    The last delay is that of all further calls. What it is called with doesn't matter; `calls`
    says how often it was called.
    """
    return student._face.operate("paced_function", "paced_function", (list(delays_ms),), {})


class PacedFunction:
    """Takes the given times, and counts its calls."""

    def __init__(self, delays_ms: list[float]) -> None:
        self.delays_ms = delays_ms
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        delay = self.delays_ms[min(self.calls, len(self.delays_ms) - 1)]
        self.calls += 1
        time.sleep(delay / 1000)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "changed_inputs": changed_by,
    "call_each": _call_each,
    "write_into": _write_into,
    "hold": Held,
    "hold_each": _hold_each,
    "hold_on": _hold_on,
    "peak_memory_held": _peak_memory_held,
    "call_each_held": _call_each_held,
    "vjp_each_held": _vjp_each_held,
    "fetch": _fetch,
    "warnings_of": _warnings_of,
    "calls_during": _calls_during,
    "paced_function": PacedFunction,
    **MODULE_OPERATIONS,
    **TORCH_OBJECT_OPERATIONS,
    **SCRATCH_OPERATIONS,
}
