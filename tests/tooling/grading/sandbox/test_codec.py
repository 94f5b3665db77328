"""Tests of the codec: values survive a round trip, and hostile bytes only raise errors."""

import struct
import tracemalloc
from contextlib import suppress

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import msgpack

from autograder.grading.sandbox.wire import array_codec, message_reader
from autograder.grading.sandbox.wire.codec import CodecError, decode, encode
from autograder.grading.sandbox.wire.message_reader import DICT, HANDLE, KEPT, LIST

MEGABYTE = 1024 * 1024


class Plain:
    """A side that keeps nothing: what can't cross by value has no place here."""

    sends_generators = True

    def container_reference(self, value):
        return None

    def node(self, value):
        raise CodecError("stays")

    def container(self, value, reference):
        return value

    def handle(self, reference):
        return ("handle", reference)

    def text(self, value):
        return value

    data = text

    def kept(self, reference):
        raise CodecError("nothing is kept")


SIDE = Plain()
DTYPES = st.one_of(
    arrays.boolean_dtypes(),
    arrays.integer_dtypes(endianness="?"),
    arrays.unsigned_integer_dtypes(endianness="?"),
    arrays.floating_dtypes(endianness="?"),
    arrays.complex_number_dtypes(endianness="?"),
)
ARRAYS = arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
)
HASHABLE = st.one_of(st.text(), st.integers(), st.tuples(st.integers(), st.text()))
VALUES = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(HASHABLE, inner, max_size=4),
    ),
    max_leaves=12,
)


def assert_same(actual, expected):
    """The same type and value all the way down; NaN equals NaN, and -0.0 is not 0.0."""
    assert type(actual) is type(expected)
    if isinstance(expected, np.ndarray | np.generic):
        assert actual.dtype == expected.dtype and actual.shape == expected.shape
        assert actual.tobytes() == expected.tobytes()
    elif isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for pair in zip(actual, expected, strict=True):
            assert_same(*pair)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()))
    else:
        assert repr(actual) == repr(expected)


@settings(max_examples=150, deadline=None)
@given(VALUES)
@example(2**64)
@example(-(2**63) - 1)
@example([np.float64("nan"), -0.0, float("inf"), np.bool_(True), np.uint8(255)])
@example({(1, "a"): [], None: {}, True: b""})
@example(np.zeros((1,) * 20))
def test_a_value_comes_back_as_it_was(value):
    assert_same(decode(encode(value, SIDE), SIDE), value)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_an_input_keeps_its_layout_in_memory(data):
    """What the judge sends is laid out in the child as it was; what it gets is always compact."""
    array = data.draw(arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=4)))
    view = array[data.draw(arrays.basic_indices(array.shape, min_dims=1))]
    view = view.transpose(data.draw(st.permutations(range(view.ndim))))
    there = decode(encode(view, SIDE), SIDE, trusted=True)
    assert_same(there, view)
    assert there.flags.c_contiguous == view.flags.c_contiguous
    if not view.flags.c_contiguous:
        assert there.strides == view.strides
    assert decode(encode(view, SIDE), SIDE).flags.c_contiguous


@pytest.mark.parametrize(
    "view",
    [
        np.arange(6)[::-1],
        np.arange(24.0).reshape(4, 6)[::2, ::-3],
        np.broadcast_to(np.float32(3), (2, 3)),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
    ],
    ids=["backwards", "gaps", "broadcast", "fortran"],
)
def test_odd_layouts_survive(view):
    there = decode(encode(view, SIDE), SIDE, trusted=True)
    assert_same(there, view)
    assert there.strides == view.strides
    there[...] = 0  # memory of its own, whatever the view was


@pytest.mark.parametrize(
    "value",
    [
        np.array([print], dtype=object),
        np.array(["text"]),
        np.str_("text"),
        np.datetime64("2024-01-01"),
        np.zeros(2, dtype=[("a", "f8")]),
        np.zeros(2).view(np.matrix),
        {1, 2},
        type("Liar", (int,), {})(3),
        type("Liar", (list,), {})([3]),
    ],
    ids=repr,
)
def test_what_is_no_plain_value_does_not_cross(value):
    with pytest.raises(CodecError, match="stays"):
        encode(value, SIDE)


def test_what_is_too_deep_or_too_large_is_refused_before_it_is_sent():
    deep = []
    for _ in range(message_reader.MAX_DEPTH + 1):
        deep = [deep]
    for value in (
        deep,
        1 << (8 * array_codec.MAX_DIGITS + 8),
        [0] * (message_reader.MAX_ITEMS + 1),
    ):
        with pytest.raises(CodecError):
            encode(value, SIDE)
    endless = []
    endless.append(endless)
    with pytest.raises(CodecError, match="deep"):
        encode(endless, SIDE)


def array_message(dtype="<f8", shape=(2,), strides=None, body=bytes(16), length=None):
    """An array as it would cross, or nearly so."""
    head = msgpack.encode([dtype, shape, strides])
    data = struct.pack("<I", len(head) if length is None else length) + head + body
    return msgpack.encode(msgpack.Ext(array_codec.ARRAY_EXTENSION, data))


def test_the_forged_messages_below_differ_from_a_true_one_by_what_they_say():
    assert_same(decode(array_message(), SIDE), np.zeros(2))


def node(*parts):
    return msgpack.encode(list(parts))


def integer(value):
    return array_codec.big_integer(value)


HASHED_0 = [integer(k * (2**61 - 1) << 64) for k in range(1, 41)]

