"""Calculates bounds of the score that a submission must get, by exercise.

Both are the same where it is known exactly. A mistake is proved to lose points in the exercises
that it names, but not how many: all that can be said is that at least one test fails there.
"""

from dataclasses import dataclass, field, replace

from common.assignment import ROOT, Assignment
from common.testing.graded_tests import TRAINING, GradedTest, read_graded_tests


@dataclass(frozen=True)
class Truth:
    """The bounds of a score, by exercise."""

    lowest: dict[str, float]
    highest: dict[str, float]

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds of the whole score."""
        return sum(self.lowest.values()), sum(self.highest.values())

    @property
    def exact(self) -> bool:
        """Whether the score is known exactly."""
        return self.lowest == self.highest


@dataclass(frozen=True)
class ScoreCalculator:
    """The tests of an assignment, from which truths are made. `gpu`: whether there is one."""

    assignment: Assignment
    gpu: bool = False
    tests: list[GradedTest] = field(default_factory=list)

    @classmethod
    def of(cls, assignment: Assignment, gpu: bool = False) -> "ScoreCalculator":
        """The calculator of an assignment."""
        return cls(assignment, gpu, read_graded_tests(ROOT / "tests" / assignment.name))

    def nothing(self) -> Truth:
        """No points at all."""
        zeros = {exercise.number: 0.0 for exercise in self.assignment.exercises}
        return Truth(zeros, zeros)

    def passed(self, names: set[str]) -> Truth:
        """Exactly the points of these tests."""
        points = dict(self.nothing().lowest)
        for test in self.tests:
            if test.name in names and (self.gpu or not test.needs_gpu):
                points[test.exercise] += test.points
        return Truth(points, points)

    def exercises(self, numbers: set[str]) -> Truth:
        """All points of these exercises, and no other."""
        return self.passed({test.name for test in self.tests if test.exercise in numbers})

    def with_mistakes(self, truth: Truth, named: set[str]) -> Truth:
        """The same work with mistakes that cost these exercises something.

        They are not proved to leave the training of the other exercises alone.
        """
        lowest, highest = dict(truth.lowest), dict(truth.highest)
        for number in lowest:
            tests = [
                test
                for test in self.tests
                if test.exercise == number and (self.gpu or not test.needs_gpu)
            ]
            if number in named:
                # A test that needs a GPU is no proof of anything where there was none.
                proved = [test.points for test in tests if not test.needs_gpu]
                highest[number] = max(0.0, highest[number] - min(proved, default=0.0))
                lowest[number] = 0.0
            else:
                unproved = [t for t in tests if TRAINING in t.tags or t.needs_gpu]
                lost = sum(test.points for test in unproved)
                lowest[number] = max(0.0, lowest[number] - lost)
        return Truth(lowest, highest)

    def at_most(self, truth: Truth) -> Truth:
        """Work that may lose anything, but can gain nothing."""
        return replace(truth, lowest=self.nothing().lowest)
