"""Tests of `make demo`: from a fresh checkout, without a network, and with no line to break."""

import json
import time

import pytest

from autograder.classroom import demo_grading
from autograder.classroom.demo_grading import ASSIGNMENT, grade_demo
from autograder.semester import PRACTICE
from common.errors import CourseError
from tests.tooling.scratch_copies import copy_repo, open_to_others, python, run

HINT = "The kernel is flipped. Deep-learning libraries slide it over the image as it is."
CATALOG = "solutions/a1_convolution/mistakes.toml"
NO_LINE = "The demo can't find the line to break: "


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout in which nothing has been made."""
    folder = tmp_path_factory.mktemp("demo")
    open_to_others(folder)
    return copy_repo(folder / "repo")


def one_line(text):
    """A text without its line breaks."""
    return " ".join(text.split())


def test_make_demo_needs_an_installation_only_and_no_network(checkout, tmp_path):
    """A term that has begun changes nothing: its hints are not in the checkout."""
    (checkout / ".semester").write_text('{"name": "fall", "salt": "secret"}')
    alone = ["unshare", "--net"]
    if run([*alone, "true"], checkout).returncode:  # it takes a privilege
        alone = []
    begin = time.monotonic()
    finished = run([*alone, "make", "demo"], checkout, {"XDG_CACHE_HOME": str(tmp_path)})
    assert time.monotonic() - begin < 60
    assert (finished.returncode, finished.stderr) == (0, "")
    said = one_line(finished.stdout)
    assert "85 of 100 points." in said
    assert "out has the right shape, but all of its values are wrong. 128 of 128 values" in said
    assert said.count(f"Your output matches a known mistake: {HINT}") == 2  # public and hidden
    place = "dist/demo/submission/convolution.py"
    *_, where, wrong, right, result = finished.stdout.splitlines()
    lines = (checkout / place).read_text().splitlines()
    assert where.startswith(f"What is wrong: {place}, line ")
    number = int(where.rpartition(" ")[2])
    assert wrong == f"  - {lines[number - 1].strip()}"
    assert "::-1" in wrong
    reference = (checkout / "solutions" / "a1_convolution" / "convolution.py").read_text()
    assert right == f"  + {reference.splitlines()[number - 1].strip()} (the reference)"
    assert result == "The result, as Gradescope reads it: dist/demo/results.json"
    tests = json.loads((checkout / "dist" / "demo" / "results.json").read_text())["tests"]
    assert sum(test["score"] for test in tests) == 85
    assert {test["number"] for test in tests if test["status"] == "failed"} == {"1.2"}


@pytest.mark.parametrize(
    ("file", "find", "put", "said"),
    [
        (
            "solutions/a1_convolution/convolution.py",
            "patch * w[k])",
            "w[k] * patch)",
            f"{NO_LINE}{CATALOG}, kernel-flipped: the code to replace must occur once in "
            "conv2d_forward, but occurs 0 times (convolution.py); nearest: `",
        ),
        (
            CATALOG,
            'name = "kernel-flipped"\n',
            'name = "upside-down"\n',
            f"{NO_LINE}{CATALOG} has no mistake named kernel-flipped.",
        ),
        (CATALOG, "[[mistakes]]", "[[mistakes", f"{NO_LINE}{CATALOG} can't be read: "),
        (
            CATALOG,
            'replace = "patch * w[k, :, ::-1, ::-1]"',
            'replace = "patch *\\n w[k, :, ::-1, ::-1]"',
            f"The demo breaks one line, but kernel-flipped in {CATALOG} changes several.",
        ),
    ],
    ids=["another line", "no such mistake", "damaged catalog", "several lines"],
)
def test_a_line_that_cant_be_broken_is_one_sentence(checkout, file, find, put, said):
    whole = (checkout / file).read_text()
    assert find in whole
    (checkout / file).write_text(whole.replace(find, put, 1))
    try:
        finished = python("-m", "autograder", "demo", cwd=checkout)
    finally:
        (checkout / file).write_text(whole)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith(said)
    assert len(finished.stderr.splitlines()) == 1


def test_a_folder_that_cant_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="file/demo can't be written: Not a directory"):
        grade_demo(tmp_path / "file" / "demo", lambda done, count: None)


def test_the_demo_is_graded_on_any_machine_and_in_the_practice_term(tmp_path, monkeypatch):
    """Where the hints are those of the checkout, and the code is our own."""
    graded = []
    monkeypatch.setattr(demo_grading, "grade", lambda *given: graded.append(given))
    grade_demo(tmp_path, lambda done, count: None)
    ((assignment, submission, settings),) = graded
    assert (assignment.short, settings.unsafe, settings.semester) == (ASSIGNMENT, True, PRACTICE)
    assert submission.notes == []
    assert {*submission.files} == {*assignment.files, "lab.ipynb"}
