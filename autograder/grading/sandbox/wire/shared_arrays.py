"""Lays arrays down in memory that the judge and one child have both mapped.

The judge makes the memory, sealed against any change of its size. One part is for the inputs of
calls, which are views of it in the child. The other is for results, which the judge copies. The
child keeps no descriptor of it, so that it can write there and do nothing else.
"""

import fcntl
import mmap
import os
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, finalize, ref

import msgspec
import numpy as np

from autograder.grading.sandbox.wire.frames import FrameTooLarge
from common.student_code.values import extent

INPUT_BYTES, RESULT_BYTES = 256 * 1024 * 1024, 64 * 1024 * 1024  # only what is used takes memory
HELD_BYTES = 128 * 1024 * 1024  # of results that a test may hold at once
COUNTED_BYTES = 4096  # smaller ones are few enough by the limits of a message
# Of inputs, after which those that the child has dropped go: pages that are used again are there.
REUSED_BYTES = 8 * 1024 * 1024
ALIGNMENT = 64
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
ENCODER = msgspec.msgpack.Encoder()


class MisplacedArray(ValueError):
    """A place where no array can lie."""


@dataclass(frozen=True)
class Laid:
    """A value that was laid down, as the array that was copied, and where it lies now."""

    value: Any
    array: np.ndarray
    view: np.ndarray


class ArrayWriter:
    """The side that lays arrays down in a part of the memory, one after another."""

    def __init__(self, memory: memoryview, keeps_layout: bool) -> None:
        self.memory = memory
        self.keeps_layout = keeps_layout
        self.used = 0
        self.laid: list[Laid] = []

    def begin(self) -> None:
        """What follows belongs to another message."""
        self.laid = []

    def lay_down(self, array: np.ndarray, value: Any) -> bytes | None:
        """Copy an array there, and say where and what it is; None if there is no room."""
        strides = None
        if self.keeps_layout and not array.flags.c_contiguous:
            strides = array.strides
        before, size = (
            extent(array.shape, array.itemsize, strides) if strides else (0, array.nbytes)
        )
        start = -(-self.used // ALIGNMENT) * ALIGNMENT
        if start + size > len(self.memory):
            return None
        self.used = start + size
        if strides:
            np.ndarray(size, np.uint8, self.memory, start)[:] = 0  # what lies in the gaps
        view: np.ndarray = np.ndarray(
            array.shape, array.dtype, self.memory, start + before, strides
        )
        view[...] = array
        if self.keeps_layout:
            self.laid.append(Laid(value, array, view))
        return ENCODER.encode((array.dtype.str, array.shape, strides, start))


class ArrayViews:
    """The child's side of inputs: views, until nothing refers to them any more."""

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self.pieces: list[tuple[ReferenceType[np.ndarray], int]] = []
        self.tidy_at = 100

    def array(
        self, dtype: np.dtype[Any], shape: list[int], strides: list[int] | None, start: int
    ) -> np.ndarray:
        """The array that lies there."""
        before, size = extent(shape, dtype.itemsize, strides)
        # Every array that shows these bytes refers to this one, which ends with the last of them.
        piece: np.ndarray = np.frombuffer(self.memory, np.uint8, size, start)
        if len(self.pieces) > self.tidy_at:
            self.end_of_use()
            self.tidy_at = 100 + 2 * len(self.pieces)
        self.pieces.append((ref(piece), start + size))
        return np.ndarray(shape, dtype, piece, before, strides)

    def end_of_use(self) -> int:
        """Where the last input ends that is still referred to. A false answer spoils only those."""
        self.pieces = [(piece, end) for piece, end in self.pieces if piece() is not None]
        return max((end for _, end in self.pieces), default=0)


class HeldResults:
    """Counts the bytes of the results that a test still holds. It outlives the memory."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, array: np.ndarray) -> None:
        """Count an array until nothing refers to it any more."""
        self.bytes += array.nbytes
        finalize(array, self.remove, array.nbytes)

    def remove(self, size: int) -> None:
        """Nobody holds a result of that size any more."""
        self.bytes -= size


class ArrayCopies:
    """The judge's side of results: each is copied once, after its place was checked."""

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self.position = 0
        self.held = HeldResults()

    def begin(self) -> None:
        """The next message may use all of the memory again."""
        self.position = 0

    def array(
        self, dtype: np.dtype[Any], shape: list[int], strides: list[int] | None, start: int
    ) -> np.ndarray:
        """A copy of what lies there now. Arrays follow each other: no two may share their bytes.

        Else a short message could name the same bytes a million times.
        """
        _, size = extent(shape, dtype.itemsize, None)
        if start < self.position or start + size > len(self.memory):
            raise MisplacedArray
        self.position = start + size
        if self.held.bytes + size > HELD_BYTES:
            raise FrameTooLarge
        view: np.ndarray = np.ndarray(shape, dtype, self.memory, start)
        copy = view.copy()
        if size >= COUNTED_BYTES:
            self.held.add(copy)
        return copy


class SharedArrays:
    """The judge's end: makes the memory, whose descriptor is for one child."""

    def __init__(self) -> None:
        self.descriptor = sealed_memory()
        inputs, results = mapped(self.descriptor)
        self.inputs = ArrayWriter(inputs, keeps_layout=True)
        self.results = ArrayCopies(results)
        self.reuse_at = REUSED_BYTES

    def reuse(self, end: int) -> None:
        """Lay down inputs from there on, where they lay before."""
        self.inputs.used = end
        self.reuse_at = max(REUSED_BYTES, 2 * end)

    def close(self) -> None:
        """Give the memory back: it is freed when the child is gone as well."""
        os.close(self.descriptor)
        self.inputs = ArrayWriter(memoryview(b""), keeps_layout=True)
        self.results = ArrayCopies(memoryview(b""))


class MappedArrays:
    """The child's end."""

    def __init__(self, descriptor: int) -> None:
        inputs, results = mapped(descriptor)
        self.inputs = ArrayViews(inputs)
        self.results = ArrayWriter(results, keeps_layout=False)


def sealed_memory() -> int:
    """A descriptor of new memory, whose size nobody can change."""
    descriptor = os.memfd_create("arrays", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, INPUT_BYTES + RESULT_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor


def mapped(descriptor: int) -> tuple[memoryview, memoryview]:
    """The two parts of the memory: for inputs and for results."""
    memory = mapped_whole(descriptor)
    return memory[:INPUT_BYTES], memory[INPUT_BYTES:]


def mapped_whole(descriptor: int) -> memoryview:
    """All of the memory, for two sides that use it in turn."""
    return memoryview(mmap.mmap(descriptor, INPUT_BYTES + RESULT_BYTES))
