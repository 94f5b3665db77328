"""The child process: loads the submission, calls it, and answers the judge's requests."""

import marshal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from autograder.grading.sandbox.kernel.confinement_plan import Attempts, Plan
from autograder.grading.sandbox.probe import probe
from autograder.grading.sandbox.standin_process.asked_standins import AskedStandins
from autograder.grading.sandbox.wire import codec
from autograder.grading.sandbox.wire.array_codec import CodecError
from autograder.grading.sandbox.wire.frames import ChannelClosed, FrameReader, send_frame
from autograder.grading.sandbox.wire.message_reader import HANDLE
from autograder.grading.sandbox.wire.shared_arrays import MappedArrays
from common.errors import Failure, ForbiddenCall, builtin_name
from common.labs.cells import Cells
from common.student_code.forbidden_calls import Guard
from common.student_code.loader import (
    executed,
    load_standins,
    mount,
    program_ended,
    read,
    read_student_attribute,
    replace_functions,
    unreadable_result,
)
from common.student_code.values import Unkept
from common.testing.feedback.failure import format_frames
from common.testing.remote.operations import OPERATIONS

MESSAGE_LIMIT = 4000


class Objects:
    """The objects that stay here. The judge knows them by number."""

    sends_generators = False

    def __init__(self, call_judge: Callable[[int], Any]) -> None:
        self.call_judge = call_judge
        self.table: list[Any] = []
        self.keeps_containers = True

    def number(self, value: Any) -> int:
        """Keep an object; its number."""
        self.table.append(value)
        return len(self.table) - 1

    def container_reference(self, value: Any) -> int | None:
        return self.number(value) if self.keeps_containers else None

    def node(self, value: Any) -> list[Any]:
        return [HANDLE, self.number(value)]

    def container(self, value: Any, reference: int | None) -> Any:
        return value

    def text(self, value: str) -> str:
        return value

    def data(self, value: bytes) -> bytes:
        return value

    def handle(self, reference: int) -> Any:
        raise CodecError("the judge keeps no objects")

    def kept(self, reference: int) -> Any:
        """An object of ours, or below 0 a function of the judge."""
        if reference < 0:
            return lambda *args, **kwargs: self.call_judge(-1 - reference)
        return self.table[reference]


class Child:
    """Answers one question after another."""

    def __init__(
        self,
        sock: socket.socket,
        arrays: MappedArrays,
        plan: Plan,
        guard: Guard,
        standins: AskedStandins | None,
    ) -> None:
        self.sock = sock
        self.arrays = arrays
        self.plan = plan
        self.objects = Objects(self.call_judge)
        self.number = 0  # of the question that is being answered
        self.guard = guard
        self.standins = standins
        self.cells: Cells | None = None
        self.replaced: dict[str, dict[str, Any]] = {}  # by module: until the first is imported
        self.frames = FrameReader(sock)

    def serve(self) -> None:
        """Mount the submission, then answer until the judge is gone."""
        mount(self.plan.packages)
        load_standins(self.plan.standins)
        if self.standins:
            self.standins.mount(self.plan.asked_standins)
        self.replaced = self.own_standins()
        self.guard.forbid(self.plan.forbidden)
        self.guard.__enter__()  # and never left
        self.guard.remove()
        while True:
            try:
                frame = self.frames.wait()
            except ChannelClosed:
                return
            number, question, *details = codec.decode(
                frame, self.objects, trusted=True, shared=self.arrays.inputs
            )
            self.number = number
            reply = self.answer(number, getattr(self, f"do_{question}"), details)
            flush_output()
            send_frame(self.sock, reply)

    def own_standins(self) -> dict[str, dict[str, Any]]:
        """What replaces functions of the submission, by module and name."""
        if self.standins and self.plan.replaced_apart:
            return self.standins.replacements(self.plan.replacements)
        return {one.module: executed(one) for one in self.plan.replacements}

    def answer(self, number: int, question: Callable[..., Any], details: list[Any]) -> bytes:
        """The reply's bytes: a value, or why there is none."""
        try:
            value = question(*details)
            self.arrays.results.used = 0  # the judge has copied those before
            return self.encoded(number, value)
        except Failure as error:
            why = error.explanation
            parts = [number, "failure", why.sentence, why.details, why.help]
        except ForbiddenCall as error:
            parts = [number, "forbidden", str(error)]
        except CodecError as error:
            parts = [number, "failure", unreadable_result().explanation.sentence, str(error), ""]
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            sentence = program_ended(builtin_name(error)).explanation.sentence
            parts = [number, "failure", sentence, "", ""]
        except BaseException as error:
            frames = format_frames(error, map(Path, self.plan.packages.values()))
            parts = [number, "raised", builtin_name(error), message_of(error), frames]
        return codec.encode([readable(part) for part in parts], self.objects)

    def encoded(self, number: int, value: Any) -> bytes:
        """The reply that holds a value. The list around it isn't kept: it would keep the value."""
        self.objects.keeps_containers = type(value) is not Unkept
        try:
            inner = value.value if type(value) is Unkept else value
            reply = codec.encode([number, "value", inner], self.objects, self.arrays.results)
            if self.objects.keeps_containers:
                self.objects.table.pop()
            return reply
        finally:
            self.objects.keeps_containers = True

    def call_judge(self, index: int) -> Any:
        """Call a function of the judge, in the middle of an answer, and wait for its result."""
        flush_output()
        send_frame(self.sock, codec.encode([self.number, index], self.objects))
        self.objects.table.pop()  # the list that was sent
        return codec.decode(self.frames.wait(), self.objects, trusted=True)

    def do_get(self, owner: Any, name: str, file: str) -> Any:
        """An attribute of an object, or of the submission itself."""
        if owner is None:
            replaced, self.replaced = self.replaced, {}
            replace_functions(self.plan.package, replaced)
            return read_student_attribute(self.plan.package, self.plan.modules, name)
        return read(owner, name, file)

    def do_call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call an object."""
        return function(*args, **kwargs)

    def do_operate(self, operation: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a named operation."""
        return OPERATIONS[operation](*args, **kwargs)

    def do_drop_inputs(self) -> int:
        """Where the last input ends that something here still refers to."""
        return self.arrays.inputs.end_of_use()

    def do_cell(self, number: int, source: str) -> list[Any]:
        """Run a cell of the submitted lab, after those before it."""
        if self.cells is None:
            self.cells = Cells().__enter__()  # and never left
        return self.cells.run(number, source)

    def do_probe(self, attempts: dict[str, Any]) -> dict[str, bool]:
        """Try what must not be possible here."""
        return probe(msgspec.convert(attempts, Attempts))

    def do_compile(self, file: str) -> bytes:
        """The bytecode of a submitted file. Nothing of it is run."""
        path = Path(self.plan.packages[self.plan.package]) / file
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        return marshal.dumps(code)


def message_of(error: BaseException) -> str:
    """An exception's message. Even that is student code."""
    try:
        return str(error)[:MESSAGE_LIMIT]
    except BaseException:
        return "(its message can't be read)"


def flush_output() -> None:
    """Let the judge have what was printed so far, if student code has left the way open."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def readable(part: Any) -> Any:
    """Text that can be sent, whatever student code put into it and however much."""
    if not isinstance(part, str):
        return part
    return part[:MESSAGE_LIMIT].encode("utf-8", "replace").decode()
