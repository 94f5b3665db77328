"""Commands `bench` and `hostile`: benchmarks, and the comparison with other graders."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.benchmarks import benchmark_parts, hostile_benchmarks
from autograder.benchmarks.benchmark_row import NotMeasured, Row
from autograder.benchmarks.other_graders.grader_adapters import Harm
from autograder.commands.progress_display import status_line
from autograder.screen import Screen
from common.errors import CourseError

FILE_WIDTH = 1000  # columns: more than any row has


@click.command()
@click.option("--only", metavar="PART", help="Run this part alone, such as a1, pytest or batch.")
def bench(only: str | None) -> None:
    """Run the benchmarks.

    The exit code is 1 if a part failed, a limit is exceeded or a hostile submission succeeds.
    """
    chosen = benchmark_parts.choose(benchmark_parts.all_parts(), only)
    console = table_console()
    harms = {}
    with status_line(console, "looking for changes") as say:
        rows, failed = measured(chosen, announcement(console, say))
        print_rows(console, rows)
        if any(part.name == benchmark_parts.HOSTILE for part in chosen if part not in failed):
            here, _ = hostile_benchmarks.corpus_here()  # graded for its row
            print_comparison(console, hostile_benchmarks.otter_python(), say, here)
            harms = {name: harm for name, harm in here.items() if harm}
    for name, harm in harms.items():
        console.print(f"[red]{name}[/] gains something from this grader: {harm}")
    if failed:
        console.print(f"Failed parts: {', '.join(part.name for part in failed)}")
    missed = [row for row in rows if isinstance(row, Row) and not row.holds]
    print_missed(console, missed)
    sys.exit(1 if failed or missed or harms else 0)


def table_console() -> Console:
    """Where tables go. A file or a pipe has no width, so that nothing is cut there."""
    console = Screen()
    return console if console.is_terminal else Screen(width=FILE_WIDTH)


def announcement(console: Console, say: Callable[[str], None]) -> Callable[[str], None]:
    """How to say what is measured next: in a log by a line for each, since each may take long."""
    if console.is_terminal:
        return lambda text: say(escape(text))
    return lambda text: console.print(text, markup=False, highlight=False)


def measured(
    chosen: Sequence[benchmark_parts.Part], announce: Callable[[str], None]
) -> tuple[list[Row | NotMeasured], list[benchmark_parts.Part]]:
    """The rows of these parts, each announced before and after it is measured, and failed parts.

    Whatever goes wrong in one part, the rows of the others are kept.
    """
    rows: list[Row | NotMeasured] = []
    failed = []
    for number, part in enumerate(chosen, start=1):
        position = f"part {number} of {len(chosen)}, {part.name}"
        announce(f"measuring {part.what} ({position})")
        try:
            for row in part.rows():
                rows.append(row)
                announce(f"{result(row)} ({position})")
        except Exception as error:
            failed.append(part)
            rows.append(NotMeasured(part.what, f"The part {part.name} failed: {one_line(error)}"))
            announce(f"{result(rows[-1])} ({position})")
    return rows, failed


def result(row: Row | NotMeasured) -> str:
    """A row in one line, with its figures."""
    if isinstance(row, NotMeasured):
        return f"not measured: {row.name}. {row.why}"
    ours, baseline, ratio, bar = figures(row)
    against = f"baseline {baseline} ({row.baseline})"
    return f"measured: {row.name}: ours {ours}, {against}, ratio {ratio}, limit {bar}"


def one_line(error: Exception) -> str:
    """An error's first line, and its last one if a command's output follows the first."""
    lines = str(error).strip().splitlines() or [""]
    text = " ... ".join(lines[:1] + lines[1:][-1:])
    return text if isinstance(error, CourseError) else f"{type(error).__name__}: {text}"


def figures(row: Row) -> tuple[str, str, str, str]:
    """Ours, the baseline, their ratio and the bar, to be read."""
    ours, baseline = shown(row.seconds, row.unit), shown(row.baseline_seconds, row.unit)
    return ours, baseline, f"{row.ratio:.2f}", f"<= {row.bar:.3g}"


def print_rows(console: Console, rows: Sequence[Row | NotMeasured]) -> None:
    """All that was measured as a table, and what was not."""
    table = Table(title="make bench: best times on one thread, measured alternately")
    for column in ("what", "baseline"):
        table.add_column(column, overflow="fold")
    for column in ("ours", "baseline", "ratio", "limit", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        if isinstance(row, NotMeasured):
            continue
        table.add_row(
            row.name,
            row.baseline,
            *figures(row),
            "[green]ok[/]" if row.holds else "[red]exceeded[/]",
        )
    console.print(table)
    for row in rows:
        if isinstance(row, NotMeasured):
            console.print(f"[yellow]not measured[/]: {escape(f'{row.name}. {row.why}')}")


def print_missed(console: Console, missed: Sequence[Row]) -> None:
    """The rows that missed their bars, or that none did."""
    if not missed:
        console.print("No measured row exceeds its limit.")
        return
    console.print("Exceeded limits:")
    for row in missed:
        console.print(f"  {row.name}: {row.ratio:.2f}x {row.baseline}, limit {row.bar:.3g}x")


@click.command("hostile")
@click.option(
    "--otter", type=click.Path(path_type=Path), help="Path of an environment with otter-grader."
)
@click.option("--install-otter", is_flag=True, help="Create one in dist/ first.")
@click.option("--each", is_flag=True, help="List what each submission gains.")
def compare_graders(otter: Path | None, install_otter: bool, each: bool) -> None:
    """Grade hostile submissions with other graders and with this one, where none may gain."""
    console = Screen()
    with status_line(console, "looking for changes") as say:
        if install_otter:
            say("installing otter-grader into dist/")
            otter = hostile_benchmarks.install_otter()
        harms = print_comparison(console, hostile_benchmarks.otter_python(otter), say, each=each)
    sys.exit(1 if harms else 0)


def print_comparison(
    console: Console,
    otter: Path | None,
    report: Callable[[str], None],
    here: Mapping[str, Harm] | None = None,
    each: bool = False,
) -> int:
    """Print what hostile submissions get from each grader; how many get something from this one."""
    table, found = hostile_benchmarks.compare(
        otter, lambda name: report(f"hostile submissions to {name}"), here
    )
    console.print(table)
    for name in next(iter(found.values())) if each else ():
        console.print(f"{name}: " + "; ".join(f"{key}: {found[key][name]}" for key in found))
    return sum(map(bool, found[hostile_benchmarks.HERE].values()))


def shown(figure: float, unit: str) -> str:
    """A time or another figure that can be read."""
    if unit == "s" and figure < 10:
        return f"{1000 * figure:.1f} ms"
    return f"{figure:.1f} {unit}"
