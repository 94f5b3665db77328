"""Artifacts of a reference: made once, when needed, and part of all that is graded for a proof."""

import json
import subprocess
import sys
import time

import msgspec
import pytest

from autograder.authoring.artifacts import made_artifacts
from common.assignment import load_assignment
from common.errors import CourseError
from tests.tooling.scratch import clean_environment, copy_repo, python

DECLARED = """
[[artifacts]]
file = "weights.bin"
megabytes = 1
command = "python -m train"
"""
MAKES = """
import time
from pathlib import Path

from assignments.a1_convolution.convolution import conv_output_size
from assignments.a1_convolution.given_too import LENGTH

assert conv_output_size(5, 3) == 3  # the reference, not the stub


def make(folder: Path) -> None:
    with Path("made.log").open("a") as log:
        log.write("made\\n")
    time.sleep(1)
    (folder / "weights.bin").write_bytes(b"weights"[:LENGTH])
"""
READS = '''

@weight(0.5)
@number("1.1")
def test_weights_are_read(artifact):
    """The weights are there."""
    assert artifact("weights.bin") == b"weights"
'''


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A scratch copy whose assignment 1 has an artifact, and a test that reads it."""
    root = copy_repo(tmp_path_factory.mktemp("artifacts") / "repo")
    for file, text in (
        (root / "assignments" / "a1_convolution" / "assignment.toml", DECLARED),
        (root / "tests" / "a1_convolution" / "test_public.py", READS),
    ):
        file.write_text(file.read_text("utf-8") + text, "utf-8")
    (root / "solutions" / "a1_convolution" / "artifacts.py").write_text(MAKES)
    (root / "assignments" / "a1_convolution" / "given_too.py").write_text("LENGTH = 7\n")
    return root


@pytest.fixture
def made(course):
    """How often they have been made since this test began."""
    before = count(course)
    return lambda: count(course) - before


def count(root):
    log = root / "made.log"
    return log.read_text().count("made") if log.exists() else 0


def test_two_processes_at_once_make_them_once_and_a_third_finds_them(course, made):
    command = [sys.executable, "-m", "autograder", "artifacts", "a1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen(command, cwd=course, env=clean_environment(), **pipes) for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert made() == 1
    assert sum("making the reference's artifacts" in out for out, _ in said) == 1
    again = python("-m", "autograder", "artifacts", "a1", cwd=course)
    weights, lab = again.stdout.splitlines()
    assert weights == "dist/a1-artifacts/weights.bin: 0 KB"
    assert lab.startswith("dist/a1-artifacts/lab.ipynb: ")
    assert made() == 1
    assert not (course / "dist" / "a1-artifacts.part").exists()


def test_a_maker_whose_parent_was_killed_is_waited_for(course, made):
    slower = (
        MAKES.replace("sleep(1)", "sleep(5)") + '    Path("made.log").open("a").write("done\\n")\n'
    )
    (course / "solutions" / "a1_convolution" / "artifacts.py").write_text(slower)
    before = (course / "made.log").read_text() if (course / "made.log").exists() else ""
    command = [sys.executable, "-m", "autograder", "artifacts", "a1"]
    first = subprocess.Popen(command, cwd=course, env=clean_environment(), stdout=subprocess.PIPE)
    while not made():
        time.sleep(0.01)
    first.kill()  # and its maker goes on for some seconds
    first.communicate()
    again = python("-m", "autograder", "artifacts", "a1", cwd=course)
    assert again.returncode == 0, again.stderr
    (course / "solutions" / "a1_convolution" / "artifacts.py").write_text(MAKES)
    log = (course / "made.log").read_text().removeprefix(before)
    assert log.split() == ["made", "done", "made", "done"]  # one after the other
    assert (course / "dist" / "a1-artifacts" / "weights.bin").read_bytes() == b"weights"


@pytest.mark.parametrize(
    "file",
    ["solutions/a1_convolution/convolution.py", "assignments/a1_convolution/given.py"],
)
def test_a_change_of_what_makes_them_has_them_made_again(course, made, file):
    path = course / file
    text = path.read_text("utf-8") if path.exists() else ""
    for changed in (f"{text}\n# changed\n", text):
        python("-m", "autograder", "artifacts", cwd=course)
        before = made()
        path.write_text(changed, "utf-8")
        python("-m", "autograder", "artifacts", cwd=course)
        assert made() == before + 1


def test_one_that_was_lost_is_made_again(course, made):
    python("-m", "autograder", "artifacts", cwd=course)
    (course / "dist" / "a1-artifacts" / "weights.bin").unlink()
    before = made()
    python("-m", "autograder", "artifacts", cwd=course)
    assert made() == before + 1


@pytest.mark.parametrize(
    ("spoiled", "sentence"),
    [
        ('"weights.bin"', "made no weights.bin of at most 1 MB"),
        ('b"weights"[:LENGTH]', "made no weights.bin of at most 1 MB"),
        ("time.sleep(1)", "ZeroDivisionError"),
    ],
)
def test_what_goes_wrong_is_said_and_the_old_ones_stay(course, spoiled, sentence):
    python("-m", "autograder", "artifacts", cwd=course)
    source = course / "solutions" / "a1_convolution" / "artifacts.py"
    put = {'"weights.bin"': '"other.bin"', 'b"weights"[:LENGTH]': "bytes(2**20 + 1)"}
    try:
        source.write_text(MAKES.replace(spoiled, put.get(spoiled, "1 / 0")))
        result = python("-m", "autograder", "artifacts", cwd=course)
    finally:
        source.write_text(MAKES)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert (course / "dist" / "a1-artifacts" / "weights.bin").read_bytes() == b"weights"


def test_pytest_on_the_reference_reads_them_and_a_students_own_run_does_not(course):
    tests = ("-m", "pytest", "-q", "-k", "weights_are_read")
    python("-m", "autograder", "artifacts", cwd=course)
    assert "1 passed" in python(*tests, "--impl=solutions", cwd=course).stdout
    own = python(*tests, cwd=course).stdout
    assert "weights.bin isn't there" in own and "`python -m train` makes it" in own
    assert "Traceback" not in own
    (course / "dist" / "a1-artifacts" / "weights.bin").unlink()
    said = python(*tests, "--impl=solutions", cwd=course).stdout
    assert "`make artifacts` makes it" in said


PROVES = """
import json, sys
from autograder.packaging.build import build
from autograder.proving.case import Case, Scope
from autograder.proving.release import check, laid_out
from common.assignment import load_assignment

