"""Tests of the output of a student's `pytest` and of a TA's `grade`."""

import json
import os
import pty
import re
import select
import subprocess
import sys

import pytest

from autograder.grading.judge import Judge, Settings
from autograder.grading.results import Result
from autograder.grading.submission import Submission
from common.assignment import ROOT, load_assignment
from common.testing.graded_tests import Pace, read_graded_tests
from tests.tooling.grading_fixtures import SEMESTER
from tests.tooling.scratch_copies import python

PUBLIC = "tests/a1_convolution/test_public.py"
HIDDEN = "tests/a1_convolution/test_hidden.py"
SIZES = "conv_output_size"


def run(*arguments):
    """Run Python as a person would, in the root of the course."""
    return python(*arguments, cwd=ROOT, env={"COLUMNS": "200"})


def run_pytest(*arguments):
    return run("-m", "pytest", "-p", "no:cacheprovider", *arguments)


def test_the_reference_can_be_tested_and_earns_all():
    done = run_pytest("-q", "--impl=solutions", PUBLIC, HIDDEN, "-k", f"{SIZES} or parameters")
    assert done.returncode == 0, done.stdout
    assert re.search(r"  1\.1 +5 of 5   conv_output_size", done.stdout)
    assert re.search(r"  1\.7 +3 of 3   conv_parameters", done.stdout)
    assert "8 of 8 points in this run. Hidden tests decide 36 more." in done.stdout
    assert "public tests that you have not run decide 56 more points." in done.stdout


def test_a_traceback_is_there_for_those_who_ask_for_it():
    done = run_pytest("--tb=long", PUBLIC, "-k", "counts_the_kernel_positions")
    assert "raise NotImplementedError" in done.stdout and "test_public.py" in done.stdout
    assert "0 of 1 points in this run" in done.stdout


def test_the_salt_decides_what_all_tests_draw_and_that_of_handouts_is_no_terms():
    script = (
        "import sys, pytest\n"
        "class Look:\n"
        "    @pytest.hookimpl(wrapper=True)\n"
        "    def pytest_fixture_setup(self, fixturedef, request):\n"
        "        value = yield\n"
        "        if fixturedef.argname == 'rng':\n"
        "            print('drew', request.node.name, value.bit_generator.state['state'])\n"
        "        return value\n"
        "pytest.main(sys.argv[1:], plugins=[Look()])\n"
    )
    chosen = ("-s", "--impl=solutions", PUBLIC, HIDDEN, "-k", "any_sizes or single_one")
    drawn = {}
    for salt in ("one", "two", "practice", ""):
        done = run("-c", script, *chosen, *([f"--salt={salt}"] if salt else []))
        drawn[salt] = dict(re.findall(r"drew (\w+) (.*)", done.stdout))
    assert len(drawn["one"]) == 3
    assert drawn[""] == drawn["practice"]  # what a student's own run draws
    for name, state in drawn["one"].items():
        assert len({state, drawn["two"][name], drawn["practice"][name]}) == 3


@pytest.mark.parametrize("direct", [True, False], ids=["direct", "isolated"])
def test_grade_prints_points_and_reasons_and_writes_the_result(direct, tmp_path):
    out = tmp_path / "results.json"
    arguments = ["grade", "a1", "assignments/a1_convolution", "--out", str(out)]
    done = run("-m", "autograder", *arguments, *(["--direct"] if direct else []))
    assert done.returncode == 0, done.stderr
    content = json.loads(out.read_text())
    for text in (" ".join(done.stdout.split()), content["output"]):
        assert ("WITHOUT PROTECTION" in text) == direct
        assert ("no network: " in text) != direct
    assert content["extra_data"]["finished"] is True
    text = " ".join(done.stdout.split())
    assert "0 of 100 points. Hidden tests decide 39 of the 100" in text
    assert "conv2d_forward is not written yet." in text and "(hidden)" in text
    assert f"Wrote {out}" in done.stdout.replace("\n", "")


WAITS = """
import time
from gradescope_utils.autograder_utils.decorators import number, tags, weight
from common.training.training_progress import TrainingDisplay

@weight(1)
@number("1.1")
@tags("training")
def test_it_learns_something():
    '''It trains.'''
    with TrainingDisplay(7) as display:
        for _ in range(3):
            display.step(loss=1.0)
        print("said by the student")
        time.sleep(1.2)

@weight(1)
@number("1.8")
def test_q1_the_lab_is_right(lab):
    '''It reads the lab.'''

@weight(1)
@number("1.2")
def test_it_is_quick():
    '''It waits for nothing.'''
"""
TRAINING_LINE = "training: it learns something (exercise 1.1) ..."
LAB_LINE = "lab: running lab.ipynb (a1) ..."


def write_waits(tmp_path, text):
    """The command that runs a test that trains, one of a lab and a quick one, as a1's."""
    file = tmp_path / "a1_convolution" / "test_public.py"
    file.parent.mkdir()
    file.write_text(text)
    config = ["--noconftest", "-c", os.devnull, f"--rootdir={tmp_path}", "-p", "no:cacheprovider"]
    return ["-m", "pytest", "-p", "common.testing.fixtures", *config, str(file)]


@pytest.fixture
def waits(tmp_path):
    return write_waits(tmp_path, WAITS)


