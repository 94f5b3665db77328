"""Tests that what a hostile submission gains, breaks, leaves or costs is a problem of its row."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from autograder.proving.hostile.attack_findings import (
    LONGEST_SECONDS,
    AttackRow,
    judge_attack,
    peak_bar,
)
from autograder.proving.hostile.corpus_gradings import Outcome
from autograder.proving.hostile.gradescope_tree import Graded, honest_exercises, prepared_zip
from autograder.proving.hostile.hostile_corpus import LEAK, SUCCESS_TEXT, read_corpus
from autograder.proving.proof_page import proof_page
from common.assignment import load_all
from common.testing.feedback.failure import BROKEN_TEST
from common.testing.graded_tests import read_graded_tests
from tests.tooling.grading_fixtures import ROOT
from tests.tooling.proving.made_up_proofs import proof

ATTACK = next(entry for entry in read_corpus() if entry.name == "bombs/memory")  # earns 1.7
TESTS = read_graded_tests(ROOT / "tests" / "a1_convolution")
CANARY = "canary-salt-1"


def result(earned, **changes):
    """results.json with the points of these tests; changes: of the last, which is hidden."""
    tests = [
        {
            "name": test.name,
            "score": test.points if test.name in earned else 0.0,
            "max_score": test.points,
            "status": "passed",
            "output": "It is wrong.",
            "visibility": "hidden" if test.hidden else "visible",
            "extra_data": {"test": test.name},
        }
        for test in TESTS
    ]
    tests[-1] |= changes
    return {"output": "", "execution_time": 1, "tests": tests, "extra_data": {"finished": True}}


def graded(content):
    return Graded(json.dumps(content).encode(), "", 1.0, 61_000, [], [], [], 300.0)


def outcome_of(content, after=None, **changes):
    """What an attack with that result comes to; changes: of what was seen beside it."""
    honest = graded(result({t.name for t in TESTS if t.exercise in ("1.1", "1.7")}))
    tree = SimpleNamespace(graded_tests=TESTS, canaries={"salt": CANARY}, honest=honest)
    return Outcome(replace(graded(content), **changes), after or honest, tree)


EARNED = {test.name for test in TESTS if test.exercise == "1.7"}
HARMLESS = result(EARNED)
CONTENTS = {
    "it passes": result(EARNED | {TESTS[0].name}),
    "it loses": result(set()),
    "it says": result(EARNED, output=SUCCESS_TEXT),
    "it shows a secret: inputs": result(EARNED, output=LEAK, visibility="hidden"),
    "it shows a secret: salt": result(EARNED, output=CANARY),
    "it shows what can't be seen": result(EARNED, output="\x1b[2J"),
    "it breaks a test": result(EARNED, output=BROKEN_TEST),
    "the result is incomplete": result(EARNED, score=-1.0),
    "the result lists other": result(EARNED, max_score=1000.0),
    "grading did not finish": HARMLESS | {"extra_data": {"finished": False}},
    "the result has": HARMLESS | {"output": "x" * 600_000},
}
SEEN = {
    "grading it took": {"seconds": LONGEST_SECONDS + 1},
    "the judge's peak memory": {"peak_mb": 601.0},
    "changed": {"changes": ["source/x"]},
    "left behind": {"leftover_files": ["/tmp/x"]},
    "still running": {"survivors": ["7 x"]},
    "after it, another user": {"uid": 61_001},
}


def test_an_attack_that_gains_nothing_has_no_problem():
    row = judge_attack(ATTACK, outcome_of(HARMLESS))
    assert row == AttackRow("bombs/memory", 1.0, 300.0, 600, [])


@pytest.mark.parametrize("assignment", load_all(), ids=lambda assignment: assignment.short)
def test_every_assignment_can_be_attacked(assignment):
    """It has a bar, limits, and an honest submission to follow."""
    assert peak_bar(assignment) == (600 if assignment.stores_answers else 1200)
    settings = f"assignments/{assignment.name}/assignment.toml"
    text = prepared_zip(assignment, {"hidden": "x", "salt": "y"})[settings].decode()
    assert f"memory_mb = {512 if peak_bar(assignment) == 600 else 1024}\n" in text
    assert {*honest_exercises(assignment)} <= {one.number for one in assignment.exercises}


@pytest.mark.parametrize("problem", CONTENTS)
def test_what_a_result_must_not_hold_is_a_problem(problem):
    assert_problem(outcome_of(CONTENTS[problem]), problem)


@pytest.mark.parametrize("problem", SEEN)
def test_what_it_costs_or_leaves_is_a_problem(problem):
    assert_problem(outcome_of(HARMLESS, **SEEN[problem]), problem)


def test_what_happens_to_the_next_submission_is_a_problem():
    after = replace(graded(result({TESTS[0].name})), survivors=["7 x"])
    for problem in ("after it, an honest submission got other", "after it, still running"):
        assert_problem(outcome_of(HARMLESS, after), problem)


def test_the_page_shows_a_row_for_each_attack():
    rows = [AttackRow("bombs/memory", 1.0, 301.4, 600, []), AttackRow("b/<c>", 1.0, None, 1200, [])]
    page = proof_page([proof()], rows)
    assert "The graders hold" in page and "301" in page and "b/&lt;c&gt;" in page
    wrong = proof_page([proof()], [AttackRow("bombs/memory", 1.0, 700.0, 600, ["too <much>"])])
    assert "The graders hold" not in wrong and "too &lt;much&gt;" in wrong


def assert_problem(outcome, beginning):
    found = judge_attack(ATTACK, outcome).problems
    assert [problem for problem in found if problem.startswith(beginning)], found
