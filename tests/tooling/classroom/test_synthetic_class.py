"""Tests of synthetic classes: repeatable, in the form of an export, with true scores."""

import json
import re
import shutil

import pytest

from autograder.batch.batch_records import read_batch
from autograder.classroom import synthetic_submissions
from autograder.classroom.damaged_submissions import DAMAGES
from autograder.classroom.hostile_submissions import attacks
from autograder.classroom.synthetic_class import DAMAGED, HOSTILE, SHARES, make_class
from autograder.classroom.synthetic_export import read_truths, write_class
from common.assignment import ROOT, load_all, load_assignment
from common.errors import CourseError
from common.testing.graded_tests import read_graded_tests
from tests.tooling.graded_class import graded_class
from tests.tooling.sampling import sample
from tests.tooling.scratch_copies import python

ONE = pytest.mark.parametrize(
    "assignment",
    sample("assignments of classes", load_all(), 1),
    ids=lambda entry: entry.short,
)


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch):
    """What the reference submits beside its code takes minutes to train, and is copied as it is."""
    monkeypatch.setattr(
        synthetic_submissions,
        "reference_artifacts",
        lambda assignment: {entry.file: b"trained" for entry in assignment.artifacts},
    )


def tree(folder):
    """Every file below a folder, with its content."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_the_command_makes_the_same_class_from_the_same_seed_and_another_from_another(tmp_path):
    for name, seed in (("one", "7"), ("same", "7"), ("other", "8")):
        finished = python(
            *("-m", "autograder", "class", "a1", "--students", "20", "--seed", seed),
            *("--out", tmp_path / name),
            cwd=ROOT,
        )
        assert finished.returncode == 0, finished.stderr
    assert "20 students" in finished.stdout
    first, second, other = (tree(tmp_path / name) for name in ("one", "same", "other"))
    assert len(first) > 15
    assert first == second
    assert first != other


def test_a_folder_that_cant_be_made_is_reported_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="can't be written: Not a directory"):
        write_class([], load_assignment("a1"), tmp_path / "file" / "out")


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(CourseError, match="not an empty folder"):
        write_class([], load_assignment("a1"), tmp_path)


@ONE
def test_a_class_has_every_kind_groups_and_different_files_for_all(assignment, tmp_path):
    handed = make_class(assignment, 30, 1)
    assert {one.work.kind for one in handed} == {*SHARES}
    assert sum(len(one.students) for one in handed) == 30
    assert any(len(one.students) > 1 for one in handed)
    addresses = [student.email for one in handed for student in one.students]
    assert len({*addresses}) == 30
    assert all(re.fullmatch(r"[a-z.]+\d*@example\.edu", address) for address in addresses)
    honest = [str(one.work.files) for one in handed if one.work.kind not in (DAMAGED, HOSTILE)]
    assert len({*honest}) == len(honest)
    export = write_class(handed, assignment, tmp_path / "class")
    metadata = (export / "submission_metadata.yml").read_text("utf-8")
    folders = sorted(folder.name for folder in export.iterdir() if folder.is_dir())
    assert re.findall(r"^(submission_\d+):$", metadata, re.MULTILINE) == folders
    truths = read_truths(tmp_path / "class")
    assert sorted(truths) == [name.removeprefix("submission_") for name in folders]
    whole = sum(test.points for test in read_graded_tests(ROOT / "tests" / assignment.name))
    assert all(0 <= truth.lowest <= truth.highest <= whole for truth in truths.values())


@ONE
def test_complete_work_gets_all_points_but_those_of_a_gpu_and_of_what_is_not_trained(assignment):
    tests = read_graded_tests(ROOT / "tests" / assignment.name)
    handed = make_class(assignment, 200, 1, without=tuple([*SHARES][1:]))
    trained = sum(test.points for test in tests if test.reads_artifacts)
    lab = sum(test.points for test in tests if test.reads_lab)
    whole = sum(test.points for test in tests if not test.needs_gpu)
    code = whole - trained
    scores = {(): (code, code), ("artifacts",): (whole, whole)}
    scores["whole lab",] = code + lab, code + lab
    found = {one.work.made_of[1:]: one.work.truth.bounds for one in handed}
    assert scores.items() <= found.items()
    others = {made_of: bounds for made_of, bounds in found.items() if made_of not in scores}
    assert any(made_of[0].startswith("lab up to q") for made_of in others)
    assert any(made_of[0].startswith("lab-") for made_of in others)  # a mistake's name
    assert all(code <= low <= high < code + lab for low, high in others.values())
    every = sum(test.points for test in tests)
    (one,) = make_class(assignment, 1, 1, without=tuple([*SHARES][1:]), gpu=True)
    assert every - trained <= one.work.truth.bounds[0] <= every


def test_every_kind_of_damage_comes_up():
    others = tuple(kind for kind in SHARES if kind != DAMAGED)
    damages = {one.work.made_of[0] for one in make_class(load_assignment("a1"), 40, 3, others)}
    assert damages == {*DAMAGES}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class, and the batch of it."""
    return graded_class(tmp_path_factory)


def test_graded_work_gets_what_the_truth_says(graded):
    finished = python("-m", "autograder", "truth", graded / "class", graded / "batch", cwd=ROOT)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert re.search(
        r"All (5|6) results are correct, [2-6] of them checked exactly", finished.stdout
    )
    entries = read_batch(graded / "batch").entries
    assert len(entries) == len(read_truths(graded / "class"))
    assert {entry.status for entry in entries} <= {"graded", "unreadable"}


def test_a_score_that_is_not_true_and_one_that_is_missing_are_reported(graded, tmp_path):
    shutil.copytree(graded, tmp_path, dirs_exist_ok=True)
    truths = read_truths(tmp_path / "class")
    exact = [number for number, truth in truths.items() if truth.lowest == truth.highest > 0]
    file = tmp_path / "batch" / "results" / f"{exact[0]}.json"
    result = json.loads(file.read_text())
    next(test for test in result["tests"] if test["score"])["score"] = 0.0
    file.write_text(json.dumps(result))
    (tmp_path / "batch" / "state" / f"{exact[1]}.json").unlink()
    finished = python("-m", "autograder", "truth", tmp_path / "class", tmp_path / "batch", cwd=ROOT)
    assert finished.returncode == 1
    lines = finished.stdout.splitlines()
    assert len(lines) == 2
    assert any(line.startswith(exact[0]) and ", expected " in line for line in lines)
    assert any(line.startswith(exact[1]) and "has no result" in line for line in lines)


def test_a_folder_without_truth_is_refused(tmp_path):
    with pytest.raises(CourseError, match="has no readable truth"):
        read_truths(tmp_path)


@pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)
def test_what_an_attack_of_a_class_earns_is_known(assignment):
    """The corpus is graded by some of the tests, and some attacks name those that they pass."""
    chosen = attacks(assignment)
    assert chosen and not any(part.startswith("test_") for entry in chosen for part in entry.earns)
