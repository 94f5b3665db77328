"""Answers calls of stand-ins, in a process of its own. The requests come from student code.

So they are read as a child's replies are: nothing in them is believed. Values cross as between
judge and child; what is neither a number nor an array, such as a cache, stays here and has a number
until the other side has dropped it.
"""

import importlib
import itertools
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from autograder.grading.sandbox.wire import codec
from autograder.grading.sandbox.wire.array_codec import CodecError
from autograder.grading.sandbox.wire.frames import (
    ChannelClosed,
    FrameReader,
    FrameTooLarge,
    send_frame,
)
from autograder.grading.sandbox.wire.message_reader import HANDLE
from autograder.grading.sandbox.wire.shared_arrays import ArrayCopies, ArrayWriter
from common.errors import builtin_name
from common.exercise_needs import Replacement
from common.student_code.loader import executed
from common.student_code.values import is_plain, is_tensor

MESSAGE_LIMIT = 4000


@dataclass(frozen=True)
class Kept:
    """A value that stays in this process."""

    number: int


class StandinService:
    """Calls the functions that stand-ins offer, one after another."""

    sends_generators = False

    def __init__(
        self,
        sock: socket.socket,
        memory: memoryview,
        modules: Iterable[str],
        replacements: Iterable[Replacement] = (),
    ) -> None:
        """memory: shared with the other side. A request is copied from it before its reply."""
        self.sock = sock
        self.requests = ArrayCopies(memory)
        self.results = ArrayWriter(memory, keeps_layout=False)
        self.functions = functions_of(modules, replacements)
        self.caches: dict[int, Any] = {}
        self.numbers = itertools.count()

    def serve(self) -> None:
        """Answer until the other side is gone, or sends more than can be read."""
        frames = FrameReader(self.sock)
        try:
            while True:
                send_frame(self.sock, self.answer(frames.wait()))
        except (ChannelClosed, FrameTooLarge):
            return

    def answer(self, frame: bytes) -> bytes:
        """The reply to one request: a value, or what was raised."""
        self.requests.begin()
        self.results.used = 0
        try:
            dropped, name, args, kwargs = codec.decode(frame, self, shared=self.requests)
            for number in dropped:
                self.caches.pop(number, None)
            value = self.functions[name](*args, **kwargs)
            return codec.encode(["value", self.outgoing(value)], self, self.results)
        except Exception as error:
            message = str(error)[:MESSAGE_LIMIT].encode("utf-8", "replace").decode()
            return codec.encode(["raised", builtin_name(error), message], self)

    def outgoing(self, value: Any) -> Any:
        """A result: numbers and arrays cross, alone or in a tuple, and everything else is kept."""
        if type(value) is tuple:
            return tuple(map(self.part, value))
        return self.part(value)

    def part(self, value: Any) -> Any:
        """One of the values that a function returned."""
        if is_plain(value) and not is_tensor(value):
            return value
        kept = Kept(next(self.numbers))
        self.caches[kept.number] = value
        return kept

    def container_reference(self, value: Any) -> None:
        return None

    def node(self, value: Any) -> list[Any]:
        return [HANDLE, value.number]

    def container(self, value: Any, reference: int | None) -> Any:
        return value

    def text(self, value: str) -> str:
        return value

    def data(self, value: bytes) -> bytes:
        return value

    def handle(self, reference: int) -> Any:
        raise CodecError("nothing of the other side is known here")

    def kept(self, reference: int) -> Any:
        return self.caches[reference]


def functions_of(
    modules: Iterable[str], replacements: Iterable[Replacement]
) -> dict[str, Callable[..., Any]]:
    """What these stand-ins offer, and nothing else of them, by module and name."""
    earlier = {
        f"{module}.{name}": getattr(importlib.import_module(module), name)
        for module in modules
        for name in importlib.import_module(module).__all__
    }
    own = {
        f"{replacement.module}.{name}": function
        for replacement in replacements
        for name, function in executed(replacement).items()
    }
    return earlier | own
