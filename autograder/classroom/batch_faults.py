"""Kills parts of a batch at random while it grades, and checks what becomes of its results."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.batch.batch_records import RESULTS, STATES, read_batch
from autograder.batch.engines.ray_engine import load_ray
from autograder.batch.event_log import LOG
from common.assignment import ROOT
from common.errors import CourseError

POLL = 0.05
# Parts of a batch, by what their command lines hold.
JUDGE, SERVER = "autograder.grading.warm.warm_judge", "autograder.grading.sandbox.fork_server"
RAY_WORKER = "grade_on_node"
LOCAL_PARTS = (JUDGE, SERVER, "driver")
RAY_PARTS = (JUDGE, SERVER, RAY_WORKER, "node", "driver")
# What differs from one grading to the next: fields, and what a test of speed says.
TIMES = ("execution_time", "leaderboard")
MEASURED = re.compile(r"took [0-9.e+-]+ times as long")


@dataclass
class Struck:
    """What was killed, and what was wrong afterwards."""

    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    complaints: list[str] = field(default_factory=list)


def command(assignment: str, export: Path, out: Path, *options: str) -> list[str]:
    """The command that grades a class."""
    words = [sys.executable, "-m", "autograder", "batch", assignment, str(export)]
    return [*words, "--out", str(out), *options]


def grade_calmly(assignment: str, export: Path, out: Path, *options: str) -> None:
    """A batch that nothing happens to."""
    done = subprocess.run(command(assignment, export, out, *options), cwd=ROOT, check=False)
    if done.returncode:
        raise CourseError(f"A batch failed to which nothing had been done: exit {done.returncode}.")


class Batch:
    """A batch that is struck whenever some more of its submissions are done."""

    def __init__(self, words: list[str], out: Path, every: int, rng: random.Random) -> None:
        self.words = words
        self.out = out
        self.every = every
        self.rng = rng
        self.struck = Struck()

    def run(self, parts: tuple[str, ...], strike: Callable[[str, int], bool]) -> Struck:
        """Run it to its end, started anew each time that its driver is killed."""
        next_at = self.every
        while True:
            process = subprocess.Popen(self.words, cwd=ROOT, stdout=subprocess.DEVNULL)
            self.struck.starts += 1
            while process.poll() is None:
                time.sleep(POLL)
                if finished(self.out) >= next_at:
                    part = self.rng.choice(parts)
                    if strike(part, process.pid):
                        self.struck.kills[part] += 1
                        next_at = finished(self.out) + self.every
            if process.returncode != -signal.SIGKILL:
                break
        if process.returncode:
            self.struck.complaints.append(f"the last run ended with {process.returncode}")
        return self.struck


def finished(out: Path) -> int:
    """How many results a batch's log tells of."""
    with suppress(OSError):
        return (out / LOG).read_bytes().count(b'"event": "graded"')
    return 0


def strike_local(part: str, driver: int, rng: random.Random) -> bool:
    """Kill the driver, or some process of a kind that it has started."""
    chosen = [driver] if part == "driver" else machinery_of(driver, part)
    return kill_one(chosen, rng)


def kill_one(processes: list[int], rng: random.Random) -> bool:
    """Kill one of these; whether there was one."""
    if not processes:
        return False
    with suppress(ProcessLookupError):
        os.kill(rng.choice(processes), signal.SIGKILL)
        return True
    return False


def machinery_of(ancestor: int, part: str) -> list[int]:
    """The processes of a kind that descend from one, but no server's children.

    Those hold a submission. That one of them dies is the submission's own fault, for all we know.
    """
    found = processes_of(ancestor, part)
    if part != SERVER:
        return found
    started_by = parents()
    return [pid for pid in found if started_by.get(pid) not in found]


def processes_of(ancestor: int, part: str) -> list[int]:
    """The processes that descend from one, and whose command line holds a word."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [ancestor]
    while waiting:
        started = children.get(waiting.pop(), [])
        waiting += started
        found += started
    return [pid for pid in found if part in command_line(pid)]


def parents() -> dict[int, int]:
    """Every process, and which one started it."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            found[int(folder.name)] = int(fields[1])
    return found


def command_line(pid: int) -> str:
    """What a process was started as."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace").replace("\0", " ")
    return ""


class Nodes:
    """A Ray cluster on this machine: a head that grades nothing, and nodes that come and go."""

    def __init__(self, count: int = 2) -> None:
        load_ray()
        from ray.cluster_utils import Cluster  # only here: Ray is optional

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes: list[Any] = [self.cluster.add_node(num_cpus=1) for _ in range(count)]

    @property
    def address(self) -> str:
        """Where a driver finds it."""
        return self.cluster.address

    def strike(self, part: str, driver: int, rng: random.Random) -> bool:
        """Kill the driver, a node, or a process of this cluster."""
        if part == "driver":
            return kill_one([driver], rng)
        if part != "node":
            return kill_one(machinery_of(os.getpid(), part), rng)
        lost = self.nodes.pop(rng.randrange(len(self.nodes)))
        self.cluster.remove_node(lost, allow_graceful=False)
        self.nodes.append(self.cluster.add_node(num_cpus=1))
        return True

    def close(self) -> None:
        """End it."""
        self.cluster.shutdown()


def complaints(calm: Path, struck: Path) -> list[str]:
    """In what a batch differs from a calm one, but for times and attempts."""
    first, second = read_batch(calm), read_batch(struck)
    ids = {f"{entry.id}.json" for entry in first.entries}
    found = []
    for place in (STATES, RESULTS):
        there = {file.name for file in (struck / place).iterdir()}
        if there != {file.name for file in (calm / place).iterdir()} or there != ids:
            found.append(f"{place}/ holds {len(there)} files for {len(ids)} submissions")
    for one, other in zip(first.entries, second.entries, strict=True):
        if (one.id, one.status, one.score) != (other.id, other.status, other.score):
            found.append(f"{one.id}: {one.status} {one.score}, struck {other.status} {other.score}")
        elif without_times(first.result(one)) != without_times(second.result(other)):
            found.append(f"{one.id}: another result with the same score")
        elif first.key(one) != second.key(other):
            found.append(f"{one.id}: another key")
    return found


def without_times(result: dict[str, Any] | None) -> str:
    """A result but for its times, as text."""
    kept = {name: part for name, part in (result or {}).items() if name not in TIMES}
    return MEASURED.sub("took some times as long", json.dumps(kept, sort_keys=True))


def strike_batch(
    assignment: str, export: Path, out: Path, engine: str, every: int, seed: int
) -> Struck:
    """Grade a class while its parts are killed; what was killed."""
    rng = random.Random(f"{engine}/{seed}")
    if engine == "local":
        batch = Batch(command(assignment, export, out), out, every, rng)
        return batch.run(LOCAL_PARTS, lambda part, driver: strike_local(part, driver, rng))
    nodes = Nodes()
    try:
        options = ("--engine", "ray", "--address", nodes.address)
        batch = Batch(command(assignment, export, out, *options), out, every, rng)
        return batch.run(RAY_PARTS, lambda part, driver: nodes.strike(part, driver, rng))
    finally:
        nodes.close()
