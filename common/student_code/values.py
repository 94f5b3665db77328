"""Handles and copies of values that cross between a test and student code.

Arrays, tensors, numbers, strings, random generators and containers of them cross by value. Every
other object stays with the student's code, and the test holds a Handle to it. A container that came
from student code remembers which one it was: handed back in, it is the very same object again, so
that a cache which two calls share by mistake is shared in both faces.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from common.student_text import StudentBytes, StudentText

TEXTS = (str, StudentText, bytes, StudentBytes)
PLAIN = (type(None), bool, int, float, complex, *TEXTS)
MAX_DEPTH = 32  # of containers within containers


class StudentObjects(Protocol):
    """What a Handle asks: objects that stay with the student's code, here or in a child."""

    pid: int | None  # of the child

    def get(self, target: Any, name: str) -> Any:
        """Read an attribute of an object that stays with the student's code."""

    def call(self, target: Any, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call such an object."""

    def operate(
        self, operation: str, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a named operation of common/testing/remote in the student's process."""

    def changed_inputs(
        self, target: Any, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[str]:
        """Call such an object, and name the array arguments that the call changed."""

    def carried(self, value: Any) -> Any:
        """A value of ours, copied as one is that goes to student code or comes from there.

        So that a baseline which is timed here waits for copies as long as student code does.
        """


class Handle:
    """An object that stays with the student's code: call it, read its attributes, hand it back."""

    def __init__(self, face: StudentObjects, reference: Any, label: str) -> None:
        self.__dict__["_face"] = face
        self.__dict__["_reference"] = reference
        self.__dict__["_label"] = label

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, inspect and the like ask for these
            raise AttributeError(name)
        return self._face.get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError("a test can't change an object that stays with the student's code")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._face.call(self, self._label, args, kwargs)

    def __repr__(self) -> str:
        return f"<{self._label} of the student's code>"


class JudgeFunction:
    """A function of a test that student code can call. It runs, and counts, on the test's side.

    When grading, each call crosses to the judge and waits for its answer, plain data.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.function()


@dataclass(frozen=True)
class Held:
    """A value that stays in the student's process, even if it could be sent."""

    value: Any


@dataclass(frozen=True)
class Unkept:
    """A value that is sent and then forgotten: results of many calls would fill the memory."""

    value: Any


class KeptTuple(tuple[Any, ...]):
    """A tuple that came from student code; `reference` identifies it."""

    reference: Any


class KeptList(list[Any]):
    """A list that came from student code; `reference` identifies it."""

    reference: Any


class KeptDict(dict[str, Any]):
    """A dict that came from student code; `reference` identifies it."""

    reference: Any


KEPT: dict[type, Any] = {tuple: KeptTuple, list: KeptList, dict: KeptDict}


def keep(container: Any, reference: Any) -> Any:
    """The container as the test gets it, remembering which one it was."""
    kept = KEPT[type(container)](container)
    kept.reference = reference
    return kept


def is_plain(value: Any) -> bool:
    """Whether a value crosses as it is. Exact types only: a subclass may lie about itself."""
    return type(value) in PLAIN or is_numeric(value) or is_tensor(value)


def is_numeric(value: Any) -> bool:
    """Whether a value is a NumPy array or scalar of numbers or bools, and no subclass of one."""
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufc"
    if not isinstance(value, np.generic) or value.dtype.kind not in "biufc":
        return False
    return type(value) is value.dtype.type


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor or a parameter of PyTorch, and no other subclass of one."""
    kind = type(value)
    # The name first: PyTorch may not be loaded, or just being loaded by another thread.
    if kind.__module__ not in ("torch", "torch.nn.parameter") or "torch" not in sys.modules:
        return False
    torch = sys.modules["torch"]
    return kind is getattr(torch, "Tensor", None) or kind is torch.nn.Parameter


def as_numpy(tensor: Any) -> np.ndarray:
    """The values of a tensor, without its history. TypeError where NumPy has no such type."""
    return tensor.detach().cpu().numpy()


def as_float(number: Any) -> float:
    """A number as a float; infinite where it is an int of more digits than floats hold."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def is_generator(value: Any) -> bool:
    """Whether a value is one of NumPy's random generators, of the usual kind and no subclass."""
    return type(value) is np.random.Generator and type(value.bit_generator) is np.random.PCG64


def copy_array(array: np.ndarray) -> np.ndarray:
    """A copy with the same memory layout, gaps and negative steps included."""
    if array.flags.c_contiguous:
        return array.copy()
    return lay_out(array, array.strides)


def copy_tensor(tensor: Any) -> Any:
    """A copy with the same memory layout and without history."""
    torch = sys.modules["torch"]
    try:
        return torch.from_numpy(copy_array(as_numpy(tensor)))
    except TypeError:  # a type that NumPy doesn't have
        return tensor.detach().clone()


def lay_out(array: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """The same values in new memory, at the given distances from each other."""
    before, size = extent(array.shape, array.itemsize, strides)
    memory = np.zeros(size, dtype=np.uint8)
    view = np.ndarray(array.shape, array.dtype, memory, offset=before, strides=strides)
    view[...] = array
    return view


def extent(shape: Sequence[int], itemsize: int, strides: Sequence[int] | None) -> tuple[int, int]:
    """How many bytes of an array lie before its first value, and how many it takes in all."""
    if strides is None:
        return 0, math.prod(shape) * itemsize
    steps = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True)]
    before = -sum(min(0, step) for step in steps)
    return before, before + sum(max(0, step) for step in steps) + itemsize


def is_container(value: Any) -> bool:
    """Whether a value is a tuple, a list or a dict, and no subclass of one."""
    return type(value) in KEPT


def is_kept(value: Any) -> bool:
    """Whether a value is a container that came from student code."""
    return isinstance(value, tuple(KEPT.values()))


def map_items(container: Any, change: Callable[[Any], Any]) -> Any:
    """A container of the same kind, with `change` applied to each of its items."""
    if isinstance(container, dict):
        return {key: change(item) for key, item in container.items()}
    return type(container)(change(item) for item in container)


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    kinds = {
        type(None): "None",
        bool: "a bool",
        int: "an int",
        float: "a float",
        str: "a string",
        tuple: "a tuple",
        list: "a list",
        dict: "a dict",
        np.ndarray: "a NumPy array",
    }
    if is_tensor(value):
        return "a PyTorch tensor"
    for kind, words in kinds.items():
        if isinstance(value, kind):
            return words
    if isinstance(value, np.generic):
        return f"a NumPy scalar ({value.dtype})"
    return "another type of object"
