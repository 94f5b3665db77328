"""Starts fork servers and sandboxed children for one submission at a time, and cleans up."""

import os
import pkgutil
import secrets
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

import msgspec

from autograder.grading.sandbox.conversation import Conversation
from autograder.grading.sandbox.defenses import Defense, Findings, defenses_in_force
from autograder.grading.sandbox.fork_client import ForkServerClient
from autograder.grading.sandbox.kernel import gpu_files
from autograder.grading.sandbox.kernel.cgroups import remove_groups
from autograder.grading.sandbox.kernel.closed_folders import reachable_by_others
from autograder.grading.sandbox.kernel.confinement_plan import Attempts, Plan, ServerPlan
from autograder.grading.sandbox.kernel.group_time import GroupTime
from autograder.grading.sandbox.kernel.process_tree_time import ProcessTreeTime
from autograder.grading.sandbox.kernel.tree_removal import remove_tree
from autograder.grading.sandbox.probe_targets import (
    EXIT_SECONDS,
    all_exited,
    files_among,
    listening,
    unread_file,
)
from autograder.grading.sandbox.standin_process.standin_starter import (
    StandinStarter,
    offered_functions,
)
from autograder.grading.sandbox.submission_files import compile_files, copy_common, place_package
from autograder.grading.sandbox.user_ids import Slot, free_slot
from common import labs
from common.assignment import ROOT, Assignment, Forbidden, Limits
from common.errors import ChildFailure, CourseError, GraderFault
from common.exercise_needs import Replacement

PROBE_SECONDS = 60.0
# All that notebooks may import from here: a child may not be able to read our files.
LAB_MODULES = (
    *("matplotlib.pyplot", "matplotlib.backends.backend_agg"),
    *(module.name for module in pkgutil.iter_modules(labs.__path__, "common.labs.")),
)


