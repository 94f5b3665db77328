"""Writes an assignment's generated files: stubs, exercise table, hidden points (`make stubs`)."""

import importlib
import json
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from autograder.authoring.solution_markers import find_blocks, make_stub
from common.assignment import ROOT, Assignment
from common.atomic_write import write_atomically
from common.errors import CourseError
from common.testing.graded_tests import (
    HIDDEN_POINTS_FILE,
    format_points,
    points_by_exercise,
    read_graded_tests,
)

TABLE_BEGIN, TABLE_END = "<!-- exercises: begin -->", "<!-- exercises: end -->"


def generated_files(assignment: Assignment, root: Path = ROOT) -> dict[Path, str]:
    """What each generated file of an assignment must hold."""
    folder = root / "assignments" / assignment.name
    tests = root / "tests" / assignment.name
    solutions = [root / "solutions" / assignment.name / name for name in assignment.files]
    files = {folder / file.name: stub_of(file, assignment) for file in solutions}
    check_functions(assignment, solutions)
    files[folder / "README.md"] = with_table(
        folder / "README.md", exercise_table(assignment, tests)
    )
    hidden = points_by_exercise(read_graded_tests(tests), hidden=True)
    files[tests / HIDDEN_POINTS_FILE] = json.dumps(hidden, indent=1) + "\n"
    return files


def stale_files(assignment: Assignment, root: Path = ROOT) -> dict[Path, str]:
    """The generated files that are not what they must be."""
    return {
        file: content
        for file, content in generated_files(assignment, root).items()
        if not file.is_file() or file.read_text("utf-8") != content
    }


def generate(assignments: Iterable[Assignment], root: Path = ROOT) -> list[Path]:
    """Write what is stale; the files that changed."""
    written: list[Path] = []
    for assignment in assignments:
        for file, content in stale_files(assignment, root).items():
            write_atomically(file, content.encode())
            written.append(file)
    return written


def check_forbidden(assignment: Assignment) -> None:
    """A forbidden call or module of a library, or operator, must exist: a typo forbids nothing."""
    for entry in assignment.forbidden:
        module, _, name = entry.call.rpartition(".")
        if module.partition(".")[0] not in assignment.libraries:
            continue
        try:
            found = hasattr(importlib.import_module(module), name) or bool(find_spec(entry.call))
        except ImportError:
            found = False
        if not found:
            raise CourseError(
                f"assignments/{assignment.name}/assignment.toml: forbidden.call names "
                f"{entry.call}, which doesn't exist."
            )
        for operator in entry.operators:
            if not operator_exists(operator):
                raise CourseError(
                    f"assignments/{assignment.name}/assignment.toml: forbidden.operators names "
                    f"{operator}, which doesn't exist."
                )


def operator_exists(operator: str) -> bool:
    """Whether PyTorch has that operator, such as aten::layer_norm."""
    namespace, _, name = operator.partition("::")
    return hasattr(getattr(importlib.import_module("torch").ops, namespace), name)


def stub_of(solution: Path, assignment: Assignment) -> str:
    """A solution's stub."""
    if not solution.is_file():
        raise CourseError(f"{solution} is missing: assignment.toml names it.")

    def message(function: str) -> str:
        top = function.partition(".")[0]
        for exercise in assignment.exercises:
            if top in exercise.functions:
                return f"exercise {exercise.number} is yours to write"
        raise CourseError(f"{solution}: {top} belongs to no exercise of assignment.toml.")

    return make_stub(solution.read_text("utf-8"), str(solution), message)


def check_functions(assignment: Assignment, solutions: list[Path]) -> None:
    """Every function of an exercise has a solution block; one without would be in the handout."""
    written = {
        block.function.partition(".")[0]
        for file in solutions
        for block in find_blocks(file.read_text("utf-8"), str(file))
    }
    for exercise in assignment.exercises:
        for function in exercise.functions:
            if function not in written:
                raise CourseError(
                    f"{solutions[0].parent}: {function} of exercise {exercise.number} "
                    "has no solution block."
                )


def exercise_table(assignment: Assignment, tests: Path) -> str:
    """The handout's table: exercise, functions, points, minutes, needs."""
    graded_tests = read_graded_tests(tests)
    public, hidden = (points_by_exercise(graded_tests, hidden=flag) for flag in (False, True))
    known = {exercise.number for exercise in assignment.exercises}
    for number in {*public, *hidden} - known:
        raise CourseError(f"{tests}: a test names exercise {number}, which assignment.toml lacks.")
    lines = [
        "| exercise | functions | points (public + hidden) | minutes | needs |",
        "|---|---|---|---|---|",
    ]
    for exercise in assignment.exercises:
        shown, kept = public.get(exercise.number, 0), hidden.get(exercise.number, 0)
        functions = ", ".join(f"`{name}`" for name in exercise.functions) or exercise.about
        points = f"{format_points(shown + kept)} ({format_points(shown)} + {format_points(kept)})"
        needs = ", ".join(
            f"{number} (`{'`, `'.join(replaced)}`)" if replaced else number
            for number, replaced in exercise.needs.items()
        )
        lines.append(
            f"| {exercise.number} | {functions} | {points} | {exercise.minutes} | {needs or '-'} |"
        )
    shown, kept = sum(public.values()), sum(hidden.values())
    points = f"{format_points(shown + kept)} ({format_points(shown)} + {format_points(kept)})"
    minutes = sum(exercise.minutes for exercise in assignment.exercises)
    lines.append(f"| **all** | | **{points}** | **{minutes}** | |")
    return "\n".join(lines)


def with_table(readme: Path, table: str) -> str:
    """The handout with its table brought up to date."""
    if not readme.is_file():
        raise CourseError(f"{readme} is missing: every assignment has a handout.")
    return with_block(readme, table, TABLE_BEGIN, TABLE_END)


def with_block(file: Path, content: str, begin: str, end: str) -> str:
    """A file's text with this content between its two marker lines."""
    text = file.read_text("utf-8")
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise CourseError(
            f"{file} must contain '{begin}' and '{end}' once each, on their own lines."
        )
    return pattern.sub(lambda match: f"{begin}\n{content}\n{end}", text)
