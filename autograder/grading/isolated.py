"""The isolated face of `student`: the code under test runs in a child of the sandbox."""

from collections.abc import Iterator
from contextlib import contextmanager

from autograder.grading.sandbox import Sandbox
from common.failures import ChildFailure
from common.values import Handle


class IsolatedFace:
    """Student code in a child of the sandbox, a new one for each test."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.seconds = 0.0
        self.printed = ""
        self.fault = ""

    @contextmanager
    def open(self, exercise: str) -> Iterator[Handle]:
        """What a test of that exercise gets as `student`, for as long as the test runs."""
        assignment = self.sandbox.assignment
        self.printed = ""
        if self.seconds > assignment.limits.total_seconds:
            raise ChildFailure(
                "Not run: the tests before this one took longer than the "
                f"{assignment.limits.total_seconds:g} seconds that all of them may take."
            )
        with self.sandbox.child(assignment.forbidden_in(exercise)) as child:
            try:
                yield child.student(assignment.files[0])
            finally:
                self.seconds += child.seconds
                self.printed = child.printed_text
