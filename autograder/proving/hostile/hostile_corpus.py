"""Reads the hostile submissions of tests/tooling/hostile, and writes each as submitted.

An entry of `code/` is a submitted file; one of `trees/` makes a whole folder or a zip, or names a
FILE that is submitted too, and its TEXT. Each has a docstring: a line that says what it tries,
then `As:` (the file that it stands for, as "training.py of a7" where several assignments have one),
`Earns:` (what an honest part earns: exercises, or single tests by name) and, where they apply, the
lines below.
"""

import ast
import runpy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from common.assignment import ROOT, Assignment, load_all
from common.testing.graded_tests import read_graded_tests

CORPUS = ROOT / "tests" / "tooling" / "hostile"
CODE, TREES = "code", "trees"
# Leaves: it tries to leave something behind. Cold: graded by run_autograder from a cold start.
# Elsewhere: also tried on other graders.
KNOWN = {"As", "Earns", "Leaves", "Cold", "Elsewhere"}
NOTHING = "nothing"
# What an attack says once it has done what must not be possible; no source spells it in one piece.
SUCCESS_TEXT = "GOT" + " THROUGH"
LEAK = "LEA" + "KED"  # what an attack puts before the inputs that it shows
# How additional submitted Python code shows that it was run.
RAN = """import os
from pathlib import Path

Path("/tmp/hostile-" + str(os.getuid())).touch()
print("GOT" + " THROUGH: this file was run")
"""


class HostileSubmission(Protocol):
    """What is graded as an attack: an entry of the corpus, or a fuzzed submission."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def assignment(self) -> Assignment:
        """The assignment that it is submitted to."""

    @property
    def leaves(self) -> bool:
        """Whether it may leave something behind, so that the next grading must be an honest one."""

    @property
    def cold(self) -> bool:
        """Whether run_autograder grades it, from a cold start."""

    @property
    def earned_tests(self) -> set[str]:
        """The tests that its honest part passes."""

    def honest_parts(self) -> dict[str, str]:
        """What it does honestly: the text of each file."""

    def lay_out(self, folder: Path, honest: Mapping[str, str]) -> Path:
        """Write it into an empty folder; what to submit: the folder, or a zip in it."""


@dataclass(frozen=True)
class Entry:
    """One hostile submission."""

    file: Path
    tries: str
    stands_for: str  # convolution.py
    short: str  # the assignment: a1
    earns: tuple[str, ...]  # exercises and tests: "1.7", "test_conv_..."
    leaves: bool = False
    cold: bool = False
    elsewhere: bool = False

    @property
    def row(self) -> str:
        """The kind of attack: the folder that the entry lies in."""
        return self.file.parent.name

    @property
    def name(self) -> str:
        """What people call it: results/at_exit."""
        return f"{self.row}/{self.file.stem}"

    @property
    def is_tree(self) -> bool:
        """Whether the entry makes a folder rather than being the submitted file."""
        return self.file.parent.parent.name == TREES

    @property
    def assignment(self) -> Assignment:
        """The assignment that it is submitted to."""
        return next(one for one in load_all() if one.short == self.short)

    @property
    def earns_exercises(self) -> bool:
        """Whether it earns whole exercises, or nothing."""
        return not any(map(is_test, self.earns))

    @property
    def earned_tests(self) -> set[str]:
        """The tests that its honest part passes."""
        graded_tests = read_graded_tests(ROOT / "tests" / self.assignment.name)
        return {test.name for test in graded_tests if {test.exercise, test.name} & {*self.earns}}

    def honest_parts(self) -> dict[str, str]:
        """What it does honestly: the text of each file."""
        written = [part for part in self.earns if not is_test(part)]
        return honest_parts(self.assignment, written)

    def lay_out(self, folder: Path, honest: Mapping[str, str]) -> Path:
        """Write the submission into an empty folder; what to submit: the folder, or a zip in it."""
        parts = dict(honest)
        if self.is_tree:
            tree, content = runpy.run_path(str(self.file)), parts.get(self.stands_for, "")
            if "make" in tree:
                return tree["make"](folder, content) or folder
            add_file(folder, tree["FILE"], tree.get("TEXT", ""))
            parts = {self.stands_for: content}
        else:
            attack = self.file.read_text("utf-8")
            parts[self.stands_for] = f"{attack}\n\n{parts.get(self.stands_for, '')}"
        for name, source in parts.items():
            (folder / name).write_text(source, "utf-8")
        return folder


def add_file(folder: Path, file: str, text: str) -> None:
    """Add a file to the submission, at the top and in a folder with the name of a package."""
    for place in (folder / file, folder / "a5_attention" / file):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(RAN + text if file.endswith(".py") else text.lstrip(), "utf-8")


def honest_parts(assignment: Assignment, exercises: list[str]) -> dict[str, str]:
    """The reference's files with no exercise but these; files that would hold none are left out."""
    wanted = {name for number in exercises for name in assignment.exercise(number).functions}
    every = {name for exercise in assignment.exercises for name in exercise.functions}
    parts = {}
    for file in assignment.files:
        tree = ast.parse((ROOT / "solutions" / assignment.name / file).read_text("utf-8"))
        defined = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        if defined & wanted:
            tree.body = [
                node for node in tree.body if getattr(node, "name", None) not in every - wanted
            ]
            parts[file] = ast.unparse(tree) + "\n"
    return parts


def is_test(part: str) -> bool:
    """Whether a part that is earned is a single test, rather than an exercise."""
    return part.startswith("test_")


def read_entry(file: Path) -> Entry:
    """An entry, from the docstring of its file."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    tries, *lines = [line for line in text.splitlines() if line]
    facts: dict[str, str] = {}
    for line in lines:
        key, value = line.split(": ", 1)
        facts[key] = f"{facts[key]}, {value}" if key in facts else value
    if facts.keys() - KNOWN or not {"As", "Earns"} <= facts.keys():
        raise ValueError(f"{file}: the docstring must say As and Earns, and nothing unknown")
    earns = () if facts["Earns"] == NOTHING else tuple(facts["Earns"].split(", "))
    flags = {name.lower(): name in facts for name in ("Leaves", "Cold", "Elsewhere")}
    stands_for, _, short = facts["As"].partition(" of ")
    if not short:
        short = next(one.short for one in load_all() if stands_for in one.files)
    return Entry(file, tries, stands_for, short, earns, **flags)


def read_corpus() -> list[Entry]:
    """All entries, by kind and name."""
    return [read_entry(file) for file in sorted(entry_files())]


def entry_files() -> Iterator[Path]:
    """The files of the corpus."""
    for part in (CODE, TREES):
        yield from (CORPUS / part).glob("*/*.py")
