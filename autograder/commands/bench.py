"""The command behind `make bench`."""

import importlib
import sys
from collections.abc import Iterator

import click
from rich.console import Console
from rich.table import Table

from autograder.benchmarks import machinery
from common.assignment import ROOT, load_all
from common.benchmark import Row


@click.command()
def bench() -> None:
    """Measure what must be fast; exit code 1 if a bar is missed."""
    console = Console()
    table = Table(title="make bench: best times on one thread, measured alternately")
    for column in ("what", "yardstick"):
        table.add_column(column)
    for column in ("ours", "yardstick", "ratio", "bar", ""):
        table.add_column(column, justify="right")
    missed = 0
    with console.status("measuring") as status:
        for row in all_rows():
            status.update(f"measured: {row.name}")
            missed += not row.holds
            table.add_row(
                row.name,
                row.yardstick,
                milliseconds(row.seconds),
                milliseconds(row.yardstick_seconds),
                f"{row.ratio:.2f}",
                f"<= {row.bar:g}",
                "[green]ok[/]" if row.holds else "[red]missed[/]",
            )
    console.print(table)
    sys.exit(1 if missed else 0)


def all_rows() -> Iterator[Row]:
    """The rows of every assignment's reference, then those of the machinery."""
    for assignment in load_all():
        if (ROOT / "solutions" / assignment.name / "benchmarks.py").is_file():
            yield from importlib.import_module(f"solutions.{assignment.name}.benchmarks").rows()
    yield from machinery.rows()


def milliseconds(seconds: float) -> str:
    """A time that can be read."""
    return f"{1000 * seconds:.1f} ms"
