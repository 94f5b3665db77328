"""Replaces a piece of code inside a function, ignoring comments and layout."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from textwrap import dedent

from autograder.proving.nearest_code import nearest_code
from autograder.proving.wrong_versions.line_wrapping import unwrapped
from autograder.proving.wrong_versions.source_tokens import Token, matches, tokens_of
from common.errors import CourseError

Tokens = Sequence[Token]


@dataclass(frozen=True)
class Patch:
    """What to replace in which file."""

    file: str
    function: str  # or Class.method; "" for the whole file
    find: str
    replace: str
    occurrence: int = 0  # which one of several; 0 where there is only one


@cache
def apply_patch(source: str, patch: Patch, here: str) -> str:
    """A source with the patch made; remembered, since all is parsed to check it.

    here: where the patch is written down, for an error.
    """
    pattern, found = occurrences(source, patch.function, patch.find, here)
    if not found:  # lines may be wrapped in brackets that the patch knows nothing of
        longer = unwrapped(source)
        pattern, found = occurrences(longer, patch.function, unwrapped(patch.find), here)
        source = longer if found else source
    first, last = extent(source, patch.function, here)
    fits = patch.occurrence <= len(found) if patch.occurrence else len(found) == 1
    if not fits:
        raise CourseError(f"{here}: {does_not_fit(source, patch, len(found), (first, last))}")
    chosen = found[max(patch.occurrence, 1) - 1]
    fresh = spliced(source, chosen, pattern, patch.replace)
    before, after = source[first:last], fresh[first : last + len(fresh) - len(source)]
    try:
        ast.parse(fresh)
        changed = ast.dump(ast.parse(dedent(after))) != ast.dump(ast.parse(dedent(before)))
    except SyntaxError as error:
        raise CourseError(f"{here}: the patched file is not valid Python: {error}.") from None
    if not changed:
        raise CourseError(f"{here}: the patch changes nothing.")
    return fresh


def occurrences(source: str, function: str, find: str, here: str) -> tuple[Tokens, list[Tokens]]:
    """The tokens to look for, and all that fit them inside a function."""
    first, last = extent(source, function, here)
    inside = [token for token in tokens_of(source) if first <= token.start < last]
    pattern = tokens_of(find)
    if pattern and pattern[-1].ends_line and not find.rstrip(" ").endswith("\n"):
        pattern = pattern[:-1]  # more of the statement may follow
    found = matches(inside, pattern)
    if not found:  # its lines may lie inside of brackets that it doesn't open itself
        pattern = tuple(token for token in pattern if not token.ends_line)
        found = matches(inside, pattern)
    return pattern, [inside[place : place + len(pattern)] for place in found]


def spliced(source: str, old: Tokens, pattern: Tokens, text: str) -> str:
    """The source with a text in place of these tokens, which fit that pattern.

    Where they begin a statement, the text moves to its column.
    """
    start, end = old[0].start, old[-1].end
    if old[0].column is not None:
        start -= old[0].column
        columns = {
            theirs.column: ours.column
            for theirs, ours in zip(pattern, old, strict=True)
            if theirs.column is not None and ours.column is not None
        }
        text = "\n".join(moved(line, columns) for line in text.split("\n"))
    if text:
        text = text.rstrip("\n") + "\n" * old[-1].ends_line
    return source[:start] + text + source[end:]


def moved(line: str, columns: Mapping[int, int]) -> str:
    """A line at the column where the statements beside it are."""
    if not line.strip():
        return ""
    column = len(line) - len(line.lstrip())
    beside = max((known for known in columns if known <= column), default=min(columns))
    return " " * (columns[beside] + column - beside) + line.lstrip()


def does_not_fit(source: str, patch: Patch, count: int, within: tuple[int, int]) -> str:
    """That the code to replace isn't there once, and what there is instead."""
    place = patch.function or patch.file
    wanted = f"occur {patch.occurrence} times or more" if patch.occurrence else "occur once"
    problem = f"the code to replace must {wanted} in {place}, but occurs {count} times"
    if patch.function:
        problem += f" ({patch.file})"
    nearest = nearest_code(source, within, patch.find)
    return f"{problem}; nearest: `{nearest}`" if nearest else f"{problem}."


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
