"""Proves an assignment under a term's secret salt, and records the hints for it."""

from collections.abc import Iterable
from pathlib import Path

from autograder.packaging.term_hints import term_hints, unfinished_file, write_term
from autograder.proving.hints.hint_recorder import fresh_hints
from autograder.proving.job_runner import Progress
from autograder.proving.ledgers.proof_ledger import current_ledger
from autograder.proving.proof_fingerprint import PROVING_MODULES
from autograder.proving.proof_jobs import Scope
from autograder.proving.verification import verify
from autograder.semester import DIST, Semester
from common.assignment import Assignment
from common.errors import CourseError
from common.testing.feedback.hints import HIDDEN_HINTS, HINT_FILES, hint_bytes

SHOWN = 5


def check_ledgers(assignments: Iterable[Assignment]) -> None:
    """Refuse to release what isn't proved as it is now."""
    problems = []
    for assignment in assignments:
        try:
            current_ledger(assignment)
        except CourseError as error:
            problems.append(str(error))
    if problems:
        raise CourseError("\n".join(problems))


def prove_term(
    assignment: Assignment, semester: Semester, progress: Progress, dist: Path = DIST
) -> bool:
    """Prove the grader under a secret salt, and keep the hints that fit it.

    Mutants and other salts are the ledger's. False where this was done before.
    """
    if semester.is_practice:
        raise ValueError("the practice salt is public")
    if term_hints(assignment, semester, dist) is not None:
        return False
    proof, evidence = verify(
        assignment, Scope(seeds=1, mutants=False, salt=semester.salt), progress, dist
    )
    problems = proof.all_problems
    if problems:
        unfinished_file(semester.fingerprint, dist).unlink(missing_ok=True)  # NEW=1 draws another
        more = [f"... and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise CourseError(
            f"{assignment.short} can't be proved under {semester.label}, so no zip is made:\n"
            + "\n".join([*problems[:SHOWN], *more])
            + "\n`make semester NEW=1` draws another salt; if that fails too, fix the problems."
        )
    hints = {
        name: hint_bytes(fresh_hints(assignment, evidence, hidden=name == HIDDEN_HINTS))
        for name in HINT_FILES
    }
    write_term(assignment, semester, hints, evidence.sources, PROVING_MODULES, dist)
    return True
