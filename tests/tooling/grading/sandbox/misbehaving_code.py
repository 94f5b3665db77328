"""A submission that tries what a child must not do, and returns how the system answered.

Tests read this file as text: it runs in a sandbox.
"""

import ctypes
import errno
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

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


# The network and shared memory


def connect(family, port):
    def reach():
        with socket.socket(getattr(socket, family)) as sock:
            sock.settimeout(0.5)
            sock.connect(("::1" if family == "AF_INET6" else "127.0.0.1", port))

    return attempt(reach)


def listen():
    return attempt(lambda: socket.create_server(("127.0.0.1", 0)).close())


def connect_abstract(name):
    with socket.socket(socket.AF_UNIX) as sock:
        return attempt(sock.connect, f"\0{name}")


def talk_to_itself():
    ours, theirs = socket.socketpair()
    ours.sendall(b"hello")
    return theirs.recv(5)


def send_away(address):
    ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return attempt(ours.sendto, b"x", address)


def shared_segment(key):
    return libc.shmget(key, 4096, 0o1666)


# Files


def read(path):
    return attempt(lambda: open(path, "rb").read(1))


def write(path):
    return attempt(lambda: open(path, "w").close())


def use(device):
    return attempt(lambda: open(device, "r+b").close())


def listing(path):
    return attempt(os.listdir, path)


def set_mode(path, mode):
    return attempt(os.chmod, path, mode)


def many_files(count, megabytes, named=True):
    kept = []

    def fill():
        for number in range(count):
            kept.append(open(f"file-{number}", "wb", buffering=0))  # noqa: SIM115
            if not named:
                os.unlink(f"file-{number}")
            for _ in range(megabytes):
                kept[-1].write(bytes(2**20))

    return attempt(fill)


def many_names(count):
    return attempt(lambda: [open(f"empty-{n}", "w").close() for n in range(count)])


def keep_file():
    with open("notes.txt", "w") as stream:
        stream.write("x")
    return os.getcwd()


def what_is_at_home():
    return os.listdir(), os.environ["HOME"], os.environ["TMPDIR"]


def descriptors():
    found = {}
    for number in range(256):
        with suppress(OSError):
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


# Memory and processes


def take_in_processes(count, megabytes):
    pipes = []
    for _ in range(count):
        reading, writing = os.pipe()
        if os.fork() == 0:
            memory = mmap.mmap(-1, megabytes * 2**20)
            for start in range(0, len(memory), 4096):
                memory[start] = 1
            os.write(writing, b"x")
            time.sleep(20)
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    return [len(os.read(pipe, 1)) for pipe in pipes]


def spin(count, seconds):
    """Many processes that work, none of them for long enough to be ended by itself."""
    end = time.monotonic() + seconds
    for _ in range(count - 1):
        if os.fork() == 0:
            os.setsid()
            break
    while time.monotonic() < end:
        pass
    return count


def relay(count, seconds, waits=True):
    """Processes that work one after another, each for a part of a second of its own."""
    if not waits:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(count):
        worker = os.fork()
        if worker == 0:
            while time.process_time() < seconds:
                pass
            os._exit(0)
        with suppress(ChildProcessError):
            os.waitpid(worker, 0)
    return count


def breed(count):
    made = 0
    with suppress(OSError):
        while made < count:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
    return made


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


def thread():
    done = []
    worker = threading.Thread(target=done.append, args=(1,))
    worker.start()
    worker.join()
    return done


def threads_in_a_fork():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, bytes([threading.active_count()]))
        os._exit(0)
    return os.read(reading, 1)[0]


def run_program():
    return [attempt(os.execv, path, ["x"]) for path in ("/bin/true", "/bin/sh", sys.executable)]


def spawn():
    return attempt(subprocess.run, ["/bin/true"])


def kill(pid):
    return [attempt(os.kill, pid, number) for number in (0, signal.SIGTERM, signal.SIGKILL)]


def trace(pid):
    return libc.ptrace(16, pid, 0, 0)


def unset_death_signal():
    return libc.prctl(1, 0, 0, 0, 0), ctypes.get_errno()


def sleep(seconds):
    time.sleep(seconds)


# What it is and what it has


def become_root():
    return [attempt(os.setuid, 0), attempt(os.setgid, 0), attempt(os.setgroups, [0])]


def me():
    return os.getresuid(), os.getresgid(), os.getgroups(), os.getcwd(), dict(os.environ)


def arguments():
    return sys.argv, sys.orig_argv


def modules():
    return sorted(sys.modules)


def late_imports():
    import colorsys  # noqa: F401
    import decimal

    return str(decimal.Decimal(1) / 3)[:5]


# What could be seen of others


def changes_access_time(path):
    before = os.stat(path).st_atime_ns
    read(path)
    return os.stat(path).st_atime_ns != before


def own_id():
    return os.getpid(), os.readlink("/proc/self")


def joined_threads():
    """Threads that the C library joins, as C++ code does: one that has ended, one that has not."""
    done = []
    work = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    for pause_after, pause_before in ((0.05, 0), (0, 0.05)):

        def run(_, pause=pause_before):
            time.sleep(pause)
            return None

        thread, function = ctypes.c_ulong(), work(run)
        libc.pthread_create(ctypes.byref(thread), None, function, None)
        time.sleep(pause_after)
        done.append(int(libc.pthread_join(thread, None) == 0))
    return done
