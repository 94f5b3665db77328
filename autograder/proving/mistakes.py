"""Reads mistakes.toml, and applies known student mistakes as patches of the reference."""

import ast
import tomllib
from functools import cache
from textwrap import dedent
from typing import Annotated

import msgspec
from msgspec import Meta

from autograder.authoring.answer_dependencies import questions_that_may_change
from autograder.authoring.lab_master import MASTER, read_master, solved_notebook
from common.assignment import LAB_FILE, ROOT, Assignment, ExerciseNumber, Name, Record
from common.errors import CourseError


class Mistake(Record, frozen=True):
    """A patch of the reference, what it must cost, and what to tell whoever makes it."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    find: Name
    replace: str
    exercises: Annotated[list[ExerciseNumber], Meta(min_length=1)]
    hint: Name
    file: str = ""  # may be left out where an assignment has one file
    function: str = ""  # where to look for `find`; the whole file, if left out
    hidden: bool = False  # only hidden tests catch it, for the reason given
    reason: str = ""


class MistakeFile(Record, frozen=True):
    """The whole of `mistakes.toml`."""

    mistakes: list[Mistake]


def load_mistakes(assignment: Assignment) -> list[Mistake]:
    """The catalogue of an assignment; an error names the file and the mistake."""
    file = ROOT / "solutions" / assignment.name / "mistakes.toml"
    where = file.relative_to(ROOT)
    try:
        content = msgspec.convert(tomllib.loads(file.read_text("utf-8")), MistakeFile)
    except FileNotFoundError:
        raise CourseError(f"{where} is missing: every assignment lists its mistakes.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CourseError(f"{where}: {error}") from None
    names = [mistake.name for mistake in content.mistakes]
    known = {exercise.number for exercise in assignment.exercises}
    for mistake in content.mistakes:
        here = f"{where}, {mistake.name}"
        if names.count(mistake.name) > 1:
            raise CourseError(f"{here}: the name is there more than once.")
        for number in mistake.exercises:
            if number not in known:
                raise CourseError(f"{here}: there is no exercise {number}.")
        if mistake.hidden and not mistake.reason:
            raise CourseError(f"{here}: hidden = true needs a reason.")
        apply(mistake, assignment)
    return content.mistakes


def apply(mistake: Mistake, assignment: Assignment) -> dict[str, bytes]:
    """The reference's files with the mistake made, and the lab if that is where it is made."""
    files = reference(assignment)
    here = f"solutions/{assignment.name}/mistakes.toml, {mistake.name}"
    if mistake.file == MASTER and assignment.lab:
        *_, last = spoiled_questions(mistake, assignment)
        return files | {LAB_FILE: solved_notebook(wrong_master(mistake, assignment), last)}
    name = mistake.file or assignment.files[0]
    if name not in files or (not mistake.file and len(files) > 1):
        raise CourseError(f"{here}: `file` must name one of {', '.join(files)}.")
    place = mistake.function or name
    source = files[name].decode("utf-8")
    patched = patch(source, mistake.function, mistake.find, mistake.replace, here, place)
    return files | {name: patched.encode()}


def wrong_master(mistake: Mistake, assignment: Assignment) -> str:
    """The master of the lab with the mistake made."""
    here = f"solutions/{assignment.name}/mistakes.toml, {mistake.name}"
    master = read_master(assignment)
    return patch(master, mistake.function, mistake.find, mistake.replace, here, MASTER)


def spoiled_questions(mistake: Mistake, assignment: Assignment) -> tuple[str, ...]:
    """The questions of the lab whose answers a mistake may change."""
    wrong = wrong_master(mistake, assignment)
    found = questions_that_may_change(read_master(assignment), wrong)
    if not found:
        raise CourseError(
            f"solutions/{assignment.name}/mistakes.toml, {mistake.name}: no answer of the lab "
            "depends on it."
        )
    return found


@cache
def patch(source: str, function: str, find: str, replacement: str, here: str, place: str) -> str:
    """A source with one piece of it replaced; remembered, since all is parsed to check it."""
    first, last = extent(source, function, here)
    part = source[first:last]
    if part.count(find) != 1:
        raise CourseError(
            f"{here}: `find` must occur once in {place}, but occurs {part.count(find)} "
            "times. If the reference has changed, bring `find` up to date."
        )
    fresh = part.replace(find, replacement)
    try:
        ast.parse(source[:first] + fresh + source[last:])
        changed = ast.dump(ast.parse(dedent(fresh))) != ast.dump(ast.parse(dedent(part)))
    except SyntaxError as error:
        raise CourseError(f"{here}: the patched file is not valid Python: {error}.") from None
    if not changed:
        raise CourseError(f"{here}: the patch changes nothing.")
    return source[:first] + fresh + source[last:]


@cache
def extent(source: str, function: str, here: str) -> tuple[int, int]:
    """Where a function, or a method as Class.method, begins and ends in a source text."""
    if not function:
        return 0, len(source)
    body: list[ast.stmt] = ast.parse(source).body
    found: ast.stmt | None = None
    for name in function.split("."):
        found = next(
            (
                node
                for node in body
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
            ),
            None,
        )
        if found is None:
            raise CourseError(f"{here}: there is no function {function}.")
        body = getattr(found, "body", [])
    lines = source.splitlines(keepends=True)
    assert found is not None
    first = sum(map(len, lines[: found.lineno - 1]))
    return first, sum(map(len, lines[: found.end_lineno]))


def reference(assignment: Assignment) -> dict[str, bytes]:
    """The reference's files."""
    return read_files(assignment, f"solutions/{assignment.name}")


def stub(assignment: Assignment) -> dict[str, bytes]:
    """The untouched stub's files, and the lab as it is handed out."""
    folder = f"assignments/{assignment.name}"
    lab = {LAB_FILE: (ROOT / folder / LAB_FILE).read_bytes()} if assignment.lab else {}
    return read_files(assignment, folder) | lab


def alternatives(assignment: Assignment) -> dict[str, dict[str, bytes]]:
    """Whole valid solutions written another way, by name."""
    top = ROOT / "solutions" / assignment.name / "alternatives"
    folders = sorted(folder for folder in top.glob("*") if folder.is_dir())
    found = {}
    for folder in folders:
        files = read_files(assignment, folder.relative_to(ROOT).as_posix())
        try:
            defined = {name for content in files.values() for name in top_level_names(content)}
        except (SyntaxError, ValueError) as error:
            raise CourseError(f"{folder.relative_to(ROOT)} is not valid Python: {error}") from None
        for exercise in assignment.exercises:
            for function in exercise.functions:
                if function not in defined:
                    raise CourseError(f"{folder.relative_to(ROOT)} has no {function}.")
        found[folder.name] = files
    return found


def read_files(assignment: Assignment, folder: str) -> dict[str, bytes]:
    """An assignment's files from one folder."""
    for name in assignment.files:
        if not (ROOT / folder / name).is_file():
            raise CourseError(f"{folder}/{name} is missing.")
    return {name: (ROOT / folder / name).read_bytes() for name in assignment.files}


def top_level_names(source: bytes) -> set[str]:
    """The names that a file defines, by `def`, `class`, `=` or an import."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names
