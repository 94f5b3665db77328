"""Starts, queries and stops a fork server: the judge's side."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from autograder.grading.sandbox.kernel import gpu_files, group_time
from autograder.grading.sandbox.kernel.confinement_plan import Mechanisms, ServerPlan
from common.assignment import ROOT
from common.determinism import SAME_ARITHMETIC
from common.errors import GraderFault

SERVER_SECONDS = 120
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    **SAME_ARITHMETIC,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",  # sets have the same order in every grading
    "PYTHONPATH": str(ROOT),
    "MPLBACKEND": "Agg",  # labs draw, and nobody looks
}


class ForkServerClient:
    """The judge's end of a fork server: a process that forks a child for each test."""

    def __init__(self, module: str, folder: Path) -> None:
        """Start it with nothing of ours in its environment or its descriptors.

        folder: the sandbox's own, which need not exist yet; the server removes it if we are killed.
        """
        self.known: Mechanisms | None = None
        self.fault = ""  # after one, no answer can be relied on
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen(
            [sys.executable, "-sP", "-m", module, str(theirs.fileno()), folder],
            env=CLEAN_ENVIRONMENT | gpu_files.chosen(),
            cwd="/",
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C, or a signal to our group, is for the judge alone
        )
        theirs.close()
        self.control.settimeout(SERVER_SECONDS)

    def begin(self, plan: ServerPlan) -> None:
        """Let it load its libraries and make itself ready."""
        with suppress(OSError):  # it may be gone, which the first request will find
            self.control.send(msgspec.msgpack.encode(plan))

    @property
    def mechanisms(self) -> Mechanisms:
        """What it has of the kernel, known once it has loaded its libraries."""
        if self.known is None:
            try:
                greeting = self.control.recv(1 << 16)
            except OSError:
                greeting = b""
            if not greeting:
                raise GraderFault("The fork server didn't start.")
            self.known = msgspec.msgpack.decode(greeting, type=Mechanisms)
        return self.known

    @property
    def groups(self) -> set[Path]:
        """The control groups that it has named."""
        return set(map(Path, self.known.cgroups.values())) if self.known else set()

    @cached_property
    def time_file(self) -> Path | None:
        """What counts the processor time of its children, if one of its control groups does."""
        return group_time.time_file(map(Path, self.mechanisms.cgroups.values()))

    def ask(self, request: dict[str, Any], descriptors: Iterable[int] = ()) -> dict[str, Any]:
        """One question, and its answer. After a fault there are no further answers."""
        self.send(request, descriptors)
        try:
            answer = msgspec.msgpack.decode(self.control.recv(1 << 16) or b"\x80")
        except OSError as error:
            self.fail(f"the fork server doesn't answer ({error})")
        if not answer or "error" in answer:
            self.fail(f"the fork server failed ({answer.get('error', 'it is gone')})")
        return answer

    def send(self, request: dict[str, Any], descriptors: Iterable[int] = ()) -> None:
        """A request, whose answer is still to come."""
        if self.fault:
            raise GraderFault(self.fault)
        try:
            socket.send_fds(self.control, [msgspec.msgpack.encode(request)], list(descriptors))
        except OSError as error:
            self.fail(f"the fork server doesn't answer ({error})")

    def fail(self, sentence: str) -> NoReturn:
        """Give this server up: the next answer could be that to an earlier request."""
        self.fault = sentence
        raise GraderFault(sentence) from None

    def end(self, pid: int) -> None:
        """Have a child killed, without waiting for it.

        Requests are served in their order, so the next child starts when this one is gone. If it
        can't be killed, the next answer says so.
        """
        self.send({"do": "end", "pid": pid})

    def settle(self) -> None:
        """Wait until the last child is gone, if there was one."""
        if self.known:
            self.ask({"do": "settle"})

    def stop(self, keep_folder: bool) -> None:
        """End it, and with it what it has started; it removes the folder, unless that is kept."""
        with suppress(OSError):  # it may be gone
            self.control.send(msgspec.msgpack.encode({"do": "stop", "keep": keep_folder}))
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        # Not before: if it has sent something that we have not read, it would get an error
        # instead of our message.
        self.control.close()
