"""Limits memory, processes and processors of all of a child's processes together, with cgroups.

The fork server joins its group once, and children are born into it, which costs them nothing; to
move each child there would make the whole kernel wait.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from autograder.grading.sandbox.kernel.rlimits import PROCESSES

MEMORY, PIDS, CPU = "memory", "pids", "cpu"
CPU_TIME = "cpuacct"  # version 1: counts processor time; in version 2 every group does
# Of every period, in microseconds. It is one processor and a quarter: right code, which has one
# thread, is never held up. Whatever it has, a group counts as one process beside other groups.
CPU_PERIOD, CPU_QUOTA = 100_000, 125_000
# What a child takes of the pages that it shares with the fork server by writing to them.
SHARED_MB = 256


class Group:
    """A control group of our own below the one that we are in, in each hierarchy that lets us."""

    def __init__(self, name: str, memory_mb: int, own: dict[str, Path] | None = None) -> None:
        self.folders: dict[str, Path] = {}
        memory = str((memory_mb + SHARED_MB) * 1024 * 1024)
        bounds = {
            MEMORY: {"memory.max": memory, "memory.swap.max": "0", "memory.limit_in_bytes": memory},
            PIDS: {"pids.max": str(2 * PROCESSES)},
            CPU: {
                "cpu.max": f"{CPU_QUOTA} {CPU_PERIOD}",
                "cpu.cfs_period_us": str(CPU_PERIOD),
                "cpu.cfs_quota_us": str(CPU_QUOTA),
            },
            CPU_TIME: {},
        }
        for controller, folder in (own_groups() if own is None else own).items():
            made = folder / name
            try:
                enable(folder, controller)
                made.mkdir(exist_ok=True)
                write_some(made, bounds[controller])
                (made / "cgroup.procs").write_text(str(os.getpid()))
            except OSError:
                if made not in self.folders.values():
                    remove_groups([made], os.getpid())
            else:
                self.folders[controller] = made

    def leave(self) -> None:
        """Go back to where we were, and remove the groups."""
        remove_groups(set(self.folders.values()), os.getpid())


def write_some(folder: Path, bounds: dict[str, str]) -> None:
    """Write those bounds that this version of control groups knows; if any, there must be one."""
    known = [name for name in bounds if (folder / name).exists()]
    if bounds and not known:
        raise FileNotFoundError(folder)
    for name in known:
        (folder / name).write_text(bounds[name])


def remove_groups(
    folders: Iterable[Path], leaving: int | None = None, patience: float = 0.0
) -> None:
    """Remove groups; first, a process that leaves them.

    patience: the seconds to wait for processes that were killed and have not died yet.
    """
    end = time.monotonic() + patience
    for folder in folders:
        with suppress(OSError):
            if leaving is not None:
                (folder.parent / "cgroup.procs").write_text(str(leaving))
        with suppress(OSError):
            while is_busy(folder) and time.monotonic() < end:
                time.sleep(0.01)
            folder.rmdir()


def is_busy(folder: Path) -> bool:
    """Whether a process is in a group; a dead one that nobody has noticed yet is not."""
    processes = folder / "cgroup.procs"
    return processes.exists() and bool(processes.read_text())


def enable(folder: Path, controller: str) -> None:
    """Version 2: let groups below this one have the controller."""
    control = folder / "cgroup.subtree_control"
    if control.exists() and controller not in control.read_text().split():
        control.write_text(f"+{controller}")


def own_groups(
    proc: Path = Path("/proc/self"), controllers: Iterable[str] = (MEMORY, PIDS, CPU, CPU_TIME)
) -> dict[str, Path]:
    """The folders of the groups that this process is in, by controller."""
    try:
        lines = [line.split(":", 2) for line in (proc / "cgroup").read_text().splitlines()]
        mounts = list(cgroup_mounts((proc / "mountinfo").read_text()))
    except (OSError, ValueError):
        return {}
    places = {name: path for _, names, path in lines for name in names.split(",")}
    found = {}
    for kind, options, root, target in mounts:
        for controller in controllers:
            if kind == "cgroup" and controller in options:
                path = places.get(controller)
            elif kind == "cgroup2" and has(target, controller):
                path = places.get("")
            else:
                continue
            if path is not None:
                inside = path.removeprefix(root.rstrip("/")).lstrip("/")
                found[controller] = target / inside
    return found


def cgroup_mounts(text: str) -> Iterator[tuple[str, list[str], str, Path]]:
    """Kind, options, root and mount point of each cgroup mount."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = [*after.split(" ", 2), "", ""][:3]
        if kind in ("cgroup", "cgroup2"):
            fields = before.split()
            yield kind, options.split(","), fields[3], Path(fields[4])


def has(folder: Path, controller: str) -> bool:
    """Version 2: whether the hierarchy has that controller."""
    try:
        return controller in (folder / "cgroup.controllers").read_text().split()
    except OSError:
        return False
