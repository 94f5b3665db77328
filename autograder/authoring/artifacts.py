"""Makes the artifacts of a reference, once: `python -m autograder.authoring.artifacts aN FOLDER`.

They are what students train, such as weights. `solutions/aN/artifacts.py` has `make(folder)`.
"""

import fcntl
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from autograder.labs.master import read_master, solved_notebook
from common.arithmetic import SAME_ARITHMETIC
from common.artifacts import read_artifact, reference_artifacts
from common.assignment import LAB_FILE, ROOT, Assignment, load_all
from common.errors import CourseError
from common.submitted import mount

STAMP = "stamp"
SECONDS_BETWEEN = 20.0  # two lines of progress


def say_aside(sentence: str) -> None:
    """Tell whoever watches, without disturbing what the command prints."""
    print(sentence, file=sys.stderr)


def made_artifacts(
    assignment: Assignment, say: Callable[[str], None] = say_aside, root: Path = ROOT
) -> dict[str, bytes]:
    """The reference's artifacts, made now if they aren't there or what makes them has changed."""
    folder = reference_artifacts(assignment, root)
    folder.parent.mkdir(exist_ok=True)
    others = tuple(entry for entry in assignment.artifacts if entry.file != LAB_FILE)
    made = {}
    if others:
        made = made_by_script(replace(assignment, artifacts=others), folder, say, root)
    if assignment.lab:
        made[LAB_FILE] = write_lab(folder, solved_notebook(read_master(assignment, root)))
    return made


def made_by_script(
    assignment: Assignment, folder: Path, say: Callable[[str], None], root: Path
) -> dict[str, bytes]:
    """What `artifacts.py` makes, which takes minutes."""
    with locked(folder.with_suffix(".lock")) as lock:  # who comes second waits, and finds them made
        state = fingerprint(assignment, root)
        if read_stamp(folder) != state or None in contents(assignment, folder).values():
            say(f"{assignment.short}: making the reference's artifacts, which takes some minutes")
            make_anew(assignment, folder, state, root, lock, say)
        made = contents(assignment, folder)
    return {name: content for name, content in made.items() if content is not None}


def write_lab(folder: Path, content: bytes) -> bytes:
    """Put the solved lab beside the other artifacts, in one step, unless it is there."""
    file = folder / LAB_FILE
    if read_artifact(file, len(content)) != content:
        folder.mkdir(exist_ok=True)
        beside = folder / f".{LAB_FILE}-{os.getpid()}"
        beside.write_bytes(content)
        os.replace(beside, file)
    return content


def fingerprint(assignment: Assignment, root: Path = ROOT) -> str:
    """A hash of what makes them: the reference, its artifacts.py, what is given, the data."""
    reference, given = (root / top / assignment.name for top in ("solutions", "assignments"))
    files = [
        *(reference / name for name in (*assignment.files, "artifacts.py")),
        *(file for file in sorted(given.glob("*.py")) if file.name not in assignment.files),
        *sorted((root / "common" / "data").glob("*.py") if assignment.data else ()),
    ]
    digest = hashlib.sha256(repr(assignment.artifacts).encode())
    for file in files:
        content = file.read_bytes() if file.is_file() else b""
        digest.update(file.name.encode() + b"\0" + content)
    return digest.hexdigest()


def make_anew(
    assignment: Assignment,
    folder: Path,
    state: str,
    root: Path,
    lock: int,
    say: Callable[[str], None],
) -> None:
    """Make them beside their place, and put them there in one step."""
    source = root / "solutions" / assignment.name / "artifacts.py"
    if not source.is_file():
        raise CourseError(f"{source} is missing: it makes the artifacts of {assignment.short}.")
    beside = folder.with_suffix(".part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    maker = subprocess.Popen(
        [sys.executable, "-m", "autograder.authoring.artifacts", assignment.name, str(beside)],
        cwd=root,
        env={**os.environ, **SAME_ARITHMETIC},  # so that they don't depend on the number of cores
        pass_fds=[lock],  # held until the maker has ended, even if this process is killed
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with maker:
        said = relayed(maker.stderr or (), lambda line: say(f"{assignment.short}: {line}"))
    if maker.returncode:
        raise CourseError(f"{source} failed:\n{said[-2000:]}")
    for name, content in contents(assignment, beside).items():
        if content is None:
            limit = assignment.artifact(name).megabytes
            raise CourseError(f"{source} made no {name} of at most {limit:g} MB.")
    (beside / STAMP).write_text(state)
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)


def relayed(lines: Iterable[str], say: Callable[[str], None]) -> str:
    """Say one of the lines now and then, so that who waits sees it getting on; all lines."""
    everything, spoke = [], time.monotonic()
    for line in lines:
        everything.append(line)
        if time.monotonic() - spoke >= SECONDS_BETWEEN:
            say(line.rstrip())
            spoke = time.monotonic()
    return "".join(everything)


def contents(assignment: Assignment, folder: Path) -> dict[str, bytes | None]:
    """Each artifact in a folder; None for one that isn't there or is too large."""
    return {
        entry.file: read_artifact(folder / entry.file, entry.limit)
        for entry in assignment.artifacts
    }


def read_stamp(folder: Path) -> str:
    """What the artifacts in a folder were made from."""
    try:
        return (folder / STAMP).read_text()
    except OSError:
        return ""


@contextmanager
def locked(file: Path) -> Iterator[int]:
    """Let one process at a time through. The lock ends with the processes that have it open."""
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream.fileno()


def make_here(name: str, folder: Path) -> None:
    """Make them in this process. `assignments` means the reference, and what is given beside it."""
    mount({entry.name: ROOT / "solutions" / entry.name for entry in load_all()})
    for entry in load_all():
        given = ROOT / "assignments" / entry.name
        sys.modules[f"assignments.{entry.name}"].__path__.append(str(given))
    importlib.import_module(f"solutions.{name}.artifacts").make(folder)


if __name__ == "__main__":
    make_here(sys.argv[1], Path(sys.argv[2]))
