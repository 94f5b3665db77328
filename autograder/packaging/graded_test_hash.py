"""Hashes each graded test: its code, and what it uses from files in its folder."""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.authoring.course_imports import file_hash, parsed
from autograder.authoring.syntax_hash import node_hash
from common.assignment import ROOT, Assignment
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE

ORACLE = "oracle"  # a fixture that hands out the module of that name


@dataclass(frozen=True)
class Module:
    """The top-level statements of a file: by the names that they define, and all others."""

    file: Path
    by_name: dict[str, list[ast.stmt]]
    others: list[ast.stmt]


def test_hashes(assignment: Assignment) -> dict[str, str]:
    """The hash of each test, by its name."""
    folder = ROOT / "tests" / assignment.name
    modules = {file.stem: read_module(file) for file in sorted(folder.glob("*.py"))}
    return {
        test: used_code(modules, file.stem, test)
        for file in (folder / PUBLIC_FILE, folder / HIDDEN_FILE)
        if file.stem in modules
        for test in modules[file.stem].by_name
        if test.startswith("test_")
    }


@cache
def read_module(file: Path) -> Module:
    """A file of tests, taken apart."""
    module = Module(file, {}, [])
    for statement in parsed(file).body:
        names = names_defined(statement)
        for name in names:
            module.by_name.setdefault(name, []).append(statement)
        if not names:
            module.others.append(statement)
    return module


def names_defined(statement: ast.stmt) -> list[str]:
    """The names that a top-level statement defines or imports."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return [
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
    return []


def used_code(modules: dict[str, Module], module: str, test: str) -> str:
    """A hash of everything that a test uses from its own file and from files in its folder."""
    digest = hashlib.sha256()
    waiting, seen = [(module, test)], {("", "")}
    while waiting:
        current = waiting.pop(0)
        if current in seen:
            continue
        seen.add(current)
        where, name = current
        if not name:  # the whole of a file
            digest.update(f"{where} {file_hash(modules[where].file)}\n".encode())
            waiting += sorted(set(used_elsewhere(modules, where)))
            continue
        # Statements that define nothing may change anything.
        for statement in (*modules[where].by_name.get(name, []), *modules[where].others):
            digest.update(f"{where}.{name} {cached_hash(statement)}\n".encode())
            waiting += sorted(set(uses(modules, where, name, statement)))
    return digest.hexdigest()


def used_elsewhere(modules: dict[str, Module], where: str) -> Iterator[tuple[str, str]]:
    """What a whole file uses from the files in its folder."""
    for name, statements in modules[where].by_name.items():
        for statement in statements:
            yield from (use for use in uses(modules, where, name, statement) if use[0] != where)


@cache
def cached_hash(statement: ast.stmt) -> str:
    """The hash of a statement, which many tests may use."""
    return node_hash(statement)


def uses(
    modules: dict[str, Module], where: str, name: str, statement: ast.stmt
) -> Iterator[tuple[str, str]]:
    """What a statement names: from its own file, as fixtures, and from files in its folder."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from imports(modules, name, statement)
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.arg):
            used = node.id if isinstance(node, ast.Name) else node.arg
            yield where, used
            if used == ORACLE and ORACLE in modules:
                yield ORACLE, ""


def imports(
    modules: dict[str, Module], name: str, statement: ast.Import | ast.ImportFrom
) -> Iterator[tuple[str, str]]:
    """What an imported name refers to, if it comes from a file in the test's folder."""
    source = getattr(statement, "module", None) or ""
    for alias in statement.names:
        if (alias.asname or alias.name) != name:
            continue
        if source.rpartition(".")[2] in modules and source.startswith("tests."):
            yield source.rpartition(".")[2], alias.name
        elif alias.name.rpartition(".")[2] in modules and "tests" in f"{source}.{alias.name}":
            yield alias.name.rpartition(".")[2], ""
