"""Lists the GPU device files, which a child may open only if its run asked for a GPU."""

import os
from pathlib import Path

DEVICES = ("dev/nvidia*", "dev/nvidia-caps/*", "dev/dri/renderD*", "dev/kfd")
READABLE = (
    *("proc/cpuinfo", "proc/meminfo", "sys/devices/system/cpu"),
    *("proc/driver/nvidia", "proc/devices", "proc/sys/vm/mmap_min_addr"),
    *(
        "sys/devices/system/node",
        "sys/bus/pci/devices",
        "sys/module/nvidia",
        "sys/module/nvidia_uvm",
    ),
    *("sys/class/drm", "sys/class/kfd", "usr/share/nvidia", "etc/nvidia"),
)
# PyTorch then finds no GPU, and says so, instead of failing at the first use of one.
NONE = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


def devices(root: Path = Path("/")) -> list[Path]:
    """The devices to open, write to and control. None where there is no GPU."""
    found = {path for pattern in DEVICES for path in root.glob(pattern) if not path.is_dir()}
    return sorted(found)


def readable(root: Path = Path("/")) -> list[Path]:
    """What drivers read of the machine."""
    return [root / name for name in READABLE if (root / name).exists()]


def chosen() -> dict[str, str]:
    """The GPUs that this process was given, where someone has chosen among them."""
    return {name: os.environ[name] for name in NONE if name in os.environ}
