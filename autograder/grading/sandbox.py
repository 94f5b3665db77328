"""The sandbox: a fork server, and children of it that run student code out of harm's way."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgpack
import msgspec

from autograder.grading.channel import readable
from autograder.grading.confinement import gpu
from autograder.grading.confinement.cgroups import remove_groups
from autograder.grading.confinement.confine import reachable_by_others
from autograder.grading.confinement.plan import Attempts, Mechanisms, Plan, ServerPlan
from autograder.grading.conversation import Conversation
from autograder.grading.defences import Defence, Findings, defences_in_force
from autograder.grading.placing import compile_files, place_packages
from autograder.grading.slots import free_slot
from common.assignment import ROOT, Assignment, Forbidden, Limits
from common.errors import CourseError, GraderFault
from common.failures import ChildFailure
from common.threads import ONE_THREAD

GONE_SECONDS = 1.0
SERVER_SECONDS = 120
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    **ONE_THREAD,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",  # sets have the same order in every grading
    "PYTHONPATH": str(ROOT),
}


class Sandbox:
    """Runs submissions in children that can compute, and little else; one submission at a time."""

    server_module = "autograder.grading.server"

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.folder = Path(tempfile.mkdtemp(prefix="conv2gpt-"))
        self.folder.chmod(0o711)
        for name, mode in (("homes", 0o711), ("packages", 0o711), ("private", 0o700)):
            (self.folder / name).mkdir()
            (self.folder / name).chmod(mode)  # whatever the umask is
        (self.folder / "private" / "secret").touch(mode=0o600)
        self.packages: dict[str, str] = {}
        self.slot = free_slot(self.folder / "private")
        if self.slot and not reachable_by_others(self.folder):
            raise CourseError(
                f"Student code, as another user, can't enter {self.folder}: "
                "set TMPDIR to a folder that all may enter, such as /tmp."
            )
        self.control, self.process = self.start_server()
        self.mechanisms: Mechanisms | None = None
        self.findings: Findings | None = None

    def admit(
        self, packages: Mapping[str, Path], private: Iterable[Path] = ()
    ) -> tuple[Defence, ...]:
        """Take a submission in, in place of the one before.

        packages: the folders in which `import assignments.X` finds X.
        private: what children must not reach; whether they can is tried, not assumed.
        """
        if not self.mechanisms:
            self.mechanisms = self.wait_until_ready()
        self.packages = place_packages(packages, self.folder / "packages")
        return self.probe(list(private), self.mechanisms)

    def start_server(self) -> tuple[socket.socket, subprocess.Popen]:
        """Start the fork server with nothing of ours in its environment or its descriptors."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, "-sP", "-m", self.server_module, str(theirs.fileno())],
            env=CLEAN_ENVIRONMENT,
            cwd=self.folder,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        ours.settimeout(SERVER_SECONDS)
        plan = ServerPlan(
            libraries=[*self.assignment.preloaded, *self.assignment.standins],
            forbidden=list(self.assignment.forbidden),
            folder=str(self.folder),
            uid=self.slot.uid if self.slot else None,
            memory_mb=self.assignment.limits.memory_mb,
        )
        ours.send(msgpack.packb(msgspec.to_builtins(plan)))
        return ours, process

    def wait_until_ready(self) -> Mechanisms:
        """Wait for the server to have loaded its libraries; what it has of the kernel."""
        try:
            told = self.control.recv(1 << 16)
        except OSError:
            told = b""
        if not told:
            raise GraderFault("The fork server didn't start.")
        return msgspec.convert(msgpack.unpackb(told), Mechanisms)

    def ask_server(self, request: dict, descriptors: Iterable[int] = ()) -> dict:
        """One question to the fork server, and its answer."""
        try:
            socket.send_fds(self.control, [msgpack.packb(request)], list(descriptors))
            answer = msgpack.unpackb(self.control.recv(1 << 16) or b"\x80")
        except OSError as error:
            raise GraderFault(f"the fork server doesn't answer ({error})") from error
        if "pid" not in answer and "status" not in answer:
            raise GraderFault(f"the fork server failed ({answer.get('error', 'it is gone')})")
        return answer

    def restart(self) -> None:
        """Replace the fork server, in whatever state it is."""
        self.stop_server()
        self.control, self.process = self.start_server()
        self.mechanisms = self.wait_until_ready()

    @contextmanager
    def child(
        self, forbidden: Iterable[Forbidden] = (), limits: Limits | None = None
    ) -> Iterator[Conversation]:
        """A fresh child. When the block is left, it and all that it started are dead.

        limits: other ones than the assignment's.
        """
        home = self.folder / "homes" / "home"
        forbidden = list(forbidden)
        plan = Plan(
            package=self.assignment.name,
            modules=list(self.assignment.modules),
            packages=self.packages,
            standins=list(self.assignment.standins),
            home=str(home),
            limits=limits or self.assignment.limits,
            forbidden=forbidden,
            uid=self.slot.uid if self.slot else None,
        )
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        request = {"do": "start", "plan": msgspec.to_builtins(plan)}
        try:
            started = self.ask_server(request, [theirs.fileno(), writing])
        finally:
            theirs.close()
            os.close(writing)
        conversation = Conversation(ours, reading, limits or self.assignment.limits, forbidden)
        if self.mechanisms and not self.mechanisms.homes_in_memory:
            conversation.watched = home
        try:
            yield conversation
        finally:
            conversation.close()
            conversation.ended = self.ask_server({"do": "end", "pid": started["pid"]})

    def probe(self, private: list[Path], mechanisms: Mechanisms) -> tuple[Defence, ...]:
        """Try from inside a child what must not be possible, and name what holds."""
        own, devices = self.folder / "private", gpu.devices()
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
                devices=[] if limits.gpu else [str(device) for device in devices],
            )
            with self.child() as child:
                output = os.dup(child.output)
                try:
                    child.watched = None  # it is to see for itself how much it can write
                    refused = child.ask("probe", msgspec.to_builtins(attempts))
                except ChildFailure as error:
                    raise GraderFault(f"an empty child could not be asked ({error})") from None
                folder = Path(self.packages[self.assignment.name])
                compile_files(folder, self.assignment.files, child)
        alone = all_are_gone(output)
        uid = self.slot.uid if self.slot else None
        self.findings = Findings(refused, alone, uid, mechanisms, bool(devices))
        return defences_in_force(self.findings, limits)

    def stop_server(self) -> None:
        """End the server, and with it what it has started."""
        with suppress(OSError):  # it may be gone
            self.control.send(msgpack.packb({"do": "stop"}))
        self.control.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self.mechanisms:
            remove_groups(map(Path, self.mechanisms.cgroups.values()))  # if it was killed

    def close(self) -> None:
        """End the server and remove all that was made."""
        self.stop_server()
        if self.slot:
            self.slot.release()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def files_among(paths: Iterable[Path]) -> Iterator[Path]:
    """The files named, and one file of each folder named."""
    for path in paths:
        if path.is_file():
            yield path
        elif path.is_dir():
            yield from [item for item in sorted(path.rglob("*")) if item.is_file()][:1]


@contextmanager
def listening() -> Iterator[tuple[int, str]]:
    """A port and an abstract socket of this machine, for a child to reach if it can."""
    name = f"conv2gpt-{os.getpid()}-{threading.get_ident()}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0{name}")
        other.listen()
        yield listener.getsockname()[1], name


def all_are_gone(output: int) -> bool:
    """Whether no process holds that output open any more. Closes it."""
    try:
        while readable([output], GONE_SECONDS):
            if not os.read(output, 1 << 16):
                return True
        return False
    finally:
        os.close(output)
