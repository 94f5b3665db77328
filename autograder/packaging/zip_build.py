"""Builds the handout zip and the autograder zip (release, -practice or -draft) into dist/."""

import hashlib
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from autograder.authoring.generated_files import check_forbidden, generated_files
from autograder.packaging.leak_check import check_zip
from autograder.packaging.term_hints import term_hints
from autograder.packaging.zip_contents import autograder_zip, handout
from autograder.semester import DIST, Semester, hints_folder, read_semester
from autograder.zip_archive import write_if_changed, zip_bytes
from common.assignment import Assignment
from common.errors import CourseError
from common.testing.feedback.hints import HINT_FILES


class Kind(Enum):
    """What an autograder zip is good for, as its name ends."""

    RELEASE = ""
    PRACTICE = "-practice"  # all inputs are public
    DRAFT = "-draft"  # a secret salt, but no hints that fit


@dataclass(frozen=True)
class Built:
    """The zips of one assignment."""

    handout: Path
    autograder: Path
    kind: Kind

    @property
    def fingerprint(self) -> str:
        """A hash of the autograder zip."""
        return hashlib.sha256(self.autograder.read_bytes()).hexdigest()


def handout_file(assignment: Assignment, dist: Path = DIST) -> Path:
    """Where the handout lies."""
    return dist / f"{assignment.short}-handout.zip"


def autograder_file(assignment: Assignment, kind: Kind, dist: Path = DIST) -> Path:
    """Where the autograder zip of that kind lies."""
    return dist / f"{assignment.short}-autograder{kind.value}.zip"


def find_autograder(assignment: Assignment, dist: Path = DIST) -> Path:
    """The autograder zip that was built last, of whatever kind."""
    for kind in Kind:
        if autograder_file(assignment, kind, dist).is_file():
            return autograder_file(assignment, kind, dist)
    raise CourseError(f"{autograder_file(assignment, Kind.PRACTICE, dist)} is missing: run `make`.")


def build(assignment: Assignment, dist: Path = DIST, semester: Semester | None = None) -> Built:
    """Build both zips, and open them again to look for leaks. The term is the checkout's own."""
    generated_files(assignment)  # so that nothing is packed that can't be read
    check_forbidden(assignment)
    semester = semester or read_semester()
    members = autograder_zip(assignment, semester.to_bytes())
    kind, hints = kind_and_hints(assignment, semester, dist)
    members |= {f"tests/{assignment.name}/{name}": content for name, content in hints.items()}
    for_students = handout_file(assignment, dist)
    file = autograder_file(assignment, kind, dist)
    for target, content in ((for_students, handout(assignment)), (file, members)):
        write_if_changed(target, zip_bytes(content))
        try:
            check_zip(target, assignment)
        except Exception:
            target.unlink()  # a zip that leaks must not lie about
            raise
    for other in Kind:  # one of another term, or with hints that no longer fit
        if other is not kind:
            autograder_file(assignment, other, dist).unlink(missing_ok=True)
    return Built(for_students, file, kind)


def kind_and_hints(
    assignment: Assignment, semester: Semester, dist: Path
) -> tuple[Kind, dict[str, bytes]]:
    """What kind of zip a term gives now, and the hint files that it carries."""
    if semester.is_practice:
        files = [hints_folder(assignment, semester) / name for name in HINT_FILES]
        return Kind.PRACTICE, {file.name: file.read_bytes() for file in files if file.is_file()}
    hints = term_hints(assignment, semester, dist)
    return (Kind.DRAFT, {}) if hints is None else (Kind.RELEASE, hints)
