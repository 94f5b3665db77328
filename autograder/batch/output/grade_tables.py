"""Writes grades.csv for people, and canvas.csv for Canvas's gradebook."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder.batch.batch_records import Batch, Entry, Student
from common.assignment import load_assignment
from common.atomic_write import write_atomically
from common.testing.graded_tests import format_points
from common.visible_text import visible_line

GRADES = "grades.csv"
CANVAS = "canvas.csv"
# What Canvas's importer wants before the columns with scores, in this order: it looks for these
# words. It finds a student by its own ID, else by SIS User ID, SIS Login ID, and name, in turn.
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "    Points Possible"  # as in Canvas's own exports, with its spaces
# Where a spreadsheet takes text for a formula: at the start of a cell, whatever spaces precede it,
# and after a semicolon, which separates cells in half of the world. Also in full width.
FORMULA = re.compile(r"(?:^|(?<=;))(?=\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def write_tables(batch: Batch) -> None:
    """Write both."""
    exercises = [exercise.number for exercise in load_assignment(batch.assignment).exercises]
    write_csv(batch.folder / GRADES, grade_rows(batch, exercises))
    write_csv(batch.folder / CANVAS, canvas_rows(batch))


def write_csv(file: Path, rows: Iterable[Iterable[str]]) -> None:
    """Write a table in one step."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_atomically(file, text.getvalue().encode("utf-8", "replace"))


def grade_rows(batch: Batch, exercises: list[str]) -> Iterable[list[str]]:
    """A row for each student of each submission. No score is an empty cell, never a zero."""
    yield ["name", "sid", "email", "submission", "total", "maximum", *exercises, "status", "why"]
    for entry in batch.entries:
        points = exercise_points(batch.result(entry), exercises)
        for student in entry.students or (Student(),):
            yield [
                *map(harmless, (student.name, student.sid, student.email, entry.id)),
                shown(entry.score),
                shown(entry.maximum),
                *points,
                entry.status,
                harmless(" ".join(filter(None, (entry.why, entry.older)))),
            ]


def exercise_points(result: dict[str, Any] | None, exercises: list[str]) -> list[str]:
    """The points of each exercise."""
    if result is None:
        return [""] * len(exercises)
    earned = dict.fromkeys(exercises, 0.0)
    for test in result["tests"]:
        if test["number"] in earned:  # or the result is older than the removal of an exercise
            earned[test["number"]] += test["score"]
    return [format_points(points) for points in earned.values()]


def canvas_rows(batch: Batch) -> Iterable[list[str]]:
    """The table that Canvas imports: each student once, and only those who have a score."""
    short = batch.assignment.partition("_")[0]
    yield [*CANVAS_COLUMNS, f"{short}: {batch.title}"]
    known = [entry.maximum for entry in batch.entries if entry.maximum is not None]
    # Canvas takes this over, a zero too, and leaves the points as they are where it is empty.
    yield [POINTS_POSSIBLE, "", "", "", "", shown(max(known, default=None))]
    domain = class_domain(batch)
    for student, entry in latest(batch).values():
        if entry.score is None:  # nor is an earlier submission's score the student's
            continue
        cells = (student.name, "", student.sid, login_of(student, domain), "")
        yield [*map(harmless, cells), shown(entry.score)]


def class_domain(batch: Batch) -> str:
    """Where most of the class have their addresses: the school's own domain."""
    emails = [student.email for entry in batch.entries for student in entry.students]
    domains = Counter(domain_of(email) for email in emails if "@" in email)
    return domains.most_common(1)[0][0] if domains else ""


def domain_of(email: str) -> str:
    """What stands behind the @."""
    return email.rpartition("@")[2].lower()


def login_of(student: Student, domain: str) -> str:
    """The student's Canvas login, as far as the e-mail address reveals it.

    At another provider, the name before the @ may be another student's login.
    """
    name, _, _ = student.email.rpartition("@")
    return name if name and domain_of(student.email) == domain else student.email


def latest(batch: Batch) -> dict[str, tuple[Student, Entry]]:
    """Each student's submission: where there are several, the last one of the last export."""
    created = {one.id: one.created_at for one in batch.index.submissions}
    found: dict[str, tuple[Student, Entry]] = {}
    for entry in sorted(batch.entries, key=lambda entry: (not entry.absent, created[entry.id])):
        for student in entry.students:
            found[student.key] = (student, entry)
    return found


def shown(points: float | None) -> str:
    """Points, or nothing."""
    return "" if points is None else format_points(points)


def harmless(text: str) -> str:
    """Text that a spreadsheet shows on one line and doesn't compute."""
    return FORMULA.sub("'", visible_line(text))
