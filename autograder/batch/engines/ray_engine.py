"""Grades a batch on a Ray cluster, with one task per submission."""

import hashlib
import importlib
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from autograder.batch.engines import ray_worker
from autograder.batch.engines.judge_settings import JUDGE_MB, options_of, silence_of
from autograder.batch.engines.machine_resources import cores
from autograder.batch.work_queue import Attempt, Work
from autograder.grading.warm.judge_messages import GradingReply
from common.assignment import ROOT, Assignment
from common.errors import CourseError

REQUIREMENTS = "autograder/batch/engines/requirements.txt"
TICK = 0.2
CLEAN_SECONDS = 20
CONNECT_SECONDS = 10
ROOM_SECONDS = 600.0  # to wait for a node, where all that had room are lost
LOOK_EVERY = 5.0  # seconds after which to see whether nodes have come or gone


# Of a cluster that is started here: tell nobody about it, leave the GPUs of tasks that ask for none
# alone, and give judges the same right to a core as those of the local engine have.
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

    name = "ray"

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
            options_of(assignment, gpus, private).to_json(),
            silence_of(assignment),
        )
        self.ray.cloudpickle.register_pickle_by_value(ray_worker)
        self.task = self.ray.remote(ray_worker.grade_on_node).options(
            num_cpus=1,
            num_gpus=gpus,
            memory=memory,
            max_retries=0,  # attempts are counted by `Work`, whichever the engine
        )
        self.check_nodes()
        self.slots = self.count_slots()
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
        if not self.count_slots():
            raise CourseError("No node of the Ray cluster has room to grade a submission.")

    def count_slots(self) -> int:
        """How many submissions the cluster can grade at once."""
        room = sum(
            min(int(node.get(name, 0) / need) for name, need in self.needs.items())
            for node in self.nodes()
        )
        return min(room, self.jobs or room)

    def run(self, work: Work, tick: Callable[[], None]) -> None:
        """Grade until nothing is left; `tick` is called now and then."""
        running: dict[Any, tuple[int, Attempt]] = {}
        while work.unfinished:
            self.submit(work, running)
            if running:
                ready, _ = self.ray.wait(list(running), num_returns=1, timeout=TICK)
                for reference in ready:
                    slot, attempt = running.pop(reference)
                    work.finish(slot, attempt, self.answer(reference))
            elif work.unfinished:
                time.sleep(TICK)
            tick()
        for reference in running:
            self.ray.cancel(reference, force=True)

    def submit(self, work: Work, running: dict[Any, tuple[int, Attempt]]) -> None:
        """Fill the free slots, of which there may be more or fewer than a while ago."""
        if time.monotonic() - self.looked > LOOK_EVERY:
            self.looked = time.monotonic()
            self.slots = self.count_slots()
            if self.slots:
                self.had_room = self.looked
            elif self.looked - self.had_room > ROOM_SECONDS:  # nodes that were lost may come back
                minutes = f"{ROOM_SECONDS / 60:g} minutes"
                work.stop(f"for {minutes} no node of the Ray cluster has had room")
        taken = {slot for slot, _ in running.values()}
        for slot in range(1, self.slots + 1):
            if slot not in taken:
                attempt = work.take(slot, wait=False)
                if attempt is None:
                    return
                reference = self.task.remote(self.archive, *self.fixed, attempt.question)
                running[reference] = (slot, attempt)

    def answer(self, reference: Any) -> GradingReply:
        """What a task has told; a task that was lost is a fault of the machinery."""
        try:
            told = self.ray.get(reference)
            if told.startswith(ray_worker.DIED):
                words = told.removeprefix(ray_worker.DIED).decode("utf-8", "replace")
                return GradingReply(fault=f"the judge ended ({words})")
            return msgspec.msgpack.decode(told, type=GradingReply)
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
