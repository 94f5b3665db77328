"""Sums the processor time of all processes that fork servers have started, however nested.

For where no control group counts it. A process whose parent doesn't wait for it, and that ended
before it was looked at once, isn't counted.
"""

import os
from collections import defaultdict
from contextlib import suppress

TICKS = os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat, counted from what follows the name. A process's children are those that have
# ended and that it has waited for, with theirs.
PARENT, USER, SYSTEM, CHILDRENS_USER, CHILDRENS_SYSTEM, STARTED = 1, 11, 12, 13, 14, 19


class ProcessTreeTime:
    """The time of one child, of everything that it has started, and of its stand-ins."""

    def __init__(self, *servers: int) -> None:
        self.servers = servers
        self.ticks: dict[tuple[int, bytes], int] = {}  # by pid and start: pids are used again
        self.before = self.waited_for()
        self.known = 0

    def seconds(self) -> float:
        """The sum so far. Whose parent has ended belongs to the server, or to the child.

        Two sums miss different processes: what was seen of each misses those that lived between two
        looks, and what parents have waited for misses those that nobody waits for.
        """
        children = defaultdict(list)
        for name in os.listdir("/proc"):
            if name.isdigit():
                with suppress(OSError):  # it ended meanwhile
                    fields = fields_of(name)
                    children[int(fields[PARENT])].append((int(name), fields))
        waiting = [*self.servers]
        waited_for = self.waited_for() - self.before
        while waiting:
            for pid, fields in children[waiting.pop()]:
                own = int(fields[USER]) + int(fields[SYSTEM])
                self.ticks[pid, fields[STARTED]] = own
                waited_for += own + int(fields[CHILDRENS_USER]) + int(fields[CHILDRENS_SYSTEM])
                waiting.append(pid)
        self.known = max(self.known, waited_for, sum(self.ticks.values()))
        return self.known / TICKS

    def waited_for(self) -> int:
        """The ticks of what the servers have started, and have seen end."""
        ticks = 0
        for server in self.servers:
            with suppress(OSError):  # it was killed
                fields = fields_of(str(server))
                ticks += int(fields[CHILDRENS_USER]) + int(fields[CHILDRENS_SYSTEM])
        return ticks


def fields_of(pid: str) -> list[bytes]:
    """What /proc/PID/stat says after the name, which may hold anything."""
    descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).rpartition(b")")[2].split()
    finally:
        os.close(descriptor)
