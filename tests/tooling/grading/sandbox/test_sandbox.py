"""Tests that a child can compute, and little else."""

import os
import socket
import time
from pathlib import Path

import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.proving.process_table import children_of, is_alive
from common.assignment import ROOT
from common.determinism import SAME_ARITHMETIC
from common.errors import ChildFailure
from common.student_text import plain
from tests.tooling.grading_fixtures import admitted
from tests.tooling.wait_until import wait_until
from tests.tooling.weakened_sandbox import needs_root

pytestmark = needs_root
DENIED = {"EACCES", "EPERM"}


def test_it_is_another_user_in_a_clean_place(student, sandbox):
    uids, gids, groups, place, environment = student.me()
    uid = sandbox.slot.uid
    assert (uids, gids, groups) == ((uid,) * 3, (uid,) * 3, [])
    assert environment.pop("HOME") == environment.pop("TMPDIR") == place
    assert set(environment) == {
        *SAME_ARITHMETIC,
        *("PATH", "LANG", "PYTHONDONTWRITEBYTECODE"),
        *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
    }
    assert {*student.become_root()} <= DENIED


def test_what_the_fork_server_was_reported_is_not_for_children(student):
    ours, original = student.arguments()
    assert len(ours) == len(original) == 1


@pytest.mark.parametrize("server", ["server", "lab_server"])
def test_nothing_that_tests_use_is_in_a_childs_memory(sandbox, server):
    with sandbox.started(
        getattr(sandbox, server), sandbox.plan([], sandbox.assignment.limits)
    ) as c:
        loaded = c.student(sandbox.assignment.modules).modules()
    assert "numpy" in loaded
    forbidden = {"pytest", "_pytest", "tests", "solutions", "gradescope_utils"}
    assert not forbidden & {name.partition(".")[0] for name in loaded}
    assert not {
        "common.testing.fixtures",
        "common.testing.graded_tests",
        "common.testing.stored_answers",
    } & {*loaded}


def test_only_the_channel_and_ways_to_libraries_are_open(student):
    found = {number: plain(target) for number, target in student.descriptors().items()}
    kinds = [found.pop(number) for number in (0, 1, 2)]
    assert kinds[0] == "/dev/null" and kinds[1] == kinds[2] and kinds[1].startswith("pipe:")
    channel = [target for target in found.values() if target.startswith("socket:")]
    others = [target for target in found.values() if not target.startswith("socket:")]
    assert len(channel) == 1
    for target in others:  # no set of Landlock rules; "/" is a folder without anything above it
        assert Path(target).is_dir(), target
        assert target == "/" or not (ROOT / "tests").is_relative_to(target), target


def test_there_is_no_network(student):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for family in ("AF_INET", "AF_INET6", "AF_UNIX"):
            assert student.connect(family, port) in DENIED


def test_no_other_program_runs(student):
    assert {*student.run_program(), student.spawn()} <= DENIED


def test_the_judge_can_be_neither_signalled_nor_traced(student, sandbox):
    for pid in (os.getpid(), sandbox.server.process.pid):
        assert set(student.kill(pid)) <= {*DENIED, "ESRCH"}
        assert student.trace(pid) == -1


def test_parts_of_pythons_library_can_be_imported_late(student):
    assert student.late_imports() == "0.333"


def test_libraries_are_reported_a_childs_own_forks(student):
    assert student.threads_in_a_fork() == 1


def test_where_memory_runs_out_the_child_dies_first(student, sandbox):
    assert student.thread() == [1]
    server = sandbox.server.process.pid
    (child,) = children_of(server)
    scores = [Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in (child, server)]
    assert scores[0] == "1000" != scores[1]


def test_two_graders_at_once_have_different_users(sandbox, packages):
    with admitted(packages) as (other, _):
        assert other.slot.uid != sandbox.slot.uid
        uid, folder = other.slot.uid, other.folder
        with IsolatedFace(other).open("1.1") as student:
            assert student.me()[0][0] == uid
    assert not folder.exists()
    with admitted(packages) as (third, _):
        assert third.slot.uid == uid


def test_a_child_that_has_failed_stays_failed_and_costs_no_more_time(sandbox):
    with IsolatedFace(sandbox).open("1.1") as student:
        (child,) = children_of(sandbox.server.process.pid)
        os.kill(child, 9)
        wait_until(lambda: not is_alive(child))  # each question comes after its end
        start = time.monotonic()
        for _ in range(3):
            with pytest.raises(ChildFailure, match="process died"):
                student.me()
        # Each call that waited for an answer would take its whole time.
        assert time.monotonic() - start < sandbox.assignment.limits.test_seconds
