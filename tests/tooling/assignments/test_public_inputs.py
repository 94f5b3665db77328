"""Tests that public points are earned by computing: a handout's inputs and answers are no help."""

import json

import pytest

from common.assignment import ROOT, load_all, load_assignment
from common.testing.graded_tests import TRAINING, read_graded_tests
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import python

# Of about 60: examples that are worked by hand, and what a docstring fixes, such as the shapes of
# parameters. Labs ask for an answer, not for code.
MOST_POINTS = 10
NAMES = [assignment.short for assignment in load_all()]


def played(short, *options):
    """What was found out of an assignment, and the points of its public tests."""
    script = "tests.tooling.assignments.look_up_tables"
    finished = python("-m", script, short, *options, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    tests = read_graded_tests(ROOT / "tests" / load_assignment(short).name)
    asked = [test for test in tests if not (test.hidden or test.reads_lab or test.needs_gpu)]
    points = {test.name: test.points for test in asked if TRAINING not in test.tags}
    return json.loads(finished.stdout.splitlines()[-1]), points


def in_all(names, points):
    return sum(points.get(name, 0) for name in names)


@pytest.mark.parametrize("short", sample("public inputs", [n for n in NAMES if n != "a1"], 1))
def test_few_public_points_have_inputs_that_are_the_same_in_every_term(short, record_property):
    found, points = played(short)
    assert {*points} <= {*found["reference"]}
    record_property("points", in_all(found["fixed"], points))
    assert in_all(found["fixed"], points) <= MOST_POINTS, found["fixed"]


def test_a_table_of_the_handout_earns_few_points_in_a_term():
    found, points = played("a1", "tables")
    assert {*points} == {*found["reference"]}
    assert in_all(found["in the handout"], points) >= 30
    assert {*found["by_value"]} == {*found["fixed"]}
    assert in_all(found["by_shape"], points) <= MOST_POINTS, found["by_shape"]
