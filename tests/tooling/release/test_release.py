"""Tests of `make`: what it grades, what it refuses, and what it skips."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.packaging.rehearsal import Rehearsal
from autograder.packaging.zip_build import Built, build
from autograder.release import up_to_date as module
from autograder.release import zip_check
from autograder.release.up_to_date import release
from autograder.semester import PRACTICE_NOTE, Semester
from autograder.zip_archive import zip_bytes
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.testing.graded_tests import read_graded_tests
from tests.tooling.scratch_copies import clean_environment, copy_repo, run
from tests.tooling.wait_until import wait_until

A1 = load_assignment("a1")
GRADED_TESTS = read_graded_tests(ROOT / "tests" / "a1_convolution")


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A scratch copy in which `make` has run for real, and what it printed."""
    root = copy_repo(tmp_path_factory.mktemp("release") / "repo")
    (root / "assignments" / "a1_convolution" / "convolution.py").unlink()
    result = run(["make"], root)
    assert result.returncode == 0, result.stderr
    return root, result.stdout


def row_of(output):
    """The cells of assignment 1's row in the table."""
    (line,) = re.findall(r"^[│|] a1_convolution .*", output, re.MULTILINE)
    return [cell.strip() for cell in re.split("[│|]", line) if cell.strip()]


def test_make_builds_all_and_grades_reference_and_stub_through_the_zip(released):
    root, output = released
    name, tests, points, reference, stub, left_out, handout, autograder, seconds = row_of(output)
    assert name == "a1_convolution"
    assert int(tests) == len(GRADED_TESTS) > 0
    assert (points, reference, stub, left_out) == ("100", "100", "0", "-")
    assert re.fullmatch(r"\d+ KB", handout)
    assert re.fullmatch(r"a1-autograder-practice\.zip, \d+ KB", autograder)
    assert float(seconds.removesuffix(" s")) > 0
    for head in ("tests", "points", "reference", "stub", "not run", "handout", "graded in"):
        assert head in output
    names = sorted(file.name for file in (root / "dist").iterdir())
    assert names == [
        *("a1-autograder-practice.zip", "a1-checked.json", "a1-handout.zip", "a1-solved"),
    ]
    with zipfile.ZipFile(root / "dist" / "a1-autograder-practice.zip") as archive:
        packed = archive.read("tests/a1_convolution/hidden.hints")
    assert packed == (ROOT / "tests" / "a1_convolution" / "hidden.hints").read_bytes()
    last = output.strip().splitlines()[-1]
    assert last == f"{PRACTICE_NOTE}; `make semester` builds the zips to upload"
    stub_file = "assignments/a1_convolution/convolution.py"
    assert (root / stub_file).read_bytes() == (ROOT / stub_file).read_bytes()


def test_a_second_make_does_nothing_again(released):
    root, first = released
    files = sorted((root / "dist").iterdir())
    times = [file.stat().st_mtime_ns for file in files]
    # A run_autograder that could not start: grading again would be noticed.
    result = run(["make"], root, {"TMPDIR": str(root / "no-such-folder")})
    assert result.returncode == 0, result.stderr
    assert row_of(result.stdout) == [*row_of(first)[:-1], f"unchanged ({row_of(first)[-1]})"]
    assert [file.stat().st_mtime_ns for file in files] == times


class Rehearsals:
    """Stands in for grading: what each side gets is set, and each call is noted."""

    def __init__(self):
        self.calls, self.options = [], []
        self.lost = 0  # tests that the reference fails
        self.gained = 0  # tests that the stub passes
        self.missing = 0  # tests that aren't run
        self.finished = True
        self.left_out = ()  # names of tests that are said not to have run

    def __call__(self, archive, submission, *options):
        assert archive.is_file()
        side = submission.parent.name
        assert submission.name == "a1_convolution"
        self.calls.append(side)
        self.options.append(options)
        passed = len(GRADED_TESTS) - self.lost if side == "solutions" else self.gained
        tests = [
            {
                "name": test.label,
                "score": test.points if index < passed and test.name not in self.left_out else 0,
                "max_score": test.points,
                "output": "the reason",
                "extra_data": {"test": test.name, "ran": test.name not in self.left_out},
            }
            for index, test in enumerate(GRADED_TESTS)
        ][self.missing :]
        extra = {"finished": self.finished}
        return Rehearsal({"tests": tests, "extra_data": extra, "output": "it stopped"}, "")


