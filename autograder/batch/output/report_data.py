"""Aggregates a batch's results for report.html, storing each repeated text once.

Two thousand results are a hundred megabytes of JSON, most of it the same sentences. Here each
sentence has a number, and each way in which all tests of a submission can end has one, too.
"""

import statistics
from dataclasses import dataclass, field
from typing import Any

from autograder.batch.batch_records import Batch, Entry
from autograder.batch.output.anonymization import anonymized
from autograder.batch.output.missing_defenses import defense_notes
from autograder.grading.results import title_and_rest, without_printed
from common.assignment import Assignment
from common.errors import HINT_PREFIX, PRINTED

LONGEST = 3000  # characters of one output; the whole of it is in results/ID.json


class Texts:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, which is cut if it is very long."""
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]}\n(Truncated: the full text is in results/.)"
        return self.numbers.setdefault(text, len(self.numbers))


@dataclass
class Test:
    """One test, summed up over the class's results."""

    index: int  # among all tests
    name: str
    exercise: str
    points: float
    visibility: str
    title: str  # the first paragraph of its output, which all results share
    where: str  # the exercise and, where it is about the lab, the question: "1.8 q3"
    passed: int = 0
    failed: int = 0
    not_run: int = 0
    replaced: int = 0  # of those that passed: with stand-ins for what they need

    def to_json(self) -> dict[str, Any]:
        """The test as the page reads it."""
        return {
            "name": self.name,
            "exercise": self.exercise,
            "points": self.points,
            "visibility": self.visibility,
            "title": self.title,
            "passed": self.passed,
            "failed": self.failed,
            "notRun": self.not_run,
            "replaced": self.replaced,
        }


@dataclass
class Seen:
    """A known mistake, and whose results show it."""

    hint: str
    exercises: set[str] = field(default_factory=set)  # "1.2", or "1.8 q3" in the lab
    rows: list[int] = field(default_factory=list)


