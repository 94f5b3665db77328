"""Sums the processor time of all processes that fork servers have started, however nested.

A process that ended before it was looked at once isn't counted: where there are control groups,
they bound those, too.
"""

import os
from collections import defaultdict
from contextlib import suppress

TICKS = os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat, counted from what follows the name.
PARENT, USER, SYSTEM, STARTED = 1, 11, 12, 19


class ProcessTreeTime:
    """The time of one child, of everything that it has started, and of its stand-ins."""

    def __init__(self, *servers: int) -> None:
        self.servers = servers
        self.ticks: dict[tuple[int, bytes], int] = {}  # by pid and start: pids are used again

    def seconds(self) -> float:
        """The sum so far. Whose parent has ended belongs to the server, or to the child."""
        children = defaultdict(list)
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError):  # it ended meanwhile
                    fields = fields_of(name)
                    children[int(fields[PARENT])].append((int(name), fields))
        waiting = [*self.servers]
        while waiting:
            for pid, fields in children[waiting.pop()]:
                self.ticks[pid, fields[STARTED]] = int(fields[USER]) + int(fields[SYSTEM])
                waiting.append(pid)
        return sum(self.ticks.values()) / TICKS


def fields_of(pid: str) -> list[bytes]:
    """What /proc/PID/stat says after the name, which may hold anything."""
    descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).rpartition(b")")[2].split()
    finally:
        os.close(descriptor)