assignment = load_assignment("a1")
case = Case(assignment, Scope(seeds=2, mutants=False))
readers = {test.name for test in case.tests if test.reads_artifacts}
taken = {
    name: [sorted(job.files), not readers.isdisjoint(job.only)] for name, job in case.jobs().items()
}
sides = {}
for side in ("solutions", "assignments"):
    with laid_out(assignment, side) as folder:
        sides[side] = sorted(path.name for path in folder.iterdir())
build(assignment)
print(json.dumps([taken, sides]))
"""


def test_whatever_is_graded_with_a_test_that_reads_them_has_them_but_the_stub(course):
    # A student's own, or an instructor's trials, must not get into the stub's grading.
    (course / "assignments" / "a1_convolution" / "weights.bin").write_bytes(b"mine")
    try:
        result = python("-c", PROVES, cwd=course)
    finally:
        (course / "assignments" / "a1_convolution" / "weights.bin").unlink()
    assert result.returncode == 0, result.stderr
    jobs, sides = json.loads(result.stdout.splitlines()[-1])
    assert sides == {
        "solutions": ["convolution.py", "lab.ipynb", "weights.bin"],
        "assignments": ["convolution.py", "lab.ipynb"],
    }
    whole = {True: 0, False: 0}
    for name, (files, reads) in jobs.items():
        if name.startswith("stub"):
            assert files == sides["assignments"]
        elif reads or name.startswith("mistake lab-"):
            assert set(files) - {"weights.bin"} == set(sides["assignments"]), name
            assert ("weights.bin" in files) == reads
        else:
            assert files == ["convolution.py"], name
        whole[reads] += 1
    assert min(whole.values()) > 20


def test_an_assignment_without_artifacts_makes_none_and_one_without_a_maker_says_so(course):
    bare = msgspec.structs.replace(load_assignment("a1"), artifacts=(), lab=None)
    assert made_artifacts(bare) == {}
    assignment = load_assignment("a1", course)
    source = course / "solutions" / "a1_convolution" / "artifacts.py"
    source.unlink()
    try:
        with pytest.raises(CourseError, match=r"artifacts\.py is missing"):
            made_artifacts(assignment, root=course)
    finally:
        source.write_text(MAKES)
