"""Progress display for training loops: a bar on a terminal, plain lines elsewhere.

    with TrainingDisplay(total_steps=1000, title="LeNet") as display:
        for batch in batches:
            ...
            display.step(loss=loss, accuracy=accuracy)
        display.note("epoch 1: test accuracy 0.97")

Everything goes to stderr, so that what a program prints stays clean.
"""

import math
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TextIO

BAR_SECONDS = 0.1  # between two drawings of the bar
LINE_SECONDS = 5.0  # between two lines where there is no terminal
SMOOTHING = 0.05  # the weight of the newest figure, once there are 20
SPEED_WINDOW = 50  # the speed is measured over this many updates: the first steps are often slow


@dataclass(frozen=True)
class Status:
    """How far a loop has come."""

    title: str
    done: int
    total: int
    seconds: float
    speed: float  # steps per second, lately
    figures: dict[str, float]

    @property
    def progress(self) -> str:
        """300/1000"""
        return f"{self.done}/{self.total}"

    @property
    def words(self) -> str:
        """loss 0.4123, 61 steps/s, 0:12 left"""
        left = (self.total - self.done) / self.speed if self.speed else math.inf
        speed = f"{format_speed(self.speed)} steps/s"
        return ", ".join([*self.figure_words, speed, f"{format_duration(left)} left"])

    @property
    def summary(self) -> str:
        """1000/1000 steps in 0:16, loss 0.4123"""
        duration = f"{self.progress} steps in {format_duration(self.seconds)}"
        return ", ".join([duration, *self.figure_words])

    @property
    def figure_words(self) -> list[str]:
        """Each figure with its name."""
        return [f"{name} {format_figure(value)}" for name, value in self.figures.items()]


class Screen(Protocol):
    """Where a status is shown, and how often."""

    seconds_between: float

    def open(self, status: Status) -> None:
        """Begin."""

    def show(self, status: Status) -> None:
        """Show how far the loop has come."""

    def note(self, text: str) -> None:
        """Print a line that stays."""

    def close(self, status: Status, failed: bool) -> None:
        """Leave the last status behind."""


RUNNING: list["TrainingDisplay"] = []  # those that are open in this process


def running_status(since: float) -> Status | None:
    """How far the innermost display has come that was opened since that time and is open still."""
    for display in reversed(RUNNING):
        if display._start >= since:
            return display.status(time.monotonic())
    return None


HIDDEN: list[bool] = []  # not empty while displays show nothing


@contextmanager
def hidden_progress() -> Iterator[None]:
    """Let displays that are made in this block show nothing; `running_status` still knows."""
    HIDDEN.append(True)
    try:
        yield
    finally:
        HIDDEN.pop()


class TrainingDisplay:
    """Shows the steps of a training loop, with smoothed figures, speed and time left."""

    def __init__(self, total_steps: int, title: str = "training") -> None:
        self.total = total_steps
        self.title = title
        self.done = 0
        self.figures: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._screen = choose_screen(sys.stderr)
        self._start = time.monotonic()
        self._next_show = math.inf
        self._recent: deque[tuple[float, int]] = deque(maxlen=SPEED_WINDOW)

    def __enter__(self) -> "TrainingDisplay":
        self._start = time.monotonic()
        self._next_show = self._start + self._screen.seconds_between
        self._recent.append((self._start, 0))
        self._screen.open(self.status(self._start))
        RUNNING.append(self)
        return self

    def step(self, **figures: float) -> None:
        """One step is done; the figures are plain numbers, such as loss=0.4, accuracy=0.9."""
        self.done += 1
        for name, value in figures.items():
            self._smooth(name, float(value))
        now = time.monotonic()
        if now >= self._next_show:
            self._screen.show(self.status(now))
            self._recent.append((now, self.done))
            self._next_show = now + self._screen.seconds_between

    def note(self, text: str) -> None:
        """Print a line that stays, above the bar."""
        self._screen.note(text)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._next_show = math.inf
        with suppress(ValueError):  # left without having been entered
            RUNNING.remove(self)
        self._screen.close(self.status(time.monotonic()), failed=kind is not None)

    def status(self, now: float) -> Status:
        """How far the loop has come."""
        then, done_then = self._recent[0] if self._recent else (self._start, 0)
        speed = (self.done - done_then) / (now - then) if now > then else 0.0
        seconds = now - self._start
        return Status(self.title, self.done, self.total, seconds, speed, dict(self.figures))

    def _smooth(self, name: str, value: float) -> None:
        """A running mean: of all values at first, then with more weight on the latest."""
        before = self.figures.get(name)
        # A figure that was not finite would never get well again.
        if before is None or not math.isfinite(before):
            self.figures[name], self._counts[name] = value, 1
            return
        count = self._counts[name] = self._counts[name] + 1
        self.figures[name] = before + max(1 / count, SMOOTHING) * (value - before)