class Sandbox:
    """Runs submissions in children that can compute, and little else; one submission at a time."""

    server_module = "autograder.grading.sandbox.fork_server"

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.folder = Path(tempfile.gettempdir()) / f"conv2gpt-{secrets.token_hex(8)}"
        self.common = self.folder / "common"
        self.packages: dict[str, str] = {}
        self.slot: Slot | None = None
        self.findings: Findings | None = None
        self.start_servers()  # before there is a folder: if we are killed, they remove it
        try:
            self.make_folder()
            self.configure_servers()
        except BaseException:
            self.close()
            raise

    def make_folder(self) -> None:
        """Make the folder in which all happens, and choose the uid that it happens under."""
        self.folder.mkdir(mode=0o700)
        for name, mode in (("homes", 0o711), ("packages", 0o711), ("private", 0o700)):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(mode)  # whatever the umask is
        (self.folder / "private" / "secret").touch(mode=0o600)
        self.slot = free_slot(self.folder / "private")
        if self.slot:  # whose group children have: those of other graders can't enter
            os.chown(self.folder, -1, self.slot.uid)
            self.folder.chmod(0o710)
        if self.slot and not reachable_by_others(self.folder.parent):
            raise CourseError(
                f"Student code runs as another user, which can't enter {self.folder}. "
                "Set TMPDIR to a folder that every user can enter, such as /tmp."
            )
        copy_common(self.common)

    def admit(self, code: Mapping[str, bytes], private: Iterable[Path] = ()) -> tuple[Defense, ...]:
        """Install a submission in place of the previous one: written once, compiled once.

        code: its files, in which `import assignments.X` finds its modules.
        private: what children must not reach; whether they can is tried, not assumed.
        """
        self.settle()  # the last child may be another submission's
        package = self.folder / "packages" / self.assignment.name
        place_package(code, package)
        self.packages = {self.assignment.name: str(package)}
        return self.probe(list(private))

    def start_servers(self) -> None:
        """Start a fork server, and one without what some exercises forbid altogether.

        What is in a process's memory can be found there, so it is not to be there. Stand-ins that
        need it get a fork server of their own.
        """
        self.server = ForkServerClient(self.server_module, self.folder)
        self.busy: set[ForkServerClient] = set()  # those that started the last children
        self.restricted_server: ForkServerClient | None = None
        if self.allowed != self.assignment.preloaded:
            self.restricted_server = ForkServerClient(self.server_module, self.folder)
        self.lab_server: ForkServerClient | None = (
            None  # with what notebooks draw with, which is slow to load
        )
        if self.assignment.lab:
            self.lab_server = ForkServerClient(self.server_module, self.folder)
        self.standin_server: ForkServerClient | None = None
        apart = "torch" not in self.assignment.libraries and self.assignment.replaces_functions
        if self.assignment.standins_run_apart or apart:
            self.standin_server = ForkServerClient(self.server_module, self.folder)

    @property
    def standins(self) -> list[str]:
        """The stand-ins that are in the memory of student code."""
        return [] if self.assignment.standins_run_apart else [*self.assignment.standins]

    @property
    def allowed(self) -> tuple[str, ...]:
        """The libraries that no exercise forbids altogether."""
        forbidden = {entry.call for entry in self.assignment.forbidden}
        libraries = self.assignment.preloaded
        return tuple(name for name in libraries if name.partition(".")[0] not in forbidden)

    def configure_servers(self) -> None:
        """Send each server its plan: what to load and as which user its children run."""
        standins = self.standins
        self.server.begin(self.server_plan([*self.assignment.preloaded, *standins], first=True))
        if self.restricted_server:
            self.restricted_server.begin(self.server_plan([*self.allowed, *standins]))
        if self.lab_server and self.assignment.lab:
            modules = (*self.assignment.preloaded, *LAB_MODULES, *self.assignment.lab_standins)
            self.lab_server.begin(self.server_plan(modules, self.assignment.lab.data))
        if self.standin_server:
            libraries = [*self.assignment.standins, *self.assignment.own_standin_libraries]
            self.standin_server.begin(self.server_plan(libraries))

    def server_plan(
        self, libraries: Iterable[str], data: Iterable[str] = (), first: bool = False
    ) -> ServerPlan:
        """The plan of a fork server with these libraries, and with this data."""
        return ServerPlan(
            libraries=list(libraries),
            data=list(data),
            forbidden=list(self.assignment.forbidden),
            folder=str(self.folder),
            common=str(self.common),
            uid=self.slot.uid if self.slot else None,
            memory_mb=self.assignment.limits.memory_mb,
            first=first,
        )

    @property
    def servers(self) -> list[ForkServerClient]:
        """All that run."""
        others = (self.restricted_server, self.lab_server, self.standin_server)
        return [self.server, *(server for server in others if server)]

    def server_for(self, forbidden: Iterable[Forbidden]) -> ForkServerClient:
        """The one whose children may have in memory what it has."""
        loaded = {name.partition(".")[0] for name in self.assignment.preloaded}
        if self.restricted_server and not loaded.isdisjoint(entry.call for entry in forbidden):
            return self.restricted_server
        return self.server

    def restart(self) -> None:
        """Replace the fork servers, in whatever state they are."""
        old = self.servers
        self.start_servers()  # first: at every moment there is one that would remove the folder
        stop_servers(old, keep_folder=True)
        self.configure_servers()

    def child(
        self,
        forbidden: Iterable[Forbidden] = (),
        limits: Limits | None = None,
        replacements: Iterable[Replacement] = (),
    ) -> AbstractContextManager[Conversation]:
        """A fresh child that holds the submission.

        limits: other ones than the assignment's. replacements: for functions of the submission.
        They run apart where PyTorch, on which they are written, must not be in its memory.
        """
        plan = self.plan(list(forbidden), limits or self.assignment.limits)
        without_torch = "torch" in {entry.call for entry in plan.forbidden}
        plan = msgspec.structs.replace(
            plan,
            replacements=list(replacements),
            replaced_apart=without_torch or "torch" not in self.assignment.libraries,
        )
        return self.started(self.server_for(plan.forbidden), plan)

    def lab_child(self, limits: Limits) -> AbstractContextManager[Conversation]:
        """A fresh child for the cells of a lab: nothing is forbidden, and all code is stand-ins."""
        if self.lab_server is None:
            raise GraderFault(f"{self.assignment.short} has no lab")
        standins = list(self.assignment.lab_standins)
        plan = msgspec.structs.replace(
            self.plan([], limits), packages={}, standins=standins, asked_standins={}
        )
        return self.started(self.lab_server, plan)

    def plan(self, forbidden: list[Forbidden], limits: Limits) -> Plan:
        """The plan of a child that holds the submission."""
        apart = self.assignment.standins if self.assignment.standins_run_apart else ()
        return Plan(
            package=self.assignment.name,
            modules=list(self.assignment.modules),
            packages=self.packages,
            standins=self.standins,
            asked_standins={standin: offered_functions(standin) for standin in apart},
            home=str(self.folder / "homes" / "home"),
            limits=limits,
            forbidden=forbidden,
            uid=self.slot.uid if self.slot else None,
        )

    @contextmanager
    def started(self, server: ForkServerClient, plan: Plan) -> Iterator[Conversation]:
        """A child of that server.

        When the block is left, it and all that it started are killed, and gone before another
        child starts.
        """
        home = Path(plan.home)
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)  # whoever else reads what is there
        conversation = Conversation(ours, reading, plan.limits, plan.forbidden)
        conversation.stubs = ROOT / "assignments" / plan.package
        given = [theirs.fileno(), writing, conversation.arrays.descriptor]
        try:
            _ = self.server.mechanisms  # the first has swept, and will not end this child
            watched = None if server.mechanisms.homes_in_memory else home
            # No server starts anything before the last child is gone, with its stand-ins.
            for other in self.busy - {server}:
                other.settle()
            self.busy = {server}
            conversation.standins = self.standin_starter(plan)
            if conversation.standins:
                given += conversation.standins.descriptors
                self.busy.add(conversation.standins.server)
            started = server.ask({"do": "start", "plan": plan}, given)
        except GraderFault:
            conversation.close()
            raise
        finally:
            theirs.close()
            os.close(writing)
        conversation.watched = watched
        conversation.pid = started["pid"]
        conversation.processes = processor_time(self.busy)
        conversation.limit(plan.limits)
        try:
            yield conversation
        finally:
            try:
                conversation.close()
            finally:
                server.end(started["pid"])

    def standin_starter(self, plan: Plan) -> StandinStarter | None:
        """What starts the stand-ins that a child with this plan asks, once it does."""
        if not plan.asked_standins and not (plan.replacements and plan.replaced_apart):
            return None
        server = self.standin_server or self.server
        _ = server.mechanisms  # ready now: to wait for it later would take test time
        changes = {"standins": [*plan.asked_standins], "asked_standins": {}, "packages": {}}
        home = str(self.folder / "homes" / "standins")
        served = msgspec.structs.replace(
            plan, **changes, home=home, forbidden=[], serves_standins=True
        )
        return StandinStarter(server, served)

    def settle(self) -> None:
        """Wait until no child is left."""
        for server in self.servers:
            server.settle()

    def probe(self, private: list[Path]) -> tuple[Defense, ...]:
        """Try from inside a child what must not be possible, and name what holds."""
        own, devices = self.folder / "private", gpu_files.devices()
        limits = self.assignment.limits
        with listening() as (port, name):
            attempts = Attempts(
                read=[str(path) for path in [own / "secret", *files_among(private)]],
                write_into=[str(path) for path in [own, *private] if path.is_dir()],
                change=list(self.packages.values()),
                connect_to=port,
                abstract=name,
                signal=os.getpid(),
                memory_mb=limits.memory_mb,
                unread=str(unread_file(self.folder / "packages")),
                devices=[] if limits.gpu else [str(device) for device in devices],
            )
            with self.child() as child:
                output = os.dup(child.output)
                child.watched = None  # it is to see for itself how much it can write
                # No student code runs yet, and a busy machine is no reason not to grade.
                child.limit(msgspec.structs.replace(limits, test_seconds=PROBE_SECONDS))
                try:
                    refused = child.ask("probe", msgspec.to_builtins(attempts))
                except ChildFailure as error:
                    raise GraderFault(f"an empty child did not reply ({error})") from None
                child.limit(limits)
                folder = Path(self.packages[self.assignment.name])
                compile_files(folder, self.assignment.files, child)
        self.settle()
        alone = all_exited(output)
        uid = self.slot.uid if self.slot else None
        self.findings = Findings(refused, alone, uid, self.server.mechanisms, bool(devices))
        return defenses_in_force(self.findings, limits)

    def close(self) -> None:
        """End the servers and remove all that was made."""
        stop_servers(self.servers, keep_folder=False)
        if self.slot:
            self.slot.release()
        remove_tree(self.folder)  # if its servers were killed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def processor_time(servers: set[ForkServerClient]) -> GroupTime | ProcessTreeTime:
    """What counts the processor time of children that these servers have just started."""
    files = {server.time_file for server in servers}
    if None in files:
        return ProcessTreeTime(*(server.process.pid for server in servers))
    return GroupTime(file for file in files if file)


def stop_servers(servers: Sequence[ForkServerClient], keep_folder: bool) -> None:
    """End servers, and with them what they have started."""
    for server in servers:
        server.stop(keep_folder)
    groups = set().union(*(server.groups for server in servers))
    remove_groups(groups, patience=EXIT_SECONDS)  # if a server was killed
