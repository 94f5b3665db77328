"""Command `doctor`: shows which defenses of the sandbox hold on this machine."""

import os
import sys

import click
from rich.console import Console
from rich.table import Table

from autograder.commands.progress_display import status_line
from autograder.grading.grade import secret_paths
from autograder.grading.sandbox.defenses import Defense, Mechanism, check_required, mechanisms
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.screen import Screen
from common.assignment import load_all
from common.errors import CourseError

YES, NO = "[green]yes[/]", "[red]no[/]"


@click.command()
def doctor() -> None:
    """Try what protects the grader on this machine; exit code 1 where grading would refuse."""
    console = Screen()
    assignment = load_all()[0]
    with (
        status_line(console, "trying what student code must not be able to do"),
        Sandbox(assignment) as sandbox,
    ):
        defenses = sandbox.admit({}, secret_paths())
        assert sandbox.findings is not None
        found = mechanisms(sandbox.findings)
    console.print(defense_table(defenses))
    console.print(mechanism_table(found))
    sys.exit(say_verdict(console, defenses, found))


def defense_table(defenses: tuple[Defense, ...]) -> Table:
    """What was tried from inside a child, and what it would cost."""
    table = Table(title="what student code must not be able to do, tested here")
    for column in ("defense", "holds", "by", "without it"):
        table.add_column(column)
    for defense in defenses:
        cost = f"{defense.cost}; grading refuses" if defense.required else defense.cost
        means = defense.means if defense.holds else ""
        table.add_row(defense.name, YES if defense.holds else NO, means, cost)
    return table


def mechanism_table(found: tuple[Mechanism, ...]) -> Table:
    """What the kernel has given, and what its absence costs."""
    table = Table(title="kernel features of this machine")
    for column in ("mechanism", "here", "what is lost without it"):
        table.add_column(column)
    for one in found:
        table.add_row(one.name, YES if one.there else NO, one.cost)
    return table


def say_verdict(
    console: Console, defenses: tuple[Defense, ...], found: tuple[Mechanism, ...]
) -> int:
    """In a sentence or two; the exit code."""
    missing = [defense.name for defense in defenses if not defense.holds]
    lacking = [one.name for one in found if not one.there]
    console.print(f"Missing here: {', '.join(lacking)}." if lacking else "Nothing is missing here.")
    if lacking and os.getuid() != 0:
        console.print("Running as root enables more of these, as on Gradescope.")
    try:
        check_required(defenses, unsafe=False)
    except CourseError as error:
        console.print(f"[red]{error}[/]")
        return 1
    if missing:
        console.print(f"Grading works here, but this isn't ensured: {'; '.join(missing)}.")
    else:
        without = ", even without what is missing" if lacking else ""
        console.print(f"Grading works here, and every defense holds{without}.")
    return 0
