"""Prints the points by exercise at the end of a student's own pytest run."""

from collections.abc import Iterable
from typing import Any

from common.assignment import ROOT, Assignment
from common.exercise_needs import Needed, listed
from common.testing.graded_tests import (
    PUBLIC_FILE,
    TRAINING,
    GradedTest,
    format_points,
    read_hidden_points,
    read_tests,
)


class EarnedPoints:
    """The points that a run has decided so far, by exercise, for one assignment."""

    def __init__(self) -> None:
        self.earned: dict[str, float] = {}
        self.shown: dict[str, float] = {}
        self.hidden_shown = 0.0
        self.public_names: set[str] = set()  # of the tests that were asked for
        self.not_run_without_gpu = 0.0  # points of tests that need one
        self.failed: list[str] = []  # names of tests
        self.carried: dict[Needed, list[str]] = {}  # stand-ins, and the exercises that they helped

    def add(self, exercise: str, points: float, passed: bool) -> None:
        """Count the points of one test."""
        self.shown[exercise] = self.shown.get(exercise, 0) + points
        self.earned[exercise] = self.earned.get(exercise, 0) + (points if passed else 0)

    @property
    def failed_exercises(self) -> set[str]:
        """The exercises with a test that failed, even with stand-ins for what they need."""
        return {number for number, shown in self.shown.items() if self.earned[number] < shown}

    def carry(self, name: str, exercise: str, points: float, needed: Iterable[Needed]) -> None:
        """Count a failed test that passes with stand-ins: grading gives its points."""
        self.failed.remove(name)
        self.earned[exercise] += points
        for one in needed:
            helped = self.carried.setdefault(one, [])
            if exercise not in helped:
                helped.append(exercise)

    def add_asked(self, name: str, points: float, hidden: bool) -> None:
        """Note that a test was among those that were asked for, whether or not it could run."""
        if hidden:
            self.hidden_shown += points
        else:
            self.public_names.add(name)


def write_points(terminal: Any, assignment: Assignment, points_so_far: EarnedPoints) -> None:
    """The closing table of one assignment."""
    hidden = sum(read_hidden_points(ROOT / "tests" / assignment.name).values())
    terminal.section(f"{assignment.short}: {assignment.title}")
    for exercise in assignment.exercises:
        if exercise.number not in points_so_far.shown:
            continue
        earned, shown = points_so_far.earned[exercise.number], points_so_far.shown[exercise.number]
        points = f"{format_points(earned)} of {format_points(shown)}"
        terminal.write_line(
            f"  {exercise.number:5} {points:>10}   {exercise.about}",
            green=earned == shown,
            red=earned == 0,
            yellow=0 < earned < shown,
        )
    earned, shown = sum(points_so_far.earned.values()), sum(points_so_far.shown.values())
    terminal.write_line(
        f"  {format_points(earned)} of {format_points(shown)} points in this run. "
        f"Hidden tests decide {format_points(hidden - points_so_far.hidden_shown)} more."
    )
    for needed, helped in points_so_far.carried.items():
        terminal.write_line(f"  {fix_first(needed, helped)}")
    public = read_tests(ROOT / "tests" / assignment.name / PUBLIC_FILE)
    left_out = [test for test in public if test.name not in points_so_far.public_names]
    if left_out:
        terminal.write_line(f"  {left_out_sentence(left_out)}")
    if points_so_far.not_run_without_gpu:
        points = format_points(points_so_far.not_run_without_gpu)
        unit = "point needs" if points == "1" else "points need"
        terminal.write_line(f"  {points} {unit} a GPU, and this machine has none.")


def fix_first(needed: Needed, helped: list[str]) -> str:
    """What to correct first, and where it costs nothing."""
    return (
        f"Fix {needed.exercise} first: tests of {listed(helped)} that failed pass with a right "
        f"{needed.function}. Their points are counted, as in grading."
    )


def left_out_sentence(tests: list[GradedTest]) -> str:
    """How many public tests were not run, what they decide, and how many of them train a model."""
    many, total = len(tests) > 1, sum(test.points for test in tests)
    what = f"{len(tests)} public tests" if many else "1 public test"
    points = f"{format_points(total)} more {'point' if total == 1 else 'points'}"
    sentence = f"{what} that you have not run {'decide' if many else 'decides'} {points}"
    training = sum(TRAINING in test.tags for test in tests)
    if training:
        sentence += f" ({training} of them {'trains' if training == 1 else 'train'} a model)"
    return f"{sentence}."
