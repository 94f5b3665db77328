"""`student` in a student's own pytest run: the code runs in the test's process.

So tracebacks, `pdb` and coverage work as usual. Values cross by the same rules as in the isolated
face: arrays are copied both ways, what is not plain data comes back as a Handle, and each test
gets a module that is freshly imported.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from common.assignment import Assignment
from common.determinism import seed_all
from common.errors import Failure, ForbiddenCall
from common.exercise_needs import Needed, replacements_for
from common.labs.lab_in_process import run_lab_in_process
from common.labs.lab_run import Lab
from common.student_code.forbidden_calls import Guard
from common.student_code.loader import (
    executed,
    load_standins,
    mount,
    program_ended,
    read,
    read_student_attribute,
    replace_functions,
    student_attribute_label,
    unreadable_result,
)
from common.student_code.values import (
    MAX_DEPTH,
    Handle,
    StudentObjects,
    Unkept,
    copy_array,
    copy_tensor,
    is_container,
    is_generator,
    is_kept,
    is_plain,
    is_tensor,
    keep,
    map_items,
)
from common.testing.feedback.failure import StudentCall, format_frames, mark_as_students
from common.testing.remote.operations import OPERATIONS
from common.testing.remote.scratch_files import FOLDER
from common.testing.student_face import StudentFace


class DirectFace(StudentFace, StudentObjects):
    """Student code in this process."""

    def __init__(
        self, assignment: Assignment, packages: Mapping[str, Path], standins: Iterable[str] = ()
    ) -> None:
        self.assignment = assignment
        self.packages = dict(packages)
        self.standins = tuple(standins)
        self.guard = Guard(assignment.forbidden)
        self.fault = ""
        self.printed = ""
        self.labs: dict[bytes, Lab] = {}
        self.pid = None
        self.replaced: dict[str, dict[str, Any]] = {}  # by module: until the first is imported

    @contextmanager
    def open(
        self, exercise: str, test: str = "", share: float = 1.0, *, needed: Iterable[Needed] = ()
    ) -> Iterator[Handle]:
        """What a test of that exercise gets as `student`, for as long as the test runs."""
        self.guard.forbid(self.assignment.forbidden_in(exercise))
        mount(self.packages)
        load_standins(self.standins, self.guard)
        replacements = replacements_for(self.assignment.own_standins, needed)
        self.replaced = {one.module: executed(one, self.guard) for one in replacements}
        seed_all()
        try:
            yield Handle(self, None, self.assignment.files[0])
        finally:
            FOLDER.remove()

    def lab(self, content: bytes) -> Lab:
        """A submitted lab, run once for all its tests."""
        if content not in self.labs:
            self.labs[content] = run_lab_in_process(content, self.assignment)
        return self.labs[content]

    def repeatable(self, text: str) -> str:
        """The text as it is: people who debug want to see paths and addresses."""
        return text

    def get(self, target: Handle, name: str) -> Any:
        top = target._reference is None

        def find() -> object:
            if top:
                replaced, self.replaced = self.replaced, {}
                replace_functions(self.assignment.name, replaced)
                return read_student_attribute(self.assignment.name, self.assignment.modules, name)
            return read(target._reference, name, target._label)

        label = student_attribute_label(self.assignment.modules, name) if top else name
        return self.outgoing(self.guarded(find, "Your code"), label)

    def call(
        self, target: Handle, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.run(target._reference, label, args, kwargs)

    def operate(
        self, operation: str, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return self.run(OPERATIONS[operation], label, args, kwargs)

    def changed_inputs(
        self, target: Handle, label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[str]:
        return list(self.operate("changed_inputs", label, (target, args, kwargs), {}).values())

    def carried(self, value: Any) -> Any:
        """A copy, as of what a test passes."""
        return incoming(value)

    def run(
        self,
        function: Callable[..., Any],
        label: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call something with values that come from a test."""
        args = tuple(incoming(value) for value in args)
        kwargs = {key: incoming(value) for key, value in kwargs.items()}
        return self.outgoing(self.guarded(lambda: function(*args, **kwargs), label), label)

    def guarded(self, action: Callable[[], Any], label: str) -> Any:
        """Run student code, and note on what it raises where it came from."""
        try:
            with self.guard:
                return action()
        except (Failure, ForbiddenCall):
            raise
        except SystemExit as error:
            raise program_ended(type(error).__name__) from error
        except Exception as error:
            frames = format_frames(error, self.packages.values())
            mark_as_students(error, StudentCall(label, frames))
            raise

    def outgoing(self, value: Any, label: str, depth: int = 0) -> Any:
        """A value of student code as a test gets it."""
        if type(value) is Unkept:
            return self.outgoing(value.value, label)
        if depth > MAX_DEPTH:
            raise unreadable_result(f"a value is nested more than {MAX_DEPTH} levels deep")
        if is_container(value):
            items = map_items(value, lambda item: self.outgoing(item, label, depth + 1))
            return keep(items, value)
        if not is_plain(value):
            return Handle(self, value, label)
        if is_tensor(value):
            return copy_tensor(value)
        return value.copy() if isinstance(value, np.ndarray) else value


def incoming(value: Any) -> Any:
    """A test's value as student code gets it."""
    if isinstance(value, Handle):
        return value._reference
    if is_kept(value):
        return value.reference
    if is_container(value):
        return map_items(value, incoming)
    if is_generator(value):
        return copy.deepcopy(value)
    if is_tensor(value):
        return copy_tensor(value)
    return copy_array(value) if isinstance(value, np.ndarray) else value
