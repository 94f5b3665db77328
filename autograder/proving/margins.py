"""Margins: how far each tolerance lies above float noise and below the nearest mistake."""

import math
from collections.abc import Iterable

from autograder.grading.worker import Verdict
from common.assignment import Record

FACTOR = 10
NOISE_PART = 1000  # an error below this part of a tolerance is float noise, of wrong code too


class Margin(Record, frozen=True):
    """The comparisons of one test at one tolerance."""

    test: str
    tolerance: float
    noise: float  # the largest error of any right implementation
    nearest: float | None  # the smallest error of any wrong one; None where none was off

    @property
    def problem(self) -> str:
        """What is wrong with the tolerance, if anything."""
        if self.tolerance and self.noise * FACTOR > self.tolerance:
            return f"{self.test}: right code is off by {self.noise:.1e}, too near to the tolerance"
        if self.nearest is None and self.tolerance:  # an exact comparison needs no margin
            return f"{self.test}: no mistake is off at the tolerance {self.tolerance:g}: add one"
        if self.nearest is not None and self.tolerance * FACTOR > self.nearest:
            return f"{self.test}: a mistake is off by only {self.nearest:.1e}, too near to it"
        return ""


def margins(right: Iterable[Verdict], wrong: Iterable[list[Verdict]]) -> list[Margin]:
    """A margin for each test that compares values, and for each tolerance in it.

    wrong: the verdicts of each wrong version.
    """
    noise: dict[tuple[str, float], float] = {}
    nearest: dict[tuple[str, float], float] = {}
    for verdict in right:
        for error, tolerance in verdict.compared:
            key = (verdict.test, tolerance)
            noise[key] = max(noise.get(key, 0.0), error)
    for version in wrong:
        caught = {verdict.exercise for verdict in version if not verdict.passed}
        for verdict in version:
            for error, tolerance in verdict.compared:
                key = (verdict.test, tolerance)
                # An error that a tolerance swallows is what this is about, unless the exercise
                # catches that version by another comparison: what is plain in float64 may be
                # too small to see in float32.
                if error <= tolerance and verdict.exercise in caught:
                    continue
                above = FACTOR * max(noise.get(key, 0.0), tolerance / NOISE_PART)
                if error > above and math.isfinite(error):
                    nearest[key] = min(nearest.get(key, math.inf), error)
    return [
        Margin(test, tolerance, noise[test, tolerance], nearest.get((test, tolerance)))
        for test, tolerance in noise
    ]
