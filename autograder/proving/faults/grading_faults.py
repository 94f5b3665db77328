"""The faults: each a thing that goes wrong on a machine, at a moment that chance has chosen."""

import os
import random
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.sandbox.kernel.cgroups import MEMORY, own_groups
from autograder.grading.sandbox.user_ids import COUNT, FIRST_UID
from autograder.proving.faults.grading_processes import Scene

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Fault:
    """One kind. `strike` says whether it could be done now; if not, it is tried again soon."""

    name: str
    strike: Callable[[Scene, random.Random], bool]
    clock: bool = False  # whether the judge's clock jumps from the start


def kill_child(scene: Scene, rng: random.Random) -> bool:
    return kill(scene.child())


def kill_server(scene: Scene, rng: random.Random) -> bool:
    return kill(scene.server())


def kill_judge(scene: Scene, rng: random.Random) -> bool:
    scene.server()  # seen, so that it can be looked for afterwards
    return kill(scene.judge)


def kill(process: int | None) -> bool:
    if process is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    return True


def fill_results(scene: Scene, rng: random.Random) -> bool:
    scene.fill(scene.out.parent)
    return True


def fill_scratch(scene: Scene, rng: random.Random) -> bool:
    scene.fill(scene.scratch)
    return True


def lock_results(scene: Scene, rng: random.Random) -> bool:
    scene.lock(scene.out.parent)
    return True


def starve_judge(scene: Scene, rng: random.Random) -> bool:
    return starve(scene.judge, rng.choice((0, 1, 4, 16)))


def starve_server(scene: Scene, rng: random.Random) -> bool:
    server = scene.server()
    return server is not None and starve(server, 0)


def starve(process: int, megabytes: int) -> bool:
    """Let a process have little more memory than it has."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
        bound = pages * resource.getpagesize() + megabytes * MEGABYTE
        resource.prlimit(process, resource.RLIMIT_AS, (bound, bound))
    except OSError:
        return False
    return True


def starve_slot(scene: Scene, rng: random.Random) -> bool:
    """Let all that a slot runs have next to no memory together, where it has a control group."""
    server, group = scene.server(), own_groups().get(MEMORY)
    if server is None or group is None:
        return server is not None and starve(server, 0)
    for uid in range(FIRST_UID, FIRST_UID + COUNT):
        folder = group / f"conv2gpt-{uid}"
        with suppress(OSError):
            if str(server) in (folder / "cgroup.procs").read_text().split():
                for name in ("memory.max", "memory.limit_in_bytes"):
                    if (folder / name).exists():
                        (folder / name).write_text(str(MEGABYTE))
                        return True
    return False


class JumpingClock:
    """A clock that stands still for a while, creeps, or jumps ahead, but never goes back."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.real = time.monotonic
        self.before = self.now = self.real()
        self.pace = 1.0

    def __call__(self) -> float:
        passed, self.before = self.real() - self.before, self.real()
        chance = self.rng.random()
        if chance < 0.02:
            self.pace = self.rng.choice((0.01, 0.5, 1.0, 20.0))
        jump = self.rng.choice((1.0, 10.0, 1000.0)) if chance > 0.998 else 0.0
        self.now += passed * self.pace + jump
        return self.now


FAULTS = (
    Fault("the child is killed", kill_child),
    Fault("the fork server is killed", kill_server),
    Fault("the judge is killed", kill_judge),
    Fault("the disk of the results is full", fill_results),
    Fault("the disk of the judge's folders is full", fill_scratch),
    Fault("the results can't be written", lock_results),
    Fault("the judge gets no more memory", starve_judge),
    Fault("the fork server gets no more memory", starve_server),
    Fault("the slot has no memory", starve_slot),
    Fault("the clock jumps", lambda scene, rng: True, clock=True),
)
