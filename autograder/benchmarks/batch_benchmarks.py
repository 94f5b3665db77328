"""Benchmarks batch grading: throughput, scaling with slots, memory, Ray's overhead."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from autograder.batch.engines.engine_protocol import Engine
from autograder.batch.engines.local_engine import LocalEngine
from autograder.batch.engines.ray_engine import RayEngine
from autograder.batch.event_log import Log
from autograder.batch.input.export_reader import Export, read_export
from autograder.batch.work_queue import Work
from autograder.benchmarks.benchmark_row import NotMeasured, Row
from autograder.classroom.synthetic_class import make_class
from autograder.classroom.synthetic_export import write_class
from autograder.grading.warm.judge_client import MODULE as JUDGE_MODULE
from autograder.packaging.zip_build import build
from autograder.proving.process_table import descendants_running, resident_bytes
from common.assignment import ROOT, Assignment, load_assignment
from common.determinism import SAME_ARITHMETIC
from common.errors import CourseError

STUDENTS = 40  # with fewer, one slot's wait for the last submission of the other counts for much
WARMING = 4  # submissions, after which judges are warm
FRESH = 4  # submissions that get a pytest of their own: each takes its time
CORES = 2
A5_PER_MINUTE = 20
MEGABYTE = 1024 * 1024
REPEATS = 2
COPIED = ("common", "assignments/a1_convolution", "tests/a1_convolution")


class ClassBatch:
    """A class of an assignment, to be graded again and again."""

    def __init__(self, folder: Path, short: str) -> None:
        self.folder = folder
        self.assignment: Assignment = load_assignment(short)
        self.archive = build(self.assignment).autograder
        # Without attacks, some of which last until they are stopped.
        submissions = make_class(self.assignment, STUDENTS, 7, without=("hostile", "damaged"))
        self.export: Export = read_export(
            write_class(submissions, self.assignment, folder / "class")
        )
        self.count = len(self.export.submissions)
        self.runs = 0

    def grade(self, engine: Engine, first: int | None = None) -> float:
        """Grade all of it, or the first so many; the seconds for each submission."""
        self.runs += 1
        chosen = self.export.submissions[:first]
        out = self.folder / f"out-{self.runs}"
        (out / "state").mkdir(parents=True)
        log = Log(out)
        work = Work(self.export, self.assignment, "bench", log, chosen)
        start = time.perf_counter()
        engine.run(work, lambda: None)
        seconds = time.perf_counter() - start
        log.close()
        if work.progress.graded != len(chosen) or work.progress.retries:
            raise CourseError(f"A batch of {len(chosen)} failed: see {out}")
        return seconds / len(chosen)

    def local(self, slots: int) -> LocalEngine:
        """An engine for this machine."""
        return LocalEngine(self.assignment, self.archive, slots)


def fresh_pytest(batch: ClassBatch, trees: list[Path]) -> float:
    """Grade some submissions with a new pytest for each, one at a time in each tree; seconds."""
    chosen = batch.export.submissions[:: batch.count // FRESH]  # from all of the class

    def grade(numbers: range) -> None:
        tree = trees[numbers.start]
        for number in numbers:
            files = batch.export.read_submission(chosen[number], batch.assignment).files
            for name, content in files.items():
                (tree / "assignments" / batch.assignment.name / name).write_bytes(content)
            words = ["-m", "pytest", "-q", "-o", "python_files=test_*.py", "tests"]
            subprocess.run(
                [sys.executable, *words],
                cwd=tree,
                env={**os.environ, **SAME_ARITHMETIC},
                stdout=subprocess.DEVNULL,
                check=False,  # tests of a submission may fail
            )

    start = time.perf_counter()
    with ThreadPoolExecutor(len(trees)) as pool:
        list(pool.map(grade, [range(first, FRESH, len(trees)) for first in range(len(trees))]))
    return (time.perf_counter() - start) / FRESH


def student_tree(folder: Path) -> Path:
    """A folder in which pytest runs all tests of assignment 1 against the code there."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def best(measures: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The best of several measurements of each, made alternately."""
    found = dict.fromkeys(measures, float("inf"))
    for _ in range(REPEATS):
        for name, measured in measures.items():
            found[name] = min(found[name], measured())
    return found


