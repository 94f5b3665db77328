"""Benchmarks proofs (mistakes per minute), and the cost of isolated grading."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.benchmarks.benchmark_row import Row, measure
from autograder.grading.warm.judge_messages import GradingRequest
from autograder.packaging.zip_build import build
from autograder.proving.parallel_grader import ParallelGrader
from autograder.proving.proof_jobs import ONE_SALT, ProofPlan
from autograder.proving.wrong_versions.mistakes import Mistake, apply, load_mistakes
from common.assignment import ROOT, Assignment, load_assignment

MISTAKES = 6


def command(*words: str) -> Callable[[], object]:
    """Something to time: a command, which must succeed."""

    def run() -> None:
        finished = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        if finished.returncode:
            raise RuntimeError(f"{' '.join(words)} failed:\n{finished.stdout}{finished.stderr}")

    return run


class WarmJudges:
    """Grades mistakes the way `make verify` does: one warm judge, a forked child for each test."""

    def __init__(self, assignment: Assignment, mistakes: list[Mistake]) -> None:
        plan = ProofPlan(assignment, ONE_SALT)
        self.jobs = [
            (mistake.name, GradingRequest(apply(mistake, assignment), plan.salts[0]))
            for mistake in mistakes
        ]
        self.pool = ParallelGrader(build(assignment).autograder, assignment.short, size=1)

    def run(self) -> None:
        """Grade them all."""
        self.pool.run(self.jobs, lambda name, reply: None)


def fresh_processes(assignment: Assignment, mistakes: list[Mistake], scratch: Path) -> None:
    """Grade the same mistakes with a new Python process for each."""
    for mistake in mistakes:
        folder = scratch / mistake.name
        folder.mkdir(exist_ok=True)
        for name, content in apply(mistake, assignment).items():
            (folder / name).write_bytes(content)
        command(sys.executable, "-m", "autograder", "grade", assignment.short, str(folder))()


def mistake_row() -> Row:
    """Mistakes graded per minute, against a fresh process for each."""
    assignment = load_assignment("a1")
    chosen = load_mistakes(assignment)[:MISTAKES]
    judges = WarmJudges(assignment, chosen)
    with judges.pool, TemporaryDirectory() as scratch:
        row = measure(
            f"grading {MISTAKES} mistakes of a1, one warm judge",
            judges.run,
            lambda: fresh_processes(assignment, chosen, Path(scratch)),
            "a fresh process for each",
            bar=1,
            repeats=2,
        )
    per_minute = 60 * MISTAKES / row.seconds
    return replace(row, name=f"{row.name} ({per_minute:.0f} per minute)")


def rows() -> Iterator[Row]:
    """The speed of a proof, and the cost of isolation."""
    yield mistake_row()
    python = sys.executable
    grade = (python, "-m", "autograder", "grade", "a1", "solutions/a1_convolution")
    yield measure(
        "isolated grading of a1",
        command(*grade),
        command(*grade, "--direct"),
        "the same with --direct",
        bar=1.5,
        repeats=3,
    )
