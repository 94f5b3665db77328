"""Brings assignments up to date: generate, build, and grade reference and stub by the zip."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from autograder.authoring.artifacts import outdated_sources, reference_artifacts
from autograder.authoring.generate import generate
from autograder.labs.assign import is_stale, write_labs
from autograder.packaging.archive import write_if_changed
from autograder.packaging.build import Built, Kind, autograder_file, build, handout_file
from autograder.packaging.contents import TORCH_INDEX
from autograder.packaging.rehearsal import Rehearsal, end_rehearsals, rehearse
from autograder.proving.ledger import current_ledger
from common.assignment import LAB_FILE, ROOT, Assignment, Record
from common.errors import CourseError
from common.roster import TRAINING, GradedTest, read_roster
from common.semester import DIST
from common.semester import FILES as SECRETS

# All that a checkout's zips and their check are made of.
SOURCES = ("assignments", "autograder", "common", "solutions", "tests")
FILES = (ROOT / "requirements.txt", ROOT / "pyproject.toml", *SECRETS)
IGNORED = {"__pycache__", "tooling"}

Show = Callable[[str, str], None]  # the assignment's short name, and what is being done


class Checked(Record, frozen=True):
    """What grading the reference and the stub gave, for one state of the zip and of both."""

    fingerprint: str
    reference: float
    stub: float
    seconds: float
    not_run: dict[str, float]  # points of tests that were left out, by the reason


class Released(Record, frozen=True):
    """What `make` keeps of one assignment, so that nothing is done again while no file changes."""

    stamp: str
    checked: Checked
    kind: str
    tests: int
    points: float
    notices: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One line of the table that `make` prints."""

    assignment: Assignment
    tests: int
    points: float
    built: Built
    checked: Checked
    unchanged: bool
    notices: tuple[str, ...]


def release(
    assignments: Iterable[Assignment], show: Show, training: bool = False, dist: Path = DIST
) -> list[Row]:
    """Bring assignments up to date, side by side on all cores. What hasn't changed isn't redone."""
    chosen = list(assignments)
    known = {entry.short: row_of_unchanged(entry, training, dist) for entry in chosen}
    changed = [assignment for assignment in chosen if known[assignment.short] is None]
    for assignment in changed:  # one after the other: notebooks are made by a library
        show(assignment.short, "generating")
        write_generated(assignment, show)
        show(assignment.short, "waiting")
    made: dict[str, Future[Row]] = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            for entry in changed:
                made[entry.short] = pool.submit(release_one, entry, show, training, dist)
            return [known[entry.short] or made[entry.short].result() for entry in chosen]
        except KeyboardInterrupt:
            running = [future for future in made.values() if not future.cancel()]
            while wait(running, timeout=0.1).not_done:  # a thread may begin one more grading
                end_rehearsals()
            raise


def write_generated(assignment: Assignment, show: Show) -> None:
    """Write stubs, tables and notebooks, as far as they are stale."""
    files = generate([assignment])
    if assignment.lab and is_stale(assignment):
        files += write_labs([assignment])
    for file in files:
        show(assignment.short, f"wrote {file.relative_to(ROOT)}")


def release_one(assignment: Assignment, show: Show, training: bool, dist: Path) -> Row:
    """Build the zips of one assignment, and grade reference and stub unless nothing changed."""
    show(assignment.short, "building the zips")
    built = build(assignment, dist)
    roster = read_roster(ROOT / "tests" / assignment.name)
    state = fingerprint(assignment, built, training)
    kept = read_memory(assignment, dist)
    unchanged = kept is not None and kept.checked.fingerprint == state
    if kept is not None and unchanged:
        checked = kept.checked
    else:
        checked = Check(assignment, built, roster, training).run(state, show)
    points = sum(test.points for test in roster)
    row = Row(assignment, len(roster), points, built, checked, unchanged, notices(assignment))
    now = stamp(built, training)
    released = Released(now, checked, built.kind.value, row.tests, row.points, row.notices)
    write_if_changed(memory_file(assignment, dist), msgspec.json.encode(released))
    show(assignment.short, "done")
    return row


