"""Puts all defences on the calling process, for good, before student code is imported."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from autograder.grading.confinement import landlock, seccomp
from autograder.grading.confinement.kernel import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, prctl
from autograder.grading.confinement.limits import set_limits
from autograder.grading.confinement.plan import Plan
from common.assignment import ROOT

SYSTEM = ("/usr/lib", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo")
SYSTEM += ("/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu")
SYSTEM += ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/dev/urandom", "/dev/zero")
ENVIRONMENT = {
    "PATH": "/nowhere",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def confine(plan: Plan) -> None:
    """Become a process that may compute, and little else."""
    os.setsid()
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(ENVIRONMENT, HOME=plan.home, TMPDIR=plan.home)
    sys.dont_write_bytecode = True
    ruleset = None
    if landlock.version():
        writable = [Path(plan.home), Path("/dev/null")]
        ruleset = landlock.prepare(python_folders(), readable_paths(plan), writable)
    if plan.uid is not None:
        open_unreachable_folders()
    os.chdir(plan.home)
    set_limits(plan.limits.memory_mb, plan.limits.test_seconds, processes=plan.uid is not None)
    if plan.uid is not None:
        os.setgroups([])
        os.setresgid(plan.uid, plan.uid, plan.uid)
        os.setresuid(plan.uid, plan.uid, plan.uid)
        # A change of uid hides /proc/self from the process itself; modules are read through it.
        prctl(PR_SET_DUMPABLE, 1)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        landlock.enter(ruleset)
    if seccomp.supported():
        with suppress(OSError):  # a kernel without seccomp: the probe will say so
            seccomp.restrict()


def readable_paths(plan: Plan) -> list[Path]:
    """What a child may read: Python, its libraries but the forbidden ones, common/, its own files."""
    forbidden = {entry.call for entry in plan.forbidden}
    paths = [Path(path) for path in (*SYSTEM, *plan.packages.values())] + [ROOT / "common"]
    for entry in python_folders():
        if entry.name == "site-packages":
            paths += [item for item in entry.iterdir() if top_name(item) not in forbidden]
        else:
            paths += [item for item in entry.iterdir() if item.name != "site-packages"]
    return paths


def top_name(item: Path) -> str:
    """The package that an entry of site-packages belongs to: torch for torch-2.13.0.dist-info."""
    return item.name.partition("-")[0].partition(".")[0]


def python_folders() -> list[Path]:
    """The folders that Python imports from, but for our own root."""
    folders = [Path(entry) for entry in sys.path if entry and Path(entry).is_dir()]
    return [folder for folder in folders if folder.resolve() != ROOT]


def open_unreachable_folders() -> None:
    """Let imports work after the change of uid, even from under a folder that others can't enter.

    A descriptor opened before the change leads to the folder without passing its parents.
    """
    moved: dict[str, str] = {}
    for folder in [*python_folders(), ROOT]:
        if not reachable_by_others(folder.resolve()):
            descriptor = os.open(folder, os.O_PATH)
            moved[str(folder)] = f"/proc/self/fd/{descriptor}"

    def new_place(path: str) -> str:
        for old, new in moved.items():
            if path == old or path.startswith(old + "/"):
                return new + path.removeprefix(old)
        return path

    sys.path[:] = [new_place(entry) for entry in sys.path]
    for module in list(sys.modules.values()):
        path = getattr(module, "__path__", None)
        if isinstance(path, list):
            path[:] = [new_place(entry) for entry in path]
    sys.path_importer_cache.clear()


def reachable_by_others(folder: Path) -> bool:
    """Whether any user may enter the folder and all above it."""
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))
