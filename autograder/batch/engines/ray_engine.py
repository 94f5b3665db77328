"""Grades a batch on a Ray cluster, with one task per submission."""

import hashlib
import importlib
import math
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from autograder.batch.engines import ray_worker
from autograder.batch.engines.judge_settings import JUDGE_MB, judge_options, reply_timeout
from autograder.batch.engines.machine_resources import cores
from autograder.batch.work_queue import Attempt, Work
from autograder.grading.warm.judge_messages import GradingReply
from common.assignment import ROOT, Assignment
from common.errors import CourseError

REQUIREMENTS = "autograder/batch/engines/requirements.txt"
WAITING = 32  # tasks that Ray is given beyond those that it has started
TICK = 0.2
CLEAN_SECONDS = 20
CONNECT_SECONDS = 10
ROOM_SECONDS = 600.0  # to wait for a node, where all that had room are lost
LOOK_EVERY = 5.0  # seconds after which to see whether nodes have come or gone


# For a cluster that is started here: send no usage statistics, don't hide the GPUs from tasks that
# request none, and give judges the same CPU priority as those of the local engine.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}


def load_ray() -> Any:
    """Ray, or how to get it."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        pin = (ROOT / REQUIREMENTS).read_text().splitlines()[-1]
        raise CourseError(
            f"--engine ray needs Ray: .venv/bin/pip install -r {REQUIREMENTS} (which is {pin})."
        ) from None


def check_somebody_listens(address: str) -> None:
    """Refuse HOST:PORT where nobody answers: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in address or not port.isdecimal():
        return  # "auto", or a kind of address that only Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise CourseError(f"There is no Ray cluster at {address}: {error}.") from None


