"""Tests of infrastructure faults: retried, then reported as faults, never as a verdict."""

import os
import signal
import subprocess

import pytest

from autograder.grading import grade as grading
from autograder.grading.judge import Settings
from autograder.grading.sandbox.fork_client import ForkServerClient
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT
from common.errors import CourseError, GraderFault
from common.testing.graded_tests import read_graded_tests
from tests.tooling.grading_fixtures import REFERENCE, SEMESTER, assignment, submission, with_lab
from tests.tooling.weakened_sandbox import needs_root

CODE = with_lab(REFERENCE.read_bytes())
NAMES = tuple(
    f"test_{name}"
    for name in (
        "conv_output_size_counts_the_kernel_positions",
        "conv_parameters_counts_weights_and_biases",
        "linear_parameters_counts_weights_and_biases",
    )
)


def grade(sandbox, on_test=lambda outcome: None):
    settings = Settings(semester=SEMESTER, only=NAMES, on_test=on_test)
    result = grading.new_result(assignment(), CODE, settings)
    return grading.grade_in(sandbox, result, CODE, settings)


@pytest.fixture
def sandbox():
    with Sandbox(assignment()) as made:
        yield made


def test_a_fork_server_that_dies_is_replaced_and_no_point_is_lost(sandbox):
    killed = []

    def kill_once(outcome):
        if not killed:
            killed.append(sandbox.server.process.pid)
            os.kill(sandbox.server.process.pid, signal.SIGKILL)

    result = grade(sandbox, kill_once)
    assert killed and sandbox.server.process.pid != killed[0]
    assert result.score == result.maximum > 0
    assert all(outcome.passed for outcome in result.all_outcomes)


def test_a_fork_server_that_always_dies_is_a_fault_and_no_verdict(sandbox):
    def kill(outcome):
        os.kill(sandbox.server.process.pid, signal.SIGKILL)

    with pytest.raises(GraderFault, match=r"The grader itself failed in test_.*fork server"):
        grade(sandbox, kill)


def test_an_error_while_a_test_is_torn_down_is_retried(sandbox, monkeypatch):
    end, failed = ForkServerClient.end, []

    def fail_once(server, pid):
        end(server, pid)
        if not failed and "probed" in seen:
            failed.append(pid)
            raise OSError("interrupted")

    seen = set()
    monkeypatch.setattr(ForkServerClient, "end", fail_once)
    admit = sandbox.admit
    monkeypatch.setattr(sandbox, "admit", lambda *args: [admit(*args), seen.add("probed")][0])
    result = grade(sandbox)
    assert failed
    assert result.score == result.maximum


@pytest.mark.parametrize("restarting", [False, True])
def test_a_judge_without_memory_leaves_no_folder(restarting, monkeypatch):
    """Neither at its end nor where it can't start a new fork server."""
    sandbox = Sandbox(assignment())
    assert sandbox.server.mechanisms  # it is ready
    if restarting:
        monkeypatch.setattr(subprocess, "Popen", lack_of_memory)
        with pytest.raises(MemoryError):
            sandbox.restart()
    monkeypatch.setattr("autograder.grading.sandbox.sandbox.remove_tree", lack_of_memory)
    with pytest.raises(MemoryError):
        sandbox.close()
    assert not sandbox.folder.exists()


def lack_of_memory(*arguments, **options):
    raise MemoryError


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_umask_of_whoever_grades_does_not_matter(umask):
    before = os.umask(umask)
    try:
        with Sandbox(assignment()) as sandbox:
            result = grade(sandbox)
    finally:
        os.umask(before)
    assert result.score == result.maximum


@needs_root
def test_a_scratch_folder_that_others_cannot_enter_is_refused(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(closed))
    with pytest.raises(CourseError, match="Set TMPDIR to a folder that every user can enter"):
        Sandbox(assignment())


def test_children_must_not_read_tests_solutions_and_the_salt(sandbox, tmp_path, monkeypatch):
    (tmp_path / "semester").touch()
    monkeypatch.setattr(grading, "FILES", (tmp_path / "semester", tmp_path / "absent"))
    admit, asked = sandbox.admit, []

    def listen(packages, private):
        asked.extend(private)
        return admit(packages, private)

    monkeypatch.setattr(sandbox, "admit", listen)
    grade(sandbox)
    assert asked == [ROOT / "tests", ROOT / "solutions", tmp_path / "semester"]


def test_a_hang_leaves_time_for_other_exercises_and_for_what_else_its_own_has(sandbox, monkeypatch):
    monkeypatch.setattr("autograder.grading.sandbox.isolated_face.TIMEOUTS", 1)
    monkeypatch.setattr("autograder.grading.sandbox.isolated_face.SHORTENED_SECONDS", 0.25)
    hang = submission(
        "import time\n"
        "def conv_parameters(*a, **k):\n    time.sleep(60)\n"
        "def linear_parameters(n_in, n_out, bias=True):\n    return (n_in + bias) * n_out\n"
    )
    wanted = read_graded_tests(ROOT / "tests" / "a1_convolution")
    names = tuple(test.name for test in wanted if test.exercise in ("1.1", "1.7"))
    slow = assignment(test_seconds=0.5)
    sandbox.assignment = slow
    settings = Settings(semester=SEMESTER, only=names)
    result = grading.grade_in(sandbox, grading.new_result(slow, hang, settings), hang, settings)
    own = {o.test.name: o for o in result.all_outcomes if o.test.exercise == "1.7"}
    assert own.pop("test_linear_parameters_counts_weights_and_biases").passed
    said = sorted(outcome.explanation.sentence for outcome in own.values())
    assert said == [f"Your code took longer than {n} seconds." for n in (1, 2)]
    others = [o.explanation.sentence for o in result.all_outcomes if o.test.exercise == "1.1"]
    assert all("convolution.py doesn't define" in sentence for sentence in others)
