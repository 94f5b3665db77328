"""Measures a submission's speed (tokens per second) in training and generation.

The clock is the judge's, around work whose results are compared. Student code stays in its child.
"""

import math
from dataclasses import dataclass

import msgspec

from autograder.grading.sandbox.defenses import check_required
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.submission import Submission
from autograder.timing.alternating_runs import AlternatingRuns, Measurement
from autograder.timing.baseline_gpt import Sizes
from common.assignment import ROOT, Assignment
from common.errors import CourseError
from common.testing import cuda

NEEDED = ("model.py", "training.py", "sampling.py")
HOUR = 3600.0


@dataclass(frozen=True)
class SubmissionSpeed:
    """All that was measured."""

    assignment: str
    device: str
    device_name: str
    sizes: Sizes
    repeats: int
    training: Measurement
    generation: Measurement
    peak_bytes: int | None  # of a training step
    baseline_peak_bytes: int | None
    mfu: float | None
    clocks_before: str
    clocks_after: str
    defenses: tuple[str, ...]


@dataclass(frozen=True)
class TimingOptions:
    """What to measure."""

    device: str = "cpu"
    repeats: int = 20
    peak_flops: float | None = None
    unsafe: bool = False
    seed: int = 0


def measure(
    assignment: Assignment, submission: Submission, options: TimingOptions
) -> SubmissionSpeed:
    """Measure one submission."""
    if not set(NEEDED) <= set(assignment.files):
        raise CourseError(f"{assignment.short} can't be timed: it has no baseline.")
    if options.device == "cuda" and not cuda.available():
        raise CourseError("--device cuda: PyTorch finds no usable GPU on this machine.")
    if options.repeats < 2:
        raise CourseError("--repeats must be at least 2, for an interval.")
    if options.peak_flops is not None and not 0 < options.peak_flops < math.inf:
        raise CourseError("--peak-flops must be positive.")
    limits = msgspec.structs.replace(
        assignment.limits,
        test_seconds=HOUR,
        total_seconds=HOUR,
        gpu=options.device == "cuda",
    )
    with_limits = msgspec.structs.replace(assignment, limits=limits)
    with Sandbox(with_limits) as sandbox:
        defenses = sandbox.admit(submission.code, (ROOT / "tests",))
        check_required(defenses, options.unsafe)
        with sandbox.child(assignment.forbidden, limits) as child:
            runs = AlternatingRuns(
                child.student(assignment.modules), options.device, options.repeats, options.seed
            )
            before = clocks_in_words(options.device)
            training = runs.attempt("training step", runs.train)
            generation = runs.attempt("generation", runs.generate)
            memory = runs.memory()
            after = clocks_in_words(options.device)
    rate = training.tokens_per_second
    return SubmissionSpeed(
        assignment=assignment.name,
        device=options.device,
        device_name=cuda.device_name() if options.device == "cuda" else "CPU, one thread",
        sizes=runs.sizes,
        repeats=options.repeats,
        training=training,
        generation=generation,
        peak_bytes=memory[0],
        baseline_peak_bytes=memory[1],
        mfu=(
            rate.median * runs.sizes.flops_per_token / options.peak_flops
            if rate and options.peak_flops
            else None
        ),
        clocks_before=before,
        clocks_after=after,
        defenses=tuple(map(str, defenses)),
    )


def clocks_in_words(device: str) -> str:
    """What nvidia-smi says of the GPU's clocks, if there is one that says something."""
    return str(cuda.clocks() or "") if device == "cuda" else ""
