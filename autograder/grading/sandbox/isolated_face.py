"""`student` in grading: a new sandboxed child per test, less time after repeated timeouts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import msgspec

from autograder.grading.sandbox.conversation import Conversation
from autograder.grading.sandbox.lab_cells import cells_in_a_child
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import Limits, wall_limit
from common.errors import ChildFailure
from common.exercise_needs import Needed, replacements_for
from common.labs.lab_run import Lab, run_lab
from common.student_code.values import Handle
from common.student_text import edited
from common.testing.student_face import StudentFace

MOST_NAMES = 3  # of tests that used up the time of all
TIMEOUTS = 2  # after this many in an exercise, its other tests get less time
ADDRESS = re.compile(r"\b0x[0-9a-f]{8,16}\b")  # of an object in memory, as in its repr
SHORTENED_SECONDS = 5.0  # far more than a test needs, unless it trains


class IsolatedFace(StudentFace):
    """Student code in a child of the sandbox, a new one for each test."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        # By name of the test: seconds of processor time, and by the clock.
        self.computed: dict[str, float] = defaultdict(float)
        self.elapsed: dict[str, float] = defaultdict(float)
        self.last: tuple[str, Conversation] | None = None  # whose processor time isn't known yet
        self.printed = ""
        self.fault = ""
        self.timeouts: dict[str, int] = {}  # by exercise
        self.slept = 0  # how many tests have slept until their time was over
        self.labs: dict[bytes, Lab] = {}

    @contextmanager
    def open(
        self, exercise: str, test: str = "", share: float = 1.0, *, needed: Iterable[Needed] = ()
    ) -> Iterator[Handle]:
        """What a test of that exercise gets as `student`, for as long as the test runs."""
        assignment = self.sandbox.assignment
        limits = assignment.limits
        self.note_last()
        self.check_total(limits, share)
        if self.timeouts.get(exercise, 0) >= TIMEOUTS:  # leave time for the other exercises
            seconds = min(limits.test_seconds, SHORTENED_SECONDS)
            wall_seconds = min(limits.test_wall_seconds, wall_limit(seconds))
            limits = msgspec.structs.replace(
                limits, test_seconds=seconds, wall_seconds=wall_seconds
            )
        forbidden = assignment.forbidden_in(exercise)
        replacements = replacements_for(assignment.own_standins, needed)
        with self.sandbox.child(forbidden, limits, replacements) as child:
            try:
                child.may_sleep = self.slept < TIMEOUTS
                yield child.student(assignment.modules)
            finally:
                self.elapsed[test] += child.seconds
                self.last = (test, child)
                self.printed = self.repeatable(child.printed_text)
                if child.timed_out:
                    self.timeouts[exercise] = self.timeouts.get(exercise, 0) + 1
                    self.slept += child.sleeps

    def note_last(self) -> None:
        """Note the processor time of the last test, now that all of its processes are gone."""
        if self.last:
            (test, child), self.last = self.last, None
            self.sandbox.settle()
            self.computed[test] += child.computed

    def check_total(self, limits: Limits, share: float) -> None:
        """Run no further test once all together have used up their time, and say which did."""
        for used, most, kind in (
            (self.computed, limits.total_seconds, "seconds of processor time"),
            (self.elapsed, limits.total_wall_seconds, "seconds"),
        ):
            most *= share
            if sum(used.values()) > most:
                raise ChildFailure(
                    f"Not run: the tests before this one used up the {most:g} {kind} that "
                    f"they may take. Most of it went to {in_words(used_most(used))}."
                )

    def lab(self, content: bytes) -> Lab:
        """A submitted lab, run once for all its tests, in a child of its own."""
        if content not in self.labs:
            self.note_last()
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


def used_most(used: Mapping[str, float]) -> list[str]:
    """The tests that used more than half of it all, the one that used most first."""
    names: list[str] = []
    left = sum(used.values()) / 2
    for name in sorted(used, key=used.__getitem__, reverse=True):
        if left < 0:
            break
        names.append(name)
        left -= used[name]
    return names


def in_words(names: list[str]) -> str:
    """Names of tests in a sentence: a few, and how many more."""
    shown = [f"'{name}'" for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        shown.append(f"{len(names) - MOST_NAMES} more")
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
