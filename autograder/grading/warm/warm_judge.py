"""The warm judge's process: collects tests and loads libraries once, grades on request.

Run as `python -m autograder.grading.warm.warm_judge DESCRIPTOR OPTIONS`, in a checkout or a built
zip, with a judge client on the other end. A fork of it grades each submission of a class: no memory
grows, and nothing of one is left for the next. Without forks it is quicker, for code that we wrote.
"""

import gc
import importlib
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autograder.grading.grade import grade_in, new_result, with_gpu
from autograder.grading.gradescope import grade_tree
from autograder.grading.judge import Settings, run_collected
from autograder.grading.judge_inputs import read_judge_inputs, test_files
from autograder.grading.results import Outcome, Result, as_json
from autograder.grading.sandbox.sandbox import Sandbox, stop_servers
from autograder.grading.sandbox.wire.frames import ChannelClosed, receive_frame, send_frame
from autograder.grading.submission import Submission
from autograder.grading.warm.judge_fork import run_in_fork
from autograder.grading.warm.judge_messages import (
    GradingReply,
    GradingRequest,
    JudgeOptions,
    SandboxInUse,
    Verdict,
)
from autograder.semester import Semester, read_semester
from common.assignment import ROOT, Assignment, load_assignment
from common.check_log import Compared
from common.errors import CourseError, GraderFault
from common.testing.fixtures import run_graded_tests
from common.testing.graded_tests import TRAINING

DONE, DONE_WITH_NEW_SERVERS = 0, 3  # how a fork ends that has answered
# What PyTorch loads at the first gradient: half a second for each fork, if it weren't there.
LOADED_LATE = "torch.fx.experimental.symbolic_shapes"
UNREAD = GradingReply(fault="pytest can't collect the tests: see its output", fatal=True)


class SharedSandbox(Sandbox):
    """A sandbox that forks of this process use, one after the other."""

    restarted = False

    def restart(self) -> None:
        self.restarted = True
        super().restart()


