"""Prints a result on the terminal: points by exercise, failures, defenses in force."""

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from autograder.grading.results import Outcome, Result
from common.exercise_needs import in_words
from common.student_text import unmarked
from common.testing.graded_tests import format_points


def print_result(result: Result, console: Console) -> None:
    """Notes, points by exercise, each failure with its reason, and what protected the grader."""
    for note in result.notes:
        console.print(f"[yellow]{escape(unmarked(note))}[/]")
    console.print(exercise_table(result))
    for reason, outcomes in failures_by_reason(result).items():
        for outcome in outcomes:
            console.print(heading(outcome))
        console.print(Padding(escape(reason), (0, 0, 1, 4)))
    for outcome in result.all_outcomes:
        if outcome.replaced:
            graded = f"graded with {in_words(outcome.replaced)}"
            console.print(
                f"[green]ok[/] {escape(f'{outcome.test.exercise} {outcome.test.label}: {graded}')}"
            )
    if result.leaderboard.lines:
        console.print("Leaderboard: " + escape("; ".join(result.leaderboard.lines)) + ".")
    console.print("Graded with: " + escape("; ".join(result.defenses)) + ".", style="dim")
    hidden = sum(test.points for test in result.tests if test.hidden)
    maximum = format_points(result.maximum)
    console.print(
        f"[bold]{format_points(result.score)} of {maximum} points.[/] Hidden tests decide "
        f"{format_points(hidden)} of the {maximum}; students see their outcome once grades are "
        f"published. {result.seconds:.1f} s, salt {result.salt}."
    )
    if result.not_run:
        console.print(
            f"Tests worth {format_points(result.not_run)} of them were not run: no GPU. "
            "Use --gpu on a machine with a GPU."
        )


def exercise_table(result: Result) -> Table:
    """One row for each exercise."""
    table = Table(title=f"{result.assignment.short}: {result.assignment.title}")
    for column in ("exercise", "functions"):
        table.add_column(column)
    for column in ("public", "hidden", "points"):
        table.add_column(column, justify="right")
    for exercise in result.assignment.exercises:
        outcomes = [o for o in result.all_outcomes if o.test.exercise == exercise.number]
        table.add_row(
            exercise.number,
            exercise.about,
            fraction([o for o in outcomes if not o.test.hidden]),
            fraction([o for o in outcomes if o.test.hidden]),
            fraction(outcomes),
        )
    return table


def fraction(outcomes: list[Outcome]) -> str:
    """Points earned of points there are."""
    earned = sum(outcome.score for outcome in outcomes)
    whole = sum(outcome.test.points for outcome in outcomes)
    color = "green" if earned == whole else "red" if earned == 0 else "yellow"
    return f"[{color}]{format_points(earned)} / {format_points(whole)}[/]"


def failures_by_reason(result: Result) -> dict[str, list[Outcome]]:
    """The failed tests, those with the same reason together; a reason of its own has the title."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in result.all_outcomes:
        if not outcome.passed:
            groups.setdefault(outcome.reason(), []).append(outcome)
    return {
        reason if len(outcomes) > 1 else outcomes[0].text(): outcomes
        for reason, outcomes in groups.items()
    }


def heading(outcome: Outcome) -> str:
    """The name of a failed test."""
    hidden = " (hidden)" if outcome.test.hidden else ""
    return f"[red]x[/] [bold]{escape(f'{outcome.test.exercise} {outcome.test.label}{hidden}')}[/]"
