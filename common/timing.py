"""Compares how long two things take, fairly: alternately, in one run, on one clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """How long a candidate and a yardstick took, each at its best."""

    candidate_seconds: float
    yardstick_seconds: float

    @property
    def ratio(self) -> float:
        """How many times faster than the yardstick the candidate is."""
        return self.yardstick_seconds / self.candidate_seconds


def compare(
    candidate: Callable[[], object], yardstick: Callable[[], object], repeats: int = 5
) -> Comparison:
    """Run both alternately, and take each one's best time.

    The best, and not the mean: noise of the machine only ever adds time.
    """
    best = {"candidate": float("inf"), "yardstick": float("inf")}
    for _ in range(repeats):
        for name, function in (("yardstick", yardstick), ("candidate", candidate)):
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return Comparison(best["candidate"], best["yardstick"])
