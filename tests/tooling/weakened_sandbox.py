"""Sandboxes with some defenses removed, to show that each defense is needed."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from autograder.grading.sandbox import fork_client
from autograder.grading.sandbox.defenses import Defense
from autograder.grading.sandbox.kernel import landlock

KERNEL = "autograder.grading.sandbox.kernel"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="a child's own uid needs root")
# Lines that a fork server runs before anything else.
NO_LANDLOCK = "landlock.version = lambda: 0\n"
NO_FILTER = "seccomp.supported = lambda: False\n"
# Flags that the kernel refuses.
NO_TREES = "namespaces.NEW_PID = 1 << 31\n"
NO_OWN_NETWORK = "namespaces.NEW_NETWORK = 1 << 31\n"
NO_OWN_IPC = "namespaces.NEW_IPC = 1 << 31\n"
NO_OWN_MOUNTS = "namespaces.NEW_MOUNT = 1 << 31\n"
NO_GROUPS = "cgroups.own_groups = dict\n"
NO_LIMITS = "rlimits.resource.setrlimit = lambda *bounds: None\n"
NO_DEATH_SIGNAL = "syscalls.PR_SET_PDEATHSIG = 3\n"  # an option that changes nothing


@contextmanager
def weakened(folder: Path, *patches: str) -> Iterator[None]:
    """Sandboxes whose fork servers run those lines first."""
    sitecustomize(folder, *patches)
    environment = fork_client.CLEAN_ENVIRONMENT
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setitem(environment, "PYTHONPATH", f"{folder}:{environment['PYTHONPATH']}")
        if NO_LANDLOCK in patches:
            monkeypatch.setattr(landlock, "version", lambda: 0)
        yield


def sitecustomize(folder: Path, *patches: str) -> None:
    """Let a Python that has the folder in its path run those lines first."""
    # System calls and namespaces first: others take names from them when they are imported.
    lines = []
    for patch in sorted(patches, key=lambda line: not line.startswith(("syscalls", "namespaces"))):
        module, _, name = patch.partition(" = ")[0].partition(".")
        attrgetter(name)(import_module(f"{KERNEL}.{module}"))  # else it would weaken nothing
        lines.append(f"from {KERNEL} import {module}\n{patch}")
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text("".join(lines))


def said(defenses: Iterable[Defense]) -> dict[str, str]:
    """What a result says of each defense."""
    return {defense.name: str(defense).partition(": ")[2] for defense in defenses}
