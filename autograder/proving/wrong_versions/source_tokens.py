"""Reads code as the tokens that matter, so that comments and layout don't.

Left out are comments, blank lines, line breaks inside brackets, and a comma before a closing
bracket. Strings count by their value. Of indentation, only this counts: whether the next line is
deeper, less deep, or as deep.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from textwrap import dedent

LINE_END = "\n"
CLOSED_BY = {")": "(", "]": "[", "}": "{"}
NO_BRACKETS = re.compile(r"#.*|'[^'\n]*'|\"[^\"\n]*\"")  # comments and strings


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of code. After a statement's last piece, LINE_END and "<", "=" or ">" follow."""

    value: str  # what is compared
    start: int
    end: int
    column: int | None = None  # of the first token of a statement

    @property
    def ends_line(self) -> bool:
        """Whether a statement, or the head of a compound one, ends here."""
        return self.value.startswith(LINE_END)


@lru_cache(64)  # of a source, many pieces are looked for one after the other
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of a source, or of a piece of one that may begin and end anywhere."""
    found: list[Token] = []
    column = 0  # of the statement that is being read
    opened = missing_brackets(text)
    depth = len(opened)
    for kind, string, start, end in raw_tokens(text, opened):
        if kind == tokenize.COMMENT:
            continue
        if kind == tokenize.NL:
            if depth == 0 and found and not found[-1].ends_line:
                found.append(Token(LINE_END, found[-1].end, end))
            continue
        if kind == tokenize.OP:
            depth += (string in CLOSED_BY.values()) - (string in CLOSED_BY)
            if string in CLOSED_BY and found and found[-1].value == ",":
                found.pop()
        if found and not found[-1].ends_line:
            found.append(Token(token_value(kind, string), start, end))
            continue
        here = start - (text.rfind("\n", 0, start) + 1)
        if found:
            deeper = "=" if here == column else "<" if here < column else ">"
            found[-1] = replace(found[-1], value=LINE_END + deeper)
        column = here
        found.append(Token(token_value(kind, string), start, end, column))
    return tuple(found)


def raw_tokens(text: str, opened: str) -> Iterator[tuple[int, str, int, int]]:
    """The kind, the text and the position of each token.

    All is read inside brackets, where Python's tokenizer minds no indentation.
    """
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    reader = io.StringIO(f"({opened}\n{text}\n)").readline
    with suppress(tokenize.TokenError):  # the text may leave a bracket open
        for kind, string, start, end, _ in tokenize.generate_tokens(reader):
            if start[0] - 1 >= len(starts):
                return
            if start[0] > 1 and kind != tokenize.NEWLINE:
                first = starts[start[0] - 2] + start[1]
                yield kind, string, first, min(starts[end[0] - 2] + end[1], len(text))


def missing_brackets(text: str) -> str:
    """The brackets that a piece of code closes but doesn't open, as they would be opened."""
    with suppress(SyntaxError):
        ast.parse(dedent(text))
        return ""
    open_here, missing = 0, ""
    for letter in NO_BRACKETS.sub("", text):
        if letter in CLOSED_BY.values():
            open_here += 1
        elif letter in CLOSED_BY and open_here:
            open_here -= 1
        elif letter in CLOSED_BY:
            missing = CLOSED_BY[letter] + missing
    return missing


def token_value(kind: int, string: str) -> str:
    """What of a token is compared: of a string, its value and not its quotes."""
    if kind == tokenize.STRING:
        with suppress(SyntaxError):
            return ast.dump(ast.parse(string, mode="eval"))
    return string


def matches(tokens: Sequence[Token], pattern: Sequence[Token]) -> list[int]:
    """Where a pattern begins in the tokens. Whatever follows it, its last line end fits."""
    if not pattern:
        return []
    values = [token.value for token in tokens]
    wanted = [token.value for token in pattern]
    body = wanted[:-1] if wanted[-1] == LINE_END else wanted
    return [
        first
        for first in range(len(values) - len(wanted) + 1)
        if values[first : first + len(body)] == body
        and (body is wanted or tokens[first + len(body)].ends_line)
    ]
