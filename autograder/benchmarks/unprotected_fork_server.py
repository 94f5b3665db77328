"""A fork server without any protection: the baseline for the sandbox's overhead.

Run as `python -m autograder.benchmarks.unprotected_fork_server DESCRIPTOR FOLDER`, by the
benchmark alone.
"""

import gc
import os
import signal
import socket
import sys
from contextlib import suppress

import msgspec

from autograder.grading.sandbox.fork_server import (
    MESSAGE_BYTES,
    ForkServer,
    answering_part,
    preload,
)
from autograder.grading.sandbox.kernel.confinement_plan import Mechanisms, Plan, ServerPlan
from common.student_code.forbidden_calls import Guard


class UnprotectedForkServer(ForkServer):
    """Forks, and does nothing else."""

    def __init__(self, control: socket.socket, plan: ServerPlan) -> None:
        self.control = control
        self.guard = Guard(plan.forbidden)
        self.guard.loaded_forbidden(plan.forbidden)

    def start(self, plan: Plan, *descriptors: int) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                channel, output, memory, *asked = descriptors
                os.dup2(output, 1)
                os.dup2(output, 2)
                answering_part(plan, self.guard, channel, memory, *asked).serve()
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        return pid

    def end(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def main() -> None:
    """Load the libraries, and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    plan = msgspec.msgpack.decode(control.recv(MESSAGE_BYTES), type=ServerPlan)
    preload(plan.libraries)
    server = UnprotectedForkServer(control, plan)
    gc.collect()
    gc.freeze()
    nothing = Mechanisms(False, False, False, True, read_only_mounts=False, cgroups={})
    control.send(msgspec.msgpack.encode(nothing))
    with suppress(ConnectionError):
        server.answer_requests()


if __name__ == "__main__":
    main()
