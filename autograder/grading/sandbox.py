"""The sandbox: a fork server, and children of it that run student code out of harm's way."""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgpack
import msgspec

from autograder.grading.confinement import landlock, seccomp
from autograder.grading.confinement.confine import reachable_by_others
from autograder.grading.confinement.plan import Attempts, Plan, ServerPlan
from autograder.grading.confinement.probe import FILES, NETWORK, PROGRAMS, RESULTS
from autograder.grading.conversation import Conversation
from autograder.grading.slots import free_slot
from common.assignment import ROOT, Assignment, Forbidden, Limits
from common.errors import CourseError, GraderFault
from common.failures import ChildFailure
from common.threads import ONE_THREAD

SERVER_SECONDS = 120
# The head of a .pyc file that Python doesn't compare with its source: a flag, and no hash.
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)
CLEAN_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    **ONE_THREAD,
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(ROOT),
}


@dataclass(frozen=True)
class Defence:
    """One thing that student code can't do here, and what prevents it."""

    name: str
    holds: bool
    means: str
    floor: bool = False  # without it, a result means nothing

    def __str__(self) -> str:
        return f"{self.name}: {self.means if self.holds else 'not protected'}"


class Sandbox:
    """Runs submissions in children that can compute, and little else; one submission at a time."""

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
        self.ready = False
        self.own_tree = False

    def admit(
        self, packages: Mapping[str, Path], private: Iterable[Path] = ()
    ) -> tuple[Defence, ...]:
        """Take a submission in, in place of the one before.

        packages: the folders in which `import assignments.X` finds X.
        private: what children must not reach; whether they can is tried, not assumed.
        """
        if not self.ready:
            self.wait_until_ready()
        for old in (self.folder / "packages").iterdir():
            shutil.rmtree(old)
        self.packages = {name: self.copy_package(name, path) for name, path in packages.items()}
        return self.probe(list(private))

    def copy_package(self, name: str, source: Path) -> str:
        """Put the files of a package where children can read them."""
        target = self.folder / "packages" / name
        shutil.copytree(source, target)
        for path in [target, *target.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return str(target)

    def start_server(self) -> tuple[socket.socket, subprocess.Popen]:
        """Start the fork server with nothing of ours in its environment or its descriptors."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, "-sP", "-m", "autograder.grading.server", str(theirs.fileno())],
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
            other_uid=self.slot is not None,
        )
        ours.send(msgpack.packb(msgspec.to_builtins(plan)))
        return ours, process

    def wait_until_ready(self) -> None:
        """Wait for the server to have loaded its libraries."""
        try:
            self.ready = bool(self.control.recv(1 << 16))
        except TimeoutError:
            self.ready = False
        if not self.ready:
            raise CourseError("The fork server didn't start.")

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
        self.wait_until_ready()

    @contextmanager
    def child(
        self, forbidden: Iterable[Forbidden] = (), limits: Limits | None = None
    ) -> Iterator[Conversation]:
        """A fresh child. When the block is left, it and all that it started are dead.

        limits: other ones than the assignment's.
        """
        home = Path(tempfile.mkdtemp(dir=self.folder / "homes"))
        uid = self.slot.uid if self.slot else None
        if uid is not None:
            os.chown(home, uid, uid)
        forbidden = list(forbidden)
        plan = Plan(
            package=self.assignment.name,
            modules=list(self.assignment.modules),
            packages=self.packages,
            standins=list(self.assignment.standins),
            home=str(home),
            limits=limits or self.assignment.limits,
            forbidden=forbidden,
            uid=uid,
        )
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        request = {"do": "start", "plan": msgspec.to_builtins(plan)}
        try:
            started = self.ask_server(request, [theirs.fileno(), writing])
        finally:
            theirs.close()
            os.close(writing)
        self.own_tree = bool(started["own_tree"])
        conversation = Conversation(ours, reading, limits or self.assignment.limits, forbidden)
        try:
            yield conversation
        finally:
            conversation.close()
            conversation.ended = self.ask_server({"do": "end", "pid": started["pid"]})
            shutil.rmtree(home, ignore_errors=True)

    def probe(self, private: list[Path]) -> tuple[Defence, ...]:
        """Try from inside a child what must not be possible, and name what holds."""
        own = self.folder / "private"
        with socket.create_server(("127.0.0.1", 0)) as listener, self.child() as child:
            attempts = Attempts(
                read=[str(path) for path in [own / "secret", *files_among(private)]],
                write_into=[str(path) for path in [own, *private] if path.is_dir()],
                connect_to=listener.getsockname()[1],
            )
            try:
                refused = child.ask("probe", *msgspec.to_builtins(attempts).values())
            except ChildFailure as error:
                raise GraderFault(f"an empty child could not be asked ({error})") from None
            self.compile_files(child)
        files = [f"uid {self.slot.uid}"] if self.slot else []
        files += [f"Landlock {landlock.version()}"] if landlock.version() else []
        calls = "system call filter" if seccomp.supported() else "Landlock"
        return (
            Defence("tests and metadata can't be read", refused[FILES], ", ".join(files), True),
            Defence("results can't be written", refused[RESULTS], ", ".join(files), True),
            Defence("no network", refused[NETWORK], calls),
            Defence("no other programs", refused[PROGRAMS], calls),
            Defence("nothing outlives a test", True, "pid namespace" if self.own_tree else "sweep"),
            Defence("limits", True, f"{self.assignment.limits.memory_mb} MB for each test"),
        )

    def compile_files(self, child: Conversation) -> None:
        """Have the submission compiled once, by a child that runs nothing of it, for all others.

        The bytecode goes to where Python looks for it. Here it is bytes, and is never loaded.
        """
        folder = Path(self.packages[self.assignment.name])
        (folder / "__pycache__").mkdir(exist_ok=True)
        (folder / "__pycache__").chmod(0o755)
        for file in self.assignment.files:
            # What doesn't compile is reported by the tests, each in its own words.
            with suppress(Exception):
                code = child.ask("compile", file)
                target = Path(importlib.util.cache_from_source(str(folder / file)))
                target.write_bytes(importlib.util.MAGIC_NUMBER + UNCHECKED + code)
                target.chmod(0o644)

    def stop_server(self) -> None:
        """End the server, and with it what it has started."""
        self.control.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

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
