"""Measures what isolated calls cost over the same calls in this process."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.benchmarks.benchmark_row import Row, measure
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, load_assignment

ALLOWED_SECONDS = 0.0002
LARGE_VALUES = 31 * 10**6 // 8  # of 8 bytes each
LARGE_SECONDS = 0.06
CALLS = 100  # timed together: one waits for the other process longer than another
REPEATS = 20


def call_row() -> Row:
    """A convolution of two small images, against the same call here and 0.2 ms."""
    assignment = load_assignment("a1")
    reference = importlib.import_module(f"solutions.{assignment.name}.convolution")
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=size) for size in ((2, 3, 7, 8), (4, 3, 3, 2), 4))

    def calls_of(function: Callable[..., Any]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(CALLS):
                function(x, w, b, stride=1, padding=1)

        return run

    with Sandbox(assignment) as sandbox:
        folder = ROOT / "solutions" / assignment.name
        sandbox.admit({name: (folder / name).read_bytes() for name in assignment.files})
        with sandbox.child() as child:
            row = measure(
                "an isolated call with small arrays (conv2d_forward_fast of a1)",
                calls_of(child.student(assignment.modules).conv2d_forward_fast),
                calls_of(reference.conv2d_forward_fast),
                "the same call in this process and 0.2 ms",
                bar=1,
                repeats=REPEATS,
            )
    ours, here = row.seconds / CALLS, row.baseline_seconds / CALLS
    return replace(
        row,
        name=f"{row.name} ({1000 * (ours - here):.2f} ms over the same call here)",
        seconds=ours,
        baseline_seconds=here + ALLOWED_SECONDS,
    )


def large_call_row() -> Row:
    """A call that returns its 31 MB of input, against the same call here and 60 ms."""
    assignment = load_assignment("a1")
    code = dict.fromkeys(assignment.files, b"def same(x):\n    return x\n")
    x = np.random.default_rng(0).normal(size=LARGE_VALUES)
    with Sandbox(assignment) as sandbox:
        sandbox.admit(code)
        with sandbox.child() as child:
            same = child.student(assignment.modules).same
            row = measure(
                "an isolated call with 31 MB of arrays there and back",
                lambda: same(x),
                lambda: None,
                "the same call in this process and 60 ms",
                bar=1,
                repeats=REPEATS,
            )
    return replace(row, baseline_seconds=row.baseline_seconds + LARGE_SECONDS)


def rows() -> Iterator[Row]:
    """One call with small arrays, and one with large ones."""
    yield call_row()
    yield large_call_row()
