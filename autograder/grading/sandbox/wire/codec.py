"""Encodes values as msgpack; validates everything that a child sends while decoding.

On the wire, None, bools, numbers, strings and bytes are themselves, a msgpack array is always a
tagged node (a container, a handle or a reference), and arrays and large integers are extensions.
A random generator crosses to the child only: a copy, in the state that it has. No library decodes
this for us: it must keep aliases, handles and layouts of arrays, and bound what hostile bytes cost.
"""

from collections import Counter
from functools import partial
from typing import Any, Protocol

import msgpack
import numpy as np

from autograder.grading.sandbox.wire.array_codec import (
    ARRAY_EXTENSION,
    GENERATOR_EXTENSION,
    SCALAR_EXTENSION,
    TENSOR_EXTENSION,
    CodecError,
    array_bytes,
    big_integer,
    complex_number,
    generator_bytes,
    value_of_extension,
)
from common.student_code.values import MAX_DEPTH, as_numpy, is_generator, is_numeric, is_tensor

MAX_ITEMS = 1_000_000
MAX_SAME_HASH = 16
TUPLE, LIST, DICT, HANDLE, KEPT = range(5)
CONTAINERS: dict[type, int] = {tuple: TUPLE, list: LIST, dict: DICT}
SMALL = range(-(2**63), 2**64)
# The bytes with which an array of msgpack's starts: short ones, and with a length.
ARRAY_HEADERS = frozenset((*range(0x90, 0xA0), 0xDC, 0xDD))
# The bytes with which an extension starts: of fixed size, and with one.
EXTENSION_HEADERS = frozenset((*range(0xD4, 0xD9), *range(0xC7, 0xCA)))
NODE_PARTS = 6  # an object costs as much as so many plain items


class Encoding(Protocol):
    """What one side does with the values that don't simply cross."""

    sends_generators: bool

    def container_reference(self, value: Any) -> int | None:
        """The number under which this side keeps a container, if it keeps it."""

    def node(self, value: Any) -> list[Any]:
        """The tagged node for a value that is neither plain nor a container."""


class Decoding(Protocol):
    """What one side makes of tagged nodes."""

    def container(self, value: Any, reference: int | None) -> Any:
        """A container that has come over the wire."""

    def handle(self, reference: int) -> Any:
        """An object that stays on the other side."""

    def kept(self, reference: int) -> Any:
        """An object of this side, coming home."""


def encode(value: Any, side: Encoding) -> bytes:
    """A value as bytes."""
    return msgpack.packb(to_wire(value, side, 0), use_bin_type=True)


def to_wire(value: Any, side: Encoding, depth: int) -> Any:
    """A value as msgpack's own types. Exact types only: a subclass may lie about itself."""
    if depth > MAX_DEPTH:
        raise CodecError(f"a value is nested more than {MAX_DEPTH} deep")
    kind = type(value)
    if value is None or kind in (bool, float, str, bytes):
        return value
    if kind is int:
        return value if value in SMALL else big_integer(value)
    if kind is complex:
        return complex_number(value)
    if is_numeric(value):
        code = ARRAY_EXTENSION if kind is np.ndarray else SCALAR_EXTENSION
        return msgpack.ExtType(code, array_bytes(np.asarray(value)))
    if is_tensor(value):
        try:
            return msgpack.ExtType(TENSOR_EXTENSION, array_bytes(as_numpy(value)))
        except TypeError:
            raise CodecError(f"a tensor of {value.dtype} can't cross") from None
    if kind in CONTAINERS:
        if len(value) > MAX_ITEMS:
            raise CodecError(f"a {kind.__name__} has more than {MAX_ITEMS:,} items")
        items = [pair for item in value.items() for pair in item] if kind is dict else value
        wired = [to_wire(item, side, depth + 1) for item in items]
        return [CONTAINERS[kind], side.container_reference(value), wired]
    if side.sends_generators and is_generator(value):
        return msgpack.ExtType(GENERATOR_EXTENSION, generator_bytes(value))
    return side.node(value)


