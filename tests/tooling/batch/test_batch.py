"""Tests of whole batches of a small class, really graded: with and without faults, both engines."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.batch.batch_records import read_batch
from autograder.batch.engines.judge_settings import judge_options
from autograder.classroom.batch_faults import FORK_SERVER, machinery_processes
from autograder.classroom.disturbed_batch import (
    batch_command,
    differences_between,
    grade_with_faults,
    without_times,
)
from autograder.grading.warm.judge_client import MODULE as JUDGE_MODULE
from autograder.grading.warm.judge_client import JudgeClient
from autograder.grading.warm.judge_messages import GradingRequest, JudgeOptions
from autograder.packaging.zip_build import build
from autograder.proving.process_table import descendants_running, resident_bytes
from autograder.zip_archive import unpack
from common.assignment import ROOT, load_assignment
from tests.tooling.graded_class import graded_class
from tests.tooling.scratch_copies import clean_environment, python
from tests.tooling.weakened_sandbox import needs_root

A1 = load_assignment("a1")
HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory) -> Path:
    """A class and its batch."""
    return graded_class(tmp_path_factory)


@pytest.fixture(scope="module")
def export(class_folder) -> Path:
    """Its export."""
    return next((class_folder / "class").glob("*_export"))


@pytest.fixture(scope="module")
def calm(class_folder) -> Path:
    """The class, graded in peace."""
    return class_folder / "batch"


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of ours."""
    return python(*words[1:], cwd=ROOT)


