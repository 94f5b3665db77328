"""The judge's connection to one child: requests, replies, time limits, limit on printed output."""

import math
import os
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from autograder.grading.sandbox.child_replies import Answers, Request, value_of_reply
from autograder.grading.sandbox.input_watch import alias, any_changed, changed_keys, name_of
from autograder.grading.sandbox.kernel.group_time import GroupTime
from autograder.grading.sandbox.kernel.home_folder import HOME_BYTES, too_full
from autograder.grading.sandbox.kernel.process_tree_time import ProcessTreeTime
from autograder.grading.sandbox.standin_process.standin_starter import StandinStarter
from autograder.grading.sandbox.wire import codec
from autograder.grading.sandbox.wire.array_codec import CodecError
from autograder.grading.sandbox.wire.frames import (
    ChannelClosed,
    ChannelTimeout,
    FrameReader,
    FrameTooLarge,
    readable,
    seconds_left,
    send_frame_until,
)
from autograder.grading.sandbox.wire.message_reader import KEPT
from autograder.grading.sandbox.wire.shared_arrays import ArrayWriter, SharedArrays
from common.assignment import Forbidden, Limits
from common.errors import MALFORMED, ChildFailure
from common.student_code.loader import student_attribute_label
from common.student_code.values import Handle, JudgeFunction, StudentObjects, is_kept
from common.student_text import StudentText

OUTPUT_LIMIT = 1024 * 1024
OUTPUT_SHOWN = 2000
REPLY_LIMIT = 16 * 1024 * 1024  # of what lies not in shared memory
WATCH_SECONDS = 0.25
# Code that waits for a core of a busy machine gets more of it than this; code that sleeps, less.
IDLE_SHARE = 0.01
IDLE_LOOKS = 8  # one after another, at code that computes less than that: it sleeps
MOST_CALLS = 10_000  # of a function of ours