def test_training_can_be_left_out_and_its_mark_is_known(waits):
    done = run(*waits, "-v", "-m", "not training", "--strict-markers", "-W", "error")
    assert re.findall(r"::(test_\w+)", done.stdout) == [
        "test_it_is_quick",
        "test_q1_the_lab_is_right",
    ]
    assert "2 passed, 1 deselected" in done.stdout and "warning" not in done.stdout
    assert "1 passed, 2 deselected" in run(*waits, "-m", "training").stdout
    marks = run(*waits, "--markers").stdout
    assert all(f"@pytest.mark.{mark}: " in marks for mark in ("training", "timing", "gpu"))


def test_the_summary_counts_the_tests_that_were_left_out():
    public = "tests/a2_lenet/test_public.py"
    done = run_pytest("--impl=solutions", public, "-m", "not training", "-k", "relu")
    assert re.search(
        r"^  \d+ public tests that you have not run decide [\d.]+ more points "
        r"\(2 of them train a model\)\.$",
        done.stdout,
        re.MULTILINE,
    )


def test_a_failed_test_shows_what_was_printed_but_no_progress(tmp_path):
    failing = WAITS.replace("time.sleep(1.2)", "display.note('epoch 1'); assert False, 'so'")
    arguments = write_waits(tmp_path, failing)
    shown = run(*arguments).stdout
    assert "1 failed" in shown and "said by the student" in shown
    assert "steps in" not in shown and "epoch 1" not in shown and "Captured stderr" not in shown
    with_s = run(*arguments, "-s")
    assert "epoch 1" in with_s.stderr and "3/7 steps in" in with_s.stderr


def on_a_terminal(*arguments, folder, typed=""):
    """What Python writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "TERM": "xterm"},
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            written += os.read(ours, 65536)
        except OSError:  # all its writers have gone
            break
    os.close(ours)
    process.wait(60)
    return written.decode()


def test_quick_tests_run_first_then_the_lab_and_what_trains_last(waits):
    done = run(*waits, "-v")
    assert re.findall(r"::(test_\w+)", done.stdout) == [
        "test_it_is_quick",
        "test_q1_the_lab_is_right",
        "test_it_learns_something",
    ]
    listed = run(*waits, "--collect-only", "-q")
    assert "..." not in listed.stdout
    assert listed.stdout.index("is_quick") < listed.stdout.index("learns_something")


def test_a_judge_runs_hidden_tests_last_and_reports_in_the_order_of_the_files():
    """Each time, what is quick comes before the lab, and what trains after it."""
    assignment = load_assignment("a2")
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    result = Result(assignment, list(graded_tests), "")
    judge = Judge(result, Submission(), None, Settings(SEMESTER))
    order = [(test.hidden, test.pace) for test in judge.tests]
    assert order == sorted(order) and {pace for _, pace in order} == set(Pace)
    assert [(test.hidden, test.pace) for test in graded_tests] != order
    assert [outcome.test for outcome in result.all_outcomes] == graded_tests
    chosen = tuple(test.name for test in reversed(graded_tests))
    result = Result(assignment, [*reversed(graded_tests)], "")
    judge = Judge(result, Submission(), None, Settings(SEMESTER, only=chosen))
    assert [test.name for test in judge.tests] == list(chosen)


@pytest.mark.parametrize("options", [(), ("-q",), ("-v",), ("-s",)], ids=str)
def test_a_log_says_before_a_long_test_what_it_waits_for(waits, options):
    done = run(*waits, *options)
    lines = done.stdout.splitlines()
    assert lines.index(LAB_LINE) < lines.index(TRAINING_LINE)
    assert "3 passed" in done.stdout
    assert ("said by the student" in lines) == (options == ("-s",))
    assert "\x1b" not in done.stdout


def test_a_quieter_log_says_nothing(waits):
    assert "training:" not in run(*waits, "-qq").stdout


def test_a_terminal_shows_seconds_and_steps_and_then_only_what_pytest_wrote(waits, tmp_path):
    written = on_a_terminal(*waits, folder=tmp_path)
    assert re.search(
        r"training: it learns something \(exercise 1\.1\) \.\.\. 1 s, step 3/7", written
    )
    text = as_seen(written)
    assert "training:" not in text and "lab: running" not in text
    assert re.search(r"test_public\.py \.\.\. +\[100%\]", text)


def as_seen(written):
    """What stands on a terminal after all that was written to it."""
    rows, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\d*[A-Za-z]|\x1b\[[\d;]*m|\r|\n|[^\x1b\r\n]+", written):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            rows += [""] * (row == len(rows))
        elif part == "\x1b[K":
            rows[row] = rows[row][:column]
        elif part == "\x1b[A":
            row -= 1
        elif part.endswith("C") and part.startswith("\x1b"):
            column += int(part[2:-1])
        elif not part.startswith("\x1b"):
            rows[row] = rows[row].ljust(column)[:column] + part + rows[row][column + len(part) :]
            column += len(part)
    return "\n".join(rows)


def test_a_debugger_gets_the_terminal_for_itself(waits, tmp_path):
    file = tmp_path / "a1_convolution" / "test_public.py"
    file.write_text(WAITS.replace("time.sleep(1.2)", "breakpoint()"))
    written = on_a_terminal(*waits, "-k", "learns", folder=tmp_path, typed="time.sleep(1.2)\nc\n")
    before, after = written.split("(Pdb)", 1)
    assert "training: it learns" in before and "training: it learns" not in after
    assert "1 passed" in after
