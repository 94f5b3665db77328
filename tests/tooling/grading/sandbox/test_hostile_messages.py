"""The judge's decoder under 120,000 hostile messages: its own error or an exact value.

Seeded, so that a failure repeats; `make test` takes a tenth of them. Each message is random bytes,
bytes that look like msgpack, or a valid reply that was damaged.
"""

import os
import random
import resource
import socket
import struct
import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack

from autograder.grading.sandbox.child_replies import Answers
from autograder.grading.sandbox.conversation import REPLY_LIMIT, Conversation
from autograder.grading.sandbox.wire import array_codec, message_reader
from autograder.grading.sandbox.wire.codec import CodecError, decode, encode
from autograder.grading.sandbox.wire.frames import HEADER, ChannelClosed, FrameReader, FrameTooLarge
from autograder.grading.sandbox.wire.message_reader import DICT, HANDLE, LIST, TUPLE
from common.assignment import Limits
from common.errors import ChildFailure
from common.student_code.values import Handle, KeptDict, KeptList, KeptTuple
from common.student_text import StudentBytes, StudentText
from tests.tooling.sampling import is_complete, sample

SEED = 7
TENTHS = sample("tenths of 120,000 hostile messages", range(10), 1)
RANDOM, LOOKALIKE, DAMAGED, ASKED = 3_000, 3_000, 6_000, 4_000  # of each tenth; questions
SLOWEST = 1.0  # seconds that one message may take
GROWTH = 64 * 1024 * 1024
EXACT = (
    *(
        type(None),
        bool,
        int,
        float,
        complex,
        StudentText,
        StudentBytes,
        tuple,
        list,
        dict,
        np.ndarray,
        torch.Tensor,
    ),
    *(Handle, KeptTuple, KeptList, KeptDict),
)
MARKERS = bytes([0x90, 0x93, 0xC0, 0xC4, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCF, 0xD4, 0xD8, 0xD9])
MARKERS += bytes([0xDC, 0xDD, 0xDE, 0xDF, 0x80, 0xA1, 0x92, 0x91, 0x00, 0x01, 0x02, 0x03, 0x04])


class Child:
    """Encodes as a child does: containers with a number, other objects as handles."""

    sends_generators = False

    def container_reference(self, value):
        return 7

    def node(self, value):
        return [HANDLE, 3]


def conversation():
    ours, theirs = socket.socketpair()
    return Conversation(ours, -1, Limits(5, 60, 512)), theirs


@pytest.fixture(scope="module")
def side():
    asked, theirs = conversation()
    yield Answers(asked, "f")
    asked.sock.close()
    theirs.close()


def valid_replies():
    """Replies of every kind that a child gives."""
    values = [
        *(None, True, -1, 2**63, 2**70, 1.5, float("nan"), 1 + 2j, "text", b"bytes", object()),
        *(np.arange(6.0).reshape(2, 3), np.float32(2), np.zeros((0, 3)), np.ones(3, bool)),
        (np.zeros(2), {"a": [1, 2, (3,)], (1, 2): np.int8(4)}),
        [[[[[["deep"]]]]]],
        list(range(50)),
    ]
    replies = [encode([1, "value", value], Child()) for value in values]
    replies.append(encode([1, "raised", "ValueError", "message", "frames"], Child()))
    replies.append(encode([1, "failure", "sentence", "details", "help"], Child()))
    return [*replies, encode([1, "forbidden", "sentence"], Child())]


def random_message(rng):
    return rng.randbytes(rng.choice((rng.randrange(8), rng.randrange(200), rng.randrange(2000))))


def lookalike(rng):
    """Mostly msgpack's own markers and lengths, so that it gets far."""
    parts = []
    for _ in range(rng.randrange(1, 60)):
        parts.append(bytes([rng.choice(MARKERS)]))
        if rng.random() < 0.3:
            parts.append(rng.randbytes(rng.choice((1, 2, 4, 8))))
    return b"".join(parts)


