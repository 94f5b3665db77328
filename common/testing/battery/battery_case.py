"""A case of the battery: with what it calls a function or a method, and what that may do."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

# What a case may be exempt from, besides changes of single inputs.
VIEWS, MEMORY, DRAWS, DIFFERS = "views", "memory", "draws", "differs"
EXEMPTIONS = (VIEWS, MEMORY, DRAWS, DIFFERS)

Draw = Callable[[Any, np.random.Generator], Iterable[Any]]


@dataclass(frozen=True)
class Case:
    """With what the battery calls a function or a method.

    function: as tests write it after `student.`: "conv2d_forward", or "layers.LSTM.forward".
    inputs: the names of its arguments, for messages: "x w b".
    draw: draw(student, rng) returns new arguments of always the same shapes.
    owner: owner(student, rng) makes a new object with the method.
    in_both_modes: the object is a module of PyTorch, which is called itself, in training and in
        evaluation mode.
    settings: further arguments, by keyword.
    returns: so many items of a returned tuple are the caller's, and what follows, a cache, is not;
        None for all of it.
    exempt: reasons, by what the case may do: "views" (return a view of an input), "memory"
        (return something else in the next call), "draws" (use global random states), "differs"
        (return the same for other inputs), or the name of an input that it may change.
    """

    function: str
    inputs: str
    draw: Draw
    owner: Callable[[Any, np.random.Generator], Any] | None = None
    in_both_modes: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    returns: int | None = None
    exempt: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, reason in self.exempt.items():
            if what not in (*EXEMPTIONS, *self.names) or not reason:
                raise ValueError(f"battery case {self.function}: no exemption is called {what!r}")

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return self.inputs.split()

    @property
    def changing(self) -> list[int]:
        """The places of the arguments that it may change."""
        return [place for place, name in enumerate(self.names) if name in self.exempt]

    @property
    def name(self) -> str:
        """What messages call it: "softmax", or "LSTM.forward"."""
        return ".".join(self.function.split(".")[-2 if self.owner else -1 :])

    def callables(self, student: Any, rng: np.random.Generator) -> Iterator[Any]:
        """The function; or the method of new objects, a module in both modes."""
        if self.owner is None:
            yield reduce(getattr, self.function.split("."), student)
            return
        if not self.in_both_modes:
            yield getattr(self.owner(student, rng), self.function.rpartition(".")[2])
            return
        for mode in ("train", "eval"):
            module = self.owner(student, rng)
            getattr(module, mode)()
            yield module
