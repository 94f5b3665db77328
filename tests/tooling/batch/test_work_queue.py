"""Tests of the work queue: what is graded, how often, and what faults lead to."""

import errno
import json
import os
import zipfile
from pathlib import Path

import msgspec
import pytest

from autograder.batch import work_queue
from autograder.batch.output.report_data import ReportData
from autograder.grading.submission import MAX_FILE_BYTES
from autograder.grading.warm.judge_messages import GradingReply, GradingRequest
from tests.tooling.batch.pretended_engine import (
    A1,
    NAMES,
    Pretender,
    carry_out,
    changed,
    graded,
    grades_by_name,
    printed_summary,
)


def test_a_second_run_grades_only_what_has_changed(order):
    carry_out(order, Pretender())
    again = Pretender()
    carry_out(order, again)
    assert again.asked == []
    (order.export / "alan" / "convolution.py").write_text("name = 'another'\n")
    carry_out(order, again)
    assert again.asked == ["alan"]


@pytest.mark.parametrize(
    "harm",
    ("the state is gone", "the result is gone", "the state is damaged", "the result is cut off"),
)
def test_what_was_not_written_to_its_end_is_graded_again(harm, order):
    carry_out(order, Pretender())
    if harm == "the result is gone":
        (order.out / "results" / "ada.json").unlink()
    elif harm == "the state is gone":
        (order.out / "state" / "ada.json").unlink()
    elif harm == "the result is cut off":
        (order.out / "results" / "ada.json").write_bytes(b"")
    else:
        (order.out / "state" / "ada.json").write_text('{"key": "')
    batch, _ = carry_out(changed(order, only=("alan",)), Pretender())  # which leaves it alone
    assert [entry.status for entry in batch.entries] == ["waiting", "graded", "graded"]
    again = Pretender()
    batch, _ = carry_out(order, again)
    assert again.asked == ["ada"]
    assert all(entry.status == "graded" for entry in batch.entries)


def test_another_zip_or_a_gpu_grades_everything_again(order, tmp_path):
    carry_out(order, Pretender())
    again = Pretender()
    carry_out(changed(order, gpus=1.0), again)
    assert len(again.asked) == 3
    (tmp_path / "grader.zip").write_bytes(b"another zip")
    carry_out(changed(order, gpus=1.0), again)
    assert len(again.asked) == 6


def test_a_fault_of_the_machinery_is_tried_again_three_times_and_is_never_a_zero(order):
    broken = GradingReply(fault="the judge died")
    engine = Pretender({"ada": [broken], "alan": [broken, broken, broken, graded()]})
    batch, _ = carry_out(order, engine)
    assert engine.asked.count("ada") == engine.asked.count("alan") == 4
    by_id = {entry.id: entry for entry in batch.entries}
    assert (by_id["ada"].status, by_id["ada"].score) == ("failed", None)
    assert by_id["ada"].why == "the judge died" and by_id["ada"].attempts == 4
    assert (by_id["alan"].status, by_id["alan"].attempts) == ("graded", 4)
    assert not (order.out / "results" / "ada.json").exists() and batch.result(by_id["ada"]) is None
    rows = grades_by_name(order)
    assert (rows["ada"]["total"], rows["ada"]["status"]) == ("", "failed")
    assert "ada" not in (order.out / "canvas.csv").read_text()
    again = Pretender()
    batch, _ = carry_out(changed(order, failed=True), again)
    assert again.asked == ["ada"] and all(e.status == "graded" for e in batch.entries)


def test_nothing_that_can_be_read_is_graded_as_such_and_says_so(order):
    (order.export / "ada" / "convolution.py").rename(order.export / "ada" / "conv.py")
    batch, _ = carry_out(order, Pretender({"ada": [graded(0.0)]}))
    assert (batch.entries[0].status, batch.entries[0].score) == ("unreadable", 0.0)
    assert batch.entries[0].why == "convolution.py is missing. Found: conv.py."


@pytest.mark.parametrize("call", ("os.open", "os.scandir"))
def test_what_the_machine_cannot_read_has_no_score(call, order, monkeypatch):
    original = {"os.open": os.open, "os.scandir": os.scandir}[call]

    def failing(place, *given, dir_fd=None, **more):
        folder = place if isinstance(place, int) else dir_fd
        whole = "" if folder is None else os.readlink(f"/proc/self/fd/{folder}")
        whole = Path(whole) if isinstance(place, int) else Path(whole, place)
        if whole.name == "convolution.py" and "ada" in whole.parts:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if whole.name == "ada" and call == "os.scandir":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(place, *given, **more, **({} if dir_fd is None else {"dir_fd": dir_fd}))

    monkeypatch.setattr(call, failing)
    batch, _ = carry_out(order, Pretender())
    assert [entry.status for entry in batch.entries] == ["failed", "graded", "graded"]
    assert batch.entries[0].score is None
    assert batch.entries[0].why.endswith("can't be read: Input/output error.")


