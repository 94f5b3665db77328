"""Finds which course modules a file imports, transitively, without running it."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from autograder.authoring.syntax_hash import python_hash
from common.assignment import ROOT

PACKAGES = ("autograder", "common", "assignments")


def import_closure(modules: Iterable[str], whole_packages: bool = False) -> set[str]:
    """These modules and all that they import, wherever the import stands.

    whole_packages: a package's own imports count too, as when it is loaded. Without it, they count
    only for the names that somebody asks it for.
    """
    waiting, found = list(modules), set[str]()
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found.add(module)
        file = module_file(module)
        if file.is_file() and (whole_packages or file.name != "__init__.py"):
            waiting += imports_of(file)
    return found


@cache
def imports_of(file: Path) -> tuple[str, ...]:
    """The modules that a file names: by an import, or as a string, to be imported late."""
    return imports_in(parsed(file))


def imports_in(tree: ast.Module) -> tuple[str, ...]:
    """The modules that a syntax tree names."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name for alias in node.names for name in with_packages(alias.name)]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found += with_packages(f"{node.module}.{alias.name}")
                found += reexported(node.module, alias.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += with_packages(node.value)
    return tuple(dict.fromkeys(found))


def with_packages(name: str) -> Iterator[str]:
    """A dotted name and the packages around it, as far as they are modules of the course."""
    parts = name.split(".")
    if parts[0] in PACKAGES and all(parts):
        for length in range(1, len(parts) + 1):
            module = ".".join(parts[:length])
            if module_file(module).is_file():
                yield module


def reexported(package: str, name: str) -> list[str]:
    """The modules from which a package imports a name that it re-exports."""
    file = module_file(package)
    if package.partition(".")[0] not in PACKAGES or file.name != "__init__.py":
        return []
    return [
        node.module
        for node in (parsed(file).body if file.is_file() else [])
        if isinstance(node, ast.ImportFrom)
        and node.module
        and name in {alias.asname or alias.name for alias in node.names}
    ]


def module_file(module: str) -> Path:
    """Where a module lies, or would lie. What students write is the reference's here."""
    parts = module.split(".")
    reference = ROOT.joinpath("solutions", *parts[1:]).with_suffix(".py")
    if parts[0] == "assignments" and reference.is_file():
        return reference
    path = ROOT.joinpath(*parts)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def forget_sources() -> None:
    """Read every file again when it is asked for: it may have changed."""
    for cached in (file_hash, parsed, imports_of):
        cached.cache_clear()


@cache
def file_hash(file: Path) -> str:
    """The hash of a source file's code."""
    return python_hash(file.read_bytes())


@cache
def parsed(file: Path) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(file.read_bytes())
