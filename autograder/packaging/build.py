"""Builds an assignment's two zips into dist/."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from autograder.packaging.archive import write_if_changed, zip_bytes
from autograder.packaging.contents import autograder_zip, handout
from autograder.packaging.leaks import check_zip
from common.assignment import ROOT, Assignment
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


def build(assignment: Assignment, dist: Path = DIST) -> Built:
    """Build both zips, and open them again to look for leaks."""
    semester = read_semester().to_bytes()
    contents = {
        dist / f"{assignment.short}-handout.zip": handout(assignment),
        dist / f"{assignment.short}-autograder.zip": autograder_zip(assignment, semester),
    }
    changed = False
    for file, members in contents.items():
        changed = write_if_changed(file, zip_bytes(members)) or changed
        try:
            check_zip(file)
        except Exception:
            file.unlink()  # a zip that leaks must not lie about
            raise
    handout_file, autograder_file = contents
    return Built(handout_file, autograder_file, changed)
