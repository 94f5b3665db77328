"""A result as a table on the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.grading.results import Outcome, Result
from common.roster import format_points


def print_result(result: Result, console: Console) -> None:
    """Points by exercise, then each failure with its reason, then what protected the grader."""
    console.print(exercise_table(result))
    for outcome in result.all_outcomes:
        if not outcome.passed:
            console.print(failure_text(outcome))
    for note in result.notes:
        console.print(f"[yellow]{escape(note)}[/]")
    console.print("Graded with: " + escape("; ".join(result.defences)) + ".", style="dim")
    hidden = sum(test.points for test in result.tests if test.hidden)
    console.print(
        f"[bold]{format_points(result.score)} of {format_points(result.maximum)} points[/]; "
        f"{format_points(hidden)} of them are decided by hidden tests, whose outcome students see "
        f"once grades are published. {result.seconds:.1f} s, salt {result.salt}."
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
            ", ".join(exercise.functions),
            fraction([o for o in outcomes if not o.test.hidden]),
            fraction([o for o in outcomes if o.test.hidden]),
            fraction(outcomes),
        )
    return table


def fraction(outcomes: list[Outcome]) -> str:
    """Points earned of points there are."""
    earned = sum(outcome.score for outcome in outcomes)
    whole = sum(outcome.test.points for outcome in outcomes)
    colour = "green" if earned == whole else "red" if earned == 0 else "yellow"
    return f"[{colour}]{format_points(earned)} / {format_points(whole)}[/]"


def failure_text(outcome: Outcome) -> str:
    """One failed test, in words."""
    hidden = " (hidden)" if outcome.test.hidden else ""
    head = f"{outcome.test.exercise} {outcome.test.label}{hidden}"
    return f"[red]x[/] [bold]{escape(head)}[/]\n{escape(indent(outcome.text()))}\n"


def indent(text: str) -> str:
    """Set a text off from its head."""
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
