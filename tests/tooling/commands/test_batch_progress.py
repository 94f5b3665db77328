"""Tests of the progress display of a batch."""

import io
import time
from types import SimpleNamespace

from rich.console import Console

from autograder.batch.batch_records import Submitted
from autograder.batch.work_queue import Attempt, BatchProgress
from autograder.commands.batch_progress import batch_display, picture


def test_the_display_tells_how_far_it_is_and_what_is_being_graded():
    progress = BatchProgress(300, kept=20, graded=100, failed=2, retries=3)
    progress.began = time.monotonic() - 60
    attempt = Attempt(Submitted("215001", "there"), 2, "", False, "", b"")
    state = SimpleNamespace(
        progress=progress, running=[(attempt, time.monotonic() - 3)] * 18, stopped=""
    )
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(picture(state))
    bar, line, first, *_, last = console.export_text().splitlines()
    assert set(bar.strip()) <= {*"━╸╺ "}
    assert line.strip() == (
        "122 of 300 done, 20 of them in earlier runs, 2 failed, 3 retried, 100 per minute, "
        "1 min 47 s left"
    )
    assert first.split() == ["215001", "(attempt", "2)", "3", "s"]
    assert last.split() == ["and", "2", "more"]
    state.stopped = "by Ctrl-C"
    console.print(picture(state))
    assert console.export_text().startswith("Stopping.")


def test_without_a_terminal_there_are_plain_lines(monkeypatch):
    monkeypatch.setattr("autograder.commands.progress_display.LINE_EVERY", 0.0)
    console = Console(width=100, file=io.StringIO())
    with batch_display(console) as show:
        show(SimpleNamespace(progress=BatchProgress(3, graded=1)))
    ready, line, *_ = console.file.getvalue().splitlines()
    assert ready.startswith("preparing") and line.startswith("1 of 3 done, ")
