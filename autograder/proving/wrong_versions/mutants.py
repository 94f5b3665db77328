"""Makes mutants of the reference with cosmic-ray, for mutation testing of the graders."""

import ast
import difflib
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

from autograder.authoring.solution_markers import find_blocks
from autograder.proving.right_versions import reference
from autograder.proving.wrong_versions.source_patch import extent
from autograder.proving.wrong_versions.source_tokens import tokens_of
from common.assignment import Assignment

# Of the eleven ways to replace a binary operator, the ones that a person might write.
LIKELY_OPERATORS = {
    *("Add_Sub", "Sub_Add", "Mul_Add", "Mul_Div", "Div_Mul", "Div_FloorDiv", "FloorDiv_Div"),
    *("FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul"),
}
LEFT_OUT = ("NoOp", "VariableReplacer", "VariableInserter")


@dataclass(frozen=True)
class Mutant:
    """One changed version of a file."""

    file: str
    line: int
    function: str
    change: str  # "- old line" and "+ new line"
    statement: str  # its tokens before and after, whatever the layout
    source: bytes
    earlier: int = 0  # how often the very same change was made further up in the function

    @property
    def name(self) -> str:
        """A name that stays the same as long as the changed statement does."""
        digest = hashlib.sha256(f"{self.function}\n{self.statement}".encode()).hexdigest()
        ending = f"+{self.earlier}" if self.earlier else ""
        return f"{self.file}:{self.function}:{digest[:10]}{ending}"


def mutants(assignment: Assignment) -> list[Mutant]:
    """Every distinct change inside the solution blocks of the reference."""
    return [
        mutant
        for file, function in mutated_functions(assignment)
        for mutant in mutants_of(assignment, file, function)
    ]


def mutated_functions(assignment: Assignment) -> list[tuple[str, str]]:
    """The functions and classes with solution blocks, each with its file."""
    found = (
        (file, block.function.partition(".")[0])
        for file, content in reference(assignment).items()
        for block in find_blocks(content.decode("utf-8"), file)
    )
    return list(dict.fromkeys(found))


def mutants_of(assignment: Assignment, file: str, function: str) -> list[Mutant]:
    """The distinct changes of one function or class, each with a name of its own."""
    found: dict[bytes, Mutant] = {}
    for mutant in changed_versions(file, reference(assignment)[file], function):
        found.setdefault(mutant.source, mutant)
    named: dict[str, Mutant] = {}
    for mutant in found.values():
        while mutant.name in named:
            mutant = replace(mutant, earlier=mutant.earlier + 1)
        named[mutant.name] = mutant
    return list(named.values())


def changed_versions(file: str, content: bytes, function: str) -> Iterator[Mutant]:
    """The changes of a function that lie in a solution block and still parse.

    It is changed and parsed on its own: the operators parse all that they are given, every time.
    """
    source = content.decode("utf-8")
    blocks = find_blocks(source, file)
    first, last = extent(source, function, file)
    offset = source[:first].count("\n")
    for part in changes_of(source[first:last]):
        line, change = difference(source[first:last], part)
        inside = [block for block in blocks if block.first < offset + line < block.last]
        if inside and parses(part):
            statement = changed_statement(source[first:last], part)
            changed = (source[:first] + part + source[last:]).encode()
            yield Mutant(file, offset + line, inside[0].function, change, statement, changed)


def changes_of(source: str) -> Iterator[str]:
    """A piece of source with one change by one operator, for each that there is."""
    provider = OperatorProvider()
    for name in sorted(provider):
        if name in LEFT_OUT or not is_likely(name):
            continue
        operator = provider[name]()
        for occurrence in itertools.count():
            changed = mutate_code(source.encode(), operator, occurrence)
            if changed is None:
                break
            yield changed


def is_likely(operator: str) -> bool:
    """Whether an operator makes changes that are worth grading."""
    if operator.startswith("ReplaceBinaryOperator_"):
        return operator.removeprefix("ReplaceBinaryOperator_") in LIKELY_OPERATORS
    return True


def difference(before: str, after: str) -> tuple[int, str]:
    """The first line that differs, and the change."""
    old, new = before.splitlines(), after.splitlines()
    for number, (left, right) in enumerate(zip(old, new, strict=False), start=1):
        if left != right:
            changed = difflib.unified_diff(old, new, lineterm="", n=0)
            lines = [
                line for line in changed if line[:1] in "+-" and line[:3] not in ("+++", "---")
            ]
            return number, "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines[:4])
    return 0, ""


def changed_statement(before: str, after: str) -> str:
    """The tokens of the statement that differs, before and after."""
    old, new = ([token.value for token in tokens_of(text)] for text in (before, after))
    ends = [place for place, token in enumerate(tokens_of(before)) if token.ends_line]
    ahead = alike(old, new)
    behind = alike(old[ahead:][::-1], new[ahead:][::-1])
    first = max((end + 1 for end in ends if end < ahead), default=0)
    rest = len(old) - min(end for end in ends if end >= len(old) - behind - 1)
    return f"{' '.join(old[first : len(old) - rest])}\n{' '.join(new[first : len(new) - rest])}"


def alike(first: list[str], second: list[str]) -> int:
    """How many entries two lists share before they differ."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))


def parses(source: str) -> bool:
    """Whether a text is valid Python."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True
