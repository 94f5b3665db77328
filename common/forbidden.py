"""Refuses, at run time, the calls that an exercise doesn't allow."""

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from common.assignment import Forbidden
from common.failures import ForbiddenCall


class Guard:
    """While it is held (`with guard:`), forbidden functions raise and forbidden modules don't import.

    A function is replaced wherever a loaded module names it, so an alias, `getattr` or `eval`
    meets the refusal too.
    """

    def __init__(self) -> None:
        self.entries: tuple[Forbidden, ...] = ()
        self.held = 0
        self.replaced: set[str] = set()

    def forbid(self, entries: Iterable[Forbidden]) -> None:
        """Refuse these from now on, and only these."""
        self.entries = tuple(entries)
        for entry in self.entries:
            if entry.call not in self.replaced and is_function(entry.call):
                replace_everywhere(resolve(entry.call), self.refusal(entry.call))
                self.replaced.add(entry.call)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def refuse(self, call: str) -> None:
        """Raise ForbiddenCall if that call is forbidden now."""
        for entry in self.entries:
            if self.held and (call == entry.call or call.startswith(entry.call + ".")):
                raise ForbiddenCall(
                    f"Exercise {' and '.join(entry.exercises)} doesn't allow {entry.call}: "
                    f"{entry.instead}."
                )

    def refusal(self, call: str) -> Callable:
        """What stands in the place of a forbidden function."""
        original = resolve(call)

        def refuse_or_call(*args: Any, **kwargs: Any) -> Any:
            self.refuse(call)
            return original(*args, **kwargs)

        return refuse_or_call

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Asked by Python for every module that isn't loaded yet."""
        self.refuse(name)
        return None

    def __enter__(self) -> None:
        self.held += 1

    def __exit__(self, *exception: object) -> None:
        self.held -= 1


def is_function(call: str) -> bool:
    """Whether a dotted name means something inside a module, and not a module."""
    module, _, name = call.rpartition(".")
    return bool(module) and callable(getattr(importlib.import_module(module), name, None))


def resolve(call: str) -> Callable:
    """The function that a dotted name means."""
    module, _, name = call.rpartition(".")
    return getattr(importlib.import_module(module), name)


def replace_everywhere(old: Callable, new: Callable) -> None:
    """Put another function wherever a loaded module names this one."""
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is old:
                setattr(module, name, new)
