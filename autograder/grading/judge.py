"""The judge, a pytest plugin: runs the tests in order, records outcomes, adds hints, saves results.

It never imports student code (except with `direct`, for debugging).
"""

import itertools
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from autograder.grading.judge_inputs import JudgeInputs, read_hints, test_files
from autograder.grading.results import Outcome, Result, write_results
from autograder.grading.submission import Submission
from autograder.semester import Semester
from common.check_log import LOG
from common.errors import Explanation, Failure, GraderFault
from common.exercise_needs import needed_of
from common.student_code.loader import missing_file
from common.student_text import withheld
from common.testing.artifacts import missing_artifact
from common.testing.feedback.diagnosis import Diagnosis, Ended, needs_of
from common.testing.feedback.failure import explain, is_caused_by_submission
from common.testing.feedback.hints import Fingerprint, evidence_of, fingerprint
from common.testing.fixtures import (
    ARTIFACTS,
    ASSIGNMENTS,
    FACE,
    GRADING,
    LEADERBOARD,
    SALT,
    is_second_run,
    passes_with,
    run_graded_tests,
)
from common.testing.graded_tests import TIMING, TRAINING, GradedTest
from common.testing.student_face import StudentFace
from common.visible_text import visible

NO_GPU = (
    "no GPU. A TA runs it on a machine with a GPU: `python -m autograder grade {short} SUBMISSION "
    "--gpu`"
)
NO_TRAINING = "training was skipped (--without-training)"
RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERNAL_ERROR)


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
    compare_all: bool = (
        False  # whether a test continues after a wrong value, so that all are compared
    )
    gpu: bool = False  # whether tests that need a GPU are run, and student code may reach it
    training: bool = True  # whether tests that train are run
    inputs: JudgeInputs | None = (
        None  # by a judge that grades many submissions; None: read for each
    )