def row_of_unchanged(assignment: Assignment, training: bool, dist: Path) -> Row | None:
    """The row of last time, if no file has changed since: then nothing is even looked at."""
    kept = read_memory(assignment, dist)
    if kept is None:
        return None
    kind = Kind(kept.kind)
    built = Built(handout_file(assignment, dist), autograder_file(assignment, kind, dist), kind)
    try:
        if stamp(built, training) != kept.stamp:
            return None
    except FileNotFoundError:
        return None
    return Row(assignment, kept.tests, kept.points, built, kept.checked, True, kept.notices)


def stamp(built: Built, training: bool) -> str:
    """A hash of names, sizes and times of all files that decide, the zips among them."""
    digest = hashlib.sha256(f"{sys.version} {training} {os.environ.get(TORCH_INDEX)}".encode())
    files = [built.handout, built.autograder, *(file for file in FILES if file.exists())]
    for name in SOURCES:
        for folder, inner, names in os.walk(ROOT / name):
            inner[:] = sorted({*inner} - IGNORED)
            files += [Path(folder, name) for name in sorted(names)]
    for file in files:
        entry = file.stat()
        digest.update(f"{file} {entry.st_size} {entry.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def notices(assignment: Assignment) -> tuple[str, ...]:
    """What a person should know: a proof or weights that are out of date."""
    found = []
    changed = outdated_sources(assignment)
    if changed:
        found.append(
            f"The weights in solutions/{assignment.name}/artifacts were trained before "
            f"{', '.join(changed)} changed: `make artifacts A={assignment.short}`."
        )
    try:
        current_ledger(assignment)
    except CourseError as error:
        found.append(str(error))
    return tuple(found)


def fingerprint(assignment: Assignment, built: Built, training: bool) -> str:
    """A hash of all that decides what the check will say."""
    digest = hashlib.sha256(f"{built.fingerprint} {training}".encode())
    for side in ("solutions", "assignments"):
        for name in assignment.files:
            digest.update((ROOT / side / assignment.name / name).read_bytes())
    if assignment.lab:
        digest.update((ROOT / "assignments" / assignment.name / LAB_FILE).read_bytes())
    for content in reference_artifacts(assignment).values():
        digest.update(content)
    return digest.hexdigest()


def memory_file(assignment: Assignment, dist: Path) -> Path:
    """Where it is kept what the last `make` found."""
    return dist / f"{assignment.short}-checked.json"


def read_memory(assignment: Assignment, dist: Path) -> Released | None:
    """What an earlier `make` found, if it can be read."""
    try:
        return msgspec.json.decode(memory_file(assignment, dist).read_bytes(), type=Released)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
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
            for name, content in reference_artifacts(assignment).items():
                (folder / name).write_bytes(content)
        yield folder


@dataclass(frozen=True)
class Check:
    """Grades the reference, which must get all points, and the stub, which must get none.

    The zip leaves out what needs a GPU, and training unless asked, and must say so of exactly
    those tests.
    """

    assignment: Assignment
    built: Built
    roster: list[GradedTest]
    training: bool

    def run(self, state: str, show: Show) -> Checked:
        """Grade both sides; an error says what is wrong."""
        start = time.monotonic()
        left_out = self.left_out()
        points = sum(test.points for test in self.roster)
        wanted = points - sum(left_out.values())
        reference = self.grade("solutions", wanted, show).score
        stub = self.grade("assignments", 0.0, show).score
        seconds = round(time.monotonic() - start, 2)
        return Checked(state, reference, stub, seconds, left_out)

    def left_out(self) -> dict[str, float]:
        """The points that are not graded here, by the reason."""
        found: dict[str, float] = {}
        for test in self.roster:
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
        with laid_out(self.assignment, side) as submission:
            rehearsal = rehearse(self.built.autograder, submission, *options)
        archive = self.built.autograder.name
        if not rehearsal.results["extra_data"]["finished"]:
            raise CourseError(f"{archive}: {rehearsal.results['output']}")
        if rehearsal.tests != len(self.roster):
            count = f"{rehearsal.tests} tests on {side}, not {len(self.roster)}"
            raise CourseError(f"{archive} ran {count}.")
        unrun = {test.name for test in self.roster if self.reason(test)}
        if rehearsal.not_run != unrun:
            odd = ", ".join(sorted(rehearsal.not_run ^ unrun))
            raise CourseError(f"{archive} left out other tests than it should: {odd}.")
        points = sum(test.points for test in self.roster)
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
