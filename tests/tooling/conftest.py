"""Distributes tests to workers, reports what was not run, and defines shared fixtures."""

import os
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.tooling import sampling

# They judge what is right, not how long a busy machine takes to draw an example.
settings.register_profile(
    "conv2gpt", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("conv2gpt")

# The files that take longest, the longest first: a worker that got one last would keep all waiting.
LONG = (
    *("committed_ledgers", "hostile_corpus", "proof_fingerprint", "student_pytest", "setup"),
    *("bad_submissions", "grader_faults", "lab_master", "synthetic_class", "gpu_tests"),
    *("zip_contents", "lab_grading", "shakespeare", "release", "semester", "function_removal"),
    *("faces", "processor_time", "attack_findings", "grading_under_faults", "handout", "bench"),
    *("batch", "html_report", "submission_speed", "hidden_words", "experiments", "other_graders"),
    *("reference_artifacts", "damaged_submissions", "repeated_grading", "standins"),
    *("leftover_processes", "home_folder"),
)

# Files whose tests of different assignments share nothing.
EACH_ASSIGNMENT = ("test_committed_ledgers",)
# Attacks and what looks for their traces all over the machine: never side by side.
TOGETHER = {"test_hostile_corpus": "hostile", "test_other_graders": "hostile"}

SKIPPED: Counter[tuple[str, str]] = Counter()
SAMPLED = pytest.StashKey[dict[str, tuple[int, int]]]()
SCRATCH = pytest.StashKey[Path]()


def is_worker(config):
    return hasattr(config, "workerinput")


def pytest_configure(config):
    config.stash[SAMPLED] = {}
    if is_worker(config):  # each with scratch folders of its own
        scratch = tempfile.mkdtemp(prefix=f"conv2gpt-{config.workerinput['workerid']}-")
        os.chmod(scratch, 0o755)  # student code has another uid, and must get into its folder
        config.stash[SCRATCH] = Path(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Long files come first."""
    places = {f"test_{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def work_unit(test):
    """The name of the tests that one worker runs one after another, and this test with them.

    Mostly those of its file, which share what they make. (Marks don't reach the process that
    distributes tests: pytest-xdist 3.8 writes groups where pytest 9 no longer reads them.)
    """
    file, _, name = test.partition("::")
    stem = Path(file).stem
    parameter = re.search(r"\[(a\d+)\]$", name)
    if stem in EACH_ASSIGNMENT and parameter:
        return f"{stem} {parameter[1]}"
    return TOGETHER.get(stem, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute tests by work unit."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = work_unit
    return scheduler


def pytest_runtest_logreport(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        file = Path(report.nodeid.partition("::")[0]).name
        SKIPPED[file, reason.removeprefix("Skipped: ")] += 1


def pytest_sessionfinish(session):
    if is_worker(session.config):
        session.config.workeroutput["sampled"] = sampling.TAKEN


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """What a worker has sampled; one that died can't say."""
    node.config.stash[SAMPLED].update(getattr(node, "workeroutput", {}).get("sampled", {}))


def pytest_unconfigure(config):
    """After pytest's own last line."""
    if SCRATCH in config.stash:
        shutil.rmtree(config.stash[SCRATCH], ignore_errors=True)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if SKIPPED and reporter:
        parts = [f"{count} of {file} ({reason})" for (file, reason), count in SKIPPED.items()]
        reporter.write_line(f"Not run here: {'; '.join(parts)}.")
    sampled = {name: tuple(counts) for name, counts in config.stash[SAMPLED].items()}
    if reporter and (line := sampling.summary(sampled | sampling.TAKEN)):
        reporter.write_line(line)


@pytest.fixture
def one_thread():
    """On arrays as small as most tests have, threads cost more than they save."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def patient(monkeypatch):
    """Lets code take long by the clock, which it does on a busy machine."""
    monkeypatch.setattr("common.assignment.WALL_FACTOR", 60)
