"""Grades reference and stub with a built zip: all points for one, none for the other."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.authoring.reference_artifacts import reference_artifacts
from autograder.packaging.rehearsal import Rehearsal, rehearse
from autograder.packaging.zip_build import Built
from common.assignment import LAB_FILE, ROOT, Assignment, Record
from common.errors import CourseError
from common.testing.graded_tests import TRAINING, GradedTest

Show = Callable[[str, str], None]  # the assignment's short name, and what is being done


class Checked(Record, frozen=True):
    """What grading the reference and the stub gave, for one state of the zip and of both."""

    fingerprint: str
    reference: float
    stub: float
    seconds: float
    not_run: dict[str, float]  # points of tests that were left out, by the reason


@contextmanager
def laid_out_submission(assignment: Assignment, side: str) -> Iterator[Path]:
    """What a student would submit who has written the reference, or nothing."""
    files = {name: ROOT / side / assignment.name / name for name in assignment.files}
    if side == "assignments" and assignment.lab:
        files[LAB_FILE] = ROOT / side / assignment.name / LAB_FILE
    with TemporaryDirectory(prefix="conv2gpt-release-") as scratch:
        folder = Path(scratch) / side / assignment.name
        folder.mkdir(parents=True)
        for name, file in files.items():
            shutil.copy(file, folder / name)
        if side == "solutions":
            for name, content in reference_artifacts(assignment).items():
                (folder / name).write_bytes(content)
        yield folder


@dataclass(frozen=True)
class ZipCheck:
    """Grades the reference, which must get all points, and the stub, which must get none.

    The zip leaves out what needs a GPU, and training unless asked, and must say so of exactly
    those tests.
    """

    assignment: Assignment
    built: Built
    graded_tests: list[GradedTest]
    training: bool

    def run(self, state: str, show: Show) -> Checked:
        """Grade both sides; an error says what is wrong."""
        start = time.monotonic()
        left_out = self.left_out()
        points = sum(test.points for test in self.graded_tests)
        wanted = points - sum(left_out.values())
        reference = self.grade("solutions", wanted, show).score
        stub = self.grade("assignments", 0.0, show).score
        seconds = round(time.monotonic() - start, 2)
        return Checked(state, reference, stub, seconds, left_out)

    def left_out(self) -> dict[str, float]:
        """The points that are not graded here, by the reason."""
        found: dict[str, float] = {}
        for test in self.graded_tests:
            if reason := self.reason(test):
                found[reason] = found.get(reason, 0.0) + test.points
        return found

    def reason(self, test: GradedTest) -> str:
        """Why a test is not run; "" where it is."""
        if test.needs_gpu:
            return "no GPU"
        return "training" if TRAINING in test.tags and not self.training else ""

    def grade(self, side: str, wanted: float, show: Show) -> Rehearsal:
        """Grade one side, and compare with what it must get."""
        show(self.assignment.short, f"grading {side}/{self.assignment.name} with the built zip")
        options = () if self.training else ("--without-training",)
        with laid_out_submission(self.assignment, side) as submission:
            rehearsal = rehearse(self.built.autograder, submission, *options)
        archive = self.built.autograder.name
        if not rehearsal.results["extra_data"]["finished"]:
            raise CourseError(f"{archive}: {rehearsal.results['output']}")
        if rehearsal.tests != len(self.graded_tests):
            count = f"{rehearsal.tests} tests on {side}, not {len(self.graded_tests)}"
            raise CourseError(f"{archive} ran {count}.")
        unrun = {test.name for test in self.graded_tests if self.reason(test)}
        if rehearsal.not_run != unrun:
            odd = ", ".join(sorted(rehearsal.not_run ^ unrun))
            raise CourseError(f"{archive} skipped the wrong tests: {odd}.")
        points = sum(test.points for test in self.graded_tests)
        if rehearsal.score != wanted or rehearsal.maximum != points:
            wrong = [
                f"{test['name']}: {test['output']}"
                for test in rehearsal.results["tests"]
                if (test["score"] == 0) == (wanted > 0) and test["extra_data"]["ran"]
            ]
            raise CourseError(
                f"{side}/{self.assignment.name} must get {wanted:g} of {points:g} points, but got "
                f"{rehearsal.score:g} of {rehearsal.maximum:g}.\n" + "\n".join(wrong)
            )
        return rehearsal
