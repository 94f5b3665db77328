"""A warm judge for proofs: it reads the tests once, and grades one submission after another.

Run as `python -m autograder.grading.worker DESCRIPTOR ASSIGNMENT`, in a checkout or a built zip.
"""

import importlib
import socket
import sys
from contextlib import suppress

import msgspec
import pytest

from autograder.grading.grade import grade_in, new_result
from autograder.grading.judge import Settings, run_collected
from autograder.grading.judge_inputs import read_all, test_files
from autograder.grading.results import Outcome
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.sandbox.wire.frames import ChannelClosed, receive_frame, send_frame
from autograder.grading.submission import Submission
from autograder.semester import Semester
from common.assignment import ROOT, Record, load_assignment
from common.testing.feedback.evidence import Compared
from common.testing.feedback.hints import Fingerprint, fingerprint
from common.testing.fixtures import run_graded_tests
from common.testing.graded_tests import TRAINING


class Job(Record, frozen=True):
    """One submission to grade."""

    files: dict[str, bytes]
    salt: str
    only: tuple[str, ...] | None = None  # names of tests, in the order to run them
    stop_at_failure: bool = False
    cpu_seconds: float | None = None  # for each test; None: what assignment.toml says
    patient: bool = False  # whether a test goes on after a wrong value, so that all are compared


class Verdict(Record, frozen=True):
    """How one test ended."""

    test: str
    exercise: str
    hidden: bool
    points: float
    training: bool
    passed: bool
    text: str
    hint: str
    seconds: float
    check: int  # the check that failed; 0 where none did
    seen: Fingerprint | None
    compared: tuple[tuple[float, float], ...]  # error and tolerance of each comparison
    ran: bool = True  # False where this machine can't run it: no verdict at all


class Reply(Record, frozen=True):
    """How all tests of a job ended, or why they could not be run."""

    verdicts: list[Verdict]
    notes: list[str]
    seconds: float
    fault: str = ""


UNREAD = Reply([], [], 0.0, "the tests can't be read: pytest says why")


def verdict(outcome: Outcome) -> Verdict:
    """An outcome as it is told."""
    test, evidence = outcome.test, outcome.evidence
    return Verdict(
        test=test.name,
        exercise=test.exercise,
        hidden=test.hidden,
        points=test.points,
        training=TRAINING in test.tags,
        passed=outcome.passed,
        text=outcome.explanation.text(hidden=False) if outcome.explanation else "",
        hint=outcome.explanation.hint if outcome.explanation else "",
        seconds=outcome.seconds,
        check=evidence.check if evidence else 0,
        seen=fingerprint(evidence) if evidence else None,
        compared=tuple(map(as_pair, outcome.compared)),
        ran=outcome.ran,
    )


def as_pair(compared: Compared) -> tuple[float, float]:
    """Error and tolerance; an error that is no number counts as infinite."""
    error = compared.error if compared.error == compared.error else float("inf")
    return error, compared.tolerance


class ProofJudge:
    """The pytest plugin that serves jobs in place of running tests once."""

    def __init__(self, sock: socket.socket, sandbox: Sandbox) -> None:
        self.sock = sock
        self.sandbox = sandbox
        self.reading = read_all(sandbox.assignment, Semester("proof", ""))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take jobs until the other side hangs up."""
        unread = bool(session.testsfailed)  # no test has run yet
        with suppress(ChannelClosed, ConnectionError):
            while True:
                job = msgspec.msgpack.decode(receive_frame(self.sock), type=Job)
                reply = UNREAD if unread else self.grade(session, job)
                send_frame(self.sock, msgspec.msgpack.encode(reply))
        return True

    def grade(self, session: pytest.Session, job: Job) -> Reply:
        """Grade one job. A fault of the machinery is told, never taken for a failed test."""
        assignment = load_assignment(self.sandbox.assignment.name)
        if job.cpu_seconds is not None:
            limits = msgspec.structs.replace(assignment.limits, cpu_seconds=job.cpu_seconds)
            assignment = msgspec.structs.replace(assignment, limits=limits)
        self.sandbox.assignment = assignment
        settings = Settings(
            semester=Semester("proof", job.salt),
            only=job.only,
            stop_at_failure=job.stop_at_failure,
            patient=job.patient,
            reading=self.reading,
        )
        submission = Submission(files=dict(job.files))
        try:
            result = new_result(assignment, submission, settings)
            result = grade_in(
                self.sandbox,
                result,
                submission,
                settings,
                run=lambda judge: run_collected(session, judge),
            )
        except Exception as error:
            return Reply([], [], 0.0, f"{type(error).__name__}: {error}")
        verdicts = [verdict(outcome) for outcome in result.outcomes.values()]
        return Reply(verdicts, result.notes, result.seconds)


def main() -> None:
    """Load what every job needs, then take jobs."""
    sys.path.insert(0, str(ROOT))
    sock = socket.socket(fileno=int(sys.argv[1]))
    assignment = load_assignment(sys.argv[2])
    with Sandbox(assignment) as sandbox:
        importlib.import_module(f"tests.{assignment.name}.oracle")
        run_graded_tests(test_files(assignment), ProofJudge(sock, sandbox))


if __name__ == "__main__":
    main()
