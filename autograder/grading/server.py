"""The fork server: libraries loaded, no test, salt or name ever seen; each child is a fork of it.

Run as `python -m autograder.grading.server DESCRIPTOR`, with the judge on the other end.
"""

import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import msgspec

import common
from autograder.grading.child import Child
from autograder.grading.confinement.confine import Confinement
from autograder.grading.confinement.kernel import PR_SET_CHILD_SUBREAPER, prctl
from autograder.grading.confinement.namespaces import (
    NEW_IPC,
    NEW_NETWORK,
    ProcessTrees,
    attempt,
    become_owner,
)
from autograder.grading.confinement.plan import Plan, ServerPlan
from common.forbidden import Guard
from common.seeds import seed_all

MESSAGE_BYTES = 1 << 16
# Modules of common/ that only tests use, or that are slow to load and rarely wanted.
NOT_PRELOADED = {"plugin", "answers", "roster", "plots"}
# Parts of Python's own library that student code may import late, from inside a function.
ALSO_LOADED = (
    *("numpy.lib.stride_tricks", "numpy.fft", "numpy.linalg", "numpy.random"),
    *("concurrent.futures", "itertools", "json", "statistics", "string", "textwrap", "timeit"),
    *("heapq", "bisect", "copy", "pprint"),
)


class Server:
    """Starts children, and makes sure that nothing of them is left."""

    def __init__(self, control: socket.socket, plan: ServerPlan) -> None:
        self.control = control
        self.guard = Guard(plan.forbidden)
        self.guard.family(plan.forbidden)  # looked for now, so that no child has to
        self.confinement = Confinement(plan.other_uid)
        self.trees = ProcessTrees()
        self.uid: int | None = None
        self.child: int | None = None

    def serve(self) -> None:
        """Do what the judge asks until it is gone. If it was killed, so is what it left running."""
        with suppress(ConnectionError):
            self.answer_requests()
        if self.child is not None:
            self.end(self.child)

    def answer_requests(self) -> None:
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 2)
            if not data:
                return
            request = msgpack.unpackb(data)
            answer: dict[str, Any]
            try:
                if request["do"] == "start":
                    answer = self.start(msgspec.convert(request["plan"], Plan), *descriptors)
                else:
                    answer = self.end(request["pid"])
            except OSError as error:  # no memory or no process left, for instance
                answer = {"error": str(error)}
            self.control.send(msgpack.packb(answer))

    def start(self, plan: Plan, channel: int, output: int) -> dict[str, int | bool]:
        """Fork a child that serves one test."""
        self.uid = plan.uid
        self.confinement.prepare(plan)
        pid = self.trees.fork()
        if pid == 0:
            self.run_child(plan, channel, output)
        self.child = pid
        os.close(channel)
        os.close(output)
        return {"pid": pid, "own_tree": self.trees.available}

    def end(self, pid: int) -> dict[str, int]:
        """Kill a child and everything that it started; how it ended, and the memory it used."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
        self.child = None
        if not self.trees.available:
            self.sweep()
        return {"status": os.waitstatus_to_exitcode(status), "memory_kb": usage.ru_maxrss}

    def sweep(self) -> None:
        """Without a pid namespace: kill what the child has left behind.

        Orphans become children of this process, and all that has the child's uid is the child's.
        """
        while True:
            if self.uid is not None:
                self.kill_all_of(self.uid)
            orphans = children_of_this_process()
            for orphan in orphans:
                with suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
                with suppress(ChildProcessError):
                    os.waitpid(orphan, 0)
            if not orphans:
                return

    def kill_all_of(self, uid: int) -> None:
        """Kill every process of a uid at once, so that none can fork in between."""
        killer = os.fork()
        if killer == 0:
            try:
                os.setresuid(uid, uid, uid)
                os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(killer, 0)

    def run_child(self, plan: Plan, channel: int, output: int) -> None:
        """What the forked process does: settle its descriptors, put on the confinement, answer."""
        try:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            close_all_but({0, 1, 2, channel, *self.confinement.descriptors(plan)})
            self.confinement.enter(plan)
            Child(socket.socket(fileno=channel), plan, self.guard).serve()
        finally:
            os._exit(0)


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor that isn't named."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):  # the one that listed the folder
                os.close(int(name))


def children_of_this_process() -> list[int]:
    """The process ids of our children, adopted orphans included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            # After the name, which may hold anything: the state, then the parent.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                found.append(int(folder.name))
    return found


def preload(libraries: list[str]) -> None:
    """Import what children will need, once for all of them."""
    for name in [*libraries, "jaxtyping", *ALSO_LOADED]:
        importlib.import_module(name)
    for module in pkgutil.iter_modules(common.__path__, "common."):
        if module.name.removeprefix("common.") not in NOT_PRELOADED:
            importlib.import_module(module.name)
    tempfile.tempdir = None  # libraries have asked for it: each child must ask anew
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    seed_all()


def main() -> None:
    """Leave the network, load the libraries, and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    plan = msgspec.convert(msgpack.unpackb(control.recv(MESSAGE_BYTES)), ServerPlan)
    if os.getuid() != 0:
        become_owner()
    attempt(NEW_NETWORK)
    attempt(NEW_IPC)
    preload(plan.libraries)
    server = Server(control, plan)
    gc.collect()
    gc.freeze()
    control.send(msgpack.packb({"ready": True}))
    server.serve()


if __name__ == "__main__":
    main()
