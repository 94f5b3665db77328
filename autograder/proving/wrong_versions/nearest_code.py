"""Finds the code that is most like code that isn't there, for an error to name it."""

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from textwrap import dedent

from autograder.proving.wrong_versions.source_tokens import Token, matches, tokens_of

CLOSE = 30  # this many of the likely candidates are compared thoroughly


def nearest_code(source: str, within: tuple[int, int], wanted: str) -> str:
    """The expression or statements most like the wanted ones; "" if nothing is like them.

    within: where in the source to look. What is found occurs there once.
    """
    inside = [token for token in tokens_of(source) if within[0] <= token.start < within[1]]
    lines = max(sum(token.ends_line for token in tokens_of(wanted)), 1)
    compared = SequenceMatcher(autojunk=False)
    compared.set_seq2([token.value for token in tokens_of(wanted) if not token.ends_line])

    def likeness(candidate: tuple[Token, ...], thoroughly: bool) -> float:
        compared.set_seq1([token.value for token in candidate if not token.ends_line])
        return compared.ratio() if thoroughly else compared.quick_ratio()

    likely = sorted(candidates(source, within, lines), key=lambda c: -likeness(c, False))[:CLOSE]
    for candidate in sorted(likely, key=lambda c: -likeness(c, True)):
        if likeness(candidate, True) and len(matches(inside, candidate)) == 1:
            start = candidate[0].start - (candidate[0].column or 0)
            return dedent(source[start : candidate[-1].end]).strip()
    return ""


@lru_cache(32)  # when one patch no longer fits, others may not either
def candidates(source: str, within: tuple[int, int], lines: int) -> list[tuple[Token, ...]]:
    """All runs of so many statements; where it is one, all expressions too."""
    inside = [token for token in tokens_of(source) if within[0] <= token.start < within[1]]
    ends = [0, *(place + 1 for place, token in enumerate(inside) if token.ends_line)]
    found = [
        tuple(inside[first : last - 1]) for first, last in zip(ends, ends[lines:], strict=False)
    ]
    if lines == 1:
        starts = {token.start: place for place, token in enumerate(inside)}
        stops = {token.end: place + 1 for place, token in enumerate(inside) if not token.ends_line}
        found += [
            tuple(inside[starts[first] : stops[last]])
            for first, last in expressions(source)
            if first in starts and last in stops
        ]
    return [candidate for candidate in dict.fromkeys(found) if candidate]


def expressions(source: str) -> Iterator[tuple[int, int]]:
    """Where each expression of a source begins and ends."""
    starts = [0]
    lines = source.encode().split(b"\n")  # the parser counts bytes
    for line in lines:
        starts.append(starts[-1] + len(line.decode()) + 1)

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1][:column].decode())

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset is not None:
            yield (
                offset(node.lineno, node.col_offset),
                offset(node.end_lineno, node.end_col_offset),
            )
