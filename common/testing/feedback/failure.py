"""Turns an exception of a test into what the student reads about it."""

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from common.errors import (
    ChildFailure,
    Explanation,
    Failure,
    ForbiddenCall,
    builtin_name,
    kind_in_words,
)
from common.student_text import StudentText, unmarked

# What a stub says: "LeNet.forward: exercise 2.3 is yours to write".
UNWRITTEN = re.compile(r"([\w.]+): exercise [\d.]+ is yours to write")
TRACEBACK_LIMIT = 4000
BROKEN_TEST = (
    "The test itself failed. This is a bug in the course, not in your code: "
    "please report it to the course staff."
)


@dataclass(frozen=True)
class StudentCall:
    """Where in student code an exception came from. Attached to the exception itself."""

    function: str
    traceback: str


def mark_as_students(error: BaseException, call: StudentCall) -> None:
    """Note on an exception that student code raised it."""
    error.__dict__["student_call"] = call


def format_frames(error: BaseException, folders: Iterable[Path]) -> str:
    """The lines of the traceback that lie in the given folders, and the error itself."""
    roots = [str(folder) for folder in folders]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if any(frame.filename.startswith(root) for root in roots)
    ]
    lines = [
        f"  {Path(frame.filename).name}, line {frame.lineno}, in {frame.name}: {frame.line}"
        for frame in frames
    ]
    return "\n".join(lines)[-TRACEBACK_LIMIT:]


def explain(error: BaseException) -> Explanation:
    """Turn what a test raised into words."""
    call: StudentCall | None = getattr(error, "student_call", None)
    if isinstance(error, Failure):
        return error.explanation
    if isinstance(error, ForbiddenCall | ChildFailure):
        return Explanation(str(error), getattr(error, "details", ""))
    if call is not None:
        return explain_students(error, call)
    if type(error).__module__.startswith("_pytest") and "DID NOT RAISE" in str(error):
        name = str(error).rpartition("'")[0].rpartition("'")[2] or "exception"
        return Explanation(
            f"This call should have raised {name}, but it returned instead.",
            help="The docstring says which inputs must be rejected.",
        )
    if isinstance(error, AssertionError):
        return Explanation("An assertion of this test failed.", str(error))
    return Explanation(
        BROKEN_TEST,
        f"{type(error).__name__}: {error}",
    )


def explain_students(error: BaseException, call: StudentCall) -> Explanation:
    """Words for an exception that student code raised."""
    if isinstance(error, NotImplementedError):
        return explain_unwritten(error, call)
    kind = builtin_name(error)
    message = str(error)[:TRACEBACK_LIMIT]
    return Explanation(
        f"{call.function} raised {kind_in_words(error)}.",
        "\n".join(part for part in (f"{kind}: {message}", call.traceback) if part),
    )


def explain_unwritten(error: NotImplementedError, call: StudentCall) -> Explanation:
    """Words for a stub: the function that was called, or another one that it needs."""
    stub = UNWRITTEN.match(unmarked(str(error)))
    if stub is None or call.function in stub[1].split("."):
        return Explanation(f"{call.function} is not written yet.")
    needed = str(StudentText(stub[0]))
    return Explanation(f"{call.function} calls code that is not written yet.", needed)


def is_students(error: BaseException) -> bool:
    """Whether student code raised it. A stub's NotImplementedError and verdicts don't count."""
    return hasattr(error, "student_call") and not isinstance(error, NotImplementedError)


def is_caused_by_submission(error: BaseException) -> bool:
    """Whether an error is the submission's doing, and not the grader's."""
    return isinstance(error, Failure | ChildFailure | ForbiddenCall) or hasattr(
        error, "student_call"
    )
