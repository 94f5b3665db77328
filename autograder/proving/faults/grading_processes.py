"""Finds the processes and folders of a running grading, to inject faults into them."""

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading.sandbox.kernel.namespaces import NEW_MOUNT, attempt
from autograder.grading.sandbox.kernel.syscalls import mount, unmount
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.proving.faults.fault_injector import kill
from autograder.proving.process_table import children_of, command_line

RECURSIVE, SLAVE, DETACH, REMOUNT, READ_ONLY = 1 << 14, 1 << 19, 1 << 1, 1 << 5, 1
DISK_BYTES = 4 * 1024 * 1024  # common/ is copied there, and compiled
RESULTS = "results.json"
SERVER = Sandbox.server_module


@dataclass
class RunningGrading:
    """One grading that is under way."""

    folder: Path  # with results/ and scratch/, each a small disk of its own where that is allowed
    judge: int  # the process
    own_disks: bool
    start: float  # by the monotonic clock
    servers: set[int] = field(default_factory=set)  # every fork server that was seen
    ended: bool = False  # whether the judge has

    @property
    def progress(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self.start

    @property
    def out(self) -> Path:
        """The file that must be complete at every moment."""
        return self.folder / "results" / RESULTS

    @property
    def scratch(self) -> Path:
        """Where the judge makes its folders."""
        return self.folder / "scratch"

    def server(self) -> int | None:
        """The fork server, once it runs."""
        for process in children_of(self.judge):
            if SERVER in command_line(process):
                self.servers.add(process)
                return process
        return None

    def child(self) -> int | None:
        """The process of student code, if there is one now."""
        server = self.server()
        return next(iter(children_of(server)), None) if server else None

    def fill_disk(self, place: Path) -> None:
        """Leave no room there. Without a disk of its own, files of the judge stay short."""
        if not self.own_disks:
            resource.prlimit(self.judge, resource.RLIMIT_FSIZE, (64, 64))
            return
        with suppress(OSError), (place / "ballast").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))

    def make_read_only(self, place: Path) -> None:
        """Let nothing be written there."""
        if self.own_disks:
            mount("tmpfs", place, REMOUNT | READ_ONLY)
        elif os.getuid():
            place.chmod(0o500)
        else:
            self.fill_disk(place)

    def remove(self) -> None:
        """End the processes that are left, and unmount the disks."""
        if not self.ended:
            kill(self.judge)
            os.waitpid(self.judge, 0)
        for process in self.servers:
            # By now its number may be another process's.
            if SERVER in command_line(process):
                kill(process)
        for place in (self.out.parent, self.scratch):
            if self.own_disks:
                with suppress(OSError):
                    unmount(place, DETACH)


def own_mounts() -> bool:
    """Whether this process can have disks that nobody else sees. It then has, from now on."""
    if not attempt(NEW_MOUNT):
        return False
    try:
        mount("none", Path("/"), RECURSIVE | SLAVE)
    except OSError:
        return False
    return True


def make_folders(folder: Path, own_disks: bool) -> None:
    """The folders of a grading."""
    folder.mkdir()
    folder.chmod(0o711)
    for name in ("results", "scratch"):
        (folder / name).mkdir()
        if own_disks:
            mount("tmpfs", folder / name, 0, f"size={DISK_BYTES},mode=711")
        (folder / name).chmod(0o711)
