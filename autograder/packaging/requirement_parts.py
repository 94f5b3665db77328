"""Splits requirements.txt into the handout's and the grader's parts."""

import re
from pathlib import Path

from common.assignment import ROOT, Assignment, up_to
from common.errors import CourseError

HEADING = re.compile(r"# \[(\w+)\]")
DATA_REQUIREMENTS = "common/data/requirements.txt"
PARTS = ("student", "grader", "instructor", "site")


def read_parts(file: Path = ROOT / "requirements.txt") -> dict[str, list[str]]:
    """The pinned requirements under each heading."""
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in file.read_text("utf-8").splitlines():
        heading = HEADING.match(line)
        if heading:
            current = parts.setdefault(heading[1], [])
        elif line.strip() and not line.startswith("#"):
            if "==" not in line:
                raise CourseError(f"{file}: '{line}' is not pinned with '=='.")
            current.append(line.strip())
    missing = [part for part in PARTS if not parts.get(part)]
    if missing:
        raise CourseError(f"{file}: the part [{missing[0]}] is missing.")
    return parts


def student_requirements(assignment: Assignment) -> str:
    """What a student installs: the common part, and the libraries of all assignments so far.

    Of earlier ones too: a handout that is unzipped over another brings its own list.
    """
    parts = read_parts()
    pinned = {line.partition("==")[0]: line for part in PARTS for line in parts[part]}
    used: list[str] = []
    for one in up_to(assignment):
        used += [*one.libraries, *(["torch"] if one.standins_run_apart else [])]
        used += one.own_standin_libraries
    needed = [*parts["student"], *(pinned[name] for name in used if name in pinned)]
    return "\n".join(dict.fromkeys(needed)) + "\n"


def grader_requirements() -> str:
    """What the grader's image installs."""
    parts = read_parts()
    return "\n".join([*parts["student"], *parts["grader"]]) + "\n"
