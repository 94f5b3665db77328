"""Measures the cores and memory available here, including a container's limits."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from autograder.grading.sandbox.kernel.cgroups import MEMORY, own_groups

CPU = "cpu"


def cores(proc: Path = Path("/proc/self")) -> int:
    """The cores that this process may use at once."""
    count = len(os.sched_getaffinity(0))
    return max(1, min([count, *(math.ceil(share) for share in shares_of_cores(proc))]))


def shares_of_cores(proc: Path) -> Iterator[float]:
    """How many cores each control group that we are in may use, where it is bounded."""
    for group in groups_above(proc, CPU):
        older = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = words_of(group / "cpu.max") or [w for name in older for w in words_of(group / name)]
        if len(words) == 2 and all(map(str.isdecimal, words)):  # without a bound: "max", or "-1"
            yield int(words[0]) / int(words[1])


def available_megabytes(
    meminfo: Path = Path("/proc/meminfo"), proc: Path = Path("/proc/self")
) -> int:
    """The memory that is free, or would be if asked for."""
    free = [int(line.split()[1]) for line in lines_of(meminfo) if line.startswith("MemAvailable:")]
    return min([count * 1024 for count in free] + [*memory_left(proc)], default=0) // 2**20


def memory_left(proc: Path) -> Iterator[int]:
    """The bytes that each control group that we are in may still take, where it is bounded.

    What it holds of files can be given up, so it counts as free.
    """
    for group in groups_above(proc, MEMORY):
        for limit, usage in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, taken = words_of(group / limit), words_of(group / usage)
            if most and taken and most[0].isdecimal():
                fields = map(str.split, lines_of(group / "memory.stat"))
                of_files = [int(line[1]) for line in fields if line[0].endswith("inactive_file")]
                yield max(0, int(most[0]) - int(taken[0]) + max(of_files, default=0))


def groups_above(proc: Path, controller: str) -> Iterator[Path]:
    """The control group that we are in, and those around it, as far as they can be seen."""
    own = own_groups(proc, (controller,)).get(controller)
    while own is not None and (own / "cgroup.procs").exists():
        yield own
        own = own.parent


def words_of(file: Path) -> list[str]:
    """The words in a file; none if it can't be read."""
    return [word for line in lines_of(file) for word in line.split()]


def lines_of(file: Path) -> list[str]:
    """The lines of a file; none if it can't be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
