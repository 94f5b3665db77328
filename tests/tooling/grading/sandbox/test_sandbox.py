"""A child can compute, and little else; where a defence is missing, the result says so."""

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from autograder.grading.sandbox.defences import check_floor
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import landlock
from autograder.grading.sandbox.probe_targets import files_among
from autograder.grading.sandbox.wire.frames import ChannelTimeout, send_frame
from common.assignment import ROOT
from common.determinism import SAME_ARITHMETIC
from common.errors import CourseError, GraderFault
from common.testing.feedback.failure import ChildFailure
from tests.tooling.grading_fixtures import admitted, write_package
from tests.tooling.scratch_copies import open_to_others
from tests.tooling.weakened_sandbox import NO_LANDLOCK, NO_TREES, weakened

# Numbers and other uids are what only root can give; the rest holds for everybody.
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a child's own uid needs root")
NO_PROCESS = 2**22  # above the highest pid that Linux gives

CODE = """
import ctypes, os, signal, socket, sys, threading, time


def attempt(action, *args):
    try:
        action(*args)
    except OSError as error:
        return type(error).__name__
    return "done"


def modules():
    return sorted(sys.modules)


def read(path):
    return attempt(lambda: open(path, "rb").read(1))


def write(path):
    return attempt(lambda: open(path, "w").close())


def listing(path):
    return attempt(os.listdir, path)


def network(family, port):
    def connect():
        kind = getattr(socket, family)
        with socket.socket(kind) as sock:
            sock.settimeout(0.5)
            sock.connect(("::1", port) if family == "AF_INET6" else ("127.0.0.1", port))
    return attempt(connect)


def run_program():
    return [attempt(os.execv, path, ["x"]) for path in ("/bin/true", "/bin/sh", sys.executable)]


def spawn():
    import subprocess
    return attempt(subprocess.run, ["/bin/true"])


def kill(pid):
    return [attempt(os.kill, pid, number) for number in (0, signal.SIGTERM, signal.SIGKILL)]


def become_root():
    return [attempt(os.setuid, 0), attempt(os.setgid, 0), attempt(os.setgroups, [0])]


def trace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.ptrace(16, pid, 0, 0)


def me():
    return os.getresuid(), os.getresgid(), os.getgroups(), os.getcwd(), dict(os.environ)


def arguments():
    return sys.argv, sys.orig_argv


def descriptors():
    found = {}
    for number in range(256):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            pass
    return found


def late_imports():
    import colorsys, csv, decimal, fractions, sqlite3, wave, zipfile
    return str(decimal.Decimal(1) / 3)[:5]


def keep_file():
    with open("notes.txt", "w") as stream:
        stream.write("x")
    return os.getcwd()


def what_is_at_home():
    return os.listdir(), os.environ["HOME"], os.environ["TMPDIR"]


def fill(megabytes=64):
    return attempt(lambda: open("big", "wb").write(bytes(megabytes * 2**20)))


def leave_processes():
    for own_session in (False, True):
        if os.fork() == 0:
            if own_session:
                os.setsid()
                if os.fork():
                    os._exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1)
    threading.Thread(target=time.sleep, args=(60,)).start()
    return 1


def threads_in_a_fork():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, bytes([threading.active_count()]))
        os._exit(0)
    return os.read(reading, 1)[0]


def breed():
    count = 0
    try:
        while count < 500:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            count += 1
    except OSError:
        pass
    return count
"""


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """Files that a child must not reach, in a place that any user may enter."""
    folder = tmp_path_factory.mktemp("private")
    open_to_others(folder)
    for name in ("results.json", "submission_metadata.json"):
        (folder / name).write_text("{}")
        (folder / name).chmod(0o666)
    folder.chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def sandbox_and_defences(tmp_path_factory, private):
    packages = write_package(tmp_path_factory.mktemp("sandbox"), CODE)
    with admitted(packages, (ROOT / "tests", private)) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(sandbox_and_defences):
    return sandbox_and_defences[0]


@pytest.fixture
def student(sandbox):
    with IsolatedFace(sandbox).open("1.1") as code:
        yield code


