"""Remote operations for clocks: inputs arrive, and results come back, while the clock runs."""

from collections.abc import Callable, Sequence
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
    """Call the function with each tuple of arguments, one after the other; the results.

    Draw new arguments each time: nothing can be computed before they are there, and nothing after
    the results are here. A call's arguments leave when the result before has come, so no work for
    one call can be shared by others.
    outputs: of results that are tuples, this many items are returned; a cache after them stays.
    device: where tensors among the arguments go, by code of ours in the student's process.
    """
    results = []
    for call in calls:
        details = (function, call, outputs, device)
        results.append(function._face.operate("timed_call", function._label, details, kwargs))
    return results


def timed_vjps(
    function: Handle, calls: Sequence[tuple[Sequence[Any], Sequence[Any]]]
) -> list[tuple[list[Any], list[Any], dict[str, Any]]]:
    """Run vjp for each pair of inputs and cotangents; the results, as of timed_calls."""
    results = []
    for inputs, cotangents in calls:
        details = (function, list(inputs), list(cotangents))
        results.append(function._face.operate("timed_vjp", function._label, details, {}))
    return tuples_of(3, results)


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
    results = []
    for inputs, upstream in calls:
        details = (forward, backward, inputs, upstream, outputs)
        results.append(forward._face.operate("timed_pass", forward._label, details, {}))
    return tuples_of(2, results)


def carried(student: Handle, value: Any) -> Any:
    """A value of ours, copied as one is that goes to student code or comes from there."""
    return student._face.carried(value)


def tuples_of(length: int, results: list[Any]) -> list[Any]:
    """The results, if each is a tuple of so many parts."""
    if not all(isinstance(result, tuple) and len(result) == length for result in results):
        raise ChildFailure(MALFORMED)
    return results


def on_device(value: Any, device: str) -> Any:
    """A value, with the tensors in it on a device."""
    if is_container(value):
        return map_items(value, lambda item: on_device(item, device))
    return value.to(device) if is_tensor(value) else value


def _timed_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    outputs: int | None,
    device: str,
    **kwargs: Any,
) -> Unkept:
    result = function(*on_device(args, device), **kwargs)
    return Unkept(result[:outputs] if isinstance(result, tuple) else result)


def _timed_pass(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    inputs: Sequence[Any],
    upstream: Sequence[Any],
    outputs: int,
) -> Unkept:
    found = forward(*inputs)
    if isinstance(found, tuple) and len(found) == outputs + 1:
        return Unkept((found[:outputs], backward(*upstream, found[outputs])))
    return Unkept((found, None))


def _timed_vjp(
    function: Callable[..., Any], inputs: Sequence[Any], cotangents: Sequence[Any]
) -> Unkept:
    return Unkept(MODULE_OPERATIONS["vjp"](function, inputs, cotangents, {}))


TIMED_OPERATIONS: dict[str, Callable[..., Any]] = {
    "timed_call": _timed_call,
    "timed_pass": _timed_pass,
    "timed_vjp": _timed_vjp,
}
