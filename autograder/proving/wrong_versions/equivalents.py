"""Reads equivalent.toml: mutants that no test needs to notice, each with its reason."""

import tomllib
from typing import Annotated

import msgspec
from msgspec import Meta

from autograder.authoring.syntax_hash import python_hash
from autograder.proving.right_versions import reference
from autograder.proving.wrong_versions.mistakes import patched_file
from autograder.proving.wrong_versions.mutants import Mutant
from autograder.proving.wrong_versions.source_patch import Patch, apply_patch
from common.assignment import ROOT, Assignment, Name, Record
from common.errors import CourseError


class Equivalent(Record, frozen=True):
    """A mutant, by the change that it makes, and why no test can or should notice it."""

    function: Name  # or Class.method
    change: Annotated[str, Meta(pattern=r"^\s*- [\s\S]+\n\+ ")]  # old lines, then new ones
    reason: Name
    file: str = ""  # may be left out where an assignment has one file
    occurrence: Annotated[int, Meta(ge=0)] = 0  # of the old lines, where the function repeats them

    @property
    def old(self) -> str:
        """The code that the mutant replaces."""
        return self.side("-")

    @property
    def new(self) -> str:
        """The code that replaces it in the mutant."""
        return self.side("+")

    def side(self, sign: str) -> str:
        """The lines with a sign before them, without it."""
        lines = self.change.strip().split("\n")
        return "\n".join(line[2:] for line in lines if line.startswith(sign))


class EquivalentFile(Record, frozen=True):
    """The whole of `equivalent.toml`."""

    equivalent: list[Equivalent]


def read_equivalents(assignment: Assignment, mutants: list[Mutant]) -> dict[str, str]:
    """The reasons by mutant; entries whose mutant is gone are an error that names all of them.

    Without mutants, only the code that the entries change is looked for.
    """
    file = ROOT / "solutions" / assignment.name / "equivalent.toml"
    if not file.is_file():
        return {}
    where = file.relative_to(ROOT)
    try:
        content = msgspec.convert(tomllib.loads(file.read_text("utf-8")), EquivalentFile)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{where}: {error}") from None
    by_code: dict[tuple[str, str], list[str]] = {}
    changed = {entry.function for entry in content.equivalent}
    for mutant in mutants:
        if mutant.function in changed:
            by_code.setdefault((mutant.file, python_hash(mutant.source)), []).append(mutant.name)
    reasons: dict[str, str] = {}
    problems: list[str] = []
    for entry in content.equivalent:
        here = f"{where}, {entry.function}, `{entry.old}` to `{entry.new}`"
        try:
            code = changed_code(entry, assignment, here)
        except CourseError as error:
            problems.append(str(error))
            continue
        if mutants and code not in by_code:
            problems.append(f"{here}: it is no longer a mutant of the reference.")
        reasons |= dict.fromkeys(by_code.get(code, []), entry.reason)
    if problems:
        raise CourseError("\n".join(problems))
    return reasons


def changed_code(entry: Equivalent, assignment: Assignment, here: str) -> tuple[str, str]:
    """The file that an entry changes, and a hash of the code that comes of it."""
    name = patched_file(entry.file, assignment, here)
    source = reference(assignment)[name].decode("utf-8")
    patch = Patch(name, entry.function, entry.old, entry.new, entry.occurrence)
    return name, python_hash(apply_patch(source, patch, here).encode())
