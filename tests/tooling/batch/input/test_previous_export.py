"""What becomes of submissions that a later export lacks."""

import csv

import pytest

from autograder.batch.batch_records import Submitted
from autograder.batch.input.previous_export import ids
from autograder.grading.warm.judge_messages import GradingReply
from common.errors import CourseError
from tests.tooling.batch.pretended_engine import (
    Pretender,
    carry_out,
    changed,
    export_of,
    graded,
    grades_by_name,
    printed_summary,
)


def test_results_stay_of_what_a_later_export_lacks_and_one_line_says_so(order):
    whole = export_of(order, {"11": "ada", "12": "alan", "13": "grace"})
    carry_out(whole, Pretender({"11": [graded(2.0)]}))
    result = (order.out / "results" / "11.json").read_bytes()
    engine = Pretender()
    part = export_of(order, {"12": "alan", "14": "linus"})
    batch, done = carry_out(changed(part, regrade=True), engine)
    screen = printed_summary(batch, done)
    assert engine.asked == ["12", "14"] and not done.progress.failed
    assert {e.id: (e.score, e.absent) for e in batch.entries} == {
        **{"12": (1.0, False), "14": (1.0, False), "11": (2.0, True), "13": (1.0, True)}
    }
    assert (order.out / "results" / "11.json").read_bytes() == result
    assert screen.count("Not in this export") == 1
    assert "Not in this export, results kept: 11, 13.\n" in screen
    rows = grades_by_name(order)
    assert rows["ada"]["why"] == "Not in this export. Showing its previous result."
    assert (rows["ada"]["total"], rows["alan"]["why"]) == ("2", "")
    assert "\nada,,,ada,,2\n" in (order.out / "canvas.csv").read_text()
    with pytest.raises(CourseError, match="no submission 11 in"):
        carry_out(changed(part, only=("11",)), Pretender())


def test_what_a_later_export_lacks_is_there_again_with_the_earlier_one(order):
    whole = export_of(order, {"11": "ada", "12": "alan", "13": "grace"})
    carry_out(whole, Pretender())
    carry_out(export_of(order, {"12": "alan"}), Pretender())
    again = Pretender()
    batch, _ = carry_out(whole, again)
    assert again.asked == [] and batch.index.notes == ()
    assert [(entry.id, entry.older) for entry in batch.entries] == [
        *(("11", ""), ("12", ""), ("13", ""))
    ]


def test_a_submission_that_its_students_have_replaced_counts_no_more(order):
    carry_out(export_of(order, {"11": "ada", "12": "alan"}), Pretender({"11": [graded(2.0)]}))
    newer = export_of(order, {"12": "alan", "15": "ada"})
    batch, _ = carry_out(newer, Pretender({"15": [graded(0.0)]}))
    assert [entry.id for entry in batch.entries] == ["12", "15"]
    assert batch.index.notes == (
        "Not in this export, no longer counted, because the same students submitted again: 11.",
    )
    assert "\nada,,,ada,,0\n" in (order.out / "canvas.csv").read_text()
    assert (order.out / "results" / "11.json").is_file()


def test_what_has_no_result_and_is_not_in_a_later_export_is_left_out_and_reported(order):
    broken = {"11": [GradingReply(fault="the judge died")]}
    carry_out(export_of(order, {"11": "ada", "12": "alan"}), Pretender(broken))
    batch, _ = carry_out(export_of(order, {"12": "alan"}), Pretender())
    assert [entry.id for entry in batch.entries] == ["12"]
    assert batch.index.notes == ("Not in this export, skipped, because they have no result: 11.",)


def test_a_member_who_handed_in_again_alone_gets_the_newer_score(order):
    group = export_of(order, {"11": "ada", "12": "alan"})
    metadata = group.export / "submission_metadata.yml"
    partner = "  - :name: grace\n    :email: grace@example.edu\n"
    metadata.write_text(metadata.read_text().replace("12:\n", partner + "12:\n"))
    carry_out(group, Pretender({"11": [graded(2.0)]}))
    alone = export_of(order, {"15": "ada", "12": "alan"})
    batch, _ = carry_out(alone, Pretender({"15": [graded(0.0)]}))
    assert [entry.id for entry in batch.entries if entry.absent] == ["11"]
    canvas = {row[0]: row[-1] for row in csv.reader((order.out / "canvas.csv").open())}
    assert (canvas["ada"], canvas["grace"]) == ("0", "2")


def test_a_line_names_no_more_than_a_few_of_many():
    many = [Submitted(str(number), "there") for number in range(13)]
    assert ids(many) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more"
