"""Tests that faults at random moments leave a complete and correct result."""

import json
import os
import random
from collections import Counter
from itertools import pairwise

import pytest

from autograder.grading.grade import grade
from autograder.grading.gradescope import reporting_failure
from autograder.grading.judge import Settings
from autograder.grading.sandbox import conversation
from autograder.proving.faults.fault_injector import (
    Fault,
    FaultInjector,
    Injection,
    plan_faults,
)
from autograder.proving.faults.grading_faults import GRADING_FAULTS, JumpingClock
from autograder.proving.faults.result_checks import (
    UNFINISHED,
    read_complete_result,
    result_problems,
)
from common.assignment import ROOT
from common.errors import GraderFault
from tests.tooling.grading_fixtures import REFERENCE, SEMESTER, assignment, submission, with_lab
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import python

CHOSEN = sample("faults", range(200), len(GRADING_FAULTS) // 2)  # half of the kinds
NAMES = (
    "test_conv_output_size_counts_the_kernel_positions",
    "test_conv_parameters_counts_weights_and_biases",
    "test_linear_parameters_counts_weights_and_biases",
)
CODE = with_lab(REFERENCE.read_bytes())


def test_faults_leave_whole_and_honest_results():
    """Of other kinds and at other moments for each commit."""
    options = ("--faults", str(len(CHOSEN)), "--seed", str(CHOSEN[-1]))
    finished = python("-m", "autograder", "chaos", *options, cwd=ROOT)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert f"{len(CHOSEN)} faults in" in finished.stdout
    assert "every result held" in finished.stdout


def entry(name, score, output="Title.\n\nA sentence."):
    return {
        "name": name,
        "score": score,
        "max_score": 2.0,
        "status": "passed" if score else "failed",
        "output": output,
        "visibility": "visible",
        "extra_data": {"test": name},
    }


def result(*tests, finished=True, output="Graded with: nothing."):
    return {"tests": list(tests), "output": output, "extra_data": {"finished": finished}}


EARNED = {"a": 2.0, "b": 0.0}


def test_a_good_result_has_no_problems():
    assert result_problems(result(entry("a", 2.0), entry("b", 0.0)), EARNED, True) == []
    lost = result(entry("a", 0.0), entry("b", 0.0), finished=False, output=UNFINISHED)
    assert result_problems(lost, EARNED, False) == []


@pytest.mark.parametrize(
    ("bad", "ended_well", "problem"),
    [
        (result(entry("a", 2.0)), True, "1 tests are missing"),
        (result(entry("a", 2.0), entry("b", 1.0)), True, "points that were not earned"),
        (result(entry("a", 2.0), entry("b", 0.0), entry("c", 1.0)), True, "did not run"),
        (result(entry("a", 0.0, "Title."), entry("b", 0.0)), True, "without an explanation"),
        (result(entry("a", 2.0), entry("b", 0.0), finished=False), False, "did not finish"),
        (
            result(entry("a", 2.0), entry("b", 0.0), finished=False, output=UNFINISHED),
            True,
            "nothing says why",
        ),
    ],
    ids=range(6),
)
def test_a_bad_result_is_noticed(bad, ended_well, problem):
    (reported,) = result_problems(bad, EARNED, ended_well)
    assert problem in reported


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"tests": []}', json.dumps(result(entry("a", 3.0)))],
    ids=range(6),
)
def test_a_result_that_is_not_whole_is_noticed(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ValueError):
        read_complete_result(tmp_path / "results.json")


def test_a_clock_that_jumps_never_goes_back():
    clock = JumpingClock(random.Random(0))
    times = [clock() for _ in range(5000)]
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert min(steps) >= 0 and max(steps) > 100
    assert len({fault.name for fault in GRADING_FAULTS}) == len(GRADING_FAULTS) == 10


def grade_here(out):
    settings = Settings(SEMESTER, out=out, only=NAMES)
    return grade(assignment(), CODE, settings)


