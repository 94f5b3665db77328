"""Processor time is limited for all processes of a submission together."""

import os
import subprocess
import time
from contextlib import ExitStack

import pytest

from autograder.grading.sandbox import conversation
from autograder.grading.sandbox.isolated_face import IsolatedFace, in_words, used_most
from autograder.grading.sandbox.kernel import cgroups
from autograder.grading.sandbox.kernel.group_time import GroupTime, time_file
from autograder.grading.sandbox.kernel.process_tree_time import ProcessTreeTime
from common.errors import ChildFailure
from tests.tooling.grading_fixtures import admitted, assignment
from tests.tooling.wait_until import wait_until
from tests.tooling.weakened_sandbox import NO_GROUPS, NO_TREES, weakened

ALLOWED = 1.0
LONG = 60
USED_UP = "Your code used more than the 1 seconds of processor time that a test may take."
WEAKENED = {"whole": (), "without groups": (NO_GROUPS,), "bare": (NO_GROUPS, NO_TREES)}
LIMITS = assignment(test_seconds=ALLOWED, wall_seconds=LONG).limits
counts_time = pytest.mark.skipif(
    not {"cpu", "cpuacct"} & {*cgroups.own_groups()}, reason="no cgroup counts processor time here"
)


@pytest.fixture(scope="module", params=WEAKENED.values(), ids=WEAKENED)
def any_sandbox(request, tmp_path_factory, packages):
    """Sandboxes that count processor time in one way or the other."""
    with ExitStack() as opened:
        # Sandboxes of other tests start while this one lasts: they must not be weak.
        with weakened(tmp_path_factory.mktemp("weak"), *request.param):
            made, _ = opened.enter_context(admitted(packages))
        yield made


def ended(child, call):
    """Whether a call ended because too much processor time was used, before it ended itself."""
    start = time.monotonic()
    with pytest.raises(ChildFailure) as failure:
        call(child.student(["misbehaving"]))
    assert child.timed_out and not child.by_clock
    return str(failure.value) == USED_UP and time.monotonic() - start < LONG


def test_processes_that_work_at_once_share_the_time_of_one_test(any_sandbox):
    """None of them has a second of its own; together they have more."""
    with any_sandbox.child(limits=LIMITS) as child:
        assert ended(child, lambda student: student.spin(12, LONG))
    with IsolatedFace(any_sandbox).open("1.1") as student:
        assert student.spin(1, 0.1) == 1


def test_processes_that_work_one_after_another_share_the_time_of_one_test(any_sandbox):
    """Most of them live and die between two looks, and their parent waits for each."""
    with any_sandbox.child(limits=LIMITS) as child:
        assert ended(child, lambda student: student.relay(300, 0.05))


@counts_time
def test_processes_that_nobody_waits_for_share_the_time_of_one_test(sandbox):
    with sandbox.child(limits=LIMITS) as child:
        assert ended(child, lambda student: student.relay(300, 0.05, waits=False))


def test_calls_that_are_short_share_the_time_of_one_test(any_sandbox):
    """None of them is waited for as long as it takes until its processes are looked at."""
    with any_sandbox.child(limits=LIMITS) as child:
        assert ended(child, lambda student: [student.relay(2, 0.05) for _ in range(100)])


def test_an_endless_loop_ends_by_what_it_computes_and_no_later(sandbox):
    with sandbox.child(limits=LIMITS) as child:
        assert ended(child, lambda student: student.spin(1, LONG))
        assert ALLOWED < child.computed < ALLOWED + 0.9  # the kernel would end it a second later


def test_a_wait_costs_no_points(sandbox):
    """Whether code waits by itself or for a busy machine: it computes for 0.6 of its second."""
    with sandbox.child(limits=LIMITS) as child:
        student = child.student(["misbehaving"])
        student.sleep(ALLOWED)
        assert student.relay(6, 0.1) == 6
        assert child.seconds > ALLOWED > child.computed > 0.5


def test_after_two_tests_that_slept_until_their_end_others_may_not_sleep_as_long(
    sandbox, monkeypatch
):
    """Whatever their exercise is. Code that computes now and then waits for a busy machine."""
    monkeypatch.setattr(conversation, "IDLE_LOOKS", 4)
    monkeypatch.setattr(
        sandbox, "assignment", assignment(test_seconds=LONG, wall_seconds=ALLOWED + 1)
    )
    face = IsolatedFace(sandbox)

    def why_ended(exercise):
        with face.open(exercise) as student, pytest.raises(ChildFailure) as failure:
            student.sleep(LONG)
        return str(failure.value)

    assert [why_ended(exercise) for exercise in ("1.1", "1.2", "1.3", "1.4")] == [
        *["Your code took longer than 2 seconds."] * 2,
        *[
            "Your code waited for 1 seconds without computing. Tests before this one waited until "
            "their time was over, so it had less."
        ]
        * 2,
    ]
    with face.open("1.5") as student:
        for _ in range(2):
            assert student.spin(1, 0.05) == 1
            student.sleep(0.7)


def test_time_before_a_new_limit_does_not_count(sandbox):
    with sandbox.child(limits=LIMITS) as child:
        student = child.student(["misbehaving"])
        for _ in range(3):
            child.limit(LIMITS)
            assert student.relay(6, 0.1) == 6


def test_all_that_a_test_has_computed_is_known_once_it_is_over(any_sandbox):
    """As is what its grandchildren have, and what is killed with it."""
    face = IsolatedFace(any_sandbox)
    with face.open("1.1", "relays") as student:
        student.relay(3, 0.2)
    with face.open("1.1", "idles") as student:
        student.sleep(0.5)
    face.note_last()
    assert 0.55 < face.computed["relays"] < 1.2 and face.computed["idles"] < 0.3
    assert face.elapsed["idles"] > 0.5


def test_the_tests_that_used_more_than_half_of_the_time_are_named():
    assert used_most({"a": 1.0, "b": 5.0, "c": 1.0}) == ["b"]
    assert used_most({"a": 3.0, "b": 4.0, "c": 2.0}) == ["b", "a"]
    assert in_words(["a"]) == "'a'" and in_words(["b", "a"]) == "'b' and 'a'"
    assert in_words([*"abcde"]) == "'a', 'b', 'c' and 2 more"


def test_groups_of_both_versions_count_processor_time(tmp_path):
    first, second = tmp_path / "v1", tmp_path / "v2"
    for folder in (first, second, tmp_path / "none"):
        folder.mkdir()
    (first / "cpu.stat").write_text("nr_periods 0\nnr_throttled 0\n")
    (first / "cpuacct.usage").write_text("1500000000\n")
    (second / "cpu.stat").write_text("usage_usec 2000000\nuser_usec 1\nsystem_usec 3\n")
    assert time_file([tmp_path / "none", tmp_path / "gone"]) is None
    files = [time_file([tmp_path / "none", folder]) for folder in (first, second)]
    used = GroupTime(files)
    assert used.seconds() == 0
    files[0].write_text("1750000000\n")
    files[1].write_text("usage_usec 3000000\n")
    assert used.seconds() == 1.25
    files[0].unlink()
    assert used.seconds() == 1.25


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
