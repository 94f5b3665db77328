"""Grades a class while faults are injected, and compares with an undisturbed batch."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.batch.batch_records import RESULTS, STATES, read_batch
from autograder.classroom.batch_faults import (
    LOCAL_FAULTS,
    RAY_FAULTS,
    RayTestCluster,
    RunningBatch,
)
from autograder.proving.faults.fault_injector import FaultInjector
from common.assignment import ROOT
from common.errors import CourseError

POLL_SECONDS = 0.05
# What differs from one grading to the next: fields, and what a test of speed says.
TIMES = ("execution_time", "leaderboard")
MEASURED = re.compile(r"took [0-9.e+-]+x the baseline's time")


@dataclass(frozen=True)
class BatchFaultReport:
    """What was killed, how often the batch was started, and what was wrong at its end."""

    kills: Counter[str]
    starts: int
    problems: list[str]


def batch_command(assignment: str, export: Path, out: Path, *options: str) -> list[str]:
    """The command that grades a class."""
    words = [sys.executable, "-m", "autograder", "batch", assignment, str(export)]
    return [*words, "--out", str(out), *options]


def grade_undisturbed(assignment: str, export: Path, out: Path, *options: str) -> None:
    """Grade a class without a fault."""
    words = batch_command(assignment, export, out, *options)
    done = subprocess.run(words, cwd=ROOT, check=False)
    if done.returncode:
        raise CourseError(f"An undisturbed batch failed: exit {done.returncode}.")


def grade_with_faults(
    assignment: str, export: Path, out: Path, engine: str, every: int, seed: int
) -> BatchFaultReport:
    """Grade a class, with a fault whenever so many more results are there."""
    rng = random.Random(f"{engine}/{seed}")
    if engine == "local":
        words = batch_command(assignment, export, out)
        return run_with_faults(words, out, FaultInjector(LOCAL_FAULTS, rng, every, every))
    cluster = RayTestCluster()
    try:
        words = batch_command(
            assignment, export, out, "--engine", "ray", "--address", cluster.address
        )
        injector = FaultInjector(RAY_FAULTS, rng, every, every)
        return run_with_faults(words, out, injector, cluster)
    finally:
        cluster.close()


def run_with_faults(
    words: Sequence[str],
    out: Path,
    injector: FaultInjector[RunningBatch],
    cluster: RayTestCluster | None = None,
) -> BatchFaultReport:
    """Run a batch to its end, restarted each time that its driver is killed."""
    starts = 0
    while True:
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
        starts += 1
        ancestor = os.getpid() if cluster else process.pid
        batch = RunningBatch(out, process.pid, ancestor, cluster)
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
            injector.step(batch)
        if process.returncode != -signal.SIGKILL:
            break
    code = process.returncode
    return BatchFaultReport(
        kills=Counter(injection.fault for injection in injector.injections),
        starts=starts,
        problems=[f"the last run ended with {code}"] if code else [],
    )


def differences_between(undisturbed: Path, disturbed: Path) -> list[str]:
    """The differences between two batches of a class, but for times and attempts."""
    first, second = read_batch(undisturbed), read_batch(disturbed)
    ids = {f"{entry.id}.json" for entry in first.entries}
    found = []
    for folder in (STATES, RESULTS):
        there = {file.name for file in (disturbed / folder).iterdir()}
        if there != {file.name for file in (undisturbed / folder).iterdir()} or there != ids:
            found.append(f"{folder}/ holds {len(there)} files for {len(ids)} submissions")
    for one, other in zip(first.entries, second.entries, strict=True):
        if (one.id, one.status, one.score) != (other.id, other.status, other.score):
            ended = f"{other.status} {other.score}"
            found.append(f"{one.id}: {one.status} {one.score}, with faults {ended}")
        elif without_times(first.result(one)) != without_times(second.result(other)):
            found.append(f"{one.id}: another result with the same score")
        elif first.key(one) != second.key(other):
            found.append(f"{one.id}: another key")
    return found


def without_times(result: dict[str, Any] | None) -> str:
    """A result but for its times, as text."""
    kept = {name: part for name, part in (result or {}).items() if name not in TIMES}
    return MEASURED.sub(
        "took some multiple of the baseline's time", json.dumps(kept, sort_keys=True)
    )
