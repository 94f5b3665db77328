"""What goes into the handout and into the autograder zip, by name. Nothing else does."""

import os
from collections.abc import Iterable
from pathlib import Path

from autograder.packaging.requirement_parts import (
    DATA_REQUIREMENTS,
    grader_requirements,
    student_requirements,
)
from common.assignment import (
    LAB_FILE,
    LAB_STANDINS,
    ROOT,
    STANDINS,
    Assignment,
    load_all,
)
from common.testing.feedback.hints import PUBLIC_HINTS
from common.testing.graded_tests import HIDDEN_FILE

TEMPLATES = Path(__file__).parent / "templates"
LAB_REQUIREMENTS = "common/labs/requirements.txt"
ORACLE_FILE = "oracle.py"
TORCH_INDEX = "TORCH_INDEX"  # the environment variable that names an index of CPU builds


def handout(assignment: Assignment) -> dict[str, bytes]:
    """The handout: the repo's own layout, so that handouts unzip over each other."""
    folder = f"assignments/{assignment.name}"
    # Where public tests read stored answers, only the grader asks PyTorch.
    graders_own = (HIDDEN_FILE, ORACLE_FILE) if assignment.stores_answers else (HIDDEN_FILE,)
    tests = [name for name in test_files(assignment) if Path(name).name not in graders_own]
    members = read([f"{folder}/README.md", f"{folder}/assignment.toml", *tests])
    members |= read(f"{folder}/{name}" for name in (*assignment.files, *assignment.given))
    members |= read(files(folder, "experiments.py"))
    members |= read(files(f"{folder}/images", "*.png"))
    members |= read([*common_files(assignment), "tests/conftest.py"])
    if assignment.lab:
        members |= read([f"{folder}/{LAB_FILE}", LAB_REQUIREMENTS])
    if any(one.data for one in load_all() if one.name <= assignment.name):  # requirements only grow
        members |= read([DATA_REQUIREMENTS])
    members |= templates("handout")
    members["requirements.txt"] = student_requirements(assignment).encode()
    return members


def autograder_zip(assignment: Assignment, semester: bytes) -> dict[str, bytes]:
    """The autograder zip: grading code, tests, and the term's salt. No solution."""
    members = read([f"assignments/{assignment.name}/assignment.toml", *test_files(assignment)])
    members |= read(common_files(assignment))
    members |= read(files("autograder/grading", "**/*.py"))
    members |= read(["autograder/__init__.py", "autograder/__main__.py"])
    commands = ("__init__", "grading", "doctor", "progress")
    members |= read(f"autograder/commands/{name}.py" for name in commands)
    members |= templates("gradescope")
    members["requirements.txt"] = grader_requirements().encode()
    members["semester"] = semester
    if os.environ.get(TORCH_INDEX):  # for setup.sh, where pip knows no CPU builds by itself
        members["torch_index"] = f"{os.environ[TORCH_INDEX]}\n".encode()
    return members


def common_files(assignment: Assignment) -> list[str]:
    """What both sides import. A stand-in goes along only when its own assignment is over.

    One for the lab goes along with its own: it is written on what the exercises don't allow.
    """
    every = {*files("common", "**/*.py")}
    for folder in (STANDINS, LAB_STANDINS):
        every -= {*files(folder.relative_to(ROOT).as_posix(), "**/*.py")}
    standins = {f"{module.replace('.', '/')}.py" for module in assignment.lab_standins}
    data = {DATA_REQUIREMENTS} if assignment.data else set()
    return sorted(every | standins | data)


def test_files(assignment: Assignment) -> list[str]:
    """All that lies beside an assignment's tests, but for hints that belong to one salt."""
    folder = f"tests/{assignment.name}"
    patterns = ("*.py", "*.npz", "*.json", PUBLIC_HINTS)
    return [name for pattern in patterns for name in files(folder, pattern)]


def files(folder: str, pattern: str) -> list[str]:
    """The files of a folder, by their place in the repo."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).glob(pattern))]


def read(names: Iterable[str]) -> dict[str, bytes]:
    """The content of files of the repo."""
    return {name: (ROOT / name).read_bytes() for name in names}


def templates(folder: str) -> dict[str, bytes]:
    """The files that exist only inside a zip."""
    return {path.name: path.read_bytes() for path in sorted((TEMPLATES / folder).iterdir())}
