"""The speed of the course's own machinery."""

import subprocess
import sys
from collections.abc import Callable, Iterator

from common.assignment import ROOT
from common.benchmark import Row, measure


def command(*words: str) -> Callable[[], object]:
    """Something to time: a command, which must succeed."""

    def run() -> None:
        finished = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise RuntimeError(f"{' '.join(words)} failed:\n{finished.stdout}{finished.stderr}")

    return run


def rows() -> Iterator[Row]:
    """A student's own run, and the cost of isolation."""
    python = sys.executable
    yield measure(
        "pytest on a1's public tests",
        command(python, "-m", "pytest", "--impl=solutions", "tests/a1_convolution/test_public.py"),
        command(python, "-c", "import numpy, pytest"),
        "import numpy, pytest",
        bar=4,
        repeats=7,
    )
    grade = (python, "-m", "autograder", "grade", "a1", "solutions/a1_convolution")
    yield measure(
        "isolated grading of a1",
        command(*grade),
        command(*grade, "--direct"),
        "the same with --direct",
        bar=1.5,
        repeats=3,
    )
