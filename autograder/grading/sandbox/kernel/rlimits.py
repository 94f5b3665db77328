"""Limits memory, CPU time, processes, file size and descriptors of one process, with rlimits."""

import os
import resource
from contextlib import suppress
from pathlib import Path

PROCESSES = 64
FILE_BYTES = 32 * 1024 * 1024
DESCRIPTORS = 128
FIRST_OOM_VICTIM = b"1000"


def set_limits(memory_mb: int, cpu_seconds: float, processes: int, gpu: bool = False) -> None:
    """Bound memory, CPU time, processes of this user, files and descriptors, for good.

    With a GPU, addresses can't be bounded: CUDA reserves more than any machine has. What can be
    written to in private is bounded instead.
    """
    mapped = pages_of_this_process()[5 if gpu else 0] * resource.getpagesize()
    bounds = {
        resource.RLIMIT_DATA if gpu else resource.RLIMIT_AS: mapped + memory_mb * 1024 * 1024,
        resource.RLIMIT_CPU: int(cpu_seconds) + 1,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: DESCRIPTORS,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NPROC: processes,
    }
    for limit, value in bounds.items():
        with suppress(ValueError, OSError):  # an outer limit may already be lower
            resource.setrlimit(limit, (value, value))
    with suppress(OSError):  # where memory runs out, the child is to die, and not the judge
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(descriptor, FIRST_OOM_VICTIM)
        finally:
            os.close(descriptor)


def pages_of_this_process() -> list[int]:
    """Its memory in pages: all, resident, shared, code, nothing, data, nothing."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return list(map(int, os.read(descriptor, 256).split()))
    finally:
        os.close(descriptor)


def tasks_of_this_user() -> int:
    """How many processes and threads the user has who runs this."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if folder.stat().st_uid == os.getuid():
                count += len(os.listdir(folder / "task"))
    return count
