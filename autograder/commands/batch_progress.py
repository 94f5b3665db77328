"""Shows a batch's progress: a live display on a terminal, occasional lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autograder.batch.work_queue import BatchProgress, Work
from autograder.commands.progress_display import live_display

MOST_SHOWN = 16


@contextmanager
def batch_display(console: Console) -> Iterator[Callable[[Work], None]]:
    """What `run_batch` is to call to show how far it is."""
    ready = "preparing: building the zip and starting the judges"
    if not console.is_terminal:
        console.print(ready)
    with live_display(console, ready) as show:
        yield lambda work: show(summary(work.progress), lambda: picture(work))


def summary(progress: BatchProgress) -> str:
    """How far it is, in a line."""
    parts = [f"{progress.done} of {progress.total} done"]
    if progress.kept:
        parts.append(f"{progress.kept} of them in earlier runs")
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.retries:
        parts.append(f"{progress.retries} retried")
    parts.append(f"{progress.per_minute:.0f} per minute")
    if progress.minutes_left is not None:
        parts.append(f"{duration(60 * progress.minutes_left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def picture(work: Work) -> Group:
    """The bar, the line, and the submissions that are being graded."""
    if work.stopped:
        return Group(Text("Stopping. Results so far are kept; writing tables and report."))
    progress = work.progress
    rows = Table(box=None, pad_edge=False, show_header=False)
    running = work.running
    for attempt, started in running[:MOST_SHOWN]:
        again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
        rows.add_row(escape(attempt.id) + again, f"{time.monotonic() - started:.0f} s")
    if len(running) > MOST_SHOWN:
        rows.add_row(Text(f"and {len(running) - MOST_SHOWN} more", style="dim"), "")
    bar = Table.grid()  # which ends the bar's line
    bar.add_row(ProgressBar(total=max(progress.total, 1), completed=progress.done, width=60))
    return Group(bar, Text(summary(progress)), rows)
