"""Command `release` (plain `make`): generate, build and check every assignment."""

import time

import click
from rich.console import Console
from rich.table import Table

from autograder.commands.authoring_commands import chosen
from autograder.commands.progress_display import live_lines
from autograder.packaging.zip_build import Kind
from autograder.release.up_to_date import Row
from autograder.release.up_to_date import release as release_assignments
from autograder.screen import Screen
from autograder.semester import PRACTICE_NOTE, read_semester
from common.testing.graded_tests import format_points

WIDEST = 200


@click.command()
@click.argument("assignments", nargs=-1)
def release(assignments: tuple[str, ...]) -> None:
    """Generate, build and check everything that has changed.

    ASSIGNMENTS: a1 a2 ...; none: all.
    """
    console = Screen()
    named = chosen(assignments)
    start = time.monotonic()
    with live_lines(console, [assignment.short for assignment in named]) as show:
        rows = release_assignments(named, show)
    print_rows(console, rows)
    console.print(f"took {time.monotonic() - start:.0f} s")
    if any("training" in row.checked.not_run for row in rows):
        console.print("training tests not run; `make verify` runs them")
    if any(row.built.kind is Kind.DRAFT for row in rows):
        console.print(
            "-draft: this term has no hints for hidden tests yet. Don't upload these zips; "
            "`make semester` builds the release.",
            soft_wrap=True,
        )
    if any(row.built.kind is Kind.RELEASE for row in rows):
        console.print(f"-autograder.zip: built for {read_semester().label}", soft_wrap=True)
    if any(row.built.kind is Kind.PRACTICE for row in rows):
        console.print(f"{PRACTICE_NOTE}; `make semester` builds the zips to upload", soft_wrap=True)


def print_rows(console: Console, rows: list[Row]) -> None:
    """The table, and what a person should know of each assignment."""
    print_whole(console, table(rows))
    for row in rows:
        for notice in row.notices:
            console.print(f"[yellow]{row.assignment.short}[/]: {notice}", soft_wrap=True)


def print_whole(console: Console, lines: Table) -> None:
    """Print a table with whole names and numbers, in a log and in a narrow window too."""
    needed = console.measure(lines, options=console.options.update_width(WIDEST)).maximum
    console.width = max(console.width, needed)
    console.print(lines)


def table(rows: list[Row]) -> Table:
    """What was built, and what grading it gave."""
    result = Table(title="conv2gpt: dist/ is up to date")
    result.add_column("assignment", no_wrap=True)
    for column in ("tests", "points", "reference", "stub", "not run", "handout", "autograder"):
        result.add_column(column, justify="right", no_wrap=True)
    result.add_column("graded in", justify="right", no_wrap=True)
    for row in rows:
        seconds = f"{row.checked.seconds:.1f} s"
        left_out = [f"{format_points(part)} {why}" for why, part in row.checked.not_run.items()]
        result.add_row(
            row.assignment.name,
            str(row.tests),
            format_points(row.points),
            format_points(row.checked.reference),
            format_points(row.checked.stub),
            ", ".join(left_out) or "-",
            f"{row.built.handout.stat().st_size / 1024:.0f} KB",
            f"{row.built.autograder.name}, {row.built.autograder.stat().st_size / 1024:.0f} KB",
            f"unchanged ({seconds})" if row.unchanged else seconds,
        )
    return result
