"""The faults of a single grading: kills, full disks, no memory, clock jumps."""

import random
import resource
import time
from contextlib import suppress

from autograder.grading.sandbox.kernel.cgroups import MEMORY, own_groups
from autograder.grading.sandbox.user_ids import COUNT, FIRST_UID
from autograder.proving.faults.fault_injector import Fault, kill
from autograder.proving.faults.grading_processes import RunningGrading
from autograder.proving.process_table import address_space_bytes

MEGABYTE = 1024 * 1024


def kill_child(grading: RunningGrading, rng: random.Random) -> bool:
    return kill(grading.child())


def kill_server(grading: RunningGrading, rng: random.Random) -> bool:
    return kill(grading.server())


def kill_judge(grading: RunningGrading, rng: random.Random) -> bool:
    grading.server()  # seen, so that it can be looked for afterwards
    return kill(grading.judge)


def fill_results(grading: RunningGrading, rng: random.Random) -> bool:
    grading.fill_disk(grading.out.parent)
    return True


def fill_scratch(grading: RunningGrading, rng: random.Random) -> bool:
    grading.fill_disk(grading.scratch)
    return True


def make_results_read_only(grading: RunningGrading, rng: random.Random) -> bool:
    grading.make_read_only(grading.out.parent)
    return True


def limit_judge_memory(grading: RunningGrading, rng: random.Random) -> bool:
    return limit_memory(grading.judge, rng.choice((0, 1, 4, 16)))


def limit_server_memory(grading: RunningGrading, rng: random.Random) -> bool:
    server = grading.server()
    return server is not None and limit_memory(server, 0)


def limit_memory(process: int, megabytes: int) -> bool:
    """Let a process have little more memory than it has."""
    try:
        bound = address_space_bytes(process) + megabytes * MEGABYTE
        resource.prlimit(process, resource.RLIMIT_AS, (bound, bound))
    except OSError:
        return False
    return True


def limit_slot_memory(grading: RunningGrading, rng: random.Random) -> bool:
    """Let all processes of a slot share next to no memory, where it has a control group."""
    server, group = grading.server(), own_groups().get(MEMORY)
    if server is None or group is None:
        return server is not None and limit_memory(server, 0)
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


# Nothing is left to inject: such a judge has a JumpingClock from the start.
CLOCK_JUMPS: Fault[RunningGrading] = Fault("the clock jumps", lambda grading, rng: True)
GRADING_FAULTS = (
    Fault("the child is killed", kill_child),
    Fault("the fork server is killed", kill_server),
    Fault("the judge is killed", kill_judge),
    Fault("the disk of the results is full", fill_results),
    Fault("the disk of the judge's folders is full", fill_scratch),
    Fault("the results can't be written", make_results_read_only),
    Fault("the judge gets no more memory", limit_judge_memory),
    Fault("the fork server gets no more memory", limit_server_memory),
    Fault("the slot has no memory", limit_slot_memory),
    CLOCK_JUMPS,
)
