"""The command behind `make bench`, and its last part alone."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autograder.benchmarks import hostile, parts
from autograder.commands.progress import status_line
from common.benchmark import NotMeasured, Row

FILE_WIDTH = 1000  # columns: more than any row has


@click.command()
@click.option("--only", metavar="PART", help="Run this part alone, such as a1, pytest or batch.")
def bench(only: str | None) -> None:
    """Measure what must be fast; exit code 1 if a bar is missed or a hostile one gets something."""
    chosen = parts.choose(parts.all_parts(), only)
    console = table_console()
    harms = {}
    with status_line(console) as say:
        rows = measured(chosen, announcement(console, say))
        print_rows(console, rows)
        if any(part.name == parts.HOSTILE for part in chosen):
            here, _ = hostile.corpus_here()  # graded for its row
            print_comparison(console, hostile.otter_python(), say, here)
            harms = {name: harm for name, harm in here.items() if harm}
    for name, harm in harms.items():
        console.print(f"[red]{name}[/] gets something from this grader: {harm}")
    missed = [row for row in rows if isinstance(row, Row) and not row.holds]
    print_missed(console, missed)
    sys.exit(1 if missed or harms else 0)


def table_console() -> Console:
    """Where tables go. A file or a pipe has no width, so that nothing is cut there."""
    console = Console()
    return console if console.is_terminal else Console(width=FILE_WIDTH)


def announcement(console: Console, say: Callable[[str], None]) -> Callable[[str], None]:
    """How to say what is measured next: in a log by a line for each, since each may take long."""
    return say if console.is_terminal else console.print


def measured(
    chosen: Sequence[parts.Part], announce: Callable[[str], None]
) -> list[Row | NotMeasured]:
    """The rows of these parts; what is measured is announced before, what was measured after."""
    rows: list[Row | NotMeasured] = []
    for number, part in enumerate(chosen, start=1):
        place = f"part {number} of {len(chosen)}, {part.name}"
        announce(f"measuring {part.what} ({place})")
        for row in part.rows():
            rows.append(row)
            announce(f"measured: {row.name} ({place})")
    return rows


def print_rows(console: Console, rows: Sequence[Row | NotMeasured]) -> None:
    """All that was measured as a table, and what was not."""
    table = Table(title="make bench: best times on one thread, measured alternately")
    for column in ("what", "baseline"):
        table.add_column(column, overflow="fold")
    for column in ("ours", "baseline", "ratio", "bar", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        if isinstance(row, NotMeasured):
            continue
        table.add_row(
            row.name,
            row.baseline,
            shown(row.seconds, row.unit),
            shown(row.baseline_seconds, row.unit),
            f"{row.ratio:.2f}",
            f"<= {row.bar:.3g}",
            "[green]ok[/]" if row.holds else "[red]missed[/]",
        )
    console.print(table)
    for row in rows:
        if isinstance(row, NotMeasured):
            console.print(f"[yellow]not measured[/]: {row.name}. {row.why}")


def print_missed(console: Console, missed: Sequence[Row]) -> None:
    """The rows that missed their bars, or that none did."""
    if not missed:
        console.print("No measured row missed its bar.")
        return
    console.print("Missed bars:")
    for row in missed:
        console.print(f"  {row.name}: {row.ratio:.2f} times {row.baseline}, bar {row.bar:.3g}")


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


def shown(figure: float, unit: str) -> str:
    """A time or another figure that can be read."""
    if unit == "s" and figure < 10:
        return f"{1000 * figure:.1f} ms"
    return f"{figure:.1f} {unit}"
