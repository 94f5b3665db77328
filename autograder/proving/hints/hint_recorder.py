"""Records hints from a proof's gradings, and writes the committed files of the practice term."""

from pathlib import Path

from autograder.proving.hints.hint_files import hint_file, outdated
from autograder.proving.job_runner import JobResults
from autograder.proving.wrong_versions.mistakes import load_mistakes
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT, Assignment
from common.testing.feedback.hints import (
    HIDDEN_HINTS,
    PUBLIC_HINTS,
    HintFile,
    hint_bytes,
    read_hints,
)
from common.testing.graded_tests import read_graded_tests


def committed_file(assignment: Assignment, hidden: bool) -> Path:
    """The committed hints: those of public tests go to students, of hidden ones to practice."""
    return ROOT / "tests" / assignment.name / (HIDDEN_HINTS if hidden else PUBLIC_HINTS)


def fresh_hints(assignment: Assignment, evidence: JobResults, hidden: bool) -> HintFile:
    """The hints that gradings of all mistakes give, for public or for hidden tests."""
    mistakes = load_mistakes(assignment)
    verdicts = {mistake.name: evidence.verdicts(f"mistake {mistake.name}:") for mistake in mistakes}
    tests = read_graded_tests(ROOT / "tests" / assignment.name)
    return hint_file(mistakes, verdicts, tests, hidden)


def current_hints(assignment: Assignment, evidence: JobResults, hidden: bool) -> HintFile:
    """The committed hints as long as they hold, else fresh ones.

    Float noise differs between machines: the committed files change only when hints do.
    """
    stored = read_hints(committed_file(assignment, hidden))
    fresh = fresh_hints(assignment, evidence, hidden)
    return fresh if outdated(stored, fresh) else stored


def record_hints(assignment: Assignment, evidence: JobResults) -> list[Path]:
    """Write the committed hint files, as far as they aren't current; those that changed."""
    return [
        committed_file(assignment, hidden)
        for hidden in (False, True)
        if write_if_changed(
            committed_file(assignment, hidden),
            hint_bytes(current_hints(assignment, evidence, hidden)),
        )
    ]