@pytest.fixture(scope="module")
def zips(tmp_path_factory):
    """Assignment 1's, which take seconds to build."""
    return build(A1, tmp_path_factory.mktemp("zips"))


@pytest.fixture
def rehearsals(monkeypatch, zips):
    def copied(assignment, dist):
        dist.mkdir(exist_ok=True)
        files = [Path(shutil.copy(file, dist)) for file in (zips.handout, zips.autograder)]
        return Built(*files, zips.kind)

    fake = Rehearsals()
    monkeypatch.setattr(zip_check, "rehearse", fake)
    monkeypatch.setattr(module, "build", copied)
    # Files of the repo are not for a test to write; test_generated_files says if they are stale.
    monkeypatch.setattr(module, "generate", lambda assignments: [])
    monkeypatch.setattr(module, "check_answers", lambda assignment: None)
    return fake


def release_a1(dist, training=False):
    (row,) = release([A1], lambda name, doing: None, training, dist)
    return row


def test_training_is_left_out_unless_asked(rehearsals, tmp_path, monkeypatch):
    graded_tests = [replace(GRADED_TESTS[0], tags=("training",)), *GRADED_TESTS[1:]]
    monkeypatch.setattr(module, "read_graded_tests", lambda folder: graded_tests)
    rehearsals.left_out = (GRADED_TESTS[0].name,)
    row = release_a1(tmp_path)
    assert rehearsals.options == [("--without-training",)] * 2
    assert row.checked.not_run == {"training": GRADED_TESTS[0].points}
    assert row.checked.reference == 100 - GRADED_TESTS[0].points
    rehearsals.left_out = ()
    row = release_a1(tmp_path, training=True)
    assert not row.unchanged
    assert rehearsals.options[2:] == [()] * 2
    assert (row.checked.not_run, row.checked.reference) == ({}, 100)


def test_while_no_file_changes_nothing_is_looked_at(rehearsals, tmp_path, monkeypatch):
    first = release_a1(tmp_path)

    def look(*given):
        raise AssertionError("it was built again")

    with monkeypatch.context() as patched:
        patched.setattr(module, "build", look)
        second = release_a1(tmp_path)
        assert second.unchanged
        assert (second.built, second.notices) == (first.built, first.notices)
        for change in ("a zip is gone", "training", "the index of torch", "a source"):
            with monkeypatch.context() as inner:
                if change == "a zip is gone":
                    content = first.built.handout.read_bytes()
                    first.built.handout.unlink()
                elif change == "the index of torch":
                    inner.setenv("TORCH_INDEX", "elsewhere")
                elif change == "a source":
                    added = tmp_path / "added"
                    added.touch()
                    inner.setattr(module, "FILES", (*module.FILES, added))
                with pytest.raises(AssertionError, match="built again"):
                    release_a1(tmp_path, training=change == "training")
                if change == "a zip is gone":
                    first.built.handout.write_bytes(content)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"fingerprint": 1}', None])
def test_a_damaged_memory_means_grading_again(rehearsals, tmp_path, damage):
    release_a1(tmp_path)
    memory = tmp_path / "a1-checked.json"
    if damage is None:
        memory.unlink()
    else:
        memory.write_text(damage)
    assert not release_a1(tmp_path).unchanged
    assert len(rehearsals.calls) == 4


@pytest.mark.parametrize("part", ["the zip", "the reference", "the stub"])
def test_what_has_changed_is_graded_again(rehearsals, tmp_path, monkeypatch, part):
    release_a1(tmp_path / "dist")
    if part == "the zip":  # a change that no file of this checkout shows
        monkeypatch.setattr(module, "row_of_unchanged", lambda *given: None)
        monkeypatch.setattr(module, "build", build)
        monkeypatch.setattr(
            "autograder.packaging.zip_build.read_semester", lambda: Semester("next", "other")
        )
    else:
        root = copy_repo(tmp_path / "repo")
        side = "solutions" if part == "the reference" else "assignments"
        file = root / side / "a1_convolution" / "convolution.py"
        file.write_text(file.read_text("utf-8") + "\n# changed\n", "utf-8")
        monkeypatch.setattr(module, "ROOT", root)
    assert not release_a1(tmp_path / "dist").unchanged
    assert len(rehearsals.calls) == 4


