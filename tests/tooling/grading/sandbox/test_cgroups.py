"""Tests of limits on memory and processes of all that a child starts: cgroups and rlimits."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from autograder.grading.sandbox import probe
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import cgroups, rlimits
from autograder.grading.sandbox.kernel.rlimits import PROCESSES
from common.errors import ChildFailure
from tests.tooling.grading_fixtures import admitted
from tests.tooling.weakened_sandbox import NO_GROUPS, NO_LIMITS, needs_root, said

pytestmark = needs_root


@pytest.mark.skipif("memory" not in cgroups.own_groups(), reason="no cgroup for memory here")
def test_processes_share_one_bound_on_memory(packages, without):
    """Each takes less than one may; together they take more."""
    with admitted(packages) as (made, defenses):
        assert said(defenses)["memory"] == "512 MB, for all its processes"
        with IsolatedFace(made).open("1.1") as student:
            try:
                assert 0 in student.take_in_processes(3, 400)
            except ChildFailure as error:  # which of them the system kills is its affair
                assert "process died" in str(error)
        assert made.server.process.poll() is None  # the fork server lives
        with IsolatedFace(made).open("1.1") as student:
            assert student.take_in_processes(1, 100) == [1]
    with without(NO_GROUPS) as (student, reported, _):
        assert reported["memory"] == "512 MB, for each process"
        assert student.take_in_processes(3, 400) == [1, 1, 1]


@pytest.mark.skipif("pids" not in cgroups.own_groups(), reason="no cgroup for processes here")
def test_processes_are_bounded_by_either(without):
    with without(NO_LIMITS) as (student, reported, _):
        assert reported["memory"] == "not protected"
        assert PROCESSES < student.breed(200) <= 2 * PROCESSES
    with without(NO_GROUPS) as (student, reported, _):
        assert reported["processes"] == f"{PROCESSES} by uid"
        assert student.breed(200) < PROCESSES
    with without(NO_GROUPS, NO_LIMITS) as (student, reported, _):
        assert reported["processes"] == "not protected"
        assert student.breed(100) == 100


def test_a_child_without_a_user_of_its_own_may_have_some_processes_more_than_there_are():
    """As when a TA grades without root, and has other things running."""
    others = [subprocess.Popen(["sleep", "60"], user=61_998) for _ in range(5)]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(61_998, 61_998, 61_998)
            tasks = rlimits.tasks_of_this_user()  # before the threads of the probe, which end later
            rlimits.set_limits(1024, 10, tasks + PROCESSES)
            os.write(writing, bytes([probe.processes_are_bounded(), tasks]))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    for other in others:
        other.kill()
        other.wait()
    assert os.read(reading, 2) == bytes([True, len(others) + 1])
    os.close(reading)
    os.close(writing)


def test_control_groups_are_removed(packages):
    with admitted(packages) as (made, _):
        groups = [Path(folder) for folder in made.server.mechanisms.cgroups.values()]
        assert groups and all(group.is_dir() for group in groups)
    assert not any(group.exists() for group in groups)
    with admitted(packages) as (made, _):
        os.kill(made.server.process.pid, signal.SIGKILL)
        made.server.process.wait()
    assert not any(group.exists() for group in groups)


@pytest.mark.skipif("pids" not in cgroups.own_groups(), reason="no cgroup for processes here")
def test_a_group_is_removed_once_the_last_process_in_it_has_died():
    group = cgroups.own_groups()["pids"] / f"conv2gpt-test-{os.getpid()}"
    group.mkdir()
    lasting = subprocess.Popen(["sleep", "0.5"])
    (group / "cgroup.procs").write_text(str(lasting.pid))
    cgroups.remove_groups([group])
    assert group.exists()
    cgroups.remove_groups([group], patience=10)
    assert not group.exists()
    lasting.wait()


def test_groups_of_both_versions_are_found_and_bounded(tmp_path):
    (tmp_path / "cgroup").write_text("4:memory:/docker/abc/x\n0::/docker/abc/x\n")
    first, second = tmp_path / "v1", tmp_path / "v2"
    for folder in (first / "x" / "slot", second / "x" / "slot"):
        folder.mkdir(parents=True)
    (second / "cgroup.controllers").write_text("cpu pids\n")
    (second / "x" / "cgroup.subtree_control").write_text("\n")
    (tmp_path / "mountinfo").write_text(
        f"30 1 0:1 /docker/abc {first} rw shared:1 - cgroup cgroup rw,memory\n"
        f"31 1 0:2 /docker/abc {second} rw - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    own = cgroups.own_groups(tmp_path)
    assert own == {"memory": first / "x", "pids": second / "x", "cpu": second / "x"}
    (first / "x" / "slot" / "memory.limit_in_bytes").touch()
    (second / "x" / "slot" / "pids.max").touch()
    (second / "x" / "slot" / "cpu.max").touch()
    group = cgroups.Group("slot", 100, own)
    assert set(group.folders) == {"memory", "pids", "cpu"}
    assert (first / "x" / "slot" / "memory.limit_in_bytes").read_text() == str(356 * 2**20)
    assert (second / "x" / "slot" / "pids.max").read_text() == str(2 * PROCESSES)
    assert (second / "x" / "slot" / "cpu.max").read_text() == "125000 100000"
    assert (second / "x" / "cgroup.subtree_control").read_text() in ("+pids", "+cpu")
    for folder in (first, second):
        assert (folder / "x" / "slot" / "cgroup.procs").read_text() == str(os.getpid())


def test_a_group_that_bounds_nothing_is_not_used(tmp_path):
    (tmp_path / "x").mkdir()
    group = cgroups.Group("slot", 100, {"memory": tmp_path / "x", "pids": tmp_path / "absent"})
    assert group.folders == {} and list((tmp_path / "x").iterdir()) == [
        tmp_path / "x" / "cgroup.procs"
    ]
