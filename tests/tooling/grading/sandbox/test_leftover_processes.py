"""Tests that nothing outlives a test or a killed judge: no process, folder or cgroup."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.proving.process_table import children_of, is_alive, process_table
from common.assignment import ROOT
from tests.tooling.grading_fixtures import REFERENCE, admitted
from tests.tooling.scratch_copies import clean_environment
from tests.tooling.wait_until import wait_until
from tests.tooling.weakened_sandbox import (
    NO_DEATH_SIGNAL,
    NO_FILTER,
    NO_TREES,
    needs_root,
    weakened,
)

pytestmark = needs_root


def processes_of(uid):
    """The processes of a user, but for those that are dead and not yet buried."""
    return [one.pid for one in process_table().values() if one.uid == uid and not one.zombie]


def check_that_nothing_is_left(sandbox):
    """After tests that start as many processes as they may, in sessions of their own too."""
    for deed, *most in (("leave_processes",), ("breed", 500)):
        with IsolatedFace(sandbox).open("1.1") as student:
            assert 1 <= getattr(student, deed)(*most) < 100
            wait_until(lambda: len(processes_of(sandbox.slot.uid)) >= 3)
        sandbox.settle()
        assert processes_of(sandbox.slot.uid) == []


def test_nothing_outlives_a_test(sandbox):
    check_that_nothing_is_left(sandbox)


def test_without_pid_namespaces_what_is_left_is_swept_away(tmp_path, packages):
    with weakened(tmp_path, NO_TREES), admitted(packages) as (made, defenses):
        assert "nothing outlives a test: sweep" in map(str, defenses)
        check_that_nothing_is_left(made)


@pytest.mark.parametrize("kind", ["the same server", "another server"])
def test_nothing_of_a_test_is_left_when_the_next_child_starts(sandbox, kind):
    with IsolatedFace(sandbox).open("1.1") as student:
        student.leave_processes()
        wait_until(lambda: len(processes_of(sandbox.slot.uid)) >= 3)
        left = processes_of(sandbox.slot.uid)
        server = sandbox.server.process.pid
        os.kill(server, signal.SIGSTOP)  # a busy machine
        threading.Timer(0.5, os.kill, (server, signal.SIGCONT)).start()
    limits = sandbox.assignment.limits
    following = sandbox.child() if kind == "the same server" else sandbox.lab_child(limits)
    with following:
        assert not {*left} & {*processes_of(sandbox.slot.uid)}


@pytest.mark.parametrize("patches", [(), (NO_DEATH_SIGNAL, NO_FILTER)], ids=["as it is", "without"])
def test_a_fork_server_that_is_killed_takes_its_child_along(tmp_path, packages, patches):
    with weakened(tmp_path, *patches), admitted(packages) as (made, _):
        with pytest.raises(Exception, match="fork server"), IsolatedFace(made).open("1.1"):
            (child,) = children_of(made.server.process.pid)
            os.kill(made.server.process.pid, signal.SIGKILL)
            made.server.process.wait()
            time.sleep(0.3)
            assert is_alive(child) == bool(patches)
        if patches:
            os.kill(child, signal.SIGKILL)


def test_a_child_cannot_choose_to_outlive_the_fork_server(student):
    assert student.unset_death_signal() == (-1, errno.EPERM)


def test_a_judge_that_is_killed_leaves_nothing(tmp_path, packages):
    """Not a process, not a folder, not a control group."""
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from tests.tooling.grading_fixtures import admitted
from autograder.grading.sandbox.isolated_face import IsolatedFace
with admitted({{"a1_convolution": Path({str(packages["a1_convolution"])!r})}}) as (made, _):
    with IsolatedFace(made).open("1.1") as student:
        student.thread()
        server = made.server
        print(server.process.pid, made.folder, *server.mechanisms.cgroups.values(), flush=True)
        student.sleep(60)
"""
    judge = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    server, *places = judge.stdout.readline().split()
    (child,) = children_of(server)
    judge.kill()
    judge.wait()
    wait_until(lambda: not is_alive(server) and not is_alive(child), 10)
    assert places and not any(Path(place).exists() for place in places)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_leaves_nothing(number):
    """Ctrl-C on a terminal, or `timeout`, which ends the group; no traceback tells of it."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scratch.chmod(0o711)
        grading = subprocess.Popen(
            [sys.executable, "-m", "autograder", "grade", "a1", REFERENCE],
            cwd=ROOT,
            env={**clean_environment(), "TMPDIR": name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        wait_until(lambda: [*scratch.glob("conv2gpt-*/packages/*/*.py")], 120)
        time.sleep(1)
        os.killpg(grading.pid, number)
        _, reported = grading.communicate(timeout=60)
        assert "Traceback" not in reported
        if number == signal.SIGINT:
            assert (grading.returncode, reported.strip()) == (2, "Stopped.")
        wait_until(lambda: [*scratch.iterdir()] == [])


@pytest.mark.parametrize("moment", ["make_folder", "configure_servers"])
def test_a_judge_that_is_killed_before_it_grades_leaves_nothing(moment):
    """Right after its folder is made, and while the fork server loads its libraries."""
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from autograder.grading.sandbox.sandbox import Sandbox
from tests.tooling.grading_fixtures import assignment
class Doomed(Sandbox):
    def {moment}(self):
        super().{moment}()
        print(self.server.process.pid, self.folder, self.folder.is_dir(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
Doomed(assignment())
"""
    judge = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False
    )
    server, folder, made = judge.stdout.split()
    assert judge.returncode == -signal.SIGKILL and made == "True"
    wait_until(lambda: not is_alive(server))
    assert not Path(folder).exists()
