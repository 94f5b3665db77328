"""Reads and writes a batch's folder: batch.json, state/ID.json and results/ID.json.

DIR/batch.json       what is graded, and every submission with its students
DIR/state/ID.json    how a submission's grading ended
DIR/results/ID.json  its result in Gradescope's schema, unless grading failed

Files rather than a database: a TA reads, copies and deletes them, and one that is damaged costs one
submission.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from common.assignment import Record
from common.atomic_write import write_atomically, write_temporary
from common.errors import CourseError
from common.visible_text import visible_json

Status = Literal["waiting", "graded", "unreadable", "failed"]
WITH_RESULT = ("graded", "unreadable")
END = b"}\n"  # of a result
INDEX = "batch.json"
STATES = "state"
RESULTS = "results"

Read = TypeVar("Read", bound=Record)


class Student(Record, frozen=True):
    """One member of the class."""

    name: str = ""
    sid: str = ""
    email: str = ""

    @property
    def key(self) -> str:
        """What identifies a student."""
        return self.email or self.sid or self.name


class Submitted(Record, frozen=True):
    """One submission as batch.json lists it."""

    id: str  # fit for a file's name
    place: str  # where it lies in the export
    students: tuple[Student, ...] = ()
    created_at: str = ""
    why: str = ""  # why it can't be graded at all: it isn't in the export, for instance
    absent: bool = False  # whether only an earlier export held it; its result stays as it is


class Index(Record, frozen=True):
    """The whole of batch.json."""

    assignment: str  # "a1_convolution"
    title: str
    export: str  # where the submissions were read from
    grader: str  # the hash of the autograder zip
    salt: str  # the short hash of the semester's salt
    submissions: tuple[Submitted, ...]
    anonymous: bool = False
    gpus: float = 0.0  # for each submission
    notes: tuple[str, ...] = ()  # what was odd about the export

    @property
    def settings(self) -> str:
        """Everything that decides a result, except the submission."""
        return f"{self.grader} gpu={self.gpus > 0}"


class State(Record, frozen=True):
    """How one submission's grading ended: the whole of state/ID.json."""

    key: str  # the hash of submission, assignment zip and settings
    status: Status
    score: float | None = None
    maximum: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    why: str = ""
    again: str = ""  # why grading it again failed, where this is an earlier result
    grader: str = ""  # the assignment's zip, and the settings; "": not known
    renamed: tuple[str, ...] = ()  # notes on files that were taken under other names


class Entry(Record, frozen=True):
    """One submission, and how its grading ended.

    status: "graded"; "unreadable": nothing in it could be read, so it is graded as an empty
    submission; "failed": the grader failed, so there is no score and no result; "waiting": not yet.
    """

    id: str
    alias: str  # what to call it where names are hidden
    students: tuple[Student, ...]
    status: Status
    score: float | None  # None where status is "failed" or "waiting"
    maximum: float | None
    seconds: float
    attempts: int
    why: str  # a sentence where status is "failed" or "unreadable", or where code is missing
    older: str = ""  # a sentence where the result is older than the last run, which gave none
    absent: bool = False  # whether that is so since the export no longer holds it
    outdated: bool = False  # or since the last run didn't come to it, and had another zip
    renamed: tuple[str, ...] = ()  # notes on files that were taken under other names


class Batch:
    """A batch as stored in its folder. Results are read one at a time: a class may be large."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.folder = folder
        self.index = index
        order = sorted(index.submissions, key=lambda one: hashlib.sha256(one.id.encode()).digest())
        names = {one.id: f"submission {number}" for number, one in enumerate(order, 1)}
        self.entries = tuple(
            entry(folder, one, names[one.id], index.settings) for one in index.submissions
        )

    @property
    def assignment(self) -> str:
        """The assignment's name."""
        return self.index.assignment

    @property
    def title(self) -> str:
        """The assignment's title."""
        return self.index.title

    @property
    def anonymous(self) -> bool:
        """Whether names are to be hidden."""
        return self.index.anonymous

    def result(self, entry: Entry) -> dict[str, Any] | None:
        """A submission's result in Gradescope's schema, if it has one."""
        if entry.status not in WITH_RESULT:
            return None
        return json.loads(result_file(self.folder, entry.id).read_bytes())

    def state(self, entry: Entry) -> State | None:
        """How a submission's grading ended, if it has."""
        return read_state(self.folder, entry.id)

    def key(self, entry: Entry) -> str:
        """The hash of all that decided a submission's result; "" if it has none."""
        state = self.state(entry)
        return state.key if state else ""

    def grader(self, entry: Entry) -> str:
        """The zip and the settings that a submission was graded with; "" if it wasn't."""
        state = self.state(entry)
        return state.grader if state else ""