def test_a_judge_learns_why_a_file_was_not_taken(order):
    (order.export / "ada" / "convolution.py").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    engine = Pretender()
    carry_out(order, engine)
    asked = msgspec.msgpack.decode(engine.questions[0], type=GradingRequest)
    assert (asked.files, asked.reasons) == (
        {},
        {"convolution.py": "convolution.py is larger than 1024 KB and was skipped."},
    )


def test_what_no_submission_could_survive_stops_the_batch_at_once(order):
    engine = Pretender({name: [GradingReply(fault="no protection", fatal=True)] for name in NAMES})
    batch, done = carry_out(order, engine)
    assert len(engine.asked) == 1 and done.stopped == "no protection"
    assert {entry.status for entry in batch.entries} == {"waiting"}


def test_a_grader_that_never_works_is_given_up(order, monkeypatch):
    monkeypatch.setattr(work_queue, "IN_A_ROW", 2)
    batch, done = carry_out(
        order, Pretender({name: [GradingReply(fault="dead")] for name in NAMES})
    )
    assert "in a row could not be graded, the last because: dead" in done.stopped
    assert [entry.status for entry in batch.entries].count("failed") == 2


def test_a_damaged_export_is_not_tried_again_and_says_what_helps(order):
    with zipfile.ZipFile(order.export.with_name("all.zip"), "w") as archive:
        for name in NAMES:
            archive.writestr(f"class/{name}/convolution.py", f"name = {name!r}")
    whole = order.export.with_name("all.zip")
    content = whole.read_bytes()
    whole.write_bytes(content.replace(b"name = 'alan'", b"name = 'ALAN'"))
    given = changed(order, export=whole)
    batch, done = carry_out(given, Pretender())
    assert [entry.status for entry in batch.entries] == ["graded", "failed", "graded"]
    assert done.progress.retries == 0
    screen = printed_summary(batch, done)
    assert "regrade" not in screen
    assert f"`python -m autograder batch a1 EXPORT --out {order.out}`" in screen
    whole.write_bytes(content)
    batch, done = carry_out(given, Pretender())
    assert (done.progress.graded, done.progress.kept) == (1, 2)


def test_a_regrade_that_the_machinery_fails_keeps_the_older_result(order):
    carry_out(order, Pretender({"ada": [graded(2.0)]}))
    before = (order.out / "results" / "ada.json").read_bytes()
    broken = Pretender({"ada": [GradingReply(fault="the judge died")], "alan": [graded(0.0)]})
    batch, done = carry_out(changed(order, regrade=True), broken)
    screen = printed_summary(batch, done)
    ada = batch.entries[0]
    assert (ada.status, ada.score, done.progress.failed) == ("graded", 2.0, 1)
    assert (order.out / "results" / "ada.json").read_bytes() == before
    reported = "Grading it again failed: the judge died. Showing the previous result."
    assert ada.older == reported and f"ada: {reported}" in screen
    assert "regrade" in screen and "retries them" in screen
    rows = grades_by_name(order)
    assert (rows["ada"]["total"], rows["ada"]["why"]) == ("2", reported)
    assert (rows["alan"]["total"], rows["alan"]["why"]) == ("0", "")
    assert "ada,,,,,2\n" in (order.out / "canvas.csv").read_text()
    assert reported in (order.out / "report.html").read_text()
    events = [json.loads(line) for line in (order.out / "log.jsonl").open()]
    (event,) = [event for event in events if event["event"] == "grading again failed"]
    assert (event["id"], event["why"], event["kept"]) == ("ada", "the judge died", 2.0)


@pytest.mark.parametrize("failed", (True, False))
def test_what_could_not_be_graded_again_is_tried_by_the_next_run(failed, order):
    carry_out(order, Pretender())
    broken = Pretender({"ada": [GradingReply(fault="the judge died")]})
    carry_out(changed(order, regrade=True), broken)
    again = Pretender({"ada": [graded(0.0)]})
    batch, _ = carry_out(changed(order, failed=failed), again)
    assert again.asked == ["ada"]
    assert (batch.entries[0].score, batch.entries[0].older) == (0.0, "")


def test_a_renamed_file_is_graded_and_the_report_lists_it_after_another_run_too(order):
    ada = order.export / "ada"
    (ada / "convolution.py").rename(ada / "convolution (1).py")
    note = "convolution (1).py was taken as convolution.py. Rename it before you submit again."
    engine = Pretender()
    for asked in (["ada", "alan", "grace"], []):
        batch, _ = carry_out(order, engine)
        assert engine.asked == asked
        assert [entry.status for entry in batch.entries] == ["graded"] * 3
        assert [entry.renamed for entry in batch.entries] == [(note,), (), ()]
        rows = ReportData(batch, A1, [], anonymous=False).to_json()["rows"]
        assert [row.get("renamed") for row in rows] == [note, None, None]
        assert note in (order.out / "report.html").read_text()
        engine.asked.clear()
    asked = msgspec.msgpack.decode(engine.questions[0], type=GradingRequest)
    assert (asked.files, asked.notes) == ({"convolution.py": b"name = 'ada'\n"}, [note])
