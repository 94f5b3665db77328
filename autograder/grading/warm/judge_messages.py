"""The messages of a warm judge: options, grading request, reply, verdicts.

Batches, proofs and the hostile corpus all use these.
"""

import msgspec

from common.assignment import Record
from common.testing.feedback.hints import Fingerprint


class JudgeOptions(Record, frozen=True):
    """What a warm judge is started with."""

    assignment: str
    forks: bool = False  # whether a fork of it grades each submission, and so leaves nothing in it
    gpu: bool = False  # whether tests that need a GPU are run, and student code may reach it
    private: tuple[str, ...] = ()  # what student code must not reach; whether it can is tried

    def to_json(self) -> str:
        """The options as one word of a command line."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_json(text: str) -> "JudgeOptions":
        """The options out of that word."""
        return msgspec.json.decode(text, type=JudgeOptions)


class GradingRequest(Record, frozen=True):
    """One submission to grade: its files, or the tree that it lies in."""

    files: dict[str, bytes] = msgspec.field(default_factory=dict)
    salt: str | None = None  # None: the term's own
    only: tuple[str, ...] | None = None  # names of tests, in the order to run them; None: all
    stop_at_failure: bool = False
    cpu_seconds: float | None = None  # for each test; None: what assignment.toml says
    compare_all: bool = (
        False  # whether a test continues after a wrong value, so that all are compared
    )
    verdicts: bool = False  # whether to answer with verdicts instead of results.json
    notes: list[str] = msgspec.field(default_factory=list)
    reasons: dict[str, str] = msgspec.field(default_factory=dict)  # why a file is left out
    tree: str = ""  # instead of files: a tree like Gradescope's, where the result is written, too
    submitted: str = ""  # what to take in that tree, if not its submission/


class Verdict(Record, frozen=True):
    """How one test ended."""

    test: str
    exercise: str
    hidden: bool
    points: float
    training: bool
    passed: bool
    text: str
    hint: str
    seconds: float
    check: int  # the check that failed; 0 where none did
    seen: Fingerprint | None
    compared: tuple[tuple[float, float], ...]  # error and tolerance of each comparison
    ran: bool = True  # False where this machine can't run it: no verdict at all

    @property
    def passed_at_once(self) -> bool:
        """Whether it passed without stand-ins for what is wrong in other exercises."""
        return self.passed and not self.text


class SandboxInUse(Record, frozen=True):
    """The sandbox that the submission was graded in, for those who look for what it left there."""

    folder: str
    uid: int | None
    servers: tuple[int, ...]  # process ids


class GradingReply(Record, frozen=True):
    """How a submission was graded, or why it could not be."""

    results: bytes = b""  # results.json
    score: float = 0.0
    maximum: float = 0.0
    seconds: float = 0.0
    verdicts: list[Verdict] = msgspec.field(default_factory=list)  # where asked for
    notes: list[str] = msgspec.field(default_factory=list)
    fault: str = ""  # of the machinery: not a verdict on the submission
    fatal: bool = False  # whether every other submission would meet the same fault
    sandbox: SandboxInUse | None = None
