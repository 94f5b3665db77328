"""Decides how many submissions this machine grades at once, and which GPUs each of them gets."""

import math
import os

from autograder.batch.engines.judge_settings import JUDGE_MB
from autograder.batch.engines.machine_resources import available_megabytes, cores
from autograder.grading.sandbox.user_ids import COUNT as UIDS
from common.assignment import Assignment
from common.errors import CourseError
from common.testing import cuda


def slots_for(assignment: Assignment, jobs: int | None, gpus: float) -> int:
    """How many submissions to grade at once: as cores, memory and GPUs allow.

    Not more than there are cores, even if asked: limits of time are measured by a clock, and right
    code that has half a core would miss them.
    """
    count = min(jobs or cores(), cores())
    memory = available_megabytes() // (JUDGE_MB + assignment.limits.memory_mb)
    if gpus:
        count = min(count, max(1, gpu_count() // gpus_per_slot(gpus) * slots_per_gpu(gpus)))
    if os.getuid() == 0:
        count = min(count, UIDS)  # judges beyond that would find none, and fail
    return max(1, min(count, memory))


def gpu_count() -> int:
    """How many GPUs this machine has."""
    if not cuda.available():
        raise CourseError("--gpus-per-submission: PyTorch finds no usable GPU on this machine.")
    return cuda.load_torch().cuda.device_count()


def slots_per_gpu(gpus: float) -> int:
    """How many slots share a GPU. The part of one that is left over is nobody's."""
    return max(1, math.floor(1 / gpus + 1e-6))


def gpus_per_slot(gpus: float) -> int:
    """How many GPUs a slot has."""
    return max(1, math.ceil(gpus))


def gpus_of(slot: int, gpus: float) -> str:
    """The GPUs of a slot, for CUDA: slots share one, or have some of their own."""
    known = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = known.split(",") if known else [str(number) for number in range(gpu_count())]
    first = (slot - 1) // slots_per_gpu(gpus) * gpus_per_slot(gpus)
    return ",".join(names[first : first + gpus_per_slot(gpus)])
