"""Prints the points by exercise at the end of a student's own pytest run."""

from typing import Any

from common.assignment import ROOT, Assignment
from common.testing.graded_tests import PUBLIC_FILE, format_points, read_hidden_points, read_tests


class Tally:
    """The points that a run has decided so far, by exercise, for one assignment."""

    def __init__(self) -> None:
        self.earned: dict[str, float] = {}
        self.shown: dict[str, float] = {}
        self.hidden_shown = 0.0
        self.public_shown = 0.0
        self.on_a_gpu = 0.0  # points of tests that couldn't be run, for want of one

    def add(self, exercise: str, points: float, passed: bool, hidden: bool) -> None:
        """Count one test."""
        self.see(points, hidden)
        self.shown[exercise] = self.shown.get(exercise, 0) + points
        self.earned[exercise] = self.earned.get(exercise, 0) + (points if passed else 0)

    def leave_out(self, points: float, hidden: bool) -> None:
        """Count a test that needs a GPU, where there is none."""
        self.see(points, hidden)
        self.on_a_gpu += points

    def see(self, points: float, hidden: bool) -> None:
        """Note that a test was among those that were asked for."""
        self.hidden_shown += points if hidden else 0
        self.public_shown += 0 if hidden else points


def write_points(terminal: Any, assignment: Assignment, tally: Tally) -> None:
    """The closing table of one assignment."""
    hidden = sum(read_hidden_points(ROOT / "tests" / assignment.name).values())
    terminal.section(f"{assignment.short}: {assignment.title}")
    for exercise in assignment.exercises:
        if exercise.number not in tally.shown:
            continue
        earned, shown = tally.earned[exercise.number], tally.shown[exercise.number]
        points = f"{format_points(earned)} of {format_points(shown)}"
        terminal.write_line(
            f"  {exercise.number:5} {points:>10}   {exercise.about}",
            green=earned == shown,
            red=earned == 0,
            yellow=0 < earned < shown,
        )
    earned, shown = sum(tally.earned.values()), sum(tally.shown.values())
    terminal.write_line(
        f"  {format_points(earned)} of {format_points(shown)} points shown here; "
        f"{format_points(hidden - tally.hidden_shown)} more are decided by hidden tests."
    )
    public = sum(test.points for test in read_tests(ROOT / "tests" / assignment.name / PUBLIC_FILE))
    if public > tally.public_shown:
        points = format_points(public - tally.public_shown)
        decided = "is decided by a public test" if points == "1" else "are decided by public tests"
        terminal.write_line(f"  {points} more {decided} that you have not run.")
    if tally.on_a_gpu:
        points = format_points(tally.on_a_gpu)
        decided = "point is decided" if points == "1" else "points are decided"
        terminal.write_line(f"  {points} {decided} on a machine with a GPU; here there is none.")