def skip_reason(test: GradedTest, settings: Settings) -> str:
    """Why a test is not run; "" where it is."""
    if test.needs_gpu and not settings.gpu:
        return NO_GPU
    if TRAINING in test.tags and not settings.training:
        return NO_TRAINING
    return ""


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
        face: StudentFace,
        settings: Settings,
        busy: threading.Thread | None = None,
        only: list[str] | None = None,
    ) -> None:
        self.result = result
        self.submission = submission
        chosen = [test for test in result.tests if only is None or test.name in only]
        self.tests = [test for test in chosen if not skip_reason(test, settings)]
        if settings.only is None:
            # All that shows what student code says comes before the first hidden test: a child
            # could wait until the clock says a hidden number, and a later one read it.
            self.tests.sort(key=lambda test: (test.hidden, test.pace))
        self.face = face
        self.settings = settings
        self.busy = busy
        self.by_name = {test.name: test for test in result.tests}
        self.failures: dict[str, Explanation] = {}
        self.seen: dict[str, tuple[int, Fingerprint]] = {}
        self.passed: set[str] = set()
        self.faults: set[str] = set()
        self.started = 0.0
        self.stopped = False  # by Ctrl-C, which pytest catches
        known = settings.inputs
        hints = known.hints if known else read_hints(result.assignment, settings.semester)
        self.diagnosis = Diagnosis(hints, needs_of(result.assignment))
        for outcome in result.outcomes.values():  # of a first try
            self.diagnose(outcome)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[FACE] = lambda assignment: self.face
        config.stash[SALT] = self.settings.semester.salt
        config.stash[LEADERBOARD] = self.result.leaderboard
        config.stash[ASSIGNMENTS] = {self.result.assignment.name: self.result.assignment}
        config.stash[ARTIFACTS] = lambda assignment, file: self.submission.files.get(file)
        config.stash[GRADING] = True
        LOG.continue_after_failure = self.settings.compare_all

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the chosen tests, in the chosen order."""
        rank = {test.name: index for index, test in enumerate(self.tests)}
        items[:] = sorted(
            (item for item in items if item.name in rank), key=lambda item: rank[item.name]
        )

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests in the judge's own way; what can't be collected is left to pytest."""
        if session.testsfailed:
            return None
        self.run(session.items)
        return True

    def run(self, items: list[pytest.Item]) -> None:
        """Run tests; those that fail once more, on stand-ins, before the first hidden one begins.

        So nothing that is shown follows a hidden test here, either.
        """
        for _, group in itertools.groupby(items, lambda item: self.by_name[item.name].hidden):
            tests = list(group)
            for item, following in zip(tests, [*tests[1:], None], strict=True):
                # What may be the last test leaves nothing set up for the one that follows.
                next_item = None if self.settings.stop_at_failure else following
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
                if self.settings.stop_at_failure and self.failures:
                    return
            self.run_once_more(tests)

    def run_once_more(self, items: list[pytest.Item]) -> None:
        """Run failed tests on stand-ins for what they need of exercises that failed, too.

        In the order of the exercises: one that passes so has not failed for those that need it.
        """
        exercises = self.result.assignment.exercises
        place = {exercise.number: index for index, exercise in enumerate(exercises)}
        outcomes = self.result.outcomes
        failed = [item for item in items if not outcomes[item.name].passed]
        for item in sorted(failed, key=lambda item: place.get(self.exercise(item), 0)):
            missed = {one.test.exercise for one in outcomes.values() if one.ran and not one.passed}
            needed = needed_of(exercises, self.exercise(item), missed)
            if item.name in self.faults or not needed:
                continue
            start = time.monotonic()
            passed = passes_with(item, needed)
            seconds = time.monotonic() - start
            self.result.seconds += seconds
            first = outcomes[item.name]
            outcomes[item.name] = replace(
                first,
                passed=passed,
                replaced=needed if passed else (),
                seconds=first.seconds + seconds,
            )
            self.diagnose(outcomes[item.name])
            self.show_hints()
            self.save()

    def exercise(self, item: pytest.Item) -> str:
        """The number of a test's exercise."""
        return self.by_name[item.name].exercise

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.busy and TIMING in self.by_name[item.name].tags:
            self.busy.join()  # a clock wants a quiet judge

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Pytest calls more than that an interrupt: tests that can't be read, for instance."""
        self.stopped = excinfo.type is KeyboardInterrupt

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[Any, ...]) -> None:
        self.started = time.monotonic()
        self.face.printed = ""  # by the test before, which may have been a hidden one

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if is_second_run(item):
            if call.excinfo is not None:
                self.note_fault(item, call.excinfo.value, call.when)
                forget_values(call.excinfo.value)
            return report
        if call.excinfo is not None:
            self.note_failure(item, call.excinfo.value, call.when)
            forget_values(call.excinfo.value)
        elif call.when == "call" and report.outcome == "passed":
            self.passed.add(item.name)
        if call.when == "teardown":
            self.record(item.name)
        return report

    def note_failure(self, item: pytest.Item, error: BaseException, when: str) -> None:
        """Keep the first reason for a test's failure."""
        self.note_fault(item, error, when)
        if item.name not in self.failures:
            hidden = self.by_name[item.name].hidden
            self.failures[item.name] = self.explain(error, hidden)
            if evidence := evidence_of(error):
                self.seen[item.name] = (evidence.check, fingerprint(evidence))

    def note_fault(self, item: pytest.Item, error: BaseException, when: str) -> None:
        """Note a fault of the machinery.

        What fails around a test is our own fault, and so is a lack of memory or of files here.
        """
        if (
            when != "call" or isinstance(error, MemoryError | OSError)
        ) and not is_caused_by_submission(error):
            self.faults.add(item.name)
            self.face.fault = withheld(f"{type(error).__name__}: {error}")
            print(visible(self.face.fault), file=sys.stderr)

    def explain(self, error: BaseException, hidden: bool) -> Explanation:
        """What a student reads; of a file that is not there, why it was not taken.

        That may name other submitted files: a hidden test leaves it to the notes on the whole.
        """
        parts = vars(explain(error)).items()
        explanation = Explanation(**{name: self.face.repeatable(part) for name, part in parts})
        if hidden:
            return explanation
        absent = {
            artifact.file: missing_artifact(artifact)
            for artifact in self.result.assignment.artifacts
        }
        for file, reason in self.submission.reasons.items():
            if explanation.sentence == absent.get(file, missing_file(file)).explanation.sentence:
                help = explanation.help if reason.startswith(explanation.sentence) else ""
                return replace(explanation, sentence=reason, help=help)
        return explanation

    def record(self, name: str) -> None:
        """Note how a test ended, and save it at once. A skipped test has not passed."""
        failure = self.failures.get(name)
        passed = name in self.passed and failure is None
        check, seen = self.seen.get(name, (0, None))
        outcome = Outcome(
            self.by_name[name],
            passed,
            failure if not passed else None,
            self.face.printed,
            time.monotonic() - self.started,
            check,
            seen,
            tuple(LOG.compared),
        )
        self.result.outcomes[name] = outcome
        self.result.seconds += outcome.seconds
        self.diagnose(outcome)
        self.show_hints()
        self.save()
        self.settings.on_test(self.result.outcomes[name])

    def save(self) -> None:
        """Write what is known so far, if there is room for it."""
        try:
            save(self.result, self.settings)
        except GraderFault as fault:  # there may be room again by the end
            print(visible(str(fault)), file=sys.stderr)

    def diagnose(self, outcome: Outcome) -> None:
        """Let a test's end count for hints."""
        if outcome.ran:
            test = outcome.test
            ended = Ended(test.name, test.group, outcome.passed, outcome.check, outcome.seen)
            self.diagnosis.add(ended)

    def show_hints(self) -> None:
        """Give each failed test the hint that fits all that is known by now.

        It waits for the public tests of an exercise, and may change with what hidden ones show.
        """
        left = {
            test.group
            for test in self.tests
            if not test.hidden and test.name not in self.result.outcomes
        }
        hints = self.diagnosis.shown(left_out=left)
        for name, outcome in self.result.outcomes.items():
            told, hint = outcome.explanation, hints.get(name, "")
            if told and told.hint != hint:
                explanation = replace(told, hint=hint)
                self.result.outcomes[name] = replace(outcome, explanation=explanation)

    def unfinished(self) -> list[str]:
        """The names of the tests that have no outcome, or one that is the machinery's fault."""
        ran = {test.name for test in self.tests if test.name in self.result.outcomes} - self.faults
        if self.settings.stop_at_failure and not self.faults and ran:
            return []
        return [test.name for test in self.tests if test.name not in ran]


def forget_values(error: BaseException) -> None:
    """Let go of the values that an exception and its frames hold, which may be large.

    They refer to each other: those of several tests would stay until Python looks for circles.
    """
    last: BaseException | None = error
    while last is not None:
        traceback.clear_frames(last.__traceback__)
        if isinstance(last, Failure):
            last.evidence = None
        last = last.__cause__ or last.__context__


def run_tests(judge: Judge) -> list[str]:
    """Run the tests in this process; the names of those in which the machinery failed."""
    if not judge.tests:  # pytest would call that an error
        return []
    code = run_graded_tests(test_files(judge.result.assignment), judge)
    if judge.stopped:
        raise KeyboardInterrupt
    if code not in RAN and not judge.faults:
        raise GraderFault(f"pytest could not run the tests: {code.name.lower()}.")
    return judge.unfinished()


def run_collected(session: pytest.Session, judge: Judge) -> list[str]:
    """Run the judge's tests out of a session's; the names of those in which machinery failed."""
    items = list(session.items)
    judge.pytest_collection_modifyitems(items)
    session.config.pluginmanager.register(judge)  # which configures it
    try:
        judge.run(items)
    finally:
        session.config.pluginmanager.unregister(judge)
    return judge.unfinished()
