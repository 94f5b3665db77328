"""Whole batches of a small class, graded for real: calm, struck, and by either engine."""

import json
import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from autograder.batch.records import read_batch
from autograder.classroom.export import read_truths, write_class
from autograder.classroom.school import make_class
from autograder.classroom.strikes import (
    command,
    complaints,
    processes_of,
    strike_batch,
    without_times,
)
from autograder.grading.processes import ClassJudge
from autograder.grading.warm import Graded, HandedIn
from autograder.packaging.archive import unpack
from autograder.packaging.build import build
from common.assignment import ROOT, load_assignment
from tests.tooling.scratch import clean_environment, python

A1 = load_assignment("a1")
STUDENTS = 6
try:
    import ray  # noqa: F401
except ModuleNotFoundError:
    HAS_RAY = False
else:
    HAS_RAY = True
with_ray = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: the engine is not tried")


@pytest.fixture(scope="module")
def school(tmp_path_factory) -> Path:
    """A class without attacks, whose results may hang on a clock."""
    folder = tmp_path_factory.mktemp("school")
    write_class(make_class(A1, STUDENTS, 3, without=("hostile",)), A1, folder / "class")
    return folder


@pytest.fixture(scope="module")
def export(school) -> Path:
    """Its export."""
    return next((school / "class").glob("*_export"))


@pytest.fixture(scope="module")
def calm(school, export) -> Path:
    """The class, graded in peace."""
    out = school / "calm"
    done = run(command("a1", export, out))
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of ours."""
    return python(*words[1:], cwd=ROOT)


def test_every_student_gets_the_true_score(school, calm):
    truths = read_truths(school / "class")
    batch = read_batch(calm)
    assert len(batch.entries) == len(truths)
    for entry in batch.entries:
        truth = truths[entry.id]
        assert entry.status in ("graded", "unreadable")
        assert truth.lowest <= entry.score <= truth.highest, (entry.id, truth)


def test_a_result_is_what_grading_that_submission_alone_gives(export, calm, tmp_path):
    entry = max(read_batch(calm).entries, key=lambda entry: entry.score)
    out = tmp_path / "alone.json"
    folder = export / f"submission_{entry.id}"
    done = python("-m", "autograder", "grade", "a1", folder, "--out", out, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    ours = json.loads((calm / "results" / f"{entry.id}.json").read_bytes())
    assert without_times(ours) == without_times(json.loads(out.read_bytes()))


def test_started_again_a_finished_batch_grades_nothing(export, calm):
    before = {file: file.stat().st_mtime_ns for file in (calm / "results").iterdir()}
    done = run(command("a1", export, calm))
    assert f"0 graded, {len(before)} kept from before" in done.stdout, done.stderr
    assert {file: file.stat().st_mtime_ns for file in (calm / "results").iterdir()} == before


def test_a_struck_batch_ends_like_a_calm_one(export, calm, tmp_path):
    struck = strike_batch("a1", export, tmp_path / "out", "local", every=2, seed=1)
    assert struck.kills and not struck.complaints
    assert complaints(calm, tmp_path / "out") == []


def test_an_interrupt_ends_a_batch_cleanly_and_says_how_to_go_on(export, tmp_path):
    out = tmp_path / "out"
    with subprocess.Popen(
        command("a1", export, out),
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        judges: list[int] = []
        while not judges and process.poll() is None:
            time.sleep(0.1)
            judges = processes_of(process.pid, "autograder.grading.warm")
        process.send_signal(2)
        told = process.communicate(timeout=300)[0]
    assert "Stopped: stopped by the user. The same command goes on where it was." in told
    assert process.returncode == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in judges)
    assert (out / "grades.csv").is_file() and (out / "batch.json").is_file()


@with_ray
def test_ray_gives_the_same_results_though_nodes_are_lost(export, calm, tmp_path):
    struck = strike_batch("a1", export, tmp_path / "out", "ray", every=2, seed=4)
    assert struck.kills["node"] and not struck.complaints
    assert complaints(calm, tmp_path / "out") == []
    left = Path(os.environ.get("TMPDIR", "/tmp")) / f"conv2gpt-node-{os.getuid()}"
    assert not left.is_dir() or not any(left.iterdir())


def test_without_ray_one_sentence_says_how_to_install_it(export, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "ray.py").write_text("raise ModuleNotFoundError('no ray here')\n")
    done = python(
        *command("a1", export, tmp_path / "out", "--engine", "ray")[1:],
        cwd=ROOT,
        env={"PYTHONPATH": str(hidden)},
    )
    assert done.returncode == 2
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .startswith(
            "--engine ray needs Ray: .venv/bin/pip install -r autograder/batch/requirements.txt"
        )
    )


def test_an_address_without_ray_is_refused(export, tmp_path):
    done = run(command("a1", export, tmp_path / "out", "--address", "auto"))
    assert (done.returncode, done.stderr) == (2, "--address is for --engine ray.\n")


def test_a_judge_holds_no_more_after_many_submissions_than_after_one(tmp_path):
    unpack(build(A1).autograder, tmp_path / "source")
    judge = ClassJudge(tmp_path / "source", "a1")
    try:
        nothing = msgspec.msgpack.encode(HandedIn({}, [], {}))
        held = []
        for _ in range(6):
            answer = msgspec.msgpack.decode(judge.exchange(nothing), type=Graded)
            assert (answer.fault, answer.score, answer.maximum) == ("", 0.0, 100.0)
            held.append(resident_kilobytes(judge.process.pid))
        assert held[-1] - held[0] < 1024
    finally:
        judge.close()


def resident_kilobytes(pid: int) -> int:
    """The memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
