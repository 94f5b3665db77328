"""The fingerprint of an assignment: a hash of all that decides what its gradings find."""

import hashlib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

from autograder.authoring.artifacts import RECORD
from autograder.authoring.imports import file_hash
from autograder.labs.master import MASTER
from autograder.packaging.grading_code import grading_code_hash
from autograder.packaging.test_code import test_hashes
from common.artifacts import reference_artifact
from common.assignment import ROOT, Assignment
from common.errors import CourseError


def fingerprint(assignment: Assignment) -> dict[str, str]:
    """The hash of each part that decides, by a name for people."""
    solution = ROOT / "solutions" / assignment.name
    tests = ROOT / "tests" / assignment.name
    catalogues = [solution / "mistakes.toml", solution / "equivalent.toml"]
    return {
        "tests": joined(
            f"{name} {digest}" for name, digest in sorted(test_hashes(assignment).items())
        ),
        "stored answers": joined(bytes_hash(file) for file in sorted(tests.glob("*.npz"))),
        "solution": joined(file_hash(solution / name) for name in assignment.files),
        "alternatives": joined(
            f"{file.relative_to(solution)} {file_hash(file)}"
            for file in sorted(solution.glob("alternatives/*/*.py"))
        ),
        "mistakes": joined(toml_hash(file) for file in catalogues if file.is_file()),
        "lab": joined(bytes_hash(solution / name) for name in [MASTER] if assignment.lab),
        "artifacts": joined(
            bytes_hash(file) for file in [reference_artifact(assignment, RECORD)] if file.is_file()
        ),
        "shared code": joined([grading_code_hash(assignment)]),
    }


def joined(lines: Iterable[str]) -> str:
    """One hash of many lines; short, since eight of them stand in each ledger."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def bytes_hash(file: Path) -> str:
    """The hash of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def toml_hash(file: Path) -> str:
    """The hash of what a TOML file says: comments and formatting don't count."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file.relative_to(ROOT)}: {error}") from None
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
