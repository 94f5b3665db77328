"""The queue of a batch: skips submissions that have a result, retries faults, saves results."""

import hashlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from autograder.batch.batch_records import (
    State,
    Submitted,
    graded_state,
    keep_result,
    write_state,
    writing,
)
from autograder.batch.event_log import Log
from autograder.batch.input.export_reader import Export
from autograder.batch.input.export_zip import DamagedExport
from autograder.grading.submission import Submission
from autograder.grading.warm.judge_messages import GradingReply, GradingRequest
from common.assignment import Assignment
from common.errors import CourseError

PAUSES = (1.0, 5.0, 25.0)  # seconds before each new attempt, after the machinery has failed
IN_A_ROW = 10  # so many failures, and not one success: then the fault isn't the submissions'


@dataclass
class Attempt:
    """One try at one submission."""

    submitted: Submitted
    number: int
    key: str
    unreadable: bool  # whether nothing of it could be read
    why: str  # what it lacks, if it does
    question: bytes  # for a warm judge
    renamed: tuple[str, ...] = ()  # notes on files that were taken under other names
    started: float | None = None  # when a judge got it; None while it waits for one

    @property
    def id(self) -> str:
        """The submission's."""
        return self.submitted.id


@dataclass
class BatchProgress:
    """How far the batch is."""

    total: int
    kept: int = 0  # graded by an earlier run
    graded: int = 0
    failed: int = 0
    retries: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """All that need no more work."""
        return self.kept + self.graded + self.failed

    @property
    def per_minute(self) -> float:
        """Submissions graded in a minute."""
        return 60 * self.graded / max(time.monotonic() - self.began, 1e-9)

    @property
    def minutes_left(self) -> float | None:
        """An estimate of the remaining time."""
        return (self.total - self.done) / self.per_minute if self.graded else None


