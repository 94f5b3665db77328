"""Functions of earlier assignments in a child, each of which asks the process of the stand-ins."""

import builtins
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import ModuleType
from typing import Any

import numpy as np

from autograder.grading.sandbox.wire import codec
from autograder.grading.sandbox.wire.array_codec import CodecError
from autograder.grading.sandbox.wire.frames import (
    ChannelClosed,
    FrameReader,
    FrameTooLarge,
    send_frame,
)
from autograder.grading.sandbox.wire.message_reader import KEPT
from autograder.grading.sandbox.wire.shared_arrays import ArrayCopies, ArrayWriter
from common.exercise_needs import Replacement
from common.student_code.loader import mount_standin

# What an exact type is sent as that only subclasses a type that crosses.
PLAIN_KINDS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    *((np.ndarray, np.asarray), (tuple, tuple), (list, list)),
    *((int, int), (float, float), (str, str)),
)
# What those read whose call gets no reply.
NO_ANSWER = (
    "Our correct version of an earlier function no longer answers: it ran out of memory or time, "
    "or a call of it was interrupted."
)


class AskedStandins:
    """The child's end of the connection. It is student code's to misuse, and holds no secret."""

    sends_generators = False

    def __init__(self, sock: socket.socket, memory: memoryview) -> None:
        self.sock = sock
        self.replies = FrameReader(sock)
        self.requests = ArrayWriter(memory, keeps_layout=False)
        self.results = ArrayCopies(memory)
        self.dropped: list[int] = []
        self.lock = Lock()
        self.process = os.getpid()
        self.broken = False

    def mount(self, functions: Mapping[str, Iterable[str]]) -> None:
        """Let earlier assignments have these functions, by the module of their stand-in."""
        for standin, names in functions.items():
            *_, package, name = standin.split(".")
            module = ModuleType(f"assignments.{package}.{name}")
            for function in names:
                setattr(module, function, self.function(standin, function))
            mount_standin(package, name, module)

    def replacements(self, replacements: Iterable[Replacement]) -> dict[str, dict[str, Any]]:
        """What replaces functions of the submission, by module and name."""
        return {
            one.module: {name: self.function(one.module, name) for name in one.names}
            for one in replacements
        }

    def function(self, standin: str, name: str) -> Callable[..., Any]:
        """A function that has its work done in the other process."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return self.ask(f"{standin}.{name}", args, kwargs)

        call.__name__ = call.__qualname__ = name
        return call

    def ask(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a stand-in returns; what it raises is raised here, as the same builtin exception."""
        if os.getpid() != self.process:
            raise RuntimeError(
                "In grading, only your code's first process can call functions of earlier "
                "assignments. Call them there, not in a process that it has started."
            )
        with self.lock:
            dropped = [*self.dropped]
            self.requests.used = 0
            request = codec.encode([dropped, function, args, kwargs], self, self.requests)
            del self.dropped[: len(dropped)]
            status, *content = self.exchange(request)
        if status == "value":
            return content[0]
        kind, message = content
        try:
            error = getattr(builtins, kind)(message)
        except TypeError:  # UnicodeDecodeError and the like take more than a message
            error = RuntimeError(message)
        raise error

    def exchange(self, request: bytes) -> Any:
        """Send a request, and wait for the reply to it."""
        if self.broken:
            raise RuntimeError(NO_ANSWER)
        self.broken = True  # unless the reply is read to its end
        try:
            send_frame(self.sock, request)
            reply = self.replies.wait()
        except (ChannelClosed, FrameTooLarge):
            raise RuntimeError(NO_ANSWER) from None
        self.results.begin()
        answer = codec.decode(reply, self, shared=self.results)
        self.broken = False
        return answer

    def container_reference(self, value: Any) -> None:
        return None

    def node(self, value: Any) -> Any:
        if type(value) is Cache:
            return [KEPT, value.number]
        for kind, plain in PLAIN_KINDS:
            # An array that holds no numbers stays what it is.
            if isinstance(value, kind) and type(made := plain(value)) is not type(value):
                return codec.to_wire(made, self, self.requests, 0)
        raise TypeError(f"expected arrays, numbers or a cache, got a {type(value).__name__}")

    def container(self, value: Any, reference: int | None) -> Any:
        return value

    def text(self, value: str) -> str:
        return value

    def data(self, value: bytes) -> bytes:
        return value

    def handle(self, reference: int) -> "Cache":
        return Cache(reference, self.dropped_later)

    def dropped_later(self, number: int) -> None:
        """Note a number that nothing here refers to any more. The next call says so."""
        self.dropped.append(number)

    def kept(self, reference: int) -> Any:
        raise CodecError("nothing of this side is kept there")


class Cache:
    """What a stand-in keeps for its backward pass. It never changes, so a copy is the cache."""

    __slots__ = ("__weakref__", "drop", "number")

    def __init__(self, number: int, drop: Callable[[int], None]) -> None:
        self.number = number
        self.drop = drop

    def __del__(self) -> None:
        self.drop(self.number)

    def __copy__(self) -> "Cache":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Cache":
        return self
