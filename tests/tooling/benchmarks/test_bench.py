"""Tests of the output of `make bench`, with parts that take no time."""

import json
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from autograder.benchmarks import (
    benchmark_parts,
    graded_test_benchmarks,
    hostile_benchmarks,
    processor_time,
    public_test_benchmarks,
    sandbox_benchmarks,
)
from autograder.benchmarks.benchmark_row import NotMeasured, Row
from autograder.commands.bench_commands import bench, measured
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.testing.graded_tests import GradedTest, Pace, read_graded_tests
from tests.tooling.scratch_copies import copy_repo, python

LONG = "a9: a function with a name that is longer than what is left for it in eighty columns"
FAST = Row(LONG, "a library's function of the same name", 1.0, 2.0, bar=1)
SLOW = Row("a slow one", "a fast one", 7.2, 1.0, bar=4)
LEFT_OUT = NotMeasured("a GPU's step", "There is no GPU.")


def run_bench(monkeypatch, rows, *options):
    """Run the command on parts p1, p2, ... with these rows; its exit code and its lines."""
    made = [
        benchmark_parts.Part(f"p{number}", f"thing {number}", lambda each=each: each)
        for number, each in enumerate(rows, start=1)
    ]
    monkeypatch.setattr(benchmark_parts, "all_parts", lambda: made)
    finished = CliRunner().invoke(bench, options)
    assert isinstance(finished.exception, SystemExit | None), finished.exception
    return finished.exit_code, finished.output.splitlines()


def test_names_are_whole_in_a_file(monkeypatch):
    _, lines = run_bench(monkeypatch, [[FAST]])
    (row,) = [line for line in lines if line.startswith("│") and "a9:" in line]
    assert LONG in row and FAST.baseline in row and "ok" in row
    assert not any("…" in line for line in lines)


def test_it_ends_with_the_rows_that_missed_their_bars(monkeypatch):
    code, lines = run_bench(monkeypatch, [[FAST, SLOW], [LEFT_OUT, FAST]])
    assert code == 1
    assert lines[-2:] == ["Exceeded limits:", "  a slow one: 7.20x a fast one, limit 4x"]
    assert "not measured: a GPU's step. There is no GPU." in lines


def test_only_one_part_is_run(monkeypatch):
    code, lines = run_bench(monkeypatch, [[SLOW], [FAST]], "--only", "p2")
    assert (code, lines[-1]) == (0, "No measured row exceeds its limit.")
    assert any(LONG in line for line in lines) and not any("a slow one" in line for line in lines)


def test_what_is_measured_is_said_before_it_is():
    """In a log, too, where a line within ten seconds of another is left out elsewhere."""
    said = []

    def rows():
        assert said[-1] == "measuring thing 1 (part 1 of 1, p1)"
        yield FAST

    assert measured([benchmark_parts.Part("p1", "thing 1", rows)], said.append) == ([FAST], [])
    assert said[-1].startswith(f"measured: {LONG}: ")
    assert said[-1].endswith(" (part 1 of 1, p1)")


def test_a_log_has_the_figures_of_each_row_as_it_comes(monkeypatch):
    _, lines = run_bench(monkeypatch, [[SLOW, LEFT_OUT]])
    figures = "ours 7200.0 ms, baseline 1000.0 ms (a fast one), ratio 7.20, limit <= 4"
    assert lines[1] == f"measured: a slow one: {figures} (part 1 of 1, p1)"
    assert lines[2] == "not measured: a GPU's step. There is no GPU. (part 1 of 1, p1)"


def failing(error, *rows):
    """The rows of a part that fails after these."""
    yield from rows
    raise error


