"""Times a function against a baseline in alternation, for graded speed tests."""

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from common.check_log import LOG
from common.errors import Evidence, Failure

NEAR_FACTOR = 1.5  # times the bar: a busy machine may be all that keeps such code from it
PART_REPEATS = 3  # how often a part of a baseline is timed


@dataclass(frozen=True)
class Comparison:
    """How long a candidate and a baseline took, each at its best."""

    candidate_seconds: float
    baseline_seconds: float

    @property
    def ratio(self) -> float:
        """How many times faster than the baseline the candidate is."""
        return self.baseline_seconds / self.candidate_seconds


def compare(
    candidate: Callable[[], object], baseline: Callable[[], object], repeats: int = 5
) -> Comparison:
    """Run both alternately, and take each one's best time.

    The best, and not the mean: noise of the machine only ever adds time.
    """
    best = {"candidate": float("inf"), "baseline": float("inf")}
    for _ in range(repeats):
        for name, function in (("baseline", baseline), ("candidate", candidate)):
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return Comparison(best["candidate"], best["baseline"])


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
    """How long each run of a candidate and of a baseline took, in the order of the runs."""

    candidate_seconds: tuple[float, ...]
    baseline_seconds: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """How many times faster than the baseline the candidate is, by pairs of adjacent runs.

        Adjacent runs meet the same machine, however busy or hot it is.
        """
        pairs = zip(self.baseline_seconds, self.candidate_seconds, strict=True)
        return [baseline / candidate for baseline, candidate in pairs]


def alternate(
    candidate: Callable[[int], object],
    baseline: Callable[[int], object],
    repeats: int,
    warmup: int = 1,
) -> Alternation:
    """Run both in turns, each run with its number, so that each can have inputs of its own.

    The first `warmup` pairs don't count. Which one goes first changes from pair to pair.
    """
    seconds: dict[str, list[float]] = {"candidate": [], "baseline": []}
    for number in range(warmup + repeats):
        pair = [("candidate", candidate), ("baseline", baseline)]
        for name, function in pair if number % 2 else reversed(pair):
            start = time.perf_counter()
            function(number)
            taken = time.perf_counter() - start
            if number >= warmup:
                seconds[name].append(taken)
    return Alternation(tuple(seconds["candidate"]), tuple(seconds["baseline"]))


@dataclass(frozen=True)
class Try:
    """What is timed once. The candidate gets its inputs and returns its results in that time."""

    candidate: Callable[[], Any]
    baseline: Callable[[], Any]
    # Fails unless the candidate's result is right; also gets the baseline's, None if it wasn't run.
    verify: Callable[[Any, Any], None]


def check_speed(
    prepare: Callable[[], Try | None],
    *,
    bar: float,
    tries: int,
    patience: float,
    sentence: str,
    help: str,
    runs: int = 1,
    cold: bool = True,
    part: tuple[Callable[[], Any], int] | None = None,
) -> None:
    """Fail with that sentence unless the candidate takes at most `bar` times the baseline's time.

    prepare: draws a try, outside the clock: inputs that no try had before, so that nothing can be
        remembered. None if there are no more. The results of every try are verified.
    tries: a busy machine can only make code look slower than it is, so one good try is enough.
        Where the best one comes near the bar, more are made while there is patience.
    patience: seconds after which no further try begins. Less than a test may take, so that slow
        code hears why it fails.
    runs: how many runs of the baseline a run of the candidate is worth.
    cold: whether the baseline too takes longer at first. If not, it needn't be warmed up.
    part: a part of what the baseline does, and how many of these make the whole, where time grows
        in proportion. A candidate that is fast enough for the best pace of such a part needn't wait
        for the whole. On a busy machine that pace is hard to keep up with: then the whole decides.

    A first try only warms up: what a process does for the first time takes long. It counts if it
    has used up the patience and was too slow.
    """
    deadline, ratios, checks = time.monotonic() + patience, list[float](), LOG.checks
    for attempt in itertools.count():
        prepared = prepare()
        if prepared is None:
            break
        pace = best_seconds(part[0]) * part[1] if part and attempt else 0.0
        baseline_run = timed(prepared.baseline) if not part and (attempt or cold) else None
        candidate_seconds, result = timed(prepared.candidate)
        prepared.verify(result, baseline_run[1] if baseline_run else None)
        LOG.checks = checks  # however many tries it takes
        out_of_patience = time.monotonic() > deadline
        if attempt == 0 and not out_of_patience:
            continue
        if candidate_seconds <= bar * runs * pace:
            return
        baseline_seconds, _ = baseline_run or timed(prepared.baseline)
        ratio = candidate_seconds / baseline_seconds / runs
        if attempt == 0 and ratio <= bar:
            continue
        if ratio <= bar:
            return
        ratios.append(ratio)
        if out_of_patience or (attempt >= tries and min(ratios) >= NEAR_FACTOR * bar):
            break
    raise Failure(
        sentence,
        f"The fastest run took {min(ratios):.2g}x the baseline's time (limit {bar:g}x).",
        help,
        evidence=Evidence(LOG.checks, None, sentence),  # without the figures, which vary
    )


def best_seconds(function: Callable[[], Any]) -> float:
    """How many seconds the fastest of some calls took. An interruption makes no call faster."""
    return min(timed(function)[0] for _ in range(PART_REPEATS))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """How many seconds a call took, and what it gave."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result
