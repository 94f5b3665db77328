"""Grades many submissions in parallel with a built zip, on warm judges."""

import math
import os
import queue
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, JudgeOptions
from autograder.grading.warm.judge_pool import JudgeDied, JudgePool
from autograder.zip_archive import unpack
from common.errors import CourseError

TRIES = 2
# A judge waits a fifth of its time, above all for the kernel to clean up after each child.
JUDGES_PER_CORE = 1.25


class ParallelGrader:
    """Warm judges in the unpacked zip: size of them, or somewhat more than there are cores."""

    def __init__(self, archive: Path, assignment: str, size: int | None = None) -> None:
        self.scratch = TemporaryDirectory(prefix="conv2gpt-proof-")
        source, options = Path(self.scratch.name) / "source", JudgeOptions(assignment)
        unpack(archive, source)
        self.size = size or math.ceil(JUDGES_PER_CORE * len(os.sched_getaffinity(0)))
        self.pool = JudgePool(lambda slot: JudgeClient(source, options))
        self.idle: queue.SimpleQueue[int] = queue.SimpleQueue()
        for slot in range(self.size):
            self.idle.put(slot)

    def run(
        self, jobs: Iterable[tuple[str, GradingRequest]], done: Callable[[str, GradingReply], None]
    ) -> None:
        """Grade all jobs; `done` hears of each as it is finished."""
        threads = ThreadPoolExecutor(self.size)
        names = {threads.submit(self.grade, job): name for name, job in jobs}
        try:
            for future in as_completed(names):
                try:
                    reply = future.result()
                    if not (fault := reply.fault):
                        done(names[future], reply)
                except Exception as error:
                    fault = f"{type(error).__name__}: {error}"
                if fault:
                    raise CourseError(f"Grading failed at {names[future]}: {fault}")
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def grade(self, job: GradingRequest) -> GradingReply:
        """Grade one job; if its judge dies, another one tries again."""
        request = msgspec.msgpack.encode(msgspec.structs.replace(job, verdicts=True))
        last_line, slot = "", self.idle.get()
        try:
            for _ in range(TRIES):
                try:
                    return self.pool.grade(slot, request)
                except JudgeDied as died:
                    last_line = died.last_line
        finally:
            self.idle.put(slot)
        said = f" ({last_line})" if last_line else ""
        return GradingReply(fault=f"the judge died twice{said}")

    def __enter__(self) -> "ParallelGrader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.pool.close()
        self.scratch.cleanup()
