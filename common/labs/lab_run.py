"""Walks through a submitted lab cell by cell, in any process, and collects its answers."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.assignment import LAB_FILE, Assignment, LabSettings, wall_limit
from common.errors import ChildFailure, Failure
from common.labs.cells import DATA, ERROR_NAMES, LARGE, MAX_ANSWERS, OBJECT, UNANSWERED
from common.labs.notebook import read_notebook
from common.labs.questions import ANSWER
from common.student_code.values import is_numeric, is_plain, is_tensor
from common.student_text import StudentText, plain, unmarked

MAX_NOTES = 5
TEXT_LIMIT = 500
SHOWN_LETTERS = 40  # letters of a cell's first line

RunCell = Callable[[int, str], Any]  # as Cells.run: the kind of error, its message, the answers


@dataclass
class Lab:
    """What a lab answers, and what went wrong while it ran."""

    answers: dict[str, list[Any]] = field(default_factory=dict)
    cell_errors: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    cells: int = 0  # the number of cells that were run
    failure: Failure | None = None  # why it can't be run at all

    def answer(self, name: str) -> Any:
        """The answer of that name; a Failure says why there is none."""
        if self.failure:
            raise self.failure
        why = str(StudentText(self.cell_errors[0])) if self.cell_errors else ""
        kind, value = self.answers.get(name, ("", None))
        if kind == DATA:
            return value
        if kind == UNANSWERED:
            raise Failure(
                f"{name} is not answered yet.",
                help="Replace the three dots with your answer, run the lab, and save it.",
            )
        if kind == OBJECT:
            raise Failure(f"{name} must be a number, a string or an array, got another object.")
        if kind == LARGE:
            raise Failure(f"{name} exceeds the size limit of an answer.")
        raise Failure(
            f"{LAB_FILE} doesn't define {name}.",
            why,
            help="Keep the variable names of the answers and the original cells of the lab.",
        )

    def notes(self) -> list[str]:
        """What there is to say of the whole."""
        if self.failure:
            return [unmarked(self.failure.explanation.sentence)]
        unanswered = [name for name, (kind, _) in self.answers.items() if kind == UNANSWERED]
        notes = self.cell_errors[:MAX_NOTES]
        if len(self.cell_errors) > MAX_NOTES:
            notes = [*notes, f"{len(self.cell_errors) - MAX_NOTES} more cells failed."]
        if unanswered:
            first = f"{LAB_FILE}: the first unanswered question is {plain(unanswered[0])}."
            notes = [first, *notes]
        return notes


class LabClock:
    """How much time the cells of a lab have left.

    computed: the processor time that they have used so far.
    """

    def __init__(self, limits: LabSettings, computed: Callable[[], float]) -> None:
        self.limits = limits
        self.computed = computed
        self.used = 0.0  # seconds of processor time, or of waiting that is worth as many

    @contextmanager
    def cell(self) -> Iterator[float]:
        """The seconds of processor time that one cell may take; those that it takes count."""
        left = max(self.limits.total_seconds - self.used, 0.001)
        start, before = time.monotonic(), self.computed()
        try:
            yield min(self.limits.cell_seconds, left)
        finally:
            waited = (time.monotonic() - start) / wall_limit(1)
            self.used += max(self.computed() - before, waited)

    def time_limit_failure(self, seconds: float, by_clock: bool) -> ChildFailure:
        """The failure of a cell that exceeded a time limit."""
        cell = self.limits.cell_seconds
        if seconds < cell:
            whole = self.limits.total_seconds
            return ChildFailure(
                f"All cells together used more than {whole:g} seconds of processor time, or took "
                f"longer than {wall_limit(whole):g}."
            )
        if by_clock:
            return ChildFailure(f"It took longer than {wall_limit(cell):g} seconds.")
        return ChildFailure(
            f"It used more than the {cell:g} seconds of processor time that a cell may take."
        )


def run_lab(content: bytes, assignment: Assignment, run_cell: RunCell) -> Lab:
    """Run a lab. A cell that fails costs what it would have answered; the others are run too.

    A cell that hangs or ends its process ends the run: what was answered before it counts.
    """
    lab = Lab()
    try:
        notebook = read_notebook(content, assignment)
    except Failure as failure:
        lab.failure = failure
        return lab
    lab.texts = notebook.texts
    for number, source in notebook.code:
        try:
            kind, message, answers = checked_reply(run_cell(number, source))
        except ChildFailure as failure:
            # Reported first: all later answers are missing because of it.
            lab.cell_errors.insert(
                0,
                f"{LAB_FILE} stopped at {cell_name(number, source)}. {failure} "
                "Answers from earlier cells count.",
            )
            return lab
        lab.cells += 1
        lab.answers = answers
        if kind and kind != "Unanswered":
            where = f"{LAB_FILE}, {cell_name(number, source)}"
            lab.cell_errors.append(f"{where}: {plain(kind)}: {plain(message)}".rstrip(": "))
    return lab


def cell_name(number: int, source: str) -> str:
    """A cell as its student finds it: Jupyter shows no numbers of this kind."""
    first = source.strip().splitlines()[0]
    return f"cell {number} (`{first[:SHOWN_LETTERS]}{'...' if len(first) > SHOWN_LETTERS else ''}`)"


def checked_reply(reply: Any) -> tuple[str, str, dict[str, list[Any]]]:
    """The reply to running a cell, validated."""
    malformed = ChildFailure("Its process sent a malformed reply to the grader.")
    if not isinstance(reply, list) or len(reply) != 3:
        raise malformed
    kind, message, answers = reply
    if not isinstance(kind, str) or kind not in {"", *ERROR_NAMES} or not isinstance(message, str):
        raise malformed
    if not isinstance(answers, dict) or len(answers) > MAX_ANSWERS:
        raise malformed
    for name, entry in answers.items():
        right = isinstance(name, str) and ANSWER.fullmatch(plain(name))
        if not right or not isinstance(entry, list) or len(entry) != 2:
            raise malformed
    answers = {name: checked_answer(*entry) for name, entry in answers.items()}
    return kind, message[:TEXT_LIMIT], answers


def checked_answer(kind: Any, value: Any) -> list[Any]:
    """One answer. What claims to be data, and isn't, is an object."""
    if not isinstance(kind, str) or kind not in (DATA, UNANSWERED, LARGE):
        return [OBJECT, None]
    if kind != DATA:
        return [kind, None]
    return [DATA, copy_data(value)] if is_data(value) else [OBJECT, None]


def is_data(value: Any) -> bool:
    """Whether a value holds nothing but data."""
    if isinstance(value, dict):
        return all(is_data(item) for item in [*value, *value.values()])
    if isinstance(value, tuple | list):
        return all(map(is_data, value))
    return is_plain(value)


def copy_data(value: Any) -> Any:
    """A copy that later cells can't change, in plain containers."""
    if isinstance(value, dict):
        return {key: copy_data(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return (tuple if isinstance(value, tuple) else list)(map(copy_data, value))
    if is_tensor(value):
        return value.detach().clone()
    return np.array(value)[()] if is_numeric(value) else value
