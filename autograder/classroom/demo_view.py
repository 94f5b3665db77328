"""Prints the demo: the result as a student sees it, what is wrong, and where everything lies."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from autograder.classroom.demo_grading import Demo
from autograder.grading.results import Outcome, Result
from autograder.grading.terminal import exercise_table, heading
from common.assignment import ROOT
from common.testing.graded_tests import format_points


def print_student_view(result: Result, console: Console) -> None:
    """Points by exercise, the first public and the first hidden failure, and the score."""
    console.print(exercise_table(result))
    failed = [outcome for outcome in result.all_outcomes if not outcome.passed]
    for hidden in (False, True):
        print_first([outcome for outcome in failed if outcome.test.hidden is hidden], console)
    later = sum(test.points for test in result.tests if test.hidden)
    maximum = format_points(result.maximum)
    console.print(
        f"[bold]{format_points(result.score)} of {maximum} points.[/] Hidden tests decide "
        f"{format_points(later)} of the {maximum}; students see their outcome once grades are "
        "published."
    )


def print_first(failed: list[Outcome], console: Console) -> None:
    """The first of several failed tests, with its reason and hint, and the number of the others."""
    if not failed:
        return
    first, *others = failed
    console.print(heading(first))
    console.print(Padding(escape(first.text()), (0, 0, 0 if others else 1, 4)))
    if others:
        kind = "hidden" if first.test.hidden else "public"
        tests = "test" if len(others) == 1 else "tests"
        line = f"... and {len(others)} more {kind} {tests}, each with its reason."
        console.print(Padding(line, (0, 0, 1, 4)), style="dim")


def print_demo(demo: Demo, console: Console) -> None:
    """What a student sees, what is wrong in the submission, and where everything lies."""
    print_student_view(demo.result, console)
    file = demo.submission / demo.line.file
    console.print(f"\nWhat is wrong: {place_of(file)}, line {demo.line.number}", soft_wrap=True)
    console.print(f"  [red]- {escape(demo.line.wrong)}[/]", soft_wrap=True)
    console.print(f"  [green]+ {escape(demo.line.right)}[/] (the reference)", soft_wrap=True)
    console.print(f"The result, as Gradescope reads it: {place_of(demo.results)}", soft_wrap=True)


def place_of(path: Path) -> str:
    """A path as it is printed: from the checkout's root, if it lies there."""
    return escape(str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path))
