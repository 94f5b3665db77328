"""Writes a new assignment with one exercise from templates (`make new`)."""

import importlib
import keyword
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from autograder.authoring.answer_recorder import record_to_file
from autograder.authoring.generated_files import generate
from autograder.authoring.lab_master import MASTER
from autograder.authoring.module_tree import write_module_tree
from autograder.authoring.otter_assign import write_labs
from common.assignment import ROOT, assignment_files, course_order, load_assignment
from common.errors import CourseError

TEMPLATES = Path(__file__).parent / "templates" / "new_assignment"
ENDING = ".tmpl"  # so that nothing takes a template for a module or a test
# Where files of an assignment lie, its stand-ins among them.
FOLDERS = ("assignments", "solutions", "tests", "common/labs/standins", "common/standins")
ASSIGNMENT_NAME = re.compile(r"a([1-9][0-9]{0,2})_([a-z][a-z0-9_]{0,39})")
NOT_IN_TITLES = '"\\|'  # they end a string of TOML, or a cell of a table
# Modules that have a meaning of their own beside the submitted ones.
TAKEN = {MASTER.removesuffix(".py"), "figures", "benchmarks", "experiments", "__init__"}


def write_new_assignment(name: str, title: str) -> list[Path]:
    """Write a new assignment, and what is generated from it; all files that were written.

    Nothing that is there is overwritten. After an error, or an interruption, nothing is left.
    """
    files = new_files(name, title, ROOT)
    try:
        for file, content in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(content)
        importlib.invalidate_caches()
        assignment = load_assignment(name)
        generated = [*generate([assignment]), record_to_file(assignment), *write_labs([assignment])]
    except BaseException:
        for folder in FOLDERS:
            shutil.rmtree(ROOT / folder / name, ignore_errors=True)
        raise
    return list(dict.fromkeys([*files, *generated, *write_module_tree()]))


def new_files(name: str, title: str, root: Path) -> dict[Path, str]:
    """The source files of a new assignment; an error says in a sentence why there can't be any."""
    number, module = parts_of_name(name)
    check_title(title)
    check_nothing_is_there(name, number, root)
    values = {"name": name, "number": str(number), "module": module, "title": title}
    return {
        root / path_of(template, values): filled(template.read_text("utf-8"), values)
        for template in sorted(TEMPLATES.rglob(f"*{ENDING}"))
    }


def parts_of_name(name: str) -> tuple[int, str]:
    """The number of an assignment, and its module: 11 and "diffusion" for "a11_diffusion"."""
    match = ASSIGNMENT_NAME.fullmatch(name)
    if match is None or keyword.iskeyword(match[2]) or match[2] in TAKEN:
        why = (
            "it must be an a, a number and a short name in lower case, as in a11_diffusion"
            if match is None
            else f"no module can be named {match[2]}.py there"
        )
        raise CourseError(f"'{name}' can't be the name of an assignment: {why}.")
    return int(match[1]), match[2]


def check_title(title: str) -> None:
    """A title fits into a heading, a table and a string of TOML."""
    if not title.strip() or not title.isprintable() or set(title) & set(NOT_IN_TITLES):
        raise CourseError(
            f"{title!r} can't be the title of an assignment: it must be one line of text, without "
            "quotation marks, backslashes and vertical bars."
        )


def check_nothing_is_there(name: str, number: int, root: Path) -> None:
    """No assignment has that number, and no folder that name."""
    numbers = {
        course_order(file.parent.name)[0]: file.parent.name for file in assignment_files(root)
    }
    for there in (f"{folder}/{name}" for folder in FOLDERS):
        if (root / there).exists():
            raise CourseError(f"{there} exists already: nothing is overwritten.")
    if number in numbers:
        raise CourseError(
            f"Number {number} belongs to {numbers[number]}: the next free one is "
            f"{max(numbers) + 1}."
        )


def path_of(template: Path, values: Mapping[str, str]) -> Path:
    """Where a template's file lies in the repo."""
    path = template.relative_to(TEMPLATES).as_posix().removesuffix(ENDING)
    return Path(path.replace("NAME", values["name"]).replace("MODULE", values["module"]))


def filled(text: str, values: Mapping[str, str]) -> str:
    """A template's text with its placeholders, such as {{name}}, filled in."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)
