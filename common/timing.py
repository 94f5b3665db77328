"""Compares how long two things take, fairly: alternately, in one run, on one clock."""

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from common.evidence import LOG, Evidence
from common.failures import Failure

NEAR = 1.5  # times the bar: a busy machine may be all that keeps such code from it
PACES = 3  # how often a part of a yardstick is timed


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


@dataclass(frozen=True)
class Interval:
    """The middle of several measurements, and where most of them lie: 10th to 90th percentile."""

    median: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


def interval(values: Sequence[float]) -> Interval:
    """The interval of at least two values. Percentiles are interpolated."""
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return Interval(statistics.median(values), tenths[0], tenths[-1], len(values))


@dataclass(frozen=True)
class Alternation:
    """How long each run of a candidate and of a yardstick took, in the order of the runs."""

    candidate_seconds: tuple[float, ...]
    yardstick_seconds: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """How many times faster than the yardstick the candidate is, by pairs of neighbours.

        Neighbours met the same machine, however busy or hot it was.
        """
        pairs = zip(self.yardstick_seconds, self.candidate_seconds, strict=True)
        return [yardstick / candidate for yardstick, candidate in pairs]


def alternate(
    candidate: Callable[[int], object],
    yardstick: Callable[[int], object],
    repeats: int,
    warmup: int = 1,
) -> Alternation:
    """Run both in turns, each run with its number, so that each can have inputs of its own.

    The first `warmup` pairs don't count. Which one goes first changes from pair to pair.
    """
    seconds: dict[str, list[float]] = {"candidate": [], "yardstick": []}
    for number in range(warmup + repeats):
        pair = [("candidate", candidate), ("yardstick", yardstick)]
        for name, function in pair if number % 2 else reversed(pair):
            start = time.perf_counter()
            function(number)
            taken = time.perf_counter() - start
            if number >= warmup:
                seconds[name].append(taken)
    return Alternation(tuple(seconds["candidate"]), tuple(seconds["yardstick"]))


def check_speed(
    prepare: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]],
    *,
    bar: float,
    tries: int,
    patience: float,
    sentence: str,
    help: str,
    runs: int = 1,
    cold: bool = True,
    part: tuple[Callable[[], Any], int] | None = None,
) -> tuple[Any, Any]:
    """Fail with that sentence unless the candidate takes at most `bar` times the yardstick's time.

    prepare: gives (candidate, yardstick) for each try, outside the clock. What it makes new each
        time can't have been remembered from the try before.
    tries: a busy machine can only make code look slower than it is, so one good try is enough.
        Where the best one comes near the bar, more are made while there is patience.
    patience: seconds after which no further try begins. Less than a test may take, so that slow
        code hears why it fails.
    runs: how many runs of the yardstick a run of the candidate is worth.
    cold: whether the yardstick too takes longer at first. If not, it needn't be warmed up.
    part: a part of what the yardstick does, and how many of these make the whole, where time grows
        in proportion. A candidate that is fast enough for the best pace of such a part needn't wait
        for the whole. On a busy machine that pace is hard to keep up with: then the whole decides.

    A first try only warms up: what a process does for the first time takes long. It counts if it
    has used up the patience and was too slow.
    Returns what candidate and yardstick gave in the try that was good: check that it is right.
    The yardstick's is None where a part of it was enough.
    """
    deadline, ratios = time.monotonic() + patience, []
    for attempt in itertools.count():
        candidate, yardstick = prepare()
        pace = best_seconds(part[0]) * part[1] if part and attempt else 0.0
        before = timed(yardstick) if not part and (attempt or cold) else None
        candidate_seconds, result = timed(candidate)
        late = time.monotonic() > deadline
        if attempt == 0 and not late:
            continue
        if candidate_seconds <= bar * runs * pace:
            return result, None
        yardstick_seconds, reference = before or timed(yardstick)
        ratio = candidate_seconds / yardstick_seconds / runs
        if attempt == 0 and ratio <= bar:
            continue
        if ratio <= bar:
            return result, reference
        ratios.append(ratio)
        if late or (attempt >= tries and min(ratios) >= NEAR * bar):
            break
    raise Failure(
        sentence,
        f"The best try took {min(ratios):.2g} times as long as the yardstick; {bar:g} is allowed.",
        help,
        evidence=Evidence(LOG.checks, None, sentence),  # without the figures, which vary
    )


def best_seconds(function: Callable[[], Any]) -> float:
    """How many seconds the fastest of some calls took. An interruption makes no call faster."""
    return min(timed(function)[0] for _ in range(PACES))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """How many seconds a call took, and what it gave."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result