def processes_of(uid):
    """The processes of a user, but for those that are dead and not yet buried."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                found.append(int(entry.name))
        except FileNotFoundError:
            continue
    return found


def state_of(pid):
    """The state of a process: Z for one that is dead and not yet buried."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_what_is_in_force_is_named(sandbox_and_defences):
    _, defences = sandbox_and_defences
    said = [str(defence) for defence in defences]
    assert all(defence.holds for defence in defences)
    assert sum(defence.floor for defence in defences) == 2
    assert "own uid" in said[0]
    assert ("Landlock" in said[0]) == bool(landlock.version())
    assert "nothing outlives a test: pid namespace" in said


@pytest.mark.skipif(not landlock.version(), reason="the files here are readable by every user")
def test_tests_results_metadata_and_the_course_cannot_be_read_or_written(student, private):
    for path in (
        ROOT / "tests" / "a1_convolution" / "test_hidden.py",
        ROOT / "solutions" / "a1_convolution" / "convolution.py",
        ROOT / "autograder" / "grading" / "judge.py",
        private / "results.json",
        private / "submission_metadata.json",
        *(f"/proc/{os.getpid()}/{name}" for name in ("environ", "mem", "maps", "cmdline")),
        "/etc/passwd",
        "/etc/shadow",
    ):
        assert student.read(str(path)) == "PermissionError", path
    for path in (ROOT, ROOT / "tests", private, "/proc", "/tmp", "/"):
        assert student.listing(str(path)) == "PermissionError", path
    for path in (private / "results.json", private / "new", ROOT / "x", "/tmp/conv2gpt-x", "/x"):
        assert student.write(str(path)) == "PermissionError", path
    assert (private / "results.json").read_text() == "{}" and len(os.listdir(private)) == 2


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
    assert student.become_root() == ["PermissionError"] * 3


def test_what_the_fork_server_was_told_is_not_for_children(student):
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
    found = student.descriptors()
    kinds = [found.pop(number) for number in (0, 1, 2)]
    assert kinds[0] == "/dev/null" and kinds[1] == kinds[2] and kinds[1].startswith("pipe:")
    channel = [target for target in found.values() if target.startswith("socket:")]
    others = [target for target in found.values() if not target.startswith("socket:")]
    assert len(channel) == 1
    for target in others:  # no set of Landlock rules; "/" is a folder without anything above it
        assert Path(target).is_dir(), target
        assert target == "/" or not (ROOT / "tests").is_relative_to(target), target


def test_no_child_is_given_the_rules_of_another(sandbox):
    """Rules that a child holds open are rules that it could loosen for the children after it."""
    for exercise in ("1.2", "1.4", "1.1", "1.2"):
        with IsolatedFace(sandbox).open(exercise) as student:
            assert not [x for x in student.descriptors().values() if "landlock" in x]


def test_there_is_no_network(student):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for family in ("AF_INET", "AF_INET6", "AF_UNIX"):
            assert student.network(family, port) == "PermissionError"


def test_no_other_program_runs(student):
    assert student.run_program() == ["PermissionError"] * 3
    assert student.spawn() == "PermissionError"


def test_the_judge_can_be_neither_signalled_nor_traced(student, sandbox):
    for pid in (os.getpid(), sandbox.server.process.pid):
        assert set(student.kill(pid)) <= {"PermissionError", "ProcessLookupError"}
        assert student.trace(pid) == -1


def test_parts_of_pythons_library_can_be_imported_late(student):
    assert student.late_imports() == "0.333"


def test_libraries_are_told_of_a_childs_own_forks(student):
    assert student.threads_in_a_fork() == 1


def test_its_home_can_be_written_to_within_bounds_and_is_new_for_each_test(sandbox):
    for _ in range(2):
        with IsolatedFace(sandbox).open("1.1") as student:
            assert student.what_is_at_home()[0] == []
            home = student.keep_file()
            assert student.what_is_at_home() == (["notes.txt"], home, home)
            assert student.fill() == "OSError"
        sandbox.settle()
        assert not Path(home).exists()


def test_nothing_outlives_a_test(sandbox):
    with IsolatedFace(sandbox).open("1.1") as student:
        assert student.leave_processes() == 1
        assert len(processes_of(sandbox.slot.uid)) >= 3
    sandbox.settle()
    assert processes_of(sandbox.slot.uid) == []


@pytest.mark.parametrize("kind", ["the same server", "another server"])
def test_nothing_of_a_test_is_left_when_the_next_child_starts(sandbox, kind):
    with IsolatedFace(sandbox).open("1.1") as student:
        student.leave_processes()
        left = processes_of(sandbox.slot.uid)
        assert len(left) >= 3
        server = sandbox.server.process.pid
        os.kill(server, signal.SIGSTOP)  # a busy machine
        threading.Timer(0.5, os.kill, (server, signal.SIGCONT)).start()
    limits = sandbox.assignment.limits
    following = sandbox.child() if kind == "the same server" else sandbox.lab_child(limits)
    with following:
        assert not {*left} & {*processes_of(sandbox.slot.uid)}


