"""The whole way of every assignment: generate, build, and grade reference and stub by the zip."""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from autograder.authoring.artifacts import made_artifacts
from autograder.authoring.generate import generate
from autograder.labs.assign import is_stale, write_labs
from autograder.packaging.archive import write_if_changed
from autograder.packaging.build import DIST, Built, build
from autograder.packaging.rehearsal import rehearse
from autograder.proving.recording import record_hidden
from common.assignment import LAB_FILE, ROOT, Assignment, Record
from common.errors import CourseError
from common.roster import GradedTest, read_roster


class Checked(Record, frozen=True):
    """What grading the reference and the stub gave, for one state of the zip and of both."""

    fingerprint: str
    reference: float
    stub: float
    seconds: float
    not_run: float = 0.0  # points of tests that need a GPU


@dataclass(frozen=True)
class Row:
    """One line of the table that `make` prints."""

    assignment: Assignment
    tests: int
    points: float
    built: Built
    checked: Checked
    unchanged: bool


def release(assignment: Assignment, say: Callable[[str], None], dist: Path = DIST) -> Row:
    """Bring one assignment up to date. What hasn't changed isn't done again."""
    for file in generate([assignment]):
        say(f"{assignment.short}: wrote {file.relative_to(ROOT)}")
    if assignment.lab and is_stale(assignment):
        for file in write_labs([assignment]):
            say(f"{assignment.short}: wrote {file.relative_to(ROOT)}")
    made_artifacts(assignment)
    build(assignment, dist)
    record_hidden(assignment, partial(tell, assignment, say), dist)
    built = build(assignment, dist)  # now with those hints
    roster = read_roster(ROOT / "tests" / assignment.name)
    points = sum(test.points for test in roster)
    state = fingerprint(assignment, built)
    memory = dist / f"{assignment.short}-checked.json"
    checked = read_memory(memory)
    unchanged = checked is not None and checked.fingerprint == state
    if checked is None or not unchanged:
        checked = check(assignment, built, roster, state, say)
        write_if_changed(memory, msgspec.json.encode(checked))
    return Row(assignment, len(roster), points, built, checked, unchanged)


def tell(assignment: Assignment, say: Callable[[str], None], done: int, total: int) -> None:
    """Say how far the recording of hints is."""
    say(f"{assignment.short}: recording what mistakes give: {done} of {total}")


def fingerprint(assignment: Assignment, built: Built) -> str:
    """A hash of all that decides what the check will say."""
    digest = hashlib.sha256(built.fingerprint.encode())
    for side in ("solutions", "assignments"):
        for name in assignment.files:
            digest.update((ROOT / side / assignment.name / name).read_bytes())
    if assignment.lab:
        digest.update((ROOT / "assignments" / assignment.name / LAB_FILE).read_bytes())
    for content in made_artifacts(assignment).values():
        digest.update(content)
    return digest.hexdigest()


def read_memory(file: Path) -> Checked | None:
    """What an earlier check said, if it can be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Checked)
    except (OSError, msgspec.DecodeError):
        return None


@contextmanager
def laid_out(assignment: Assignment, side: str) -> Iterator[Path]:
    """What a student would hand in who has written the reference, or nothing."""
    files = {name: ROOT / side / assignment.name / name for name in assignment.files}
    if side == "assignments" and assignment.lab:
        files[LAB_FILE] = ROOT / side / assignment.name / LAB_FILE
    with TemporaryDirectory(prefix="conv2gpt-release-") as scratch:
        folder = Path(scratch) / side / assignment.name
        folder.mkdir(parents=True)
        for name, file in files.items():
            shutil.copy(file, folder / name)
        if side == "solutions":
            for name, content in made_artifacts(assignment).items():
                (folder / name).write_bytes(content)
        yield folder


def check(
    assignment: Assignment,
    built: Built,
    roster: list[GradedTest],
    state: str,
    say: Callable[[str], None],
) -> Checked:
    """Grade the reference, which must get all points, and the stub, which must get none.

    The zip never runs what needs a GPU, and must say so of exactly those tests.
    """
    start = time.monotonic()
    points, left_out = (sum(t.points for t in part) for part in (roster, needing_gpu(roster)))
    tests, unrun = len(roster), {test.name for test in needing_gpu(roster)}
    scores: list[float] = []
    for side, wanted in (("solutions", points - left_out), ("assignments", 0.0)):
        say(f"{assignment.short}: grading {side}/{assignment.name} with the built zip")
        with laid_out(assignment, side) as submission:
            rehearsal = rehearse(built.autograder, submission)
        scores.append(rehearsal.score)
        if not rehearsal.results["extra_data"]["finished"]:
            raise CourseError(f"{built.autograder.name}: {rehearsal.results['output']}")
        if rehearsal.tests != tests:
            raise CourseError(
                f"{built.autograder.name} ran {rehearsal.tests} tests on {side}, not {tests}."
            )
        if rehearsal.not_run != unrun:
            odd = ", ".join(sorted(rehearsal.not_run ^ unrun))
            raise CourseError(
                f"{built.autograder.name} must leave out what needs a GPU, and only that: {odd}."
            )
        if rehearsal.score != wanted or rehearsal.maximum != points:
            wrong = [
                f"{test['name']}: {test['output']}"
                for test in rehearsal.results["tests"]
                if (test["score"] == 0) == (wanted > 0) and test["extra_data"]["ran"]
            ]
            raise CourseError(
                f"{side}/{assignment.name} must get {wanted:g} of {points:g} points, but got "
                f"{rehearsal.score:g} of {rehearsal.maximum:g}.\n" + "\n".join(wrong)
            )
    return Checked(state, scores[0], scores[1], round(time.monotonic() - start, 2), left_out)


def needing_gpu(roster: list[GradedTest]) -> list[GradedTest]:
    """The tests that need a GPU."""
    return [test for test in roster if test.needs_gpu]
