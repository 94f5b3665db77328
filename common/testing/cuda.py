"""Everything that needs a GPU: detection, synchronization, peak memory, clocks."""

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

QUERY = "clocks.sm,clocks.max.sm,clocks_throttle_reasons.active,temperature.gpu"
# Bits of NVIDIA's clocks_throttle_reasons that slow a GPU down. Others mean that it has no work,
# or that someone has set its clock.
THROTTLING = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


@dataclass(frozen=True)
class Clocks:
    """What nvidia-smi says of a GPU. None stands for what it doesn't know."""

    megahertz: int | None
    highest_megahertz: int | None
    throttled_by: tuple[str, ...] | None
    celsius: int | None

    def __str__(self) -> str:
        parts = []
        if self.megahertz is not None and self.highest_megahertz is not None:
            parts.append(f"{self.megahertz} of {self.highest_megahertz} MHz")
        if self.throttled_by is not None:
            parts.append("throttled: " + (", ".join(self.throttled_by) or "no"))
        if self.celsius is not None:
            parts.append(f"{self.celsius} C")
        return "; ".join(parts)


def load_torch() -> Any:
    """PyTorch, only now: assignments in NumPy don't wait for it."""
    return importlib.import_module("torch")


def available() -> bool:
    """Whether there is a GPU here that PyTorch can use."""
    try:
        return bool(load_torch().cuda.is_available())
    except ModuleNotFoundError:
        return False


def device_name() -> str:
    """What the GPU is called."""
    return load_torch().cuda.get_device_name()


def synchronize() -> None:
    """Wait until the GPU has done all that it was given, if one is in use at all."""
    torch = sys.modules.get("torch")
    gpu = torch.cuda if torch is not None else None
    if gpu is not None and gpu.is_initialized():
        gpu.synchronize()


def peak_memory(function: Callable[[], object]) -> int:
    """Call a function; the bytes of tensors on the GPU at the peak, beyond those from before."""
    gpu = load_torch().cuda
    gpu.synchronize()  # also starts what keeps the counts
    before = gpu.memory_stats()["allocated_bytes.all.current"]
    gpu.reset_peak_memory_stats()
    function()
    synchronize()
    return gpu.memory_stats()["allocated_bytes.all.peak"] - before


def clocks() -> Clocks | None:
    """The state of the first GPU; None where there is no nvidia-smi to ask."""
    command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader"]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_clocks(finished.stdout)


def parse_clocks(text: str) -> Clocks | None:
    """The first line of nvidia-smi's answer to QUERY; None if it is no such line."""
    fields = [field.strip() for field in text.partition("\n")[0].split(",")]
    if len(fields) != len(QUERY.split(",")):
        return None
    bits = int(fields[2], 16) if re.fullmatch(r"0x[0-9a-fA-F]+", fields[2]) else None
    reasons = (
        None if bits is None else tuple(name for bit, name in THROTTLING.items() if bits & bit)
    )
    megahertz, highest, celsius = (leading_number(fields[n]) for n in (0, 1, 3))
    return Clocks(megahertz, highest, reasons, celsius)


def leading_number(field: str) -> int | None:
    """The number that a field begins with: 1410 for "1410 MHz", None for "[N/A]"."""
    found = re.match(r"\d+", field)
    return int(found[0]) if found else None
