"""Several calls of student code in one message, one after the other, beside that code."""

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from common.values import MAX_DEPTH, Held, as_numpy, copy_tensor, is_container, is_tensor, map_items

# What is asked of a call: its result as it is then, its result as it is after the last call, which
# inputs it changes, or whether it raises ValueError.
RESULT, FINAL_RESULT, CHANGED, REFUSED = "result", "final result", "changed", "refused"


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


def call_in_turn(turns: list[tuple]) -> tuple[list[Any], Held | None]:
    """Make the calls up to the first that raises; the answers, and what was raised.

    Each turn: what is asked, the function, its arguments, which of them are items of earlier
    results ({place: (turn, item, count of items)}), of how many items the result must be, if it
    must be a tuple, and how many of these are sent. The others stay here: a cache is not looked at.
    """
    results: list[Any] = []
    answers: list[Any] = []
    for asked, function, args, kwargs, given, count, sent in turns:
        args = list(args)
        for place, (turn, item, items) in given.items():
            if not is_tuple_of(results[turn], items):
                return answers, None  # the test says so when it comes to that turn
            args[place] = results[turn][item]
        result = None
        try:
            if asked == CHANGED:
                answer: Any = changed_by(function, tuple(args), kwargs)
            elif asked == REFUSED:
                answer = is_refused(function, args, kwargs)
            else:
                result = function(*args, **kwargs)
                answer = result
                if sent is not None and is_tuple_of(result, count):
                    answer = (*result[:sent], *map(Held, result[sent:]))
                if asked == RESULT:
                    answer = snapshot(answer)
        except (Exception, SystemExit) as error:
            return answers, Held(error)
        results.append(result)
        answers.append(answer)
    return answers, None


def is_tuple_of(value: Any, count: int | None) -> bool:
    """Whether a value crosses as a tuple or list of so many items."""
    return type(value) in (tuple, list) and len(value) == count


def is_refused(function: Callable, args: list[Any], kwargs: dict) -> bool:
    try:
        function(*args, **kwargs)
    except ValueError:
        return True
    return False


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
