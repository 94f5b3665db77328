"""Resource limits of a child."""

import resource
from contextlib import suppress
from pathlib import Path

PROCESSES = 64
FILE_BYTES = 32 * 1024 * 1024
DESCRIPTORS = 128


def set_limits(memory_mb: int, cpu_seconds: float, processes: bool) -> None:
    """Bound memory, CPU time, processes, files and descriptors, for good."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    bounds = {
        resource.RLIMIT_AS: mapped + memory_mb * 1024 * 1024,
        resource.RLIMIT_CPU: int(cpu_seconds) + 1,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: DESCRIPTORS,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    if processes:  # counted by uid, so only where the uid is the child's own
        bounds[resource.RLIMIT_NPROC] = PROCESSES
    for limit, value in bounds.items():
        with suppress(ValueError, OSError):  # an outer limit may already be lower
            resource.setrlimit(limit, (value, value))
