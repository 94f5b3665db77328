"""Tests of stand-ins in a process of their own: same results, hostile requests, nothing to find."""

import contextlib
import importlib
import os
import signal
import socket
import threading

import msgspec
import numpy as np
import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel.group_time import GroupTime
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.sandbox.standin_process.asked_standins import AskedStandins
from autograder.grading.sandbox.standin_process.standin_service import StandinService
from autograder.grading.sandbox.standin_process.standin_starter import offered_functions
from autograder.proving.process_table import children_of, is_alive
from common.assignment import Limits, load_assignment
from common.errors import ForbiddenCall, GraderFault
from common.student_text import plain, unmarked
from tests.tooling.wait_until import wait_until
from tests.tooling.weakened_sandbox import NO_LANDLOCK, NO_OWN_MOUNTS, NO_TREES, weakened

A2 = msgspec.structs.replace(load_assignment("a2"), lab=None, limits=Limits(20, 120, 512))
STANDIN = "common.standins.a1_convolution.convolution"
CALLER = b"""
import copy
import gc
import importlib
import os
import struct
import sys

import numpy as np
from assignments.a1_convolution import convolution


def call(name, *args):
    return getattr(convolution, name)(*args)


def call_with_subclasses(x, w, b):
    class Own(np.ndarray):
        pass

    return convolution.conv2d_forward(x.view(Own), w, b, stride=type("Int", (int,), {})(2))[0]


def many_caches(size):
    for _ in range(30):
        convolution.max_pool2d_forward(np.zeros((1, 1, size, size)), 1)
    return True


def copied(cache):
    return copy.deepcopy({"cache": [cache]})["cache"][0]


def in_a_fork():
    convolution.conv_output_size(3, 2)
    process = os.fork()
    if process == 0:
        try:
            convolution.conv_output_size(3, 2)
        except RuntimeError as error:
            os._exit(7 if "first process" in str(error) else 1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def write_and_call_again(x):
    out, _ = convolution.max_pool2d_forward(x, 1)
    out[:] = 7
    return out, convolution.max_pool2d_forward(x, 1)[0]


def connection():
    return next(one for one in gc.get_objects() if type(one).__name__ == "AskedStandins")


def send(body):
    asked = connection()
    asked.sock.sendall(struct.pack("<Q", len(body)) + body)
    return bytes(asked.replies.wait())


def ask(name, *args):
    return connection().ask(name, args, {})


def announce(count):
    connection().sock.sendall(struct.pack("<Q", count))


def loaded():
    return [name for name in sys.modules if name.partition(".")[0] in ("torch", "common")]


def imported(name):
    try:
        importlib.import_module(name)
    except BaseException as error:
        return type(error).__name__
    return "imported"


def operator(name):
    torch = importlib.import_module("torch")
    return getattr(torch.ops.aten, name)(*[torch.ones(1, 2, 3)] * 3)
"""


@contextlib.contextmanager
def opened(sandbox, exercise="2.1"):
    with IsolatedFace(sandbox).open(exercise) as student:
        yield student


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(A2) as made:
        made.admit({"lenet.py": CALLER})
        yield made


@pytest.fixture
def student(sandbox):
    with opened(sandbox) as code:
        yield code


@pytest.fixture(scope="module")
def here():
    """The stand-in itself, in this process."""
    return importlib.import_module(STANDIN)


def processes(sandbox):
    """The processes of stand-ins that run now."""
    return children_of(sandbox.standin_server.process.pid)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("name", ["conv2d", "max_pool2d", "avg_pool2d"])
def test_results_are_to_the_bit_what_they_are_in_process(name, dtype, student, here, rng):
    def drawn(*shape):
        """An array whose memory has another order and gaps."""
        return (10 * rng.normal(size=(*shape[::-1], 2))).astype(dtype)[..., 1].T

    x = drawn(2, 3, 9, 8)
    more = (drawn(4, 3, 2, 3), drawn(4), (2, 1), 1) if name == "conv2d" else ((2, 3), 2, 1)
    expected, kept = getattr(here, f"{name}_forward")(x, *more)
    out, cache = student.call(f"{name}_forward", x, *more)
    assert out.dtype == expected.dtype
    assert np.array_equal(out, expected)

    dout = rng.normal(size=expected.shape).astype(expected.dtype)
    gradients = getattr(here, f"{name}_backward")(dout, kept)
    for given in (cache, student.copied(cache), cache):
        found = student.call(f"{name}_backward", dout, given)
        pairs = zip(found, gradients, strict=True) if name == "conv2d" else [(found, gradients)]
        assert all(np.array_equal(one, other) for one, other in pairs)
        assert all(one.dtype == other.dtype for one, other in pairs)


