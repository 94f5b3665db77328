"""The speed of a student's own pytest."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from autograder.benchmarks.machinery import command
from common.arithmetic import SAME_ARITHMETIC
from common.assignment import ROOT, Assignment, load_all
from common.benchmark import NotMeasured, Row, measure

ALLOWED_SECONDS = 12


def import_row() -> Row:
    """What a run takes beyond the imports that it can't do without."""
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
    core = min(os.sched_getaffinity(0))
    tests = f"tests/{assignment.name}/test_public.py"
    start = time.perf_counter()
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--impl=solutions", tests],
        cwd=ROOT,
        env={**os.environ, **SAME_ARITHMETIC},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if finished.returncode:
        last = (finished.stdout + finished.stderr).strip().splitlines()[-1:]
        return NotMeasured(name, f"The reference doesn't pass here: {''.join(last)}")
    return Row(name, f"{ALLOWED_SECONDS} seconds", seconds, ALLOWED_SECONDS, bar=1)


def rows() -> Iterator[Row | NotMeasured]:
    """a1 against the bare imports, then each assignment against the seconds it may take."""
    yield import_row()
    for assignment in load_all():
        yield one_core_row(assignment)