def held_megabytes() -> float:
    """The memory of this process and of all warm judges that it has started."""
    judges = descendants_running(os.getpid(), JUDGE_MODULE)
    return sum(resident_bytes(pid) for pid in (os.getpid(), *judges)) / MEGABYTE


@contextmanager
def class_batch(short: str) -> Iterator[ClassBatch]:
    """A class in a scratch folder."""
    with TemporaryDirectory(prefix="conv2gpt-bench-") as scratch:
        yield ClassBatch(Path(scratch), short)


def local_rows() -> Iterator[Row]:
    """Throughput, how it grows with the slots, and memory."""
    with class_batch("a1") as batch:
        yield from throughput_rows(batch)


def throughput_rows(batch: ClassBatch) -> Iterator[Row]:
    """The same, of a class that is there."""
    trees = [student_tree(batch.folder / f"tree-{number}") for number in range(CORES)]
    with batch.local(1) as one, batch.local(CORES) as two:
        batch.grade(one, WARMING), batch.grade(two, WARMING)
        before = held_megabytes()
        seconds = best(
            {
                "in turn": lambda: fresh_pytest(batch, trees[:1]),
                "at once": lambda: fresh_pytest(batch, trees),
                "one": lambda: batch.grade(one),
                "two": lambda: batch.grade(two),
            }
        )
        after = held_megabytes()
    name = (
        f"a submission of a1 in a batch of {batch.count}, {CORES} jobs "
        f"({60 / seconds['two']:.0f} per minute)"
    )
    fresh = "a fresh python -m pytest for each"
    yield Row(name, f"{fresh}, one after the other", seconds["two"], seconds["in turn"], bar=1 / 8)
    # A child for each test has its price: this is what remains when pytest has all cores, too.
    yield Row("the same", f"{fresh}, {CORES} at once", seconds["two"], seconds["at once"], bar=0.5)
    yield Row(
        f"the same with {CORES} jobs", "with 1 job", seconds["two"], seconds["one"], bar=1 / 1.8
    )
    yield Row(
        f"memory after {REPEATS * 2 * batch.count} more submissions",
        f"after {2 * WARMING}",
        after,
        before,
        bar=1.02,
        unit="MB",
    )


def a5_rows() -> Iterator[Row]:
    """How many submissions of a5 one job grades in a minute."""
    with class_batch("a5") as batch:
        with batch.local(1) as engine:
            batch.grade(engine, WARMING)
            seconds = batch.grade(engine)
        name = (
            f"a submission of a5 in a batch of {batch.count}, 1 job ({60 / seconds:.1f} per minute)"
        )
        yield Row(name, f"{A5_PER_MINUTE} per minute", seconds, 60 / A5_PER_MINUTE, bar=1)


def ray_rows() -> Iterator[Row | NotMeasured]:
    """What Ray adds on one machine."""
    if importlib.util.find_spec("ray") is None:
        yield NotMeasured("a submission of a1 in a batch, by Ray", "Ray is not installed.")
        return
    with class_batch("a1") as batch:
        yield ray_row(batch)


def ray_row(batch: ClassBatch) -> Row:
    """What Ray adds on one machine."""
    cluster = RayEngine(batch.assignment, batch.archive, CORES, None)
    try:
        with batch.local(CORES) as local:
            batch.grade(cluster, WARMING), batch.grade(local, WARMING)
            seconds = best(
                {
                    "ray": lambda: batch.grade(cluster),
                    "local": lambda: batch.grade(local),
                }
            )
    finally:
        cluster.close()
    name = f"a submission of a1 in a batch of {batch.count}, by Ray, {CORES} jobs"
    return Row(name, "by the local engine", seconds["ray"], seconds["local"], bar=1.15)
