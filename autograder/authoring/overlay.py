"""Composes an alternative solution from the reference and an overlay of what differs.

An overlay is a Python file of imports and definitions: functions, classes and constants.

- A definition replaces the reference's definition of the same name, where that stands.
- A class that the reference has too keeps the members that the overlay doesn't define. Its
  decorators and bases are the overlay's.
- Any other definition goes before the overlay's next definition that the reference has too, or to
  the end if there is none.
- Imports follow the reference's imports. Docstrings replace the reference's.
"""

import ast
import copy
import io
from dataclasses import dataclass

from autograder.authoring.syntax_hash import code_of, first_line, node_hash
from common.errors import CourseError

Block = ast.Module | ast.ClassDef


@dataclass(frozen=True)
class Edit:
    """A text that replaces some lines of the reference, counted from 0."""

    first: int
    last: int
    text: str


def compose(reference: bytes, overlay: bytes, file: str) -> bytes:
    """The reference's source with all that the overlay defines; errors name the overlay's path."""
    try:
        tree = ast.parse(overlay.decode("utf-8"))
    except (SyntaxError, ValueError) as error:
        raise CourseError(f"{file} is not valid Python: {error}") from None
    lines = lines_of(reference)
    edits = Overlay(lines_of(overlay), file).edits(ast.parse(reference), tree)
    edits.sort(key=lambda edit: (edit.first, edit.last))
    for edit in reversed(edits):  # from the end, so that line numbers stay right
        lines[edit.first : edit.last] = [edit.text]
    return "".join(lines).encode("utf-8")


@dataclass(frozen=True)
class Overlay:
    """The lines of an overlay, and where they come from."""

    lines: list[str]
    file: str

    def edits(self, reference: Block, overlay: Block, within: str = "") -> list[Edit]:
        """What the overlay changes in the reference's module, or in one of its classes.

        within: what stands before a member's name in messages, such as "LeNet.".
        """
        if all(is_import(node) for node in code_of(overlay)):
            where = f" in {within[:-1]}" if within else ""
            raise CourseError(f"{self.file} defines nothing{where}.")
        known = {name_of(node): node for node in code_of(reference)}
        edits, added = self.head_edits(reference, overlay), ""
        for node in code_of(overlay):
            name, text = name_of(node), self.text(overlay, node)
            if is_import(node):
                continue
            if not name:
                raise CourseError(
                    f"{self.file}, line {node.lineno}: neither an import nor a definition."
                )
            if name not in known:
                added += f"{text}\n\n"
                continue
            before = known[name]
            if code_hash(before) == code_hash(node):
                raise CourseError(
                    f"{self.file}: {within}{name} is the same as in the reference: remove it."
                )
            edits.append(Edit(first_line(before), first_line(before), added))
            added = ""
            if isinstance(before, ast.ClassDef) and isinstance(node, ast.ClassDef):
                edits += self.edits(before, node, f"{within}{name}.")
            else:
                edits.append(Edit(first_line(before), end_of(before), text))
        if added:
            end = end_of(reference.body[-1])
            edits.append(Edit(end, end, f"\n\n{added.rstrip()}\n"))
        return edits

    def head_edits(self, reference: Block, overlay: Block) -> list[Edit]:
        """What the overlay changes above the definitions: a class's header, docstring, imports."""
        first, own_first = reference.body[0], overlay.body[0]
        edits = []
        if isinstance(reference, ast.ClassDef) and isinstance(overlay, ast.ClassDef):
            header = self.lines[first_line(overlay) : first_line(own_first)]
            edits.append(Edit(first_line(reference), first_line(first), "".join(header)))
        if ast.get_docstring(overlay):
            end = end_of(first) if ast.get_docstring(reference) else first_line(first)
            edits.append(Edit(first_line(first), end, self.text(overlay, own_first)))
        imports = [node for node in reference.body if is_import(node)]
        below = end_of(imports[-1] if imports else first)
        there = {node_hash(node) for node in imports}
        new = [node for node in overlay.body if is_import(node) and node_hash(node) not in there]
        return [*edits, Edit(below, below, "".join(self.text(overlay, node) for node in new))]

    def text(self, block: Block, node: ast.stmt) -> str:
        """A statement of a block, with the comments above it."""
        ends = [end_of(other) for other in block.body if other.lineno < node.lineno]
        above = 0 if isinstance(block, ast.Module) else first_line(node)
        start = ends[-1] if ends else above
        return "".join(self.lines[start : end_of(node)]).lstrip("\n").rstrip() + "\n"


def name_of(node: ast.stmt) -> str:
    """What a statement defines; nothing, where it is no definition."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return ast.unparse(target)
    return ""


def is_import(node: ast.stmt) -> bool:
    """Whether a statement is an import."""
    return isinstance(node, ast.Import | ast.ImportFrom)


def code_hash(node: ast.stmt) -> str:
    """The hash of what a definition does, whatever its docstring and its types say."""
    bare = copy.deepcopy(node)
    for part in ast.walk(bare):
        if isinstance(part, ast.arg):
            part.annotation = None
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            part.returns = None
    return node_hash(bare)


def end_of(node: ast.stmt) -> int:
    """The line below a statement, counted from 0."""
    assert node.end_lineno is not None
    return node.end_lineno


def lines_of(source: bytes) -> list[str]:
    """The lines of a source, split where Python's parser does."""
    return io.StringIO(source.decode("utf-8"), newline="").readlines()
