"""Brings assignments up to date for `make`: generate, build, check; skips unchanged ones."""

import hashlib
import os
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autograder.authoring.generated_files import generate
from autograder.authoring.otter_assign import is_stale, write_labs
from autograder.authoring.reference_artifacts import outdated_sources, reference_artifacts
from autograder.packaging.rehearsal import end_rehearsals
from autograder.packaging.zip_build import Built, Kind, autograder_file, build, handout_file
from autograder.packaging.zip_contents import TORCH_INDEX
from autograder.proving.ledgers.proof_ledger import current_ledger
from autograder.release.assignment_checks import answers_state, check_answers, check_tests
from autograder.release.zip_check import Checked, Show, ZipCheck
from autograder.semester import DIST
from autograder.semester import FILES as SECRETS
from autograder.zip_archive import write_if_changed
from common.assignment import LAB_FILE, ROOT, Assignment, Record
from common.errors import CourseError
from common.testing.graded_tests import read_graded_tests

# All that a checkout's zips and their check are made of.
SOURCES = ("assignments", "autograder", "common", "solutions", "tests")
FILES = (ROOT / "requirements.txt", ROOT / "pyproject.toml", *SECRETS)
IGNORED = {"__pycache__", "tooling"}


class Released(Record, frozen=True):
    """What `make` keeps of one assignment, so that nothing is done again while no file changes."""

    stamp: str
    checked: Checked
    kind: str
    tests: int
    points: float
    notices: tuple[str, ...]
    answers: str  # the state in which stored answers were found to be current


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
        check_sources(assignment, show, dist)
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


def check_sources(assignment: Assignment, show: Show, dist: Path) -> None:
    """Refuse wrong points, a missing oracle, and stored answers that are missing or stale."""
    check_tests(assignment)
    kept = read_memory(assignment, dist)
    if assignment.stores_answers and (kept is None or kept.answers != answers_state(assignment)):
        show(assignment.short, "checking the stored answers")
        check_answers(assignment)


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
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    state = check_state(assignment, built, training)
    kept = read_memory(assignment, dist)
    unchanged = kept is not None and kept.checked.fingerprint == state
    if kept is not None and unchanged:
        checked = kept.checked
    else:
        checked = ZipCheck(assignment, built, graded_tests, training).run(state, show)
    points = sum(test.points for test in graded_tests)
    row = Row(assignment, len(graded_tests), points, built, checked, unchanged, notices(assignment))
    released = Released(
        stamp=stamp(built, training),
        checked=checked,
        kind=built.kind.value,
        tests=row.tests,
        points=row.points,
        notices=row.notices,
        answers=answers_state(assignment),
    )
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


def check_state(assignment: Assignment, built: Built, training: bool) -> str:
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
