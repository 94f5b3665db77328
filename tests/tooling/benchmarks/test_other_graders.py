"""Tests that the comparison with other graders is fair: they give correct code all points."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from autograder.benchmarks import hostile_benchmarks
from autograder.benchmarks.other_graders.grader_adapters import TESTS, GradescopeUtils, Harm, Otter
from autograder.commands import bench_commands
from autograder.proving.hostile.corpus_gradings import Outcome
from autograder.proving.hostile.gradescope_tree import Graded
from autograder.proving.hostile.hostile_corpus import LEAK, read_corpus
from common.errors import CourseError

RIGHT = """
import numpy as np


def conv_output_size(size, kernel_size, stride=1, padding=0):
    return (size + 2 * padding - kernel_size) // stride + 1


def conv2d_forward(x, w, b):
    out = np.empty((len(x), len(w), x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1))
    for i, k, r, s in np.ndindex(out.shape):
        out[i, k, r, s] = np.sum(x[i, :, r : r + w.shape[2], s : s + w.shape[3]] * w[k]) + b[k]
    return out, None
"""
STUB = "def conv_output_size(*sizes): return None\ndef conv2d_forward(*inputs): return None\n"
ENTRIES = {entry.name: entry.file.read_text() for entry in read_corpus()}


@pytest.fixture(scope="module", params=["gradescope-utils", "otter"])
def grader(request):
    made = (
        GradescopeUtils()
        if request.param == "gradescope-utils"
        else Otter(hostile_benchmarks.otter_python())
    )
    if reason := made.missing():
        pytest.skip(reason)
    return made


def test_right_code_gets_every_point_and_a_stub_none(grader):
    assert grader.grade(RIGHT) == Harm(points=TESTS)
    assert grader.grade(STUB) == Harm()


def test_what_an_attack_gets_is_distinguished():
    grader = GradescopeUtils()
    if reason := grader.missing():
        pytest.skip(reason)
    assert grader.grade(ENTRIES["results/at_exit"]).points == 100
    assert grader.grade(ENTRIES["endings/os_exit"]) == Harm(lost=True)
    assert grader.grade(ENTRIES["environment/secrets"]) == Harm(secret=True, deed=True)
    assert grader.grade(ENTRIES["survivors/new_session"]) == Harm(left=True)


def test_a_grader_that_is_not_installed_is_not_run_and_says_so(tmp_path):
    with pytest.raises(CourseError, match="No environment with otter-grader at"):
        hostile_benchmarks.otter_python(tmp_path)
    assert Otter(None).missing() == "not run: otter-grader is not installed"


@pytest.mark.parametrize(
    ("visibility", "said", "secret"),
    [
        ("after_published", f"{LEAK} 3, 4", True),
        ("after_published", "It is wrong.", False),
        ("visible", f"{LEAK} 3, 4", False),  # what public tests hand in is no secret
        ("visible", "canary-hidden-1", True),
    ],
)
def test_a_hidden_input_that_this_grader_shows_counts_as_elsewhere(visibility, said, secret):
    test = {
        "extra_data": {"test": "test_x"},
        "score": 0,
        "output": said,
        "visibility": visibility,
    }
    content = {"tests": [test], "extra_data": {"finished": True}}
    graded = Graded(json.dumps(content).encode(), "", 1.0, None, [], [], [], None)
    tree = SimpleNamespace(graded_tests=[], canaries={"hidden": "canary-hidden-1"})
    entry = next(entry for entry in read_corpus() if entry.name == "showing/returned")
    assert hostile_benchmarks.harm(entry, Outcome(graded, graded, tree)) == Harm(secret=secret)


@pytest.mark.parametrize("harm", [Harm(), Harm(points=1)], ids=str)
def test_whatever_of_the_corpus_gets_something_fails_the_benchmark(harm, monkeypatch):
    here = {entry.name: Harm() for entry in read_corpus()}
    name = next(entry.name for entry in read_corpus() if not entry.elsewhere)
    monkeypatch.setattr(hostile_benchmarks, "corpus_here", lambda: ({**here, name: harm}, 1.0))
    monkeypatch.setattr(hostile_benchmarks, "harms_elsewhere", lambda grader, chosen: {})
    done = CliRunner().invoke(bench_commands.bench, ["--only", "hostile"])
    assert done.exit_code == bool(harm), done.output
    assert (name in done.output) == bool(harm)
