"""Remote operations that run several calls of student code in one message."""

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from common.student_code.values import (
    MAX_DEPTH,
    Held,
    as_numpy,
    copy_tensor,
    is_container,
    is_tensor,
    map_items,
)

# What is asked of a call: its result as it is then, its result as it is after the last call, or
# which inputs it changes. Not whether it must raise: code could look for that, and raise.
RESULT, FINAL_RESULT, CHANGED = "result", "final result", "changed"

# How a call ended.
RETURNED, REFUSED, RAISED = "returned", "refused", "raised"


def changed_by(function: Callable, args: tuple, kwargs: dict) -> list[str]:
    """Call the function, and name the array arguments that the call changed."""
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


def call_in_turn(turns: list[tuple]) -> list[tuple[str, Any]]:
    """Make the calls up to the first that raises anything but ValueError; how each ended.

    Each turn: what is asked, the function, its arguments, which of them are items of earlier
    results ({place: (turn, item)}), and how many items of a result that is a tuple are sent. The
    others stay here: a cache is not looked at.
    """
    results: list[Any] = []
    endings: list[tuple[str, Any]] = []
    for asked, function, args, kwargs, given, sent in turns:
        if not all(has_item(results[turn], item) for turn, item in given.values()):
            break  # the test says so when it comes to that result
        args = list(args)
        for place, (turn, item) in given.items():
            args[place] = results[turn][item]
        result = None
        try:
            if asked == CHANGED:
                endings.append((RETURNED, changed_by(function, tuple(args), kwargs)))
            else:
                result = function(*args, **kwargs)
                endings.append((RETURNED, to_send(result, asked, sent)))
        except ValueError as error:
            endings.append((REFUSED, Held(error)))
        except (Exception, SystemExit) as error:
            endings.append((RAISED, Held(error)))
            break
        results.append(result)
    return endings


def has_item(result: Any, item: int) -> bool:
    """Whether a result crosses as a tuple or list, and has such an item."""
    return type(result) in (tuple, list) and item < len(result)


def to_send(result: Any, asked: str, sent: int | None) -> Any:
    """What crosses of a result."""
    if sent is not None and type(result) in (tuple, list):
        result = (*result[:sent], *map(Held, result[sent:]))
    return snapshot(result) if asked == RESULT else result


def snapshot(value: Any, depth: int = 0) -> Any:
    """A value as it is now, whatever the next call writes into its memory."""
    if is_container(value) and depth <= MAX_DEPTH:  # what is deeper can't be sent
        return map_items(value, lambda item: snapshot(item, depth + 1))
    if is_tensor(value):
        return copy_tensor(value)
    return value.copy() if type(value) is np.ndarray else value


def raise_held(held: Held) -> NoReturn:
    """Raise what a turn has raised."""
    raise held.value
