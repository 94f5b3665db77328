"""The fork server: loads libraries once, forks a child per test, kills what outlives the test.

Run as `python -m autograder.grading.sandbox.fork_server DESCRIPTOR FOLDER`; the judge is on the
other end.
"""

import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from autograder.grading.sandbox import after_fork  # before what registers hooks for forks
from autograder.grading.sandbox.child import Child
from autograder.grading.sandbox.kernel.cgroups import Group
from autograder.grading.sandbox.kernel.confine import Confinement
from autograder.grading.sandbox.kernel.confinement_plan import Mechanisms, Plan, ServerPlan
from autograder.grading.sandbox.kernel.home_folder import Homes, sweep_files
from autograder.grading.sandbox.kernel.namespaces import (
    NEW_IPC,
    NEW_NETWORK,
    ProcessTrees,
    attempt,
    become_owner,
)
from autograder.grading.sandbox.kernel.syscalls import (
    LAST_DESCRIPTOR,
    PR_SET_CHILD_SUBREAPER,
    close_range,
    prctl,
)
from autograder.grading.sandbox.kernel.tree_removal import remove_tree
from autograder.grading.sandbox.standin_process.asked_standins import AskedStandins
from autograder.grading.sandbox.standin_process.standin_service import StandinService
from autograder.grading.sandbox.wire.shared_arrays import MappedArrays, mapped_whole
from common.determinism import seed_all
from common.student_code.forbidden_calls import Guard

MESSAGE_BYTES = 1 << 16
STOP_SECONDS = 10  # in which a judge that ends one server tells the others, too
PRELOADED = (
    *("common", "common.student_code", "common.training"),
    *("common.testing", "common.testing.feedback", "common.testing.remote"),
)
# Modules of common/ that only tests use, or that are slow to load and rarely needed.
NOT_PRELOADED = {
    *("common.testing.fixtures", "common.testing.stored_answers", "common.testing.graded_tests"),
    *("common.testing.points_summary", "common.testing.waiting_line", "common.training.plots"),
}
# Parts of Python's own library that student code may import late, from inside a function.
ALSO_LOADED = (
    *("numpy.lib.stride_tricks", "numpy.fft", "numpy.linalg", "numpy.random"),
    *("concurrent.futures", "itertools", "json", "statistics", "string", "textwrap", "timeit"),
    *("heapq", "bisect", "copy", "pprint"),
)


