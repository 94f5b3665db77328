"""The faults of `make chaos` for batches: killed processes, lost Ray nodes."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.batch.engines.ray_engine import load_ray
from autograder.batch.event_log import LOG
from autograder.grading.sandbox.sandbox import Sandbox
from autograder.grading.warm.judge_client import MODULE as JUDGE_MODULE
from autograder.proving.faults.fault_injector import Fault, kill
from autograder.proving.process_table import descendants_running, process_table

NODES = 2  # of a cluster
# What the command lines of a batch's processes hold.
JUDGE, FORK_SERVER, RAY_WORKER = JUDGE_MODULE, Sandbox.server_module, "grade_on_node"


class RayTestCluster:
    """A Ray cluster on this machine: a head that grades nothing, and nodes that can be lost."""

    def __init__(self) -> None:
        load_ray()
        from ray.cluster_utils import Cluster  # only here: Ray is optional

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes: list[Any] = [self.cluster.add_node(num_cpus=1) for _ in range(NODES)]

    @property
    def address(self) -> str:
        """Where a driver finds it."""
        return self.cluster.address

    def replace_node(self, rng: random.Random) -> None:
        """Lose a node, and get a new one."""
        lost = self.nodes.pop(rng.randrange(len(self.nodes)))
        self.cluster.remove_node(lost, allow_graceful=False)
        self.nodes.append(self.cluster.add_node(num_cpus=1))

    def close(self) -> None:
        """End it."""
        self.cluster.shutdown()


@dataclass(frozen=True)
class RunningBatch:
    """One batch that is under way."""

    out: Path  # its folder
    driver: int  # the process
    ancestor: int  # of the judges: the driver, or the process that started the Ray cluster
    cluster: RayTestCluster | None = None

    @property
    def progress(self) -> int:
        """How many results its log lists."""
        with suppress(OSError):
            return (self.out / LOG).read_bytes().count(b'"event": "graded"')
        return 0


def kill_driver(batch: RunningBatch, rng: random.Random) -> bool:
    return kill(batch.driver)


def kill_one(word: str) -> Callable[[RunningBatch, random.Random], bool]:
    """Kill one of the processes whose command line holds a word."""

    def inject(batch: RunningBatch, rng: random.Random) -> bool:
        found = machinery_processes(batch.ancestor, word)
        return bool(found) and kill(rng.choice(found))

    return inject


def machinery_processes(ancestor: int, word: str) -> list[int]:
    """The descendants of a process whose command line holds a word, but no fork server's children.

    Those hold a submission. That one of them dies is the submission's own fault, for all we know.
    """
    found = descendants_running(ancestor, word)
    if word != FORK_SERVER:
        return found
    table = process_table()
    return [pid for pid in found if pid not in table or table[pid].parent not in found]


def lose_node(batch: RunningBatch, rng: random.Random) -> bool:
    if batch.cluster is None:
        return False
    batch.cluster.replace_node(rng)
    return True


MACHINERY_FAULTS = (
    Fault("judge", kill_one(JUDGE)),
    Fault("fork server", kill_one(FORK_SERVER)),
)
DRIVER_FAULT = Fault("driver", kill_driver)
LOCAL_FAULTS = (*MACHINERY_FAULTS, DRIVER_FAULT)
RAY_FAULTS = (
    *MACHINERY_FAULTS,
    Fault("Ray worker", kill_one(RAY_WORKER)),
    Fault("node", lose_node),
    DRIVER_FAULT,
)
