"""Blocks calls and imports that an exercise forbids, with a message that says why."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from common.assignment import Forbidden
from common.errors import ForbiddenCall
from common.student_code.compiler_refusal import COMPILE, without_compiler
from common.student_code.function_removal import (
    find_operators,
    refusing_code,
    remove,
    remove_graph_runtimes,
    remove_operator,
)

# What a function or an operator is written on, where that has a name of its own which does the
# same work.
CORRELATIONS = ("numpy._core.multiarray.correlate", "numpy._core.multiarray.correlate2")
UNDERLYING = {
    "numpy.correlate": CORRELATIONS,
    "numpy.convolve": CORRELATIONS,
    "torch.nn.attention.flex_attention.flex_attention": (
        "torch._higher_order_ops.flex_attention.math_attention",
    ),
    "torch.onnx.ops.attention": ("torch.onnx.ops._impl.attention_23",),
    "aten::native_layer_norm": ("torch._refs._normalize",),
    "aten::native_batch_norm": ("torch._decomp.decompositions.native_batch_norm_helper",),
}


class Guard:
    """While it is held (`with guard:`), forbidden functions raise and modules don't import.

    A function is refused wherever a loaded module names it, so an alias, `getattr` or `eval`
    meets the refusal too. `known` is all that may ever be forbidden; looking for it takes time,
    so it is done once.
    """

    def __init__(self, known: Iterable[Forbidden]) -> None:
        self.entries: tuple[Forbidden, ...] = ()
        self.held = 0
        self.hidden_modules: dict[str, ModuleType] = {}
        self.modules_by_forbidden: dict[frozenset[str], tuple[set[str], set[str]]] = {}
        self.by_call: dict[str, Forbidden] = {}
        entries = list(known)
        calls = [COMPILE, *(call for entry in entries for call in calls_of(entry))]
        resolved = {call: resolve(call) for call in calls}
        self.functions: dict[str, Any] = {
            call: found for call, found in resolved.items() if callable(found)
        }
        self.references = find_references(self.functions)
        operators = [operator for entry in entries for operator in entry.operators]
        self.operators = find_operators(operators)
        self.shown = {operator: self.best_name(operator) for operator in operators}
        for entry in entries:
            for call in calls_of(entry):
                if call in self.functions:
                    refusing_code(refusal_text(entry, call))
            for operator in entry.operators:
                refusing_code(refusal_text(entry, self.shown[operator]))

    def forbid(self, entries: Iterable[Forbidden]) -> None:
        """Refuse these from now on, and only these."""
        self.entries = tuple(entries)
        self.by_call = {call: entry for entry in self.entries for call in calls_of(entry)}
        # All of them, whatever is forbidden now: a name that a module takes today may be
        # forbidden tomorrow.
        while self.references:
            call, references = self.references.popitem()
            refusal = self.refusal(call)  # one for all references, so that a later guard finds them
            for module, name in references:
                setattr(module, name, refusal)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Let nobody in this process ever call what is forbidden now."""
        for call in list(self.functions):
            entry = self.entry_for(call)
            if entry is not None:
                remove(self.functions.pop(call), refusal_text(entry, call))
        for entry in self.entries:
            for operator in entry.operators:
                remove_operator(self.operators[operator], refusal_text(entry, self.shown[operator]))
        if any(entry.operators for entry in self.entries):
            remove_graph_runtimes()

    def best_name(self, operator: str) -> str:
        """What a refusal calls an operator: by its public name, if it has one."""
        *public, internal = python_names(operator)
        return next((name for name in reversed(public) if name in self.functions), internal)

    def entry_for(self, call: str) -> Forbidden | None:
        """What forbids that call now, if anything does."""
        inside = (entry for entry in self.entries if call.startswith(entry.call + "."))
        return self.by_call.get(call) or next(inside, None)

    def refuse(self, call: str) -> None:
        """Raise ForbiddenCall if that call is forbidden now."""
        entry = self.entry_for(call) if self.held else None
        if entry is not None:
            raise ForbiddenCall(refusal_text(entry, call))

    def refusal(self, call: str) -> Callable[..., Any]:
        """The replacement of a forbidden function or class."""
        original = self.functions[call]
        if call == COMPILE:
            return without_compiler(original, lambda: self.held > 0)
        if isinstance(original, type):
            return refusing_class(original, lambda: self.refuse(call))

        def refuse_or_call(*args: Any, **kwargs: Any) -> Any:
            self.refuse(call)
            return self.functions[call](*args, **kwargs)

        return refuse_or_call

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Asked by Python for every module that isn't loaded yet."""
        self.refuse(name)
        return None

    def __enter__(self) -> None:
        if not self.held:
            self.hide()
        self.held += 1

    def hide(self) -> None:
        """Let no one find a forbidden module that is loaded already: it must be asked for again."""
        self.hidden_modules = {
            name: sys.modules.pop(name) for name in self.loaded_forbidden(self.entries)
        }

    def show(self) -> None:
        """Put back what was hidden."""
        sys.modules.update(self.hidden_modules)

    def loaded_forbidden(self, entries: Iterable[Forbidden]) -> list[str]:
        """Forbidden modules that are loaded, and all that lies in them.

        Each name is looked at once, since there are many.
        """
        loaded = frozenset({entry.call for entry in entries} & sys.modules.keys())
        if not loaded:
            return []
        inside, outside = self.modules_by_forbidden.setdefault(loaded, (set(), set()))
        for name in sys.modules.keys() - inside - outside:
            (outside if loaded.isdisjoint(parents(name)) else inside).add(name)
        return [name for name in inside if name in sys.modules]

    def __exit__(self, *exception: object) -> None:
        self.held -= 1
        if not self.held:
            self.show()

    def exempt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that may use what is forbidden, whoever calls it."""

        def call(*args: Any, **kwargs: Any) -> Any:
            held, self.held = self.held, 0
            if held:
                self.show()
            try:
                return function(*args, **kwargs)
            finally:
                self.held = held
                if held:
                    self.hide()

        call.__name__ = call.__qualname__ = function.__name__
        return call


def refusing_class(original: type, refuse: Callable[[], None]) -> type:
    """A class that refuses, or else behaves like the original: called, subclassed or inspected."""

    class Refusal(type):
        def __new__(mcs, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(mcs, name, bases, content)
            refuse()
            real = tuple(original if isinstance(base, Refusal) else base for base in bases)
            return type(original)(name, real, content)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            refuse()
            return original(*args, **kwargs)

        def __getattr__(cls, name: str) -> Any:
            refuse()
            return getattr(original, name)

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, original)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, original)

    return Refusal(original.__name__, (), {"__doc__": original.__doc__})


def parents(name: str) -> Iterator[str]:
    """a.b.c, a.b and a, for a.b.c."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def python_names(operator: str) -> list[str]:
    """The names by which Python code may call an operator, whether it has them all or not."""
    namespace, _, name = operator.partition("::")
    public = [f"torch.{name}", f"torch.nn.functional.{name}"] if namespace == "aten" else []
    return [*public, f"torch.ops.{namespace}.{name}"]