def test_a_result_is_what_grading_that_submission_alone_gives(export, calm, tmp_path):
    entry = max(read_batch(calm).entries, key=lambda entry: entry.score)
    out = tmp_path / "alone.json"
    folder = export / f"submission_{entry.id}"
    done = python("-m", "autograder", "grade", "a1", folder, "--out", out, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    ours = json.loads((calm / "results" / f"{entry.id}.json").read_bytes())
    assert without_times(ours) == without_times(json.loads(out.read_bytes()))


def test_a_batch_with_faults_ends_like_one_without(export, calm, tmp_path):
    report = grade_with_faults("a1", export, tmp_path / "out", "local", every=2, seed=1)
    assert report.kills and not report.problems
    assert differences_between(calm, tmp_path / "out") == []


NOSY = """
import os

def reached():
    for folder in (EXPORT, OUT, OUT + "/results"):
        try:
            yield os.listdir(folder)
        except OSError:
            pass
    for file in ("/victim/convolution.py", "/submission_metadata.yml"):
        try:
            yield open(EXPORT + file).read()
        except OSError:
            pass
    for file in ("/results/victim.json", "/batch.json", "/log.jsonl", "/state/victim.json"):
        try:
            yield open(OUT + file).read()
        except OSError:
            pass

print("I TRIED AND FOUND", list(reached()))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user of the machine may enter; pytest closes its own at each start."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_no_submission_reaches_those_of_others_or_their_results(place):
    """Though both lie where every user of the machine may read."""
    export, out = place / "class", place / "out"
    code = f"EXPORT, OUT = {str(export)!r}, {str(out)!r}\n{NOSY}"
    for name, content in (("victim", "secret = 1\n"), ("watcher", code)):
        (export / name).mkdir(parents=True)
        (export / name / "convolution.py").write_text(content)
    (export / "submission_metadata.yml").write_text("victim:\n  :submitters: []\n")
    out.mkdir()
    for folder in (export, out, *export.iterdir()):
        folder.chmod(0o755 if folder.is_dir() else 0o644)
    done = run(batch_command("a1", export, out, "--jobs", "1"))  # the victim comes first
    assert done.returncode == 0, done.stdout + done.stderr
    assert "I TRIED AND FOUND []" in (out / "results" / "watcher.json").read_text()
    unconfined = python("-c", code, cwd=ROOT).stdout
    assert "secret = 1" in unconfined and "victim.json" in unconfined


@needs_root  # else, without Landlock, nothing is graded
def test_where_only_a_uid_protects_no_class_is_graded_that_lies_in_the_open(place):
    export, out, own = (place / name for name in ("class", "out", "own"))
    unpack(build(A1).autograder, own / "source")
    own.chmod(0o700)
    with (own / "source/autograder/grading/sandbox/kernel/landlock.py").open("a") as code:
        code.write("\n\ndef version() -> int:\n    return 0\n")
    for file in (export / "ada" / "convolution.py", out / "batch.json"):
        file.parent.mkdir(parents=True)
        file.write_text("secret = 1\n")
    for folder in (export, out):
        folder.chmod(0o755)
    private = (export, out, out / "batch.json")
    judge = JudgeClient(own / "source", judge_options(A1, 0.0, private))
    try:
        faults = [fault_of(judge)]
        for folder in (export, out):
            folder.chmod(0o700)
            faults.append(fault_of(judge))
    finally:
        judge.close()
    assert [bool(fault) for fault in faults] == [True, True, False]
    assert all("tests and metadata can't be read" in fault for fault in faults[:2])
    assert "submissions and results where other users can't read them" in faults[0]


def fault_of(judge: JudgeClient) -> str:
    """Why a judge grades nothing at all, if so."""
    answer = judge.grade(GradingRequest())
    assert answer.fatal == bool(answer.fault)
    return answer.fault


def test_an_interrupt_ends_a_batch_cleanly_and_says_how_to_go_on(export, tmp_path):
    out = tmp_path / "out"
    with subprocess.Popen(
        batch_command("a1", export, out),
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # make's & ignores it
    ) as process:
        judges: list[int] = []
        while not judges and process.poll() is None:
            time.sleep(0.1)
            judges = descendants_running(process.pid, JUDGE_MODULE)
        process.send_signal(signal.SIGINT)
        reported = process.communicate(timeout=300)[0]
    assert "Stopped: by Ctrl-C or a signal. Rerun the same command to resume." in reported
    assert process.returncode == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in judges)
    assert (out / "grades.csv").is_file() and (out / "batch.json").is_file()


@pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: the engine is not tried")
def test_ray_gives_the_same_results_though_nodes_are_lost(export, calm, tmp_path):
    report = grade_with_faults("a1", export, tmp_path / "out", "ray", every=2, seed=4)
    assert report.kills["node"] and not report.problems
    assert differences_between(calm, tmp_path / "out") == []
    left = Path(os.environ.get("TMPDIR", "/tmp")) / f"conv2gpt-node-{os.getuid()}"
    assert not left.is_dir() or not any(left.iterdir())


def test_without_ray_one_sentence_says_how_to_install_it(export, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "ray.py").write_text("raise ModuleNotFoundError('no ray here')\n")
    done = python(
        *batch_command("a1", export, tmp_path / "out", "--engine", "ray")[1:],
        cwd=ROOT,
        env={"PYTHONPATH": str(hidden)},
    )
    assert done.returncode == 2
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .startswith(
            "--engine ray needs Ray: "
            ".venv/bin/pip install -r autograder/batch/engines/requirements.txt"
        )
    )


def test_an_address_without_ray_is_refused(export, tmp_path):
    done = run(batch_command("a1", export, tmp_path / "out", "--address", "auto"))
    assert (done.returncode, done.stderr) == (2, "--address requires --engine ray.\n")


def test_a_judge_holds_no_more_after_many_submissions_than_after_one(tmp_path):
    unpack(build(A1).autograder, tmp_path / "source")
    judge = JudgeClient(tmp_path / "source", JudgeOptions("a1", forks=True))
    try:
        held = []
        for _ in range(6):
            answer = judge.grade(GradingRequest())
            assert (answer.fault, answer.score, answer.maximum) == ("", 0.0, 100.0)
            held.append(resident_bytes(judge.process.pid))
        assert held[-1] - held[0] < 1024**2
    finally:
        judge.close()


def test_no_process_that_holds_a_submission_is_killed():
    """A death of a submission's process may be its own doing, so it costs points."""
    code = "import os, time; print(os.fork(), flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code, FORK_SERVER], stdout=subprocess.PIPE
    ) as server:
        server.stdout.readline()
        server.stdout.readline()
        held = descendants_running(os.getpid(), FORK_SERVER)
        assert machinery_processes(os.getpid(), FORK_SERVER) == [server.pid] and len(held) == 2
        for pid in held:
            os.kill(pid, signal.SIGKILL)


def test_what_a_test_of_speed_has_measured_is_no_difference():
    def reported(figure):
        return {"tests": [{"output": f"The fastest run took {figure}x the baseline's time"}]}

    assert without_times(reported("1.2")) == without_times(reported("3e-05"))
    assert without_times(reported("1.2")) != without_times(
        {"tests": [{"output": "The fastest run"}]}
    )
