"""Tests of the process table."""

import os
import signal
import subprocess
import sys

import pytest

from autograder.proving.process_table import (
    address_space_bytes,
    children_of,
    command_line,
    descendants_of,
    descendants_running,
    is_alive,
    process_table,
    read_process,
    resident_bytes,
)

MARK = "a-word-that-no-other-process-has"
FORKS = "import os, time; os.write(1, b'%d\\n' % os.fork()); time.sleep(60)"


@pytest.fixture
def family():
    """A process and its child."""
    with subprocess.Popen([sys.executable, "-c", FORKS, MARK], stdout=subprocess.PIPE) as parent:
        child = max(int(parent.stdout.readline()) for _ in range(2))  # the child itself prints 0
        yield parent, child
        os.kill(child, signal.SIGKILL)
        parent.kill()


def test_children_and_descendants(family):
    parent, child = family
    assert children_of(parent.pid) == [child]
    assert {parent.pid, child} <= {*descendants_of(os.getpid(), process_table())}
    assert {*descendants_running(os.getpid(), MARK)} == {parent.pid, child}
    assert MARK in command_line(parent.pid)


def test_what_is_known_of_a_process(family):
    parent, child = family
    found = read_process(child)
    assert (found.pid, found.parent, found.uid) == (child, parent.pid, os.getuid())
    assert "python" in found.name and not found.zombie
    assert address_space_bytes(child) > resident_bytes(child) > 0


def test_a_zombie_is_not_alive_and_a_process_that_is_gone_has_nothing(family):
    parent, _ = family
    parent.kill()
    os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)
    assert read_process(parent.pid).zombie and not is_alive(parent.pid)
    parent.wait()
    assert read_process(parent.pid) is None and not is_alive(parent.pid)
    assert command_line(parent.pid) == "" and children_of(parent.pid) == []