FAILURES = {
    "for people": (CourseError("A batch went wrong."), "A batch went wrong."),
    "of a command": (
        RuntimeError("pytest failed:\nsome output\n1 failed [a]\n"),
        "RuntimeError: pytest failed: ... 1 failed [a]",
    ),
    "of the system": (OSError("no [space] left"), "OSError: no [space] left"),
    "of a process": (subprocess.TimeoutExpired("make", 5), "TimeoutExpired: Command 'make' timed"),
    "without words": (ZeroDivisionError(), "ZeroDivisionError: "),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_part_that_fails_loses_nothing_that_was_measured(monkeypatch, kind):
    error, reason = FAILURES[kind]
    code, lines = run_bench(monkeypatch, [[SLOW], failing(error, FAST), [SLOW]])
    assert code == 1
    table = [line for line in lines if line.startswith("│")]
    assert sum("a slow one" in line for line in table) == 2
    assert sum(LONG in line for line in table) == 1
    line = f"not measured: thing 2. The part p2 failed: {reason}"
    assert sum(each.startswith(line) for each in lines) == 2  # as it came, and after the table
    assert "Failed parts: p2" in lines


def test_a_failed_part_alone_makes_the_exit_code_1(monkeypatch):
    code, lines = run_bench(monkeypatch, [failing(CourseError("It broke.")), [FAST]])
    assert (code, lines[-2:]) == (1, ["Failed parts: p1", "No measured row exceeds its limit."])


def test_ctrl_c_ends_all_parts():
    with pytest.raises(KeyboardInterrupt):
        measured(
            [benchmark_parts.Part("p1", "a", lambda: failing(KeyboardInterrupt()))],
            lambda text: None,
        )


def test_hostile_submissions_that_failed_are_not_graded_again(monkeypatch):
    def corpus_here():
        raise CourseError("The corpus is damaged.")

    monkeypatch.setattr(hostile_benchmarks, "corpus_here", corpus_here)
    part = benchmark_parts.Part(
        benchmark_parts.HOSTILE, "hostile submissions", lambda: [hostile_benchmarks.corpus_row()]
    )
    monkeypatch.setattr(benchmark_parts, "all_parts", lambda: [part])
    finished = CliRunner().invoke(bench, [])
    assert finished.exit_code == 1
    assert "Failed parts: hostile" in finished.output


def test_an_unknown_part_is_one_sentence_that_lists_the_parts():
    words = [sys.executable, "-m", "autograder", "bench", "--only", "nope"]
    finished = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    (line,) = finished.stderr.splitlines()
    assert finished.returncode == 2 and finished.stdout == ""
    assert "no part 'nope'" in line
    assert all(f" {part.name}" in line for part in benchmark_parts.all_parts())


def test_public_tests_are_held_to_the_seconds_that_they_may_take(monkeypatch):
    monkeypatch.setattr(public_test_benchmarks, "ALLOWED_SECONDS", 1e-3)
    row = public_test_benchmarks.one_core_row(load_assignment("a1"))
    assert row.baseline_seconds == 1e-3 and row.seconds > 0.1 and not row.holds


def test_public_tests_that_fail_are_not_measured(monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    row = public_test_benchmarks.one_core_row(load_assignment("a1"))
    assert isinstance(row, NotMeasured) and "doesn't pass" in row.why


def test_public_tests_of_a_fresh_checkout_get_their_solved_lab(tmp_path):
    repo = copy_repo(tmp_path / "repo")
    script = (
        "from autograder.benchmarks.public_test_benchmarks import one_core_row;"
        "from common.assignment import load_all;"
        "print(one_core_row(*load_all()))"
    )
    assert python("-c", script, cwd=repo).stdout.startswith("Row(")


def graded(name, *tags, lab=False):
    return GradedTest(name, "1.1", 1.0, False, "", "visible", tags, reads_lab=lab)


def test_the_slowest_tests_and_the_lab_are_held_to_their_seconds():
    seconds = {"test_a": 0.2, "test_b": 1.5, "test_c": 14, "test_d": 3, "test_e": 8, "test_f": 2.5}
    graded_tests = [
        *(graded("test_a"), graded("test_b", "timing"), graded("test_not_run", "gpu")),
        *(graded("test_c", "training"), graded("test_d", "training")),
        *(graded("test_e", lab=True), graded("test_f", lab=True)),
    ]
    assert list(graded_test_benchmarks.limit_rows("a9", graded_tests, seconds)) == [
        Row("processor time of a9's slowest quick test, test_b", "1 second", 1.5, 1, bar=1),
        Row("processor time of a9's slowest training test, test_c", "15 seconds", 14, 15, bar=1),
        Row("processor time of a9's solved lab with its 2 tests", "10 seconds", 10.5, 10, bar=1),
    ]


def test_the_slowest_test_and_the_lab_of_a_fresh_checkout_are_measured(tmp_path):
    """With assignment 1 alone, which trains nothing."""
    repo = copy_repo(tmp_path / "repo")
    finished = python("-m", "autograder", "bench", "--only", "tests", cwd=repo)
    quick, lab = [line for line in finished.stdout.splitlines() if line.startswith("measured: ")]
    tests = {test.name: test for test in read_graded_tests(ROOT / "tests" / "a1_convolution")}
    named = re.match(
        "measured: processor time of a1's slowest quick test, (test_[a-z0-9_]+):", quick
    )
    assert tests[named[1]].pace is Pace.QUICK
    count = sum(test.reads_lab for test in tests.values())
    assert lab.startswith(f"measured: processor time of a1's solved lab with its {count} tests: ")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def test_it(): raise OSError", "TESTS_FAILED, and the reference fails test_it"),
        ("raise OSError", "INTERRUPTED"),
    ],
)
def test_tests_that_the_reference_fails_are_not_measured(tmp_path, code, said):
    repo = copy_repo(tmp_path / "repo")
    for name in ("test_public.py", "test_hidden.py"):
        (repo / "tests" / "a1_convolution" / name).write_text(code)
    finished = python("-m", processor_time.__name__, "a1", tmp_path / "seconds.json", cwd=repo)
    assert finished.returncode == 1 and not (tmp_path / "seconds.json").exists()
    assert finished.stderr.splitlines()[-1] == f"pytest ended with {said}"