class Work:
    """Hands submissions out and takes results in, from any number of threads."""

    def __init__(
        self,
        export: Export,
        assignment: Assignment,
        grader: str,
        log: Log,
        chosen: Iterable[Submitted],
        regrade: bool = False,
    ) -> None:
        self.export = export
        self.assignment = assignment
        self.grader = grader
        self.log = log
        self.regrade = regrade  # whether to grade again what has a result
        self.waiting = deque(chosen)
        self.later: list[tuple[float, int, Submitted]] = []
        self.taken: dict[str, Attempt] = {}  # by the submission's id
        self.progress = BatchProgress(len(self.waiting))
        self.stopped = ""  # why, if it was
        self.warning = ""  # that the export may be another assignment's, if so
        self.changed = threading.Condition()

    def take(self, wait: bool = True) -> Attempt | None:
        """The next submission; None if there is none, or none yet where `wait` is False."""
        with self.bookkeeping():
            while not self.stopped:
                due = self.next_due()
                if due is not None:
                    attempt = self.prepare(*due)
                    if attempt is not None:
                        self.taken[attempt.id] = attempt
                        return attempt
                elif not self.unfinished or not wait:
                    return None
                else:
                    self.changed.wait(self.seconds_to_wait())
        return None

    @property
    def running(self) -> list[tuple[Attempt, float]]:
        """The attempts that a judge has, and since when."""
        taken = [*self.taken.values()]
        return [(attempt, attempt.started) for attempt in taken if attempt.started is not None]

    @contextmanager
    def bookkeeping(self) -> Iterator[None]:
        """For one thread at a time. What can't be written down would be lost: that is the end."""
        with self.changed:
            try:
                with writing(self.log.folder):
                    yield
            except CourseError as error:
                self.stop(str(error).rstrip("."))

    @property
    def unfinished(self) -> bool:
        """Whether anything is left to do or under way."""
        return not self.stopped and bool(self.waiting or self.later or self.taken)

    def next_due(self) -> tuple[Submitted, int] | None:
        """A submission that can be graded now, and the number of the attempt."""
        self.later.sort(key=lambda entry: entry[0])
        if self.later and self.later[0][0] <= time.monotonic():
            _, number, submitted = self.later.pop(0)
            return submitted, number
        return (self.waiting.popleft(), 1) if self.waiting else None

    def seconds_to_wait(self) -> float:
        """How long until something may have changed."""
        due = [entry[0] - time.monotonic() for entry in self.later]
        return max(0.01, min([1.0, *due]))

    def prepare(self, submitted: Submitted, number: int) -> Attempt | None:
        """Read a submission; None if it has its result already, or can't be graded at all."""
        if submitted.why:
            self.give_up(submitted, "", 0, submitted.why)
            return None
        try:
            submission = self.export.read_submission(submitted, self.assignment)
        except DamagedExport as error:
            self.give_up(submitted, "", number, str(error))
            return None
        except Exception as error:
            why = (
                str(error)
                if isinstance(error, CourseError)
                else f"The file can't be read: {error}."
            )
            self.failed_attempt(submitted, "", number, why)
            return None
        key = key_of(submission, self.grader)
        if not self.regrade and is_done(self.log.folder, submitted.id, key):
            self.progress.kept += 1
            self.changed.notify_all()
            return None
        why = why_lacking(submission, self.assignment)
        question = msgspec.msgpack.encode(
            GradingRequest(submission.files, notes=submission.notes, reasons=submission.reasons)
        )
        empty = not submission.files
        renamed = tuple(submission.renamed)
        return Attempt(submitted, number, key, empty, why, question, renamed)

    def finish(self, attempt: Attempt, graded: GradingReply) -> None:
        """Take a result in, or that there is none."""
        with self.bookkeeping():
            self.taken.pop(attempt.id, None)
            if self.stopped:
                return
            if graded.fatal:
                self.stop(graded.fault.rstrip("."))
            elif graded.fault:
                self.failed_attempt(attempt.submitted, attempt.key, attempt.number, graded.fault)
            else:
                self.keep(attempt, graded)
            self.changed.notify_all()

    def keep(self, attempt: Attempt, graded: GradingReply) -> None:
        """Write a result down."""
        state = State(
            key=attempt.key,
            status="unreadable" if attempt.unreadable else "graded",
            score=graded.score,
            maximum=graded.maximum,
            seconds=round(graded.seconds, 3),
            attempts=attempt.number,
            why=attempt.why,
            grader=self.grader,
            renamed=attempt.renamed,
        )
        write_state(self.log.folder, attempt.id, state, graded.results)
        self.progress.graded += 1
        self.log.add(state.status, id=attempt.id, score=state.score, seconds=state.seconds)

    def failed_attempt(self, submitted: Submitted, key: str, number: int, why: str) -> None:
        """Try again later, unless it was tried often enough."""
        if number > len(PAUSES):
            self.give_up(submitted, key, number, why)
            return
        pause = PAUSES[number - 1]
        self.progress.retries += 1
        self.later.append((time.monotonic() + pause, number + 1, submitted))
        self.log.add("again", id=submitted.id, attempt=number, why=why, pause=pause)

    def give_up(self, submitted: Submitted, key: str, number: int, why: str) -> None:
        """Mark a submission as not graded: it has no score, or keeps its earlier one."""
        self.progress.failed += 1
        older = graded_state(self.log.folder, submitted.id)
        if older is not None:
            keep_result(self.log.folder, submitted.id, older, why)
            facts = {"id": submitted.id, "attempts": number, "why": why, "kept": older.score}
            self.log.add("grading again failed", **facts)
        else:
            state = State(key, "failed", attempts=number, why=why)
            write_state(self.log.folder, submitted.id, state, None)
            self.log.add("failed", id=submitted.id, attempts=number, why=why)
        if number and self.progress.failed >= IN_A_ROW and not self.progress.graded:
            self.stop(
                f"{IN_A_ROW} submissions in a row could not be graded, the last because: {why}"
            )
        self.changed.notify_all()

    def stop(self, why: str) -> None:
        """Start no more gradings. Those in progress continue, but their results are ignored."""
        with self.changed:
            self.stopped = self.stopped or why
            self.changed.notify_all()


def key_of(submission: Submission, grader: str) -> str:
    """A hash of all that decides a result: the submission, the assignment's zip, the settings."""
    digest = hashlib.sha256(grader.encode())
    for name, content in sorted(submission.files.items()):
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    for said in (*submission.notes, *submission.reasons.values()):
        digest.update(b"\0" + said.encode("utf-8", "replace"))
    return digest.hexdigest()


def is_done(folder: Path, identifier: str, key: str) -> bool:
    """Whether a submission has the result that grading it again would give."""
    state = graded_state(folder, identifier)
    return state is not None and state.key == key and not state.again


def why_lacking(submission: Submission, assignment: Assignment) -> str:
    """Why a submission lacks code that is graded; "" if it doesn't."""
    missing = [file for file in assignment.files if file not in submission.files]
    if not missing:
        return ""
    if not submission.files and submission.notes:
        return submission.notes[0]
    reasons = [submission.reasons.get(file, f"{file} is missing.") for file in missing]
    return " ".join(dict.fromkeys(reasons))