def test_other_results_and_arguments_cross(student, here, rng):
    x, w, b = rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(4, 3, 2, 2)), rng.normal(size=4)
    assert student.call("conv_output_size", 7, 3, np.int64(2), 1) == 4
    assert student.call("conv_parameters", 3, 4, (2, 5), False) == 120
    columns = here.im2col(x, (2, 3), 1, 1)
    assert np.array_equal(student.call("im2col", x, (2, 3), 1, 1), columns)
    images = here.col2im(columns, x.shape, (2, 3), 1, 1)
    assert np.array_equal(student.call("col2im", columns, x.shape, (2, 3), 1, 1), images)
    expected = here.conv2d_forward(x, w, b, stride=2)[0]
    assert np.array_equal(student.call_with_subclasses(x, w, b), expected)


def test_arrays_too_large_for_the_shared_memory_cross_too(here, rng):
    ours, theirs = socket.socketpair()
    memory = memoryview(bytearray(4096))
    service = threading.Thread(target=StandinService(theirs, memory, [STANDIN]).serve)
    service.start()
    x = rng.normal(size=(1, 3, 20, 30))
    asked = AskedStandins(ours, memory)
    for array in (x, x[:, :1, :5], x):  # too large, small enough, too large
        expected = here.im2col(array, 2)
        assert np.array_equal(asked.ask(f"{STANDIN}.im2col", (array, 2), {}), expected)
    ours.close()
    service.join()
    theirs.close()


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (("conv_output_size", 2, 3), ValueError, "kernel_size 3, stride 1 and padding 0"),
        (("conv2d_forward", 1), TypeError, "missing 2 required positional arguments"),
        (("conv2d_forward", [1], 2, 3), AttributeError, "'list' object has no attribute 'shape'"),
        (("max_pool2d_backward", np.zeros((1, 1, 1, 1)), 3), TypeError, "unpack"),
    ],
)
def test_what_a_stand_in_raises_is_raised_in_student_code(args, error, words, student):
    with pytest.raises(error) as raised:
        student.call(*args)
    assert words in unmarked(str(raised.value))
    assert student.call("conv_output_size", 5, 3) == 3


def test_only_what_is_given_to_students_is_there(student):
    with pytest.raises(AttributeError):
        student.call("float_type")
    for name in (f"{STANDIN}.tensor", f"{STANDIN}.torch", "eval", "torch.relu"):
        with pytest.raises(KeyError):
            student.ask(name, 1)


def test_results_belong_to_student_code(student, rng):
    x = rng.normal(size=(1, 2, 3, 4))
    changed, again = student.write_and_call_again(x)
    assert (changed == 7).all()
    assert np.array_equal(again, x)


def test_dropped_caches_take_no_memory(student):
    assert student.many_caches(1400)  # 30 caches of 30 MB


def test_the_process_starts_with_the_first_call_and_ends_with_the_test(sandbox):
    with opened(sandbox) as student:
        assert student.copied(1) == 1
        assert processes(sandbox) == []
        student.call("conv_output_size", 5, 3)
        (process,) = processes(sandbox)
        student.call("conv_output_size", 5, 3)
        assert processes(sandbox) == [process]
    sandbox.settle()
    assert processes(sandbox) == []
    assert list((sandbox.folder / "homes").iterdir()) == []


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x94" * 5000, b"\xdd\xff\xff\xff\xff", b"\x94\x90\xa1x\x90\x80"]
)
def test_a_malformed_request_is_refused_and_the_next_one_answered(body, student):
    student.call("conv_output_size", 5, 3)
    assert b"raised" in student.send(body)
    assert student.call("conv_output_size", 5, 3) == 3


def test_a_request_without_end_costs_only_this_test(sandbox):
    with opened(sandbox) as student:
        student.call("conv_output_size", 5, 3)
        student.announce(1 << 60)
        with pytest.raises(RuntimeError) as raised:
            student.call("conv_output_size", 5, 3)
        assert "no longer answers" in unmarked(str(raised.value))
    with opened(sandbox) as student:
        assert student.call("conv_output_size", 5, 3) == 3


