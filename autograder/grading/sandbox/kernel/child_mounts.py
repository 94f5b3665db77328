"""Gives each child mounts of its own: all read-only but its home, /proc without other processes.

Reading through a read-only mount changes no access time, so no later submission can see from one
what an earlier one has read.
"""

import os
from pathlib import Path

from autograder.grading.sandbox.kernel.namespaces import NEW_MOUNT, ProcessTrees
from autograder.grading.sandbox.kernel.syscalls import mount, set_read_only, unshare

PROC = Path("/proc")
# What a child finds at /proc: itself alone, or nothing. Where neither works, all stays as it is.
OWN_PROCESSES, NOTHING = ("proc", "subset=pid"), ("tmpfs", "size=4k,mode=555")


class ChildMounts:
    """Read-only mounts, where the kernel allows them; tried when the fork server starts."""

    def __init__(self, trees: ProcessTrees, own_mounts: bool, needs_proc: bool) -> None:
        """own_mounts: whether this process has left the machine's mount namespace.

        needs_proc: whether children import through /proc/self/fd.
        """
        self.proc: tuple[str, str] | None = NOTHING
        if trees.available:
            self.proc = OWN_PROCESSES
        elif needs_proc:
            self.proc = None
        self.available = own_mounts and self.works(trees)

    def works(self, trees: ProcessTrees) -> bool:
        """Whether a process can have such mounts: tried by one that is not needed afterwards."""
        tried = trees.fork()
        if tried == 0:
            status = 1
            try:
                self.enter(None, hide_processes=True)
                status = 0
            finally:
                os._exit(status)
        return os.waitpid(tried, 0)[1] == 0

    def enter(self, home: Path | None, hide_processes: bool) -> None:
        """Leave this process, and all that it starts, only its home to write to."""
        unshare(NEW_MOUNT)
        if hide_processes and self.proc:
            kind, options = self.proc
            mount(kind, PROC, 0, options)
        set_read_only(Path("/"), True)
        if home is not None:
            set_read_only(home, False)
