"""The result of one grading, and how it is written atomically as Gradescope's results.json."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common.assignment import Assignment
from common.atomic_write import write_atomically
from common.check_log import Compared
from common.errors import PRINTED, Explanation, GraderFault
from common.exercise_needs import Needed, in_words
from common.student_text import unmarked
from common.testing.feedback.hints import Fingerprint
from common.testing.graded_tests import GradedTest
from common.testing.leaderboard import Leaderboard
from common.visible_text import visible

OUTPUT_LIMIT = 8000
NOT_RUN = Explanation("Not run: the grader stopped before this test.")
UNEXPLAINED = Explanation("")


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    test: GradedTest
    passed: bool
    explanation: Explanation | None = None
    printed: str = ""
    seconds: float = 0.0
    check: int = 0  # which check of the test failed; 0 where none did
    seen: Fingerprint | None = None  # by that check. Not the value itself: each may be large
    compared: tuple[Compared, ...] = ()  # how far off each comparison was, for margins
    ran: bool = True  # False where this machine can't run it
    replaced: tuple[Needed, ...] = ()  # what was, where it failed first and then passed

    @property
    def score(self) -> float:
        """The points it earns."""
        return self.test.points if self.passed else 0.0

    def text(self) -> str:
        """What the student reads: the test's title, and why it failed."""
        if self.passed and not self.replaced:
            return clean(self.test.title)
        why = (self.explanation or UNEXPLAINED).text(self.test.hidden, self.printed)
        if self.replaced:
            graded = f"Passed: graded with {in_words(self.replaced)}. With yours:"
            return clean(f"{self.test.title}\n\n{graded}\n\n{why}")
        return clean(f"{self.test.title}\n\n{why}" if why else self.test.title)

    def reason(self) -> str:
        """Why it failed, in words that other tests may share."""
        return self.explanation.text(self.test.hidden) if self.explanation else self.text()


def not_run(test: GradedTest, reason: str) -> Outcome:
    """The outcome of a test that is left out: no points, and why. No verdict on the submission."""
    return Outcome(test, False, Explanation(f"Not run here: {reason}."), ran=False)


def title_and_rest(text: str) -> tuple[str, str]:
    """The title in a test's text, and what is said beyond it."""
    title, _, rest = text.partition("\n\n")
    return title, rest


def without_printed(text: str) -> str:
    """A test's text without the words of student code."""
    return text.partition(PRINTED)[0]


def clean(text: str) -> str:
    """Text that any JSON store takes: bounded, with control characters as escapes."""
    return visible(text)[:OUTPUT_LIMIT]


@dataclass
class Result:
    """All tests of an assignment, in order, with what is known of each so far."""

    assignment: Assignment
    tests: list[GradedTest]
    salt: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    defenses: list[str] = field(default_factory=list)
    seconds: float = 0.0
    finished: bool = False
    leaderboard: Leaderboard = field(default_factory=Leaderboard)
    texts: dict[str, str] = field(default_factory=dict)  # of the lab, for people to read

    def outcome(self, test: GradedTest) -> Outcome:
        """How that test ended; not having run is a failure."""
        return self.outcomes.get(test.name) or Outcome(test, False, NOT_RUN)

    @property
    def all_outcomes(self) -> list[Outcome]:
        """One for each test."""
        return [self.outcome(test) for test in self.tests]

    @property
    def score(self) -> float:
        """All points earned."""
        return sum(outcome.score for outcome in self.all_outcomes)

    @property
    def public_seconds(self) -> float:
        """How long the public tests took."""
        return sum(outcome.seconds for outcome in self.all_outcomes if not outcome.test.hidden)

    @property
    def not_run(self) -> float:
        """The points of tests that this machine can't run."""
        return sum(outcome.test.points for outcome in self.all_outcomes if not outcome.ran)

    @property
    def maximum(self) -> float:
        """All points there are."""
        return sum(test.points for test in self.tests)


def to_gradescope(result: Result) -> dict[str, Any]:
    """The content of results.json."""
    lines = [] if result.finished else ["Grading did not finish."]
    lines += map(unmarked, result.notes)
    if result.defenses:
        lines.append("Graded with: " + "; ".join(result.defenses) + ".")
    texts = {question: clean(text) for question, text in result.texts.items()}
    entries = [asdict(entry) for entry in result.leaderboard.entries.values()]
    return {
        # Of public tests alone: code that sleeps could carry something out of a hidden one.
        "execution_time": round(result.public_seconds),
        "output": clean("\n\n".join(lines)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "assignment": result.assignment.name,
            "salt": result.salt,
            "defenses": result.defenses,
            "finished": result.finished,
            **({"texts": texts} if texts else {}),
        },
        "tests": [test_to_gradescope(outcome) for outcome in result.all_outcomes],
        **({"leaderboard": entries} if entries else {}),
    }


def test_to_gradescope(outcome: Outcome) -> dict[str, Any]:
    """One entry of results.json's tests."""
    test = outcome.test
    return {
        "name": test.label,
        "number": test.exercise,
        "score": outcome.score,
        "max_score": test.points,
        "status": "passed" if outcome.passed else "failed",
        "output": outcome.text(),
        "visibility": test.visibility,
        "tags": list(test.tags),
        "extra_data": {
            "test": test.name,
            "ran": outcome.ran,
            **(
                {"replaced": [one.function for one in outcome.replaced]} if outcome.replaced else {}
            ),
        },
    }


def as_json(result: Result) -> bytes:
    """The bytes of results.json."""
    # Without indentation: json has a fast encoder for that, and this runs after every test.
    text = json.dumps(to_gradescope(result), allow_nan=False, ensure_ascii=True)
    return f"{text}\n".encode()


def write_results(result: Result, file: Path) -> None:
    """Replace results.json in one step, so that a reader never sees half of it."""
    try:
        write_atomically(file, as_json(result))
    except OSError as error:
        raise GraderFault(f"{file} can't be written: {error.strerror}.") from None
