"""Writes a synthetic class as a Gradescope export, with its true scores in truth.json."""

import json
from pathlib import Path

import msgspec

from autograder.batch.batch_records import writing
from autograder.classroom.synthetic_class import SyntheticSubmission
from common.assignment import Assignment, Record
from common.errors import CourseError

TRUTH = "truth.json"


class TrueScore(Record, frozen=True):
    """What is known of one submission."""

    kind: str
    made_of: tuple[str, ...]
    lowest: float
    highest: float
    exercises: dict[str, tuple[float, float]]  # lowest and highest


def write_class(submissions: list[SyntheticSubmission], assignment: Assignment, out: Path) -> Path:
    """Write OUT/assignment_N_export and OUT/truth.json; the export's folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CourseError(f"{out} exists and is not an empty folder.")
    export = out / f"assignment_{assignment.short.removeprefix('a')}_export"
    with writing(out):
        export.mkdir(parents=True)
        for one in submissions:
            folder = export / f"submission_{one.number}"
            folder.mkdir()
            for name, content in one.work.files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
        text = "---\n" + "".join(map(metadata, submissions))
        (export / "submission_metadata.yml").write_text(text, "utf-8")
        truths = {str(one.number): truth_of(one) for one in submissions}
        content = msgspec.json.format(msgspec.json.encode(truths), indent=1)
        (out / TRUTH).write_bytes(content + b"\n")
    return export


def read_truths(out: Path) -> dict[str, TrueScore]:
    """The true scores of a class, by the number of the submission."""
    try:
        return msgspec.json.decode((out / TRUTH).read_bytes(), type=dict[str, TrueScore])
    except (OSError, msgspec.DecodeError):
        raise CourseError(f"{out} has no readable {TRUTH}.") from None


def truth_of(one: SyntheticSubmission) -> TrueScore:
    """What is known of one submission."""
    lowest, highest = one.work.truth.bounds
    exercises = {
        number: (low, one.work.truth.highest[number])
        for number, low in one.work.truth.lowest.items()
    }
    return TrueScore(one.work.kind, one.work.made_of, lowest, highest, exercises)


def metadata(one: SyntheticSubmission) -> str:
    """A submission's part of submission_metadata.yml, whose keys are Ruby's symbols."""
    people = "".join(
        f"  - :name: {quoted(student.name)}\n"
        f"    :sid: {quoted(student.sid) if student.sid else 'null'}\n"
        f"    :email: {quoted(student.email)}\n"
        for student in one.students
    )
    return (
        f"submission_{one.number}:\n"
        f"  :submitters:\n{people}"
        f"  :created_at: {one.created_at}\n"
        "  :score: 0.0\n"
        "  :status: processed\n"
        "  :results: {}\n"
        "  :history: []\n"
    )


def quoted(text: str) -> str:
    """A text as YAML takes it: JSON's strings are YAML's."""
    return json.dumps(text, ensure_ascii=False)
