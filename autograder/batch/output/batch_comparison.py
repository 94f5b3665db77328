"""Compares two batches of the same submissions: which scores changed, and why (`compare`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autograder.batch.batch_records import Batch, Entry
from autograder.semester import how_to_restore, label_of, read_semester
from common.errors import CourseError
from common.testing.graded_tests import format_points


@dataclass(frozen=True)
class Change:
    """One submission that ended differently."""

    entry: Entry
    before: str
    after: str
    reasons: tuple[str, ...]


def changes(first: Batch, second: Batch) -> Iterator[Change]:
    """All submissions whose score or status differs, in order. Both must be of one term."""
    salts = first.index.salt, second.index.salt
    if salts[0] != salts[1]:
        now = read_semester()
        other = next((salt for salt in salts if salt != now.fingerprint), "")
        raise CourseError(
            f"{first.folder} was graded under {label_of(salts[0])}, {second.folder} under "
            f"{label_of(salts[1])}: tests had other inputs, so scores may differ for that "
            f"reason alone. Regrade one of them under the other's term. To restore the term with "
            f"salt {other} in this checkout, {how_to_restore(other, now)}."
        )
    old = {entry.id: entry for entry in first.entries}
    new = {entry.id: entry for entry in second.entries}
    for identifier in dict.fromkeys([*old, *new]):
        before, after = old.get(identifier), new.get(identifier)
        if outcome(before) != outcome(after):
            entry = after or before
            assert entry is not None  # it is in one of the two
            reasons = why(first, before, second, after)
            yield Change(entry, outcome(before), outcome(after), tuple(reasons))


def outcome(entry: Entry | None) -> str:
    """How a submission ended, in a word or two."""
    if entry is None:
        return "missing"
    if entry.score is None:
        return entry.status
    return format_points(entry.score) + (" (unreadable)" if entry.status == "unreadable" else "")


def why(first: Batch, before: Entry | None, second: Batch, after: Entry | None) -> Iterator[str]:
    """What made the difference: tests that end differently, or the grading as a whole."""
    if before is None or after is None:
        yield f"only in {(second if before is None else first).folder}"
        return
    old, new = first.result(before), second.result(after)
    if old is None or new is None:
        yield after.why or before.why or "not graded yet"
        return
    if first.grader(before) != second.grader(after):
        yield "graded with another zip or other settings"
    elif first.key(before) != second.key(after):
        yield "different files were submitted"
    tests = {test["extra_data"]["test"]: test for test in old["tests"]}
    for test in new["tests"]:
        known = tests.pop(test["extra_data"]["test"], None)
        if known is None:
            yield f"{label(test)}: new, {points(test)}"
        elif (known["score"], known["max_score"]) != (test["score"], test["max_score"]):
            yield f"{label(test)}: {points(known)}, now {points(test)}{reason(known, test)}"
    for test in tests.values():
        yield f"{label(test)}: removed, was {points(test)}"


def label(test: dict[str, Any]) -> str:
    """A test's name, with its exercise."""
    return f"{test['number']} {test['name']}"


def points(test: dict[str, Any]) -> str:
    """What it got of what."""
    return f"{format_points(test['score'])} of {format_points(test['max_score'])}"


def reason(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Why the worse of the two failed, in a line."""
    failed = after if after["status"] == "failed" else before
    lines = [line for line in failed["output"].split("\n\n")[1:] if line.strip()]
    return f" ({lines[0].splitlines()[0]})" if lines and failed["status"] == "failed" else ""
