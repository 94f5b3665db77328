"""Command `time`: measures how fast a submission trains and generates."""

from pathlib import Path

import click
import msgspec
from rich.markup import escape

from autograder.batch.batch_records import writing
from autograder.commands.grading_commands import OUT, offering_unsafe, writable
from autograder.commands.progress_display import status_line
from autograder.grading.submission import read_submission
from autograder.screen import Screen
from autograder.semester import read_semester
from autograder.timing.speed_table import print_speed
from autograder.timing.submission_speed import TimingOptions, measure
from common.assignment import load_assignment
from common.atomic_write import write_atomically


@click.command()
@click.argument("assignment")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Device to measure on.",
)
@click.option("--repeats", default=20, show_default=True, help="Number of timed runs of each.")
@click.option("--peak-flops", type=float, help="FLOP/s of the device, for the MFU.")
@click.option("--json", "out", type=OUT, callback=writable, help="Write all measurements here.")
@click.option(
    "--unsafe", is_flag=True, help="Measure even where the machine can't protect the grader."
)
def time(
    assignment: str,
    path: Path,
    device: str,
    repeats: int,
    peak_flops: float | None,
    out: Path | None,
    unsafe: bool,
) -> None:
    """Time a submission's training step and generation against a baseline of PyTorch layers."""
    chosen = load_assignment(assignment)
    options = TimingOptions(
        device, repeats, peak_flops, unsafe, seed=int(read_semester().fingerprint, 16)
    )
    console = Screen()
    submission = read_submission(path, chosen)
    status = status_line(console, f"timing {chosen.short} on {device} against the baseline")
    with status, offering_unsafe():
        speed = measure(chosen, submission, options)
    for note in submission.notes:
        console.print(escape(note))
    print_speed(speed, console)
    if out:
        with writing(out):
            write_atomically(out, msgspec.json.format(msgspec.json.encode(speed)) + b"\n")
        console.print(f"Wrote {out}")