HOSTILE = {
    "nothing": b"",
    "a bare map": msgpack.encode({"a": 1}),
    "an empty node": node(),
    "a node of one": node(0),
    "a node without items": node(LIST, None),
    "a node of four": node(LIST, None, [], []),
    "an unknown tag": node(9, None, []),
    "a tag that is text": node("0", None, []),
    "a tag that is no integer": node(1.0, None, []),
    "a reference that is text": node(LIST, "0", []),
    "a handle that is text": node(HANDLE, "0"),
    "a handle that is a bool": node(HANDLE, True),
    "one of our own objects": node(KEPT, 0),
    "items that are text": node(LIST, None, "abc"),
    "items that are bytes": node(LIST, None, b"abc"),
    "items that are an array": b"\x93\x01\xc0" + array_message(),
    "a tag that is an array": b"\x93" + array_message() + b"\xc0\x90",
    "a dict with half an item": node(DICT, None, [1]),
    "a dict with a list as key": node(DICT, None, [[LIST, None, []], 1]),
    "an unknown extension": msgpack.encode(msgpack.Ext(77, b"")),
    "a complex of three bytes": msgpack.encode(msgpack.Ext(array_codec.COMPLEX_EXTENSION, b"abc")),
    "an endless integer": msgpack.encode(
        msgpack.Ext(array_codec.INTEGER_EXTENSION, bytes(array_codec.MAX_DIGITS + 1))
    ),
    "text that is no UTF-8": b"\xa2\xff\xfe",
    "two values": b"\x01\x02",
    "depth": b"\x93\x01\xc0\x91" * 200 + b"\xc0",
    "depth beyond msgpack": b"\x91" * 100_000,
    "a list of 4 billion": b"\xdd\xff\xff\xff\xff",
    "a map of 4 billion": b"\xdf\xff\xff\xff\xff",
    "text of 4 GB": b"\xdb\xff\xff\xff\xff",
    "bytes of 4 GB": b"\xc6\xff\xff\xff\xff",
    "an extension of 4 GB": b"\xc9\xff\xff\xff\xff\x01",
    "an array of objects": array_message("|O"),
    "an array of text": array_message("<U2"),
    "an array of dates": array_message("<M8[s]"),
    "an array of records": array_message("f8,f8"),
    "an array of arrays": array_message("2f8", [1]),
    "a dtype that doesn't parse": array_message(","),
    "a dtype that is a number": array_message(8),
    "a dtype of nothing": array_message(None),
    "a dtype without end": array_message("<f8" * 1000),
    "a negative size": array_message(shape=[-2]),
    "two negative sizes": array_message(shape=[-1, -2]),
    "a size that is text": array_message(shape=["2"]),
    "a size that is a bool": array_message(shape=[True, 2]),
    "a shape that is text": array_message(shape="2"),
    "a shape that is a number": array_message(shape=2),
    "a shape of 100 axes": array_message(shape=[1] * 99 + [2]),
    "a shape larger than the bytes": array_message(shape=[3]),
    "a shape smaller than the bytes": array_message(shape=[1]),
    "a shape of 8 exabytes": array_message(shape=[2**60]),
    "a shape that overflows to right": array_message(shape=[2**62, 2**62, 2]),
    "a shape of nothing and too much": array_message(shape=[0, 2**63], body=b""),
    "a head longer than the message": array_message(length=10_000),
    "a head of 4 GB": array_message(length=2**32 - 1),
    "a head without end": array_message(shape=[1] * 5000),
    "lists of 2 million in lists of 2 million": (b"\x93\x01\xc0\xdd\x00\x1e\x84\x80") * 30,
    "lists in place of tags": (b"\xdd\x00\x00\x03\xe8") * 1000 + bytes(1000),
    "keys of one hash": node(DICT, None, [n for k in range(40) for n in (HASHED_0[k], 0)]),
    "a head of nothing": array_message(length=0),
    "an array of two bytes": msgpack.encode(msgpack.Ext(array_codec.ARRAY_EXTENSION, b"ab")),
}


def refused_within(data):
    """The bytes that were in use at most until the data was refused."""
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            decode(data, SIDE)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bytes_are_a_codec_error_and_cost_no_memory(data):
    assert refused_within(data) < 10 * MEGABYTE


def test_a_layout_that_the_child_asks_for_is_ignored():
    """Strides of gigabytes would be memory of gigabytes."""
    result = decode(array_message(shape=[2, 1], strides=[2**40, 8]), SIDE)
    assert_same(result, np.zeros((2, 1)))


@pytest.mark.parametrize(
    "data",
    [
        b"\xdd" + struct.pack(">I", 800_000) + b"\x90" * 800_000,
        b"\xdc\x01\x90" + (b"\xdc\x07\xd0" + b"\x90" * 2000) * 400,
    ],
    ids=["flat", "nested"],
)
def test_a_message_of_empty_lists_does_not_grow_64_fold(data, monkeypatch):
    """800 KB of empty lists would be 50 MB of list objects."""
    monkeypatch.setattr(message_reader, "MAX_ITEMS", 10_000)
    assert refused_within(data) < 8 * MEGABYTE


@settings(max_examples=150, deadline=None)
@given(VALUES, st.data())
def test_a_message_that_is_cut_or_changed_is_a_value_or_a_codec_error(value, data):
    message = bytearray(encode([1, "value", value], SIDE))
    cut = data.draw(st.integers(0, len(message) - 1))
    with pytest.raises(CodecError):
        decode(bytes(message[:cut]), SIDE)
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CodecError):
        decode(bytes(message), SIDE)


def test_a_generator_crosses_in_the_state_that_it_has():
    generator = np.random.default_rng(5)
    generator.integers(0, 2**32, dtype=np.uint32)  # half of a draw is left over
    data = encode(generator, Plain())
    copy = decode(data, Plain(), trusted=True)
    assert np.array_equal(copy.normal(size=9), generator.normal(size=9))
    with pytest.raises(CodecError):
        decode(data, Plain())
