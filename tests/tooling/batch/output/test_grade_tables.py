"""What grades.csv and canvas.csv hold."""

import csv
import re

import msgspec
import pytest

from autograder.grading.warm.judge_messages import GradingReply
from tests.tooling.batch.pretended_engine import (
    A1,
    EXERCISE,
    NAMES,
    Pretender,
    carry_out,
    export_of,
    graded,
    grades_by_name,
)


def test_a_result_of_before_an_exercise_was_taken_out_stops_no_table(order):
    old = graded()
    old = msgspec.structs.replace(old, results=old.results.replace(EXERCISE.encode(), b"9.9"))
    carry_out(order, Pretender({"ada": [old]}))
    rows = grades_by_name(order)
    assert [(rows[name]["total"], rows[name][EXERCISE]) for name in NAMES] == [
        ("1", "0"),
        ("1", "1"),
        ("1", "1"),
    ]


@pytest.mark.parametrize(
    ("answer", "scores"), ((graded(2.0), ["2"]), (GradingReply(fault="died"), []))
)
def test_canvas_gets_the_last_submission_s_score_or_none(answer, scores, order):
    ada = "  :submitters:\n  - :name: Ada\n    :email: ada@example.edu\n"
    metadata = [
        f"{place}:\n{ada}  :created_at: 2026-01-0{day} 10:00:00.000000000 Z\n"
        for place, day in (("ada", 2), ("alan", 5), ("grace", 3))
    ]
    (order.export / "submission_metadata.yml").write_text("".join(metadata))
    carry_out(order, Pretender({"alan": [answer]}))
    canvas = list(csv.reader((order.out / "canvas.csv").open()))
    assert [row[-1] for row in canvas[2:]] == scores


def test_canvas_finds_the_columns_that_its_importer_looks_for(order):
    carry_out(export_of(order, {"11": "ada", "12": "alan"}), Pretender())
    header, points, *rows = csv.reader((order.out / "canvas.csv").open())
    assert "Student" in header[0] and "ID" in header[1]
    assert re.search(r"SIS\s+User\s+ID", header[2]) and re.search(r"SIS\s+Login\s+ID", header[3])
    assert "Section" in header[4] and header[5:] == [f"a1: {A1.title}"]
    assert "Points Possible" in points[0] and points[5] == "2"
    assert rows == [["ada", "", "", "ada", "", "1"], ["alan", "", "", "alan", "", "1"]]


def test_canvas_keeps_its_points_where_nothing_was_graded(order):
    """The importer takes a zero over, and leaves an empty cell alone."""
    broken = {name: [GradingReply(fault="dead")] for name in NAMES}
    carry_out(order, Pretender(broken))
    assert (order.out / "canvas.csv").read_text().splitlines()[1:] == ["    Points Possible,,,,,"]


def test_an_address_elsewhere_is_not_taken_for_the_login_of_another_student(order):
    students = {"11": "ada", "12": "alan", "13": "grace", "14": "other"}
    given = export_of(order, students)
    metadata = given.export / "submission_metadata.yml"
    metadata.write_text(metadata.read_text().replace("other@example.edu", "ada@Mail.example.com"))
    carry_out(given, Pretender())
    logins = {row[0]: row[3] for row in csv.reader((order.out / "canvas.csv").open())}
    assert (logins["ada"], logins["other"]) == ("ada", "ada@Mail.example.com")


def test_a_spreadsheet_takes_no_name_for_a_formula(order):
    (order.export / "=HYPERLINK(1)").mkdir()
    carry_out(order, Pretender())
    assert "\n'=HYPERLINK(1)," in (order.out / "grades.csv").read_text()