class WarmJudge:
    """The pytest plugin that serves requests instead of running the collected tests once."""

    def __init__(
        self, client: socket.socket, sandbox: SharedSandbox, options: JudgeOptions
    ) -> None:
        self.client = client
        self.sandbox = sandbox
        self.assignment = sandbox.assignment
        self.options = options
        self.semester = read_semester()
        self.inputs = read_judge_inputs(self.assignment, self.semester)
        # Another machine of a cluster has its own files, and perhaps not these.
        self.private = tuple(place for place in map(Path, options.private) if place.exists())
        if options.forks:
            self.wait_for_servers()

    def wait_for_servers(self) -> None:
        """Wait for each fork server's report of its mechanisms: a fork could not pass it on."""
        for server in self.sandbox.servers:
            _ = server.mechanisms

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve until the client hangs up."""
        unread = bool(session.testsfailed)  # no test has run yet
        gc.collect()
        gc.freeze()  # forks share these objects' memory, and nobody looks through them again
        with suppress(ChannelClosed, ConnectionError):
            while True:
                question = receive_frame(self.client)
                answer = encode(UNREAD) if unread else self.answer(session, question)
                send_frame(self.client, answer)
        return True

    def answer(self, session: pytest.Session, question: bytes) -> bytes:
        """The reply to one request, both as bytes."""
        if self.options.forks:
            return self.answer_in_fork(session, question)
        return self.answer_here(session, question)

    def answer_in_fork(self, session: pytest.Session, question: bytes) -> bytes:
        """What a fork of this process says of a submission."""

        def work() -> tuple[bytes, int]:
            self.sandbox.restarted = False
            answer = self.answer_here(session, question)
            if not self.sandbox.restarted:
                return answer, DONE
            stop_servers(self.sandbox.servers, keep_folder=True)
            return answer, DONE_WITH_NEW_SERVERS

        answer, code = run_in_fork(work, self.client)
        if code != DONE:
            self.sandbox.restart()  # its servers may be gone, or wait for a fork that is
            self.wait_for_servers()
        if code in (DONE, DONE_WITH_NEW_SERVERS):
            return answer
        return encode(GradingReply(fault=f"the judge died (exit code {code})"))

    def answer_here(self, session: pytest.Session, question: bytes) -> bytes:
        """What this process says of a submission."""
        request = msgspec.msgpack.decode(question, type=GradingRequest)
        return encode(self.grade(session, request))

    def grade(self, session: pytest.Session, request: GradingRequest) -> GradingReply:
        """Grade one submission. A fault of the machinery is reported, and is no failed test."""

        def grading(assignment: Assignment, submission: Submission, settings: Settings) -> Result:
            self.sandbox.assignment = assignment
            settings = replace(settings, inputs=self.inputs)
            result = new_result(assignment, submission, settings)
            run = lambda judge: run_collected(session, judge)  # noqa: E731
            return grade_in(self.sandbox, result, submission, settings, run=run)

        try:
            if request.tree:
                submitted = Path(request.submitted) if request.submitted else None
                result = grade_tree(Path(request.tree), submitted=submitted, grading=grading)
                self.sandbox.settle()  # who looks for what a child left must not see its end
            else:
                submission = Submission(
                    dict(request.files), list(request.notes), dict(request.reasons)
                )
                result = grading(self.limited(request), submission, self.settings(request))
        except Exception as error:
            fatal = isinstance(error, CourseError) and not isinstance(error, GraderFault)
            why = str(error) if isinstance(error, CourseError) else repr(error)
            return GradingReply(fault=why, fatal=fatal)
        if result is None:
            return GradingReply(fault="see the result in the tree", sandbox=self.in_use())
        return self.reply(result, request.verdicts)

    def limited(self, request: GradingRequest) -> Assignment:
        """The assignment, with the limit that a request brings."""
        if request.cpu_seconds is None:
            return self.assignment
        limits = self.assignment.limits
        limits = msgspec.structs.replace(
            limits, test_seconds=request.cpu_seconds, wall_seconds=limits.test_wall_seconds
        )
        return msgspec.structs.replace(self.assignment, limits=limits)

    def settings(self, request: GradingRequest) -> Settings:
        """How to grade what a request brings."""
        return Settings(
            semester=self.semester if request.salt is None else Semester("proof", request.salt),
            only=request.only,
            stop_at_failure=request.stop_at_failure,
            compare_all=request.compare_all,
            gpu=self.options.gpu,
            private=self.private,
        )

    def reply(self, result: Result, verdicts: bool) -> GradingReply:
        """A result as it is sent."""
        return GradingReply(
            results=b"" if verdicts else as_json(result),
            score=result.score,
            maximum=result.maximum,
            seconds=result.seconds,
            verdicts=list(map(verdict, result.outcomes.values())) if verdicts else [],
            notes=result.notes,
            sandbox=self.in_use(),
        )

    def in_use(self) -> SandboxInUse:
        """The sandbox, as those see it who look for what a submission left."""
        return SandboxInUse(
            folder=str(self.sandbox.folder),
            uid=self.sandbox.slot.uid if self.sandbox.slot else None,
            servers=tuple(server.process.pid for server in self.sandbox.servers),
        )


def encode(reply: GradingReply) -> bytes:
    """A reply as bytes."""
    return msgspec.msgpack.encode(reply)


def verdict(outcome: Outcome) -> Verdict:
    """An outcome as a proof reads it."""
    test = outcome.test
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
        check=outcome.check,
        seen=outcome.seen,
        compared=tuple(map(as_pair, outcome.compared)),
        ran=outcome.ran,
    )


def as_pair(compared: Compared) -> tuple[float, float]:
    """Error and tolerance; a NaN error counts as infinite."""
    error = compared.error if compared.error == compared.error else float("inf")
    return error, compared.tolerance


def load_libraries(options: JudgeOptions, assignment: Assignment) -> None:
    """Import what the tests of every submission need."""
    importlib.import_module(f"tests.{assignment.name}.oracle")
    if options.forks:
        for module in (*assignment.preloaded, LOADED_LATE):
            importlib.import_module(module)


def main() -> None:
    """Load what every submission needs, then serve."""
    sys.path.insert(0, str(ROOT))
    client = socket.socket(fileno=int(sys.argv[1]))
    options = JudgeOptions.from_json(sys.argv[2])
    assignment = load_assignment(options.assignment)
    if options.gpu:
        assignment = with_gpu(assignment)
    with SharedSandbox(assignment) as sandbox:
        load_libraries(options, assignment)
        run_graded_tests(test_files(assignment), WarmJudge(client, sandbox, options))


if __name__ == "__main__":
    main()
