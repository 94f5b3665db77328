"""Selects the files of the handout zip and of the autograder zip."""

import ast
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from autograder.authoring.course_imports import (
    import_closure,
    imports_in,
    imports_of,
    module_file,
)
from autograder.authoring.lab_master import MASTER
from autograder.packaging.public_helpers import public_part
from autograder.packaging.requirement_parts import (
    DATA_REQUIREMENTS,
    grader_requirements,
    student_requirements,
)
from common.assignment import LAB_FILE, ROOT, Assignment, up_to
from common.testing.feedback.hints import PUBLIC_HINTS
from common.testing.graded_tests import HIDDEN_FILE

TEMPLATES = Path(__file__).parent / "templates"
LAB_REQUIREMENTS = "common/labs/requirements.txt"
GUIDE = "docs/students.md"  # what every handout would otherwise repeat
ORACLE_FILE = "oracle.py"
# Stored answers and hints for the inputs of a student's own `pytest`: no others in grading.
FOR_STUDENTS = ("*.npz", PUBLIC_HINTS)
# What students run by themselves, as the handouts say, and no test imports.
OWN_PROGRAMS = ("common/submission_zip.py", "common/training/numeric_gradients.py")
TORCH_INDEX = "TORCH_INDEX"  # the environment variable that names an index of CPU builds


def handout(assignment: Assignment) -> dict[str, bytes]:
    """The handout: the repo's own layout, so that handouts unzip over each other."""
    folder = f"assignments/{assignment.name}"
    # Where public tests read stored answers, only the grader asks PyTorch.
    graders_own = (HIDDEN_FILE, ORACLE_FILE) if assignment.stores_answers else (HIDDEN_FILE,)
    tests = [name for name in test_files(assignment) if Path(name).name not in graders_own]
    members = read([GUIDE, f"{folder}/README.md", f"{folder}/assignment.toml"])
    members |= public_tests(read(tests))
    for pattern in FOR_STUDENTS:
        members |= read(files(f"tests/{assignment.name}", pattern))
    members |= read(f"{folder}/{name}" for name in (*assignment.files, *assignment.given))
    members |= read(files(folder, "experiments.py"))
    members |= read(files(f"{folder}/images", "*.png"))
    members |= read(["tests/conftest.py", *OWN_PROGRAMS])
    members |= read(common_files(assignment, members))
    if assignment.lab:
        members |= read([f"{folder}/{LAB_FILE}", LAB_REQUIREMENTS])
    if any(one.data for one in up_to(assignment)):  # requirements only grow
        members |= read([DATA_REQUIREMENTS])
    members |= templates("handout")
    members["requirements.txt"] = student_requirements(assignment).encode()
    return members


def autograder_zip(assignment: Assignment, semester: bytes) -> dict[str, bytes]:
    """The autograder zip: grading code, tests, and the term's salt. No solution."""
    members = read([f"assignments/{assignment.name}/assignment.toml", *test_files(assignment)])
    members |= read(files("autograder/grading", "**/*.py"))
    own = ("__init__", "__main__", "screen", "semester")
    members |= read(f"autograder/{name}.py" for name in own)
    commands = ("__init__", "grading_commands", "doctor_command", "progress_display")
    members |= read(f"autograder/commands/{name}.py" for name in commands)
    # The stubs too: results may repeat the names of their parameters.
    members |= read(f"assignments/{assignment.name}/{name}" for name in assignment.files)
    members |= read(common_files(assignment, members))
    members |= templates("gradescope")
    members["requirements.txt"] = grader_requirements().encode()
    members["semester"] = semester
    if os.environ.get(TORCH_INDEX):  # for setup.sh, where pip finds no CPU builds on its own
        members["torch_index"] = f"{os.environ[TORCH_INDEX]}\n".encode()
    return members


def public_tests(members: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a tests folder, without helpers that only hidden tests use."""
    modules = {name: code for name, code in members.items() if name.endswith(".py")}
    others = {name: content for name, content in members.items() if name not in modules}
    return others | public_part(modules)


def common_files(assignment: Assignment, members: Mapping[str, bytes]) -> list[str]:
    """What members of a zip import of common/, found by reading them, and the data's versions.

    A stand-in goes along only when its own assignment is over. One for the lab goes along with its
    own: it is written on what the exercises don't allow.
    """
    sources = [ast.parse(code) for name, code in members.items() if name.endswith(".py")]
    standins = assignment.lab_standins if assignment.lab else assignment.standins
    names = {*standins, *(name for tree in sources for name in imports_in(tree))}
    if assignment.lab:
        names |= {*imports_of(ROOT / "solutions" / assignment.name / MASTER)}
    modules = import_closure([*names], whole_packages=True)
    shared = {module for module in modules if module.partition(".")[0] == "common"}
    data = {DATA_REQUIREMENTS} if assignment.data else set()
    return sorted(data | {module_file(name).relative_to(ROOT).as_posix() for name in shared})


def test_files(assignment: Assignment) -> list[str]:
    """The tests of an assignment and what they import."""
    folder = f"tests/{assignment.name}"
    return [*files(folder, "*.py"), *files(folder, "*.json")]


def files(folder: str, pattern: str) -> list[str]:
    """The files of a folder, by their path in the repository."""
    return [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / folder).glob(pattern))]


def read(names: Iterable[str]) -> dict[str, bytes]:
    """The content of files of the repo."""
    return {name: (ROOT / name).read_bytes() for name in names}


def templates(folder: str) -> dict[str, bytes]:
    """The files that exist only inside a zip."""
    return {path.name: path.read_bytes() for path in sorted((TEMPLATES / folder).iterdir())}
