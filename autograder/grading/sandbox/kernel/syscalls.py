"""Linux system calls that Python doesn't wrap: prctl, unshare, mount, close_range."""

import ctypes
import os
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

CLOSE_RANGE, OPEN_TREE = 436, 428
FROM_WORKING_FOLDER, CLONE_TREE, RECURSIVE = -100, 1, 0x8000
LAST_DESCRIPTOR = 0xFFFFFFFF
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38


def check(result: int) -> int:
    """The result of a call; OSError when it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def prctl(option: int, *values: int | ctypes.c_void_p) -> int:
    """prctl(2)."""
    padded = [ctypes.c_ulong(v) if isinstance(v, int) else v for v in (*values, 0, 0, 0, 0)[:4]]
    return check(libc.prctl(option, *padded))


def syscall(number: int, *values: object) -> int:
    """syscall(2)."""
    return check(libc.syscall(ctypes.c_long(number), *values))


def close_range(first: int, last: int) -> None:
    """close_range(2): both ends are closed too."""
    syscall(CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(last), ctypes.c_uint(0))


def open_detached(folder: Path) -> int:
    """open_tree(2): a descriptor of a folder that has nothing above it, `..` leads nowhere."""
    folder_descriptor = ctypes.c_int(FROM_WORKING_FOLDER)
    flags = ctypes.c_uint(CLONE_TREE | RECURSIVE | os.O_CLOEXEC)
    return syscall(OPEN_TREE, folder_descriptor, os.fsencode(folder), flags)


def unshare(flags: int) -> None:
    """unshare(2)."""
    check(libc.unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """setns(2)."""
    check(libc.setns(descriptor, kind))


def mount(kind: str, target: Path, flags: int, options: str = "") -> None:
    """mount(2), of something that has no source."""
    arguments = [kind.encode(), os.fsencode(target), kind.encode()]
    check(libc.mount(*arguments, ctypes.c_ulong(flags), options.encode()))


def unmount(target: Path, flags: int) -> None:
    """umount2(2)."""
    check(libc.umount2(os.fsencode(target), ctypes.c_int(flags)))
