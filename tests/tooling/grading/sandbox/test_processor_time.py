"""Processor time is limited for all processes of a submission together."""

import os
import subprocess
import time

import msgspec
import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import cgroups
from autograder.grading.sandbox.kernel.process_tree_time import ProcessTreeTime
from common.errors import ChildFailure
from tests.tooling.grading_fixtures import admitted, assignment
from tests.tooling.wait_until import wait_until
from tests.tooling.weakened_sandbox import NO_GROUPS, NO_TREES, weakened

ALLOWED = 1.0
LONG = 30


@pytest.mark.parametrize("patches", [(NO_GROUPS,), (NO_GROUPS, NO_TREES)])
def test_processes_that_work_at_once_share_the_time_of_one_test(patches, packages, tmp_path):
    """None of them has a second of its own; together they have more than three."""
    limits = msgspec.structs.replace(assignment(test_seconds=LONG).limits, cpu_seconds=ALLOWED)
    with weakened(tmp_path, *patches), admitted(packages) as (made, _):
        start = time.monotonic()
        with made.child(limits=limits) as child:
            with pytest.raises(ChildFailure, match="processes together used more than the 1 sec"):
                child.student(["misbehaving"]).spin(12, LONG)
            assert child.timed_out
        assert time.monotonic() - start < LONG
        with IsolatedFace(made).open("1.1") as student:
            assert student.spin(1, 0.1) == 1


@pytest.mark.skipif("cpu" not in cgroups.own_groups(), reason="no cgroup for processors here")
def test_all_processes_together_have_little_more_than_one_processor(packages):
    with admitted(packages) as (made, _), made.child() as child:
        used = ProcessTreeTime(made.server.process.pid)
        student, start = child.student(["misbehaving"]), time.monotonic()
        assert student.spin(8, 2.0) == 8
        wall = time.monotonic() - start
        assert 0.3 < used.seconds() < wall * cgroups.CPU_QUOTA / cgroups.CPU_PERIOD + 0.3


def test_the_time_of_a_process_that_has_ended_still_counts():
    used = ProcessTreeTime(os.getpid())
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        wait_until(lambda: used.seconds() > 0.1)
        busy.kill()
    before = used.seconds()
    assert before > 0.1 and used.seconds() == before
