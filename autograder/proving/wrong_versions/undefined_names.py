"""Finds names that code uses but nothing defines, such as those that a careless patch leaves."""

import builtins
import dis
from collections.abc import Iterator
from functools import cache
from types import CodeType

IMPLICIT = {*vars(builtins), "__file__", "__annotations__", "__conditional_annotations__"}
LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}
STORES = {"STORE_NAME", "STORE_GLOBAL"}


@cache
def undefined_names(source: str) -> frozenset[str]:
    """The names that are used as global ones, and that no statement of the file defines."""
    module = compile(source, "<patched>", "exec", dont_inherit=True)
    codes = [*nested(module)]
    defined = IMPLICIT | names(module, STORES)
    defined |= {name for code in codes for name in names(code, {"STORE_GLOBAL"})}
    return frozenset(
        name for code in codes for name in names(code, LOADS) - names(code, STORES) - defined
    )


def nested(code: CodeType) -> Iterator[CodeType]:
    """A piece of compiled code, and all functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def names(code: CodeType, operations: set[str]) -> set[str]:
    """The names in a piece of code's own instructions of some kinds."""
    found = dis.get_instructions(code)
    return {str(entry.argval) for entry in found if entry.opname in operations}
