"""Executes a notebook's code cells in this process, and reads the answers (`q1_...`).

Nothing is drawn on a screen, and what belongs to Jupyter itself (Otter's grader, widgets, magics)
does nothing. No Jupyter kernel (nbclient) runs it: a kernel needs sockets, which the sandbox
denies, and gives back printed text rather than values.
"""

import builtins
import os
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from common.errors import builtin_name
from common.labs.magics import cell_code
from common.labs.questions import ANSWER, Unanswered, is_unanswered
from common.labs.time_limit import TookTooLong
from common.student_code.values import MAX_DEPTH, as_numpy, is_container, is_plain, is_tensor

DATA, UNANSWERED, OBJECT, LARGE = "data", "unanswered", "object", "large"
MAX_ANSWERS = 100
MAX_BYTES = 1 << 20  # of all answers together
MAX_ANSWER_DEPTH = MAX_DEPTH // 2  # when it is sent, an answer lies within other containers
MAX_INTEGER_BITS = 1000  # no float holds many more
MESSAGE_LIMIT = 500
NO_OP_MODULES = ("otter", "ipywidgets", "IPython", "IPython.display")


class NoOp:
    """Takes every call and every attribute, and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> "NoOp":
        return self

    def __getattr__(self, name: str) -> "NoOp":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> "NoOp":
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class NoOpModule(ModuleType):
    """A module in which every name is there, and does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.version_info = (99, 0)  # matplotlib asks which IPython there is

    def __bool__(self) -> bool:
        return False  # and whether there is one at all

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return NoOp


def refuse_input(*prompt: object) -> NoReturn:
    """Replaces input()."""
    raise EOFError("input() doesn't work when the lab is graded: write the value into the cell")


class Cells:
    """The namespace of a notebook, and what its cells leave there."""

    def __init__(self, interruptible: bool = False) -> None:
        """interruptible: whether who presses Ctrl-C, or waits no longer, ends more than a cell."""
        self.propagated = (KeyboardInterrupt, TookTooLong) if interruptible else ()
        os.environ.setdefault("MPLBACKEND", "Agg")
        self.names: dict[str, Any] = {
            "__name__": "__main__",
            "input": refuse_input,
            "display": NoOp(),
            "get_ipython": NoOp(),
        }
        self.replaced_modules: dict[str, ModuleType | None] = {}

    def __enter__(self) -> "Cells":
        self.replaced_modules = {name: sys.modules.get(name) for name in NO_OP_MODULES}
        sys.modules.update({name: NoOpModule(name) for name in NO_OP_MODULES})
        return self

    def __exit__(self, *exception: object) -> None:
        for name, module in self.replaced_modules.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module

    def run(self, number: int, source: str) -> list[Any]:
        """Run one cell: the kind of error that ended it, its message, and all answers so far."""
        kind, message = "", ""
        try:
            exec(cell_code(source, f"<cell {number}>"), self.names)
        except Unanswered as error:
            kind, message = "Unanswered", str(error)
        except BaseException as error:
            if isinstance(error, self.propagated):
                raise
            kind, message = builtin_name(error), message_of(error)
        with suppress(Exception):  # a cell may have replaced it with anything
            sys.modules["matplotlib.pyplot"].close("all")
        return [kind, message, find_answers(self.names)]


def message_of(error: BaseException) -> str:
    """An exception's message. Even that is student code."""
    try:
        return str(error)[:MESSAGE_LIMIT]
    except BaseException:
        return ""


def find_answers(names: dict[str, Any]) -> dict[str, list[Any]]:
    """Every answer that there is: what it is, and its value if that is data."""
    found: dict[str, list[Any]] = {}
    bytes_left = MAX_BYTES
    for name, value in list(names.items()):
        if not (type(name) is str and ANSWER.fullmatch(name) and len(found) < MAX_ANSWERS):
            continue
        size = size_of(value)
        if is_unanswered(value):
            found[name] = [UNANSWERED, None]
        elif size is None:
            found[name] = [OBJECT, None]
        elif size > bytes_left:
            found[name] = [LARGE, None]
        else:
            bytes_left -= size
            found[name] = [DATA, value]
    return found


def size_of(value: Any, depth: int = 0) -> int | None:
    """About how many bytes a value has as data; None where it isn't data alone.

    A value that can't be sent must be detected here: the other answers would be lost with it.
    """
    if depth > MAX_ANSWER_DEPTH:
        return None
    if is_container(value):
        items = [*value, *value.values()] if isinstance(value, dict) else list(value)
        sizes = [size_of(item, depth + 1) for item in items[: MAX_BYTES // 8]]
        return None if None in sizes else 8 * len(items) + sum(filter(None, sizes))
    try:
        return size_of_plain(value) if is_plain(value) else None
    except (TypeError, RuntimeError, UnicodeEncodeError):  # a bfloat16 tensor, half a character
        return None


def size_of_plain(value: Any) -> int:
    """How many bytes a number, a text or an array has."""
    if is_tensor(value):
        value = as_numpy(value)
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, str):
        return len(value.encode())
    if type(value) is int and value.bit_length() > MAX_INTEGER_BITS:
        return MAX_BYTES + 1
    return len(value) if isinstance(value, bytes) else 8


# The name that messages give to a student's own exception.
ERROR_NAMES = {"Unanswered"}
ERROR_NAMES |= {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
