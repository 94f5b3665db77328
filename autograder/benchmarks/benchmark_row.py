"""One row of `make bench`: ours, the baseline, their ratio, and its limit."""

from collections.abc import Callable
from dataclasses import dataclass

from common.testing.speed_ratio import compare


@dataclass(frozen=True)
class Row:
    """How long something of ours took, or what else it cost, as a multiple of a baseline."""

    name: str
    baseline: str
    seconds: float
    baseline_seconds: float
    bar: float
    unit: str = "s"  # of both figures

    @property
    def ratio(self) -> float:
        """How many times as long as the baseline ours took."""
        return self.seconds / self.baseline_seconds

    @property
    def holds(self) -> bool:
        """Whether ours is fast enough."""
        return self.ratio <= self.bar


@dataclass(frozen=True)
class NotMeasured:
    """What couldn't be measured on this machine, and why."""

    name: str
    why: str


def measure(
    name: str,
    ours: Callable[[], object],
    baseline: Callable[[], object],
    what: str,
    bar: float,
    repeats: int,
) -> Row:
    """Run ours and the baseline alternately, and make a row of their best times."""
    ours(), baseline()  # caches are warm for both
    comparison = compare(ours, baseline, repeats)
    return Row(name, what, comparison.candidate_seconds, comparison.baseline_seconds, bar)
