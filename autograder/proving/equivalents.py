"""Reads equivalent.toml: mutants that no test needs to notice, each with its reason."""

import tomllib

import msgspec

from autograder.proving.mutants import Mutant
from common.assignment import ROOT, Assignment, Name, Record
from common.errors import CourseError


class Equivalent(Record, frozen=True):
    """A mutant, and why no test can or should notice it."""

    mutant: Name
    change: Name
    reason: Name


class EquivalentFile(Record, frozen=True):
    """The whole of `equivalent.toml`."""

    equivalent: list[Equivalent]


def read_equivalents(assignment: Assignment, mutants: list[Mutant]) -> dict[str, str]:
    """The reasons by mutant; an entry whose mutant is gone is an error."""
    file = ROOT / "solutions" / assignment.name / "equivalent.toml"
    if not file.is_file():
        return {}
    where = file.relative_to(ROOT)
    try:
        content = msgspec.convert(tomllib.loads(file.read_text("utf-8")), EquivalentFile)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{where}: {error}") from None
    changes = {mutant.name: mutant.change for mutant in mutants}
    for entry in content.equivalent:
        if mutants and entry.mutant not in changes:
            raise CourseError(f"{where}: {entry.mutant} is no mutant of the reference any more.")
        if mutants and entry.change.strip() != changes[entry.mutant].strip():
            raise CourseError(
                f"{where}: {entry.mutant} makes another change now:\n{changes[entry.mutant]}"
            )
    return {entry.mutant: entry.reason for entry in content.equivalent}
