"""Tests of the training display: lines in a pipe, a bar on a terminal, and low overhead."""

import io
import os
import pty
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from common.assignment import ROOT
from common.testing.speed_ratio import compare
from common.training import training_progress
from common.training.training_progress import (
    Bar,
    Lines,
    TrainingDisplay,
    choose_screen,
    format_duration,
    format_figure,
    format_speed,
)
from tests.tooling.scratch_copies import clean_environment, python

PROGRAM = """
import sys, time
from common.training.training_progress import TrainingDisplay
with TrainingDisplay(4, title="LeNet [a2]") as display:
    for step in range(3):
        time.sleep(0.06)
        display.step(loss=1 / (step + 1))
    display.note("epoch 1: [bold] accuracy 0.97")
    print("printed", "rich" in sys.modules)
    if "fail" in sys.argv:
        raise RuntimeError("on purpose")
"""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def seconds(monkeypatch):
    """A clock that the test sets; the display reads it."""
    now = SimpleNamespace(value=100.0)
    monkeypatch.setattr(training_progress, "time", SimpleNamespace(monotonic=lambda: now.value))
    return now


def on_a_terminal(*arguments, **environment):
    """Run the program with a terminal for stderr; what came on stdout, on stderr, and the end."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=ROOT,
        env={**clean_environment(), "TERM": "xterm", "COLUMNS": "100", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the way in which Linux says that nobody writes any more
        pass
    os.close(ours)
    printed, _ = child.communicate(timeout=60)
    return printed, shown.decode(), child.returncode


def test_in_a_pipe_there_is_one_line_at_the_end_and_rich_is_not_imported():
    result = python("-c", PROGRAM, cwd=ROOT)
    assert result.stdout == "printed False\n"
    note, end = result.stderr.splitlines()
    assert note == "epoch 1: [bold] accuracy 0.97"
    assert re.fullmatch(r"LeNet \[a2\]: 3/4 steps in 0:00, loss 0\.6111", end)


def test_in_a_pipe_an_error_passes_and_the_last_line_names_it():
    result = python("-c", PROGRAM, "fail", cwd=ROOT)
    assert result.returncode == 1
    assert "RuntimeError: on purpose" in result.stderr
    assert "LeNet [a2]: stopped early, 3/4 steps in 0:00" in result.stderr


def test_on_a_terminal_there_is_a_bar_and_stdout_stays_clean():
    printed, shown, code = on_a_terminal()
    assert (printed, code) == ("printed True\n", 0)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "LeNet [a2]" in plain
    assert "━" in plain
    assert re.search(r"2/4 loss 0\.7500, [0-9.]+ steps/s, 0:00 left", plain)
    assert re.search(r"3/4 loss 0\.6111, in 0:00", plain)
    assert "epoch 1: [bold] accuracy 0.97\r\n" in plain
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back


def test_on_a_terminal_an_error_passes_and_the_cursor_comes_back():
    _, shown, code = on_a_terminal("fail")
    assert code == 1
    assert "stopped early" in shown
    assert "RuntimeError: on purpose" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_a_terminal_that_can_draw_nothing_gets_lines():
    printed, shown, _ = on_a_terminal(TERM="dumb")
    assert printed == "printed False\n"
    assert "\x1b" not in shown


def test_without_rich_a_terminal_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_screen(Terminal()), Bar)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert isinstance(choose_screen(Terminal()), Lines)


def test_a_line_comes_at_most_every_five_seconds(seconds, capsys):
    with TrainingDisplay(1000, title="t") as shown:
        for _ in range(100):
            seconds.value += 0.125
            shown.step(loss=2.0)
        lines = capsys.readouterr().err.splitlines()
        assert lines == [
            "t: 40/1000, loss 2.000, 8.00 steps/s, 2:00 left",
            "t: 80/1000, loss 2.000, 8.00 steps/s, 1:55 left",
        ]
    assert capsys.readouterr().err == "t: 100/1000 steps in 0:12, loss 2.000\n"


def test_the_speed_is_that_of_late(seconds, capsys):
    with TrainingDisplay(10_000, title="t") as shown:
        seconds.value += 60  # a slow beginning
        for _ in range(training_progress.SPEED_WINDOW + 1):
            seconds.value += 5
            shown.step()
    assert "0.20 steps/s" in capsys.readouterr().err.splitlines()[-2]


def test_figures_are_smoothed():
    shown = TrainingDisplay(10)
    for value in (1.0, 2.0, 6.0):
        shown.step(loss=value)
    assert shown.figures["loss"] == pytest.approx(3.0)  # a mean at first
    rng = np.random.default_rng(0)
    for value in rng.normal(5.0, 1.0, size=2000):
        shown.step(loss=value, accuracy=np.float32(0.5))
    assert abs(shown.figures["loss"] - 5) < 1
    assert shown.figures["accuracy"] == 0.5


def test_a_loss_that_is_not_finite_is_shown_and_then_forgotten():
    shown = TrainingDisplay(10)
    shown.step(loss=float("nan"))
    assert format_figure(shown.figures["loss"]) == "nan"
    shown.step(loss=2.0)
    assert shown.figures["loss"] == 2.0


def test_a_loop_that_ends_early_or_late_or_has_no_steps_is_fine(capsys):
    for total, done in ((5, 2), (2, 5), (0, 0), (0, 3)):
        with TrainingDisplay(total, title="t") as shown:
            for _ in range(done):
                shown.step()
        assert capsys.readouterr().err == f"t: {done}/{total} steps in 0:00\n"


def test_a_reader_that_has_gone_does_not_end_the_training():
    stream = io.StringIO()
    stream.close()
    Lines(stream).note("nobody reads this")


def test_a_step_costs_less_than_a_small_matrix_product():
    matrix = np.random.default_rng(0).normal(size=(128, 128))
    shown = TrainingDisplay(10**9)

    def steps():
        for _ in range(200):
            shown.step(loss=0.5, accuracy=0.5)

    def products():
        for _ in range(200):
            matrix @ matrix

    assert compare(steps, products).ratio > 1


def test_numbers_are_short():
    assert [format_figure(x) for x in (0.5, 12.34567, 1234.5, 1.2e-7)] == [
        "0.5000",
        "12.35",
        "1234",
        "1.200e-07",
    ]
    assert [format_speed(x) for x in (0.25, 61.4)] == ["0.25", "61"]
    assert [format_duration(x) for x in (-1, 7, 725, 3723, float("inf"))] == [
        "0:00",
        "0:07",
        "12:05",
        "1:02:03",
        "-",
    ]
