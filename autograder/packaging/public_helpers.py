"""Reduces a handout's test modules to the definitions that its public tests reach.

What only hidden tests use says what they check, and may compute an answer. What is reached is
computed from names: a definition that mentions another one reaches it, and so does a string that
is its name, since tests look functions up by name.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from common.testing.graded_tests import PUBLIC_FILE

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
LINE_LENGTH = 100


@dataclass
class TestModule:
    """A module of an assignment's tests: its definitions, and what its imports name."""

    name: str
    source: str
    reached: set[str] = field(default_factory=set)

    __test__ = False  # it is no test

    @property
    def is_public(self) -> bool:
        return f"{self.name}.py" == PUBLIC_FILE

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Top-level definitions, by each name that they define."""
        return {
            name: node
            for node in self.tree.body
            if isinstance(node, Definition)
            for name in defined_names(node)
        }

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """What imported names stand for: a module, and the name there."""
        return {
            alias.asname or alias.name: (node.module.rpartition(".")[2], alias.name)
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        }


def public_part(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The modules of a tests folder, each reduced to what the public tests reach.

    A module of which nothing is reached is left out.
    """
    return {
        path: (module.source if module.is_public else reduced(module)).encode()
        for path, module in read_modules(members).items()
        if module.reached or not module.definitions
    }


def unused_helpers(members: Mapping[str, bytes]) -> dict[str, list[str]]:
    """By module of a tests folder, the definitions that no public test reaches."""
    unused = {
        path: sorted(set(module.definitions) - module.reached)
        for path, module in read_modules(members).items()
    }
    return {path: names for path, names in unused.items() if names}


def read_modules(members: Mapping[str, bytes]) -> dict[str, TestModule]:
    """The modules of a tests folder by path, with what the public tests reach marked."""
    modules = {
        path: TestModule(PurePosixPath(path).stem, code.decode()) for path, code in members.items()
    }
    by_name = {module.name: module for module in modules.values()}
    for module in modules.values():
        if module.is_public:
            module.reached = set(module.definitions)
            reach(by_name, module, module.tree)
    return modules


def reach(modules: Mapping[str, TestModule], module: TestModule, node: ast.AST) -> None:
    """Mark what a piece of code of a module reaches, and what that reaches."""
    for found, name in mentions(modules, module, node):
        if name in found.definitions and name not in found.reached:
            definition = found.definitions[name]
            found.reached |= set(defined_names(definition))
            reach(modules, found, definition)


def mentions(
    modules: Mapping[str, TestModule], module: TestModule, node: ast.AST
) -> Iterator[tuple[TestModule, str]]:
    """The definitions that code may mean: by a name, by an attribute, or by a string."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            origin, name = module.imported.get(part.id, (module.name, part.id))
            if origin in modules:
                yield modules[origin], name
        elif isinstance(part, ast.Attribute):
            yield from ((found, part.attr) for found in modules.values())
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from ((found, part.value) for found in modules.values())


def defined_names(node: Definition) -> list[str]:
    """The names that a definition defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]


def reduced(module: TestModule) -> str:
    """The source without the definitions that are not reached, and without imports for them."""
    kept = [node for node in module.tree.body if is_kept(module, node)]
    used = {part.id for node in kept for part in ast.walk(node) if isinstance(part, ast.Name)}
    lines = module.source.splitlines(keepends=True)
    text, end, blank_lines = "", 0, 0
    for node in module.tree.body:
        before = "".join(lines[end : first_line(node) - 1])  # blank lines and comments
        code = "".join(lines[first_line(node) - 1 : node.end_lineno])
        end = node.end_lineno or 0
        blank_lines = max(blank_lines, len(before) - len(before.lstrip("\n")))
        if isinstance(node, ast.Import | ast.ImportFrom):
            code = import_of(node, used, code)
        elif node not in kept:
            continue
        if code:
            text += "\n" * blank_lines + before.lstrip("\n") + code
            blank_lines = 0
    return text


def is_kept(module: TestModule, node: ast.stmt) -> bool:
    """Whether a top-level statement stays. Imports are looked at by themselves."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return not isinstance(node, Definition) or bool(set(defined_names(node)) & module.reached)


def first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, with its decorators."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def import_of(node: ast.Import | ast.ImportFrom, used: set[str], source: str) -> str:
    """An import of only those names that are used; "" where there are none."""
    names = [
        alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used
    ]
    if len(names) == len(node.names):
        return source
    if not names:
        return ""
    kept = type(node)(**{**dict(ast.iter_fields(node)), "names": names})
    line = ast.unparse(kept) + "\n"
    if len(line) <= LINE_LENGTH + 1 or isinstance(node, ast.Import):
        return line
    listed = "".join(f"    {ast.unparse(alias)},\n" for alias in names)
    return f"from {node.module} import (\n{listed})\n"