def test_a_child_that_can_not_be_ended_is_a_fault(tmp_path):
    with admitted(write_package(tmp_path, CODE)) as (sandbox, _):
        sandbox.server.end(NO_PROCESS)
        for _ in range(2):  # the next answer would be that to this request
            with pytest.raises(GraderFault, match="the fork server failed"), sandbox.child():
                pass


def test_the_number_of_processes_is_bounded(sandbox):
    with IsolatedFace(sandbox).open("1.1") as student:
        assert student.breed() < 100
    sandbox.settle()
    assert processes_of(sandbox.slot.uid) == []


def test_two_graders_at_once_have_different_users(sandbox, tmp_path):
    with admitted(write_package(tmp_path, CODE)) as (other, _):
        assert other.slot.uid != sandbox.slot.uid
        uid, folder = other.slot.uid, other.folder
        with IsolatedFace(other).open("1.1") as student:
            assert student.me()[0][0] == uid
    assert not folder.exists()
    with admitted(write_package(tmp_path / "again", CODE)) as (third, _):
        assert third.slot.uid == uid


def test_of_a_folder_its_first_file_is_tried_and_no_link(tmp_path):
    """A student's link to what all may read would have no submission graded."""
    for name in ("b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "code.py").touch()
    (tmp_path / "a" / "c" / "ago").symlink_to("/etc/hostname")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "aaa")
    given = [tmp_path, tmp_path / "b" / "code.py", tmp_path / "empty", tmp_path / "gone"]
    assert [*files_among(given)] == [tmp_path / "a/c/code.py", tmp_path / "b/code.py"]


def test_without_landlock_grading_is_refused_where_files_are_open_to_all(tmp_path, private):
    packages = write_package(tmp_path, CODE)
    with weakened(tmp_path, NO_LANDLOCK), admitted(packages, [private]) as (made, defences):
        with pytest.raises(CourseError, match="can't protect the grader") as raised:
            check_floor(defences, unsafe=False)
        assert "tests and metadata can't be read" in str(raised.value)
        check_floor(defences, unsafe=True)
        assert "tests and metadata can't be read: not protected" in map(str, defences)
        with IsolatedFace(made).open("1.1") as student:
            assert student.read(str(private / "results.json")) == "done"
            assert student.late_imports() == "0.333"


def test_without_landlock_another_user_is_enough_where_files_are_roots(tmp_path):
    packages = write_package(tmp_path / "package", CODE)
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "own" / "results.json").touch(mode=0o600)
    own = tmp_path / "own"
    with weakened(tmp_path, NO_LANDLOCK), admitted(packages, [own]) as (_, defences):
        check_floor(defences, unsafe=False)
        assert "Landlock" not in str(defences[0])


def test_without_pid_namespaces_what_is_left_is_swept_away(tmp_path):
    packages = write_package(tmp_path, CODE)
    with weakened(tmp_path, NO_TREES), admitted(packages) as (made, defences):
        assert "nothing outlives a test: sweep" in map(str, defences)
        for deed in ("leave_processes", "breed"):
            with IsolatedFace(made).open("1.1") as student:
                assert getattr(student, deed)()
                assert len(processes_of(made.slot.uid)) >= 3
            made.settle()
            assert processes_of(made.slot.uid) == []


def test_a_child_that_does_not_read_is_too_slow_and_not_gone():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.05)
        with pytest.raises(ChannelTimeout):
            send_frame(ours, bytes(10_000_000))


def test_a_child_that_has_failed_stays_failed_and_costs_no_more_time(sandbox):
    with IsolatedFace(sandbox).open("1.1") as student:
        student.me()  # it has become the user that it is
        (child,) = processes_of(sandbox.slot.uid)
        os.kill(child, 9)
        while state_of(child) != "Z":  # each question comes after its end
            time.sleep(0.01)
        start = time.monotonic()
        for _ in range(3):
            with pytest.raises(ChildFailure, match="ended its process"):
                student.me()
        # Each call that waited for an answer would take its whole time.
        assert time.monotonic() - start < sandbox.assignment.limits.test_seconds
