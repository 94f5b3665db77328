"""Each layer of the sandbox holds without the others, and does what nothing else does."""

import errno
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autograder.grading.sandbox import probe
from autograder.grading.sandbox.defences import Findings, defences_in_force, mechanisms
from autograder.grading.sandbox.fork_client import ForkServer
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import (
    cgroups,
    gpu_files,
    home_folder,
    landlock,
    namespaces,
    rlimits,
    seccomp,
)
from autograder.grading.sandbox.kernel.confine import change_uid
from autograder.grading.sandbox.kernel.rlimits import PROCESSES
from autograder.grading.sandbox.kernel.tree_removal import remove_tree
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import ROOT, Limits, load_assignment
from common.errors import GraderFault
from common.testing.feedback.failure import ChildFailure
from tests.tooling.grading_fixtures import (
    REFERENCE,
    admitted,
    assignment,
    code_in,
    write_package,
)
from tests.tooling.scratch_copies import clean_environment, open_to_others
from tests.tooling.weakened_sandbox import (
    NO_DEATH_SIGNAL,
    NO_FILTER,
    NO_GROUPS,
    NO_LANDLOCK,
    NO_LIMITS,
    NO_OWN_IPC,
    NO_OWN_MOUNTS,
    NO_OWN_NETWORK,
    NO_TREES,
    weakened,
)

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a child's own uid needs root")

