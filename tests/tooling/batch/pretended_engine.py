"""A fake engine that grades nothing, and batches with it."""

import csv
import io
import json
from collections.abc import Callable

from autograder.batch.batch_records import Batch
from autograder.batch.batch_run import Order, run_batch
from autograder.batch.work_queue import Work
from autograder.commands.batch_commands import print_batch_summary
from autograder.grading.warm.judge_messages import GradingReply
from autograder.screen import Screen
from common.assignment import load_assignment

A1 = load_assignment("a1")
NAMES = ("ada", "alan", "grace")
EXERCISE = A1.exercises[0].number


def graded(score: float = 1.0) -> GradingReply:
    """A result as a judge tells it."""
    test = {
        **{"name": "sizes", "number": EXERCISE, "score": score, "max_score": 2.0},
        **{"status": "passed" if score else "failed", "output": "sizes\n\nThe size is wrong."},
        "extra_data": {"test": "test_sizes", "ran": True},
        **{"visibility": "visible", "tags": []},
    }
    result = {"output": "", "execution_time": 1, "extra_data": {}, "tests": [test]}
    return GradingReply(json.dumps(result).encode(), score, 2.0, 0.5)


class Pretender:
    """An engine that gives the answers that it was given, by submission."""

    def __init__(
        self, answers: dict[str, list[GradingReply]] | None = None, after=lambda: None
    ) -> None:
        self.answers = answers or {}
        self.after = after
        self.asked: list[str] = []
        self.questions: list[bytes] = []

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        while (attempt := work.take()) is not None:
            self.asked.append(attempt.id)
            self.questions.append(attempt.question)
            answers = self.answers.get(attempt.id) or [graded()]
            work.finish(attempt, answers.pop(0) if len(answers) > 1 else answers[0])
            self.after()

    def close(self) -> None:
        pass


def carry_out(order: Order, engine: Pretender) -> tuple[Batch, Work]:
    """Run a batch with an engine that is there already."""
    return run_batch(order, lambda archive: engine, lambda work: None)


def printed_summary(batch: Batch, work: Work) -> str:
    """What a person reads after a batch."""
    screen = io.StringIO()
    print_batch_summary(Screen(file=screen, width=200), batch, work)
    return screen.getvalue()


def grades_by_name(order: Order) -> dict[str, dict[str, str]]:
    """The rows of grades.csv, by the student's name."""
    with (order.out / "grades.csv").open() as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def changed(order: Order, **what) -> Order:
    """The order with something else in it."""
    return Order(**{**vars(order), **what})


def export_of(order: Order, students: dict[str, str]) -> Order:
    """The order with an export of these submissions, and whose they are."""
    folder = order.export.parent / f"export-{'-'.join(students)}"
    for name in students:
        (folder / name).mkdir(parents=True)
        (folder / name / "convolution.py").write_text(f"name = {name!r}\n")
    (folder / "submission_metadata.yml").write_text(
        "".join(
            f"{name}:\n  :submitters:\n  - :name: {who}\n    :email: {who}@example.edu\n"
            for name, who in students.items()
        )
    )
    return changed(order, export=folder)
