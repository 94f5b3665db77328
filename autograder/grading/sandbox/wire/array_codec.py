"""Encodes arrays, tensors, generators and large numbers as msgpack extensions."""

import importlib
import math
import struct
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np
from msgspec.msgpack import Ext

from autograder.grading.sandbox.wire.shared_arrays import ArrayWriter, MisplacedArray
from common.student_code.values import lay_out

MAX_AXES = 64  # NumPy's own limit
MAX_DIGITS = 4000
MAX_HEAD = 4096  # bytes that say what an array is
ARRAY_EXTENSION, SCALAR_EXTENSION, INTEGER_EXTENSION, COMPLEX_EXTENSION = 1, 2, 3, 4
GENERATOR_EXTENSION, TENSOR_EXTENSION = 5, 6
SHARED_ARRAY_EXTENSION, SHARED_TENSOR_EXTENSION = 7, 8  # whose values lie in shared memory
SHARED = {ARRAY_EXTENSION: SHARED_ARRAY_EXTENSION, TENSOR_EXTENSION: SHARED_TENSOR_EXTENSION}
HEAD_LENGTH = struct.Struct("<I")
ENCODER = msgspec.msgpack.Encoder()
# The dtype, the shape, and the memory layout where it isn't the usual one.
AxisSizes = Annotated[list[int], msgspec.Meta(max_length=MAX_AXES)]
HEAD_DECODER = msgspec.msgpack.Decoder(tuple[str, AxisSizes, AxisSizes | None])
# The same, and where it starts.
PLACE_DECODER = msgspec.msgpack.Decoder(tuple[str, AxisSizes, AxisSizes | None, int])


class CodecError(ValueError):
    """Bytes that are not a value, or a value that can't cross."""


class SharedReader(Protocol):
    """Where arrays of the other side lie that have not come with the message."""

    def array(
        self, dtype: np.dtype[Any], shape: list[int], strides: list[int] | None, start: int
    ) -> np.ndarray:
        """The array that starts there."""


def generator_bytes(generator: np.random.Generator) -> bytes:
    """The state of a generator: two large numbers and two small ones."""
    state = generator.bit_generator.state
    numbers = [state["state"][key].to_bytes(16, "little") for key in ("state", "inc")]
    return ENCODER.encode([*numbers, state["has_uint32"], state["uinteger"]])


def generator_from(body: memoryview) -> np.random.Generator:
    """A generator in the state that was sent."""
    state, increment, has_half, half = msgspec.msgpack.decode(body)
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


def big_integer(value: int) -> Ext:
    """An integer too large for msgpack, as bytes."""
    size = value.bit_length() // 8 + 1
    if size > MAX_DIGITS:
        raise CodecError("an integer is too large")
    return Ext(INTEGER_EXTENSION, value.to_bytes(size, "little", signed=True))


def complex_number(value: complex) -> Ext:
    """A complex number, as bytes."""
    return Ext(COMPLEX_EXTENSION, struct.pack("<dd", value.real, value.imag))


def array_extension(code: int, array: np.ndarray, value: Any, shared: ArrayWriter | None) -> Ext:
    """An array: in shared memory where there is some and room is left, or else as bytes."""
    if shared is not None and array.nbytes:
        place = shared.lay_down(array, value)
        if place is not None:
            return Ext(SHARED[code], place)
    return Ext(code, array_bytes(array))


def array_bytes(array: np.ndarray) -> bytes:
    """dtype, shape and memory layout, then the raw values in C order."""
    strides = None if array.flags.c_contiguous else list(array.strides)
    head = ENCODER.encode((array.dtype.str, array.shape, strides))
    return HEAD_LENGTH.pack(len(head)) + head + array.tobytes()


def value_of_extension(
    trusted: bool, code: int, body: memoryview, shared: SharedReader | None
) -> Any:
    """What was sent. Only a trusted sender sends generators and layouts."""
    if shared is not None and code == SHARED_ARRAY_EXTENSION:
        return shared_array_from(body, shared)
    if shared is not None and code == SHARED_TENSOR_EXTENSION:
        return tensor_of(shared_array_from(body, shared))
    if code == ARRAY_EXTENSION:
        return array_from(body, trusted)
    if code == TENSOR_EXTENSION:
        return tensor_of(array_from(body, trusted))
    if code == SCALAR_EXTENSION:
        return array_from(body, False)[()]
    if code == INTEGER_EXTENSION and len(body) <= MAX_DIGITS:
        return int.from_bytes(body, "little", signed=True)
    if code == COMPLEX_EXTENSION and len(body) == 16:
        return complex(*struct.unpack("<dd", body))
    if code == GENERATOR_EXTENSION and trusted:
        return generator_from(body)
    raise CodecError("an unknown kind of value")


def array_from(body: memoryview, trusted: bool) -> np.ndarray:
    """An array from its bytes, after checking that they are exactly one."""
    (length,) = HEAD_LENGTH.unpack_from(body)
    if length > MAX_HEAD:
        raise CodecError("an array with an oversized header")
    dtype_name, shape, strides = HEAD_DECODER.decode(body[4 : 4 + length])
    dtype = checked_dtype(dtype_name, shape)
    if math.prod(shape) * dtype.itemsize != len(body) - 4 - length:
        raise CodecError("an array whose shape and bytes disagree")
    array: np.ndarray = np.ndarray(shape, dtype, body, offset=4 + length)
    return lay_out(array, tuple(strides)) if trusted and strides else array.copy()


def shared_array_from(body: memoryview, shared: SharedReader) -> np.ndarray:
    """An array that lies in shared memory, after checking that it can lie there."""
    if len(body) > MAX_HEAD:
        raise CodecError("an array with an oversized header")
    dtype_name, shape, strides, start = PLACE_DECODER.decode(body)
    try:
        return shared.array(checked_dtype(dtype_name, shape), shape, strides, start)
    except MisplacedArray:
        raise CodecError("an array outside of the shared memory") from None


def checked_dtype(name: str, shape: list[int]) -> np.dtype[Any]:
    """The dtype of an array of that shape, if there can be such an array."""
    dtype = np.dtype(name) if len(name) < 8 else None
    if dtype is None or dtype.kind not in "biufc":
        raise CodecError("an array whose dtype can't be sent")
    if any(size < 0 for size in shape):
        raise CodecError("an array with an impossible shape")
    return dtype


def tensor_of(array: np.ndarray) -> Any:
    """A tensor with the values of an array, in the same memory."""
    torch = importlib.import_module("torch")  # loaded long ago, wherever tensors are about
    return torch.from_numpy(array)
