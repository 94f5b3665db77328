"""Remote operations for clocks: inputs arrive, and results come back, while the clock runs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from common.errors import MALFORMED, ChildFailure
from common.student_code.values import Handle, Unkept, is_container, is_tensor, map_items
from common.testing.remote.torch_modules import MODULE_OPERATIONS


def timed_calls(
    function: Handle,
    calls: Sequence[tuple[Any, ...]],
    outputs: int | None = None,
    device: str = "cpu",
    **kwargs: Any,
) -> list[Any]:
    """Call the function with each tuple of arguments; the results, once all calls have returned.

    Draw new arguments each time: nothing can be computed before they are there, and nothing after
    the results are here.
    outputs: of results that are tuples, this many items are returned; a cache after them stays.
    device: where tensors among the arguments go, by code of ours in the student's process.
    """
    details = (function, list(calls), outputs, device)
    results = function._face.operate("timed_calls", function._label, details, kwargs)
    return one_for_each(calls, results)


def timed_vjps(
    function: Handle, calls: Sequence[tuple[Sequence[Any], Sequence[Any]]]
) -> list[tuple[list[Any], list[Any], dict[str, Any]]]:
    """Run vjp for each pair of inputs and cotangents; the results, as of timed_calls."""
    details = (function, [(list(inputs), list(cotangents)) for inputs, cotangents in calls])
    results = function._face.operate("timed_vjps", function._label, details, {})
    return one_for_each(calls, results, parts=3)


def timed_passes(
    forward: Handle,
    backward: Handle,
    calls: Sequence[tuple[Sequence[Any], Sequence[Any]]],
    outputs: int,
) -> list[tuple[Any, Any]]:
    """For each pair of inputs and upstream gradients, forward and then backward with its cache.

    forward returns so many outputs, and a cache after them, which stays. Returns pairs of the
    outputs and the gradients. What forward returned instead comes back with None.
    """
    details = (forward, backward, list(calls), outputs)
    results = forward._face.operate("timed_passes", forward._label, details, {})
    return one_for_each(calls, results, parts=2)


def carried(student: Handle, value: Any) -> Any:
    """A value of ours, copied as one is that goes to student code or comes from there."""
    return student._face.carried(value)


def one_for_each(calls: Sequence[Any], results: Any, parts: int | None = None) -> list[Any]:
    """The results, if there are as many as calls, and each is a tuple of so many parts."""
    found = results if isinstance(results, list) else []
    whole = parts is None or all(isinstance(r, tuple) and len(r) == parts for r in found)
    if len(found) != len(calls) or not whole:
        raise ChildFailure(MALFORMED)
    return found


def on_device(value: Any, device: str) -> Any:
    """A value, with the tensors in it on a device."""
    if is_container(value):
        return map_items(value, lambda item: on_device(item, device))
    return value.to(device) if is_tensor(value) else value


def _timed_calls(
    function: Callable[..., Any],
    calls: list[tuple[Any, ...]],
    outputs: int | None,
    device: str,
    **kwargs: Any,
) -> Unkept:
    results = [function(*on_device(args, device), **kwargs) for args in calls]
    return Unkept([r[:outputs] if isinstance(r, tuple) else r for r in results])


def _timed_passes(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    calls: list[tuple[Any, Any]],
    outputs: int,
) -> Unkept:
    results: list[tuple[Any, Any]] = []
    for inputs, upstream in calls:
        found = forward(*inputs)
        if isinstance(found, tuple) and len(found) == outputs + 1:
            results.append((found[:outputs], backward(*upstream, found[outputs])))
        else:
            results.append((found, None))
    return Unkept(results)


def _timed_vjps(function: Callable[..., Any], calls: list[tuple[Any, Any]]) -> Unkept:
    vjp = partial(MODULE_OPERATIONS["vjp"], function)
    return Unkept([vjp(inputs, cotangents, {}) for inputs, cotangents in calls])


TIMED_OPERATIONS: dict[str, Callable[..., Any]] = {
    "timed_calls": _timed_calls,
    "timed_passes": _timed_passes,
    "timed_vjps": _timed_vjps,
}