class ForkServer:
    """Starts children, and makes sure that nothing of them is left."""

    def __init__(self, control: socket.socket, plan: ServerPlan, homes: Homes) -> None:
        self.control = control
        self.guard = Guard(plan.forbidden)
        # Found and installed now, so that no child has to. Nothing is forbidden yet.
        self.guard.loaded_forbidden(plan.forbidden)
        self.guard.forbid(())
        self.homes = homes
        self.trees = ProcessTrees()
        self.confinement = Confinement(plan, self.trees, homes.in_memory)
        self.uid = plan.uid
        self.child: int | None = None
        self.home = Path(plan.folder) / "homes" / "none"
        if plan.first:
            self.sweep()  # what a server that was killed has left

    def join_group(self, memory_mb: int) -> None:
        """Let control groups bound what will be started, and count the time that it computes."""
        self.group = Group(f"conv2gpt-{self.uid or os.getpid()}", memory_mb)

    def serve(self, greeting: Mechanisms) -> bool:
        """Do what the judge asks until it is done or gone; whether the folder is to be kept."""
        keep = False
        with suppress(ConnectionError):  # what was asked before the judge hung up is there still
            self.control.send(msgspec.msgpack.encode(greeting))
        with suppress(ConnectionError):
            keep = self.answer_requests()
        if self.child is not None:
            self.end(self.child)
        self.group.leave()
        return keep

    def answer_requests(self) -> bool:
        """Answer until asked to stop, or until nobody is there any more."""
        while True:
            data, descriptors, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 5)
            if not data:
                return False
            request = msgspec.msgpack.decode(data)
            if request["do"] == "stop":
                return request["keep"]
            try:
                answer = self.answer(request, descriptors)
            except Exception as error:  # no memory or no process left, for instance
                answer = {"error": str(error) or type(error).__name__}
            if answer:
                self.control.send(msgspec.msgpack.encode(answer))

    def answer(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any] | None:
        """The answer to one request. "end" gets none: the judge needn't wait for it."""
        match request["do"]:
            case "start":
                pid = self.start(msgspec.convert(request["plan"], Plan), *descriptors)
                return {"pid": pid}
            case "end":
                self.end(request["pid"])
                return None
            case "settle":
                return {"settled": True}
            case other:
                raise ValueError(f"unknown request {other}")

    def start(self, plan: Plan, *descriptors: int) -> int:
        """Fork a child that serves one test; its pid."""
        try:
            self.home = Path(plan.home)
            self.homes.make(self.home, plan.uid)
            ruleset = self.confinement.prepare(plan)
            pid = self.trees.fork()
            if pid == 0:
                self.run_child(plan, ruleset, *descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self.child = pid
        return pid

    def end(self, pid: int) -> None:
        """Kill a child and everything that it started, and wait until they are gone."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.child = None
        if not self.trees.available:
            self.sweep()
        self.homes.remove(self.home)
        if self.uid is not None and not self.confinement.has_landlock:
            sweep_files(self.uid)

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

    def run_child(
        self, plan: Plan, ruleset: int | None, channel: int, output: int, memory: int, *asked: int
    ) -> None:
        """What the forked process does: settle its descriptors, put on the confinement, answer.

        asked: where it asks for stand-ins, and the memory that it shares with them.
        """
        try:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            # Descriptors of memory are closed, with all others that aren't kept.
            answering = answering_part(plan, self.guard, channel, memory, *asked)
            close_all_but({0, 1, 2, channel, *asked[:1], *self.confinement.descriptors(ruleset)})
            self.confinement.enter(plan, ruleset)
            if not plan.serves_standins:  # which neither fork nor draw random numbers
                after_fork.register_deferred_hooks()
                seed_all()  # Python gave it another seed when this process was forked
            answering.serve()
        finally:
            os._exit(0)


def answering_part(
    plan: Plan, guard: Guard, channel: int, memory: int, *asked: int
) -> Child | StandinService:
    """What answers in a new process: student code, or stand-ins."""
    sock = socket.socket(fileno=channel)
    if plan.serves_standins:
        return StandinService(sock, mapped_whole(memory), plan.standins, plan.replacements)
    standins = None
    if asked:
        standins = AskedStandins(socket.socket(fileno=asked[0]), mapped_whole(asked[1]))
    return Child(sock, MappedArrays(memory), plan, guard, standins)


def close_all_but(kept: set[int]) -> None:
    """Close every descriptor that isn't named."""
    try:
        first = 0
        for descriptor in sorted(kept):
            if descriptor > first:
                close_range(first, descriptor - 1)
            first = descriptor + 1
        close_range(first, LAST_DESCRIPTOR)
    except OSError:  # a kernel before 5.9
        close_one_by_one(kept)


def close_one_by_one(kept: set[int]) -> None:
    """Close every descriptor that isn't named, where the kernel can't do it at once."""
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
    for room in PRELOADED:
        for module in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
            if module.name not in NOT_PRELOADED:
                importlib.import_module(module.name)
    tempfile.tempdir = None  # libraries have asked for it: each child must ask again
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
        # Has it read /proc/cpuinfo, which children can't; unread, it would choose its slowest code.
        sys.modules["torch"].backends.cpu.get_cpu_capability()
    seed_all()


def hold_data(names: list[str]) -> None:
    """Load what children will load, once for all of them. Where it can't be had, they say why."""
    if names:
        with suppress(Exception):
            importlib.import_module("common.data").preload(names)


def run(control: socket.socket) -> bool:
    """Leave the network, load the libraries, and serve; whether the folder is to be kept."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    first = msgspec.msgpack.decode(control.recv(MESSAGE_BYTES) or b"\x80")
    if "folder" not in first:  # no plan: nobody is there, or nothing is wanted any more
        return first.get("keep", False)
    plan = msgspec.convert(first, ServerPlan)
    os.chdir(plan.folder)
    if os.getuid() != 0:
        become_owner()
    network, ipc = attempt(NEW_NETWORK), attempt(NEW_IPC)
    homes = Homes(Path(plan.folder) / "homes")
    preload(plan.libraries)
    hold_data(plan.data)
    server = ForkServer(control, plan, homes)
    gc.collect()
    gc.freeze()
    # Servers of one user share a group: what they have done so far must not count for a child.
    server.join_group(plan.memory_mb)
    return server.serve(
        Mechanisms(
            network_namespace=network,
            ipc_namespace=ipc,
            pid_namespace=server.trees.available,
            homes_in_memory=homes.in_memory,
            read_only_mounts=server.confinement.mounts.available,
            cgroups={name: str(folder) for name, folder in server.group.folders.items()},
        )
    )


def main() -> None:
    """Serve, then remove the sandbox's folder, unless another server still uses it.

    A judge that was killed, or has no memory left, couldn't.
    """
    control, folder = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])
    del sys.argv[1:], sys.orig_argv[1:]  # children need not know them
    keep = False
    try:
        keep = run(control)
    except ConnectionError:
        pass
    except FileNotFoundError:  # another server removed the folder, if this one is to stop as well
        if not select.select([control], [], [], STOP_SECONDS)[0]:
            raise
    if not keep:
        remove_tree(folder)


if __name__ == "__main__":
    main()
