"""Starts, asks and stops a warm judge's process, for batches, proofs and hostile tests."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from autograder.grading.sandbox.wire.frames import receive_frame, send_frame
from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, JudgeOptions
from common.determinism import SAME_ARITHMETIC

MODULE = "autograder.grading.warm.warm_judge"
INHERITED_VARIABLES = ("PATH", "CUDA_VISIBLE_DEVICES", "TMPDIR")  # of the environment
REPLY_TIMEOUT = 1800  # seconds without a reply after which a judge counts as dead
LAST_BYTES = 4096


class JudgeClient:
    """One warm judge, in a process of its own. What it complains of is kept, not shown."""

    def __init__(
        self,
        source: Path,
        options: JudgeOptions,
        *,
        reply_timeout: float = REPLY_TIMEOUT,
        environment: Mapping[str, str] | None = None,
        output: BinaryIO | None = None,
    ) -> None:
        """Start it in a folder that holds the grader.

        environment: additional environment variables.
        output: the file that gets what it prints, if not one that is gone with this client.
        """
        ours, theirs = socket.socketpair()
        kept = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        given = {"PATH": "/usr/bin:/bin", **kept, **SAME_ARITHMETIC, **(environment or {})}
        self.output = output or tempfile.TemporaryFile()  # noqa: SIM115 (read after its end)
        self.process = subprocess.Popen(
            [sys.executable, "-su", "-m", MODULE, str(theirs.fileno()), options.to_json()],
            cwd=source,
            env=given,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            process_group=0,  # Ctrl-C is for this process, which then lets its judges end
        )
        theirs.close()
        ours.settimeout(reply_timeout)
        self.socket = ours

    def grade(self, request: GradingRequest) -> GradingReply:
        """Have one submission graded."""
        answer = self.exchange(msgspec.msgpack.encode(request))
        return msgspec.msgpack.decode(answer, type=GradingReply)

    def exchange(self, question: bytes) -> bytes:
        """A request and its reply, both as bytes: an attempt of a batch travels as bytes."""
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

    def last_line(self) -> str:
        """The last line that it has printed."""
        size = self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, size - LAST_BYTES))
        lines = self.output.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
