"""Grades a batch on this machine in parallel slots, with one warm judge per slot."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from autograder.batch.engines.driver_scratch import Scratch
from autograder.batch.engines.judge_settings import JUDGE_MB, judge_options, reply_timeout
from autograder.batch.engines.machine_resources import available_megabytes, cores
from autograder.batch.work_queue import Work
from autograder.grading.sandbox.user_ids import COUNT as UIDS
from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingReply
from autograder.grading.warm.judge_pool import JudgeDied, JudgePool
from autograder.zip_archive import unpack
from common.assignment import Assignment
from common.errors import CourseError
from common.testing import cuda

TICK = 0.2


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


class LocalEngine:
    """Grades on this machine."""

    def __init__(
        self,
        assignment: Assignment,
        archive: Path,
        slots: int,
        gpus: float = 0.0,
        private: Iterable[Path] = (),
    ) -> None:
        self.slots = slots
        self.gpus = gpus
        self.options = judge_options(assignment, gpus, private)
        self.reply_timeout = reply_timeout(assignment)
        self.scratch = Scratch()
        self.source = self.scratch.folder / "source"
        try:
            unpack(archive, self.source)
        except BaseException:
            self.scratch.remove()
            raise
        self.pool = JudgePool(self.start_judge)

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        """Grade until nothing is left; `tick` is called now and then."""
        threads = [
            threading.Thread(target=self.serve, args=(slot, work), daemon=True)
            for slot in range(1, self.slots + 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(TICK)
                tick()

    def serve(self, slot: int, work: Work) -> None:
        """Grade one submission after another in a slot."""
        while (attempt := work.take()) is not None:
            attempt.started = time.monotonic()
            try:
                reply = self.pool.grade(slot, attempt.question)
            except JudgeDied as died:
                reply = GradingReply(fault=str(died))
            work.finish(attempt, reply)

    def start_judge(self, slot: int) -> JudgeClient:
        """A warm judge for a slot, which sees that slot's GPUs."""
        gpus = {"CUDA_VISIBLE_DEVICES": gpus_of(slot, self.gpus)} if self.gpus else {}
        return JudgeClient(
            self.source, self.options, reply_timeout=self.reply_timeout, environment=gpus
        )

    def close(self) -> None:
        """End all judges."""
        self.pool.close()
        self.scratch.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
