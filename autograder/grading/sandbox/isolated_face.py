"""`student` in grading: a new sandboxed child per test, less time after repeated timeouts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from autograder.grading.sandbox.lab_cells import cells_in_a_child
from autograder.grading.sandbox.sandbox import Sandbox
from common.errors import ChildFailure
from common.labs.lab_run import Lab, run_lab
from common.student_code.values import Handle
from common.student_text import edited
from common.testing.student_face import StudentFace

TIMEOUTS = 2  # after this many in an exercise, its other tests get less time
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,16}\b")  # of an object in memory, as in its repr
SHORTENED_SECONDS = 5.0  # far more than a test needs, unless it trains


class IsolatedFace(StudentFace):
    """Student code in a child of the sandbox, a new one for each test."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.seconds = 0.0
        self.printed = ""
        self.fault = ""
        self.timeouts: dict[str, int] = {}  # by exercise
        self.labs: dict[bytes, Lab] = {}

    @contextmanager
    def open(self, exercise: str) -> Iterator[Handle]:
        """What a test of that exercise gets as `student`, for as long as the test runs."""
        assignment = self.sandbox.assignment
        if self.seconds > assignment.limits.total_seconds:
            raise ChildFailure(
                "Not run: the tests before this one used up the "
                f"{assignment.limits.total_seconds:g} seconds allowed for all tests."
            )
        limits = assignment.limits
        if self.timeouts.get(exercise, 0) >= TIMEOUTS:  # leave time for the other exercises
            seconds = min(limits.test_seconds, SHORTENED_SECONDS)
            limits = msgspec.structs.replace(limits, test_seconds=seconds)
        with self.sandbox.child(assignment.forbidden_in(exercise), limits) as child:
            try:
                yield child.student(assignment.modules)
            finally:
                self.seconds += child.seconds
                self.printed = self.repeatable(child.printed_text)
                if child.timed_out:
                    self.timeouts[exercise] = self.timeouts.get(exercise, 0) + 1

    def lab(self, content: bytes) -> Lab:
        """A submitted lab, run once for all its tests, in a child of its own."""
        if content not in self.labs:
            with cells_in_a_child(self.sandbox) as run_cell:
                lab = run_lab(content, self.sandbox.assignment, run_cell)
            lab.cell_errors = [self.repeatable(trouble) for trouble in lab.cell_errors]
            self.labs[content] = lab
        return self.labs[content]

    def repeatable(self, text: str) -> str:
        """Text without what differs between gradings: the sandbox's folder, and addresses.

        For texts that people read. Tests get the original text: they may search it for a path.
        """
        folder = str(self.sandbox.folder)
        return edited(text, lambda part: ADDRESS.sub("0x...", part.replace(folder, "/sandbox")))
