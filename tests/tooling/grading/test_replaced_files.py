"""A file that is replaced between look and read, by a link, a FIFO or a folder, is not followed."""

import os
import threading

import pytest

from autograder.batch.input.export_reader import read_export
from autograder.grading import submission as intake
from autograder.grading.submission import FolderSource, read_submission
from common.errors import CourseError
from tests.tooling.grading_fixtures import FILE, assignment

A1 = assignment()
SECRET = b"secret = 1\n"


@pytest.fixture
def outside(tmp_path):
    """What must not be read: a file, and a folder and a zip-like folder of the same content."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / FILE).write_bytes(SECRET)
    return folder


def remove(path):
    """Move what lies there aside."""
    path.rename(path.with_name(f".{path.name}.{os.urandom(4).hex()}"))


def link(path, outside):
    remove(path)
    path.symlink_to(outside if outside.name == path.name else outside / path.name)


def hard_link(path, outside):
    remove(path)
    os.link(outside / path.name, path)


def fifo(path, outside):
    remove(path)
    os.mkfifo(path)


def folder(path, outside):
    remove(path)
    path.mkdir()


@pytest.mark.parametrize("replace", [link, hard_link, fifo, folder])
def test_a_file_that_is_replaced_before_it_is_read_is_refused(
    replace, tmp_path, outside, monkeypatch
):
    work = tmp_path / "work"
    work.mkdir()
    (work / FILE).write_bytes(b"x = 1\n")
    read = FolderSource.read

    def late(source, name, count):
        replace(work / FILE, outside)
        return read(source, name, count)

    monkeypatch.setattr(FolderSource, "read", late)
    taken = read_submission(work, A1)
    assert taken.files == {}
    assert taken.notes == [f"{FILE} is not a regular file and was skipped."]


@pytest.mark.parametrize("when", ["read", "listed"])
def test_a_folder_on_the_way_that_is_replaced_by_a_link_is_not_followed(
    when, tmp_path, outside, monkeypatch
):
    inner = tmp_path / "work" / "inner"
    inner.mkdir(parents=True)
    (inner / FILE).write_bytes(b"x = 1\n")
    read, scandir, listed = FolderSource.read, os.scandir, []

    def replace():
        if not inner.is_symlink():
            remove(inner)
            inner.symlink_to(outside)

    def late(source, name, count):
        replace()
        return read(source, name, count)

    def late_scandir(place):
        listed.append(place)
        if len(listed) > 1:
            replace()
        return scandir(place)

    if when == "read":
        monkeypatch.setattr(FolderSource, "read", late)
    else:
        monkeypatch.setattr(intake.os, "scandir", late_scandir)
    assert SECRET not in read_submission(tmp_path / "work", A1).files.values()


def test_a_submission_that_is_replaced_by_a_link_after_it_was_listed_is_not_followed(
    tmp_path, outside
):
    export = tmp_path / "export"
    (export / "ada").mkdir(parents=True)
    (export / "ada" / FILE).write_bytes(b"x = 1\n")
    found = read_export(export)
    remove(export / "ada")
    (export / "ada").symlink_to(outside)
    with pytest.raises(CourseError, match="ada is a link, which is not followed"):
        found.read_submission(found.submissions[0], A1)


def test_metadata_that_is_a_link_is_not_followed_and_that_is_said(tmp_path, outside):
    export = tmp_path / "export"
    (export / "submission_1").mkdir(parents=True)
    (outside / "who.yml").write_text("submission_1:\n  :submitters:\n  - :name: Ada\n")
    (export / "submission_metadata.yml").symlink_to(outside / "who.yml")
    found = read_export(export)
    assert found.submissions[0].students == ()
    assert "not a regular file" in found.notes[0]


def test_a_thread_that_replaces_a_file_all_the_time_never_has_a_link_read(tmp_path, outside):
    work = tmp_path / "work"
    work.mkdir()
    (work / FILE).write_bytes(b"x = 1\n")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for make in (
                lambda p: p.write_bytes(b"x = 1\n"),
                lambda p: p.symlink_to(outside / FILE),
            ):
                other = tmp_path / "other"
                make(other)
                other.replace(work / FILE)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = [read_submission(work, A1).files.get(FILE) for _ in range(1000)]
    finally:
        stop.set()
        thread.join()
    assert SECRET not in seen and b"x = 1\n" in seen
