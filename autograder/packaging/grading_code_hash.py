"""Hashes the shared code that judge and children import, plus settings and versions."""

import hashlib

import msgspec

from autograder.authoring.course_imports import file_hash, import_closure, imports_of, module_file
from autograder.authoring.lab_master import MASTER
from autograder.packaging.requirement_parts import DATA_REQUIREMENTS, grader_requirements
from common.assignment import ROOT, Assignment

# The judge of a proof, and the plugin that every judge loads. All else is found by imports.
ROOTS = ("autograder.grading.warm.warm_judge", "common.testing.fixtures")


def grading_code_hash(assignment: Assignment) -> str:
    """A hash of the shared code, the settings and the pinned versions that decide a grading."""
    digest = hashlib.sha256()
    for module in sorted(imported_modules(assignment)):
        digest.update(f"{module} {file_hash(module_file(module))}\n".encode())
    settings = msgspec.to_builtins(assignment)
    del settings["title"]
    for exercise in settings["exercises"]:
        del exercise["minutes"]
    digest.update(msgspec.json.encode(settings, order="deterministic"))
    digest.update(grader_requirements().encode())
    if assignment.data:
        lines = (ROOT / DATA_REQUIREMENTS).read_text("utf-8").splitlines()
        pinned = [line for line in lines if line and not line.startswith("#")]
        digest.update("\n".join(pinned).encode())
    return digest.hexdigest()


def imported_modules(assignment: Assignment) -> set[str]:
    """Every shared module that a grading of the assignment imports."""
    solution = ROOT / "solutions" / assignment.name
    files = [
        *sorted((ROOT / "tests" / assignment.name).glob("*.py")),
        *(solution / name for name in assignment.files),
        *sorted(solution.glob("alternatives/*/*.py")),
        *([solution / MASTER] if assignment.lab else []),
    ]
    found = import_closure(
        [
            *ROOTS,
            *assignment.standins,
            *assignment.lab_standins,
            *(f"common.data.{name}" for name in (assignment.lab.data if assignment.lab else ())),
            *(name for file in files for name in imports_of(file)),
        ]
    )
    return {module for module in found if not module.startswith("assignments")}
