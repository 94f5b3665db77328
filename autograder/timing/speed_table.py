"""Prints a submission's measured speed on the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.timing.alternating_runs import Measurement
from autograder.timing.submission_speed import SubmissionSpeed


def print_speed(speed: SubmissionSpeed, console: Console) -> None:
    """Ratios and rates, then what they were measured on."""
    table = Table(title=f"{speed.assignment} on {escape(speed.device_name)}")
    table.add_column("")
    for column in ("times the baseline's speed", "tokens/s", "the baseline's tokens/s"):
        table.add_column(column, justify="right")
    for entry in (speed.training, speed.generation):
        table.add_row(entry.what, *cells(entry))
    console.print(table)
    for entry in (speed.training, speed.generation):
        if entry.problem:
            console.print(f"[red]x[/] {entry.what}: {escape(entry.problem)}")
    for line in facts(speed):
        console.print(escape(line))


def cells(entry: Measurement) -> list[str]:
    """The figures of one row."""
    rates = (entry.tokens_per_second, entry.baseline_tokens_per_second)
    return [
        str(entry.ratio) if entry.ratio else "-",
        *(f"{rate.median:,.0f}" if rate else "-" for rate in rates),
    ]


def facts(speed: SubmissionSpeed) -> list[str]:
    """The lines below the table."""
    sizes = speed.sizes
    lines = [
        f"{sizes.num_layers} layers, {sizes.num_heads} heads, d_model {sizes.d_model}, context "
        f"{sizes.context_length}, batches of {sizes.batch}, {sizes.new_tokens} new tokens; "
        f"{speed.repeats} runs of each, alternately; in parentheses the 10th and the 90th "
        "percentile of pairwise ratios.",
        "Peak memory of a training step, by the code's own process: "
        f"{megabytes(speed.peak_bytes)}; the baseline's: {megabytes(speed.baseline_peak_bytes)}.",
    ]
    if speed.mfu is not None:
        lines.append(f"Model FLOPs utilization of the training step: {speed.mfu:.1%}.")
    if speed.clocks_before or speed.clocks_after:
        lines.append(f"Clocks before: {speed.clocks_before}. After: {speed.clocks_after}.")
    return [*lines, "Measured with: " + "; ".join(speed.defenses) + "."]


def megabytes(count: int | None) -> str:
    """Bytes that can be read."""
    return "unknown" if count is None else f"{count / 1e6:.1f} MB"