class RayEngine:
    """Grades on a Ray cluster: one that runs, or one on this machine."""

    def __init__(
        self,
        assignment: Assignment,
        archive: Path,
        jobs: int | None,
        address: str | None,
        gpus: float = 0.0,
        private: Iterable[Path] = (),
    ) -> None:
        self.ray = load_ray()
        self.jobs = jobs
        memory = (JUDGE_MB + assignment.limits.memory_mb) * 2**20
        self.needs = {"CPU": 1.0, "memory": memory, **({"GPU": gpus} if gpus else {})}
        self.join(address, jobs)
        content = archive.read_bytes()
        self.archive = self.ray.put(content)  # which Ray brings to each node once
        self.fixed = (
            hashlib.sha256(content).hexdigest(),
            judge_options(assignment, gpus, private).to_json(),
            reply_timeout(assignment),
        )
        self.ray.cloudpickle.register_pickle_by_value(ray_worker)
        self.task = self.ray.remote(ray_worker.grade_on_node).options(
            num_cpus=1,
            num_gpus=gpus,
            memory=memory,
            max_retries=0,  # attempts are counted by `Work`, whichever the engine
            num_returns="streaming",
        )
        self.check_nodes()
        self.looked = self.had_room = time.monotonic()

    def join(self, address: str | None, jobs: int | None) -> None:
        """Join a cluster, or start one."""
        quiet = {"logging_level": "ERROR", "log_to_driver": False}
        if address is None:
            count = min(jobs or cores(), cores())
            # "local": without it, Ray would join a cluster that runs here, or refuse to.
            self.ray.init(address="local", num_cpus=count, include_dashboard=False, **quiet)
            return
        check_somebody_listens(address)
        try:
            self.ray.init(address=address, **quiet)
        except Exception as error:  # Ray raises several kinds, some of them for the same
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CourseError(f"There is no Ray cluster at {address}: {reason}") from None

    def nodes(self) -> list[dict[str, float]]:
        """What each node that lives has."""
        return [one["Resources"] for one in self.ray.nodes() if one["Alive"]]

    def check_nodes(self) -> None:
        """Refuse a cluster in which no submission can ever be graded: Ray would wait, silently."""
        nodes = self.nodes()
        if "GPU" in self.needs and not any(node.get("GPU") for node in nodes):
            raise CourseError("--gpus-per-submission: the Ray cluster has no GPU.")
        needed = self.needs["memory"]
        if nodes and all(node.get("memory", 0) < needed for node in nodes):
            raise CourseError(
                f"No node of the Ray cluster has the {needed / 2**20:.0f} MB of memory that "
                "grading a submission takes."
            )
        if not self.has_room():
            raise CourseError("No node of the Ray cluster has room to grade a submission.")

    def has_room(self) -> bool:
        """Whether some node could grade a submission, if it did nothing else."""
        return any(
            all(node.get(name, 0) >= need for name, need in self.needs.items())
            for node in self.nodes()
        )

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        """Grade until nothing is left; `tick` is called now and then."""
        tasks: dict[Any, Attempt] = {}  # by the stream of what each yields
        while work.unfinished:
            self.look_for_room(work)
            self.submit(work, tasks)
            if tasks:
                ready, _ = self.ray.wait(list(tasks), num_returns=1, timeout=TICK)
                for stream in ready:
                    self.receive(stream, tasks, work)
            elif work.unfinished:
                time.sleep(TICK)
            tick()
        for stream in tasks:
            self.ray.cancel(stream, force=True)

    def look_for_room(self, work: Work) -> None:
        """Stop where for long no node could grade. Nodes that were lost may come back."""
        if time.monotonic() - self.looked <= LOOK_EVERY:
            return
        self.looked = time.monotonic()
        if self.has_room():
            self.had_room = self.looked
        elif self.looked - self.had_room > ROOM_SECONDS:
            minutes = f"{ROOM_SECONDS / 60:g} minutes"
            work.stop(f"for {minutes} no node of the Ray cluster has had room")

    def submit(self, work: Work, tasks: dict[Any, Attempt]) -> None:
        """Give Ray some more tasks than it can start now: it decides when and where they run."""
        waiting = sum(attempt.started is None for attempt in tasks.values())
        room = min(WAITING - waiting, (self.jobs or math.inf) - len(tasks))
        while room > 0 and (attempt := work.take(wait=False)) is not None:
            tasks[self.task.remote(self.archive, *self.fixed, attempt.question)] = attempt
            room -= 1

    def receive(self, stream: Any, tasks: dict[Any, Attempt], work: Work) -> None:
        """Take in what a task has yielded: that it has started, or its answer, which ends it."""
        reply = self.next_reply(stream)
        if reply is None:
            tasks[stream].started = time.monotonic()
        else:
            work.finish(tasks.pop(stream), reply)

    def next_reply(self, stream: Any) -> GradingReply | None:
        """What a task answers, or None if it has just started; a lost one is a grader's fault."""
        try:
            content = self.ray.get(next(stream))
            if content == ray_worker.STARTED:
                return None
            if content.startswith(ray_worker.DIED):
                last_line = content.removeprefix(ray_worker.DIED).decode("utf-8", "replace")
                return GradingReply(fault=f"the judge ended ({last_line})")
            return msgspec.msgpack.decode(content, type=GradingReply)
        except Exception as error:  # Ray's, and those that a node raised
            reason = str(error).splitlines()[0] if str(error) else ""
            return GradingReply(fault=f"{type(error).__name__}: {reason}")

    def close(self) -> None:
        """Leave no zip on the nodes; then leave the cluster, or end it where it was ours."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        clean_up = self.ray.remote(ray_worker.clean_up)
        with suppress(Exception):  # a node that is lost has lost the zip, too
            cleaned = [
                clean_up.options(
                    num_cpus=0, scheduling_strategy=strategy(one["NodeID"], soft=False)
                ).remote(self.fixed[0])
                for one in self.ray.nodes()
                if one["Alive"]
            ]
            self.ray.wait(cleaned, num_returns=len(cleaned), timeout=CLEAN_SECONDS)
        self.ray.shutdown()
