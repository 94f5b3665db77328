"""The exceptions of the course: errors shown to people as one sentence, and failures of tests."""

from dataclasses import dataclass
from typing import Any

from common.student_text import unmarked, withheld

PRINTED = "Your code printed:\n"  # precedes the output of student code
MALFORMED = "Your code's process sent a malformed reply to the grader."
HINT_PREFIX = "Your output matches a known mistake: "


class CourseError(Exception):
    """Something a person can put right: one clear sentence, shown without a traceback."""


class GraderFault(CourseError):
    """The machinery failed, not the submission: what it was grading has no verdict."""


@dataclass(frozen=True)
class Evidence:
    """What a failed check saw, by which a known mistake can be recognized."""

    check: int  # which check of the test, counted from 1
    value: Any  # the student's array; None where the check saw none
    text: str  # what the check said


@dataclass(frozen=True)
class Explanation:
    """What a student reads about a failure."""

    sentence: str  # never holds a test's inputs or expected values: hidden tests show it too
    details: str = ""  # values and tracebacks: public tests only
    relation: str = ""  # how the wrong result relates to the correct one
    help: str = ""  # what to try
    hint: str = ""  # which known mistake it is

    def __post_init__(self) -> None:
        """Text of student code is printed, which marks it."""
        for name, part in vars(self).items():
            object.__setattr__(self, name, str(part))

    def text(self, hidden: bool, printed: str = "") -> str:
        """What every report says about a failed test: only here is decided what it may say.

        Of a hidden test, neither details nor what the code printed: both may hold its inputs. Nor
        any other part with a word of student code in it.
        """
        show = withheld if hidden else unmarked
        words = "\n".join(show(part) for part in self.parts(hidden))
        own = f"{PRINTED}{unmarked(printed)}" if printed and not hidden else ""
        return "\n\n".join(part for part in (words, own) if part)

    def parts(self, hidden: bool) -> list[str]:
        """The lines of it, as they were made; without details for a hidden test."""
        details = "" if hidden else self.details
        hint = f"{HINT_PREFIX}{self.hint}" if self.hint else ""
        lines = (self.sentence, details, self.relation, self.help, hint)
        return [line for line in lines if line]


class Failure(AssertionError):
    """A test's own verdict: this is not right, and here is why."""

    def __init__(
        self,
        sentence: str,
        details: str = "",
        help: str = "",
        *,
        relation: str = "",
        evidence: Evidence | None = None,
    ) -> None:
        self.explanation = Explanation(sentence, details, relation, help)
        self.evidence = evidence
        super().__init__("\n".join(self.explanation.parts(hidden=False)))


class ChildFailure(Exception):
    """Student code that hung, died, flooded or answered nonsense; the text says which.

    details: what hidden tests don't show.
    """

    def __init__(self, sentence: str, details: str = "") -> None:
        self.details = details
        super().__init__(sentence)


class ForbiddenCall(Exception):
    """Student code used something that its exercise doesn't allow."""


def builtin_name(error: BaseException) -> str:
    """The name of the nearest builtin class of an exception."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def kind_in_words(error: BaseException) -> str:
    """Which exception it is, with an article: "a KeyError", "an IndexError"."""
    kind = builtin_name(error)
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
