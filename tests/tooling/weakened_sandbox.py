"""Sandboxes with defences taken away, to show what the others hold and that each is needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from autograder.grading.sandbox import fork_client
from autograder.grading.sandbox.kernel import landlock

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
    folder.mkdir(exist_ok=True)
    # System calls and namespaces first: others take names from them when they are imported.
    lines = sorted(patches, key=lambda patch: not patch.startswith(("syscalls.", "namespaces.")))
    modules = [patch.partition(".")[0] for patch in lines]
    (folder / "sitecustomize.py").write_text(
        "".join(
            f"from autograder.grading.sandbox.kernel import {module}\n{line}"
            for module, line in zip(modules, lines, strict=True)
        )
    )
