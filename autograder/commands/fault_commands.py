"""Commands `chaos...`: inject faults into gradings and batches, and grade fuzzed submissions."""

import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from autograder.batch.engines.ray_engine import load_ray
from autograder.classroom.disturbed_batch import (
    differences_between,
    grade_undisturbed,
    grade_with_faults,
)
from autograder.classroom.synthetic_class import make_class
from autograder.classroom.synthetic_export import write_class
from autograder.commands.progress_display import progress_bar, status_line
from autograder.proving.faults.disturbed_gradings import DisturbedGradings, FaultReport
from autograder.proving.hostile.attack_findings import AttackRow, grade_attacks
from autograder.proving.hostile.fuzzed_submissions import SEED, SUBMISSIONS, FuzzedSubmission
from autograder.screen import Screen
from autograder.semester import DIST
from common.assignment import load_assignment

SHOWN = 60


@click.command()
@click.option(
    "--faults",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Number of faults to inject.",
)
@click.option("--seed", default=1, show_default=True, help="Random seed of the faults.")
def chaos(faults: int, seed: int) -> None:
    """Inject faults into gradings; exit code 1 unless every result stays complete and correct."""
    console = Screen()
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="conv2gpt-chaos-") as folder,
        status_line(console, "grading without a fault") as say,
    ):
        Path(folder).chmod(0o711)
        gradings = DisturbedGradings(Path(folder), seed)
        if not gradings.own_disks:
            console.print(
                "Mounting is not permitted here: limits on file sizes simulate full disks."
            )
        done: list[FaultReport] = []

        def note(report: FaultReport) -> None:
            done.append(report)
            say(f"{len(done)} of {faults} faults")

        reports = gradings.inject(faults, note)
        wrong = [(report, text) for report in reports for text in report.problems]
        after = gradings.lasting_damage()
    console.print(fault_table(reports))
    for report, text in wrong:
        console.print(f"[red]fault {report.number}, {report.fault}:[/] {text}")
    for text in after:
        console.print(f"[red]{text}[/]")
    console.print(
        f"{len(reports)} faults in {time.monotonic() - start:.0f} s, seed {seed}: "
        + (f"{len(wrong) + len(after)} problems." if wrong or after else "every result held.")
    )
    sys.exit(1 if wrong or after else 0)


def fault_table(reports: list[FaultReport]) -> Table:
    """Each kind of fault: how often, what it cost, and what was said most often."""
    table = Table(title="make chaos: injected faults and the outcome of the gradings")
    for column in ("fault", "times", "points", "message"):
        table.add_column(column, justify="right" if column in ("times", "points") else "left")
    by_fault: dict[str, list[FaultReport]] = defaultdict(list)
    for report in reports:
        by_fault[report.fault].append(report)
    for fault, injected in sorted(by_fault.items()):
        points = [report.points for report in injected]
        messages = [report.message for report in injected]
        rarest_first = sorted(set(messages), key=messages.count)
        texts = "\n".join(text.splitlines()[0][:SHOWN] for text in reversed(rarest_first[-3:]))
        table.add_row(fault, str(len(injected)), f"{min(points):g} to {max(points):g}", texts)
    return table


@click.command("chaos-batch")
@click.argument("assignment", default="a1")
@click.option("--students", default=100, show_default=True, help="Number of students.")
@click.option("--every", default=5, show_default=True, help="Results between two faults.")
@click.option("--seed", default=1, show_default=True, help="Random seed of the faults.")
@click.option(
    "--engine",
    multiple=True,
    type=click.Choice(["local", "ray"]),
    help="Only this one; can be repeated (default: both).",
)
def chaos_batch(
    assignment: str, students: int, every: int, seed: int, engine: tuple[str, ...]
) -> None:
    """Kill parts of batches at random; exit code 1 unless results match an undisturbed batch."""
    console = Screen()
    engines = engine or ("local", "ray")
    if "ray" in engines:
        load_ray()  # an error here and now, where it is missing
    table = Table(title="make chaos: a class, graded while parts of the batch are killed")
    for column in ("engine", "killed", "starts", "seconds", "differences from an undisturbed run"):
        table.add_column(column)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="conv2gpt-chaos-batch-") as name:
        folder = Path(name)
        # Without attacks: where a clock decides, a result may differ for no fault of the batch.
        submissions = make_class(load_assignment(assignment), students, seed, without=("hostile",))
        export = write_class(submissions, load_assignment(assignment), folder / "class")
        undisturbed = folder / "undisturbed"
        grade_undisturbed(assignment, export, undisturbed)
        for chosen in engines:
            start = time.monotonic()
            report = grade_with_faults(assignment, export, folder / chosen, chosen, every, seed)
            found = [*report.problems, *differences_between(undisturbed, folder / chosen)]
            wrong += len(found)
            killed = ", ".join(f"{count} {part}" for part, count in report.kills.items())
            seconds = f"{time.monotonic() - start:.0f}"
            table.add_row(chosen, killed, str(report.starts), seconds, "\n".join(found) or "none")
    console.print(table)
    sys.exit(1 if wrong else 0)


@click.command("chaos-submissions")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=SUBMISSIONS,
    show_default=True,
    help="Number of submissions.",
)
@click.option("--seed", default=SEED, show_default=True, help="Random seed of the submissions.")
@click.option("--only", type=int, help="Grade the submission of this number, and keep its files.")
def chaos_submissions(count: int, seed: int, only: int | None) -> None:
    """Grade submissions that do odd things by chance; exit code 1 unless every result is right."""
    console = Screen()
    start = time.monotonic()
    numbers = range(1, count + 1) if only is None else (only,)
    submissions = [FuzzedSubmission(seed, number) for number in numbers]
    done: list[AttackRow] = []
    with progress_bar(console, f"grading fuzzed submissions, seed {seed}") as show:

        def note(row: AttackRow) -> None:
            done.append(row)
            show(len(done), len(submissions))

        rows = grade_attacks(submissions, note)
    minutes = (time.monotonic() - start) / 60
    wrong = [row for row in rows if row.problems]
    for row in wrong:
        number = row.name.rpartition("-")[2]
        console.print(f"[red]{row.name}[/]: " + escape("; ".join(row.problems)))
        if only is None:
            again = f"python -m autograder chaos-submissions --seed {seed} --only {number}"
            console.print(f"  Repeat with: {again}", soft_wrap=True)
    if only is not None:
        folder = DIST / submissions[0].name
        folder.mkdir(parents=True, exist_ok=True)
        submissions[0].lay_out(folder, submissions[0].honest_parts())
        console.print(f"Its files are in {folder}.", soft_wrap=True)
    console.print(
        f"{len(rows)} fuzzed submissions in {minutes:.1f} min ({len(rows) / minutes:.0f} per "
        f"minute), seed {seed}: " + (f"{len(wrong)} went wrong." if wrong else "every result held.")
    )
    sys.exit(1 if wrong else 0)
