"""Tests of the leaderboard: finite entries reach results.json and the terminal."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from autograder.grading.terminal import print_result
from common.testing.leaderboard import Leaderboard
from tests.a7_minigpt.artifact_cases import report_loss
from tests.a7_minigpt.optimizer_cases import report_speed
from tests.tooling.grading.test_results import read_checked
from tests.tooling.grading_fixtures import grade, write_tests
from tests.tooling.scratch_copies import copy_repo, python

ENTERS = """
@weight(2)
@number("1.1")
def test_enters(leaderboard):
    \"\"\"A figure is entered, and another in place of it.\"\"\"
    leaderboard("loss", 9.5)
    leaderboard("speed", float("inf"), order="desc")
    leaderboard("loss", np.float32(1.5))


@weight(2)
@number("1.1")
def test_enters_and_fails(leaderboard):
    \"\"\"A figure of a test that fails counts all the same.\"\"\"
    leaderboard("speed", 3, order="desc")
    assert_equal(1, 2, what="one")
"""
ENTERED = [
    {"name": "loss", "value": 1.5, "order": "asc"},
    {"name": "speed", "value": 3.0, "order": "desc"},
]


@pytest.mark.parametrize("direct", [False, True])
def test_entries_are_in_the_result_as_soon_as_their_test_has_run(tmp_path, direct):
    out, seen = tmp_path / "results.json", []
    result = grade(
        "x = 1",
        out=out,
        direct=direct,
        tests=write_tests(tmp_path, ENTERS),
        on_test=lambda outcome: seen.append(read_checked(out)["leaderboard"]),
    )
    assert seen == [ENTERED[:1], ENTERED]
    assert json.loads(out.read_text())["leaderboard"] == ENTERED
    console = Console(file=io.StringIO(), width=200)
    print_result(result, console)
    assert "Leaderboard: loss: 1.5; speed: 3." in console.file.getvalue()


def test_without_entries_there_is_no_leaderboard(tmp_path):
    out = tmp_path / "results.json"
    tests = write_tests(tmp_path, ENTERS.replace("leaderboard(", "print("))
    grade("x = 1", out=out, direct=True, tests=tests)
    assert "leaderboard" not in read_checked(out)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -np.inf, np.float64("nan")])
def test_what_is_no_finite_number_is_left_out(value):
    board = Leaderboard()
    board.add("loss", value)
    assert board.entries == {}


def test_an_order_that_gradescope_does_not_know_is_refused():
    with pytest.raises(ValueError, match="one of asc, desc, got up"):
        Leaderboard().add("loss", 1.0, "up")
    with pytest.raises(TypeError):
        Leaderboard().add("loss", "1.0")


def test_a_students_own_pytest_prints_the_entries_at_the_end(tmp_path):
    root = copy_repo(tmp_path / "repo")
    file = root / "tests" / "a1_convolution" / "test_public.py"
    file.write_text(file.read_text("utf-8") + ENTERS, "utf-8")
    said = python("-m", "pytest", "-k", "enters", cwd=root).stdout
    before, _, after = said.partition(" leaderboard ")
    assert "points in this run" in before
    assert "  loss: 1.5\n  speed: 3\n" in after
    assert "leaderboard" not in python("-m", "pytest", "-k", "single", cwd=root).stdout


def test_a_speed_that_cannot_be_is_no_entry():
    board = Leaderboard()
    report_speed(board.add, 2.01)
    assert board.entries == {}
    report_speed(board.add, 1.234)
    assert board.lines == ["tokens/s relative to the baseline: 1.23"]


def test_a_loss_that_cannot_be_is_no_entry():
    board = Leaderboard()
    report_loss(board.add, 0.98)
    assert board.entries == {}
    report_loss(board.add, 1.4567)
    assert board.lines == ["validation loss: 1.457"]
