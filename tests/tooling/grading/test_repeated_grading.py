"""Tests that regrading reproduces the same results.json, except for times."""

import json
import subprocess
import sys

import pytest

from common.assignment import ROOT
from tests.tooling.grading_fixtures import FILE, REFERENCE
from tests.tooling.sampling import sample

ALONE = len(sample("regradings alone", range(8), 3))
AT_ONCE, EACH = 4, len(sample("regradings beside three others", range(3), 1))
# Grades a file so many times, each time in a new sandbox, to the file of that name and a number.
SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, ".")
from autograder.grading.submission import Submission
from autograder.grading.grade import grade
from autograder.grading.judge import Settings
from common.assignment import load_assignment
from autograder.semester import Semester
file, out, count = sys.argv[1:]
submission = Submission({Path(file).name: Path(file).read_bytes()})
for number in range(int(count)):
    settings = Settings(Semester("testing", "a salt for tests"), out=Path(f"{out}-{number}"))
    grade(load_assignment("a1"), submission, settings)
"""
# Pooling is right, the convolution isn't, and much of what fails depends on chance in some way.
HALF_RIGHT = """

import random


def linear_parameters(*sizes, **named):
    words = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}
    raise ValueError(f"{' '.join(words)} at {object()}")


def conv2d_forward(x, w, b, stride=1, padding=0):
    print("drawn:", random.random(), np.random.normal(), "in", __file__, object())
    return np.random.normal(size=x.shape), None


def conv2d_backward(dout, cache):
    return [np.zeros(3)] * random.randrange(2, 4)


def im2col(*args, **kwargs):
    return np.random.default_rng(0).normal(size=(3, 4))


def conv_parameters(*args, **kwargs):
    return hash("the same in every grading") % 1000
"""


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    file = tmp_path_factory.mktemp("half-right") / FILE
    file.write_text(REFERENCE.read_text("utf-8") + HALF_RIGHT)
    return file


def start(submission, out, count):
    command = [sys.executable, "-c", SCRIPT, submission, out, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def results_of(process, out, count):
    """The results without their times."""
    assert process.wait(timeout=900) == 0
    results = [json.loads(out.with_name(f"{out.name}-{n}").read_text()) for n in range(count)]
    assert all(result.pop("execution_time") >= 0 for result in results)
    return results


def test_a_regrade_repeats_alone_and_beside_others(submission, tmp_path):
    results = results_of(start(submission, tmp_path / "alone", ALONE), tmp_path / "alone", ALONE)
    outs = [tmp_path / f"beside-{number}" for number in range(AT_ONCE)]
    running = [start(submission, out, EACH) for out in outs]
    for process, out in zip(running, outs, strict=True):
        results += results_of(process, out, EACH)
    assert len(results) == ALONE + AT_ONCE * EACH > 6
    score = sum(test["score"] for test in results[0]["tests"])
    assert 10 < score < 90 and results[0]["extra_data"]["finished"]
    reported = json.dumps(results[0])
    assert "drawn: " in reported and "epsilon" in reported
    assert "in /sandbox/packages/" in reported and "object at 0x...>" in reported
    for result in results[1:]:
        assert result == results[0]
