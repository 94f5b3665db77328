"""Finds which questions of a lab a change of its master can affect, by static analysis."""

import ast
from collections.abc import Iterator
from functools import cache

from autograder.authoring.lab_master import MasterCell, master_cells

# Calls for what people see, or that stop where an answer is missing.
HARMLESS = ("print", "show", "answered", "slide")


@cache
def questions_that_may_change(right: str, wrong: str) -> tuple[str, ...]:
    """The questions whose answers may differ between two texts of a master, in their order.

    What depends on something that differs, differs, too: statement by statement.
    """
    different: set[str] = set()
    imported: set[str] = set()  # np.mean(x) changes nothing of np
    inside: dict[str, set[str]] = {}  # what functions read whenever they are called
    found: dict[str, None] = {}
    for before, after in zip(master_cells(right), master_cells(wrong), strict=True):
        if after.kind != "code" or after.part == "tests":
            continue
        known = {ast.dump(statement) for statement in statements(before)}
        for statement in statements(after):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imported |= {name.asname or name.name for name in statement.names}
            reads, writes = names_in(statement)
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                inside[statement.name] = reads
            reads = with_what_is_inside(reads, inside)
            if ast.dump(statement) in known and not reads & different:
                continue
            different |= writes - imported
            if after.part == "solution" and writes - imported:
                found[after.question] = None
    return tuple(found)


def with_what_is_inside(reads: set[str], inside: dict[str, set[str]]) -> set[str]:
    """These names, and all that the functions among them read."""
    reached, waiting = set[str](), {*reads}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= inside.get(name, set()) - reached
    return reached


def statements(cell: MasterCell) -> list[ast.stmt]:
    """The statements of a cell."""
    return ast.parse(cell.source).body


def names_in(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The names that a statement reads, and those of what it may change."""
    reads, writes = set[str](), set[str]()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            (reads if isinstance(node.ctx, ast.Load) else writes).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            writes.add(node.name)
        writes |= set(changed_by(node))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        writes |= set(handed_to(statement.value))
    return reads, writes


def handed_to(call: ast.Call) -> Iterator[str]:
    """What a call whose result nobody takes may have changed: else, why call it?"""
    if isinstance(call.func, ast.Name) and call.func.id in HARMLESS:
        return
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(argument, ast.Name):
            yield argument.id


def changed_by(node: ast.AST) -> Iterator[str]:
    """The object that a method is called on, or that an item or attribute is set of."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func
    elif not (
        isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
    ):
        return
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
