"""Tests the sandbox from inside a child: tries forbidden reads, network, memory, forks."""

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from autograder.grading.sandbox.kernel import seccomp
from autograder.grading.sandbox.kernel.confine import SYSTEM
from autograder.grading.sandbox.kernel.confinement_plan import Attempts
from autograder.grading.sandbox.kernel.home_folder import HOME_BYTES, SHARED
from autograder.grading.sandbox.kernel.rlimits import DESCRIPTORS, FILE_BYTES, PROCESSES
from autograder.grading.sandbox.kernel.syscalls import syscall

FILES, RESULTS, SUBMISSION, ELSEWHERE = "files", "results", "submission", "elsewhere"
NETWORK, PROGRAMS, CALLS, SIGNALS = "network", "programs", "calls", "signals"
TRACES, OTHERS, MESSAGES = "traces", "others", "messages"
DISK, MEMORY, PROCESS_COUNT, GPU = "disk", "memory", "processes", "gpu"
# Calls that a kernel without the filter would refuse in another way, with arguments like these.
SOME_CALLS = (
    *("ptrace", "process_vm_readv", "kcmp", "pidfd_getfd", "shmget", "semget", "mq_open"),
    *("mount", "unshare", "setns", "open_by_handle_at", "keyctl", "add_key", "io_uring_setup"),
)
# What two processes could talk by through a file that both can read.
MESSAGE_CALLS = ("inotify_init1", "fanotify_init", "flock", "readahead", "io_setup")
LEAVES_NO_TRACE = os.ST_RDONLY | os.ST_NOATIME
STRANGE_ARGUMENTS = (ctypes.c_long(-1),) * 5
MEGABYTE = 1024 * 1024
LEFTOVER_SECONDS = 60


def probe(attempts: Attempts) -> dict[str, bool]:
    """Try each attempt for real; True where the system refused."""
    refusals = {
        SIGNALS: attempts.signal == os.getpid() or refused(lambda: os.kill(attempts.signal, 0)),
        FILES: all(refused(reading(way)) for path in attempts.read for way in paths_to(path)),
        RESULTS: no_file_in(way for path in attempts.write_into for way in paths_to(path))
        and no_mode_of(attempts.write_into),
        SUBMISSION: no_file_in(attempts.change) and no_mode_of(attempts.change),
        ELSEWHERE: no_file_in(str(folder) for folder in SHARED if folder.is_dir()),
        NETWORK: refused(connection(attempts.connect_to))
        and refused(conversation(attempts.abstract)),
        PROGRAMS: no_program(),
        CALLS: seccomp.supported() and all(map(denied, SOME_CALLS)),
        TRACES: no_access_time(attempts.unread) and all(map(is_quiet, read_by_all())),
        OTHERS: processes_are_hidden(),
        MESSAGES: seccomp.supported()
        and all(map(denied, MESSAGE_CALLS))
        and refused(lock_on(attempts.unread)),
        DISK: files_are_bounded(Path.cwd()),
        MEMORY: refused(lambda: memory(attempts.memory_mb + 64)),
        PROCESS_COUNT: processes_are_bounded(),
        GPU: all(refused(reading(path)) for path in attempts.devices),
    }
    leave_process()
    return refusals


def refused(action: Callable[[], object]) -> bool:
    """Whether the system says no."""
    try:
        action()
    except OSError:
        return True
    return False


def reading(path: str) -> Callable[[], object]:
    return lambda: Path(path).open("rb").close()


def paths_to(path: str) -> Iterator[str]:
    """The path itself, and every way to it from a folder that is open here, up and then down."""
    yield path
    parts = Path(path).parts
    for descriptor in range(DESCRIPTORS):
        for up in parents_of(f"/proc/self/fd/{descriptor}/."):
            yield from ("/".join((up, *parts[depth:])) for depth in range(1, len(parts)))


def parents_of(way: str) -> Iterator[str]:
    """A way to a folder, and the ways to those above it, as far as they lead."""
    below = None
    with suppress(OSError):  # it is no folder, or one that can't be entered
        while (here := os.stat(way)) != below:
            yield way
            way, below = f"{way}/..", here


