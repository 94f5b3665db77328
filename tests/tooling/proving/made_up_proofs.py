"""Made-up mistakes, verdicts, replies and proofs of assignment 1."""

import msgspec

from autograder.grading.warm.judge_messages import GradingReply, Verdict
from autograder.proving.margins import Margin
from autograder.proving.proof_findings import Effort, MistakeRow, Proof, Scored, Survivor, Timing
from autograder.proving.wrong_versions.mistakes import Mistake
from common.assignment import load_assignment
from common.errors import Evidence
from common.testing.feedback.hints import fingerprint

A1 = load_assignment("a1")


def mistake(**changes):
    """A mistake of assignment 1, with some of its fields changed."""
    fields = {
        "name": "flipped",
        "function": "conv2d_forward",
        "find": "patch * w[k]",
        "replace": "patch * w[k, :, ::-1]",
        "exercises": ["1.2"],
        "hint": "This is what you get when ...",
    }
    return Mistake(**{**fields, **changes})


SEEN = fingerprint(Evidence(1, None, "said"))
SHOWN = {"test_a": mistake().hint}


def verdict(test="test_a", exercise="1.2", passed=True, hidden=False, compared=(), text=""):
    """How a test ended. What is wrong looks as `flipped` was seen to look."""
    seen = (0, None) if passed else (1, SEEN)
    return Verdict(test, exercise, hidden, 2.0, False, passed, text, "", 0.1, *seen, compared)


def replace_fields(entry, test, passed):
    return msgspec.structs.replace(entry, hidden=test.hidden, points=test.points, passed=passed)


def replies_of(case, name, passed=lambda test, number: True):
    """What a version gets that passes the tests that `passed` says."""
    tests = {test.name: test for test in case.tests}
    replies = {}
    for job, request in case.jobs().items():
        if not job.startswith("reference: "):
            continue
        number = case.salts.index(request.salt)
        verdicts = [
            replace_fields(verdict(test.name, test.exercise), test, passed(test, number))
            for test in (tests[name] for name in request.only)
        ]
        lab = job.startswith("reference: lab")  # which is graded once for all versions
        replies[job if lab else job.replace("reference", name)] = GradingReply(verdicts=verdicts)
    return replies


def proof(**changes):
    fields = {
        "assignment": "a1_convolution",
        "title": "Convolution <b>",
        "tests": 66,
        "points": 100.0,
        "exercises": ["1.1", "1.2"],
        "scored": [Scored("reference", 20, 66, 100.0, 100.0, [])],
        "mistakes": [flipped(lost={"1.2": 4.0}, public=["test_a"])],
        "noticed": {f"n{number}": "test_a" for number in range(100)},
        "survivors": [],
        "margins": [Margin("test_a", 1e-9, 1e-15, 0.1)],
        "problems": [],
        "effort": Effort(
            gradings=10,
            remembered=0,
            seconds=1.0,
            timings=[Timing("mutant", 100, 12.5, 0.25)],
            slowest=[Timing("test_a", 20, 1.0, 0.06)],
        ),
    }
    return Proof(**{**fields, **changes})


def flipped(lost, public, problems=()):
    """The row of one mistake."""
    return MistakeRow("flipped", "A hint", ["1.2"], lost, public, [], public, [*problems])


def survivors(count, reason=""):
    return [Survivor(f"m{n}", "convolution.py", n, "- a\n+ b", reason) for n in range(count)]