@pytest.mark.parametrize(
    ("fault", "value", "sentence"),
    [
        ("lost", 1, r"solutions/a1_convolution must get 100 of 100 points, but got \d+ of 100"),
        (
            "lost",
            len(GRADED_TESTS),
            "solutions/a1_convolution must get 100 of 100 .* but got 0 of 100",
        ),
        ("gained", 1, r"assignments/a1_convolution must get 0 of 100 points, but got \d of 100"),
        ("missing", 1, rf"ran {len(GRADED_TESTS) - 1} tests on solutions, not {len(GRADED_TESTS)}"),
        ("missing", len(GRADED_TESTS), rf"ran 0 tests on solutions, not {len(GRADED_TESTS)}"),
        ("finished", False, "a1-autograder-practice.zip: it stopped"),
        ("left_out", (GRADED_TESTS[0].name,), "skipped the wrong tests: test_"),
    ],
)
def test_a_check_that_fails_is_an_error_that_says_what_is_wrong(
    rehearsals, tmp_path, fault, value, sentence
):
    setattr(rehearsals, fault, value)
    with pytest.raises(CourseError, match=sentence) as error:
        release_a1(tmp_path)
    if fault in ("lost", "gained"):
        wrong = GRADED_TESTS[-1] if fault == "lost" else GRADED_TESTS[0]
        assert f"{wrong.label}: the reason" in str(error.value)
        assert str(error.value).count("the reason") == value
    # It must not be remembered as done.
    assert not (tmp_path / "a1-checked.json").exists()
    setattr(rehearsals, fault, Rehearsals().__dict__[fault])
    assert not release_a1(tmp_path).unchanged
    kept = json.loads((tmp_path / "a1-checked.json").read_text())
    assert kept["checked"]["reference"] == 100


# `make` of all assignments, with a zip that grades for ten minutes.
ENDLESS = """
import sys
from pathlib import Path
from autograder.__main__ import run
from autograder.packaging.zip_build import Built, Kind
from autograder.release import up_to_date as release
archive = Path(sys.argv.pop())
release.row_of_unchanged = lambda *given: None
release.check_sources = release.write_generated = lambda *given: None
release.read_memory = lambda *given: None
release.build = lambda *given: Built(archive, archive, Kind.PRACTICE)
run()
"""


@pytest.mark.parametrize("whole_group", [False, True])  # `kill -INT`; Ctrl-C on a terminal
def test_an_interrupt_ends_running_gradings_and_begins_no_other(tmp_path, whole_group):
    scratch, begun = tmp_path / "scratch", tmp_path / "begun"
    scratch.mkdir()
    begun.mkdir()
    slow = f"#!/bin/sh\ntouch {begun}/$$\nexec sleep 600\n"
    archive = tmp_path / "endless.zip"
    archive.write_bytes(zip_bytes({"run_autograder": slow.encode()}))
    making = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, "release", archive],
        cwd=ROOT,
        env={**clean_environment(), "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        jobs = min(len(os.sched_getaffinity(0)), 2)
        wait_until(lambda: len([*begun.iterdir()]) >= jobs)
        (os.killpg if whole_group else os.kill)(making.pid, signal.SIGINT)
        _, errors = making.communicate(timeout=30)
    finally:
        with suppress(ProcessLookupError):  # nothing is left
            os.killpg(making.pid, signal.SIGKILL)
    assert (making.returncode, errors.strip()) == (2, "Stopped.")
    gradings = [file.name for file in begun.iterdir()]
    assert gradings and not [pid for pid in gradings if Path("/proc", pid).exists()]
    assert [*scratch.iterdir()] == []
