"""Grades many submissions in parallel with a built zip: one warm judge per core."""

import os
import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from autograder.grading.sandbox.wire.frames import ChannelClosed
from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingReply, GradingRequest, JudgeOptions
from autograder.zip_archive import unpack
from common.errors import CourseError

TRIES = 2


class Pool:
    """As many warm judges as there are cores, in the unpacked zip."""

    def __init__(self, archive: Path, assignment: str, size: int | None = None) -> None:
        self.scratch = TemporaryDirectory(prefix="conv2gpt-proof-")
        self.source = Path(self.scratch.name) / "source"
        self.options = JudgeOptions(assignment)
        unpack(archive, self.source)
        self.size = size or len(os.sched_getaffinity(0))
        self.judges: list[JudgeClient] = []
        self.closing = False

    def run(
        self, jobs: Iterable[tuple[str, GradingRequest]], done: Callable[[str, GradingReply], None]
    ) -> None:
        """Grade all jobs; `done` hears of each as it is finished, from one thread at a time."""
        waiting: queue.SimpleQueue[tuple[str, GradingRequest]] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        lock = threading.Lock()
        faults: list[str] = []

        def work(judge: JudgeClient) -> None:
            while not faults:
                try:
                    name, job = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    reply, judge = self.grade(judge, job)
                    with lock:
                        if reply.fault:
                            faults.append(f"{name}: {reply.fault}")
                        else:
                            done(name, reply)
                except Exception as error:
                    faults.append(f"{name}: {type(error).__name__}: {error}")

        while len(self.judges) < self.size:
            self.judges.append(JudgeClient(self.source, self.options))
        threads = [threading.Thread(target=work, args=(judge,)) for judge in self.judges]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            faults.append("stopped by the user")  # so that no thread begins anew
            self.closing = True
            raise
        if faults:
            raise CourseError(f"Grading broke down at {faults[0]}")

    def grade(self, judge: JudgeClient, job: GradingRequest) -> tuple[GradingReply, JudgeClient]:
        """Grade one job; a judge that died is replaced by a new one, which tries again."""
        last_words = ""
        for _ in range(TRIES):
            with suppress(ChannelClosed, OSError):
                return judge.grade(replace(job, verdicts=True)), judge
            if self.closing:
                break
            judge.close()
            last_words = judge.last_words()
            fresh = JudgeClient(self.source, self.options)
            self.judges[self.judges.index(judge)] = fresh
            judge = fresh
        said = f" ({last_words})" if last_words else ""
        return GradingReply(fault=f"the judge died twice{said}"), judge

    def close(self) -> None:
        """End all judges."""
        for judge in self.judges:
            judge.close()
        self.scratch.cleanup()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
