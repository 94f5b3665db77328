"""The judge: runs the tests against a submission, and writes down how each ended.

It never imports student code (unless told `direct`, for debugging).
"""

import importlib
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from autograder.grading.defences import check_floor
from autograder.grading.intake import Submission, laid_out
from autograder.grading.isolated import IsolatedFace
from autograder.grading.results import Outcome, Result, without_gpu, write_results
from autograder.grading.sandbox import Sandbox
from common import cuda
from common.artifacts import not_there
from common.assignment import ROOT, Assignment
from common.direct import DirectFace
from common.errors import CourseError, GraderFault
from common.evidence import LOG, Evidence
from common.failures import Explanation, explain, is_the_submissions
from common.hints import HIDDEN_HINTS, PUBLIC_HINTS, Hints, add_hint, evidence_of
from common.plugin import ARTIFACTS, ASSIGNMENTS, FACE, LEADERBOARD, SALT, WORDED, run_graded_tests
from common.roster import HIDDEN_FILE, PUBLIC_FILE, TIMING, GradedTest, read_roster
from common.semester import FILES, Semester
from common.submitted import missing

RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERNAL_ERROR)
UNPROTECTED = "WITHOUT PROTECTION: student code ran in the grader's own process (--direct)"


@dataclass(frozen=True)
class Reading:
    """What a judge reads of an assignment before it can grade."""

    tests: list[GradedTest]
    hints: Hints


@dataclass(frozen=True)
class Settings:
    """How to grade."""

    semester: Semester
    out: Path | None = None
    direct: bool = False
    unsafe: bool = False
    private: tuple[Path, ...] = ()
    on_test: Callable[[Outcome], None] = lambda outcome: None
    only: tuple[str, ...] | None = None  # names of tests to run, in this order; None: all
    stop_at_failure: bool = False
    patient: bool = False  # whether a test goes on after a wrong value, so that all are compared
    gpu: bool = False  # whether tests that need a GPU are run, and student code may reach it
    reading: Reading | None = None  # by a judge that grades many submissions; None: read for each


def grade(assignment: Assignment, submission: Submission, settings: Settings) -> Result:
    """Grade one submission. If `out` is given, a complete result is there at every moment."""
    if settings.gpu:
        assignment = with_gpu(assignment)
    result = new_result(assignment, submission, settings)
    if settings.direct:
        return grade_directly(result, submission, settings)
    oracle = import_meanwhile(f"tests.{assignment.name}.oracle")
    with Sandbox(assignment) as sandbox:
        return grade_in(sandbox, result, submission, settings, oracle)


def with_gpu(assignment: Assignment) -> Assignment:
    """The assignment, with student code that may reach the GPU; an error where there is none."""
    if not cuda.available():
        raise CourseError("--gpu: there is no GPU here that PyTorch can use.")
    limits = msgspec.structs.replace(assignment.limits, gpu=True)
    return msgspec.structs.replace(assignment, limits=limits)


def new_result(assignment: Assignment, submission: Submission, settings: Settings) -> Result:
    """The result before anything has run: every test of it failed."""
    known = settings.reading
    tests = known.tests if known else read_roster(ROOT / "tests" / assignment.name)
    if settings.only is not None:
        by_name = {test.name: test for test in tests}
        tests = [by_name[name] for name in settings.only]
    fingerprint = settings.semester.fingerprint
    result = Result(assignment, tests, fingerprint, notes=list(submission.notes))
    if not settings.gpu:
        left_out = [test for test in tests if test.needs_gpu]
        result.outcomes = {test.name: without_gpu(test, assignment) for test in left_out}
    save(result, settings)
    return result


