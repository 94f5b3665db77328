"""Tests that commands report missing permissions and full disks in one sentence."""

import errno
import os
from pathlib import Path

import pytest

from autograder.commands import (
    grading_commands,
    packaging_commands,
    semester_command,
    timing_command,
)
from autograder.grading.submission import Submission
from autograder.packaging.rehearsal import Rehearsal, laid_out
from autograder.zip_archive import zip_bytes
from common.errors import CourseError
from tests.tooling.grading_fixtures import REFERENCE


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """A folder that may not be entered. Root may enter all, so for root it is made to look so."""
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o000)
    look = os.stat

    def refuse(path, *arguments, **options):
        if isinstance(path, (str, Path)) and folder in Path(path).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return look(path, *arguments, **options)

    if os.geteuid() == 0:
        monkeypatch.setattr(os, "stat", refuse)
    yield folder
    folder.chmod(0o700)


@pytest.mark.parametrize(
    "arguments",
    [
        ("grade", "a1", "LOCKED/x"),
        ("grade", "a1", REFERENCE, "--out", "LOCKED/x"),
        ("rehearse", "a1", "LOCKED/x"),
        ("time", "a7", "LOCKED/x"),
        ("batch", "a1", "LOCKED/x", "--out", "OUT"),
        ("batch", "a1", REFERENCE.parent, "--out", "LOCKED/x"),
        ("regrade", "LOCKED/x"),
        ("report", "LOCKED/x"),
    ],
    ids=lambda words: " ".join(map(str, words)).replace(str(REFERENCE.parent), "solutions"),
)
def test_a_folder_that_may_not_be_entered_is_one_sentence(
    autograder, locked, tmp_path, monkeypatch, arguments
):
    monkeypatch.setattr(packaging_commands, "find_autograder", lambda assignment: archive)
    (archive := tmp_path / "a1-autograder.zip").touch()
    places = {"LOCKED/x": locked / "x", "OUT": tmp_path / "out"}
    code, _, err = autograder(*(places.get(word, word) for word in arguments))
    assert code == 2
    assert str(locked / "x") in err
    assert len(err.splitlines()) == 1 and err.endswith(".\n")


def test_a_permission_that_is_about_no_file_stays_a_fault_of_ours(autograder, monkeypatch):
    def fail(*arguments):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(semester_command, "check_ledgers", fail)
    with pytest.raises(PermissionError):
        autograder("semester")


@pytest.mark.parametrize(
    "arguments",
    [
        ("grade", "a1", ".", "--out"),
        ("rehearse", "a1", ".", "--out"),
        ("time", "a7", ".", "--json"),
    ],
    ids=lambda words: words[0],
)
def test_a_folder_in_which_nothing_can_be_made_is_refused_before_any_work(
    autograder, tmp_path, monkeypatch, arguments
):
    for module in (grading_commands, packaging_commands, timing_command):
        monkeypatch.setattr(module, "load_assignment", lambda name: pytest.fail("it began to work"))
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    tmp_path.chmod(0o500)
    out = tmp_path / "results.json"
    code, _, err = autograder(*arguments, out)
    assert code == 2
    assert err == f"{out} can't be written: files can't be created in {tmp_path}.\n"
    monkeypatch.undo()
    tmp_path.chmod(0o700)


def full(*arguments):
    """A disk without room."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def done(monkeypatch):
    """Rehearsals and timings that are over at once."""
    rehearsal = Rehearsal({"tests": [], "output": ""}, "")
    zip_file = Path("a1-autograder-practice.zip")  # which nobody need have built
    monkeypatch.setattr(packaging_commands, "find_autograder", lambda *arguments: zip_file)
    monkeypatch.setattr(packaging_commands, "rehearse_zip", lambda archive, submission: rehearsal)
    monkeypatch.setattr(timing_command, "read_submission", lambda path, assignment: Submission())
    monkeypatch.setattr(timing_command, "measure", lambda *arguments: {"device": "cpu"})
    monkeypatch.setattr(timing_command, "print_speed", lambda speed, console: None)


COMMANDS = [
    (packaging_commands, ("rehearse", "a1", ".", "--out")),
    (timing_command, ("time", "a7", ".", "--json")),
]


@pytest.mark.parametrize(("module", "arguments"), COMMANDS, ids=["rehearse", "time"])
def test_a_disk_that_is_full_after_the_work_is_one_sentence(
    autograder, done, tmp_path, monkeypatch, module, arguments
):
    out = tmp_path / "out.json"
    code, _, err = autograder(*arguments, out)
    assert (code, err) == (0, "")
    whole = out.read_bytes()
    assert whole.startswith(b"{") and whole.endswith(b"}\n")
    monkeypatch.setattr("os.replace", full)
    code, _, err = autograder(*arguments, out)
    assert (code, err) == (2, f"{out} can't be written: No space left on device.\n")
    assert out.read_bytes() == whole


def test_what_cannot_be_copied_into_the_tree_is_named(tmp_path):
    """A pipe stands for a file that may not be read: root may read all."""
    os.mkfifo(tmp_path / "pipe")
    archive = tmp_path.with_suffix(".zip")
    archive.write_bytes(zip_bytes({"run_autograder": b"#!/bin/sh\n"}))
    with pytest.raises(CourseError, match=r"/pipe can't be copied: "), laid_out(archive, tmp_path):
        pass
