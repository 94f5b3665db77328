"""Reads this machine's processes from /proc: parents, command lines, memory."""

import re
import resource
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process."""

    pid: int
    parent: int
    uid: int
    name: str
    zombie: bool


def read_process(pid: int) -> Process | None:
    """A process, or None once it is gone."""
    with suppress(OSError):
        lines = (PROC / str(pid) / "status").read_text("utf-8", "replace").splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        return Process(
            pid,
            parent=int(status["PPid"]),
            uid=int(status["Uid"].split()[0]),
            name=status["Name"],
            zombie=status["State"].startswith("Z"),
        )
    return None


def process_table() -> dict[int, Process]:
    """Every process, by its number."""
    found = (read_process(int(folder.name)) for folder in PROC.glob("[0-9]*"))
    return {process.pid: process for process in found if process is not None}


def descendants_of(ancestor: int, table: Mapping[int, Process]) -> list[int]:
    """The processes that another one has started, however indirectly."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found, waiting = [], [ancestor]
    while waiting:
        started = children.get(waiting.pop(), [])
        waiting += started
        found += started
    return found


def descendants_running(ancestor: int, word: str) -> list[int]:
    """The descendants of a process whose command line holds a word."""
    return [pid for pid in descendants_of(ancestor, process_table()) if word in command_line(pid)]


def children_of(pid: int) -> list[int]:
    """The children of a process. The kernel lists them: no need to read all processes."""
    with suppress(OSError):
        return [*map(int, (PROC / str(pid) / "task" / str(pid) / "children").read_text().split())]
    return []


def command_line(pid: int) -> str:
    """The command that a process was started as; empty once it is gone."""
    with suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_text("utf-8", "replace").replace("\0", " ")
    return ""


def is_alive(pid: int) -> bool:
    """Whether a process still runs."""
    process = read_process(pid)
    return process is not None and not process.zombie


def address_space_bytes(pid: int) -> int:
    """The address space of a process; OSError once it is gone."""
    return memory_pages(pid)[0] * resource.getpagesize()


def resident_bytes(pid: int) -> int:
    """The memory that a process occupies; OSError once it is gone."""
    return memory_pages(pid)[1] * resource.getpagesize()


def memory_pages(pid: int) -> list[int]:
    """The sizes of a process in pages: address space, resident memory, and others."""
    return [*map(int, (PROC / str(pid) / "statm").read_text().split())]


def reset_peak_memory(pid: int) -> None:
    """Let the peak of a process's memory count from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_memory_mb(pid: int) -> float:
    """The most memory that a process has had since then: its peak resident set."""
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(line) / 1024
