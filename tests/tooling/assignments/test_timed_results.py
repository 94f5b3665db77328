"""Tests that each timing test compares all of what it has timed: no work can be left out."""

import json

import pytest

from common.assignment import ROOT, load_all
from common.testing.graded_tests import GPU, TIMING, read_graded_tests
from tests.tooling import sampling
from tests.tooling.scratch_copies import python


def timing_tests(assignment):
    """The names of the tests with a clock that any machine can run, one of each exercise."""
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    timed = [test for test in graded_tests if TIMING in test.tags and GPU not in test.tags]
    what = f"timing tests of {assignment.short}"
    return [test.name for test in sampling.sample(what, timed, 0, lambda test: test.exercise)]


TIMED = {assignment.name: names for assignment in load_all() if (names := timing_tests(assignment))}


@pytest.mark.parametrize("name", sampling.sample("assignments with timing tests", [*TIMED], 2))
def test_each_timed_result_that_is_wrong_fails_its_test(name):
    module = "tests.tooling.assignments.spoiled_timings"
    ran = python("-m", module, name, *TIMED[name], cwd=ROOT, env={"OMP_NUM_THREADS": "1"})
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    sampling.TAKEN.update({what: tuple(counts) for what, counts in said["sampled"].items()})
    assert {test: found["ended"] for test, found in said["tests"].items()} == dict.fromkeys(
        TIMED[name], "passed"
    )
    assert all(found["results"] for found in said["tests"].values())
    assert {test: found["missed"] for test, found in said["tests"].items()} == {
        test: [] for test in TIMED[name]
    }
