"""Replaces a piece of code inside a function, ignoring comments and layout."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from autograder.proving.wrong_versions.line_wrapping import unwrapped
from autograder.proving.wrong_versions.nearest_code import nearest_code
from autograder.proving.wrong_versions.source_tokens import Token, matches, tokens_of
from common.errors import CourseError

Tokens = Sequence[Token]
Definition = ast.Module | ast.ClassDef | ast.FunctionDef


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
    fits = patch.occurrence <= len(found) if patch.occurrence else len(found) == 1
    if not fits:
        raise CourseError(f"{here}: {does_not_fit(source, patch, len(found))}")
    chosen = found[max(patch.occurrence, 1) - 1]
    fresh = spliced(source, chosen, pattern, patch.replace)
    try:
        after = definition(fresh, patch.function)
    except SyntaxError as error:
        raise CourseError(f"{here}: the patched file is not valid Python: {error}.") from None
    before = definition(source, patch.function)
    if before and after and ast.dump(before) == ast.dump(after):
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
    """The source with a text instead of these tokens, which match that pattern.

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
    """A line indented like the statements around it."""
    if not line.strip():
        return ""
    column = len(line) - len(line.lstrip())
    beside = max((known for known in columns if known <= column), default=min(columns))
    return " " * (columns[beside] + column - beside) + line.lstrip()


def does_not_fit(source: str, patch: Patch, count: int) -> str:
    """Says that the code to replace doesn't occur once, and what is there instead."""
    place = patch.function or patch.file
    wanted = f"occur {patch.occurrence} times or more" if patch.occurrence else "occur once"
    problem = f"the code to replace must {wanted} in {place}, but occurs {count} times"
    if patch.function:
        problem += f" ({patch.file})"
    nearest = nearest_code(source, extent(source, patch.function, ""), patch.find)
    return f"{problem}; nearest: `{nearest}`" if nearest else f"{problem}."


def extent(source: str, function: str, here: str) -> tuple[int, int]:
    """Where a function, or a method as Class.method, begins and ends in a source text."""
    found = definition(source, function)
    if found is None:
        raise CourseError(f"{here}: there is no function {function}.")
    if isinstance(found, ast.Module):
        return 0, len(source)
    lines = source.splitlines(keepends=True)
    first = sum(map(len, lines[: found.lineno - 1]))
    return first, sum(map(len, lines[: found.end_lineno]))


@lru_cache(32)  # trees are large, and few sources are patched at a time
def definition(source: str, function: str) -> Definition | None:
    """A function or class in the syntax tree; the whole tree where no function is named."""
    found: Definition = ast.parse(source)
    for name in function.split(".") if function else ():
        inside = [node for node in found.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        named = [node for node in inside if node.name == name]
        if not named:
            return None
        found = named[0]
    return found
