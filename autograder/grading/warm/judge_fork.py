"""Runs one grading in a fork of the warm judge, and returns its answer."""

import os
import signal
import socket
from collections.abc import Callable

from autograder.grading.sandbox.kernel.syscalls import PR_SET_PDEATHSIG, prctl
from autograder.grading.sandbox.wire.frames import ChannelClosed, readable

WATCH_SECONDS = 60.0


def run_in_fork(work: Callable[[], tuple[bytes, int]], client: socket.socket) -> tuple[bytes, int]:
    """What the work returns in a fork: an answer and an exit code. One that died has another code.

    client: the one that waits for the answer. ChannelClosed if it hangs up, and the fork is ended.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        work_and_exit(work, writing)
    os.close(writing)
    try:
        answer = receive_all(reading, client)
    except ChannelClosed:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reading)
        _, status = os.waitpid(pid, 0)
    return answer, os.waitstatus_to_exitcode(status)


def work_and_exit(work: Callable[[], tuple[bytes, int]], writing: int) -> None:
    """Work, answer and end."""
    code = 1
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        answer, done = work()
        with open(writing, "wb") as stream:
            stream.write(answer)
        code = done
    finally:
        os._exit(code)


def receive_all(reading: int, client: socket.socket) -> bytes:
    """All that a fork writes, unless the client hangs up meanwhile."""
    answer = bytearray()
    while True:
        ready = readable([reading, client.fileno()], WATCH_SECONDS)
        if client.fileno() in ready:  # it sends nothing before it has the answer
            raise ChannelClosed
        if reading not in ready:
            continue
        data = os.read(reading, 1 << 16)
        if not data:
            return bytes(answer)
        answer += data
