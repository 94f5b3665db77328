"""Tests of batch runs: grading into a folder, and refusals that leave the folder unchanged."""

import csv
import errno
import json
import shutil
import tempfile
from pathlib import Path

import pytest

from autograder.batch import batch_run
from autograder.batch.batch_run import run_batch
from autograder.batch.engines.driver_scratch import PREFIX
from autograder.commands import batch_commands as commands
from common.assignment import load_assignment
from common.errors import CourseError
from tests.tooling.batch.pretended_engine import (
    EXERCISE,
    NAMES,
    Pretender,
    carry_out,
    changed,
    export_of,
    graded,
)


def test_each_submission_gets_a_result_a_row_and_a_line_in_the_log(order):
    batch, _ = carry_out(order, Pretender({"alan": [graded(2.0)]}))
    assert {e.id: (e.status, e.score, e.maximum, e.attempts) for e in batch.entries} == {
        "ada": ("graded", 1.0, 2.0, 1),
        "alan": ("graded", 2.0, 2.0, 1),
        "grace": ("graded", 1.0, 2.0, 1),
    }
    rows = list(csv.DictReader((order.out / "grades.csv").open()))
    assert [(row["name"], row["total"], row[EXERCISE], row["status"]) for row in rows] == [
        ("ada", "1", "1", "graded"),
        ("alan", "2", "2", "graded"),
        ("grace", "1", "1", "graded"),
    ]
    canvas = list(csv.reader((order.out / "canvas.csv").open()))
    assert canvas[0][:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert canvas[1][0].strip() == "Points Possible" and canvas[1][-1] == "2"
    assert [row[-1] for row in canvas[2:]] == ["1", "2", "1"]
    events = [json.loads(line)["event"] for line in (order.out / "log.jsonl").open()]
    assert events == ["started", "graded", "graded", "graded", "ended"]


def test_an_interrupt_leaves_tables_and_a_batch_that_goes_on(order):
    def interrupt() -> None:
        raise KeyboardInterrupt

    batch, done = carry_out(order, Pretender(after=interrupt))
    assert done.stopped == batch_run.BY_HAND
    assert [entry.status for entry in batch.entries] == ["graded", "waiting", "waiting"]
    assert (order.out / "grades.csv").is_file()
    again = Pretender()
    carry_out(order, again)
    assert again.asked == ["alan", "grace"]


def test_only_the_named_are_graded_and_again_if_asked(order):
    carry_out(order, Pretender())
    again = Pretender({"grace": [graded(0.0)]})
    batch, _ = carry_out(changed(order, only=("grace",), regrade=True), again)
    assert again.asked == ["grace"] and batch.entries[2].score == 0.0
    with pytest.raises(CourseError, match="no submission nobody"):
        carry_out(changed(order, only=("nobody",)), again)


def test_a_folder_holds_one_batch_of_one_assignment_at_a_time(order, tmp_path):
    carry_out(order, Pretender())
    with pytest.raises(CourseError, match="holds a batch of a1_convolution"):
        carry_out(changed(order, assignment=load_assignment("a2")), Pretender())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(CourseError, match="is not empty and not a batch"):
        carry_out(changed(order, out=tmp_path / "full"), Pretender())
    with batch_run.opened(order.out), pytest.raises(CourseError, match="Another batch"):
        carry_out(order, Pretender())


def test_a_batch_that_was_killed_before_its_first_submission_goes_on(order, monkeypatch):
    def killed(assignment) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as early, pytest.raises(KeyboardInterrupt):
        early.setattr(batch_run, "build", killed)
        carry_out(order, Pretender())
    batch, _ = carry_out(order, Pretender())
    assert {entry.status for entry in batch.entries} == {"graded"}


def test_a_batch_clears_what_a_killed_driver_has_left(order, tmp_path, monkeypatch):
    (tmp_path / "temporary" / f"{PREFIX}x" / "source").mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    carry_out(order, Pretender())
    assert not [*(tmp_path / "temporary").iterdir()]


def test_another_class_does_not_replace_the_one_that_is_there(order, tmp_path):
    carry_out(order, Pretender())
    (tmp_path / "others" / "linus").mkdir(parents=True)
    with pytest.raises(CourseError, match="none of its submissions is in"):
        carry_out(changed(order, export=tmp_path / "others"), Pretender())
    assert len([*(order.out / "results").iterdir()]) == len(NAMES)


def test_what_is_refused_changes_nothing_of_the_batch_that_is_there(order):
    def without_gpu(archive: Path) -> Pretender:
        raise CourseError("There is no GPU here.")

    carry_out(order, Pretender())
    before = (order.out / "batch.json").read_bytes()
    with pytest.raises(CourseError, match="no GPU"):
        run_batch(changed(order, gpus=0.5), without_gpu, lambda work: None)
    with pytest.raises(CourseError, match="no submission nobody"):
        carry_out(changed(order, gpus=0.5, only=("nobody",)), Pretender())
    assert (order.out / "batch.json").read_bytes() == before


def test_a_batch_is_not_written_among_the_submissions(order):
    with pytest.raises(CourseError, match="where it would be a submission"):
        carry_out(changed(order, out=order.export / "out"), Pretender())
    assert sorted(item.name for item in order.export.iterdir()) == sorted(NAMES)


def test_what_an_export_lacks_hides_no_doubt_about_the_rest(order):
    given = export_of(order, {"11": "ada", "12": "alan"})
    (given.export / "11" / "convolution.py").rename(given.export / "11" / "lenet.py")
    shutil.rmtree(given.export / "12")
    assert "is it an export of a1?" in carry_out(given, Pretender())[1].warning


def test_only_takes_ids_folders_and_names_of_students(order, tmp_path):
    folder = tmp_path / "people"
    for name in ("J. Smith", "Zoë"):
        (folder / name).mkdir(parents=True)
        (folder / name / "convolution.py").write_text("")
    given = changed(order, export=folder)
    for name in ("J._Smith", "J. Smith"):
        engine = Pretender()
        carry_out(changed(given, only=(name,), regrade=True), engine)
        assert engine.asked == ["J._Smith"]
    with pytest.raises(CourseError, match=r"no submission J\.Smith .* The nearest id is J\._Smith"):
        carry_out(changed(given, only=("J.Smith",)), Pretender())
    assert commands.split(None, None, ("J. Smith, Zoë", "11")) == ("J. Smith", "Zoë", "11")
    both = export_of(order, {"11": "ada", "12": "ada"})
    with pytest.raises(CourseError, match="ada is in several submissions: 11, 12"):
        carry_out(changed(both, only=("ada",), out=tmp_path / "both"), Pretender())


def test_where_files_cannot_be_locked_a_batch_is_graded_all_the_same(order, monkeypatch):
    def flock(*given: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(batch_run.fcntl, "flock", flock)
    assert carry_out(order, Pretender())[1].progress.graded == 3
