"""The command behind `make bench`, and its last part alone."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autograder.benchmarks import batch, hostile, machinery, protection
from autograder.commands.progress import status_line
from common.assignment import ROOT, load_all
from common.benchmark import NotMeasured, Row


@click.command()
def bench() -> None:
    """Measure what must be fast; exit code 1 if a bar is missed or a hostile one gets something."""
    console = Console()
    table = Table(title="make bench: best times on one thread, measured alternately")
    for column in ("what", "yardstick"):
        table.add_column(column)
    for column in ("ours", "yardstick", "ratio", "bar", ""):
        table.add_column(column, justify="right")
    missed, left_out = 0, []
    with status_line(console) as say:
        say("measuring")
        for row in all_rows():
            say(f"measured: {row.name}")
            if isinstance(row, NotMeasured):
                left_out.append(row)
                continue
            missed += not row.holds
            table.add_row(
                row.name,
                row.yardstick,
                shown(row.seconds, row.unit),
                shown(row.yardstick_seconds, row.unit),
                f"{row.ratio:.2f}",
                f"<= {row.bar:.3g}",
                "[green]ok[/]" if row.holds else "[red]missed[/]",
            )
        console.print(table)
        for row in left_out:
            console.print(f"[yellow]not measured[/]: {row.name}. {row.why}")
        if not batch.has_ray():
            console.print("Ray is not installed, so grading by it was not measured.")
        here, _ = hostile.corpus_here()  # graded for its row
        print_comparison(console, hostile.otter_python(), say, here)
    harms = {name: harm for name, harm in here.items() if harm}
    for name, harm in harms.items():
        console.print(f"[red]{name}[/] gets something from this grader: {harm}")
    sys.exit(1 if missed or harms else 0)


@click.command("hostile")
@click.option("--otter", type=click.Path(path_type=Path), help="An environment with otter-grader.")
@click.option("--install-otter", is_flag=True, help="Make one in dist/ first.")
@click.option("--each", is_flag=True, help="Say of each submission what it gets.")
def compare_graders(otter: Path | None, install_otter: bool, each: bool) -> None:
    """Hand hostile submissions to other graders and to this one, which must give them nothing."""
    console = Console()
    with status_line(console) as say:
        if install_otter:
            say("installing otter-grader into dist/")
            otter = hostile.install_otter()
        harms = print_comparison(console, hostile.otter_python(otter), say, each=each)
    sys.exit(1 if harms else 0)


def print_comparison(
    console: Console,
    otter: Path | None,
    tell: Callable[[str], None],
    here: Mapping[str, hostile.Harm] | None = None,
    each: bool = False,
) -> int:
    """Print what hostile submissions get from each grader; how many get something from this one."""
    table, found = hostile.compare(otter, lambda name: tell(f"hostile submissions to {name}"), here)
    console.print(table)
    for name in next(iter(found.values())) if each else ():
        console.print(f"{name}: " + "; ".join(f"{key}: {found[key][name]}" for key in found))
    return sum(map(bool, found[hostile.HERE].values()))


def all_rows() -> Iterator[Row | NotMeasured]:
    """The rows of every assignment's reference, then those of the machinery."""
    for assignment in load_all():
        if (ROOT / "solutions" / assignment.name / "benchmarks.py").is_file():
            yield from importlib.import_module(f"solutions.{assignment.name}.benchmarks").rows()
    yield from machinery.rows()
    yield from protection.rows()
    yield hostile.corpus_row()
    yield from batch.rows()


def shown(figure: float, unit: str) -> str:
    """A time or another figure that can be read."""
    if unit == "s" and figure < 10:
        return f"{1000 * figure:.1f} ms"
    return f"{figure:.1f} {unit}"
