"""Builds an assignment's two zips into dist/."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.generate import check_forbidden, generated_files
from autograder.packaging.archive import write_if_changed, zip_bytes
from autograder.packaging.contents import autograder_zip, handout
from autograder.packaging.leaks import check_zip
from common.assignment import ROOT, Assignment
from common.hints import HIDDEN_HINTS
from common.semester import read_semester

DIST = ROOT / "dist"


@dataclass(frozen=True)
class Built:
    """The zips of one assignment."""

    handout: Path
    autograder: Path
    changed: bool

    @property
    def fingerprint(self) -> str:
        """A hash of the autograder zip."""
        return hashlib.sha256(self.autograder.read_bytes()).hexdigest()


def hidden_hints_file(assignment: Assignment, dist: Path = DIST) -> Path:
    """The hints of hidden tests: they belong to one salt, so its hash is in the name."""
    return dist / f"{assignment.short}-{read_semester().fingerprint}.hints"


def build(assignment: Assignment, dist: Path = DIST) -> Built:
    """Build both zips, and open them again to look for leaks."""
    generated_files(assignment)  # so that nothing is packed that can't be read
    check_forbidden(assignment)
    semester = read_semester().to_bytes()
    contents = {
        dist / f"{assignment.short}-handout.zip": handout(assignment),
        dist / f"{assignment.short}-autograder.zip": autograder_zip(assignment, semester),
    }
    hints = hidden_hints_file(assignment, dist)
    if hints.is_file():
        place = f"tests/{assignment.name}/{HIDDEN_HINTS}"
        contents[dist / f"{assignment.short}-autograder.zip"][place] = hints.read_bytes()
    changed = False
    for file, members in contents.items():
        changed = write_if_changed(file, zip_bytes(members)) or changed
        try:
            check_zip(file, assignment)
        except Exception:
            file.unlink()  # a zip that leaks must not lie about
            raise
    handout_file, autograder_file = contents
    return Built(handout_file, autograder_file, changed)