CODE = """
import ctypes, errno, mmap, os, socket, time

libc = ctypes.CDLL(None, use_errno=True)


def attempt(action, *args):
    try:
        action(*args)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"


def call(number, *args):
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, args))
    return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def tcp(port):
    return attempt(lambda: socket.create_connection(("127.0.0.1", port), 0.5).close())


def listen():
    return attempt(lambda: socket.create_server(("127.0.0.1", 0)).close())


def abstract(name):
    with socket.socket(socket.AF_UNIX) as sock:
        return attempt(sock.connect, "\\0" + name)


def talk_to_itself():
    ours, theirs = socket.socketpair()
    ours.sendall(b"hello")
    return theirs.recv(5)


def send_away(address):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return attempt(ours.sendto, b"x", address)


def shared_segment(key):
    return libc.shmget(key, 4096, 0o1666)


def write(path):
    return attempt(lambda: open(path, "w").close())


def read(path):
    return attempt(lambda: open(path, "rb").close())


def set_mode(path, mode):
    return attempt(os.chmod, path, mode)


def use(device):
    return attempt(lambda: open(device, "r+b").close())


def many_files(count, megabytes):
    block = bytes(2**20)

    def fill():
        for number in range(count):
            with open(f"file-{number}", "wb") as stream:
                for _ in range(megabytes):
                    stream.write(block)
    result = attempt(fill)
    time.sleep(1)
    return result


def many_nameless_files(count, megabytes):
    kept = []

    def fill():
        for _ in range(count):
            kept.append(open("file", "wb", buffering=0))
            os.unlink("file")
            for _ in range(megabytes):
                kept[-1].write(bytes(2**20))
    result = attempt(fill)
    time.sleep(1)
    return result


def many_names(count):
    return attempt(lambda: [open(f"empty-{n}", "w").close() for n in range(count)])


def take(megabytes):
    memory = mmap.mmap(-1, megabytes * 2**20)
    for start in range(0, len(memory), 4096):
        memory[start] = 1
    return memory


def take_in_processes(count, megabytes):
    pipes = []
    for _ in range(count):
        reading, writing = os.pipe()
        if os.fork() == 0:
            mine = take(megabytes)
            os.write(writing, b"x")
            time.sleep(20)
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    return [len(os.read(pipe, 1)) for pipe in pipes]


def breed(count):
    made = 0
    try:
        while made < count:
            if os.fork() == 0:
                time.sleep(20)
                os._exit(0)
            made += 1
    except OSError:
        pass
    return made


def sleep(seconds):
    time.sleep(seconds)


def unset_death_signal():
    return libc.prctl(1, 0, 0, 0, 0), ctypes.get_errno()


def kill(pid):
    return attempt(os.kill, pid, 0)


def thread():
    import threading
    done = []
    worker = threading.Thread(target=done.append, args=(1,))
    worker.start()
    worker.join()
    return done
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return write_package(tmp_path_factory.mktemp("layers"), CODE)


@pytest.fixture(scope="module")
def sandbox(packages):
    with admitted(packages) as (made, _):
        yield made


@pytest.fixture
def student(sandbox):
    with IsolatedFace(sandbox).open("1.1") as code:
        yield code


@pytest.fixture
def ports():
    """A TCP port and an abstract socket that any process of this machine could reach."""
    name = f"conv2gpt-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield tcp.getsockname()[1], name


def said(defences):
    return {defence.name: str(defence).partition(": ")[2] for defence in defences}


# The system call filter


@pytest.mark.parametrize("name", sorted({**seccomp.DENIED, **seccomp.MEMORY_FILES}))
def test_a_call_that_is_never_needed_is_not_permitted(student, name):
    arguments = [0] * 6 if name in ("execve", "execveat", "vhangup") else [-1] * 5
    assert student.call(seccomp.number_of(name), *arguments) == "EPERM"


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


def test_without_the_filter_the_result_says_so(tmp_path, packages):
    with weakened(tmp_path, NO_FILTER), admitted(packages) as (made, defences):
        assert said(defences)["no odd system calls"] == "not protected"
        assert said(defences)["no network"] == f"network namespace, Landlock {landlock.version()}"
        with IsolatedFace(made).open("1.1") as student:
            assert student.call(seccomp.number_of("keyctl"), -1, -1, -1, -1, -1) != "EPERM"


# The network


@pytest.mark.skipif(landlock.version() < 4, reason="Landlock knows TCP from version 4 on")
def test_landlock_alone_denies_tcp(tmp_path, packages, ports):
    with (
        weakened(tmp_path, NO_FILTER, NO_OWN_NETWORK),
        admitted(packages) as (made, _),
        IsolatedFace(made).open("1.1") as student,
    ):
        assert (student.tcp(ports[0]), student.listen()) == ("EACCES", "EACCES")


@pytest.mark.skipif(landlock.version() < 6, reason="Landlock knows abstract sockets from 6 on")
def test_landlock_alone_denies_abstract_sockets_and_signals(tmp_path, packages, ports):
    with (
        weakened(tmp_path, NO_FILTER, NO_OWN_NETWORK, NO_TREES),
        admitted(packages) as (made, _),
        IsolatedFace(made).open("1.1") as student,
    ):
        assert student.abstract(ports[1]) == "EPERM"
        own = subprocess.Popen(["sleep", "60"], user=made.slot.uid)  # the uid alone allows it
        try:
            assert (
                student.call(62 if os.uname().machine == "x86_64" else 129, own.pid, 0) == "EPERM"
            )
        finally:
            own.kill()
            own.wait()


def test_a_network_namespace_alone_denies_both(tmp_path, packages, ports):
    with (
        weakened(tmp_path, NO_FILTER, NO_LANDLOCK),
        admitted(packages) as (made, defences),
        IsolatedFace(made).open("1.1") as student,
    ):
        assert said(defences)["no network"] == "network namespace"
        assert student.tcp(ports[0]) in ("ENETUNREACH", "ECONNREFUSED")
        assert student.abstract(ports[1]) == "ECONNREFUSED"


def test_without_any_of_them_the_network_is_told_to_be_open(tmp_path, packages, ports):
    with (
        weakened(tmp_path, NO_FILTER, NO_LANDLOCK, NO_OWN_NETWORK),
        admitted(packages) as (made, defences),
        IsolatedFace(made).open("1.1") as student,
    ):
        assert said(defences)["no network"] == "not protected"
        assert (student.tcp(ports[0]), student.abstract(ports[1])) == ("done", "done")


# Shared memory


def test_shared_memory_stays_in_its_namespace_even_without_the_filter(tmp_path, packages):
    with (
        weakened(tmp_path, NO_FILTER),
        admitted(packages) as (made, _),
        IsolatedFace(made).open("1.1") as student,
    ):
        segment = student.shared_segment(0x636F6E76)
        assert segment >= 0
        assert "0x636f6e76" not in subprocess.check_output(["ipcs", "-m"], text=True)


def test_without_either_shared_memory_is_the_machines(tmp_path, packages):
    try:
        with (
            weakened(tmp_path, NO_FILTER, NO_OWN_IPC),
            admitted(packages) as (made, _),
            IsolatedFace(made).open("1.1") as student,
        ):
            assert student.shared_segment(0x636F6E76) >= 0
            assert "0x636f6e76" in subprocess.check_output(["ipcs", "-m"], text=True)
    finally:
        subprocess.run(["ipcrm", "-M", "0x636f6e76"], check=False, capture_output=True)


# Files


def test_the_submission_cannot_be_changed(student, sandbox):
    folder = Path(sandbox.packages["a1_convolution"])
    for path in (folder / "convolution.py", folder / "new.py", folder / "__pycache__" / "x.pyc"):
        assert student.write(str(path)) == "EACCES"


def test_without_landlock_a_child_reads_its_own_submission_and_not_that_of_another_grader(
    tmp_path, packages
):
    with (
        weakened(tmp_path, NO_LANDLOCK),
        admitted(packages) as (made, _),
        admitted(packages) as (other, _),
        IsolatedFace(made).open("1.1") as student,
    ):
        file = Path(made.packages["a1_convolution"]) / "convolution.py"
        assert student.read(str(file)) == "done"
        file = Path(other.packages["a1_convolution"]) / "convolution.py"
        assert file.is_file()
        assert student.read(str(file)) == "EACCES"


def test_without_a_uid_of_its_own_a_child_writes_to_its_home_and_not_beside_it(
    packages, monkeypatch
):
    monkeypatch.setattr("autograder.grading.sandbox.sandbox.free_slot", lambda folder: None)
    with admitted(packages) as (made, _), IsolatedFace(made).open("1.1") as student:
        assert student.write("note") == student.write("/dev/null") == "done"
        assert student.write(str(made.folder / "homes" / "note")) == "EACCES"


def test_without_a_uid_of_its_own_a_child_changes_no_modes_owners_or_times(
    packages, tmp_path, monkeypatch
):
    """Landlock leaves that to whoever owns the files, which is then the child too."""
    monkeypatch.setattr("autograder.grading.sandbox.sandbox.free_slot", lambda folder: None)
    with admitted(packages, [tmp_path]) as (made, defences):
        assert all(defence.holds for defence in defences if defence.floor)
        with IsolatedFace(made).open("1.1") as student:
            for name in seccomp.ATTRIBUTES:
                assert student.call(seccomp.number_of(name), *[-1] * 5) == "EPERM", name
            assert student.set_mode(str(tmp_path), 0o777) == "EPERM"
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    with weakened(tmp_path, NO_FILTER), admitted(packages, [tmp_path]) as (made, defences):
        assert said(defences)["results can't be written"] == "not protected"
        assert said(defences)["the submission can't be changed"] == "not protected"
        with IsolatedFace(made).open("1.1") as student:
            assert student.set_mode(str(tmp_path), 0o777) == "done"


def test_with_a_uid_of_its_own_a_child_changes_its_own_files_alone(student, tmp_path):
    assert student.write("note") == student.set_mode("note", 0o640) == "done"
    assert student.set_mode(str(tmp_path), 0o777) in ("EPERM", "EACCES")


def test_all_files_together_are_bounded(sandbox):
    with IsolatedFace(sandbox).open("1.1") as student:
        assert student.many_files(4, 10) == "ENOSPC"
    with IsolatedFace(sandbox).open("1.1") as student:
        assert student.many_names(10_000) == "ENOSPC"
        assert student.many_files(1, 1) == "ENOSPC"


def test_without_mounts_of_its_own_a_home_is_watched(tmp_path, packages, monkeypatch):
    monkeypatch.setattr(home_folder, "HOME_FILES", 100)
    with weakened(tmp_path, NO_OWN_MOUNTS), admitted(packages) as (made, defences):
        assert said(defences)["disk"] == "not protected"
        for deed, *numbers in (("many_files", 4, 10), ("many_names", 200)):
            with (
                IsolatedFace(made).open("1.1") as student,
                pytest.raises(ChildFailure, match="wrote more than 32 MB of files"),
            ):
                getattr(student, deed)(*numbers)
                student.sleep(5)
            made.settle()
            assert list((made.folder / "homes").iterdir()) == []
        with IsolatedFace(made).open("1.1") as student:
            assert student.many_files(1, 1) == "done"
        with IsolatedFace(made).open("1.1") as student:  # why it counts for nothing
            assert student.many_nameless_files(4, 10) == "done"


def test_files_without_a_name_are_bounded_too(student):
    assert student.many_nameless_files(4, 10) == "ENOSPC"


@pytest.mark.parametrize("name", ["d", "d" * 200])
def test_deep_folders_cost_the_next_submission_nothing(tmp_path, packages, name):
    """Without mounts of its own a home is removed file by file."""
    deep = "import os\nfor _ in range(1200):\n"
    deep += f"    os.mkdir({name!r})\n    os.chdir({name!r})\nos.mkdir('closed', 0)\n"
    hostile = write_package(tmp_path / "hostile", deep + CODE)
    with weakened(tmp_path, NO_OWN_MOUNTS), admitted(hostile) as (made, _):
        with IsolatedFace(made).open("1.1") as student:
            assert student.thread() == [1]
        made.settle()
        assert list((made.folder / "homes").iterdir()) == []
        made.admit(code_in(packages))
        with IsolatedFace(made).open("1.1") as student:
            assert student.many_files(1, 1) == "done"
    assert not made.folder.exists()


def test_a_tree_is_removed_by_its_owner_and_links_lead_nowhere(tmp_path):
    """Folders that nobody may enter, files that nobody may write to, links to what is not ours."""
    tree, other = tmp_path / "tree", tmp_path / "other"
    for folder in (tree / "a" / "b" / "c", other):
        folder.mkdir(parents=True)
        (folder / "file").touch(mode=0o400)
    (tree / "a" / "link").symlink_to(other)
    (tree / "link").symlink_to(other)
    for path in (tmp_path, tree, *tree.rglob("*")):
        os.chown(path, 61_999, 61_999, follow_symlinks=False)
    for path in (tree / "a" / "b" / "c", tree / "a" / "b", tree / "a", tree):
        path.chmod(0)
    # As that user, from a folder below those that only root may enter.
    here = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    child = os.fork()
    if child == 0:
        try:
            os.fchdir(here)
            change_uid(61_999)
            remove_tree("tree")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(here)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (other / "file").exists()


def test_any_error_in_the_fork_server_is_told_and_does_not_end_it(tmp_path, packages):
    failing = "homes.Homes.remove = lambda *arguments: [][0]\n"
    with weakened(tmp_path, failing), Sandbox(assignment()) as made:
        for _ in range(2):
            with pytest.raises(GraderFault, match="list index out of range"):
                made.admit(code_in(packages))
        assert made.server.process.poll() is None


def test_without_landlock_files_left_elsewhere_are_swept_away(tmp_path, packages):
    place = Path("/dev/shm") / f"conv2gpt-test-{os.getpid()}"
    with weakened(tmp_path, NO_LANDLOCK), admitted(packages) as (made, defences):
        assert said(defences)["no files elsewhere"] == "sweep"
        with IsolatedFace(made).open("1.1") as student:
            assert student.write(str(place)) == "done"
            assert place.exists()
        made.settle()
        assert not place.exists()


def test_only_the_users_own_files_are_swept(tmp_path):
    for name, uid in (("mine", 61_999), ("other", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "inner").touch()
        (tmp_path / f"{name}.txt").touch()
        for path in (tmp_path / name, tmp_path / f"{name}.txt"):
            os.chown(path, uid, uid)
    (tmp_path / "link").symlink_to("other")
    os.lchown(tmp_path / "link", 61_999, 61_999)
    home_folder.sweep_files(61_999, [tmp_path, tmp_path / "absent"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "other.txt"]
    assert (tmp_path / "other" / "inner").exists()


# Memory and processes


@pytest.mark.skipif("memory" not in cgroups.own_groups(), reason="no cgroup for memory here")
def test_processes_share_one_bound_on_memory(tmp_path, packages):
    """Each takes less than one may; together they take more."""
    with admitted(packages) as (made, defences):
        assert said(defences)["memory"] == "512 MB, for all its processes"
        with IsolatedFace(made).open("1.1") as student:
            try:
                assert 0 in student.take_in_processes(3, 400)
            except ChildFailure as error:  # which of them the system kills is its affair
                assert "ended its process" in str(error)
        assert made.server.process.poll() is None  # the fork server lives
        with IsolatedFace(made).open("1.1") as student:
            assert student.take_in_processes(1, 100) == [1]
    with weakened(tmp_path, NO_GROUPS), admitted(packages) as (made, defences):
        assert said(defences)["memory"] == "512 MB, for each process"
        with IsolatedFace(made).open("1.1") as student:
            assert student.take_in_processes(3, 400) == [1, 1, 1]


def test_where_memory_runs_out_the_child_dies_first(student, sandbox):
    assert student.thread() == [1]
    scores = [
        Path(f"/proc/{process}/oom_score_adj").read_text().strip()
        for process in (child_of(sandbox.server.process.pid), sandbox.server.process.pid)
    ]
    assert scores[0] == "1000" != scores[1]


@pytest.mark.skipif("pids" not in cgroups.own_groups(), reason="no cgroup for processes here")
def test_processes_are_bounded_by_either(tmp_path, packages):
    with weakened(tmp_path / "a", NO_LIMITS), admitted(packages) as (made, defences):
        assert said(defences)["memory"] == "not protected"
        with IsolatedFace(made).open("1.1") as student:
            assert PROCESSES < student.breed(200) <= 2 * PROCESSES
    with weakened(tmp_path / "b", NO_GROUPS), admitted(packages) as (made, defences):
        assert said(defences)["processes"] == f"{PROCESSES} by uid"
        with IsolatedFace(made).open("1.1") as student:
            assert student.breed(200) < PROCESSES
    with weakened(tmp_path / "c", NO_GROUPS, NO_LIMITS), admitted(packages) as (made, defences):
        assert said(defences)["processes"] == "not protected"
        with IsolatedFace(made).open("1.1") as student:
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
    assert own == {"memory": first / "x", "pids": second / "x"}
    (first / "x" / "slot" / "memory.limit_in_bytes").touch()
    (second / "x" / "slot" / "pids.max").touch()
    group = cgroups.Group("slot", 100, own)
    assert set(group.folders) == {"memory", "pids"}
    assert (first / "x" / "slot" / "memory.limit_in_bytes").read_text() == str(356 * 2**20)
    assert (second / "x" / "slot" / "pids.max").read_text() == str(2 * PROCESSES)
    assert (second / "x" / "cgroup.subtree_control").read_text() == "+pids"
    for folder in (first, second):
        assert (folder / "x" / "slot" / "cgroup.procs").read_text() == str(os.getpid())


def test_a_group_that_bounds_nothing_is_not_used(tmp_path):
    (tmp_path / "x").mkdir()
    group = cgroups.Group("slot", 100, {"memory": tmp_path / "x", "pids": tmp_path / "absent"})
    assert group.folders == {} and list((tmp_path / "x").iterdir()) == [
        tmp_path / "x" / "cgroup.procs"
    ]


# Processes that are left


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def child_of(pid):
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


@pytest.mark.parametrize("patches", [(), (NO_DEATH_SIGNAL, NO_FILTER)], ids=["as it is", "without"])
def test_a_fork_server_that_is_killed_takes_its_child_along(tmp_path, packages, patches):
    with weakened(tmp_path, *patches), Sandbox(assignment()) as made:
        made.admit(code_in(packages))
        with pytest.raises(Exception, match="fork server"), IsolatedFace(made).open("1.1"):
            child = child_of(made.server.process.pid)
            os.kill(made.server.process.pid, signal.SIGKILL)
            made.server.process.wait()
            time.sleep(0.3)
            assert alive(child) == bool(patches)
        if patches:
            os.kill(child, signal.SIGKILL)


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


def test_a_server_that_gets_ready_late_ends_no_child_of_another():
    with Sandbox(load_assignment("a5")) as made, made.child() as child:
        held = child.operate("hold", "hold", (1,), {})
        made.lean.stop(keep_folder=True)
        made.lean = ForkServer(made.server_module, made.folder)
        made.lean.begin(made.server_plan(made.allowed, first=False))
        assert made.lean.mechanisms  # it is ready now
        assert child.operate("fetch", "fetch", (held,), {}) == 1


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
    child = child_of(server)
    judge.kill()
    judge.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (alive(server) or alive(child)):
        time.sleep(0.05)
    assert not alive(server) and not alive(child)
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
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not [*scratch.glob("conv2gpt-*/packages/*/*.py")]:
            time.sleep(0.05)
        time.sleep(1)
        os.killpg(grading.pid, number)
        _, told = grading.communicate(timeout=60)
        assert "Traceback" not in told
        if number == signal.SIGINT:
            assert (grading.returncode, told.strip()) == (2, "Stopped.")
        while time.monotonic() < deadline and [*scratch.iterdir()]:
            time.sleep(0.05)
        assert [*scratch.iterdir()] == []


@pytest.mark.parametrize("moment", ["make_folder", "brief_servers"])
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
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and alive(server):
        time.sleep(0.05)
    assert not alive(server) and not Path(folder).exists()


# GPUs


def fake_machine(folder):
    for name in ("dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm", "dev/sda", "proc/devices"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
        (folder / name).chmod(0o666)
    (folder / "dev" / "nvidia-caps").mkdir()
    (folder / "dev" / "nvidia-caps" / "nvidia-cap1").touch(mode=0o666)
    return folder


def test_the_files_of_a_gpu_are_found(tmp_path):
    fake_machine(tmp_path)
    names = ("nvidia-caps/nvidia-cap1", "nvidia-uvm", "nvidia0", "nvidiactl")
    assert gpu_files.devices(tmp_path) == [tmp_path / "dev" / name for name in names]
    assert gpu_files.readable(tmp_path) == [tmp_path / "proc" / "devices"]
    assert gpu_files.devices(tmp_path / "dev") == []


def test_a_gpu_is_in_reach_when_asked_for_and_only_then(tmp_path, tmp_path_factory, packages):
    machine = fake_machine(tmp_path_factory.mktemp("machine"))
    open_to_others(machine)
    device = str(machine / "dev" / "nvidia0")
    line = "gpu_files.devices.__defaults__ = gpu_files.readable.__defaults__ = "
    line += f"(gpu_files.Path({str(machine)!r}),)\n"
    limits = Limits(5, 60, 512)
    for asked in (False, True):
        chosen = msgspec.structs.replace(
            assignment(), limits=msgspec.structs.replace(limits, gpu=asked)
        )
        with weakened(tmp_path / str(asked), line), Sandbox(chosen) as made:
            defences = made.admit(code_in(packages))
            with IsolatedFace(made).open("1.1") as student:
                assert student.read(device) == ("done" if asked else "EACCES")
                assert student.read(str(machine / "dev" / "sda")) == "EACCES"
                assert student.use(device) == ("done" if asked else "EACCES")
            assert said(defences).get("GPU") == ("in reach, as asked" if asked else None)
            assert said(defences)["memory"].startswith("512 MB")


# What is told


def test_every_finding_changes_what_is_told(sandbox):
    found = sandbox.findings
    limits = Limits(1, 1, 100)
    before = said(defences_in_force(found, limits))
    for key in set(found.refused) - {probe.GPU, probe.ELSEWHERE}:
        worse = replace(found, refused={**found.refused, key: False})
        after = said(defences_in_force(worse, limits))
        assert "not protected" in [after[name] for name in before if after[name] != before[name]]


def test_a_mechanism_that_is_missing_is_named_with_what_it_costs(sandbox):
    assert all(one.there for one in mechanisms(sandbox.findings))
    had = sandbox.server.mechanisms
    bare = type(had)(False, False, False, False, {})
    refused = {**sandbox.findings.refused, probe.CALLS: False}
    there = [one for one in mechanisms(Findings(refused, True, None, bare, False)) if one.there]
    assert {one.name.partition(" ")[0] for one in there} <= {"Landlock"}
    assert all(one.cost for one in mechanisms(sandbox.findings))


def test_a_slow_machine_is_tried_with_patience(packages):
    """What the probe may take has nothing to do with what a test may."""
    chosen = assignment(test_seconds=0.001)
    with Sandbox(chosen) as made:
        assert all(defence.holds for defence in made.admit(code_in(packages)))
        with pytest.raises(ChildFailure, match="longer"), IsolatedFace(made).open("1.1") as student:
            student.sleep(1)
