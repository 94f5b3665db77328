"""Measures a submission's speed (tokens per second) in training and generation.

The clock is the judge's, around work whose results are compared. Student code stays in its child.
"""

import math
from dataclasses import dataclass

import msgspec

from autograder.grading.sandbox.defences import check_floor
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission
from autograder.timing.alternating_runs import Measured, Race
from autograder.timing.baseline_gpt import Sizes
from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.testing import cuda

NEEDED = ("model.py", "training.py", "sampling.py")
HOUR = 3600.0


@dataclass(frozen=True)
class Speed:
    """All that was measured."""

    assignment: str
    device: str
    device_name: str
    sizes: Sizes
    repeats: int
    training: Measured
    generation: Measured
    peak_bytes: int | None  # of a training step
    baseline_peak_bytes: int | None
    mfu: float | None
    clocks_before: str
    clocks_after: str
    defences: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """What to measure."""

    device: str = "cpu"
    repeats: int = 20
    peak_flops: float | None = None
    unsafe: bool = False
    seed: int = 0


def measure(assignment: Assignment, submission: Submission, order: Order) -> Speed:
    """Measure one submission."""
    if not set(NEEDED) <= set(assignment.files):
        raise CourseError(f"{assignment.short} has nothing to time: there is no baseline for it.")
    if order.device == "cuda" and not cuda.available():
        raise CourseError("--device cuda: there is no GPU here that PyTorch can use.")
    if order.repeats < 2:
        raise CourseError("--repeats must be at least 2: an interval is told.")
    if order.peak_flops is not None and not 0 < order.peak_flops < math.inf:
        raise CourseError("--peak-flops must be a number above 0.")
    limits = msgspec.structs.replace(
        assignment.limits,
        test_seconds=HOUR,
        total_seconds=HOUR,
        cpu_seconds=HOUR,
        gpu=order.device == "cuda",
    )
    patient = msgspec.structs.replace(assignment, limits=limits)
    with Sandbox(patient) as sandbox:
        defences = sandbox.admit(submission.code, (ROOT / "tests",))
        check_floor(defences, order.unsafe)
        with sandbox.child(assignment.forbidden, limits) as child:
            race = Race(child.student(assignment.modules), order.device, order.repeats, order.seed)
            before = clocks_in_words(order.device)
            training = race.attempt("training step", race.train)
            generation = race.attempt("generation", race.generate)
            memory = race.memory()
            after = clocks_in_words(order.device)
    rate = training.tokens_per_second
    return Speed(
        assignment=assignment.name,
        device=order.device,
        device_name=cuda.device_name() if order.device == "cuda" else "CPU, one thread",
        sizes=race.sizes,
        repeats=order.repeats,
        training=training,
        generation=generation,
        peak_bytes=memory[0],
        baseline_peak_bytes=memory[1],
        mfu=(
            rate.median * race.sizes.flops_per_token / order.peak_flops
            if rate and order.peak_flops
            else None
        ),
        clocks_before=before,
        clocks_after=after,
        defences=tuple(map(str, defences)),
    )


def clocks_in_words(device: str) -> str:
    """What nvidia-smi says of the GPU's clocks, if there is one that says something."""
    return str(cuda.clocks() or "") if device == "cuda" else ""
