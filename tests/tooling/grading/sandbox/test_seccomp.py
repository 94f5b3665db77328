"""Tests of the seccomp filter: dangerous system calls are blocked, however they are made."""

import os
import signal
import struct

import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import landlock, seccomp
from common.student_text import plain
from tests.tooling.grading_fixtures import admitted
from tests.tooling.weakened_sandbox import NO_FILTER, NO_OWN_MOUNTS, needs_root

pytestmark = needs_root


NEVER_NEEDED = sorted({**seccomp.DENIED, **seccomp.DRIVERS})
# An error that no call gives by itself. Privileged ones give EPERM without a filter, too.
OTHER_ERROR = "seccomp.RETURN_ERROR = 0x00050000 | seccomp.errno.EXFULL\n"


def answer(student, name):
    """What becomes of a call with arguments that mean nothing."""
    arguments = [0] * 6 if name in ("execve", "execveat", "vhangup") else [-1] * 5
    return student.call(seccomp.number_of(name), *arguments)


@pytest.mark.parametrize("name", NEVER_NEEDED)
def test_a_call_that_is_never_needed_is_not_permitted(student, name):
    assert answer(student, name) == "EPERM"


def test_it_is_the_filter_that_refuses_what_is_never_needed(without):
    with without(OTHER_ERROR) as (student, _, _):
        answers = {name: plain(answer(student, name)) for name in NEVER_NEEDED}
    assert answers == dict.fromkeys(NEVER_NEEDED, "EXFULL")


def test_new_namespaces_cannot_be_made_by_clone_either(student):
    column = seccomp.PROCESSORS[os.uname().machine][1]
    for flag in (0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert student.call(seccomp.CLONE[column], flag | signal.SIGCHLD, 0, 0, 0, 0) == "EPERM"
    assert student.call(seccomp.CLONE3[column], 0, 0) == "ENOSYS"
    assert student.thread() == [1]


def test_a_pair_of_sockets_talks_to_itself_and_gets_no_address(student):
    assert student.talk_to_itself() == b"hello"
    assert student.send_away("\0hostile") == student.send_away("/dev/log") == "EPERM"


def test_other_processors_and_other_numbers_get_nowhere(student):
    assert student.call(0x40000000 | 39) == "EPERM"  # getpid by x32's number
    words = struct.unpack("=HBBI", seccomp.program()[:8])
    assert words == (seccomp.LOAD, 0, 0, seccomp.ARCHITECTURE_OFFSET)
    assert struct.pack("=HBBI", seccomp.RETURN, 0, 0, seccomp.RETURN_KILL) in seccomp.program()


def test_locks_leases_and_notifications_of_files_are_not_permitted(student):
    column = seccomp.PROCESSORS[os.uname().machine][1]
    for command in range(5, 1040):
        if command not in seccomp.FCNTL_COMMANDS:
            assert student.call(seccomp.FCNTL[column], 1, command, 0) == "EPERM", command
    assert student.call(seccomp.FCNTL[column], 1, 3, 0) == "done"


def test_nobody_waits_where_another_submission_could_wake_it(student):
    """Yet threads and processes of one child wait for each other as ever."""
    column = seccomp.PROCESSORS[os.uname().machine][1]
    for operation in seccomp.SHARED_WAITS:
        assert student.call(seccomp.FUTEX[column], 0, operation, 0, 0) == "EAGAIN"
    assert student.joined_threads() == [1, 1]


def test_without_the_filter_messages_through_files_are_reported(without):
    with without(NO_FILTER) as (_, reported, _):
        assert reported["no messages through shared files"] == "not protected"


def test_without_the_filter_the_result_says_so(without):
    with without(NO_FILTER) as (student, reported, _):
        assert reported["dangerous system calls are blocked"] == "not protected"
        assert reported["no network"] == f"network namespace, Landlock {landlock.version()}"
        assert student.call(seccomp.number_of("keyctl"), -1, -1, -1, -1, -1) != "EPERM"


def test_without_a_uid_of_its_own_a_child_changes_no_modes_owners_or_times(
    packages, without, tmp_path, monkeypatch
):
    """Landlock leaves that to whoever owns the files, which is then the child too."""
    monkeypatch.setattr("autograder.grading.sandbox.sandbox.free_slot", lambda folder: None)
    with admitted(packages, [tmp_path]) as (made, defenses):
        assert all(defense.holds for defense in defenses if defense.required)
        with IsolatedFace(made).open("1.1") as student:
            for name in seccomp.ATTRIBUTES:
                assert student.call(seccomp.number_of(name), *[-1] * 5) == "EPERM", name
            assert student.set_mode(str(tmp_path), 0o777) == "EPERM"
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    with without(NO_FILTER, NO_OWN_MOUNTS, private=[tmp_path]) as (student, reported, _):
        assert reported["results can't be written"] == "not protected"
        assert reported["the submission can't be changed"] == "not protected"
        assert student.set_mode(str(tmp_path), 0o777) == "done"
