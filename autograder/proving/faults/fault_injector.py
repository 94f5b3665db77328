"""Schedules and injects faults into a running grading or batch."""

import math
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class RunningTarget(Protocol):
    """A grading or a batch that is under way."""

    @property
    def progress(self) -> float:
        """How far it has come: seconds of a grading, results of a batch."""


Target = TypeVar("Target", bound=RunningTarget)


@dataclass(frozen=True)
class Fault(Generic[Target]):
    """One kind. `inject` returns whether it was possible now; if not, it is tried again soon."""

    name: str
    inject: Callable[[Target, random.Random], bool]


@dataclass(frozen=True)
class Injection:
    """A fault that was injected, and how far the run had come."""

    fault: str
    progress: float


@dataclass(frozen=True)
class PlannedFault(Generic[Target]):
    """A fault for one of many runs."""

    number: int
    fault: Fault[Target]
    moment: float


class FaultInjector(Generic[Target]):
    """Injects faults into one run: the first at a moment, each next one an interval later.

    Moment and interval are in the unit of the target's progress.
    """

    def __init__(
        self,
        faults: Sequence[Fault[Target]],
        rng: random.Random,
        first: float,
        interval: float = math.inf,
    ) -> None:
        self.faults, self.rng = faults, rng
        self.next_moment, self.interval = first, interval
        self.injections: list[Injection] = []

    def step(self, target: Target) -> None:
        """Inject one of the faults, if it is time and the fault is possible now."""
        progress = target.progress
        if not self.faults or progress < self.next_moment:
            return
        fault = self.rng.choice(self.faults)
        if fault.inject(target, self.rng):
            self.injections.append(Injection(fault.name, progress))
            self.next_moment = target.progress + self.interval


def plan_faults(
    faults: Sequence[Fault[Target]], count: int, longest: float, seed: int
) -> Iterator[PlannedFault[Target]]:
    """Each kind equally often, in an order and at moments that the seed decides.

    Where there are fewer faults than kinds, the seed decides which.
    """
    rng = random.Random(seed)
    mixed = rng.sample(faults, len(faults))
    kinds = [mixed[number % len(mixed)] for number in range(count)]
    rng.shuffle(kinds)
    for number, fault in enumerate(kinds):
        yield PlannedFault(number, fault, rng.uniform(0, longest))


def kill(pid: int | None) -> bool:
    """Kill a process; whether there was one."""
    if pid is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False
