"""Remote operations of the battery: a watched call, and calls between which the caller writes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from common.student_code.values import is_container, is_generator, is_tensor, map_items
from common.testing.remote.visible_state import (
    changed_aspects,
    changed_settings,
    is_module,
    process_state,
    usual_settings,
    visible_state,
)

OVERWRITTEN = 77  # what the caller writes into results


def _watched_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], watched: list[int]
) -> dict[str, Any]:
    """Call the function once; what that changed about its inputs, its object and the process.

    watched: the places of the arguments that are the caller's.
    """
    owner = owner_of(function)
    before = {place: visible_state(args[place]) for place in watched}
    own = visible_state(owner)
    result, settings = with_changed_settings(function, args, kwargs)
    inputs = {
        place: changed_aspects(state, visible_state(args[place])) for place, state in before.items()
    }
    if settings:  # libraries change some when they first need a part of theirs
        again = with_changed_settings(function, args, kwargs)[1]
        settings = [name for name in settings if name in again]
    return {
        "result": result,
        "process": settings,
        "inputs": {place: aspects for place, aspects in inputs.items() if aspects},
        "values": {place: args[place] for place, aspects in inputs.items() if aspects},
        "owner": changed_aspects(own, visible_state(owner)),
    }


def with_changed_settings(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, list[str]]:
    """The result of a call, and the names of the settings of the process that it changed."""
    with usual_settings():
        before = process_state()
        return function(*args, **kwargs), changed_settings(before)


def owner_of(function: Any) -> Any:
    """The module that a function is, or a method of; None where it belongs to none."""
    owner = function if is_module(function) else getattr(function, "__self__", None)
    return owner if is_module(owner) else None


def _disturbed_calls(
    function: Callable[..., Any],
    calls: Sequence[Sequence[Any]],
    kwargs: dict[str, Any],
    part: int | None,
    written: list[int],
    changing: list[int],
) -> dict[str, Any]:
    """Call with the first and the second arguments, and write into results and inputs in between.

    part: so many items of the result are the caller's; None for all of it.
    written: the places of the arguments that the caller writes into.
    changing: the places of those that the function may change.
    """
    first, second = calls
    originals = [copied(value) for value in first]

    def called(args: Sequence[Any]) -> Any:
        given = [
            copied(value) if place in changing or is_generator(value) else value
            for place, value in enumerate(args)
        ]
        return part_of(function(*given, **kwargs), part)

    kept = called(first)
    before = copied(kept)
    called(second)
    after = copied(kept)
    states = [visible_state(first[place]) for place in written]
    overwrite(kept)
    views = [
        place
        for place, state in zip(written, states, strict=True)
        if changed_aspects(state, visible_state(first[place]))
    ]
    for place in views:
        rewritten(first[place], originals[place])
    again = copied(called(first))
    mixed = [
        rewritten(value, second[place]) if place in written else second[place]
        for place, value in enumerate(first)
    ]
    return {
        "before": before,
        "after": after,
        "views": views,
        "again": again,
        "changed": copied(called(mixed)),
    }


def part_of(result: Any, part: int | None) -> Any:
    """So many first items of a result, which are the caller's; all of it where none is said."""
    return result if part is None or not isinstance(result, tuple | list) else result[:part]


def copied(value: Any) -> Any:
    """A copy of arrays, tensors and containers of them. Other objects stay the same."""
    if is_container(value):
        return map_items(value, copied)
    if is_tensor(value):
        return value.detach().clone()
    if is_generator(value):
        clone = np.random.default_rng()
        clone.bit_generator.state = value.bit_generator.state
        return clone
    return value.copy() if isinstance(value, np.ndarray) else value


def overwrite(value: Any) -> None:
    """Write other values into every array and tensor, and empty every list and dict."""
    if is_container(value):
        for item in value.values() if isinstance(value, dict) else value:
            overwrite(item)
        if not isinstance(value, tuple):
            value.clear()
    elif is_tensor(value):
        overwrite_tensor(value.detach())
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = ~value if value.dtype.kind == "b" else OVERWRITTEN


def overwrite_tensor(tensor: Any) -> None:
    """Write other values into a tensor. One that repeats its entries in memory is left alone."""
    if 0 in (step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1):
        return
    tensor.copy_(~tensor) if str(tensor.dtype) == "torch.bool" else tensor.fill_(OVERWRITTEN)


def rewritten(value: Any, wanted: Any) -> Any:
    """The same object with the wanted values, where it can have them; else what is wanted."""
    if isinstance(value, np.ndarray) and isinstance(wanted, np.ndarray):
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            return wanted
        value[...] = wanted
    elif is_tensor(value) and is_tensor(wanted):
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            return wanted
        value.detach().copy_(wanted.detach())
    elif type(value) is list and type(wanted) is list:
        value[:] = [rewritten(*pair) for pair in zip(value, wanted, strict=False)] + wanted[
            len(value) :
        ]
    elif type(value) is dict and type(wanted) is dict:
        items = {key: rewritten(value.get(key), item) for key, item in wanted.items()}
        value.clear()
        value.update(items)
    else:
        return wanted
    return value


BATTERY_OPERATIONS: dict[str, Callable[..., Any]] = {
    "watched_call": _watched_call,
    "disturbed_calls": _disturbed_calls,
}