def no_file_in(folders: Iterable[str]) -> bool:
    """Whether no file can be made in any of the folders."""

    def touch(file: Path) -> Callable[[], object]:
        def make_and_remove() -> None:
            file.touch(exist_ok=False)
            file.unlink()

        return make_and_remove

    name = f"conv2gpt-{os.urandom(8).hex()}"
    return all(refused(touch(Path(folder) / name)) for folder in folders)


def no_mode_of(folders: Iterable[str]) -> bool:
    """Whether the mode of none of the folders can be set, even to what it is."""

    def set_mode(folder: str) -> Callable[[], object]:
        return lambda: os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode))

    return all(refused(set_mode(folder)) for folder in folders)


def connection(port: int) -> Callable[[], object]:
    return lambda: socket.create_connection(("127.0.0.1", port), timeout=0.2).close()


def conversation(name: str) -> Callable[[], object]:
    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f"\0{name}")

    return connect


def no_access_time(file: str) -> bool:
    """Whether a file can be read and looks as if it had not been."""
    before = os.stat(file).st_atime_ns
    Path(file).read_bytes()
    return os.stat(file).st_atime_ns == before


def read_by_all() -> Iterator[str]:
    """Folders and files that every submission reads."""
    yield from (path for path in (*SYSTEM, *sys.path) if os.path.exists(path))


def is_quiet(path: str) -> bool:
    """Whether the mount that a path is on keeps no access times, or is made by the kernel."""
    return bool(os.statvfs(path).f_flag & LEAVES_NO_TRACE)


def processes_are_hidden() -> bool:
    """Whether /proc shows at most this process, under an id that counts no others."""
    try:
        return os.readlink("/proc/self") == str(os.getpid()) and not os.path.exists("/proc/2")
    except FileNotFoundError:
        return True


def lock_on(file: str) -> Callable[[], object]:
    def lock() -> None:
        with Path(file).open("rb") as opened:
            fcntl.lockf(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)

    return lock


def no_program() -> bool:
    """Whether another program can't be run; one that could would replace this process."""
    process = os.fork()
    if process == 0:
        try:
            os.execv("/bin/true", ["true"])
        finally:
            os._exit(1)
    return os.waitpid(process, 0)[1] != 0


def denied(call: str) -> bool:
    """Whether a system call is not permitted, whatever its arguments."""
    try:
        syscall(seccomp.number_of(call), *STRANGE_ARGUMENTS)
    except OSError as error:
        return error.errno == errno.EPERM
    return False


def files_are_bounded(home: Path) -> bool:
    """Whether one file, all files together, and open files have an end."""
    names = [home / "probe-1", home / "probe-2"]
    opened: list[int] = []

    def fill() -> None:
        for name in names:
            opened.append(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600))
            os.posix_fallocate(opened[-1], 0, HOME_BYTES * 5 // 8)

    def write_far() -> None:
        opened.append(os.open(names[0], os.O_CREAT | os.O_WRONLY, 0o600))
        os.pwrite(opened[-1], b"x", FILE_BYTES)

    def open_many() -> None:
        while len(opened) < 2 * DESCRIPTORS:
            opened.append(os.dup(0))

    try:
        return refused(write_far) and refused(fill) and refused(open_many)
    finally:
        for descriptor in opened:
            os.close(descriptor)
        for name in names:
            name.unlink(missing_ok=True)


def memory(megabytes: int) -> None:
    """Take so much memory that could be written to."""
    mmap.mmap(-1, megabytes * MEGABYTE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()


def processes_are_bounded() -> bool:
    """Whether there is an end to them. Threads count as processes do, and cost less."""
    done = threading.Event()
    threads: list[threading.Thread] = []
    before = threading.stack_size(64 * 1024)
    try:
        while len(threads) < 4 * PROCESSES:
            threads.append(threading.Thread(target=done.wait, daemon=True))
            threads[-1].start()
    except RuntimeError:
        threads.pop()
        return True
    finally:
        threading.stack_size(before)
        done.set()
        for thread in threads:
            thread.join()
    return False


def leave_process() -> None:
    """Leave a process behind, which holds this one's output open for as long as it lives."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(LEFTOVER_SECONDS)
        os._exit(0)