def test_where_the_process_dies_student_code_is_not_left_waiting(sandbox):
    with opened(sandbox) as student:
        student.call("conv_output_size", 5, 3)
        (process,) = processes(sandbox)
        os.kill(process, 9)
        wait_until(lambda: not is_alive(process))
        for _ in range(2):
            with pytest.raises(RuntimeError) as raised:
                student.call("conv_output_size", 5, 3)
            assert "ran out of memory" in unmarked(str(raised.value))


@pytest.mark.parametrize("called", [False, True])
def test_a_server_that_dies_is_a_fault_whatever_the_test_makes_of_it(called):
    with Sandbox(A2) as made:
        made.admit({"lenet.py": CALLER})
        with pytest.raises(GraderFault, match="fork server"), opened(made) as student:
            if called:
                student.call("conv_output_size", 5, 3)
            os.kill(made.standin_server.process.pid, signal.SIGKILL)
            made.standin_server.process.wait()
            with contextlib.suppress(GraderFault, RuntimeError):
                student.call("conv_output_size", 5, 3)
        made.restart()
        with opened(made) as student:
            assert student.call("conv_output_size", 5, 3) == 3


def test_the_time_of_the_process_counts_as_that_of_student_code(sandbox):
    with sandbox.child() as child:
        servers = (sandbox.server, sandbox.standin_server)
        if isinstance(child.processes, GroupTime):
            assert {*child.processes.files} == {server.time_file for server in servers}
        else:
            assert {*child.processes.servers} == {server.process.pid for server in servers}


def test_no_child_starts_before_the_last_stand_ins_are_gone(sandbox, monkeypatch):
    """Where there are no pid namespaces, a server that ends a child kills all of that user."""
    settled = []
    for _ in range(2):
        with opened(sandbox) as student:
            student.call("conv_output_size", 5, 3)
            count = len(settled)
            monkeypatch.setattr(sandbox.standin_server, "settle", lambda: settled.append(True))
    assert count == 1


@pytest.mark.parametrize("missing", [NO_TREES, NO_OWN_MOUNTS, NO_LANDLOCK])
def test_stand_ins_work_where_a_defense_is_missing(missing, tmp_path):
    with weakened(tmp_path, missing), Sandbox(A2) as made:
        made.admit({"lenet.py": CALLER})
        for _ in range(5):
            with opened(made) as student:
                assert student.call("conv_output_size", 5, 3) == 3


def test_a_process_that_student_code_has_started_is_told_where_to_call(student):
    assert student.in_a_fork() == 7


def test_neither_pytorch_nor_stand_ins_can_be_found_in_numpy_work(student):
    loaded = [plain(name) for name in student.loaded()]
    assert "common.errors" in loaded
    assert [name for name in loaded if {"standins", "torch"} & {*name.split(".")}] == []
    assert plain(student.imported("torch")) == "ForbiddenCall"
    for name in (STANDIN, "common.labs.standins.a2_lenet.lenet", "common.standins"):
        assert plain(student.imported(name)) == "ModuleNotFoundError"
    assert plain(student.imported("solutions.a1_convolution.convolution")) == "ModuleNotFoundError"


def test_a_stand_in_beside_pytorch_work_is_the_only_one_and_no_exception():
    a6 = msgspec.structs.replace(load_assignment("a6"), lab=None, files=("layers.py",))
    source = CALLER.replace(b"a1_convolution import convolution", b"a5_attention import attention")
    with Sandbox(a6) as made:
        assert made.standin_server is None
        made.admit({"layers.py": source})
        with opened(made, "6.3") as student:
            loaded = [plain(name) for name in student.loaded()]
            standins = {name for name in loaded if name.startswith("common.standins.")}
            assert {name.split(".")[2] for name in standins} == {"a5_attention"}
            assert [name for name in loaded if name.startswith("common.labs.standins")] == []
            assert plain(student.imported(STANDIN)) == "ModuleNotFoundError"
            with pytest.raises(ForbiddenCall):
                student.operator("_scaled_dot_product_attention_math")


def test_a_stand_in_that_runs_apart_offers_what_its_exercises_ask_for(here):
    exercises = load_assignment("a1").exercises
    assert {*offered_functions(STANDIN)} == {name for one in exercises for name in one.functions}
    assert here.__all__ == offered_functions(STANDIN)
