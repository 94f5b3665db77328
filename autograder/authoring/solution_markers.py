"""Parses BEGIN/END SOLUTION markers, and makes a stub by removing solution blocks."""

import ast
import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

from common.errors import CourseError

BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"
# Generous, since a marker that is overlooked would hand its solution out.
MARKER_LIKE = re.compile(
    r"#[\W_]*((begin|end).*solution|solutions?[\W_]*(begin|end)\b)", re.IGNORECASE
)


@dataclass(frozen=True)
class Block:
    """The lines from a BEGIN marker to its END marker, both included; the first line is 1."""

    first: int
    last: int
    function: str  # "conv2d_forward", or "LeNet.forward"


def find_blocks(source: str, file: str) -> list[Block]:
    """Every solution block of a file; an error names the file and the line."""

    def fail(line: int, what: str) -> CourseError:
        return CourseError(f"{file}, line {line}: {what}")

    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise fail(error.lineno or 0, f"not valid Python: {error.msg}") from None
    lines = split_lines(source)
    blocks: list[Block] = []
    begun = 0
    for line, text in comments(source):
        if not MARKER_LIKE.match(text):
            continue
        if text not in (BEGIN, END) or lines[line - 1].strip() != text:
            raise fail(line, f"a marker is a line of its own, exactly '{BEGIN}' or '{END}'")
        if text == BEGIN:
            if begun:
                raise fail(line, f"'{BEGIN}' inside the block that line {begun} begins")
            begun = line
            continue
        if not begun:
            raise fail(line, f"'{END}' without a '{BEGIN}' before it")
        code = [number for number in range(begun + 1, line) if is_code(lines[number - 1])]
        if not code:
            raise fail(begun, "the solution block is empty")
        function = enclosing_function(tree, begun, code[-1])
        if not function:
            raise fail(begun, "a solution block must lie inside one function")
        if indent_of(lines[begun - 1]) != indent_of(lines[code[0] - 1]):
            raise fail(begun, f"'{BEGIN}' must be indented like the code after it")
        blocks.append(Block(begun, line, function))
        begun = 0
    if begun:
        raise fail(begun, f"'{BEGIN}' without an '{END}' after it")
    return blocks


def comments(source: str) -> list[tuple[int, str]]:
    """The comments of a file with their lines. A marker in a string is no marker."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def split_lines(source: str) -> list[str]:
    """The lines as Python counts them: str.splitlines also ends one at a form feed."""
    return source.split("\n")


def indent_of(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def is_code(line: str) -> bool:
    """Whether a line is more than white space or a comment."""
    return bool(line.strip()) and not line.strip().startswith("#")


def enclosing_function(tree: ast.Module, first: int, last: int) -> str:
    """The outermost function, with its class, around the given lines; "" where there is none."""

    def search(body: list[ast.stmt], prefix: str) -> str:
        for node in body:
            around = node.lineno < first and last <= (node.end_lineno or 0)
            if isinstance(node, ast.ClassDef) and around:
                return search(node.body, f"{prefix}{node.name}.")
            if isinstance(node, ast.FunctionDef) and around:
                return prefix + node.name
        return ""

    return search(tree.body, "")


def make_stub(source: str, file: str, message: Callable[[str], str]) -> str:
    """The file without its solutions; each block becomes one `raise NotImplementedError`."""
    lines = split_lines(source)
    for block in reversed(find_blocks(source, file)):
        indent = indent_of(lines[block.first - 1])
        text = f'raise NotImplementedError("{block.function}: {message(block.function)}")'
        lines[block.first - 1 : block.last] = [f"{indent}{text}"]
    stub = "\n".join(lines)
    try:
        ast.parse(stub)
    except SyntaxError as error:
        raise CourseError(
            f"{file}: without its solutions it is not valid Python: {error.msg}, "
            f"line {error.lineno} of the stub"
        ) from None
    leaked = solution_lines(source, file) & {line.strip() for line in split_lines(stub)}
    if leaked:
        raise CourseError(f"{file}: the stub would contain a line of the solution: {min(leaked)}")
    return stub


def solution_lines(source: str, file: str) -> set[str]:
    """The lines of code, without indentation, that stand in solution blocks and nowhere else."""
    lines = [line.strip() for line in split_lines(source)]
    inside: set[int] = set()
    for block in find_blocks(source, file):
        inside.update(range(block.first, block.last - 1))
    outside = {line for index, line in enumerate(lines) if index not in inside}
    return {lines[index] for index in inside if is_code(lines[index])} - outside