class ReportData:
    """All that the report shows of a batch."""

    def __init__(self, batch: Batch, assignment: Assignment, hints: list[str], anonymous: bool):
        self.assignment = assignment
        self.anonymous = anonymous
        self.notes = [] if anonymous else list(batch.index.notes)
        self.texts = Texts()
        self.endings: dict[str, int] = {}  # how all tests ended, as JSON-like text, by number
        self.ending_list: list[list[Any]] = []
        self.tests: dict[str, Test] = {}
        self.points: dict[str, float] = {}  # of each exercise, according to the results
        self.mistakes = {hint: Seen(hint) for hint in hints}
        self.boards: dict[tuple[str, str], list[tuple[float, int]]] = {}
        self.rows: list[dict[str, Any]] = []
        self.defenses: list[list[str]] = []  # of each result
        entries = batch.entries
        if anonymous:  # the order of an export is that of its ids, or of names
            entries = tuple(sorted(entries, key=lambda entry: int(entry.alias.split()[-1])))
        self.entries = entries
        for entry in entries:
            self.add(entry, batch.result(entry))

    def add(self, entry: Entry, result: dict[str, Any] | None) -> None:
        """Take one submission in."""
        row_index = len(self.rows)
        row: dict[str, Any] = {
            "id": entry.alias if self.anonymous else entry.id,
            "people": [] if self.anonymous else [[s.name, s.sid, s.email] for s in entry.students],
            "members": len(entry.students),
            "status": entry.status,
            "score": entry.score,
            "seconds": round(entry.seconds, 1),
            "attempts": entry.attempts,
            "why": self.reason(entry),
        }
        if entry.older:
            row["older"] = "This is a previous result." if self.anonymous else entry.older
        if entry.renamed:
            row["renamed"] = self.shown(" ".join(entry.renamed), entry)
        if result is not None:
            row["said"] = self.texts.number(self.shown(result.get("output", ""), entry))
            row["ending"] = self.ending(entry, result, row_index)
            self.defenses.append(result.get("extra_data", {}).get("defenses", []))
            for board in result.get("leaderboard", []):
                key = (str(board["name"]), str(board.get("order", "asc")))
                self.boards.setdefault(key, []).append((float(board["value"]), row_index))
        self.rows.append(row)

    def reason(self, entry: Entry) -> str:
        """Why there is no grade; a reason may hold a file's name, and that a student's."""
        if not self.anonymous or not entry.why:
            return entry.why
        reasons = {"unreadable": "It could not be read.", "failed": "Grading failed."}
        return reasons.get(entry.status, "Code is missing.")

    def shown(self, text: str, entry: Entry) -> str:
        """A text, without students' names where names are hidden."""
        return anonymized(text, entry) if self.anonymous else text

    def ending(self, entry: Entry, result: dict[str, Any], row_index: int) -> int:
        """The number of this combination of outcomes: points and text of each test."""
        tests = [self.test_ending(entry, test, row_index) for test in result["tests"]]
        self.count_points(result["tests"])
        key = repr(tests)
        if key not in self.endings:
            self.endings[key] = len(self.ending_list)
            self.ending_list.append(tests)
        return self.endings[key]

    def count_points(self, tests: list[dict[str, Any]]) -> None:
        """Take the points that there are from one result: another may be of other tests."""
        points: dict[str, float] = {}
        for test in tests:
            points[test["number"]] = points.get(test["number"], 0.0) + test["max_score"]
        for exercise, most in points.items():
            self.points[exercise] = max(most, self.points.get(exercise, 0.0))

    def test_ending(self, entry: Entry, outcome: dict[str, Any], row_index: int) -> list[Any]:
        """How one test ended: its index, its points, and its text without the title.

        For a test that passed with all its points and no other text, only the index is kept.
        """
        key = str(outcome.get("extra_data", {}).get("test", outcome["name"]))
        title, rest = title_and_rest(outcome["output"])
        if key not in self.tests:
            self.tests[key] = Test(
                len(self.tests),
                outcome["name"],
                outcome["number"],
                outcome["max_score"],
                outcome["visibility"],
                title,
                self.where(outcome["number"], key),
            )
        test = self.tests[key]
        ran = outcome.get("extra_data", {}).get("ran", True)
        passed = outcome["status"] == "passed"
        test.passed += passed
        test.failed += ran and not passed
        test.not_run += not ran
        test.replaced += bool(outcome.get("extra_data", {}).get("replaced"))
        if title != test.title:
            rest = outcome["output"]
        self.look_for_hints(rest, test, row_index)
        text = self.texts.number(self.shown(rest, entry)) if rest else None
        if passed and outcome["score"] == test.points and text is None:
            return [test.index]
        return [test.index, outcome["score"], 1 if passed else 0 if ran else -1, text]

    def where(self, exercise: str, test: str) -> str:
        """What a test is about: its exercise, and of the lab the question, too."""
        questions = {e.number: e.questions for e in self.assignment.exercises}.get(exercise, [])
        asked = [question for question in questions if test.startswith(f"test_{question}_")]
        return " ".join([exercise, *asked])

    def look_for_hints(self, text: str, test: Test, row_index: int) -> None:
        """Count the known mistakes that a failure names, ignoring the output of student code."""
        for line in without_printed(text).splitlines():
            before, prefix, hint = line.partition(HINT_PREFIX)
            seen = self.mistakes.get(hint) if prefix and not before else None
            if seen:
                seen.exercises.add(test.where)
                if seen.rows[-1:] != [row_index]:
                    seen.rows.append(row_index)

    def to_json(self) -> dict[str, Any]:
        """The data as the page reads it."""
        mistakes = sorted(self.mistakes.values(), key=lambda seen: -len(seen.rows))
        about = {e.number: e.about for e in self.assignment.exercises}
        order = [number for number in about if number in self.points]
        return {
            "short": self.assignment.short,
            "title": self.assignment.title,
            "anonymous": self.anonymous,
            "notes": [*self.notes, *defense_notes(self.defenses)],
            "printed": PRINTED,
            "hint_prefix": HINT_PREFIX,
            "summary": self.summary(),
            "exercises": [
                {"number": number, "about": about[number], "points": self.points[number]}
                for number in order
            ],
            "tests": [test.to_json() for test in self.tests.values()],
            "texts": list(self.texts.numbers),
            "endings": self.ending_list,
            "mistakes": [
                {"hint": s.hint, "exercises": sorted(s.exercises), "rows": s.rows}
                for s in mistakes
                if s.rows
            ],
            "boards": [
                {
                    "name": name,
                    "rows": sorted(entries, key=lambda e: -e[0] if order == "desc" else e[0]),
                }
                for (name, order), entries in self.boards.items()
            ],
            "rows": self.rows,
        }

    def summary(self) -> dict[str, Any]:
        """The figures above the page."""
        scores = [row["score"] for row in self.rows if row["score"] is not None]
        maxima = [entry.maximum for entry in self.entries if entry.maximum is not None]
        return {
            "submissions": len(self.rows),
            "students": sum(row["members"] for row in self.rows),
            "graded": len(scores),
            "maximum": max(maxima, default=0.0),
            "mean": statistics.fmean(scores) if scores else None,
            "median": statistics.median(scores) if scores else None,
            "seconds": sum(row["seconds"] for row in self.rows),
        }
