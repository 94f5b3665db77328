"""The command that makes the labs' notebooks."""

import click

from autograder.commands.authoring import chosen
from autograder.labs.assign import write_labs
from common.assignment import ROOT


@click.command()
@click.argument("assignments", nargs=-1)
def labs(assignments: tuple[str, ...]) -> None:
    """Make the labs' notebooks from their masters."""
    entries = chosen(assignments)
    for file in write_labs(entry for entry in entries if entry.lab):
        click.echo(f"written: {file.relative_to(ROOT)}")
    for entry in entries:
        if assignments and not entry.lab:
            click.echo(f"{entry.short} has no lab: its assignment.toml has no [lab]")
