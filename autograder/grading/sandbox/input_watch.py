"""Finds changed inputs as the judge sees them: compares shared memory before and after a call.

What the child says comes on top. It can only be to its loss, and only names that stubs have are
repeated.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from autograder.grading.sandbox.wire.shared_arrays import ArrayWriter
from common.student_code.values import is_tensor
from common.student_text import plain

CHUNK = 1 << 18  # bytes that are compared at once, which fit into the processor's cache


def is_array(value: Any) -> bool:
    """Whether a call could change that input."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def alias(value: Any) -> Any:
    """The same array as another object, so that each argument is known by its own."""
    if isinstance(value, np.ndarray):
        return value.view()
    return value.detach() if is_tensor(value) else value


def any_changed(inputs: ArrayWriter, values: Iterable[Any]) -> bool:
    """Whether one of these values, as it was laid down for this call, lies there changed."""
    wanted = {id(value) for value in values if is_array(value)}
    return any(
        id(laid.value) in wanted and not same_bytes(laid.array, laid.view) for laid in inputs.laid
    )


def changed_keys(inputs: ArrayWriter, values: Mapping[Any, Any]) -> set[Any] | None:
    """The keys of those values that lie there changed; None if one was not laid down."""
    laid = {id(laid.value): laid for laid in inputs.laid}
    arrays = {
        key: value for key, value in values.items() if is_array(value) and 0 not in value.shape
    }
    if any(id(value) not in laid for value in arrays.values()):
        return None
    return {
        key
        for key, value in arrays.items()
        if not same_bytes(laid[id(value)].array, laid[id(value)].view)
    }


def same_bytes(array: np.ndarray, view: np.ndarray) -> bool:
    """Whether two arrays of one dtype and shape have the same values. NaN isn't equal to itself."""
    if array.nbytes <= CHUNK:
        return array.tobytes() == view.tobytes()
    one, other = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (array, view))
    return all(
        one[place : place + CHUNK].tobytes() == other[place : place + CHUNK].tobytes()
        for place in range(0, array.nbytes, CHUNK)
    )


def name_of(key: int | str, said: Any, stubs: Path | None) -> str:
    """What a changed input is called: as the child says, where a stub has a parameter of that name.

    Any other name is student code's own words, which could carry an input to the page.
    """
    if isinstance(key, str):
        return key
    name = plain(said)
    if type(name) is str and name in parameters_of_stubs(stubs):
        return name
    return f"input {key + 1}"


@cache
def parameters_of_stubs(folder: Path | None) -> frozenset[str]:
    """The names of all parameters in an assignment's stubs."""
    files = sorted(folder.glob("*.py")) if folder else []
    return frozenset(
        node.arg
        for file in files
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.arg)
    )
