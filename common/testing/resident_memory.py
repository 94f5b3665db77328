"""Measures how much memory the process of student code takes for a call, by the kernel's count."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.student_code.values import Handle

RESET_PEAK = "5"  # what clear_refs calls it


def resident_peak(student: Handle, action: Callable[[], Any]) -> tuple[Any, int | None]:
    """Do something; its result, and the bytes that it added to the process at the peak.

    Nothing in that process takes part in the count. None where the kernel doesn't say, and in a
    student's own run, where tests and code share a process. Memory that was freed before may be
    used again and isn't counted; blocks of more than 32 MB are always new.
    """
    if student._face.pid is None:
        return action(), None
    process = Path("/proc") / str(student._face.pid)
    try:
        (process / "clear_refs").write_text(RESET_PEAK)
        before = resident_bytes(process, "VmRSS")
    except OSError:
        return action(), None
    result = action()
    return result, resident_bytes(process, "VmHWM") - before


def resident_bytes(process: Path, which: str) -> int:
    """A figure of /proc/PID/status."""
    lines = (process / "status").read_text().splitlines()
    (found,) = (line for line in lines if line.startswith(f"{which}:"))
    return 1024 * int(found.split()[1])
