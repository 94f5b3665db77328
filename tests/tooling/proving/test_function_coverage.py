"""Tests of function coverage: tests that never run a changed function are skipped."""

import json

import pytest

from autograder.proving import function_coverage
from autograder.proving.function_coverage import FunctionCoverage, find_function_coverage
from autograder.proving.proof_jobs import ONE_SALT, ProofPlan
from common.assignment import load_assignment

A1 = load_assignment("a1")
KNOWN = FunctionCoverage({"test_a": ["x.py: f", "x.py: Layer.forward"], "test_b": ["x.py: g"]})


@pytest.mark.parametrize(
    ("test", "changed", "may"),
    [
        ("test_a", "f", True),
        ("test_b", "f", False),
        ("test_a", "Layer", True),
        ("test_b", "Layer", False),
        ("test_a", "Lay", True),  # no test runs such a function: nothing is known
        ("test_b", "nobody", True),
        ("test_b", "", True),  # the whole file
        ("test_new", "f", True),
    ],
)
def test_only_a_test_that_runs_the_changed_function_may_notice(test, changed, may):
    assert KNOWN.may_notice(test, "x.py", changed) == may


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    return tmp_path_factory.mktemp("dist")


@pytest.fixture(scope="module")
def watched(dist):
    return find_function_coverage(A1, "salt", dist)


def test_the_functions_of_each_test_are_known(watched):
    graded_tests = {test.name for test in ProofPlan(A1, ONE_SALT).tests if not test.reads_lab}
    assert set(watched.functions) == graded_tests
    (names,) = (
        names
        for test, names in watched.functions.items()
        if test == "test_linear_parameters_counts_weights_and_biases"
    )
    assert names == {"convolution.py: <module>", "convolution.py: linear_parameters"}


def test_every_mistake_is_still_graded_where_it_must_cost_points(watched):
    case = ProofPlan(A1, ONE_SALT)
    exercise = {test.name: test.exercise for test in case.tests}
    before = sum(len(job.only) for job in case.mistake_jobs(hidden=False).values())
    case.coverage = watched
    jobs = case.mistake_jobs(hidden=False) | case.mistake_jobs(hidden=True)
    assert sum(len(job.only) for job in jobs.values()) < before
    for mistake in case.mistakes:
        own = [job for name, job in jobs.items() if name.startswith(f"mistake {mistake.name}:")]
        reached = {exercise[test] for job in own for test in job.only}
        assert reached >= set(mistake.exercises)


def test_what_has_not_changed_is_not_watched_again(watched, dist, monkeypatch):
    monkeypatch.setattr(
        function_coverage, "watch_in_subprocess", lambda *_: {"test_a": ["x.py: f"]}
    )
    assert find_function_coverage(A1, "salt", dist).functions == watched.functions
    assert find_function_coverage(A1, "another", dist).functions == {"test_a": {"x.py: f"}}
    (dist / "a1-coverage.json").write_text(json.dumps({"version": 3}))
    assert find_function_coverage(A1, "salt", dist).functions == {"test_a": {"x.py: f"}}
