"""The judge: runs the tests against a submission, and writes down how each ended.

It never imports student code (unless told `direct`, for debugging).
"""

import importlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from autograder.grading.intake import Submission
from autograder.grading.results import Outcome, Result, write_results
from autograder.grading.sandbox import Sandbox
from common.assignment import ROOT, Assignment
from common.direct import DirectFace
from common.errors import CourseError
from common.failures import ChildFailure, Explanation, explain
from common.plugin import FACE, SALT, run_graded_tests
from common.roster import HIDDEN_FILE, PUBLIC_FILE, read_roster
from common.semester import Semester
from common.values import Handle

TIMING = "timing"
UNPROTECTED = "WITHOUT PROTECTION: student code ran in the grader's own process (--direct)"


@dataclass(frozen=True)
class Settings:
    """How to grade."""

    semester: Semester
    out: Path | None = None
    direct: bool = False
    unsafe: bool = False
    private: tuple[Path, ...] = ()
    on_test: Callable[[Outcome], None] = lambda outcome: None


def grade(assignment: Assignment, submission: Submission, settings: Settings) -> Result:
    """Grade one submission. If `out` is given, a complete result is there at every moment."""
    start = time.monotonic()
    tests = read_roster(ROOT / "tests" / assignment.name)
    result = Result(assignment, tests, settings.semester.fingerprint, notes=list(submission.notes))
    save(result, settings)
    with tempfile.TemporaryDirectory(prefix="conv2gpt-submission-") as scratch:
        folder = submission.write_to(Path(scratch) / assignment.name)
        packages = {assignment.name: folder}
        if settings.direct:
            result.defences = [UNPROTECTED]
            run_tests(Judge(result, DirectFace(assignment, packages), settings))
        else:
            private = (ROOT / "tests", *settings.private)
            oracle = import_meanwhile(f"tests.{assignment.name}.oracle")
            with Sandbox(assignment, packages, private) as sandbox:
                result.defences = [str(defence) for defence in sandbox.defences]
                check_floor(sandbox, settings.unsafe)
                run_tests(Judge(result, IsolatedFace(sandbox), settings, oracle))
    result.seconds = time.monotonic() - start
    result.finished = True
    save(result, settings)
    return result


def import_meanwhile(module: str) -> threading.Thread:
    """Import a module, which takes PyTorch seconds, while the judge waits for children."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    sys.setswitchinterval(0.0005)
    thread = threading.Thread(target=importlib.import_module, args=(module,), daemon=True)
    thread.start()
    return thread


def check_floor(sandbox: Sandbox, unsafe: bool) -> None:
    """Refuse to grade where student code could read the tests or write its own result."""
    if sandbox.floor_reached or unsafe:
        return
    open_doors = "; ".join(d.name for d in sandbox.defences if not d.holds)
    raise CourseError(
        f"This machine can't protect the grader (not true here: {open_doors}). "
        "Run as root, or on Linux 5.13 or later; --unsafe grades all the same."
    )


def save(result: Result, settings: Settings) -> None:
    """Write what is known so far."""
    if settings.out:
        write_results(result, settings.out)


class IsolatedFace:
    """Student code in a child of the sandbox, a new one for each test."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.seconds = 0.0
        self.printed = ""

    @contextmanager
    def open(self, exercise: str) -> Iterator[Handle]:
        """What a test of that exercise gets as `student`, for as long as the test runs."""
        assignment = self.sandbox.assignment
        if self.seconds > assignment.limits.total_seconds:
            raise ChildFailure(
                "Not run: the tests before this one took longer than the "
                f"{assignment.limits.total_seconds:g} seconds that all of them may take."
            )
        with self.sandbox.child(assignment.forbidden_in(exercise)) as child:
            try:
                yield child.student(assignment.files[0])
            finally:
                self.seconds += child.seconds
                self.printed = child.printed_text


class Judge:
    """The pytest plugin that turns reports into outcomes."""

    def __init__(
        self,
        result: Result,
        face: DirectFace | IsolatedFace,
        settings: Settings,
        busy: threading.Thread | None = None,
    ) -> None:
        self.result = result
        self.face = face
        self.settings = settings
        self.busy = busy
        self.by_name = {test.name: test for test in result.tests}
        self.failures: dict[str, Explanation] = {}
        self.passed: set[str] = set()
        self.started = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[FACE] = lambda assignment: self.face
        config.stash[SALT] = self.settings.semester.salt

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.busy and TIMING in self.by_name[item.name].tags:
            self.busy.join()  # a clock wants a quiet judge

    def pytest_runtest_logstart(self, nodeid: str, location: tuple) -> None:
        self.started = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None:
            self.failures.setdefault(item.name, explain(call.excinfo.value))
        elif call.when == "call" and report.outcome == "passed":
            self.passed.add(item.name)
        if call.when == "teardown":
            self.record(item.name)
        return report

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
        )
        self.result.outcomes[name] = outcome
        self.result.seconds += outcome.seconds
        save(self.result, self.settings)
        self.settings.on_test(outcome)


def run_tests(judge: Judge) -> None:
    """Run the public and the hidden tests of an assignment in this process."""
    folder = ROOT / "tests" / judge.result.assignment.name
    files = [folder / name for name in (PUBLIC_FILE, HIDDEN_FILE) if (folder / name).is_file()]
    code = run_graded_tests(files, judge)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        judge.result.notes.append(f"The tests could not be run to their end ({code.name.lower()}).")