class Conversation(StudentObjects):
    """Asks a child one question at a time, each within the time that the test has left."""

    sends_generators = True

    def __init__(
        self,
        sock: socket.socket,
        output: int,
        limits: Limits,
        forbidden: Iterable[Forbidden] = (),
    ) -> None:
        self.sock = sock
        self.output = output
        self.limits = limits
        self.forbidden = tuple(forbidden)
        self.asked = ("", "")  # the file, and the name in it
        self.reader = FrameReader(sock, REPLY_LIMIT)
        self.questions = 0
        self.seconds = 0.0  # spent waiting for the child
        self.silence: list[int] = []
        self.printed = bytearray()
        self.printed_bytes = 0
        self.failure: str | None = None
        self.timed_out = False
        self.by_clock = False  # whether it exceeded the limit by the clock
        self.may_sleep = True  # as long as the clock allows
        self.idle_looks = 0  # the last looks at code that computed next to nothing
        self.computed_at_look = 0.0
        self.functions: dict[str, Handle] = {}
        self.own_functions: list[JudgeFunction] = []  # those that student code may call
        self.modules: tuple[str, ...] = ()
        self.arrays = SharedArrays()
        self.own_arrays: SharedArrays | None = None  # for baselines
        self.stubs: Path | None = None  # of the assignment, where parameters have their names
        self.called: set[str] = set()  # functions that an ordinary call has been made to
        self.changing: set[str] = set()  # those that have changed an input then
        self.watched: Path | None = None  # a home that only we keep from filling the disk
        self.pid: int | None = None
        # The child, and what it starts.
        self.processes: GroupTime | ProcessTreeTime | None = None
        self.computed_before = 0.0  # their processor time that doesn't count
        self.standins: StandinStarter | None = None  # those that it asks another process for
        self.next_look = math.inf  # when to look at them

    def limit(self, limits: Limits) -> None:
        """Let these limits hold for what follows. What came before doesn't count."""
        self.limits, self.seconds = limits, 0.0
        self.computed_before += self.computed
        self.idle_looks, self.computed_at_look = 0, 0.0
        self.next_look = time.monotonic() + WATCH_SECONDS

    @property
    def computed(self) -> float:
        """The seconds of processor time that the child and all that it started have used."""
        return self.processes.seconds() - self.computed_before if self.processes else 0.0

    @property
    def sleeps(self) -> bool:
        """Whether the child has computed next to nothing lately."""
        return self.idle_looks >= IDLE_LOOKS

    def student(self, modules: Sequence[str]) -> Handle:
        """What a test gets as `student`."""
        self.modules = tuple(modules)
        return Handle(self, None, f"{modules[0]}.py")

    def get(self, target: Handle, name: str) -> Any:
        top = target._reference is None
        if top and name in self.functions:
            return self.functions[name]
        label = student_attribute_label(self.modules, name) if top else name
        file = label if label.endswith(".py") else target._label
        self.asked = (file, name)
        value = self.ask("get", None if top else target, name, file)
        if isinstance(value, Handle):
            value = Handle(self, value._reference, label)
            if top:  # a module's functions and classes stay what they are
                self.functions[name] = value
        return value

    def call(
        self, target: Handle, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        result = self.ask("call", target, args, kwargs, label=label)
        self.called.add(label)
        self.note_changes(label, [*args, *kwargs.values()])
        return result

    def operate(
        self, operation: str, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        result = self.ask("operate", operation, args, kwargs, label=label)
        if operation == "call_each":
            self.note_changes(label, [value for call in args[1] for value in call])
        return result

    def carried(self, value: Any) -> Any:
        """A value through the same encoding and memory as those of the child."""
        if self.own_arrays is None:
            self.own_arrays = SharedArrays()
        memory = self.own_arrays.results
        memory.begin()
        data = codec.encode(value, self, ArrayWriter(memory.memory, keeps_layout=False))
        return codec.decode(data, Answers(self, ""), shared=memory)

    def note_changes(self, label: str, inputs: Iterable[Any]) -> None:
        """Remember a function that has changed an input of an ordinary call.

        Else one that counts its calls could spare just those that are watched.
        """
        if label not in self.changing and any_changed(self.arrays.inputs, inputs):
            self.changing.add(label)

    def changed_inputs(
        self, target: Handle, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[str]:
        args = tuple(map(alias, args))
        kwargs = {name: alias(value) for name, value in kwargs.items()}
        if label not in self.called:  # student code can recognize a watched call by its frames
            self.call(target, label, args, kwargs)
        said = self.operate("changed_inputs", label, (target, args, kwargs), {})
        if not isinstance(said, dict):
            self.fail(MALFORMED)
        inputs = dict(enumerate(args)) | kwargs
        seen = changed_keys(self.arrays.inputs, inputs)
        if seen is None:
            self.fail("Your code keeps more inputs of earlier calls than fit into memory.")
        changed = [
            name_of(key, said.get(key), self.stubs) for key in inputs if key in {*seen, *said}
        ]
        return changed or (["an input in another call of this test"] * (label in self.changing))

    def ask(self, question: str, *details: Any, label: str = "") -> Any:
        """One question, and the child's answer or the reason why there is none."""
        if self.failure:
            raise ChildFailure(self.failure)
        if self.arrays.inputs.used > self.arrays.reuse_at:
            self.reuse_memory()
        self.questions += 1
        self.arrays.inputs.begin()
        request = codec.encode([self.questions, question, *details], self, self.arrays.inputs)
        start = time.monotonic()
        try:
            deadline = start + self.limits.test_wall_seconds - self.seconds
            while True:
                reply = self.exchange(request, deadline)
                self.arrays.results.begin()
                answer = codec.decode(reply, Answers(self, label), shared=self.arrays.results)
                called = self.function_called(answer)
                if called is None:
                    return value_of_reply(
                        answer, Request(self.questions, label, self.asked, self.forbidden)
                    )
                request = codec.encode(called(), self)
        except ChannelTimeout:
            self.timed_out = self.by_clock = True
            self.fail(
                f"Your code took longer than {self.limits.test_wall_seconds:g} seconds.",
                f"It computed for {self.computed:.1f} of them, and waited for the rest.",
            )
        except ChannelClosed:
            self.check_processor_time()  # the kernel ends a process that uses more
            self.fail("Your code's process died: a crash, out of memory, or a call to exit().")
        except FrameTooLarge:
            self.fail("Your code returned more data than the grader reads.")
        except (ValueError, TypeError) as error:  # a CodecError is a ValueError
            if getattr(error, "student_call", None) is not None:
                raise
            self.fail(MALFORMED)
        finally:
            self.seconds += time.monotonic() - start

    def function_called(self, answer: Any) -> JudgeFunction | None:
        """The function of ours that a message calls, if it does."""
        if not isinstance(answer, list) or len(answer) != 2 or type(answer[0]) is not int:
            return None
        number, index = answer
        if type(index) is not int or not 0 <= index < len(self.own_functions):
            raise CodecError("a call of a function that doesn't exist")
        if number != self.questions or self.own_functions[index].calls >= MOST_CALLS:
            raise CodecError("an unexpected call")
        return self.own_functions[index]

    def reuse_memory(self) -> None:
        """Lay the next inputs where those lie that the child has dropped."""
        inputs = self.arrays.inputs
        self.arrays.reuse_at = len(inputs.memory)
        end = self.ask("drop_inputs")
        if type(end) is not int or not 0 <= end <= inputs.used:
            self.fail(MALFORMED)
        self.arrays.reuse(end)

    def fail(self, sentence: str, details: str = "") -> NoReturn:
        """Give up on this child: every further question fails the same way."""
        self.failure = sentence
        raise ChildFailure(sentence, details) from None

    def exchange(self, request: bytes, deadline: float) -> bytes:
        """Send a request and wait for the reply, watching what the child prints."""
        if not self.reader.nothing_waits():
            raise CodecError("an unexpected reply")
        send_frame_until(self.sock, request, deadline)
        printed = False
        while True:
            reply = self.reader.take()
            if reply is not None:
                if printed:
                    self.drain()
                return reply
            if self.watched and too_full(self.watched):
                self.fail(f"Your code wrote more than {HOME_BYTES // 2**20} MB of files.")
            if time.monotonic() > self.next_look:
                self.check_processor_time()
                self.next_look = time.monotonic() + WATCH_SECONDS
            seconds = min(seconds_left(deadline), WATCH_SECONDS)
            # The child prints before it replies, so that what it printed is seen with the reply.
            calls = self.standins.watched if self.standins else []
            ready = readable([self.sock.fileno(), self.output, *calls], seconds)
            if not ready:
                self.look_for_sleep()
            if self.standins and not ready.isdisjoint(calls):
                self.standins.start()
            if self.output in ready:
                self.read_output()
                printed = True
            if self.sock.fileno() in ready:
                self.reader.feed()

    def check_processor_time(self) -> None:
        """End the test of a child whose processes together take more time than one may have."""
        if self.computed > self.limits.test_seconds:
            self.timed_out = True
            self.fail(
                f"Your code used more than the {self.limits.test_seconds:g} seconds of processor "
                "time that a test may take."
            )

    def look_for_sleep(self) -> None:
        """Note whether the child has computed since the last look; if not, it may have to end.

        Looks are counted, not seconds: a judge that gets no core itself makes fewer of them.
        """
        computed = self.computed
        idle = computed - self.computed_at_look < IDLE_SHARE * WATCH_SECONDS
        self.idle_looks = self.idle_looks + 1 if idle else 0
        self.computed_at_look = computed
        if self.sleeps and not self.may_sleep:
            self.timed_out = True
            self.fail(
                f"Your code waited for {IDLE_LOOKS * WATCH_SECONDS:g} seconds without computing. "
                "Tests before this one waited until their time was over, so it had less."
            )

    def read_output(self) -> None:
        """Take some of what the child printed; too much of it ends the test."""
        try:
            data = os.read(self.output, 1 << 16)
        except BlockingIOError:  # another reader was faster
            return
        self.printed_bytes += len(data)
        self.printed += data[: max(0, OUTPUT_SHOWN - len(self.printed))]
        if self.printed_bytes > OUTPUT_LIMIT:
            self.fail(f"Your code printed more than {OUTPUT_LIMIT // 1024 // 1024} MB.")
        if not data:  # the child closed its output; don't spin on it
            os.close(self.output)
            self.output, forever = os.pipe()
            self.silence.append(forever)  # an open pipe that nobody writes to

    def drain(self) -> None:
        """Take what was printed before the reply."""
        while readable([self.output], 0):
            self.read_output()

    def container_reference(self, value: Any) -> None:
        return None

    def node(self, value: Any) -> list[Any]:
        if isinstance(value, Handle):
            return [KEPT, value._reference]
        if is_kept(value):
            return [KEPT, value.reference]
        if isinstance(value, JudgeFunction):
            if value not in self.own_functions:
                self.own_functions.append(value)
            return [KEPT, -1 - self.own_functions.index(value)]
        raise TypeError(f"a test can't pass a {type(value).__name__} to student code")

    def close(self) -> None:
        """Hang up."""
        self.sock.close()
        self.arrays.close()
        if self.own_arrays:
            self.own_arrays.close()
        for descriptor in (self.output, *self.silence):
            os.close(descriptor)
        if self.standins:
            self.standins.close()

    @property
    def printed_text(self) -> str:
        """The beginning of what the child printed, marked as its own."""
        text = str(StudentText(self.printed.decode("utf-8", "replace")))
        more = self.printed_bytes - len(self.printed)
        return f"{text}\n... ({more} more bytes)" if more > 0 else text
