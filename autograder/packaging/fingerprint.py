"""Hashes everything that decides an assignment's gradings, for zips, caches and proofs."""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograder.authoring.course_imports import file_hash, module_file
from autograder.authoring.lab_master import MASTER
from autograder.authoring.reference_artifacts import RECORD, sha256
from autograder.packaging.graded_test_hash import test_hashes
from autograder.packaging.grading_code_hash import grading_code_hash
from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.testing.artifacts import reference_artifact


def fingerprint(assignment: Assignment, proving_modules: Iterable[str]) -> dict[str, str]:
    """The hash of each part that decides, by a name for people.

    proving_modules: the code that draws conclusions from gradings.
    """
    solution = ROOT / "solutions" / assignment.name
    catalogs = [solution / name for name in ("mistakes.toml", "unnamed.toml", "equivalent.toml")]
    return {
        "tests": joined(
            f"{name} {digest}" for name, digest in sorted(test_hashes(assignment).items())
        ),
        "solution": joined(file_hash(solution / name) for name in assignment.files),
        "alternatives": joined(
            f"{file.relative_to(solution)} {file_hash(file)}"
            for file in sorted(solution.glob("alternatives/*/*.py"))
        ),
        "mistakes": joined(toml_hash(file) for file in catalogs if file.is_file()),
        "lab": files_hash([solution / MASTER]),
        "artifacts": files_hash([reference_artifact(assignment, RECORD)]),
        "shared code": joined([grading_code_hash(assignment)]),
        "proving code": joined(file_hash(module_file(name)) for name in proving_modules),
    }


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the parts that changed, came or went."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def files_hash(files: Iterable[Path]) -> str:
    """One hash of the bytes of those files that are there."""
    return joined(sha256(file.read_bytes()) for file in files if file.is_file())


def joined(lines: Iterable[str]) -> str:
    """One hash of many lines; short, since eight of them stand in each ledger."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def toml_hash(file: Path) -> str:
    """The hash of what a TOML file says: comments and formatting don't count."""
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file.relative_to(ROOT)}: {error}") from None
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
