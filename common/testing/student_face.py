"""The interface of `student`, implemented by the direct and the isolated face."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from common.exercise_needs import Needed
from common.labs.lab_run import Lab
from common.student_code.values import Handle


class StudentFace(Protocol):
    """Direct, in the test's own process, or isolated, in a child of the sandbox for each test."""

    fault: str  # of the machinery, if it has met one
    printed: str  # by the code of the last test; nothing where it went to the terminal
    labs: dict[bytes, Lab]  # those that were run, by their content

    def open(
        self, exercise: str, test: str = "", share: float = 1.0, *, needed: Iterable[Needed] = ()
    ) -> AbstractContextManager[Handle]:
        """What a test of that exercise gets as `student`, for as long as the test runs.

        test: what to call it where its time is left to no other.
        share: of the time of all tests, how much may be used up when this one begins.
        needed: functions of the submission to be replaced by stand-ins.
        """

    def lab(self, content: bytes) -> Lab:
        """A submitted lab, run once for all its tests."""

    def repeatable(self, text: str) -> str:
        """A text about student code, without what is another in every grading."""
