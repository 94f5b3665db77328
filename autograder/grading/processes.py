"""The other end of a warm judge: starts its process, asks it, and ends it."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, ClassVar

from autograder.grading.sandbox.wire.frames import receive_frame, send_frame
from common.determinism import SAME_ARITHMETIC

SILENCE = 1800  # seconds without a reply after which a judge counts as dead
LAST_BYTES = 4096


class JudgeProcess:
    """One warm judge, in a process of its own."""

    module: ClassVar[str]
    passed_on: ClassVar[tuple[str, ...]] = ("PATH",)  # of the environment

    def __init__(
        self,
        source: Path,
        *arguments: str,
        silence: float = SILENCE,
        environment: Mapping[str, str] | None = None,
        errors: BinaryIO | None = None,
    ) -> None:
        ours, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in self.passed_on if name in os.environ}
        given = {"PATH": "/usr/bin:/bin", **kept, **SAME_ARITHMETIC, **(environment or {})}
        command = [sys.executable, "-s", "-m", self.module]
        self.process = subprocess.Popen(
            [*command, str(theirs.fileno()), *arguments],
            cwd=source,
            env=given,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stderr=errors,
            process_group=0,  # Ctrl-C is for this process, which then lets its judges end
        )
        theirs.close()
        ours.settimeout(silence)
        self.socket = ours

    def exchange(self, question: bytes) -> bytes:
        """One question, and the answer."""
        send_frame(self.socket, question)
        return receive_frame(self.socket)

    def close(self) -> None:
        """Let it end."""
        with suppress(OSError):  # wakes whoever waits for an answer
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        self.process.kill()
        self.process.wait()


class ClassJudge(JudgeProcess):
    """A warm judge that a whole class shares. What it complains of is kept, not shown."""

    module = "autograder.grading.warm"
    passed_on: ClassVar[tuple[str, ...]] = ("PATH", "CUDA_VISIBLE_DEVICES", "TMPDIR")

    def __init__(
        self,
        source: Path,
        *arguments: str,
        silence: float = SILENCE,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (it is read after the judge's end)
        super().__init__(
            source, *arguments, silence=silence, environment=environment, errors=self.errors
        )

    def last_words(self) -> str:
        """The last line that it has written to its standard error."""
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - LAST_BYTES))
        lines = self.errors.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
