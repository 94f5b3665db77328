"""Grades one submission: sandbox, judge, one retry after a fault, finished result."""

import importlib
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from autograder.grading.judge import Judge, Settings, run_tests, save, skip_reason
from autograder.grading.judge_inputs import read_tests
from autograder.grading.results import Result, not_run
from autograder.grading.sandbox.defenses import check_required
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission, code_folder
from autograder.semester import FILES, PRACTICE_NOTE
from common.assignment import ROOT, Assignment
from common.data.packages import check_installed
from common.errors import CourseError, GraderFault
from common.testing import cuda
from common.testing.direct_face import DirectFace
from common.testing.student_face import StudentFace

UNPROTECTED = "WITHOUT PROTECTION: student code ran in the grader's own process (--direct)"


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
        raise CourseError("--gpu: PyTorch finds no usable GPU on this machine.")
    limits = msgspec.structs.replace(assignment.limits, gpu=True)
    return msgspec.structs.replace(assignment, limits=limits)


def new_result(assignment: Assignment, submission: Submission, settings: Settings) -> Result:
    """The result before anything has run: every test of it failed."""
    known = settings.inputs
    tests = known.tests if known else read_tests(assignment)
    if settings.only is not None:
        by_name = {test.name: test for test in tests}
        tests = [by_name[name] for name in settings.only]
    fingerprint = settings.semester.fingerprint
    practice = [f"{PRACTICE_NOTE.capitalize()}."] if settings.semester.is_practice else []
    result = Result(assignment, tests, fingerprint, notes=[*submission.notes, *practice])
    for test in tests:
        if reason := skip_reason(test, settings):
            result.outcomes[test.name] = not_run(test, reason.format(short=assignment.short))
    save(result, settings)
    return result


def grade_in(
    sandbox: Sandbox,
    result: Result,
    submission: Submission,
    settings: Settings,
    busy: threading.Thread | None = None,
    run: Callable[[Judge], list[str]] | None = None,
) -> Result:
    """Grade in a sandbox, which may have served other submissions before.

    run: what runs the tests and names those in which the machinery failed, if not `run_tests`.
    """
    run = run or run_tests
    check_data(result.assignment)
    start = time.monotonic()
    private = (*secret_paths(), *settings.private)
    try:
        defenses = sandbox.admit(submission.code, private)
    except GraderFault:  # once more, with a new fork server
        sandbox.restart()
        defenses = sandbox.admit(submission.code, private)
    result.defenses = [str(defense) for defense in defenses]
    check_required(defenses, settings.unsafe)
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
    check_data(result.assignment)
    start = time.monotonic()
    result.defenses = [UNPROTECTED]
    with code_folder(submission, result.assignment.name) as packages:
        face = DirectFace(result.assignment, packages, result.assignment.standins)
        left = run_tests(Judge(result, submission, face, settings))
        if left:
            reason = (
                face.fault or "the submission, which ran in this process, interfered with pytest"
            )
            raise GraderFault(f"The grader itself failed in {left[0]}: {reason}.")
    return finish(result, face, settings, time.monotonic() - start)


def check_data(assignment: Assignment) -> None:
    """Refuse to grade where data is not installed: a lab or a test without it would cost points."""
    if assignment.data:
        check_installed()


def secret_paths() -> list[Path]:
    """The files and folders here that student code must never read."""
    paths = (ROOT / "tests", ROOT / "solutions", *FILES)
    return [path for path in paths if path.exists()]


def finish(result: Result, face: StudentFace, settings: Settings, seconds: float) -> Result:
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
