"""Compares a batch's results with the true scores of its synthetic class."""

from collections.abc import Iterator

from autograder.batch.batch_records import Batch, Entry
from autograder.classroom.synthetic_export import TrueScore
from common.testing.graded_tests import format_points


def differences(truths: dict[str, TrueScore], batch: Batch) -> Iterator[str]:
    """A sentence for each submission whose result is missing, or not what it must be."""
    entries = {entry.id: entry for entry in batch.entries}
    for number in entries.keys() - truths.keys():
        yield f"{number} is not of this class."
    for number, truth in truths.items():
        what = f"{number} ({', '.join([truth.kind, *truth.made_of])})"
        if number not in entries:
            yield f"{what} is missing."
            continue
        scores = points_by_exercise(batch, entries[number])
        if scores is None:
            yield f"{what} has no result: {entries[number].why or entries[number].status}."
            continue
        for exercise, (lowest, highest) in truth.exercises.items():
            score = scores.get(exercise, 0.0)
            if not lowest <= score <= highest:
                yield (
                    f"{what} got {format_points(score)} in exercise {exercise}, "
                    f"expected {range_text(lowest, highest)}."
                )


def points_by_exercise(batch: Batch, entry: Entry) -> dict[str, float] | None:
    """What a submission has earned in each exercise; None if it has no result."""
    result = batch.result(entry)
    if result is None:
        return None
    points: dict[str, float] = {}
    for test in result["tests"]:
        points[test["number"]] = points.get(test["number"], 0.0) + test["score"]
    return points


def range_text(lowest: float, highest: float) -> str:
    """The bounds of a score."""
    if lowest == highest:
        return format_points(lowest)
    return f"{format_points(lowest)} to {format_points(highest)}"