def damaged(rng, replies):
    """A valid reply, changed here and there, cut, doubled, or mixed with another."""
    message = bytearray(rng.choice(replies))
    for _ in range(rng.randrange(1, 5)):
        place = rng.randrange(len(message) + 1)
        kind = rng.randrange(6)
        if kind == 0 and message:
            message[place % len(message)] = rng.randrange(256)
        elif kind == 1 and message:
            message[place % len(message)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del message[place : place + rng.randrange(1, 9)]
        elif kind == 3:
            message[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 4:
            message[place:place] = bytes([rng.choice((0xDD, 0xC9, 0xDB, 0xC6))]) + b"\xff" * 4
        else:
            other = rng.choice(replies)
            message[place:] = other[rng.randrange(len(other)) :]
    return bytes(message)


def messages(tenth):
    rng = random.Random(10 * SEED + tenth)
    replies = valid_replies()
    for _ in range(RANDOM):
        yield random_message(rng)
    for _ in range(LOOKALIKE):
        yield lookalike(rng)
    for _ in range(DAMAGED):
        yield damaged(rng, replies)


def assert_exact(value):
    """Nothing but exact types, all the way down; no array of anything but numbers."""
    kind = type(value)
    assert kind in EXACT or (isinstance(value, np.generic) and kind is value.dtype.type), kind
    if isinstance(value, np.ndarray | np.generic):
        assert value.dtype.kind in "biufc"
    elif isinstance(value, dict):
        assert_exact(list(value))
        assert_exact(list(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            assert_exact(item)


def test_the_decoder_takes_exact_values_and_refuses_all_else(side):
    for reply in valid_replies():
        decode(reply, side)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    count = taken = 0
    slowest = 0.0
    for message in (message for tenth in TENTHS for message in messages(tenth)):
        start = time.thread_time()
        try:
            assert_exact(decode(message, side))
            taken += 1
        except CodecError:
            pass
        slowest = max(slowest, time.thread_time() - start)
        count += 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert count == len(TENTHS) * (RANDOM + LOOKALIKE + DAMAGED) > 10_000
    assert count // 100 < taken < count // 2  # some are still valid; most aren't
    assert slowest < SLOWEST and grown < GROWTH


def test_no_message_takes_memory_that_it_does_not_fill(side):
    """Every allocation is traced here, so that room which is only reserved counts too."""
    rng = random.Random(SEED + 1)
    replies = valid_replies()
    tracemalloc.start()
    try:
        for number in range(2_000):
            message = lookalike(rng) if number % 2 else damaged(rng, replies)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            with suppress(CodecError):
                decode(message, side)
            assert tracemalloc.get_traced_memory()[1] - before < 1024 * 1024, message
    finally:
        tracemalloc.stop()


def framed(body, length=None):
    return HEADER.pack(len(body) if length is None else length) + body


def test_a_conversation_survives_whatever_is_sent():
    """Each message is the answer to a question: a value, a failure of that child, or an error."""
    rng = random.Random(SEED + 2)
    replies = valid_replies()
    outcomes = {"value": 0, "failure": 0, "raised": 0}
    for number in range(ASKED):
        asked, theirs = conversation()
        reading, writing = os.pipe()
        asked.output = reading
        body = random_message(rng) if number % 4 == 0 else damaged(rng, replies)
        length = rng.choice((None, None, None, 0, len(body) + 1, 2**63, REPLY_LIMIT + 1))
        theirs.sendall(b"" if number % 50 == 0 else framed(body, length))
        theirs.shutdown(socket.SHUT_WR)
        asked.reader.nothing_waits = lambda: True  # the answer is there before the question
        try:
            asked.ask("call", None, (), {}, label="f")
            outcomes["value"] += 1
        except ChildFailure:
            outcomes["failure"] += 1
            with pytest.raises(ChildFailure):  # and it stays failed
                asked.ask("call", None, (), {}, label="f")
        except Exception as error:
            assert "student_call" in vars(error) or "explanation" in dir(error), repr(error)
            outcomes["raised"] += 1
        finally:
            asked.close()
            theirs.close()
            os.close(writing)
    assert outcomes["failure"] > ASKED // 2 and min(outcomes.values()) > 0


@pytest.mark.parametrize(
    "reply",
    [
        [2, "value", 0],
        [0, "value", 0],
        [True, "value", 0],
        [1.0, "value", 0],
        [np.int64(1), "value", 0],
        [np.ones(3), "value", 0],
        [1, np.ones(3), 0],
        [1, b"value", 0],
        [1, "value"],
        [1, "value", 0, 0],
        [1, "raised", "ValueError", "message"],
        [1, "raised", "ValueError", "message", 5],
        [1, "raised", "ValueError", "x" * 6000, ""],
        [1, "forbidden", b"text"],
        [1, "unheard of", 0],
        (1, "value", 0),
        {1: "value"},
        "1v0",
        None,
    ],
    ids=repr,
)
def test_what_is_no_answer_to_this_question_fails_the_test(reply):
    asked, theirs = conversation()
    asked.reader.nothing_waits = lambda: True
    theirs.sendall(framed(encode(reply, Child())))
    with asked.sock, theirs, pytest.raises(ChildFailure, match="a malformed reply to the grader"):
        asked.output = theirs.fileno()
        asked.drain = lambda: None
        asked.ask("call", None, (), {}, label="f")


def test_a_second_answer_is_an_answer_out_of_turn():
    asked, theirs = conversation()
    asked.reader.nothing_waits = lambda: True
    asked.drain = lambda: None
    one, two = (framed(encode([number, "value", 5], Child())) for number in (1, 2))
    theirs.sendall(one + two)
    with asked.sock, theirs:
        asked.output = theirs.fileno()
        assert asked.ask("call", None, (), {}, label="f") == 5
        del asked.reader.nothing_waits
        with pytest.raises(ChildFailure, match="a malformed reply to the grader"):
            asked.ask("call", None, (), {}, label="f")


def test_frames_are_bounded_before_they_are_read():
    rng = random.Random(SEED + 3)
    for _ in range(300):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader = FrameReader(ours, limit=1000)
            theirs.sendall(rng.randbytes(rng.randrange(1, 100)) + struct.pack("<Q", 10) * 3)
            theirs.shutdown(socket.SHUT_WR)
            with suppress(ChannelClosed, FrameTooLarge):
                while True:
                    reader.feed()
                    while (frame := reader.take()) is not None:
                        assert len(frame) <= 1000


def test_keys_of_one_hash_cost_no_time(side):
    """131,072 tuples of -1 and -2 have one hash; a dict of them would take minutes."""
    keys = [tuple(-1 - (number >> bit & 1) for bit in range(17)) for number in range(1 << 17)]
    assert len({hash(key) for key in keys[:1000]}) == 1
    items = [part for key in keys for part in ([TUPLE, None, list(key)], 0)]
    message = msgpack.encode([DICT, None, items])
    start = time.thread_time()
    with pytest.raises(CodecError):
        decode(message, side)
    assert time.thread_time() - start < 20
    few = dict.fromkeys([(-1, -2), (-2, -1), (-1, -1), (3, 4)], 1)
    assert decode(encode(few, Child()), side) == few


def test_arrays_and_numbers_by_the_million_are_too_many_parts(side, monkeypatch):
    monkeypatch.setattr(message_reader, "MAX_ITEMS", 10_000)
    body = array_codec.array_bytes(np.zeros(0, np.uint8))
    arrays = [msgpack.Ext(array_codec.ARRAY_EXTENSION, body)] * 6_000
    with pytest.raises(CodecError, match="too many parts"):
        decode(msgpack.encode([LIST, None, arrays]), side)
    assert len(decode(msgpack.encode([LIST, None, arrays[:3_000]]), side)) == 3_000
    with pytest.raises(CodecError, match="too many parts"):
        decode(msgpack.encode([LIST, None, [0] * 31_000]), side)


MSGPACK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(),
        st.binary(),
        st.builds(msgpack.Ext, st.integers(0, 9), st.binary(max_size=60)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(st.integers(0, 5), st.none() | st.integers(-5, 5), inner).map(list),
        st.dictionaries(st.text(), inner, max_size=2),
    ),
    max_leaves=20,
)


@settings(max_examples=1500 if is_complete() else 300, deadline=None)
@given(MSGPACK)
def test_any_valid_msgpack_is_an_exact_value_or_refused(tree):
    asked, theirs = conversation()
    with asked.sock, theirs, suppress(CodecError):
        assert_exact(decode(msgpack.encode(tree), Answers(asked, "f")))
