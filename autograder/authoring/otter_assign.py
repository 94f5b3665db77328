"""Makes the students' lab.ipynb from a lab's master with `otter assign` (`make labs`)."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jupytext
import nbformat
import yaml

from autograder.authoring.lab_master import (
    KERNEL,
    MASTER,
    check_master,
    converted,
    notebook_bytes,
    notebook_cell,
    questions_with_hidden_tests,
    read_master,
    secret_lines,
)
from common.assignment import LAB_FILE, ROOT, Assignment
from common.atomic_write import write_atomically
from common.errors import CourseError

OTTER_REQUIREMENTS = "requirements.txt"
OTTER_PYTHON = "3.12"
SUBMITTING = "The zip contains this notebook and your code: upload it to Gradescope as it is."
# What a check says that doesn't decide the answer.
FORM_OK = "The form is right. When you submit, hidden tests decide whether the answer is right."


@dataclass(frozen=True)
class Assigned:
    """What `otter assign` has made."""

    student: bytes  # the student's notebook
    solved: bytes  # the notebook with all solutions, as Otter writes it
    archive: Path | None  # what `otter generate` has made, if it was asked to


@contextmanager
def assigned(
    assignment: Assignment, root: Path = ROOT, beside: Mapping[str, bytes] | None = None
) -> Iterator[Assigned]:
    """Run `otter assign` on a master. Our own proof runs the tests, so Otter doesn't.

    beside: the files of Otter's own zip, which is built only if this is given.
    """
    text = read_master(assignment, root)
    check_master(text, f"solutions/{assignment.name}/{MASTER}")
    with TemporaryDirectory(prefix="conv2gpt-lab-") as scratch:
        folder = Path(scratch)
        notebook = converted(text)
        notebook.cells.insert(0, nbformat.v4.new_raw_cell(settings(assignment, beside)))
        for name, content in (beside or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        jupytext.write(notebook, folder / LAB_FILE)
        run_otter(["assign", LAB_FILE, "made", "--no-run-tests"], folder)
        made = folder / "made"
        student = tidied((made / "student" / LAB_FILE).read_text("utf-8"), text)
        check_student(student, text, assignment)
        solved = (made / "autograder" / LAB_FILE).read_bytes()
        yield Assigned(student, solved, next((made / "autograder").glob("*.zip"), None))


def settings(assignment: Assignment, beside: Mapping[str, bytes] | None) -> str:
    """The cell with the configuration of Otter Assign."""
    content: dict[str, Any] = {
        "name": f"{assignment.short}-lab",
        "init_cell": True,
        "export_cell": {
            "pdf": False,
            "files": list(assignment.files),
            "ignore_log": True,
            "instructions": submitting(assignment),
        },
        "generate": bool(beside),
        "tests": {"files": False},
    }
    if beside:
        content["requirements"] = OTTER_REQUIREMENTS
        content["python_version"] = OTTER_PYTHON
        content["autograder_files"] = [name for name in beside if name != OTTER_REQUIREMENTS]
    return f"# ASSIGNMENT CONFIG\n{yaml.safe_dump(content, sort_keys=False)}"


def submitting(assignment: Assignment) -> str:
    """What the notebook says of the zip that its last cell makes, and of what that zip lacks."""
    lacking = [artifact.file for artifact in assignment.artifacts if artifact.file != LAB_FILE]
    if not lacking:
        return SUBMITTING
    return (
        f"The zip contains this notebook and your code, but not {' and '.join(lacking)}, which are "
        f"worth points too. `make submission A={assignment.short}` zips all of it: upload that zip "
        "to Gradescope."
    )


def run_otter(arguments: Iterable[str], folder: Path) -> None:
    """Run a command of Otter in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "otter", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CourseError(f"otter {' '.join(arguments)} failed: {done.stderr[-2000:]}")


def tidied(text: str, master: str) -> bytes:
    """A notebook without outputs and without anything that differs from run to run.

    master: what it was made from. Its digest says later whether the notebook is stale.
    """
    raw = json.loads(text)
    cells = []
    for cell in raw["cells"]:
        source = "".join(cell["source"])
        if source.strip():
            kept = {key: cell["metadata"][key] for key in cell["metadata"] if key != "otter"}
            cells.append(notebook_cell(cell["cell_type"], source) | {"metadata": kept})
    for question in questions_with_hidden_tests(master):
        checks = raw["metadata"]["otter"]["tests"].get(question)
        if checks is not None:
            checks["suites"][0]["cases"][-1]["success_message"] = FORM_OK
    metadata: dict[str, Any] = {"kernelspec": KERNEL, "otter": raw["metadata"]["otter"]}
    return notebook_bytes(cells, metadata | {"conv2gpt": {"master": source_digest(master)}})


def check_student(notebook: bytes, master: str, assignment: Assignment) -> None:
    """The student's notebook holds no line of a solution or of a hidden test."""
    raw = json.loads(notebook)
    shown = "\n".join(["".join(cell["source"]) for cell in raw["cells"]])
    shown += json.dumps(raw["metadata"])
    for line in sorted(secret_lines(master)):
        if line in shown or json.dumps(line)[1:-1] in shown:
            raise CourseError(f"{assignment.short}: {LAB_FILE} would contain a secret line: {line}")


def student_file(assignment: Assignment, root: Path = ROOT) -> Path:
    """Where the student's notebook lies: it is generated and committed."""
    return root / "assignments" / assignment.name / LAB_FILE


def source_digest(master: str) -> str:
    """A short hash of what a notebook is made from: the master, Otter, and our message."""
    source = f"otter-grader {version('otter-grader')}\n{FORM_OK}\n{master}"
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def is_stale(assignment: Assignment, root: Path = ROOT) -> bool:
    """Whether the master has changed since the student's notebook was made. Otter isn't run."""
    try:
        raw = json.loads(student_file(assignment, root).read_bytes())
        made_from = raw["metadata"]["conv2gpt"]["master"]
    except (OSError, ValueError, KeyError, TypeError):
        return True
    return made_from != source_digest(read_master(assignment, root))


def write_labs(assignments: Iterable[Assignment], root: Path = ROOT) -> Iterator[Path]:
    """Make the student's notebooks, and write those that are stale; each one that changed."""
    for assignment in assignments:
        with assigned(assignment, root) as made:
            file = student_file(assignment, root)
            if not file.is_file() or file.read_bytes() != made.student:
                write_atomically(file, made.student)
                yield file
