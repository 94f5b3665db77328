"""The command behind `make chaos`."""

import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autograder.commands.progress import status_line
from autograder.proving.faults.disturbed_gradings import Chaos, Report, lasting_harm

SHOWN = 60


@click.command()
@click.option(
    "--faults",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How many to let strike.",
)
@click.option("--seed", default=1, show_default=True, help="Decides which strikes when.")
def chaos(faults: int, seed: int) -> None:
    """Inject faults into gradings; exit code 1 unless every result stays whole and honest."""
    console = Console()
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="conv2gpt-chaos-") as folder,
        status_line(console, "grading without a fault") as say,
    ):
        Path(folder).chmod(0o711)
        made = Chaos(Path(folder), seed)
        if not made.own_disks:
            console.print("No disks of our own here: a full disk is a limit on the judge's files.")
        done: list[Report] = []

        def note(report: Report) -> None:
            done.append(report)
            say(f"{len(done)} of {faults} faults")

        reports = made.strike(faults, note)
        wrong = [(report, text) for report in reports for text in report.complaints]
        after = lasting_harm(made)
    console.print(table_of(reports))
    for report, text in wrong:
        console.print(f"[red]fault {report.number}, {report.fault}:[/] {text}")
    for text in after:
        console.print(f"[red]{text}[/]")
    console.print(
        f"{len(reports)} faults in {time.monotonic() - start:.0f} s, seed {seed}: "
        + (f"{len(wrong) + len(after)} complaints." if wrong or after else "every result held.")
    )
    sys.exit(1 if wrong or after else 0)


def table_of(reports: list[Report]) -> Table:
    """Each kind of fault: how often, what it cost, and what was said most often."""
    table = Table(title="make chaos: what struck, and what became of the grading")
    for column in ("fault", "times", "points", "said"):
        table.add_column(column, justify="right" if column in ("times", "points") else "left")
    by_fault: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        by_fault[report.fault].append(report)
    for fault, struck in sorted(by_fault.items()):
        points = [report.points for report in struck]
        said = sorted(
            {report.told for report in struck}, key=[report.told for report in struck].count
        )
        texts = "\n".join(text.splitlines()[0][:SHOWN] for text in reversed(said[-3:]))
        table.add_row(fault, str(len(struck)), f"{min(points):g} to {max(points):g}", texts)
    return table
