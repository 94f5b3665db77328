"""The stand-ins that exercises need are right, and answer no exercise that they help."""

import msgspec
import numpy as np
import pytest
import torch

from common.assignment import ROOT, load_all
from common.errors import ForbiddenCall
from common.exercise_needs import Needed, definitions, replacements_for, standin_file
from common.testing.direct_face import DirectFace
from common.testing.fixtures import FACE, NEEDED, decorator_value, run_graded_tests
from common.testing.graded_tests import TIMING
from tests.tooling.grading_fixtures import code_in

ASSIGNMENTS = [one for one in load_all() if one.replaces_functions]
NEEDS = {
    (one.short, Needed(function, number)): one
    for one in ASSIGNMENTS
    for exercise in one.exercises
    for number, functions in exercise.needs.items()
    for function in functions
}
HELPED = [
    (one, exercise, Needed(function, number))
    for one in ASSIGNMENTS
    for exercise in one.exercises
    for number, functions in exercise.needs.items()
    for function in functions
]


# Small calls of all stand-ins.
CALLS = {
    "conv_output_size": lambda function: function(5, 3),
    "softmax": lambda function: function(np.ones(3)),
    "softmax_backward": lambda function: function(np.ones(3), np.ones(3)),
    "scaled_dot_product_attention": lambda function: function(*torch.ones(3, 2, 2)),
    "MultiHeadAttention": lambda function: function(4, 2)(*torch.ones(3, 1, 2, 4)),
}
SIDES = ("public", "hidden")


class Run:
    """Runs an exercise's tests in this process, with nothing forbidden and these replaced."""

    def __init__(self, assignment, folder, exercise, needed=()):
        allowed = msgspec.structs.replace(assignment, forbidden=())
        self.face = DirectFace(allowed, {assignment.name: folder})
        self.exercise, self.needed = exercise, tuple(needed)
        self.passed, self.failed = [], {}
        files = [ROOT / "tests" / assignment.name / f"test_{side}.py" for side in SIDES]
        run_graded_tests(files, self)

    def pytest_configure(self, config):
        config.stash[FACE] = lambda assignment: self.face
        config.stash[NEEDED] = self.needed

    def pytest_collection_modifyitems(self, items):
        items[:] = [
            item
            for item in items
            if decorator_value(item, "__number__", "") == self.exercise
            and TIMING not in decorator_value(item, "__tags__", ())
        ]

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)
        elif report.when == "call":
            self.passed.append(report.nodeid)


@pytest.mark.parametrize(("key", "assignment"), NEEDS.items(), ids=str)
def test_a_stand_in_passes_the_tests_of_its_own_exercise(key, assignment):
    needed = key[1]
    run = Run(assignment, ROOT / "solutions" / assignment.name, needed.exercise, [needed])
    assert run.failed == {}
    assert len(run.passed) > 2


@pytest.mark.parametrize(
    ("assignment", "exercise", "needed"),
    HELPED,
    ids=[f"{needed.function} in {exercise.number}" for _, exercise, needed in HELPED],
)
def test_a_stand_in_passes_no_test_of_an_exercise_that_it_helps(
    assignment, exercise, needed, tmp_path
):
    """Not even by the name of any function that is asked for there."""
    (standin,) = replacements_for(assignment.own_standins, [needed])
    stub = ROOT / "assignments" / assignment.name
    for number, function in enumerate(exercise.functions):
        folder = tmp_path / str(number) / assignment.name
        folder.mkdir(parents=True)
        for name, content in code_in({assignment.name: stub}).items():
            defined = function in definitions(stub / name)
            aliased = f"\n{standin.source}\n{function} = {needed.function}\n" if defined else ""
            (folder / name).write_bytes(content + aliased.encode())
        run = Run(assignment, folder, exercise.number)
        assert run.passed == [] and run.failed


@pytest.mark.parametrize(("key", "assignment"), NEEDS.items(), ids=str)
def test_a_stand_in_that_students_read_is_refused_where_it_would_be_the_answer(
    key, assignment, tmp_path
):
    """It is in the handout: its own exercise forbids what it is written on."""
    needed = key[1]
    folder = tmp_path / assignment.name
    folder.mkdir()
    file = standin_file(assignment.own_standins, needed.function)
    (standin,) = replacements_for(assignment.own_standins, [needed])
    (folder / file.name).write_text(standin.source)
    face = DirectFace(assignment, {assignment.name: folder})
    # As it is imported, or when it is called.
    with face.open(needed.exercise) as student, pytest.raises(ForbiddenCall):
        code = getattr(student, file.stem) if len(assignment.files) > 1 else student
        CALLS[needed.function](getattr(code, needed.function))
