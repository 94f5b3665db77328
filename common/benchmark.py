"""A row of `make bench`: ours, the yardstick, their ratio, and the bar that it must not pass."""

from collections.abc import Callable
from dataclasses import dataclass

from common.timing import compare


@dataclass(frozen=True)
class Row:
    """How long something of ours took, or what else it cost, as a multiple of a yardstick."""

    name: str
    yardstick: str
    seconds: float
    yardstick_seconds: float
    bar: float
    unit: str = "s"  # of both figures

    @property
    def ratio(self) -> float:
        """How many times as long as the yardstick ours took."""
        return self.seconds / self.yardstick_seconds

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
    yardstick: Callable[[], object],
    what: str,
    bar: float,
    repeats: int,
) -> Row:
    """Run ours and the yardstick alternately, and make a row of their best times."""
    ours(), yardstick()  # caches are warm for both
    comparison = compare(ours, yardstick, repeats)
    return Row(name, what, comparison.candidate_seconds, comparison.yardstick_seconds, bar)
