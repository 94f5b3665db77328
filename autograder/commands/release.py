"""The command behind `make`."""

import click
from rich.console import Console
from rich.table import Table

from autograder.commands.authoring import chosen
from autograder.commands.progress import status_line
from autograder.proving.release import Row
from autograder.proving.release import release as release_assignment
from common.roster import format_points, format_score

WIDEST = 200


@click.command()
@click.argument("assignments", nargs=-1)
def release(assignments: tuple[str, ...]) -> None:
    """Generate, build and check everything; what hasn't changed isn't done again.

    ASSIGNMENTS: a1 to a7; none: all.
    """
    console = Console()
    with status_line(console) as say:
        rows = [release_assignment(entry, say) for entry in chosen(assignments)]
    lines = table(rows)
    # A log or a narrow window must show whole names and numbers, too.
    needed = console.measure(lines, options=console.options.update_width(WIDEST)).maximum
    console.width = max(console.width, needed)
    console.print(lines)


def table(rows: list[Row]) -> Table:
    """What was built, and what grading it gave."""
    result = Table(title="conv2gpt: dist/ is up to date")
    result.add_column("assignment", no_wrap=True)
    for column in ("tests", "points", "reference", "stub", "handout", "autograder", "graded in"):
        result.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        seconds = f"{row.checked.seconds:.1f} s"
        result.add_row(
            row.assignment.name,
            str(row.tests),
            format_points(row.points),
            format_score(row.checked.reference, row.points, row.checked.not_run),
            format_points(row.checked.stub),
            f"{row.built.handout.stat().st_size / 1024:.0f} KB",
            f"{row.built.autograder.stat().st_size / 1024:.0f} KB",
            f"unchanged ({seconds})" if row.unchanged else seconds,
        )
    return result
