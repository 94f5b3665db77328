"""Grades a batch on this machine: a thread and a warm judge for each slot."""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from autograder.batch.engines.driver_scratch import Scratch
from autograder.batch.engines.judge_settings import judge_options, reply_timeout
from autograder.batch.engines.parallel_slots import gpus_of
from autograder.batch.work_queue import Work
from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingReply
from autograder.grading.warm.judge_pool import JudgeDied, JudgePool
from autograder.zip_archive import unpack
from common.assignment import Assignment

TICK = 0.2


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