class Lines:
    """Short lines: for a pipe, a file or a grader."""

    seconds_between = LINE_SECONDS

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def open(self, status: Status) -> None:
        """Nothing to say yet."""

    def show(self, status: Status) -> None:
        self.note(f"{status.title}: {status.progress}, {status.words}")

    def note(self, text: str) -> None:
        # Whoever read the lines may have gone: no reason to end a training.
        with suppress(OSError, ValueError):
            print(text, file=self.stream or sys.stderr, flush=True)

    def close(self, status: Status, failed: bool) -> None:
        self.note(f"{status.title}: {'stopped early, ' if failed else ''}{status.summary}")


class Nothing:
    """No screen: for tests, whose captured output is for what went wrong."""

    seconds_between = math.inf

    def open(self, status: Status) -> None:
        """Show nothing."""

    show = open

    def note(self, text: str) -> None:
        """Print nothing."""

    def close(self, status: Status, failed: bool) -> None:
        """Leave nothing behind."""


class Bar:
    """A progress bar on a terminal, drawn by rich."""

    seconds_between = BAR_SECONDS

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self.console = Console(file=stream)
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),  # what room the words leave
            TextColumn("{task.fields[progress]}", markup=False),
            TextColumn("{task.fields[words]}", markup=False),
            console=self.console,
            expand=True,
            auto_refresh=False,  # a thread that draws would slow the loop
            # rich would send to stderr what a program prints to a file.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
        )

    def open(self, status: Status) -> None:
        self.task = self.progress.add_task(
            status.title, total=max(status.total, 1), progress=status.progress, words=""
        )
        self.progress.start()

    def show(self, status: Status) -> None:
        self.draw(status, status.words)

    def note(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self, status: Status, failed: bool) -> None:
        words = [*status.figure_words, f"in {format_duration(status.seconds)}"]
        try:
            self.draw(status, ", ".join([*words, "stopped early"] if failed else words))
        finally:
            self.progress.stop()  # gives the cursor back

    def draw(self, status: Status, words: str) -> None:
        fields: dict[str, Any] = {"progress": status.progress, "words": words}
        self.progress.update(self.task, completed=status.done, refresh=True, **fields)


def choose_screen(stream: TextIO | None) -> Screen:
    """A bar where one can be drawn, else lines; nothing where progress is hidden."""
    if HIDDEN:
        return Nothing()
    terminal = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    if terminal and stream is not None:
        with suppress(ImportError):  # students need not have rich
            return Bar(stream)
    return Lines(stream)


def format_figure(value: float) -> str:
    """Four digits that matter, so that the words around it stand still."""
    return f"{value:#.4g}".removesuffix(".")


def format_speed(speed: float) -> str:
    """A speed, with decimals only where it is slow."""
    return f"{speed:.0f}" if speed >= 10 else f"{speed:.2f}"


def format_duration(seconds: float) -> str:
    """0:07, 12:05 or 1:02:03; a dash for a time that nobody knows."""
    if not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
