"""Commands `batch`, `regrade` and `compare`, for a whole class."""

import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from autograder.batch.batch_records import INDEX, Batch, Entry, read_batch
from autograder.batch.batch_run import Order, run_batch
from autograder.batch.engines.engine_protocol import Engine
from autograder.batch.engines.local_engine import LocalEngine
from autograder.batch.engines.parallel_slots import slots_for
from autograder.batch.engines.ray_engine import RayEngine, load_ray
from autograder.batch.input.export_reader import nothing_at
from autograder.batch.input.export_zip import DOWNLOAD_AGAIN
from autograder.batch.output.anonymization import anonymized
from autograder.batch.output.batch_comparison import changes
from autograder.batch.output.missing_defenses import missing_defenses
from autograder.batch.output.written_answers import TEXTS
from autograder.batch.work_queue import Work
from autograder.commands.batch_progress import batch_display
from autograder.screen import Screen
from common.assignment import load_assignment
from common.errors import CourseError

FOLDER = click.Path(path_type=Path)
NOTES_SHOWN = 10


def split(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[Any, ...]:
    """Ids that were given one by one, or several with commas."""
    names = tuple(name.strip() for text in given for name in text.split(",") if name.strip())
    if given and not names:  # an empty variable of a script, for instance: not everyone
        raise CourseError("--only doesn't match any submission.")
    return names


ONLY = click.option(
    "--only",
    multiple=True,
    metavar="ID[,ID...]",
    callback=split,
    help="Grade only these: id, folder or student name; can be repeated.",
)


FAILED = click.option(
    "--failed",
    is_flag=True,
    help="Grade only submissions without a result, or whose regrade failed.",
)


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where submissions are graded."""
    for option in reversed(
        (
            click.option(
                "--jobs",
                type=click.IntRange(min=1),
                help="At most so many at once (default: one for each core); "
                "fewer where cores, memory or GPUs don't suffice.",
            ),
            click.option(
                "--engine",
                type=click.Choice(["local", "ray"]),
                default="local",
                show_default=True,
                help="This machine, or a Ray cluster.",
            ),
            click.option("--address", help="A Ray cluster to join: auto, or host:port."),
            click.option(
                "--gpus-per-submission",
                "gpus",
                type=click.FloatRange(min=0),
                help="Also run the tests that need a GPU; 0.25 lets four share one "
                "(default: none; in a regrade, as before).",
            ),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.argument("assignment")
@click.argument("export", type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="The folder for results and report.")
@engine_options
@click.option("--anonymous", is_flag=True, help="Hide names in the report.")
@ONLY
@FAILED
def batch(
    assignment: str,
    export: Path,
    out: Path,
    jobs: int | None,
    engine: str,
    address: str | None,
    gpus: float | None,
    anonymous: bool,
    only: tuple[str, ...],
    failed: bool,
) -> None:
    """Grade all submissions of a Gradescope export or of a folder. Rerun to resume."""
    order = Order(load_assignment(assignment), export, out, anonymous, gpus or 0.0, only, failed)
    carry_out(order, engine, jobs, address)


@click.command()
@click.argument("folder", type=FOLDER)
@engine_options
@ONLY
@FAILED
def regrade(
    folder: Path,
    jobs: int | None,
    engine: str,
    address: str | None,
    gpus: float | None,
    only: tuple[str, ...],
    failed: bool,
) -> None:
    """Grade submissions of a batch again, with the assignment as it is now."""
    index = read_batch(folder).index
    if not Path(index.export).exists():
        short = index.assignment.partition("_")[0]
        raise CourseError(
            f"{folder} was graded from {index.export}, which no longer exists. Restore it, or run "
            f"`python -m autograder batch {short} EXPORT --out {folder}` with another export."
        )
    order = Order(
        assignment=load_assignment(index.assignment),
        export=Path(index.export),
        out=folder,
        anonymous=index.anonymous,
        gpus=index.gpus if gpus is None else gpus,
        only=only,
        failed=failed,
        regrade=not failed,
    )
    carry_out(order, engine, jobs, address)


@click.command()
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
def compare(first: Path, second: Path) -> None:
    """List whose score differs between two batches, and why; exit code 1 if any does."""
    console = Screen()
    before, after = read_batch(first), read_batch(second)
    count = 0
    for change in changes(before, after):
        count += 1
        names = ", ".join(student.name for student in change.entry.students)
        hidden = before.anonymous or after.anonymous
        who = change.entry.alias if hidden else f"{change.entry.id} {names}".strip()
        console.print(f"[bold]{escape(who)}[/]: {change.before}, now {change.after}")
        for reason in change.reasons:
            console.print(f"  {escape(reason)}", soft_wrap=True)
    total = len({entry.id for entry in (*before.entries, *after.entries)})
    console.print(
        f"{count} of {total} scores differ." if count else f"All {total} scores are equal."
    )
    sys.exit(1 if count else 0)


def carry_out(order: Order, engine: str, jobs: int | None, address: str | None) -> None:
    """Grade, and say how it went; exit code 1 if a submission has no result, or none has code."""
    console = Screen()
    if not order.export.exists():
        raise nothing_at(order.export)
    if address and engine != "ray":
        raise CourseError("--address requires --engine ray.")
    if engine == "ray":
        load_ray()  # an error here and now, where it is missing

    def start(archive: Path) -> Engine:
        private = (order.export, order.out, order.out / INDEX)  # which others might read
        if engine == "local":
            slots = slots_for(order.assignment, jobs, order.gpus)
            if jobs and slots < jobs:
                words = f"{slots} at once, not {jobs}: not enough cores, memory or GPUs."
                console.print(words, soft_wrap=True)
            return LocalEngine(order.assignment, archive, slots, order.gpus, private)
        return RayEngine(order.assignment, archive, jobs, address, order.gpus, private)

    def start_and_listen(archive: Path) -> Engine:
        started = start(archive)
        signal.signal(signal.SIGTERM, interrupt)  # as Ctrl-C, and after Ray has set its own
        return started

    with batch_display(console) as show_progress:
        graded, work = run_batch(order, start_and_listen, show_progress)
    print_batch_summary(console, graded, work)
    complete = work.progress.done == work.progress.total and not work.progress.failed
    sys.exit(0 if complete and not work.stopped and not work.warning else 1)


def interrupt(number: int, frame: FrameType | None) -> None:
    """What SIGTERM does."""
    raise KeyboardInterrupt


def print_batch_summary(console: Console, graded: Batch, work: Work) -> None:
    """How the batch went, and where its results are."""
    print_notes(console, graded)
    for note in missing_defenses(graded):
        console.print(f"[yellow]{escape(note)}[/]", soft_wrap=True)
    for entry in [entry for entry in graded.entries if entry.status == "failed"][:NOTES_SHOWN]:
        print_problem(console, graded, entry, " was not graded:", entry.why)
    again = print_older_results(console, graded)
    progress = work.progress
    counts = Counter(entry.status for entry in graded.entries)
    for entry in [entry for entry in graded.entries if entry.status == "unreadable"][:NOTES_SHOWN]:
        print_problem(console, graded, entry, " was graded as an empty submission:", entry.why)
    if counts["unreadable"] > NOTES_SHOWN:
        console.print(f"[red]and {counts['unreadable'] - NOTES_SHOWN} more such submissions[/]")
    console.print(
        f"{progress.graded} graded, {progress.kept} kept from earlier runs, "
        f"{counts['failed']} without a result, {counts['waiting']} waiting; "
        f"{progress.per_minute:.0f} per minute."
    )
    texts = f", {TEXTS}/" if (graded.folder / TEXTS).is_dir() else ""
    files = f"report.html, grades.csv, canvas.csv, results/{texts}"
    console.print(f"{graded.folder}: {files}", soft_wrap=True)
    if work.stopped:
        rest = "Rerun the same command to resume."
        if work.regrade:
            rest = "The others keep their previous results. Rerun the same command to start over."
        console.print(f"Stopped: {escape(work.stopped)}. {rest}", soft_wrap=True)
    elif counts["failed"] or again:
        words = f"`python -m autograder regrade {graded.folder} --failed` retries them."
        if any(entry.why.endswith(DOWNLOAD_AGAIN) for entry in graded.entries):
            short = work.assignment.short
            words = "Download the export again, then grade what is missing: `python -m autograder "
            words += f"batch {short} EXPORT --out {graded.folder}`."
        console.print(words, soft_wrap=True)


def print_notes(console: Console, graded: Batch) -> None:
    """What was odd about the export. Such notes hold names of files and of students."""
    notes = graded.index.notes
    if graded.anonymous and notes:
        console.print(f"[yellow]{len(notes)} notes, which may hold names, are in {INDEX}.[/]")
        return
    for note in notes[:NOTES_SHOWN]:
        console.print(f"[yellow]{escape(note)}[/]", soft_wrap=True)
    if len(notes) > NOTES_SHOWN:
        console.print(f"[yellow]and {len(notes) - NOTES_SHOWN} more notes[/]")


def print_problem(console: Console, graded: Batch, entry: Entry, words: str, why: str) -> None:
    """A sentence about one submission; its name only where the batch isn't anonymous."""
    name = entry.alias if graded.anonymous else entry.id
    why = anonymized(why, entry) if graded.anonymous else why
    console.print(f"[red]{escape(name)}{words}[/] {escape(why)}", soft_wrap=True)


def print_older_results(console: Console, graded: Batch) -> int:
    """Whose older results stand since grading them again failed; how many they are."""
    present = [entry for entry in graded.entries if entry.older and not entry.absent]
    outdated = [entry for entry in present if entry.outdated]
    older = [entry for entry in present if not entry.outdated]
    for entry in older[:NOTES_SHOWN]:
        print_problem(console, graded, entry, ":", entry.older)
    if len(older) > NOTES_SHOWN:
        console.print(f"[red]and {len(older) - NOTES_SHOWN} more previous results[/]")
    if outdated:
        words = f"{len(outdated)} results were produced with another zip or other settings: "
        words += "`batch` without --only and --failed grades them again."
        console.print(f"[yellow]{words}[/]", soft_wrap=True)
    return len(older)
