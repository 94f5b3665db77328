"""Confines a child before it imports student code: uid, limits, mounts, Landlock, seccomp."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.grading.sandbox.kernel import gpu_files, landlock, seccomp
from autograder.grading.sandbox.kernel.child_mounts import ChildMounts
from autograder.grading.sandbox.kernel.closed_folders import open_libraries, reachable_by_others
from autograder.grading.sandbox.kernel.confinement_plan import Plan, ServerPlan
from autograder.grading.sandbox.kernel.namespaces import ProcessTrees
from autograder.grading.sandbox.kernel.rlimits import (
    PROCESSES,
    set_limits,
    tasks_of_this_user,
)
from autograder.grading.sandbox.kernel.syscalls import (
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    open_detached,
    prctl,
    set_read_only,
)
from common.assignment import ROOT
from common.determinism import SAME_ARITHMETIC

SYSTEM = (
    *("/usr/lib", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo"),
    *("/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/zero"),
    # Only how many processors there are: all else of /sys and /proc shows how busy they are.
    *(f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present")),
)
ENVIRONMENT = {
    "PATH": "/nowhere",
    "LANG": "C.UTF-8",
    **SAME_ARITHMETIC,
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Confinement:
    """Prepared once in the fork server, entered by each child."""

    def __init__(self, plan: ServerPlan, trees: ProcessTrees, own_mounts: bool) -> None:
        other_uid = plan.uid is not None
        self.folders = python_folders()
        self.common = Path(plan.common)
        if own_mounts and other_uid:
            with suppress(OSError):  # an old kernel: then imports alone work, by descriptors
                open_libraries(self.folders)
        # Open folders that every child imports from.
        self.folder_descriptors = settle_imports(self.common, other_uid)
        self.mounts = ChildMounts(trees, own_mounts, needs_proc=bool(self.folder_descriptors))
        # Processes are counted by user: without one of its own, a child comes on top of others.
        self.processes = PROCESSES + (0 if other_uid else tasks_of_this_user())
        self.gpus = gpu_files.chosen()
        self.environment: dict[str, str] = {}
        self.rulesets: dict[tuple[Any, ...], int] = {}
        self.has_landlock = bool(landlock.version())
        self.has_filter = seccomp.supported()

    def prepare(self, plan: Plan) -> int | None:
        """The Landlock rules for a plan, where there is Landlock; made once, and kept.

        What can be made before a child is forked is made here: it costs each child less. The
        variables are those of the fork server too, which needs none.
        """
        gpus = self.gpus if plan.limits.gpu else gpu_files.NONE
        environment = {**ENVIRONMENT, "HOME": plan.home, "TMPDIR": plan.home, **gpus}
        if environment != self.environment:
            os.environ.clear()
            os.environ.update(environment)
            self.environment = environment
        if self.has_filter:
            seccomp.in_memory(plan.limits.gpu, plan.uid is not None)
        if not self.has_landlock:
            return None
        # Rules are for the folders around packages and homes: these stay, what is in them doesn't.
        packages = sorted({os.path.dirname(folder) for folder in plan.packages.values()})
        modules = frozenset([entry.call for entry in plan.forbidden])
        key = (plan.limits.gpu, modules, *packages, os.path.dirname(plan.home))
        if key not in self.rulesets:
            readable = [*map(Path, (*SYSTEM, *packages)), self.common]
            readable += [path for folder in self.folders for path in importable(folder, modules)]
            writable = [Path(plan.home).parent, Path("/dev/null")]
            devices = gpu_files.devices() if plan.limits.gpu else []
            readable += gpu_files.readable() if plan.limits.gpu else []
            self.rulesets[key] = landlock.prepare(self.folders, readable, writable, devices)
        return self.rulesets[key]

    def descriptors(self, ruleset: int | None) -> set[int]:
        """What a child must find open. Of the rules only its own: it could add to the others."""
        return (
            {*self.folder_descriptors} if ruleset is None else {*self.folder_descriptors, ruleset}
        )

    def enter(self, plan: Plan, ruleset: int | None) -> None:
        """Become a process that may compute, and little else."""
        os.setsid()
        os.umask(0o077)
        limits = plan.limits
        os.chdir(plan.home)
        set_limits(limits.memory_mb, limits.test_seconds, self.processes, limits.gpu)
        if self.mounts.available:  # drivers of GPUs read more of /proc
            self.mounts.enter(Path(plan.home), hide_processes=not limits.gpu)
        if plan.uid is not None:
            change_uid(plan.uid)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a fork server that is killed takes it along
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        if ruleset is not None:
            landlock.enter(ruleset)
            if plan.uid is None:  # else only its own home is this user's to write to
                devices = gpu_files.devices() if limits.gpu else []
                places = [Path(plan.home), Path("/dev/null"), *devices]
                landlock.enter(landlock.writable_only(places))
        if self.has_filter:
            with suppress(OSError):  # a kernel without seccomp: the probe will say so
                seccomp.restrict(limits.gpu, plan.uid is not None)


def change_uid(uid: int) -> None:
    """Become another user, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # A change of uid hides /proc/self from the process itself; modules are read through it.
    prctl(PR_SET_DUMPABLE, 1)


def python_folders() -> list[Path]:
    """The folders that Python imports from, but for our own root."""
    folders = [Path(entry) for entry in sys.path if entry and Path(entry).is_dir()]
    return [folder for folder in folders if folder.resolve() != ROOT]


def importable(folder: Path, forbidden: frozenset[str]) -> list[Path]:
    """What lies in a folder that Python imports from, without the forbidden packages."""
    return [
        item
        for item in folder.iterdir()
        if item.name != "site-packages" and top_name(item) not in forbidden
    ]


def top_name(item: Path) -> str:
    """The package that an entry of site-packages belongs to: torch for torch-2.13.0.dist-info."""
    return item.name.partition("-")[0].partition(".")[0]


def settle_imports(common: Path, other_uid: bool) -> list[int]:
    """Have children import common/ from a copy, and nothing else from under our root.

    For another user, also let imports work from under a folder that is still closed to others: a
    descriptor opened before the change of uid leads there without passing its parents.
    common: the copy.
    """
    moved = {str(ROOT / "common"): str(common)}
    descriptors: list[int] = []
    # Not the whole of our root: a descriptor of it would lead to the tests.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]
    for folder in python_folders() if other_uid else []:
        if not reachable_by_others(folder.resolve()):
            descriptors.append(folder_descriptor(folder))
            moved[str(folder)] = f"/proc/self/fd/{descriptors[-1]}"

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
    return descriptors


def folder_descriptor(folder: Path) -> int:
    """A descriptor that leads to a folder and, where the kernel lets us, not up from it.

    Where it doesn't, the probe tries whether one can walk up to the tests.
    """
    try:
        descriptor = open_detached(folder)
    except OSError:
        return os.open(folder, os.O_PATH)
    with suppress(OSError):  # a kernel before 5.12: the probe will say so
        set_read_only(descriptor, True)
    return descriptor
