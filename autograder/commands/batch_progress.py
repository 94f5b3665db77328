"""Shows a batch's progress: a live display on a terminal, occasional lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autograder.batch.engines.engine_protocol import Engine
from autograder.batch.work_queue import Tally, Work
from autograder.commands.progress_display import live_display

SLOTS_SHOWN = 16


@contextmanager
def following(console: Console) -> Iterator[Callable[[Work, Engine], Callable[[], None]]]:
    """What `run_batch` is to call to show how far it is."""
    ready = "getting ready: the zip is built, and judges are started"
    if not console.is_terminal:
        console.print(ready)
    with live_display(console, ready) as show:

        def follow(work: Work, engine: Engine) -> Callable[[], None]:
            return lambda: show(summary(work.tally), lambda: picture(work, engine))

        yield follow


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


def picture(work: Work, engine: Engine) -> Group:
    """The bar, the line, and what each slot is doing."""
    if work.stopped:
        return Group(Text("Stopping. What is graded is kept; tables and report are written."))
    tally = work.tally
    slots = Table(box=None, pad_edge=False, show_header=False)
    running = dict(work.running)
    for slot in range(1, min(engine.slots, SLOTS_SHOWN) + 1):
        attempt = running.get(slot)
        if attempt is None:
            slots.add_row(f"slot {slot}", Text("idle", style="dim"), "")
            continue
        again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
        seconds = time.monotonic() - attempt.started
        slots.add_row(f"slot {slot}", escape(attempt.id) + again, f"{seconds:.0f} s")
    if engine.slots > SLOTS_SHOWN:
        slots.add_row("", Text(f"and {engine.slots - SLOTS_SHOWN} slots more", style="dim"), "")
    bar = Table.grid()  # which ends the bar's line
    bar.add_row(ProgressBar(total=max(tally.total, 1), completed=tally.done, width=60))
    return Group(bar, Text(summary(tally)), slots)
