"""A warm judge for a whole class: it has read the tests, and a fork of it grades each submission.

Run as `python -m autograder.grading.warm DESCRIPTOR ASSIGNMENT [gpu] [PLACE...]`, in a built zip;
student code must not reach the places. A fork leaves nothing behind: no memory that grows, and
nothing of one submission for the next.
"""

import gc
import importlib
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from autograder.grading.grade import grade_in, new_result, with_gpu
from autograder.grading.judge import Settings, run_collected
from autograder.grading.judge_inputs import read_all, test_files, tests_folder
from autograder.grading.results import as_json
from autograder.grading.sandbox.kernel.syscalls import PR_SET_PDEATHSIG, prctl
from autograder.grading.sandbox.sandbox import Sandbox, stop_servers
from autograder.grading.sandbox.wire.frames import (
    ChannelClosed,
    readable,
    receive_frame,
    send_frame,
)
from autograder.grading.submission import Submission
from autograder.semester import read_semester
from common.assignment import ROOT, Record, load_assignment
from common.errors import CourseError, GraderFault
from common.testing.fixtures import run_graded_tests, stored_oracle

DONE, DONE_WITH_NEW_SERVERS = 0, 3  # how a fork ends that has told its result
WATCH_SECONDS = 60.0
# What PyTorch loads at the first gradient: half a second for each fork, if it weren't there.
LOADED_LATE = "torch.fx.experimental.symbolic_shapes"


class HandedIn(Record, frozen=True):
    """One submission, as it is sent here."""

    files: dict[str, bytes]
    notes: list[str]
    reasons: dict[str, str]  # why a file was not taken, by name


class Graded(Record, frozen=True):
    """The result of one submission, or why there is none."""

    result: bytes = b""  # results.json
    score: float = 0.0
    maximum: float = 0.0
    seconds: float = 0.0
    fault: str = ""  # of the machinery: not a verdict on the submission
    hopeless: bool = False  # whether every other submission would meet the same fault


class SharedSandbox(Sandbox):
    """A sandbox that forks of this process use, one after the other."""

    restarted = False

    def restart(self) -> None:
        self.restarted = True
        super().restart()


class WarmJudge:
    """The pytest plugin that lets forks run the tests which this process has collected."""

    def __init__(
        self, sock: socket.socket, sandbox: SharedSandbox, gpu: bool, private: tuple[Path, ...]
    ) -> None:
        self.sock = sock
        self.sandbox = sandbox
        semester = read_semester()
        reading = read_all(sandbox.assignment, semester)
        self.settings = Settings(semester, gpu=gpu, reading=reading, private=private)
        if sandbox.assignment.stores_answers:
            stored_oracle(tests_folder(sandbox.assignment))
        self.wait_for_servers()

    def wait_for_servers(self) -> None:
        """Hear what the fork servers tell once: a fork could not pass it on."""
        for server in self.sandbox.servers:
            _ = server.mechanisms

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of running tests here: serve, until the other side hangs up."""
        if session.testsfailed:
            raise session.Interrupted("the tests can't be read")
        gc.collect()
        gc.freeze()  # so that forks share these objects' memory
        with suppress(ChannelClosed, ConnectionError):
            while True:
                frame = receive_frame(self.sock)
                send_frame(self.sock, self.grade_in_a_fork(session, frame))
        return True

    def grade_in_a_fork(self, session: pytest.Session, frame: bytes) -> bytes:
        """What a fork of this process says of a submission."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self.be_the_fork(session, frame, writing)
        os.close(writing)
        try:
            told = self.hear(reading)
        except ChannelClosed:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            os.close(reading)
            _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != DONE:
            self.sandbox.restart()  # its servers may be gone, or wait for a fork that is
            self.wait_for_servers()
        if code in (DONE, DONE_WITH_NEW_SERVERS):
            return told
        return msgspec.msgpack.encode(Graded(fault=f"the judge died (exit code {code})"))

    def hear(self, reading: int) -> bytes:
        """All that a fork writes, unless the other side hangs up meanwhile."""
        told = bytearray()
        while True:
            ready = readable([reading, self.sock.fileno()], WATCH_SECONDS)
            if self.sock.fileno() in ready:  # nothing is sent before we have answered
                raise ChannelClosed
            if reading not in ready:
                continue
            data = os.read(reading, 1 << 16)
            if not data:
                return bytes(told)
            told += data

    def be_the_fork(self, session: pytest.Session, frame: bytes, writing: int) -> None:
        """Grade, tell and end."""
        code = 1
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            self.sandbox.restarted = False
            handed_in = msgspec.msgpack.decode(frame, type=HandedIn)
            told = msgspec.msgpack.encode(self.grade(session, handed_in))
            if self.sandbox.restarted:
                stop_servers(self.sandbox.servers, keep_folder=True)
            with open(writing, "wb") as stream:
                stream.write(told)
            code = DONE_WITH_NEW_SERVERS if self.sandbox.restarted else DONE
        finally:
            os._exit(code)

    def grade(self, session: pytest.Session, handed_in: HandedIn) -> Graded:
        """Grade one submission. A fault of the machinery is told, never taken for a failed test."""
        submission = Submission(
            dict(handed_in.files), list(handed_in.notes), dict(handed_in.reasons)
        )
        try:
            result = new_result(self.sandbox.assignment, submission, self.settings)
            result = grade_in(
                self.sandbox,
                result,
                submission,
                self.settings,
                run=lambda judge: run_collected(session, judge),
            )
        except Exception as error:
            hopeless = isinstance(error, CourseError) and not isinstance(error, GraderFault)
            told = str(error) if isinstance(error, CourseError) else repr(error)
            return Graded(fault=told, hopeless=hopeless)
        return Graded(as_json(result), result.score, result.maximum, result.seconds)


def main() -> None:
    """Load what every submission needs, then take submissions until the other side hangs up."""
    sys.path.insert(0, str(ROOT))
    sock = socket.socket(fileno=int(sys.argv[1]))
    assignment = load_assignment(sys.argv[2])
    gpu = "gpu" in sys.argv[3:]
    # Another machine of a cluster has its own files, and perhaps not these.
    private = tuple(Path(word) for word in sys.argv[3:] if word != "gpu" and os.path.exists(word))
    if gpu:
        assignment = with_gpu(assignment)
    with SharedSandbox(assignment) as sandbox:
        for module in (f"tests.{assignment.name}.oracle", *assignment.preloaded, LOADED_LATE):
            importlib.import_module(module)
        run_graded_tests(test_files(assignment), WarmJudge(sock, sandbox, gpu, private))


if __name__ == "__main__":
    main()
