"""Lists the parts of `make bench`, each of which can run alone (`ONLY=batch`)."""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from autograder.benchmarks import (
    batch_benchmarks,
    graded_test_benchmarks,
    grading_benchmarks,
    hostile_benchmarks,
    isolated_call_benchmarks,
    public_test_benchmarks,
    sandbox_benchmarks,
    zip_benchmarks,
)
from autograder.benchmarks.benchmark_row import NotMeasured, Row
from common.assignment import ROOT, Assignment, load_all
from common.errors import CourseError

HOSTILE = "hostile"


@dataclass(frozen=True)
class Part:
    """Some rows of the table, under a name."""

    name: str
    what: str  # it measures
    rows: Callable[[], Iterable[Row | NotMeasured]]


def all_parts() -> list[Part]:
    """Every assignment's reference, then the machinery."""
    references = [
        Part(assignment.short, f"the reference of {assignment.short}", reference_rows(assignment))
        for assignment in load_all()
        if (ROOT / "solutions" / assignment.name / "benchmarks.py").is_file()
    ]
    return [
        *references,
        Part("pytest", "a student's own pytest", public_test_benchmarks.rows),
        Part("tests", "the processor time of graded tests", graded_test_benchmarks.rows),
        Part("grading", "single gradings and mistakes of a1", grading_benchmarks.rows),
        Part("zips", "reference and stub by the built zips", zip_benchmarks.rows),
        Part("sandbox", "the sandbox of one test", sandbox_benchmarks.rows),
        Part("calls", "one isolated call", isolated_call_benchmarks.rows),
        Part(HOSTILE, "hostile submissions", lambda: [hostile_benchmarks.corpus_row()]),
        Part("batch", "a class of a1", batch_benchmarks.local_rows),
        Part("batch-a5", "a class of a5", batch_benchmarks.a5_rows),
        Part("ray", "a class of a1 by Ray", batch_benchmarks.ray_rows),
    ]


def reference_rows(assignment: Assignment) -> Callable[[], Iterable[Row | NotMeasured]]:
    """The rows of an assignment's reference, which is imported only when they are measured."""
    return lambda: importlib.import_module(f"solutions.{assignment.name}.benchmarks").rows()


def choose(parts: Sequence[Part], only: str | None) -> Sequence[Part]:
    """All parts, or the one of that name."""
    if not only:
        return parts
    chosen = [part for part in parts if part.name == only]
    if not chosen:
        names = ", ".join(part.name for part in parts)
        raise CourseError(f"`make bench` has no part {only!r}. Available: {names}.")
    return chosen
