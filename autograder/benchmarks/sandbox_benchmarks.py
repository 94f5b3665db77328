"""Benchmarks what a test costs in the sandbox: against a bare fork, and for its stand-ins."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from autograder.benchmarks.benchmark_row import Row, measure
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, Assignment, load_assignment

ALLOWED_SECONDS = 0.025
ALLOWED_FOR_STANDINS = 0.02
REPEATS = 100
# A submission to a2 that calls a function of a1, and one that doesn't.
CALLER = b"""
from assignments.a1_convolution import convolution


def with_standin():
    return convolution.conv_output_size(3, 2)


def without():
    return 2
"""


class BareSandbox(Sandbox):
    """Children that are forked and not confined. They run the reference, and nothing else."""

    server_module = "autograder.benchmarks.unprotected_fork_server"


@contextmanager
def both(assignment: Assignment) -> Iterator[tuple[Sandbox, Sandbox]]:
    """A full sandbox and a bare one that have taken the reference in, compiled."""
    source = ROOT / "solutions" / assignment.name
    code = {name: (source / name).read_bytes() for name in assignment.files}
    with Sandbox(assignment) as full, BareSandbox(assignment) as bare:
        full.admit(code)
        bare.packages = {
            name: shutil.copytree(compiled, str(bare.folder / "packages" / name))
            for name, compiled in full.packages.items()
        }
        yield full, bare


def protection_row(name: str) -> Row:
    """A child in the full sandbox, against a bare one and 25 ms."""
    assignment = load_assignment(name)
    top = assignment.modules[0]

    def start_and_import(sandbox: Sandbox) -> None:
        with sandbox.child() as child:
            child.ask("get", None, top if len(assignment.modules) > 1 else "__name__", f"{top}.py")

    with both(assignment) as (full, bare):
        row = measure(
            f"a child for one test of {name}, in the full sandbox",
            lambda: start_and_import(full),
            lambda: start_and_import(bare),
            "",
            bar=1,
            repeats=REPEATS,
        )
    return allowing(row, "a bare fork", ALLOWED_SECONDS)


def standin_row() -> Row:
    """A test whose code calls a stand-in, in a process of its own, against one that calls none."""
    assignment = load_assignment("a2")
    with Sandbox(assignment) as sandbox:
        sandbox.admit({assignment.files[0]: CALLER})

        def run(function: str) -> None:
            with sandbox.child() as child:
                getattr(child.student(assignment.modules), function)()
            sandbox.settle()  # else the next child would wait for the end of the stand-ins

        row = measure(
            "a child for one test of a2 that calls a stand-in",
            lambda: run("with_standin"),
            lambda: run("without"),
            "",
            bar=1,
            repeats=REPEATS,
        )
    return allowing(row, "one that calls none", ALLOWED_FOR_STANDINS)


def allowing(row: Row, baseline: str, seconds: float) -> Row:
    """The row with a bar that is so many seconds above the baseline."""
    over = 1000 * (row.seconds - row.baseline_seconds)
    return replace(
        row,
        name=f"{row.name} ({over:.1f} ms over {baseline})",
        baseline=f"{baseline} and {1000 * seconds:.0f} ms",
        baseline_seconds=row.baseline_seconds + seconds,
    )


def rows() -> Iterator[Row]:
    """With NumPy alone, with PyTorch in memory, and with a process for stand-ins."""
    yield protection_row("a1")
    yield protection_row("a5")
    yield standin_row()
