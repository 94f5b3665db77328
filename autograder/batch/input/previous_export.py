"""Finds submissions of a batch's previous export that are missing from the new one."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autograder.batch.batch_records import Index, Submitted, graded_state
from autograder.batch.input.export_reader import Export

NAMED = 10  # ids in a note


@dataclass(frozen=True)
class PreviousExport:
    """Submissions that are not in this export and still count, and notes about the others."""

    kept: tuple[Submitted, ...] = ()
    notes: tuple[str, ...] = ()


def missing_from(export: Export, known: Index, out: Path) -> PreviousExport:
    """Sort out what is missing: an export may be of a part of the class, or of a later day.

    Results stay in the folder in any case. Gradescope gives each new submission a new id, and
    exports only the last one: where all students have a newer one, the older counts no more.
    """
    there = {one.id for one in export.submissions}
    students = {student.key for one in export.submissions for student in one.students}
    kept, replaced, ungraded = [], [], []
    for one in known.submissions:
        if one.id in there:
            continue
        if one.students and {student.key for student in one.students} <= students:
            replaced.append(one)
        elif graded_state(out, one.id) is None:
            ungraded.append(one)
        else:
            kept.append(msgspec.structs.replace(one, absent=True))
    groups = (
        (kept, "results kept"),
        (replaced, "no longer counted, because the same students submitted again"),
        (ungraded, "skipped, because they have no result"),
    )
    notes = tuple(f"Not in this export, {words}: {ids(ones)}." for ones, words in groups if ones)
    return PreviousExport(tuple(kept), notes)


def ids(submissions: Iterable[Submitted]) -> str:
    """The first few ids, and how many more there are."""
    names = [one.id for one in submissions]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
