"""Compares what hostile submissions gain from other graders and from this one."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

from rich.table import Table

from autograder.benchmarks.benchmark_row import Row
from autograder.benchmarks.other_graders.grader_adapters import (
    GradescopeUtils,
    Harm,
    OtherGrader,
    Otter,
    otter_version,
)
from autograder.proving.hostile.corpus_gradings import CorpusGradings, Outcome
from autograder.proving.hostile.hostile_corpus import SUCCESS_TEXT, Entry, read_corpus
from autograder.semester import DIST
from common.errors import CourseError

OTTER = "otter-grader[grading]==7.0.0"
OTTER_VENV = DIST / "otter-venv"
AT_ONCE = 2
ALLOWED_SECONDS = 360
HERE = "conv2gpt"
COLUMNS = (
    *("unearned points", "secret shown", "forbidden deed", "no full result", "left behind"),
    "any of these",
)


def entries() -> list[Entry]:
    """The part of the corpus that means the same to other graders."""
    return [entry for entry in read_corpus() if entry.elsewhere]


def otter_python(given: Path | None = None) -> Path | None:
    """A Python that has otter-grader: of the given environment, of this one, or of dist/."""
    prefixes = [given] if given else [Path(sys.prefix), OTTER_VENV]
    for prefix in prefixes:
        python = prefix / "bin" / "python"
        if python.is_file() and otter_version(python):
            return python
    if given:
        raise CourseError(f"No environment with otter-grader at {given}.")
    return None


def install_otter() -> Path:
    """An environment with otter-grader in dist/, which takes some minutes and 500 MB."""
    subprocess.run([sys.executable, "-m", "venv", OTTER_VENV], check=True)
    pip = str(OTTER_VENV / "bin" / "pip")
    subprocess.run([pip, "install", "-q", OTTER, f"numpy=={version('numpy')}"], check=True)
    return OTTER_VENV


def harms_elsewhere(grader: OtherGrader, chosen: list[Entry]) -> dict[str, Harm]:
    """What each entry gets from another grader. The submission is the attack alone."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        harms = pool.map(lambda entry: grader.grade(entry.file.read_text("utf-8")), chosen)
        return dict(zip((entry.name for entry in chosen), harms, strict=True))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C doesn't wait for those that have not begun


def harms_here(chosen: list[Entry]) -> dict[str, Harm]:
    """What each entry gets from this grader, beyond what its honest part earns."""
    with CorpusGradings(chosen) as gradings:
        return {entry.name: harm(entry, gradings.outcomes[entry.name].result()) for entry in chosen}


def harm(entry: Entry, outcome: Outcome) -> Harm:
    """What an entry got."""
    graded = outcome.graded
    points = {test.name: test.points for test in outcome.tree.graded_tests}
    text = graded.results.decode()
    return Harm(
        points=sum(points[name] for name in graded.passed - entry.earned_tests),
        secret=bool(outcome.secrets_shown),
        deed=SUCCESS_TEXT in text,
        lost=not graded.content["extra_data"]["finished"],
        left=bool(graded.survivors or graded.leftover_files or graded.changes),
    )


@cache
def corpus_here() -> tuple[dict[str, Harm], float]:
    """What the whole corpus gets from this grader, and the seconds that this took."""
    start = time.monotonic()
    harms = harms_here(read_corpus())
    return harms, time.monotonic() - start


def corpus_row() -> Row:
    """The whole corpus, which two cores grade in six minutes at most."""
    harms, seconds = corpus_here()
    harmful = sum(map(bool, harms.values()))
    name = f"{len(harms)} hostile submissions ({harmful} gain something)"
    return Row(name, "six minutes", seconds, ALLOWED_SECONDS, bar=1)


def compare(
    otter: Path | None, report: Callable[[str], None], here: Mapping[str, Harm] | None = None
) -> tuple[Table, dict[str, dict[str, Harm]]]:
    """The comparison as a table, and by grader and submission.

    here: what submissions get from this grader, where that is known already.
    """
    chosen = entries()
    table = Table(title=f"{len(chosen)} hostile submissions that solve nothing, and what they gain")
    table.add_column("grader")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    found: dict[str, dict[str, Harm]] = {}
    for grader in (GradescopeUtils(), Otter(otter)):
        report(grader.name)
        if reason := grader.missing():
            table.add_row(grader.name, reason)
            continue
        found[grader.name] = harms_elsewhere(grader, chosen)
    report(HERE)
    here = harms_here(chosen) if here is None else here
    found[HERE] = {entry.name: here[entry.name] for entry in chosen}
    for name, harms in found.items():
        table.add_row(name, *counts(harms))
    return table, found


def counts(harms: dict[str, Harm]) -> list[str]:
    """How many submissions got each kind of thing, and how many got any."""
    kinds: list[Callable[[Harm], object]] = [
        lambda harm: harm.points,
        lambda harm: harm.secret,
        lambda harm: harm.deed,
        lambda harm: harm.lost,
        lambda harm: harm.left,
        bool,
    ]
    return [str(sum(bool(kind(harm)) for harm in harms.values())) for kind in kinds]
