"""Turns an exception of a test into what the student reads; hides hidden tests' details."""

import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from common.testing.feedback.evidence import Evidence

# What a stub says: "LeNet.forward: exercise 2.3 is yours to write".
UNWRITTEN = re.compile(r"([\w.]+): exercise [\d.]+ is yours to write")
TRACEBACK_LIMIT = 4000
PRINTED = "Your code printed:\n"  # what comes before the words of student code
BROKEN_TEST = (
    "The test itself broke here. This is a fault of the course, not yours: please tell the staff."
)


@dataclass(frozen=True)
class Explanation:
    """What a student reads about a failure."""

    sentence: str  # never holds a test's inputs or expected values: hidden tests show it too
    details: str = ""  # values and tracebacks: public tests only
    relation: str = ""  # how the wrong result relates to the right one
    help: str = ""  # what to try
    hint: str = ""  # which known mistake it is

    def text(self, hidden: bool, printed: str = "") -> str:
        """What every report says about a failed test: only here is decided what it may say.

        Of a hidden test, neither details nor what the code printed: both may hold its inputs.
        """
        details = "" if hidden else self.details
        lines = [self.sentence, details, self.relation, self.help, self.hint]
        words = "\n".join(line for line in lines if line)
        own = f"{PRINTED}{printed}" if printed and not hidden else ""
        return "\n\n".join(part for part in (words, own) if part)


class Failure(AssertionError):
    """A test's own verdict: this is not right, and here is why."""

    def __init__(
        self,
        sentence: str,
        details: str = "",
        help: str = "",
        relation: str = "",
        evidence: Evidence | None = None,
    ) -> None:
        self.explanation = Explanation(sentence, details, relation, help)
        self.evidence = evidence
        super().__init__(self.explanation.text(hidden=False))


class ChildFailure(Exception):
    """Student code that hung, died, flooded or answered nonsense; the text says which."""


class ForbiddenCall(Exception):
    """Student code used something that its exercise doesn't allow."""


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


def builtin_name(error: BaseException) -> str:
    """The name of the nearest builtin class of an exception."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def explain(error: BaseException) -> Explanation:
    """Turn what a test raised into words."""
    call: StudentCall | None = getattr(error, "student_call", None)
    if isinstance(error, Failure):
        return error.explanation
    if isinstance(error, ForbiddenCall | ChildFailure):
        return Explanation(str(error))
    if call is not None:
        return explain_students(error, call)
    if type(error).__module__.startswith("_pytest") and "DID NOT RAISE" in str(error):
        name = str(error).rpartition("'")[0].rpartition("'")[2] or "exception"
        return Explanation(
            f"This call should have raised {name}, but it returned instead.",
            help="The docstring says which inputs must be refused.",
        )
    if isinstance(error, AssertionError):
        return Explanation("What this test checks doesn't hold.", str(error))
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
    stub = UNWRITTEN.match(str(error))
    if stub is None or call.function in stub[1].split("."):
        return Explanation(f"{call.function} is not written yet.")
    return Explanation(f"{call.function} needs something that is not written yet.", stub[0])


def kind_in_words(error: BaseException) -> str:
    """Which exception it is, with an article: "a KeyError", "an IndexError"."""
    kind = builtin_name(error)
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def is_students(error: BaseException) -> bool:
    """Whether student code raised it. A stub's NotImplementedError and verdicts don't count."""
    return hasattr(error, "student_call") and not isinstance(error, NotImplementedError)


def is_the_submissions(error: BaseException) -> bool:
    """Whether an error is the submission's doing, and not the grader's."""
    return isinstance(error, Failure | ChildFailure | ForbiddenCall) or hasattr(
        error, "student_call"
    )
