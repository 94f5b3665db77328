"""Grades many submissions at once, with the grader of a built zip: a warm judge on each core."""

import os
import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from autograder.grading.processes import JudgeProcess
from autograder.grading.sandbox.wire.frames import ChannelClosed
from autograder.grading.worker import Job, Reply
from autograder.zip_archive import unpack
from common.errors import CourseError

TRIES = 2


class Worker(JudgeProcess):
    """A warm judge that grades one job after another."""

    module = "autograder.grading.worker"

    def grade(self, job: Job) -> Reply:
        """Grade one submission."""
        return msgspec.msgpack.decode(self.exchange(msgspec.msgpack.encode(job)), type=Reply)


class Pool:
    """As many warm judges as there are cores, in the unpacked zip."""

    def __init__(self, archive: Path, assignment: str, size: int | None = None) -> None:
        self.scratch = TemporaryDirectory(prefix="conv2gpt-proof-")
        self.source = Path(self.scratch.name) / "source"
        self.assignment = assignment
        unpack(archive, self.source)
        self.size = size or len(os.sched_getaffinity(0))
        self.workers: list[Worker] = []
        self.closing = False

    def run(self, jobs: Iterable[tuple[str, Job]], done: Callable[[str, Reply], None]) -> None:
        """Grade all jobs; `done` hears of each as it is finished, from one thread at a time."""
        waiting: queue.SimpleQueue[tuple[str, Job]] = queue.SimpleQueue()
        for job in jobs:
            waiting.put(job)
        lock = threading.Lock()
        faults: list[str] = []

        def work(worker: Worker) -> None:
            while not faults:
                try:
                    name, job = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    reply, worker = self.grade(worker, job)
                    with lock:
                        if reply.fault:
                            faults.append(f"{name}: {reply.fault}")
                        else:
                            done(name, reply)
                except Exception as error:
                    faults.append(f"{name}: {type(error).__name__}: {error}")

        while len(self.workers) < self.size:
            self.workers.append(Worker(self.source, self.assignment))
        threads = [threading.Thread(target=work, args=(worker,)) for worker in self.workers]
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

    def grade(self, worker: Worker, job: Job) -> tuple[Reply, Worker]:
        """Grade one job; a judge that died is replaced by a new one, which tries again."""
        for _ in range(TRIES):
            with suppress(ChannelClosed, OSError):
                return worker.grade(job), worker
            if self.closing:
                break
            worker.close()
            fresh = Worker(self.source, self.assignment)
            self.workers[self.workers.index(worker)] = fresh
            worker = fresh
        return Reply([], [], 0.0, "the judge died twice"), worker

    def close(self) -> None:
        """End all judges."""
        for worker in self.workers:
            worker.close()
        self.scratch.cleanup()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
