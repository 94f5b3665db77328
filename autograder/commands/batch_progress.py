"""Shows a batch's progress: a live display on a terminal, occasional lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autograder.batch.work_queue import Tally, Work
from autograder.commands.progress_display import live_display

MOST_SHOWN = 16


@contextmanager
def batch_display(console: Console) -> Iterator[Callable[[Work], None]]:
    """What `run_batch` is to call to show how far it is."""
    ready = "getting ready: the zip is built, and judges are started"
    if not console.is_terminal:
        console.print(ready)
    with live_display(console, ready) as show:
        yield lambda work: show(summary(work.tally), lambda: picture(work))


def summary(tally: Tally) -> str:
    """How far it is, in a line."""
    parts = [f"{tally.done} of {tally.total} done"]
    if tally.kept:
        parts.append(f"{tally.kept} of them before")
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    if tally.retries:
        parts.append(f"{tally.retries} tried again")
    parts.append(f"{tally.per_minute:.0f} per minute")
    if tally.minutes_left is not None:
        parts.append(f"{duration(60 * tally.minutes_left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """A time as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def picture(work: Work) -> Group:
    """The bar, the line, and the submissions that are being graded."""
    if work.stopped:
        return Group(Text("Stopping. What is graded is kept; tables and report are written."))
    tally = work.tally
    rows = Table(box=None, pad_edge=False, show_header=False)
    running = work.running
    for attempt, started in running[:MOST_SHOWN]:
        again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
        rows.add_row(escape(attempt.id) + again, f"{time.monotonic() - started:.0f} s")
    if len(running) > MOST_SHOWN:
        rows.add_row(Text(f"and {len(running) - MOST_SHOWN} more", style="dim"), "")
    bar = Table.grid()  # which ends the bar's line
    bar.add_row(ProgressBar(total=max(tally.total, 1), completed=tally.done, width=60))
    return Group(bar, Text(summary(tally)), rows)
