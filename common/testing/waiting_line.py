"""Shows what a slow test is doing while pytest runs it.

It stands below the line that pytest is writing, and on a terminal it leaves no trace there. rich
can't draw it: it would have to know what pytest has written into its line.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

TERMINAL_SECONDS = 0.5  # between two changes of the line
LOG_SECONDS = 10.0  # between two lines of a log
CLEAR, UP, RIGHT = "\r\x1b[K", "\x1b[A", "\x1b[{}C"


@contextmanager
def waiting_for(config: pytest.Config, what: str, where: str) -> Iterator[None]:
    """Show "what (where) ... 7 s" for as long as the block runs."""
    line = open_line(config, what, where)
    if line is None:
        yield
        return
    config.stash[LINE] = line
    line.start()
    try:
        yield
    finally:
        line.stop()


def open_line(config: pytest.Config, what: str, where: str) -> "LogLine | None":
    """The line where pytest writes; None where it writes nothing, or to no file."""
    reporter: Any = config.pluginmanager.getplugin("terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or capture is None or reporter.verbosity < -1:
        return None
    writer = reporter._tw
    captured = config.getoption("capture") != "no"
    with capture.global_and_fixture_disabled():
        writer.flush()
        try:
            stream = os.dup(writer._file.fileno())
        except (AttributeError, OSError, ValueError):
            return None
        if captured and writer.hasmarkup and os.isatty(stream):
            column, columns = writer.width_of_current_line, writer.fullwidth
            return TerminalLine(stream, what, where, (column, columns))
        if writer.width_of_current_line:
            writer.line()
        writer.line(f"{what} ({where}) ...", flush=True)
        # With -s, the code under test prints to the same stream and shows its own progress.
        return LogLine(stream, what, where) if captured else None


class LogLine:
    """Another line now and then, from a thread of its own that writes past pytest's capture."""

    seconds = LOG_SECONDS

    def __init__(self, stream: int, what: str, where: str) -> None:
        self.stream = stream
        self.what = what
        self.where = where
        self.start_time = time.monotonic()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.show_repeatedly, daemon=True)

    def start(self) -> None:
        """Begin to show it."""
        self.thread.start()

    def stop(self) -> None:
        """Show it no longer."""
        if not self.stopped.is_set():
            self.stopped.set()
            self.thread.join()
            self.erase()
            os.close(self.stream)

    def show_repeatedly(self) -> None:
        """Show it again and again."""
        while not self.stopped.wait(self.seconds):
            self.show()

    def show(self) -> None:
        """Write it once."""
        self.write(f"{self.what}{self.suffix()}\n")

    def erase(self) -> None:
        """Leave pytest's own output as it was; a log stays as it is."""

    def suffix(self) -> str:
        """What stands behind the name: where, since when, and the steps of a training."""
        seconds = f" ({self.where}) ... {time.monotonic() - self.start_time:.0f} s"
        display = sys.modules.get("common.training.training_progress")
        status = display.running_status(self.start_time) if display else None
        return f"{seconds}, step {status.progress}" if status else seconds

    def write(self, text: str) -> None:
        """Write past pytest's capture."""
        with suppress(OSError):  # whoever read it may have gone
            os.write(self.stream, text.encode(errors="replace"))


class TerminalLine(LogLine):
    """One line below pytest's own, written again and again, and taken back at the end."""

    seconds = TERMINAL_SECONDS

    def __init__(self, stream: int, what: str, where: str, widths: tuple[int, int]) -> None:
        """widths: the width of what pytest has written into its line, and that of the terminal."""
        super().__init__(stream, what, where)
        self.column, self.columns = widths

    def start(self) -> None:
        self.write("\n")
        self.show()
        super().start()

    def show(self) -> None:
        suffix = self.suffix()
        columns_left = self.columns - 1 - len(suffix)
        short = f"{self.what[: max(columns_left - 3, 0)]}..."
        what = self.what if len(self.what) <= columns_left else short
        self.write(CLEAR + f"{what}{suffix}"[: self.columns - 1])

    def erase(self) -> None:
        column = (self.column - 1) % self.columns + 1 if self.column else 0  # in its last row
        self.write(CLEAR + UP + (RIGHT.format(column) if column else ""))


LINE: pytest.StashKey[LogLine] = pytest.StashKey()


def end_waiting(config: pytest.Config) -> None:
    """Take the line back early, as when a debugger needs the terminal."""
    line = config.stash.get(LINE, None)
    if line is not None:
        line.stop()
