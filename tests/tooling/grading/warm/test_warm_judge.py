"""Tests of the warm judge: one pytest session serves any number of gradings."""

import pytest

from autograder.grading.warm.judge_messages import GradingRequest
from autograder.packaging.zip_contents import autograder_zip
from autograder.proving.parallel_grader import ParallelGrader
from autograder.proving.right_versions import reference, stub
from autograder.zip_archive import zip_bytes
from common.assignment import load_assignment
from common.errors import CourseError

A1 = load_assignment("a1")
PUBLIC = "test_conv_output_size_counts_the_kernel_positions"
HIDDEN = "test_conv_output_size_is_right_for_any_sizes"
BOTH = (PUBLIC, HIDDEN)


def pool_of(folder, changes=()):
    """One judge in a zip of assignment 1, with some of its files changed."""
    members = autograder_zip(A1, b'{"name": "x", "salt": "y"}\n') | dict(changes)
    archive = folder / "autograder.zip"
    archive.write_bytes(zip_bytes(members))
    return ParallelGrader(archive, "a1", size=1)


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    with pool_of(tmp_path_factory.mktemp("judge")) as pool:
        yield pool


def ended(pool, *jobs):
    """How the tests of each job ended, by name."""
    replies = {}
    pool.run(list(enumerate(jobs)), replies.__setitem__)
    return [
        {verdict.test: verdict.passed for verdict in replies[number].verdicts}
        for number in range(len(jobs))
    ]


def test_each_grading_has_the_tests_it_asks_for_whatever_came_before(pool):
    right, wrong = reference(A1), stub(A1)
    assert ended(
        pool,
        GradingRequest(right, "salt", BOTH),
        GradingRequest(wrong, "salt", BOTH),
        GradingRequest(right, "salt", (HIDDEN,)),
        GradingRequest(wrong, "salt", (PUBLIC,)),
        GradingRequest(right, "salt", BOTH[::-1]),
    ) == [
        {PUBLIC: True, HIDDEN: True},
        {PUBLIC: False, HIDDEN: False},
        {HIDDEN: True},
        {PUBLIC: False},
        {HIDDEN: True, PUBLIC: True},
    ]


def test_the_first_failure_can_be_the_end_and_leaves_nothing_for_the_next_job(pool):
    right, wrong = reference(A1), stub(A1)
    assert ended(
        pool,
        GradingRequest(right, "salt", BOTH, stop_at_failure=True),
        GradingRequest(wrong, "salt", BOTH, stop_at_failure=True),
        GradingRequest(wrong, "salt", BOTH[::-1], stop_at_failure=True),
        GradingRequest(right, "salt", BOTH),
    ) == [
        {PUBLIC: True, HIDDEN: True},
        {PUBLIC: False},
        {HIDDEN: False},
        {PUBLIC: True, HIDDEN: True},
    ]


def test_tests_that_cannot_be_read_are_a_fault_and_no_verdict(tmp_path):
    broken = {"tests/a1_convolution/test_hidden.py": b"import nothing_at_all\n"}
    with (
        pool_of(tmp_path, broken) as pool,
        pytest.raises(CourseError, match="can't collect the tests"),
    ):
        ended(pool, GradingRequest(reference(A1), "salt", (PUBLIC,)))
