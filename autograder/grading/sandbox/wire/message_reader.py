"""Decodes a msgpack message from front to back, and builds nothing that is too long or too deep.

A library that reads msgpack at once would make an object of every byte of a hostile message before
anything could be counted: an empty list is one byte, and 56 bytes of memory.
"""

import struct
from collections import Counter
from typing import Any, Protocol

from autograder.grading.sandbox.wire.array_codec import (
    CodecError,
    SharedReader,
    value_of_extension,
)
from common.student_code.values import MAX_DEPTH

MAX_ITEMS = 1_000_000
MAX_SAME_HASH = 16
NODE_PARTS = 6  # an object costs as much as this many plain items
TEXT_PARTS = 2  # so many more than a number, however short it is
TUPLE, LIST, DICT, HANDLE, KEPT = range(5)

# The bytes that a value of msgpack's can start with. Some hold a number or a length themselves,
# others say in which form it follows.
SHORT_MAPS, NEGATIVE = 0x80, 0xE0
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
NUMBERS = {first: struct.Struct(f">{form}") for first, form in enumerate("fdBHIQbhiq", start=0xCA)}
LENGTHS = tuple(struct.Struct(f">{form}") for form in "BHI")
Lengths = dict[int, int | struct.Struct]
ARRAYS: Lengths = {0x90 + n: n for n in range(16)} | dict(enumerate(LENGTHS[1:], start=0xDC))
TEXTS: Lengths = {0xA0 + n: n for n in range(32)} | dict(enumerate(LENGTHS, start=0xD9))
BYTES: Lengths = dict(enumerate(LENGTHS, start=0xC4))
EXTENSIONS: Lengths = {0xD4 + n: 1 << n for n in range(5)} | dict(enumerate(LENGTHS, start=0xC7))


class Decoding(Protocol):
    """What one side makes of tagged nodes."""

    def container(self, value: Any, reference: int | None) -> Any:
        """A container that has come over the wire."""

    def text(self, value: str) -> Any:
        """A string that has come over the wire."""

    def data(self, value: bytes) -> Any:
        """Bytes that have come over the wire."""

    def handle(self, reference: int) -> Any:
        """An object that stays on the other side."""

    def kept(self, reference: int) -> Any:
        """An object of this side, coming home."""


class MessageReader:
    """One message, and how far it has been read."""

    def __init__(
        self, data: bytes, side: Decoding, trusted: bool, shared: SharedReader | None
    ) -> None:
        self.data = data
        self.position = 0
        self.side = side
        self.trusted = trusted
        self.shared = shared
        self.parts = 0

    def read_all(self) -> Any:
        """The value that the message is."""
        value = self.value(0)
        if self.position != len(self.data):
            raise CodecError("more than one value")
        return value

    def count(self, parts: int) -> None:
        """Count the parts that follow; a byte of the message may cost 64 of memory here."""
        self.parts += parts
        if self.parts > 3 * MAX_ITEMS:
            raise CodecError("a value with too many parts")

    def value(self, depth: int) -> Any:
        """The next value."""
        first = self.data[self.position]
        if first in ARRAYS:
            return self.node(depth)
        return self.plain()

    def plain(self) -> Any:
        """The next value, if it is not an array."""
        first = self.data[self.position]
        self.position += 1
        if first < SHORT_MAPS:
            return first
        if first >= NEGATIVE:
            return first - 0x100
        if first in TEXTS:
            self.count(TEXT_PARTS)
            return self.side.text(self.piece(self.length(first, TEXTS)).decode())
        if first in CONSTANTS:
            return CONSTANTS[first]
        if first in NUMBERS:
            return self.number(NUMBERS[first])
        if first in EXTENSIONS:
            return self.extension(self.length(first, EXTENSIONS))
        if first in BYTES:
            self.count(TEXT_PARTS)
            return self.side.data(self.piece(self.length(first, BYTES)))
        raise CodecError("a map, or an array where none is allowed")

    def number(self, form: struct.Struct) -> Any:
        """The next bytes as a number of that form."""
        (number,) = form.unpack_from(self.data, self.position)
        self.position += form.size
        return number

    def length(self, first: int, kind: Lengths) -> int:
        """How long what comes next is: its first byte says so, or the number after it."""
        length = kind[first]
        return length if isinstance(length, int) else self.number(length)

    def end(self, length: int) -> int:
        """The position after this many bytes."""
        end = self.position + length
        if end > len(self.data):
            raise CodecError("a truncated message")
        return end

    def piece(self, length: int) -> bytes:
        """So many bytes."""
        start, self.position = self.position, self.end(length)
        return self.data[start : self.position]

    def extension(self, length: int) -> Any:
        """An extension type of this many bytes."""
        self.count(NODE_PARTS)
        code = self.data[self.position]
        self.position += 1
        start, self.position = self.position, self.end(length)
        body = memoryview(self.data)[start : self.position]  # large arrays are copied once
        return value_of_extension(self.trusted, code, body, self.shared)

    def items(self) -> int:
        """How many items the array has that comes next."""
        first = self.data[self.position]
        if first not in ARRAYS:
            raise CodecError("a container without a list of items")
        self.position += 1
        return self.length(first, ARRAYS)

    def node(self, depth: int) -> Any:
        """A container, a handle or a reference."""
        self.count(NODE_PARTS)
        if depth > MAX_DEPTH:
            raise CodecError(f"a value is nested more than {MAX_DEPTH} levels deep")
        length, tag = self.items(), self.plain()
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
        length = self.items()
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