def grade_in(
    sandbox: Sandbox,
    result: Result,
    submission: Submission,
    settings: Settings,
    busy: threading.Thread | None = None,
    run: Callable[["Judge"], list[str]] | None = None,
) -> Result:
    """Grade in a sandbox, which may have served other submissions before.

    run: what runs the tests and names those in which the machinery failed, if not `run_tests`.
    """
    run = run or run_tests
    start = time.monotonic()
    with laid_out(submission, result.assignment.name, sandbox.folder) as packages:
        private = (*secret_places(), *settings.private)
        try:
            defences = sandbox.admit(packages, private)
        except GraderFault:  # once more, with a new fork server
            sandbox.restart()
            defences = sandbox.admit(packages, private)
    result.defences = [str(defence) for defence in defences]
    check_floor(defences, settings.unsafe)
    face = IsolatedFace(sandbox)
    left = run(Judge(result, submission, face, settings, busy))
    if left:  # the machinery failed in these: once more, with a new fork server
        sandbox.restart()
        left = run(Judge(result, submission, face, settings, busy, left))
    if left:
        raise GraderFault(f"The grader itself failed in {left[0]}: {face.fault}")
    return finish(result, face, settings, time.monotonic() - start)


def grade_directly(result: Result, submission: Submission, settings: Settings) -> Result:
    """Grade in this process, for debugging."""
    start = time.monotonic()
    result.defences = [UNPROTECTED]
    with laid_out(submission, result.assignment.name) as packages:
        face = DirectFace(result.assignment, packages, result.assignment.standins)
        left = run_tests(Judge(result, submission, face, settings))
        if left:
            reason = face.fault or "the submission, which ran in this process, has disturbed pytest"
            raise GraderFault(f"The grader itself failed in {left[0]}: {reason}.")
    return finish(result, face, settings, time.monotonic() - start)


def secret_places() -> list[Path]:
    """What student code must never read, of all that lies here."""
    places = (ROOT / "tests", ROOT / "solutions", *FILES)
    return [place for place in places if place.exists()]


def finish(
    result: Result, face: DirectFace | IsolatedFace, settings: Settings, seconds: float
) -> Result:
    """The result after everything has run."""
    for lab in face.labs.values():
        result.notes += lab.notes()
        result.texts |= lab.texts
    result.seconds = seconds
    result.finished = True
    save(result, settings)
    return result


