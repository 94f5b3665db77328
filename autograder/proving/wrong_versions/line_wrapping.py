"""Removes parentheses that only wrap a line, as formatters add them."""

import ast
import tokenize
from collections.abc import Collection, Iterator
from functools import cache
from keyword import iskeyword
from textwrap import dedent

from autograder.proving.wrong_versions.source_tokens import CLOSED_BY, raw_tokens

Pieces = list[tuple[str, int, int]]  # tokens without comments and line breaks, and where they lie
Pair = tuple[int, int]  # an opening bracket and its closing one, among the pieces


@cache
def unwrapped(text: str) -> str:
    """The same code on longer lines; a text that is no valid code stays as it is."""
    tree = tree_of(text)
    if tree is None:
        return text
    raw = raw_tokens(text, "")
    pieces = [(s, a, b) for kind, s, a, b in raw if kind not in (tokenize.COMMENT, tokenize.NL)]
    breaking = [
        pair
        for pair in breaking_pairs(text, pieces)
        if tree_of(without(text, pieces, [pair])) == tree
    ]
    return without(text, pieces, breaking)


def tree_of(text: str) -> str | None:
    """The syntax tree of code; None if it is not valid."""
    try:
        return ast.dump(ast.parse(dedent(text)))
    except SyntaxError:
        return None


def breaking_pairs(text: str, pieces: Pieces) -> Iterator[Pair]:
    """The round brackets with a line break behind them, but those of calls."""
    waiting: list[int] = []
    for place, (string, _, _) in enumerate(pieces):
        if string in CLOSED_BY.values():
            waiting.append(place)
        elif string in CLOSED_BY and waiting:
            first = waiting.pop()
            breaks = "\n" in text[pieces[first][2] : pieces[first + 1][1]]
            before = pieces[first - 1][0] if first else ""
            called = before in CLOSED_BY or (before.isidentifier() and not iskeyword(before))
            if string == ")" and breaks and not called:
                yield first, place


def without(text: str, pieces: Pieces, pairs: Collection[Pair]) -> str:
    """The text without these brackets and a comma before the end, all that they held in a line."""
    opening, closing = {first for first, _ in pairs}, {last for _, last in pairs}
    commas = {last - 1 for last in closing if pieces[last - 1][0] == ","}
    left_out = opening | closing | commas
    written, end, held = "", 0, 0
    for place, (_, start, stop) in enumerate(pieces):
        gap = text[end:start]
        written += " " if held and "\n" in gap else gap
        held += (place in opening) - (place in closing)
        written += "" if place in left_out else text[start:stop]
        end = stop
    return written + text[end:]
