"""Progress bars and status lines for commands: live on a terminal, plain lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

LINE_EVERY = 10.0  # seconds


class LogLines:
    """Lines of a log, at most one in a while."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.begin = self.said = time.monotonic()

    def say(self, text: str) -> None:
        """Print it, unless another line was printed just now."""
        now = time.monotonic()
        if now - self.said >= LINE_EVERY:
            self.said = now
            self.console.print(f"{text} ({now - self.begin:.0f} s)")


@contextmanager
def progress_bar(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that takes how much of how much is done."""
    if not console.is_terminal:
        log = LogLines(console)
        yield lambda done, total: log.say(f"{what}: {done} of {total}")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        bar = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)


@contextmanager
def live_lines(console: Console, names: list[str]) -> Iterator[Callable[[str, str], None]]:
    """A function that takes what is being done for each of several things, a line for each."""
    if not console.is_terminal:
        log = LogLines(console)
        yield lambda name, doing: log.say(f"{name}: {doing}")
        return
    doing = dict.fromkeys(names, "waiting")
    with Live(console=console, refresh_per_second=4, transient=True) as live:

        def show(name: str, what: str) -> None:
            doing[name] = what
            grid = Table.grid(padding=(0, 2))
            for one, now in doing.items():
                grid.add_row(one, escape(now))
            live.update(grid)

        yield show


@contextmanager
def status_line(console: Console) -> Iterator[Callable[[str], None]]:
    """A function that takes what is being done."""
    if not console.is_terminal:
        yield LogLines(console).say
        return
    with console.status("looking for changes") as status:
        yield status.update
