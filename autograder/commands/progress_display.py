"""Progress bars and status lines for commands: live on a terminal, plain lines in a log."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.spinner import Spinner
from rich.table import Table

LINE_EVERY = 10.0  # seconds

Show = Callable[[str, Callable[[], RenderableType]], None]


@contextmanager
def live_display(console: Console, first: RenderableType) -> Iterator[Show]:
    """A function that takes a line for a log, and what makes the picture for a terminal.

    first: the picture at the beginning.
    """
    if console.is_terminal:
        with Live(first, console=console, refresh_per_second=4, transient=True) as live:
            yield lambda line, picture: live.update(picture())
        return
    begin = said = time.monotonic()

    def say(line: str, picture: Callable[[], RenderableType]) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= LINE_EVERY:
            said = now
            console.print(escape(f"{line} ({now - begin:.0f} s)"))

    yield say


@contextmanager
def progress_bar(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that takes how much of how much is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, TimeElapsedColumn(), console=console)
    bar = progress.add_task(what, total=None)
    with live_display(console, progress) as show:

        def update(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total)
            show(f"{what}: {done} of {total}", lambda: progress)

        yield update


@contextmanager
def live_lines(console: Console, names: list[str]) -> Iterator[Callable[[str, str], None]]:
    """A function that shows the current step of each of several tasks, one line per task."""
    doing = dict.fromkeys(names, "waiting")

    def picture() -> Table:
        grid = Table.grid(padding=(0, 2))
        for name, now in doing.items():
            grid.add_row(name, escape(now))
        return grid

    with live_display(console, "") as show:

        def update(name: str, what: str) -> None:
            doing[name] = what
            show(f"{name}: {what}", picture)

        yield update


@contextmanager
def status_line(console: Console, first: str) -> Iterator[Callable[[str], None]]:
    """A function that takes what is being done; first: what is done until it is called."""

    def spinner(text: str) -> Spinner:
        return Spinner("dots", text, style="status.spinner")

    with live_display(console, spinner(first)) as show:
        yield lambda text: show(text, lambda: spinner(text))