def decode(data: bytes, side: Decoding, trusted: bool = False) -> Any:
    """Bytes as a value. Only a trusted sender may ask for a memory layout of its own."""
    try:
        return Reader(data, side, trusted).read_all()
    except CodecError:
        raise
    except Exception as error:  # msgpack, NumPy and hash functions each fail in their own ways
        raise CodecError(f"not a value: {type(error).__name__}") from None


class Reader:
    """Reads one message from front to back. What is too long or too deep is never built.

    msgpack itself is asked for one plain value after another: left to read a container, it would
    make room for as many items as the message claims, at every level of nesting.
    """

    def __init__(self, data: bytes, side: Decoding, trusted: bool) -> None:
        self.data = data
        self.side = side
        self.trusted = trusted
        self.parts = 0
        extension = partial(value_of_extension, trusted)
        self.unpacker = msgpack.Unpacker(
            ext_hook=extension, max_buffer_size=max(len(data), 1), max_map_len=0
        )
        self.unpacker.feed(data)

    def read_all(self) -> Any:
        """The value that the message is."""
        value = self.value(0)
        if self.unpacker.tell() != len(self.data):
            raise CodecError("more than one value")
        return value

    def count(self, parts: int) -> None:
        """Note that so many parts come; a byte of the message may cost 64 of memory here."""
        self.parts += parts
        if self.parts > 3 * MAX_ITEMS:
            raise CodecError("a value of too many parts")

    def value(self, depth: int) -> Any:
        """The next value."""
        first = self.data[self.unpacker.tell()]
        if first in ARRAY_HEADERS:
            self.count(NODE_PARTS)
            return self.node(depth)
        if first in EXTENSION_HEADERS:
            self.count(NODE_PARTS)
        value = self.unpacker.unpack()
        if isinstance(value, dict):
            raise CodecError("a bare map")
        return value

    def plain(self) -> Any:
        """The next value, if it is no array."""
        if self.data[self.unpacker.tell()] in ARRAY_HEADERS:
            raise CodecError("an unknown node")
        return self.unpacker.unpack()

    def node(self, depth: int) -> Any:
        """A container, a handle or a reference."""
        if depth > MAX_DEPTH:
            raise CodecError(f"a value is nested more than {MAX_DEPTH} deep")
        length, tag = self.unpacker.read_array_header(), self.plain()
        if type(tag) is not int or length != (2 if tag in (HANDLE, KEPT) else 3):
            raise CodecError("an unknown node")
        reference = self.plain()
        if tag in (HANDLE, KEPT):
            if type(reference) is not int:
                raise CodecError("a reference that is no number")
            return self.side.handle(reference) if tag == HANDLE else self.side.kept(reference)
        if reference is not None and type(reference) is not int:
            raise CodecError("a reference that is no number")
        return self.side.container(self.container(tag, depth), reference)

    def container(self, tag: int, depth: int) -> Any:
        """A container from its items."""
        if self.data[self.unpacker.tell()] not in ARRAY_HEADERS:
            raise CodecError("a container without a list of items")
        length = self.unpacker.read_array_header()
        self.count(length)
        items = [self.value(depth + 1) for _ in range(length)]
        if tag == TUPLE:
            return tuple(items)
        if tag == LIST:
            return items
        if tag == DICT:
            check_keys(items[::2])
            return dict(zip(items[::2], items[1::2], strict=True))
        raise CodecError("an unknown node")


def check_keys(keys: list[Any]) -> None:
    """Refuse keys that were chosen to have the same hash: a dict of them takes forever to make."""
    if len(keys) > MAX_SAME_HASH and max(Counter(map(hash, keys)).values()) > MAX_SAME_HASH:
        raise CodecError("a dict whose keys have the same hash")
