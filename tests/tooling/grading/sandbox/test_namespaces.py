"""Tests of namespaces: a child's own network, shared memory and process tree."""

import os
import subprocess

from autograder.grading.sandbox.kernel import namespaces
from autograder.grading.sandbox.kernel.confine import change_uid
from tests.tooling.weakened_sandbox import (
    NO_FILTER,
    NO_LANDLOCK,
    NO_OWN_IPC,
    NO_OWN_NETWORK,
    needs_root,
)

pytestmark = needs_root


def test_a_network_namespace_alone_denies_tcp_and_abstract_sockets(without, ports):
    with without(NO_FILTER, NO_LANDLOCK) as (student, reported, _):
        assert reported["no network"] == "network namespace"
        assert student.connect("AF_INET", ports[0]) in ("ENETUNREACH", "ECONNREFUSED")
        assert student.connect_abstract(ports[1]) == "ECONNREFUSED"


def test_without_any_of_them_the_network_is_reported_to_be_open(without, ports):
    with without(NO_FILTER, NO_LANDLOCK, NO_OWN_NETWORK) as (student, reported, _):
        assert reported["no network"] == "not protected"
        assert student.connect("AF_INET", ports[0]) == student.connect_abstract(ports[1]) == "done"


def test_shared_memory_stays_in_its_namespace_even_without_the_filter(without):
    with without(NO_FILTER) as (student, *_):
        assert student.shared_segment(0x636F6E76) >= 0
        assert "0x636f6e76" not in subprocess.check_output(["ipcs", "-m"], text=True)


def test_without_either_shared_memory_is_the_machines(without):
    try:
        with without(NO_FILTER, NO_OWN_IPC) as (student, *_):
            assert student.shared_segment(0x636F6E76) >= 0
            assert "0x636f6e76" in subprocess.check_output(["ipcs", "-m"], text=True)
    finally:
        subprocess.run(["ipcrm", "-M", "0x636f6e76"], check=False, capture_output=True)


def test_who_may_leave_the_first_pid_namespace_and_not_return_forks_without_one():
    """As when a TA grades without root, where user namespaces are allowed."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            change_uid(65_534)
            namespaces.become_owner()
            trees = namespaces.ProcessTrees()
            for _ in range(3):
                child = trees.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)
                os.write(writing, b"x")
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    os.close(writing)
    assert os.read(reading, 9) == b"xxx"
    os.close(reading)
