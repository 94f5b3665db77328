"""Benchmarks the sandbox's overhead per test, against a fork without protection."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from autograder.benchmarks.benchmark_row import Row, measure
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, Assignment, load_assignment

ALLOWED_SECONDS = 0.025
REPEATS = 100


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
    over = 1000 * (row.seconds - row.baseline_seconds)
    return replace(
        row,
        name=f"{row.name} ({over:.1f} ms over a bare fork)",
        baseline="a bare fork and 25 ms",
        baseline_seconds=row.baseline_seconds + ALLOWED_SECONDS,
    )


def rows() -> Iterator[Row]:
    """With NumPy alone, and with PyTorch in memory."""
    yield protection_row("a1")
    yield protection_row("a5")
