"""Checks that each tolerance lies well above float noise and below the nearest mistake."""

import math
from collections.abc import Iterable, Mapping

from autograder.grading.warm.judge_messages import Verdict
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
            return (
                f"{self.test}: correct code has error {self.noise:.1e}, too close to the tolerance"
            )
        if self.nearest is None and self.tolerance:  # an exact comparison needs no margin
            return f"{self.test}: no mistake exceeds the tolerance {self.tolerance:g}: add one"
        if self.nearest is not None and self.tolerance * FACTOR > self.nearest:
            return (
                f"{self.test}: a mistake has error {self.nearest:.1e}, too close to the tolerance"
            )
        return ""


def margins(right: Iterable[Verdict], wrong: Iterable[list[Verdict]]) -> list[Margin]:
    """A margin for each test that compares values, and for each tolerance in it.

    wrong: the verdicts of each wrong version.
    """
    noise: dict[tuple[str, float], float] = {}
    errors: dict[tuple[str, float], list[float]] = {}  # of wrong versions
    for verdict in right:
        for error, tolerance in verdict.compared:
            key = (verdict.test, tolerance)
            noise[key] = max(noise.get(key, 0.0), error)
    for version in wrong:
        least = smallest_that_counts(version)
        for verdict in version:
            for error, tolerance in verdict.compared:
                key = (verdict.test, tolerance)
                above = FACTOR * max(noise.get(key, 0.0), tolerance / NOISE_PART)
                above = max(above, least.get(verdict.exercise, 0.0) * tolerance)
                if error > 0 and error >= above and math.isfinite(error):
                    errors.setdefault(key, []).append(error)
    return [Margin(*key, noise[key], nearest_error(*key, errors)) for key in noise]


def nearest_error(
    test: str, tolerance: float, errors: Mapping[tuple[str, float], list[float]]
) -> float | None:
    """The smallest error at a tolerance, or else at a finer one of the same test.

    A test ends at its first wrong comparison. Where it compares in float64 first and then in
    float32, no wrong version comes as far as that. It would have been off by as much there, and
    counts if this tolerance catches that plainly.
    """
    if (test, tolerance) in errors:
        return min(errors[test, tolerance])
    finer = [found for (name, fine), found in errors.items() if name == test and fine < tolerance]
    plain = (error for found in finer for error in found if error >= FACTOR * tolerance)
    return min(plain, default=None)


def smallest_that_counts(version: list[Verdict]) -> dict[str, float]:
    """For each exercise, which errors of a wrong version count, as a multiple of the tolerance.

    Each semester draws other inputs, so in one of many comparisons a wrong version may be off
    by any little. That matters only where nothing else catches it:
    - an exercise that catches it plainly by one comparison may miss it by others;
    - an exercise that it costs nothing must be far from noticing it, if another one catches it.
    """
    caught = {verdict.exercise for verdict in version if not verdict.passed_at_once}
    plain = {verdict.exercise for verdict in version if is_plain(verdict)}
    if not plain:
        return {}
    others = {verdict.exercise for verdict in version} - caught
    return dict.fromkeys(others, 1 / FACTOR) | dict.fromkeys(plain, float(FACTOR))


def is_plain(verdict: Verdict) -> bool:
    """Whether a test failed by more than a little: by a large error, or by something else."""
    wrong = [(error, tolerance) for error, tolerance in verdict.compared if error > tolerance]
    by_far = any(error >= FACTOR * tolerance for error, tolerance in wrong)
    return not verdict.passed_at_once and (by_far or not wrong)
