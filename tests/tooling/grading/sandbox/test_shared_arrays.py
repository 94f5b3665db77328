"""Tests of the memory that judge and child share: layouts, hostile places, reuse, and its end."""

import errno
import fcntl
import os
import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from msgspec import msgpack

from autograder.grading.sandbox.wire import shared_arrays
from autograder.grading.sandbox.wire.array_codec import SHARED_ARRAY_EXTENSION
from autograder.grading.sandbox.wire.codec import CodecError, decode, encode
from autograder.grading.sandbox.wire.frames import FrameTooLarge
from autograder.grading.sandbox.wire.shared_arrays import (
    INPUT_BYTES,
    RESULT_BYTES,
    ArrayCopies,
    MappedArrays,
    SharedArrays,
)
from common.errors import MALFORMED, ChildFailure
from common.testing.remote.operations import fetch, hold
from tests.tooling.grading.sandbox.test_codec import Plain
from tests.tooling.grading_fixtures import both_faces

MEGABYTE = 1024 * 1024
F_SEAL_FUTURE_WRITE = 0x10  # which Python's fcntl doesn't name
SIDE = Plain()
CODE = b'''
import ctypes, os, threading, time
import numpy as np

kept = []


def same(x):
    return x


def start_of(x):
    return x.__array_interface__["data"][0], x.flags.writeable


def keep(x):
    kept.append(x)


def kept_sum(which):
    return float(kept[which].sum())


def memory(x):
    return x.base.base.obj


def address(x):
    return x.__array_interface__["data"][0] // 4096 * 4096


def descriptors():
    found = []
    for name in range(256):
        try:
            found.append(os.fstat(name).st_size)
        except OSError:
            pass
    return [int(size) for size in found]


def close(x):
    try:
        memory(x).close()
    except BufferError:
        return "in use"


def resize(x):
    try:
        memory(x).resize(4096)
    except (BufferError, OSError, SystemError, ValueError):
        return "in use"


def unmap(x):
    libc = ctypes.CDLL(None)
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc.munmap(address(x), 320 * 2**20)


def protect(x):
    libc = ctypes.CDLL(None)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc.mprotect(address(x), 320 * 2**20, 0)


def map_other(x):
    """Puts memory of its own where the shared memory is."""
    libc = ctypes.CDLL(None)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mmap.restype = ctypes.c_void_p
    return libc.mmap(address(x), 320 * 2**20, 3, 0x32, -1, 0) == address(x)


def punch(x):
    """MADV_REMOVE: gives the pages of a shared mapping back."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc.madvise(address(x), 320 * 2**20, 9)


def write_on(x):
    """Writes to all that it can, for as long as the process lives."""
    view = np.frombuffer(memory(x), np.uint8)

    def write():
        while True:
            view[: 2**20] += 1
            view[-64 * 2**20 : -60 * 2**20] += 1

    threading.Thread(target=write, daemon=True).start()
    time.sleep(0.02)
    return np.zeros(200_000)
'''


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    with both_faces(tmp_path_factory.mktemp("shared"), CODE) as made:
        yield made


@pytest.fixture
def student(faces):
    with faces["isolated"].open("1.1") as code:
        yield code


@pytest.fixture
def arrays():
    made = SharedArrays()
    yield made
    made.close()