def test_a_test_that_is_skipped_has_no_time(tmp_path):
    repo = copy_repo(tmp_path / "repo")
    code = "import pytest\ndef test_{0}(): pass\ndef test_{0}_with_a_gpu(): pytest.skip()"
    for name in ("public", "hidden"):
        (repo / "tests" / "a1_convolution" / f"test_{name}.py").write_text(code.format(name))
    file = tmp_path / "seconds.json"
    assert python("-m", processor_time.__name__, "a1", file, cwd=repo).returncode == 0
    assert json.loads(file.read_text()).keys() == {"test_public", "test_hidden"}


def test_a_failed_measurement_is_one_row_that_says_why(monkeypatch):
    monkeypatch.setattr(graded_test_benchmarks, "MEASURE", "no_such_module")
    (row,) = graded_test_benchmarks.assignment_rows(load_assignment("a1"))
    assert isinstance(row, NotMeasured) and "No module named no_such_module" in row.why


def test_the_time_of_a_test_is_that_of_the_processor():
    times = processor_time.ProcessorTimes()
    measuring = times.pytest_runtest_protocol(SimpleNamespace(name="test_that_sleeps"))
    next(measuring)
    time.sleep(0.2)
    with pytest.raises(StopIteration):
        measuring.send(True)
    assert times.seconds["test_that_sleeps"] < 0.1


def test_what_a_stand_in_costs_is_measured_against_a_test_without_one(monkeypatch):
    monkeypatch.setattr(sandbox_benchmarks, "REPEATS", 3)
    row = sandbox_benchmarks.standin_row()
    assert row.name.startswith("a child for one test of a2 that calls a stand-in (")
    assert row.baseline == "one that calls none and 20 ms"
    assert row.baseline_seconds > 0.02 and row.seconds > 0 and row.bar == 1
