"""Parses a lab's master notebook, `solutions/aN/lab.py`, and makes the solved notebook.

The master is a notebook in jupytext's percent format. Raw cells hold the markers of Otter Assign.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jupytext
import yaml

from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.labs.notebook import BEGIN, END
from common.labs.questions import ANSWER

MASTER = "lab.py"
MARKER = re.compile(r"# (BEGIN|END) (QUESTION|SOLUTION|TESTS)\b")
SOLUTION = re.compile(r"\s*# SOLUTION\b.*$", re.MULTILINE)
UNMARKED = re.compile(rf"{ANSWER.pattern} = (?!\.\.\.)")
HIDDEN = "# HIDDEN"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class MasterCell:
    """A cell of the master, and where in a question it stands."""

    kind: str  # "code" or "markdown"
    source: str
    question: str  # "" outside of questions
    part: str  # "prompt", "solution" or "tests"; "" outside of questions
    manual: bool = False  # whether the staff grade the answer by hand
    points: float = 0.0  # the question's


def master_file(assignment: Assignment, root: Path = ROOT) -> Path:
    """Where the master of an assignment's lab lies."""
    return root / "solutions" / assignment.name / MASTER


def read_master(assignment: Assignment, root: Path = ROOT) -> str:
    """The text of a master."""
    file = master_file(assignment, root)
    if not file.is_file():
        raise CourseError(f"{file} is missing: assignment.toml says that there is a lab.")
    return file.read_text("utf-8")


def converted(text: str) -> Any:
    """The notebook that a master is, with all its markers."""
    return jupytext.reads(text, fmt="py:percent")


@cache
def master_cells(text: str, file: str = MASTER) -> tuple[MasterCell, ...]:
    """The cells of a master without the markers; an error names the file and what is odd there."""
    return tuple(read_cells(text, file))


def read_cells(text: str, file: str) -> Iterator[MasterCell]:
    """The cells, one after the other."""
    question, part, manual, points = "", "", False, 0.0
    for cell in converted(text).cells:
        if cell.cell_type != "raw":
            yield MasterCell(cell.cell_type, cell.source, question, part, manual, points)
            continue
        marker = MARKER.match(cell.source)
        if marker is None:
            raise CourseError(f"{file}: a raw cell that is not a marker: {cell.source[:40]!r}")
        begins, what = marker[1] == "BEGIN", marker[2]
        if what == "QUESTION":
            if begins == bool(question):
                raise CourseError(
                    f"{file}: '{marker[0]}' out of place, near {question or 'a prompt'}"
                )
            settings = question_settings(cell.source.partition("\n")[2], file) if begins else {}
            question, manual = str(settings.get("name", "")), bool(settings.get("manual"))
            points = float(settings.get("points", 0))
            part = "prompt" if begins else ""
            if begins and not re.fullmatch(r"q[1-9][0-9]?", question):
                raise CourseError(f"{file}: a question's name is q1 to q99, not {question!r}")
        elif not question:
            raise CourseError(f"{file}: '{marker[0]}' outside of a question")
        else:
            part = what.lower() if begins else ""


def question_settings(text: str, file: str) -> dict[str, Any]:
    """The settings in a question's first cell: name, points, whether it is graded by hand."""
    where = " ".join(text.split())[:60]
    try:
        settings = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        raise CourseError(f"{file}: a question's settings are not YAML: {where!r}") from None
    if not isinstance(settings, dict) or not isinstance(settings.get("points", 0), int | float):
        raise CourseError(f"{file}: points must be a number: {where!r}")
    return settings


def question_points(text: str) -> dict[str, float]:
    """The points of each question that is graded automatically."""
    cells = [cell for cell in master_cells(text) if cell.question and not cell.manual]
    return {cell.question: cell.points for cell in cells}


def questions_with_hidden_tests(text: str) -> list[str]:
    """The questions whose checks in the notebook don't decide the answer."""
    cells = master_cells(text)
    hidden = (cell for cell in cells if cell.part == "tests" and cell.source.startswith(HIDDEN))
    return list(dict.fromkeys(cell.question for cell in hidden))


@cache
def secret_lines(text: str) -> frozenset[str]:
    """The lines of a master that no student may see: solutions, and hidden tests."""
    secret, open_lines = set[str](), set[str]()
    for cell in master_cells(text):
        lines = {line.strip() for line in cell.source.splitlines()}
        if cell.part == "tests" and cell.source.startswith(HIDDEN):
            secret |= lines - {HIDDEN}
        elif cell.part == "solution" and cell.kind == "markdown":
            secret |= lines
        elif cell.part == "solution":
            marked = {line for line in lines if "# SOLUTION" in line}
            secret |= {SOLUTION.sub("", line) for line in marked}
            open_lines |= lines - marked
        else:
            open_lines |= lines
    return frozenset(line for line in secret - open_lines if len(line) > len("q1_x = 0"))


@cache
def solved_notebook(text: str, last: str = "") -> bytes:
    """The notebook of a student who has answered all as the master does, to that question's end."""
    cells: list[dict[str, Any]] = []
    asked, before = "", ""
    for cell in master_cells(text):
        if last and before == last != cell.question:
            break
        before = cell.question
        if asked and cell.question != asked:
            cells.append(notebook_cell("markdown", END))
        manual = cell.question if cell.manual else ""
        if cell.part != "tests":
            source = SOLUTION.sub("", cell.source)
            first = manual and manual != asked
            cells.append(notebook_cell(cell.kind, f"{BEGIN}\n\n{source}" if first else source))
        asked = manual
    if asked:
        cells.append(notebook_cell("markdown", END))
    return notebook_bytes(cells, {"kernelspec": KERNEL})


def notebook_cell(kind: str, source: str) -> dict[str, Any]:
    """A cell as a notebook's file has it."""
    code: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True), **code}


def notebook_bytes(cells: list[dict[str, Any]], metadata: dict[str, Any]) -> bytes:
    """The content of a notebook's file; the same cells always give the same bytes."""
    numbered = [cell | {"id": f"cell-{number:02d}"} for number, cell in enumerate(cells, 1)]
    content = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def check_master(text: str, file: str) -> None:
    """A master is valid Python, and its questions are numbered from 1 without a gap."""
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise CourseError(f"{file}, line {error.lineno}: not valid Python: {error.msg}") from None
    for cell in master_cells(text, file):
        for line in cell.source.splitlines() if cell.part == "solution" else ():
            if UNMARKED.match(line) and "# SOLUTION" not in line:
                raise CourseError(
                    f"{file}: without `# SOLUTION` at its end, students get this line: {line}"
                )
    names = list(dict.fromkeys(cell.question for cell in master_cells(text, file) if cell.question))
    if names != [f"q{number}" for number in range(1, len(names) + 1)]:
        raise CourseError(f"{file}: the questions must be q1, q2, ... in this order: {names}")