LAYOUTS = {
    "usual": lambda x: x,
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-2],
    "with gaps": lambda x: x[:, 1::2],
    "broadcast": lambda x: np.broadcast_to(x[0], (5, *x[0].shape)),
    "one row": lambda x: x[1:2],
    "no value": lambda x: x[:0],
    "one value": lambda x: np.array(x[0, 0]),
    "other order of bytes": lambda x: x.astype(">f4"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_inputs_keep_their_layout_and_results_come_back(arrays, name):
    child = MappedArrays(arrays.descriptor)
    array = LAYOUTS[name](np.arange(24.0).reshape(4, 6))
    sent = decode(encode(array, SIDE, arrays.inputs), SIDE, True, child.inputs)
    assert np.array_equal(sent, array) and sent.dtype == array.dtype and sent.flags.writeable
    if not array.flags.c_contiguous:
        assert sent.strides == array.strides
    back = decode(encode(sent, SIDE, child.results), SIDE, False, arrays.results)
    assert np.array_equal(back, array) and back.flags.c_contiguous and back.flags.owndata


def test_the_childs_inputs_are_views_that_the_judge_sees_change(arrays):
    child = MappedArrays(arrays.descriptor)
    array = np.arange(3.0)
    sent = decode(encode(array, SIDE, arrays.inputs), SIDE, True, child.inputs)
    sent[1] = np.nan
    (laid,) = arrays.inputs.laid
    assert laid.value is array and laid.view.tobytes() == sent.tobytes() != array.tobytes()


def test_the_size_of_the_memory_is_sealed(arrays):
    for size in (0, INPUT_BYTES, 2 * (INPUT_BYTES + RESULT_BYTES)):
        with pytest.raises(OSError) as raised:
            os.ftruncate(arrays.descriptor, size)
        assert raised.value.errno == errno.EPERM


def test_no_other_seal_can_be_added_to_the_memory(arrays):
    for seal in (fcntl.F_SEAL_WRITE, F_SEAL_FUTURE_WRITE):
        with pytest.raises(OSError) as raised:
            fcntl.fcntl(arrays.descriptor, fcntl.F_ADD_SEALS, seal)
        assert raised.value.errno == errno.EPERM


def placed(dtype="<f8", shape=(2,), strides=None, start=0):
    head = msgpack.encode((dtype, shape, strides, start))
    return msgpack.encode(msgpack.Ext(SHARED_ARRAY_EXTENSION, head))


HOSTILE = {
    "before the memory": placed(start=-8),
    "far before the memory": placed(start=-(2**63)),
    "beyond the memory": placed(start=RESULT_BYTES),
    "over its end": placed(start=RESULT_BYTES - 8),
    "far beyond": placed(start=2**64 - 1),
    "larger than the memory": placed(shape=[RESULT_BYTES]),
    "a shape that overflows": placed(shape=[2**62, 2**62, 2]),
    "a shape of nothing and too much": placed(shape=[0, 2**63]),
    "a negative shape": placed(shape=[-1, -2]),
    "objects": placed(dtype="|O"),
    "dates": placed(dtype="<M8[s]"),
    "a start that is a number and a half": placed(start=1.5),
    "a start that is true": placed(start=True),
    "a head that is too long": placed(shape=[1] * 5000),
    "no start": msgpack.encode(
        msgpack.Ext(SHARED_ARRAY_EXTENSION, msgpack.encode(("<f8", [1], None)))
    ),
    "nothing": msgpack.encode(msgpack.Ext(SHARED_ARRAY_EXTENSION, b"")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_place_where_no_array_can_lie_is_refused(arrays, name):
    with pytest.raises(CodecError):
        decode(HOSTILE[name], SIDE, False, arrays.results)


def test_a_short_message_can_not_name_the_same_bytes_many_times(arrays):
    million = RESULT_BYTES // 8
    one = msgpack.Ext(SHARED_ARRAY_EXTENSION, msgpack.encode(("<f8", [million], None, 0)))
    with pytest.raises(CodecError, match="outside of the shared memory"):
        decode(msgpack.encode([1, None, [one, one]]), SIDE, False, arrays.results)


def test_damaged_places_are_arrays_of_the_memory_or_refused():
    copies = ArrayCopies(memoryview(bytearray(4096)))
    rng = random.Random(3)
    for _ in range(20_000):
        message = bytearray(placed(shape=[rng.randrange(9)], start=rng.randrange(4096)))
        for _ in range(rng.randrange(4)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        copies.begin()
        with suppress(CodecError):
            value = decode(bytes(message), SIDE, False, copies)
            assert not isinstance(value, np.ndarray) or value.nbytes <= 4096


def test_a_layout_that_a_child_asks_for_is_ignored(arrays):
    result = decode(placed(shape=[2, 1], strides=[2**40, 8]), SIDE, False, arrays.results)
    assert result.shape == (2, 1) and result.flags.c_contiguous


def test_without_room_arrays_cross_by_value(monkeypatch):
    monkeypatch.setattr(shared_arrays, "INPUT_BYTES", 4096)
    arrays = SharedArrays()
    array = np.arange(400.0)
    for _ in range(3):
        assert np.array_equal(
            decode(
                encode(array, SIDE, arrays.inputs),
                SIDE,
                True,
                MappedArrays(arrays.descriptor).inputs,
            ),
            array,
        )
    assert len(arrays.inputs.laid) == 1
    arrays.close()


def test_memory_is_used_again_once_the_child_has_dropped_its_inputs(student):
    large = np.ones(2 * MEGABYTE)
    inputs = student._face.arrays.inputs
    held = hold(student, 2 * large)
    for _ in range(20):
        assert student.same(large).sum() == large.size
    assert inputs.used < 128 * MEGABYTE
    assert fetch(held).sum() == 2 * large.size


def test_inputs_that_student_code_keeps_stay_what_they_are(student):
    for number in range(20):
        student.keep(np.full(MEGABYTE, number))
    assert [student.kept_sum(number) / MEGABYTE for number in range(20)] == list(range(20))


def test_a_child_has_no_descriptor_of_the_memory(student):
    assert INPUT_BYTES + RESULT_BYTES not in student.descriptors()


@pytest.mark.parametrize("name", ["close", "resize"])
def test_a_child_can_not_close_or_resize_the_memory(student, name):
    assert getattr(student, name)(np.ones(3)) == "in use"
    assert np.array_equal(student.same(np.ones(3)), np.ones(3))


@pytest.mark.parametrize("name", ["unmap", "protect"])
def test_a_child_that_takes_the_memory_from_itself_dies_and_another_is_served(faces, name):
    with (
        faces["isolated"].open("1.1") as student,
        pytest.raises(ChildFailure, match="process died"),
    ):
        getattr(student, name)(np.ones(3))
        student.same(np.ones(3))
    with faces["isolated"].open("1.1") as student:
        assert student.same(np.ones(3)).sum() == 3


def test_a_child_that_maps_other_memory_there_is_heard_no_more(student):
    assert student.map_other(np.ones(3))
    assert student.same(np.ones(3)).sum() == 0


def test_a_child_that_gives_the_pages_back_gets_zeros(student):
    assert student.punch(np.ones(3)) == 0
    assert student.same(np.ones(3)).sum() == 3


def test_a_child_that_writes_while_the_judge_reads_gets_some_array(student):
    out = student.write_on(np.ones(3))
    for _ in range(5):
        with suppress(ChildFailure):
            out = student.same(np.zeros(200_000))
        assert out.shape == (200_000,) and out.dtype == np.float64 and out.flags.owndata


@pytest.mark.parametrize("end", [-1, True, 2**62, "0", None, [0]], ids=repr)
def test_a_false_end_of_use_fails_the_test(student, monkeypatch, end):
    face = student._face
    student.same(np.ones(3))
    face.arrays.reuse_at = 0
    ask = face.ask
    monkeypatch.setattr(
        face,
        "ask",
        lambda *details, **more: end if details == ("drop_inputs",) else ask(*details, **more),
    )
    with pytest.raises(ChildFailure, match=MALFORMED):
        ask("call", None, (), {})


def test_the_memory_is_given_back_when_the_test_ends(faces):
    def mapped():
        return Path("/proc/self/maps").read_text().count("memfd:arrays")

    before, descriptors = mapped(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with faces["isolated"].open("1.1") as student:
            student.same(np.ones(MEGABYTE))
            assert mapped() == before + 1
    assert (mapped(), len(os.listdir("/proc/self/fd"))) == (before, descriptors)


def test_a_test_holds_results_up_to_a_limit_and_no_more(monkeypatch):
    """What it has dropped doesn't count, and a view of a result holds all of it."""
    monkeypatch.setattr(shared_arrays, "HELD_BYTES", 3 * 8000)
    results = SharedArrays().results

    def receive():
        results.begin()
        return results.array(np.dtype("<f8"), [1000], None, 0)

    for _ in range(9):
        receive()
    held = [receive()[:1], receive(), receive()]
    with pytest.raises(FrameTooLarge):
        receive()
    held.pop(0)
    receive()
    assert len(held) == 2 and results.held.bytes == 2 * 8000
