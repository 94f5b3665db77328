"""Which functions of earlier exercises a test may get a stand-in for, and the stand-ins' source."""

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from common.errors import CourseError


class NeedingExercise(Protocol):
    """An exercise, as far as it matters here."""

    @property
    def number(self) -> str:
        """Such as "1.2"."""

    @property
    def functions(self) -> list[str]:
        """What students write."""

    @property
    def needs(self) -> dict[str, list[str]]:
        """The exercises that it builds on, each with what of it may be replaced."""


@dataclass(frozen=True)
class Needed:
    """A function or class that an exercise builds on, and the earlier exercise that asks for it."""

    function: str
    exercise: str


@dataclass(frozen=True)
class Replacement:
    """Stand-ins for functions of one submitted module, as source: their file is out of reach."""

    module: str  # "convolution"
    names: list[str]
    source: str


def needed_of(
    exercises: Sequence[NeedingExercise], number: str, failed: Collection[str]
) -> tuple[Needed, ...]:
    """What a test of that exercise may get stand-ins for, if tests of these exercises failed."""
    needs = next((entry.needs for entry in exercises if entry.number == number), {})
    return tuple(
        Needed(function, earlier)
        for earlier, functions in needs.items()
        if earlier in failed
        for function in functions
    )


def in_words(needed: Iterable[Needed]) -> str:
    """Which stand-ins were used: our `f` and `g` instead of yours (exercises 1.1 and 1.2)."""
    names = [f"`{entry.function}`" for entry in needed]
    numbers = [*dict.fromkeys(entry.exercise for entry in needed)]
    exercises = "exercise" if len(numbers) == 1 else "exercises"
    return f"our {listed(names)} instead of yours ({exercises} {listed(numbers)})"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    *others, last = words
    return " and ".join(filter(None, (", ".join(others), last)))


def replacements_for(folder: Path, needed: Iterable[Needed]) -> list[Replacement]:
    """The stand-ins in a folder for these functions, by module."""
    names: dict[Path, list[str]] = {}
    for entry in needed:
        names.setdefault(standin_file(folder, entry.function), []).append(entry.function)
    return [Replacement(file.stem, known, source_of(file, known)) for file, known in names.items()]


def standin_file(folder: Path, function: str) -> Path:
    """The file of a folder that holds a function's stand-in. It has the submitted file's name."""
    for file in sorted(folder.glob("*.py")):
        if function in definitions(file):
            return file
    raise CourseError(f"{folder} has no stand-in for {function}.")


def definitions(file: Path) -> dict[str, ast.stmt]:
    """The statements of a module, by the names that they define, imports included."""
    return definitions_in(file.read_text("utf-8"))


@cache
def definitions_in(source: str) -> dict[str, ast.stmt]:
    """The same of its text, read once: before Python 3.11.8, two threads may not at once."""
    return {name: node for node in ast.parse(source).body for name in defined_names(node)}


def defined_names(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Assign):
        yield from (part.id for target in node.targets for part in names_in(target))


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """Every name that occurs in some code."""
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def used_definitions(file: Path, names: Iterable[str]) -> set[str]:
    """These names of a module, and all of its others that they use."""
    known = definitions(file)
    used: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name in known and name not in used:
            used.add(name)
            waiting += [part.id for part in names_in(known[name])]
    return used


def source_of(file: Path, names: Iterable[str]) -> str:
    """The part of a module that defines these names, and nothing that they don't use."""
    used = used_definitions(file, names)
    nodes = dict.fromkeys(node for name, node in definitions(file).items() if name in used)
    return "\n".join(map(ast.unparse, nodes))


def libraries_of(folder: Path, exercises: Iterable[NeedingExercise]) -> list[str]:
    """What the stand-ins for all that the exercises need import."""
    found: dict[str, None] = {}
    for exercise in exercises:
        for function in (name for names in exercise.needs.values() for name in names):
            file = standin_file(folder, function)
            known = definitions(file)
            for name in sorted(used_definitions(file, [function])):
                node = known[name]
                if isinstance(node, ast.Import):
                    found |= dict.fromkeys(alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found[node.module] = None
    return list(found)


def check_needs(file: Path, exercises: Sequence[NeedingExercise], folder: Path) -> None:
    """Needs name earlier exercises and functions of theirs that have a stand-in of their own.

    file: the assignment.toml, for errors. folder: that of the stand-ins.
    """
    asked_by = {name: entry.number for entry in exercises for name in entry.functions}
    by_number = {entry.number: entry for entry in exercises}
    for place, exercise in enumerate(exercises):
        earlier = {entry.number for entry in exercises[:place]}
        for number, functions in exercise.needs.items():
            key = f"{file}: exercises.needs of {exercise.number} names"
            if number not in by_number:
                raise CourseError(f"{key} {number}, which is not an exercise.")
            if number not in earlier:
                raise CourseError(
                    f"{key} {number}, which doesn't come earlier: needs must not form a circle."
                )
            for function in functions:
                if function not in by_number[number].functions:
                    raise CourseError(
                        f"{key} {function}, which is not a function of exercise {number}."
                    )
                check_standin(key, function, folder, asked_by)


def check_standin(key: str, function: str, folder: Path, asked_by: dict[str, str]) -> None:
    """A function's stand-in is there, and holds nothing else that an exercise asks for."""
    try:
        file = standin_file(folder, function)
    except CourseError as error:
        raise CourseError(f"{key} {function}, but {error}") from None
    others = sorted((used_definitions(file, [function]) & asked_by.keys()) - {function})
    if others:
        raise CourseError(
            f"{key} {function}, but its stand-in in {file} uses {others[0]}, which exercise "
            f"{asked_by[others[0]]} asks for: write it without."
        )
