"""Reads the processor time that control groups have used: of living processes, and of dead ones."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class GroupTime:
    """The processor time of all processes in some groups, since this was made."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.files = list(files)
        self.known = 0.0  # the last sum: a group may be gone
        self.before = sum(map(seconds_in, self.files))

    def seconds(self) -> float:
        """The sum so far."""
        with suppress(OSError, ValueError):
            self.known = max(self.known, sum(map(seconds_in, self.files)) - self.before)
        return self.known


def time_file(folders: Iterable[Path]) -> Path | None:
    """The file of a group that counts the time of its processes, in any hierarchy that has one."""
    for folder in folders:
        for file in (folder / "cpuacct.usage", folder / "cpu.stat"):
            with suppress(OSError, ValueError):
                seconds_in(file)
                return file
    return None


def seconds_in(file: Path) -> float:
    """What a group's file says, of version 1 (nanoseconds) or 2 (microseconds, among others)."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = os.read(descriptor, 4096).split()
    finally:
        os.close(descriptor)
    if len(content) == 1:
        return int(content[0]) / 1e9
    return int(content[content.index(b"usage_usec") + 1]) / 1e6
