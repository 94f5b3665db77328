"""Commands `labs` and `otter`: make lab notebooks, and zips for grading with plain Otter."""

import click

from autograder.authoring.otter_assign import write_labs
from autograder.commands.authoring_commands import chosen
from autograder.packaging.otter_zip import build_and_prove
from common.assignment import ROOT
from common.testing.graded_tests import format_points


@click.command()
@click.argument("assignments", nargs=-1)
def labs(assignments: tuple[str, ...]) -> None:
    """Make the labs' notebooks from their masters.

    ASSIGNMENTS: a1 to a7; none: all.
    """
    entries = chosen(assignments)
    for file in write_labs(entry for entry in entries if entry.lab):
        click.echo(f"written: {file.relative_to(ROOT)}")
    for entry in entries:
        if assignments and not entry.lab:
            click.echo(f"{entry.short} has no lab: its assignment.toml has no [lab]")


@click.command()
@click.argument("assignments", nargs=-1)
def otter(assignments: tuple[str, ...]) -> None:
    """Build dist/aN-otter.zip, and grade the solved and the student's lab with it.

    ASSIGNMENTS: a1 to a7; none: all.
    """
    for assignment in chosen(assignments):
        if assignment.lab:
            proof = build_and_prove(assignment)
            solved, student = proof.solved, proof.student
            click.echo(
                f"{proof.archive.relative_to(ROOT)}: {solved.tests} tests; the solved lab gets "
                f"{format_points(solved.score)} of {format_points(solved.maximum)} points, the "
                f"student's {format_points(student.score)}"
            )