def read_batch(folder: Path) -> Batch:
    """The batch in a folder, finished or not."""
    if not (folder / INDEX).is_file():
        raise CourseError(f"{folder} is not a batch: it has no {INDEX}.")
    return Batch(folder, read_record(folder / INDEX, Index))


def entry(folder: Path, one: Submitted, alias: str, settings: str) -> Entry:
    """What is known of one submission so far. settings: those of the last run."""
    state = read_state(folder, one.id)
    if state is None or not has_its_result(folder, one.id, state):
        return Entry(one.id, alias, one.students, "waiting", None, None, 0.0, 0, "")
    return Entry(
        id=one.id,
        alias=alias,
        students=one.students,
        status=state.status,
        score=state.score,
        maximum=state.maximum,
        seconds=state.seconds,
        attempts=state.attempts,
        why=state.why,
        older=why_older(one, state, settings),
        absent=one.absent,
        outdated=is_outdated(state, settings),
        renamed=state.renamed,
    )


def is_outdated(state: State, settings: str) -> bool:
    """Whether a result is that of another zip, or of other settings."""
    graded = state.status in WITH_RESULT and not state.again
    return graded and state.grader not in ("", settings)


def why_older(one: Submitted, state: State, settings: str) -> str:
    """Why an earlier result stands, if it does."""
    if one.absent:
        return "Not in this export. Showing its previous result."
    if state.again:
        return f"Grading it again failed: {state.again.rstrip('.')}. Showing the previous result."
    if is_outdated(state, settings):
        return "Graded with another zip or other settings than the last run."
    return ""


def read_state(folder: Path, identifier: str) -> State | None:
    """How a submission's grading ended; None if it has not, or if that can't be read any more."""
    try:
        return read_record(folder / STATES / f"{identifier}.json", State)
    except (OSError, CourseError):
        return None


def has_its_result(folder: Path, identifier: str, state: State) -> bool:
    """Whether the result is there that a state speaks of, with an end: power may have failed."""
    if state.status not in WITH_RESULT:
        return True
    try:
        with result_file(folder, identifier).open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - len(END)))
            return stream.read().rstrip().endswith(END[:1])
    except OSError:
        return False


def graded_state(folder: Path, identifier: str) -> State | None:
    """How a submission's grading ended, if that has given a result."""
    state = read_state(folder, identifier)
    if state is None or state.status not in WITH_RESULT:
        return None
    return state if has_its_result(folder, identifier, state) else None


def result_file(folder: Path, identifier: str) -> Path:
    """Where a submission's result lies."""
    return folder / RESULTS / f"{identifier}.json"


def write_index(folder: Path, index: Index) -> None:
    """Write batch.json."""
    write_atomically(folder / INDEX, pretty(index))


def write_state(folder: Path, identifier: str, state: State, result: bytes | None) -> None:
    """Write a submission's result, then that it has one.

    Where there is no room for them, the earlier ones stay. Whoever is killed in between leaves a
    result that nothing points to, which is replaced later.
    """
    file = folder / STATES / f"{identifier}.json"
    result_path = result_file(folder, identifier)
    new_state = write_temporary(file, pretty(state))
    new_result = None if result is None else write_temporary(result_path, result)
    file.unlink(missing_ok=True)
    if new_result is None:
        result_path.unlink(missing_ok=True)
    else:
        os.replace(new_result, result_path)
    os.replace(new_state, file)


def keep_result(folder: Path, identifier: str, state: State, again: str) -> None:
    """Let a result stand, and write down why grading it again failed."""
    kept = msgspec.structs.replace(state, again=again)
    write_atomically(folder / STATES / f"{identifier}.json", pretty(kept))


def pretty(record: Record) -> bytes:
    """A record as JSON that people can read."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=1).decode()
    return visible_json(text).encode() + b"\n"


def read_record(file: Path, kind: type[Read]) -> Read:
    """Read a record; an error names the file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file} is damaged: {error}") from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in a sentence why a folder or file can't be written: a full disk, for instance."""
    try:
        yield
    except OSError as error:
        raise CourseError(f"{path} can't be written: {error.strerror or error}.") from None
