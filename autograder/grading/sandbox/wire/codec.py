"""Encodes values as msgpack; validates everything that a child sends while decoding.

On the wire, None, bools, numbers, strings and bytes are themselves, a msgpack array is always a
tagged node (a container, a handle or a reference), and arrays and large integers are extensions.
A random generator crosses to the child only: a copy, in the state that it has. No library decodes
this for us: it must keep aliases, handles and layouts of arrays, and bound what hostile bytes cost.
"""

from typing import Any, Protocol

import msgspec
import numpy as np

from autograder.grading.sandbox.wire.array_codec import (
    ARRAY_EXTENSION,
    GENERATOR_EXTENSION,
    SCALAR_EXTENSION,
    TENSOR_EXTENSION,
    CodecError,
    SharedReader,
    array_bytes,
    array_extension,
    big_integer,
    complex_number,
    generator_bytes,
)
from autograder.grading.sandbox.wire.frames import FrameTooLarge
from autograder.grading.sandbox.wire.message_reader import (
    DICT,
    LIST,
    MAX_ITEMS,
    TUPLE,
    Decoding,
    MessageReader,
)
from autograder.grading.sandbox.wire.shared_arrays import ArrayWriter
from common.student_code.values import MAX_DEPTH, as_numpy, is_generator, is_numeric, is_tensor
from common.student_text import StudentBytes, StudentText, plain

CONTAINERS: dict[type, int] = {tuple: TUPLE, list: LIST, dict: DICT}
SENT_UNCHANGED = frozenset((type(None), bool, float, str, bytes))
SMALL = range(-(2**63), 2**64)
ENCODER = msgspec.msgpack.Encoder()


class Encoding(Protocol):
    """What one side does with the values that don't simply cross."""

    sends_generators: bool

    def container_reference(self, value: Any) -> int | None:
        """The number under which this side keeps a container, if it keeps it."""

    def node(self, value: Any) -> list[Any]:
        """The tagged node for a value that is neither plain nor a container."""


def encode(value: Any, side: Encoding, shared: ArrayWriter | None = None) -> bytes:
    """A value as bytes; its arrays lie in shared memory, where there is some."""
    return ENCODER.encode(to_wire(value, side, shared, 0))


def to_wire(value: Any, side: Encoding, shared: ArrayWriter | None, depth: int) -> Any:
    """A value as msgpack's own types. Exact types only: a subclass may lie about itself."""
    if depth > MAX_DEPTH:
        raise CodecError(f"a value is nested more than {MAX_DEPTH} levels deep")
    kind = type(value)
    if kind in SENT_UNCHANGED:
        return value
    if kind is StudentText:
        return plain(value)
    if kind is StudentBytes:
        return bytes(value)
    if kind is int:
        return value if value in SMALL else big_integer(value)
    if kind in CONTAINERS:
        if len(value) > MAX_ITEMS:
            raise CodecError(f"a {kind.__name__} has more than {MAX_ITEMS:,} items")
        items = [pair for item in value.items() for pair in item] if kind is dict else value
        wired = [to_wire(item, side, shared, depth + 1) for item in items]
        return [CONTAINERS[kind], side.container_reference(value), wired]
    if is_numeric(value):
        if kind is np.ndarray:
            return array_extension(ARRAY_EXTENSION, value, value, shared)
        return msgspec.msgpack.Ext(SCALAR_EXTENSION, array_bytes(np.asarray(value)))
    if kind is complex:
        return complex_number(value)
    if is_tensor(value):
        try:
            return array_extension(TENSOR_EXTENSION, as_numpy(value), value, shared)
        except TypeError:
            raise CodecError(f"a tensor of dtype {value.dtype} can't be sent") from None
    if side.sends_generators and is_generator(value):
        return msgspec.msgpack.Ext(GENERATOR_EXTENSION, generator_bytes(value))
    return side.node(value)


def decode(
    data: bytes, side: Decoding, trusted: bool = False, shared: SharedReader | None = None
) -> Any:
    """Bytes as a value. Only a trusted sender may ask for a memory layout of its own."""
    try:
        return MessageReader(data, side, trusted, shared).read_all()
    except (CodecError, FrameTooLarge):
        raise
    except Exception as error:  # NumPy, struct and hash functions each fail in their own ways
        raise CodecError(f"not a value: {type(error).__name__}") from None