def failing_writes(monkeypatch, which):
    """Make those writes of the result fail, counted from 0."""
    replace, count = os.replace, Counter()

    def fail(source, target):
        count["writes"] += 1
        if count["writes"] - 1 in which:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)


def test_a_disk_that_is_full_for_a_while_costs_nothing(tmp_path, monkeypatch, capfd):
    failing_writes(monkeypatch, {1, 2})
    graded = grade_here(tmp_path / "results.json")
    assert graded.score == graded.maximum > 0
    assert read_complete_result(tmp_path / "results.json")["extra_data"]["finished"]
    assert "can't be written: No space left on device." in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_a_disk_that_is_full_in_the_end_is_reported_and_leaves_the_last_result(
    tmp_path, monkeypatch
):
    failing_writes(monkeypatch, range(2, 99))
    with pytest.raises(GraderFault, match="can't be written: No space left on device"):
        grade_here(tmp_path / "results.json")
    left = read_complete_result(tmp_path / "results.json")
    assert "Grading did not finish." in left["output"] and not left["extra_data"]["finished"]


def test_a_fault_that_cannot_be_written_is_reported_with_its_reason(tmp_path):
    reported = (
        "Grading failed: MemoryError. Writing this to the result failed too: .*: Not a directory"
    )
    (tmp_path / "file").touch()
    with (
        pytest.raises(GraderFault, match=reported),
        reporting_failure(assignment(), tmp_path / "file" / "results.json"),
    ):
        raise MemoryError


def test_a_lack_of_memory_in_the_judge_is_no_verdict(tmp_path, monkeypatch):
    """The test is run again; the student's own lack of memory is a failure as ever."""
    ask, lacked = conversation.Conversation.ask, []

    def lack_once(self, question, *details, label=""):
        if question in ("call", "operate") and not lacked:
            lacked.append(label)
            raise MemoryError
        return ask(self, question, *details, label=label)

    monkeypatch.setattr(conversation.Conversation, "ask", lack_once)
    graded = grade_here(tmp_path / "results.json")
    assert lacked and graded.score == graded.maximum > 0
    greedy = REFERENCE.read_text("utf-8") + "\n\ndef conv_output_size(*a):\n    raise MemoryError\n"
    settings = Settings(SEMESTER, only=NAMES)
    failed = grade(assignment(), submission(greedy), settings).outcomes[NAMES[0]]
    assert not failed.passed and "MemoryError" in failed.text()


class Counting:
    """Something that runs, and counts how far it has come."""

    progress = 0


def test_faults_are_injected_at_intervals_and_tried_again_until_they_are_possible():
    target, possible = Counting(), {3, 7, 8}
    fault = Fault("one", lambda target, rng: target.progress in possible)
    injector = FaultInjector([fault], random.Random(0), first=2, interval=4)
    for target.progress in range(12):
        injector.step(target)
    assert injector.injections == [Injection("one", 3), Injection("one", 7)]


def test_without_an_interval_one_fault_is_injected_and_without_faults_none():
    target = Counting()
    fault = Fault("one", lambda target, rng: True)
    injectors = [FaultInjector(kinds, random.Random(0), first=5) for kinds in ([fault], [])]
    for target.progress in range(99):
        for injector in injectors:
            injector.step(target)
    assert [injector.injections for injector in injectors] == [[Injection("one", 5)], []]


def test_faults_are_planned_equally_often_and_the_same_for_the_same_seed():
    planned = list(plan_faults(GRADING_FAULTS, 200, 3.0, seed=1))
    assert planned == list(plan_faults(GRADING_FAULTS, 200, 3.0, seed=1))
    assert {*Counter(plan.fault.name for plan in planned).values()} == {20}
    assert [plan.number for plan in planned] == [*range(200)]
    few = [{plan.fault.name for plan in plan_faults(GRADING_FAULTS, 5, 3.0, n)} for n in range(20)]
    assert {len(names) for names in few} == {5} and len(set.union(*few)) == len(GRADING_FAULTS)
    assert all(0 <= plan.moment <= 3 for plan in planned)
