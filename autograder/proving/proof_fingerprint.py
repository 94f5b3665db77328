"""Hashes what a ledger depends on: the gradings' fingerprint and the code that proves."""

from autograder.authoring.course_imports import forget_sources
from autograder.packaging.fingerprint import fingerprint
from autograder.packaging.graded_test_hash import read_module
from common.assignment import Assignment

# What draws conclusions from gradings. The gradings themselves are remembered without it.
PROVING_MODULES = (
    *("autograder.proving.function_coverage", "autograder.proving.hint_findings"),
    "autograder.proving.hints.hint_files",
    *("autograder.proving.hints.hint_recorder", "autograder.proving.margins"),
    *("autograder.proving.proof_findings", "autograder.proving.proof_jobs"),
    "autograder.proving.right_versions",
    *("autograder.proving.verification", "autograder.proving.wrong_versions.equivalents"),
    "autograder.proving.wrong_versions.line_wrapping",
    "autograder.proving.wrong_versions.mistakes",
    "autograder.proving.wrong_versions.mutants",
    "autograder.proving.wrong_versions.source_patch",
    "autograder.proving.wrong_versions.source_tokens",
    "autograder.proving.wrong_versions.undefined_names",
    "autograder.proving.wrong_versions.unnamed",
    "autograder.authoring.overlay",  # what makes alternatives whole
)


def proof_fingerprint(assignment: Assignment) -> dict[str, str]:
    """The hash of each part that decides a proof, by a name for people."""
    return fingerprint(assignment, PROVING_MODULES)


def fresh_fingerprint(assignment: Assignment) -> dict[str, str]:
    """The fingerprint of what is on disk now, whatever was read before."""
    forget_sources()
    read_module.cache_clear()
    return proof_fingerprint(assignment)