def calls_of(entry: Forbidden) -> list[str]:
    """All that an entry forbids by name: its call, what that is written on, and operators."""
    named = [entry.call, *entry.operators]
    beneath = [inner for name in named for inner in UNDERLYING.get(name, ())]
    public = [name for operator in entry.operators for name in python_names(operator)[:-1]]
    return [entry.call, *beneath, *public]


def refusal_text(entry: Forbidden, call: str = "") -> str:
    """What a student reads who used something forbidden. An operator is named as it was called."""
    named = any(call in python_names(operator) for operator in entry.operators)
    name = call if named else entry.call
    *others, last = entry.exercises
    if not others:
        return f"Exercise {last} doesn't allow {name}: {entry.instead}."
    return f"Exercises {', '.join(others)} and {last} don't allow {name}: {entry.instead}."


def refusal_texts(entry: Forbidden) -> list[str]:
    """All that a student may read who used something forbidden."""
    names = [name for operator in entry.operators for name in python_names(operator)]
    return [refusal_text(entry, name) for name in ("", *names)]


def resolve(call: str) -> object:
    """What a dotted name means in the modules that are loaded; None for anything else."""
    module, _, name = call.rpartition(".")
    if module.partition(".")[0] not in sys.modules:
        return None
    return getattr(importlib.import_module(module), name, None)


def find_references(functions: dict[str, Any]) -> dict[str, list[tuple[ModuleType, str]]]:
    """Every loaded module that names one of the functions, and by which name."""
    references: dict[str, list[tuple[ModuleType, str]]] = {call: [] for call in functions}
    calls = {id(function): call for call, function in functions.items()}
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in calls:
                references[calls[id(value)]].append((module, name))
    return references
