"""Tests that hidden tests give nothing away: their words must not depend on the secret salt."""

import json

import pytest

from autograder.authoring.reference_artifacts import reference_artifacts
from common.assignment import ROOT, load_all
from common.testing.graded_tests import GPU, HIDDEN_FILE, TIMING, TRAINING, read_graded_tests
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import python

SOME = pytest.mark.parametrize(
    "assignment",
    sample("assignments with spoiled hidden tests", load_all(), 2),
    ids=lambda entry: entry.name,
)

# Runs the hidden tests on a reference whose every result is made wrong in one way, and notes
# what a student would read of each failure. One process, since importing PyTorch takes seconds.
SPOIL = """
import json, sys
from functools import partialmethod
from pathlib import Path
import numpy as np
import pytest
from common.assignment import ROOT
from common.testing.feedback.failure import explain
from common.testing.fixtures import decorator_value, run_graded_tests
from common.testing.graded_tests import GPU, TIMING, TRAINING

name, hidden_file = sys.argv[1:3]

def wrong(value, how):
    if isinstance(value, tuple) and isinstance(value[0], np.ndarray):
        return (wrong(value[0], how), *value[1:])
    if how == "none":
        return None
    if isinstance(value, np.ndarray):
        return {
            "value": lambda: value + value.dtype.type(1),
            "shape": lambda: value[..., None],
        }[how]()
    return value + 1 if isinstance(value, int) else value

class Spoiler:
    def __init__(self, how):
        self.how, self.words = how, {}

    def pytest_collection_modifyitems(self, items):
        # Timing and training repeat slow calls, and say nothing that other tests don't.
        left_out = {TIMING, TRAINING, GPU}
        items[:] = [i for i in items if left_out.isdisjoint(decorator_value(i, "__tags__", ()))]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        yield
        if call.when == "call":
            text = explain(call.excinfo.value).text(hidden=True) if call.excinfo else "passed"
            self.words[item.name] = text

from common.testing import direct_face
from common.labs.lab_run import Lab
call, operate = direct_face.DirectFace.call, direct_face.DirectFace.operate
answer, run_lab = Lab.answer, direct_face.run_lab_in_process
labs, found = {}, {}

def operate_wrong(face, operation, *details, how):
    # What other operations of the protocol return is never a student's.
    results = operate(face, operation, *details)
    if operation == "call_each":
        return [wrong(result, how) for result in results]
    return results

def run_once(content, assignment):  # its answers are spoiled on their way to the tests
    if content not in labs:
        labs[content] = run_lab(content, assignment)
    return labs[content]

direct_face.run_lab_in_process = run_once
for how in ("value", "shape", "none"):
    direct_face.DirectFace.call = lambda *args, how=how: wrong(call(*args), how)
    direct_face.DirectFace.operate = partialmethod(operate_wrong, how=how)
    Lab.answer = lambda lab, name, how=how: wrong(answer(lab, name), how)
    for salt in ("first", "second"):
        spoiler = Spoiler(how)
        file = ROOT / "tests" / name / hidden_file
        run_graded_tests([file], spoiler, "--impl=solutions", f"--salt={salt}")
        found[f"{how}/{salt}"] = spoiler.words
Path(sys.argv[3]).write_text(json.dumps(found))
"""


SAID: dict[str, dict] = {}


@pytest.fixture
def words(assignment, tmp_path):
    """What an assignment's hidden tests say of wrong results, by kind of fault, salt and test."""
    if assignment.name not in SAID:
        reference_artifacts(assignment)
        file = tmp_path / "words.json"
        result = python("-c", SPOIL, assignment.name, HIDDEN_FILE, file, cwd=ROOT)
        assert result.returncode == 0, result.stderr
        SAID[assignment.name] = json.loads(file.read_text())
    return SAID[assignment.name]


@SOME
def test_every_hidden_test_fails_on_some_wrong_result(assignment, words):
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    left_out = {TIMING, TRAINING, GPU}
    hidden = {test.name for test in graded_tests if test.hidden and not left_out & {*test.tags}}
    assert hidden
    failed = set()
    for run in words.values():
        assert set(run) == hidden
        failed |= {name for name, text in run.items() if text != "passed"}
    # What only refuses bad sizes or leaves inputs alone isn't hurt by a wrong result.
    assert len(failed) >= 0.8 * len(hidden)


@SOME
def test_what_hidden_tests_say_does_not_depend_on_the_secret_inputs(assignment, words):
    for fault in {key.partition("/")[0] for key in words}:
        assert words[f"{fault}/first"] == words[f"{fault}/second"], fault


@SOME
def test_hidden_tests_never_blame_the_course_for_a_wrong_result(assignment, words):
    for fault, run in words.items():
        for name, text in run.items():
            assert "bug in the course" not in text, (fault, name)
