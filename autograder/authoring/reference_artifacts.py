"""Trains and checks the reference's artifacts: weights and the solved lab (`make artifacts`).

`solutions/aN/artifacts.py` has `make(folder)`; `make artifacts` runs it, as
`python -m autograder.authoring.reference_artifacts aN FOLDER`, and commits nothing by itself.
"""

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from autograder.authoring.course_imports import file_hash, import_closure, imports_of, module_file
from autograder.authoring.lab_master import read_master, solved_notebook
from common.assignment import LAB_FILE, ROOT, Artifact, Assignment, Record, load_all
from common.atomic_write import write_atomically
from common.determinism import SAME_ARITHMETIC
from common.errors import CourseError
from common.student_code.loader import mount
from common.testing.artifacts import read_artifact, reference_artifact

RECORD = "made_from.json"
SECONDS_BETWEEN = 20.0  # two lines of progress


class MadeFrom(Record, frozen=True):
    """What artifacts were made from, and what came out: hashes by file."""

    sources: dict[str, str]
    artifacts: dict[str, str]


def reference_artifacts(assignment: Assignment) -> dict[str, bytes]:
    """All files that the reference submits with its code. A missing or damaged one is an error."""
    found = {}
    record = read_record(assignment) if trained(assignment) else None
    for artifact in trained(assignment):
        file = reference_artifact(assignment, artifact.file)
        content = read_artifact(file, artifact.limit)
        if content is None or record is None or sha256(content) != record.artifacts[artifact.file]:
            state = "missing or too large" if content is None else "damaged"
            raise CourseError(
                f"{file.relative_to(ROOT)} is {state}. Restore it with `git checkout`, or retrain "
                f"it with `make artifacts A={assignment.short}`, which takes minutes."
            )
        found[artifact.file] = content
    if assignment.lab:
        target = reference_artifact(assignment, LAB_FILE)
        found[LAB_FILE] = write_lab(target, solved_notebook(read_master(assignment)))
    return found


def trained(assignment: Assignment) -> list[Artifact]:
    """The artifacts that `artifacts.py` makes; the solved lab comes from its master."""
    return [artifact for artifact in assignment.artifacts if artifact.file != LAB_FILE]


def write_lab(file: Path, content: bytes) -> bytes:
    """Put the solved lab where `pytest --impl=solutions` finds it, in one step."""
    if read_artifact(file, len(content)) != content:
        write_atomically(file, content)
    return content


def sources(assignment: Assignment) -> dict[str, str]:
    """What makes the artifacts: `artifacts.py`, and what it imports of assignments and data."""
    maker = ROOT / "solutions" / assignment.name / "artifacts.py"
    modules = import_closure(imports_of(maker))
    decide = [module for module in modules if module.startswith(("assignments.", "common.data."))]
    files = [maker, *sorted(module_file(module) for module in decide)]
    return {file.relative_to(ROOT).as_posix(): file_hash(file) for file in files}


def outdated_sources(assignment: Assignment) -> list[str]:
    """The files that have changed, come or gone since the artifacts were made."""
    if not trained(assignment):
        return []
    before, now = read_record(assignment).sources, sources(assignment)
    return sorted(name for name in before.keys() | now if before.get(name) != now.get(name))


def read_record(assignment: Assignment) -> MadeFrom:
    """What the committed artifacts were made from."""
    file = reference_artifact(assignment, RECORD)
    try:
        record = msgspec.json.decode(file.read_bytes(), type=MadeFrom)
    except OSError:
        reason = "is missing"
    except (msgspec.DecodeError, UnicodeDecodeError):
        reason = "is damaged"
    else:
        if record.artifacts.keys() == {artifact.file for artifact in trained(assignment)}:
            return record
        reason = "lists different artifacts than assignment.toml"
    raise CourseError(
        f"{file.relative_to(ROOT)} {reason}. Retrain the artifacts with "
        f"`make artifacts A={assignment.short}`, which takes minutes."
    )


def make_artifacts(assignment: Assignment, say: Callable[[str], None]) -> list[Path]:
    """Make the artifacts again, and install them once all exist; the files."""
    source = ROOT / "solutions" / assignment.name / "artifacts.py"
    if not source.is_file():
        raise CourseError(f"{source} is missing: it trains the artifacts of {assignment.short}.")
    state = sources(assignment)
    with TemporaryDirectory(prefix="conv2gpt-artifacts-") as scratch:
        run_maker(assignment, Path(scratch), say)
        made = {}
        for artifact in trained(assignment):
            content = read_artifact(Path(scratch) / artifact.file, artifact.limit)
            if content is None:
                limit = f"{artifact.megabytes:g} MB"
                raise CourseError(f"{source} wrote no {artifact.file} of at most {limit}.")
            made[artifact.file] = content
    record = MadeFrom(state, {name: sha256(content) for name, content in made.items()})
    folder = reference_artifact(assignment, RECORD).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # The record comes last: without it, nothing counts as made.
    made[RECORD] = msgspec.json.format(msgspec.json.encode(record)) + b"\n"
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in made]


def run_maker(assignment: Assignment, folder: Path, say: Callable[[str], None]) -> None:
    """Run `artifacts.py` in a process of its own, and relay its progress."""
    maker = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "autograder.authoring.reference_artifacts",
            assignment.name,
            str(folder),
        ],
        cwd=ROOT,
        env={**os.environ, **SAME_ARITHMETIC},  # so that they don't depend on the number of cores
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with maker:
        try:
            said = relayed(maker.stderr or (), lambda line: say(f"{assignment.short}: {line}"))
        except BaseException:
            maker.kill()
            raise
    if maker.returncode:
        file = f"solutions/{assignment.name}/artifacts.py"
        raise CourseError(f"{file} failed:\n{said[-2000:]}")


def relayed(lines: Iterable[str], say: Callable[[str], None]) -> str:
    """Say one of the lines now and then, so that who waits sees it getting on; all lines."""
    everything, spoke = [], time.monotonic()
    for line in lines:
        everything.append(line)
        if time.monotonic() - spoke >= SECONDS_BETWEEN:
            say(line.rstrip())
            spoke = time.monotonic()
    return "".join(everything)


def sha256(content: bytes) -> str:
    """The hash of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def make_here(name: str, folder: Path) -> None:
    """Make them in this process. `assignments` means the reference and the given modules."""
    mount({entry.name: ROOT / "solutions" / entry.name for entry in load_all()})
    for entry in load_all():
        given = ROOT / "assignments" / entry.name
        sys.modules[f"assignments.{entry.name}"].__path__.append(str(given))
    importlib.import_module(f"solutions.{name}.artifacts").make(folder)


if __name__ == "__main__":
    make_here(sys.argv[1], Path(sys.argv[2]))
