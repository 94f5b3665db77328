"""Keeps the hint files up to date: what mistakes gave in a proof goes where tests look for it."""

from pathlib import Path

from autograder.packaging.archive import write_if_changed
from autograder.packaging.build import DIST, hidden_hints_file
from autograder.proving.case import ONE_SALT, Case
from autograder.proving.mistakes import load_mistakes
from autograder.proving.reach import find_reach
from autograder.proving.sightings import hint_file, outdated
from autograder.proving.verify import Gradings, Progress, gather, verdicts_of
from common.assignment import ROOT, Assignment
from common.hints import PUBLIC_HINTS, HintFile, hint_bytes, read_hints
from common.roster import TIMING, read_roster


def public_file(assignment: Assignment) -> Path:
    """The hints of public tests, which are committed and go to students."""
    return ROOT / "tests" / assignment.name / PUBLIC_HINTS


def fresh_hints(assignment: Assignment, evidence: Gradings, hidden: bool) -> HintFile:
    """The hints that gradings of all mistakes give, for public or for hidden tests."""
    mistakes = load_mistakes(assignment)
    verdicts = {
        mistake.name: verdicts_of(evidence.replies, f"mistake {mistake.name}:")
        for mistake in mistakes
    }
    roster = read_roster(ROOT / "tests" / assignment.name)
    timed = {test.name for test in roster if TIMING in test.tags}
    return hint_file(mistakes, verdicts, hidden, timed)


def record_public(assignment: Assignment, evidence: Gradings) -> bool:
    """Write the committed hint file, if it isn't current; whether it wasn't."""
    fresh = fresh_hints(assignment, evidence, hidden=False)
    # Float noise differs between machines: the committed file changes only when hints do.
    if not outdated(read_hints(public_file(assignment)), fresh):
        return False
    return write_if_changed(public_file(assignment), hint_bytes(fresh))


def record_hidden(assignment: Assignment, progress: Progress, dist: Path = DIST) -> bool:
    """Grade all mistakes on the hidden tests, and write their hints; whether they changed."""
    case = Case(assignment, ONE_SALT)
    case.reach = find_reach(assignment, case.salts[0], dist)
    evidence = gather(assignment, case.mistake_jobs(hidden=True), progress, dist)
    fresh = fresh_hints(assignment, evidence, hidden=True)
    return write_if_changed(hidden_hints_file(assignment, dist), hint_bytes(fresh))