def import_meanwhile(module: str) -> threading.Thread:
    """Import a module, which takes PyTorch seconds, while the judge waits for children."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    sys.setswitchinterval(0.0005)  # the judge's own work must not wait long for the import
    thread = threading.Thread(target=import_quietly, args=(module,), daemon=True)
    thread.start()
    return thread


def import_quietly(module: str) -> None:
    """Import a module. Where that fails, the test that needs it says why.

    It fails, too, when grading is stopped meanwhile, and then nobody wants to hear of it.
    """
    with suppress(Exception):
        importlib.import_module(module)


def save(result: Result, settings: Settings) -> None:
    """Write what is known so far."""
    if settings.out:
        write_results(result, settings.out)


class Judge:
    """The pytest plugin that turns reports into outcomes."""

    def __init__(
        self,
        result: Result,
        submission: Submission,
        face: DirectFace | IsolatedFace,
        settings: Settings,
        busy: threading.Thread | None = None,
        only: list[str] | None = None,
    ) -> None:
        self.result = result
        self.submission = submission
        chosen = [test for test in result.tests if only is None or test.name in only]
        self.tests = [test for test in chosen if settings.gpu or not test.needs_gpu]
        self.face = face
        self.settings = settings
        self.busy = busy
        self.by_name = {test.name: test for test in result.tests}
        self.failures: dict[str, Explanation] = {}
        self.evidence: dict[str, Evidence | None] = {}
        self.passed: set[str] = set()
        self.faults: set[str] = set()
        self.started = 0.0
        self.stopped = False  # by Ctrl-C, which pytest catches
        known = settings.reading
        self.hints = known.hints if known else read_hints_of(result.assignment, settings.semester)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[FACE] = lambda assignment: self.face
        config.stash[SALT] = self.settings.semester.salt
        config.stash[LEADERBOARD] = self.result.leaderboard
        config.stash[ASSIGNMENTS] = {self.result.assignment.name: self.result.assignment}
        config.stash[ARTIFACTS] = lambda assignment, file: self.submission.files.get(file)
        config.stash[WORDED] = True
        LOG.patient = self.settings.patient

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the chosen tests, in the chosen order."""
        place = {test.name: index for index, test in enumerate(self.tests)}
        items[:] = sorted(
            (item for item in items if item.name in place), key=lambda item: place[item.name]
        )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.busy and TIMING in self.by_name[item.name].tags:
            self.busy.join()  # a clock wants a quiet judge

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Pytest calls more than that an interrupt: tests that can't be read, for instance."""
        self.stopped = excinfo.type is KeyboardInterrupt

    def pytest_runtest_logstart(self, nodeid: str, location: tuple) -> None:
        self.started = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None:
            self.note_failure(item, call.excinfo.value, call.when)
        elif call.when == "call" and report.outcome == "passed":
            self.passed.add(item.name)
        if call.when == "teardown":
            self.record(item.name)
        return report

    def note_failure(self, item: pytest.Item, error: BaseException, when: str) -> None:
        """Keep the first reason for a test's failure.

        What fails around a test is our own fault, and so is a lack of memory or of files here.
        """
        if (when != "call" or isinstance(error, MemoryError | OSError)) and not is_the_submissions(
            error
        ):
            self.faults.add(item.name)
            self.face.fault = f"{type(error).__name__}: {error}"
            print(self.face.fault, file=sys.stderr)
        if item.name not in self.failures:
            told = add_hint(self.explain(error), error, self.hints, item.name)
            self.failures[item.name] = told
            self.evidence[item.name] = evidence_of(error)

    def explain(self, error: BaseException) -> Explanation:
        """What a student reads; of a file that is not there, why it was not taken."""
        told = explain(error)
        if isinstance(self.face, IsolatedFace):
            said = {name: self.face.repeatable(part) for name, part in vars(told).items()}
            told = replace(told, **said)
        absent = {
            artifact.file: not_there(artifact) for artifact in self.result.assignment.artifacts
        }
        for file, reason in self.submission.reasons.items():
            if told.sentence == absent.get(file, missing(file)).explanation.sentence:
                help = told.help if reason.startswith(told.sentence) else ""
                return replace(told, sentence=reason, help=help)
        return told

    def record(self, name: str) -> None:
        """Note how a test ended, and save it at once. A skipped test has not passed."""
        failure = self.failures.get(name)
        passed = name in self.passed and failure is None
        outcome = Outcome(
            self.by_name[name],
            passed,
            failure if not passed else None,
            getattr(self.face, "printed", ""),
            time.monotonic() - self.started,
            self.evidence.get(name),
            tuple(LOG.compared),
        )
        self.result.outcomes[name] = outcome
        self.result.seconds += outcome.seconds
        try:
            save(self.result, self.settings)
        except GraderFault as fault:  # there may be room again by the end
            print(fault, file=sys.stderr)
        self.settings.on_test(outcome)

    def unfinished(self) -> list[str]:
        """The names of the tests that have no outcome, or one that is the machinery's fault."""
        ran = {test.name for test in self.tests if test.name in self.result.outcomes} - self.faults
        if self.settings.stop_at_failure and not self.faults and ran:
            return []
        return [test.name for test in self.tests if test.name not in ran]


def read_all(assignment: Assignment, semester: Semester) -> Reading:
    """All that a judge reads of an assignment, for a semester."""
    tests = read_roster(ROOT / "tests" / assignment.name)
    return Reading(tests, read_hints_of(assignment, semester))


def read_hints_of(assignment: Assignment, semester: Semester) -> Hints:
    """Hints of public tests, and of hidden ones: in a zip beside them, in a checkout in dist/."""
    tests = ROOT / "tests" / assignment.name
    in_dist = ROOT / "dist" / f"{assignment.short}-{semester.fingerprint}.hints"
    return Hints([tests / PUBLIC_HINTS, tests / HIDDEN_HINTS, in_dist])


def run_tests(judge: Judge) -> list[str]:
    """Run the tests in this process; the names of those in which the machinery failed."""
    if not judge.tests:  # pytest would call that an error
        return []
    files = test_files(judge.result.assignment)
    options = ["-x"] if judge.settings.stop_at_failure else []
    code = run_graded_tests(files, judge, *options)
    if judge.stopped:
        raise KeyboardInterrupt
    if code not in RAN and not judge.faults:
        raise GraderFault(f"The tests could not be run: pytest says {code.name.lower()}.")
    return judge.unfinished()


def test_files(assignment: Assignment) -> list[Path]:
    """The files with an assignment's tests."""
    folder = ROOT / "tests" / assignment.name
    return [folder / name for name in (PUBLIC_FILE, HIDDEN_FILE) if (folder / name).is_file()]
