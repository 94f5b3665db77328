"""Values as msgpack and back. What the child sends is checked before anything is made of it.

On the wire, None, bools, numbers, strings and bytes are themselves, a msgpack array is always a
tagged node (a container, a handle or a reference), and arrays and large integers are extensions.
A random generator crosses to the child only: a copy, in the state that it has.
"""

import importlib
import math
import struct
from typing import Any, Protocol

import msgpack
import numpy as np

from common.values import MAX_DEPTH, as_numpy, is_generator, is_numeric, is_tensor, lay_out

MAX_AXES = 64  # NumPy's own limit
MAX_ITEMS = 1_000_000
MAX_DIGITS = 4000
TUPLE, LIST, DICT, HANDLE, KEPT = range(5)
CONTAINERS: dict[type, int] = {tuple: TUPLE, list: LIST, dict: DICT}
ARRAY_EXTENSION, SCALAR_EXTENSION, INTEGER_EXTENSION, COMPLEX_EXTENSION = 1, 2, 3, 4
GENERATOR_EXTENSION, TENSOR_EXTENSION = 5, 6
SMALL = range(-(2**63), 2**64)


class CodecError(ValueError):
    """Bytes that are not a value, or a value that can't cross."""


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
        return msgpack.ExtType(COMPLEX_EXTENSION, struct.pack("<dd", value.real, value.imag))
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


def generator_bytes(generator: np.random.Generator) -> bytes:
    """The state of a generator: two large numbers and two small ones."""
    state = generator.bit_generator.state
    numbers = [state["state"][key].to_bytes(16, "little") for key in ("state", "inc")]
    return msgpack.packb([*numbers, state["has_uint32"], state["uinteger"]])


def generator_from(body: bytes) -> np.random.Generator:
    """A generator in the state that was sent."""
    state, increment, has_half, half = msgpack.unpackb(body)
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {
            "state": int.from_bytes(state, "little"),
            "inc": int.from_bytes(increment, "little"),
        },
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(bits)


def big_integer(value: int) -> msgpack.ExtType:
    """An integer too large for msgpack, as bytes."""
    size = value.bit_length() // 8 + 1
    if size > MAX_DIGITS:
        raise CodecError("an integer is too large")
    return msgpack.ExtType(INTEGER_EXTENSION, value.to_bytes(size, "little", signed=True))


def array_bytes(array: np.ndarray) -> bytes:
    """dtype, shape and memory layout, then the raw values in C order."""
    strides = None if array.flags.c_contiguous else list(array.strides)
    head = msgpack.packb([array.dtype.str, list(array.shape), strides])
    return struct.pack("<I", len(head)) + head + np.ascontiguousarray(array).tobytes()


def decode(data: bytes, side: Decoding, trusted: bool = False) -> Any:
    """Bytes as a value. Only a trusted sender may ask for a memory layout of its own."""
    items = 0

    def count(part: list) -> list:
        nonlocal items
        items += len(part) + 1
        if items > 3 * MAX_ITEMS:  # a byte of the message may cost 64 bytes of memory here
            raise CodecError("a value of too many parts")
        return part

    def extension(code: int, body: bytes) -> Any:
        if code == ARRAY_EXTENSION:
            return array_from(body, trusted)
        if code == TENSOR_EXTENSION:
            return tensor_from(body, trusted)
        if code == SCALAR_EXTENSION:
            return array_from(body, False)[()]
        if code == INTEGER_EXTENSION and len(body) <= MAX_DIGITS:
            return int.from_bytes(body, "little", signed=True)
        if code == COMPLEX_EXTENSION and len(body) == 16:
            return complex(*struct.unpack("<dd", body))
        if code == GENERATOR_EXTENSION and trusted:
            return generator_from(body)
        raise CodecError("an unknown kind of value")

    try:
        wire = msgpack.unpackb(
            data,
            raw=False,
            ext_hook=extension,
            list_hook=count,
            max_array_len=2 * MAX_ITEMS,
            max_map_len=0,
        )
        return from_wire(wire, side, 0)
    except CodecError:
        raise
    except Exception as error:  # msgpack, NumPy and hash functions each fail in their own ways
        raise CodecError(f"not a value: {type(error).__name__}") from None


def array_from(body: bytes, trusted: bool) -> np.ndarray:
    """An array from its bytes, after checking that they are exactly one."""
    (length,) = struct.unpack_from("<I", body)
    dtype_name, shape, strides = msgpack.unpackb(body[4 : 4 + length])
    dtype = np.dtype(dtype_name) if isinstance(dtype_name, str) and len(dtype_name) < 8 else None
    if dtype is None or dtype.kind not in "biufc":
        raise CodecError("an array of a kind that can't cross")
    if len(shape) > MAX_AXES or any(type(size) is not int or size < 0 for size in shape):
        raise CodecError("an array with an impossible shape")
    if math.prod(shape) * dtype.itemsize != len(body) - 4 - length:
        raise CodecError("an array whose shape and bytes disagree")
    array = np.frombuffer(body, dtype, offset=4 + length).reshape(shape)
    return lay_out(array, tuple(strides)) if trusted and strides else array.copy()


def tensor_from(body: bytes, trusted: bool) -> Any:
    """A tensor from its bytes, which are those of an array."""
    torch = importlib.import_module("torch")  # loaded long ago, wherever tensors are about
    return torch.from_numpy(array_from(body, trusted))


def from_wire(wire: Any, side: Decoding, depth: int) -> Any:
    """msgpack's own types as a value."""
    if depth > MAX_DEPTH:
        raise CodecError(f"a value is nested more than {MAX_DEPTH} deep")
    if isinstance(wire, dict):
        raise CodecError("a bare map")
    if not isinstance(wire, list):
        return wire
    tag, reference, *content = wire
    if type(tag) is not int:
        raise CodecError("an unknown node")
    if tag in (HANDLE, KEPT):
        if type(reference) is not int:
            raise CodecError("a reference that is no number")
        return side.handle(reference) if tag == HANDLE else side.kept(reference)
    if reference is not None and type(reference) is not int:
        raise CodecError("a reference that is no number")
    if len(content) != 1 or type(content[0]) is not list:
        raise CodecError("a container without a list of items")
    items = [from_wire(item, side, depth + 1) for item in content[0]]
    if tag == TUPLE:
        return side.container(tuple(items), reference)
    if tag == LIST:
        return side.container(items, reference)
    if tag == DICT:
        return side.container(dict(zip(items[::2], items[1::2], strict=True)), reference)
    raise CodecError("an unknown node")
