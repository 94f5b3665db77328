"""Tests of a batch's folder after a kill, on a full disk, or with another zip."""

import errno
import re
from pathlib import Path

import pytest

from autograder.batch import batch_records
from autograder.batch.batch_records import RESULTS, STATES, read_batch, write_state
from autograder.batch.output import grade_tables
from common.errors import CourseError
from tests.tooling.batch.pretended_engine import (
    Pretender,
    carry_out,
    changed,
    graded,
    grades_by_name,
    printed_summary,
)


def test_a_killed_writer_leaves_no_result_that_counts(order, monkeypatch):
    carry_out(order, Pretender())

    def killed(*given) -> None:
        raise KeyboardInterrupt

    before = read_batch(order.out).entries[0]
    state = batch_records.read_state(order.out, "ada")
    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_state(order.out, "ada", state, b"{}")
    assert before.status == "graded"
    assert read_batch(order.out).entries[0].status == "waiting"


def test_a_full_disk_stops_the_batch_in_a_sentence_and_it_goes_on_later(order, monkeypatch):
    write = batch_records.write_temporary

    def full(file: Path, content: bytes) -> Path:
        if file.name in ("alan.json", "canvas.csv"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content)

    why = f"{order.out} can't be written: No space left on device"
    with monkeypatch.context() as disk:
        disk.setattr(batch_records, "write_temporary", full)
        batch, done = carry_out(order, Pretender())
        assert done.stopped == why
        assert [entry.status for entry in batch.entries] == ["graded", "waiting", "waiting"]
    again = Pretender()
    with monkeypatch.context() as disk, pytest.raises(CourseError, match=re.escape(why)):
        disk.setattr(grade_tables, "write_atomically", full)
        carry_out(order, again)
    assert again.asked == ["alan", "grace"]
    carry_out(order, again)  # for the tables alone
    assert again.asked == ["alan", "grace"] and (order.out / "canvas.csv").is_file()


@pytest.mark.parametrize("full", (STATES, RESULTS))
def test_a_regrade_that_finds_no_room_leaves_the_older_result(full, order, monkeypatch):
    carry_out(order, Pretender())
    write = batch_records.write_temporary

    def written(file: Path, content: bytes) -> Path:
        if file.parent.name == full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content)

    monkeypatch.setattr(batch_records, "write_temporary", written)
    batch, done = carry_out(changed(order, regrade=True), Pretender({"ada": [graded(2.0)]}))
    assert "No space left" in done.stopped
    assert [(entry.status, entry.score) for entry in batch.entries] == [("graded", 1.0)] * 3


def test_results_of_another_zip_are_distinguished_from_those_of_this_one(order, tmp_path):
    first, _ = carry_out(order, Pretender())
    assert not any(entry.older for entry in first.entries)
    (tmp_path / "grader.zip").write_bytes(b"another zip")
    some = changed(order, only=("ada",))
    batch, done = carry_out(some, Pretender())
    assert [entry.outdated for entry in batch.entries] == [False, True, True]
    rows = grades_by_name(order)
    assert rows["ada"]["why"] == "" and "another zip" in rows["alan"]["why"]
    screen = printed_summary(batch, done)
    assert "2 results were produced with another zip or other settings" in screen
    assert "regrade" not in screen
    batch, done = carry_out(order, Pretender())
    assert (done.progress.graded, done.progress.kept) == (2, 1)
    assert not any(entry.outdated or entry.older for entry in batch.entries)


def test_aliases_say_nothing_and_stay_the_same(order):
    first = [entry.alias for entry in carry_out(order, Pretender())[0].entries]
    assert sorted(first) == ["submission 1", "submission 2", "submission 3"]
    assert first == [entry.alias for entry in read_batch(Path(order.out)).entries]
