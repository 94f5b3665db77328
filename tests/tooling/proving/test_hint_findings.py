"""Tests of how the proof judges the hints of mutants and of unnamed mistakes."""

from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from autograder.grading.warm.judge_messages import GradingReply
from autograder.proving.hint_findings import hint_jobs, hint_rows
from autograder.proving.hints.hint_files import hint_file
from autograder.proving.proof_jobs import hint_job
from common.errors import Evidence
from common.testing.feedback.diagnosis import Hints
from common.testing.feedback.hints import fingerprint
from common.testing.graded_tests import GradedTest
from tests.tooling.proving.made_up_proofs import A1, mistake, verdict

TESTS = [GradedTest(name, "1.2", 2, False, "", "visible") for name in ("test_a", "test_b")]
OUTPUT = fingerprint(Evidence(1, np.array([0.123, 4.567]), ""))
FAILED = [replace(verdict(passed=False), seen=OUTPUT), verdict("test_b")]


def plan_with(changed, mistakes=None):
    """A plan with one mutant, in that function."""
    mutant = SimpleNamespace(name="x", file="convolution.py", function=changed)
    return SimpleNamespace(
        assignment=A1,
        tests=TESTS,
        mistakes=mistakes or [mistake()],
        mutants=[mutant],
        unnamed=[],
        file_of=lambda named: named or "convolution.py",
        order_for=lambda mutant: ("test_a", "test_b"),
        mutant_job=lambda mutant, tests, to_the_end: (tests, to_the_end),
    )


def hints_of(plan):
    return Hints([hint_file(plan.mistakes, {"flipped": FAILED}, TESTS, hidden=False)])


@pytest.mark.parametrize(
    ("changed", "result"),
    [("conv2d_forward", "right"), ("conv2d_forward.inner", "right"), ("conv2d_backward", "wrong")],
)
def test_a_hint_is_right_if_its_mistake_is_in_what_was_changed(changed, result):
    plan = plan_with(changed)
    replies = {
        "mutant x": GradingReply(verdicts=FAILED[:1]),
        hint_job("x"): GradingReply(verdicts=FAILED),
    }
    (row,) = hint_rows(plan, hints_of(plan), replies)
    assert (row.result, row.named) == (result, [["flipped"]])


def test_a_mutant_that_differs_in_a_later_test_gets_no_hint():
    plan = plan_with("conv2d_backward")
    later = [FAILED[0], replace(verdict("test_b", passed=False), seen=OUTPUT)]
    replies = {
        "mutant x": GradingReply(verdicts=FAILED[:1]),
        hint_job("x"): GradingReply(verdicts=later),
    }
    (row,) = hint_rows(plan, hints_of(plan), replies)
    assert (row.result, row.named) == ("none", [])


def test_only_mutants_that_look_like_a_mistake_are_graded_to_the_end():
    plan = plan_with("conv2d_backward")
    same = {"mutant x": GradingReply(verdicts=FAILED[:1])}
    assert hint_jobs(plan, hints_of(plan), same) == {hint_job("x"): (("test_a", "test_b"), True)}
    for other in (verdict(), verdict(passed=False)):
        replies = {"mutant x": GradingReply(verdicts=[other])}
        assert hint_jobs(plan, hints_of(plan), replies) == {}
