"""Benchmarks a student's own pytest run of the public tests."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from autograder.authoring.reference_artifacts import reference_artifacts
from autograder.benchmarks.benchmark_row import NotMeasured, Row, measure
from autograder.benchmarks.grading_benchmarks import command
from common.assignment import ROOT, Assignment, load_all, load_assignment
from common.determinism import SAME_ARITHMETIC

ALLOWED_SECONDS = 12


def import_row() -> Row:
    """What a run takes beyond the imports that it can't do without."""
    reference_artifacts(load_assignment("a1"))  # writes the solved lab, which pytest reads
    python = sys.executable
    return measure(
        "pytest on a1's public tests, with the lab",
        command(python, "-m", "pytest", "--impl=solutions", "tests/a1_convolution/test_public.py"),
        command(python, "-c", "import numpy, pytest"),
        "import numpy, pytest",
        bar=4,
        repeats=7,
    )


def one_core_row(assignment: Assignment) -> Row | NotMeasured:
    """All public tests of an assignment on its reference, with one core."""
    name = f"pytest on {assignment.short}'s public tests, one core"
    tests = f"tests/{assignment.name}/test_public.py"
    reference_artifacts(assignment)
    start = time.perf_counter()
    finished = on_one_core("-m", "pytest", "-q", "--impl=solutions", tests)
    seconds = time.perf_counter() - start
    if finished.returncode:
        return NotMeasured(name, f"The reference doesn't pass here: {last_line(finished)}")
    return seconds_row(name, seconds, ALLOWED_SECONDS)


def seconds_row(name: str, seconds: float, allowed: float) -> Row:
    """What something took against the seconds that it may take."""
    return Row(name, f"{allowed:g} second{'s' if allowed != 1 else ''}", seconds, allowed, bar=1)


def on_one_core(*words: str) -> subprocess.CompletedProcess[str]:
    """Run this Python with one core and the arithmetic of grading."""
    core = min(os.sched_getaffinity(0))
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **SAME_ARITHMETIC},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        capture_output=True,
        text=True,
        check=False,
    )


def last_line(finished: subprocess.CompletedProcess[str]) -> str:
    """Where pytest and Python say why they failed."""
    return "".join((finished.stdout + finished.stderr).strip().splitlines()[-1:])


def rows() -> Iterator[Row | NotMeasured]:
    """a1 against the bare imports, then each assignment against the seconds it may take."""
    yield import_row()
    for assignment in load_all():
        yield one_core_row(assignment)
