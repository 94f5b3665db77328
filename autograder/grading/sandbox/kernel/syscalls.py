"""Linux system calls that Python doesn't wrap: prctl, unshare, mounts, close_range."""

import ctypes
import os
import struct
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

CLOSE_RANGE, OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 436, 428, 429, 442
FROM_WORKING_FOLDER, CLONE_TREE, RECURSIVE, EMPTY_PATH = -100, 1, 0x8000, 0x1000
MOVE_FROM_DESCRIPTOR = 4
READ_ONLY = 1
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


def move_mount(descriptor: int, target: Path) -> None:
    """move_mount(2): mount what open_detached has opened."""
    here = ctypes.c_int(FROM_WORKING_FOLDER)
    arguments = (ctypes.c_int(descriptor), b"", here, os.fsencode(target))
    syscall(MOVE_MOUNT, *arguments, ctypes.c_uint(MOVE_FROM_DESCRIPTOR))


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


def set_read_only(where: Path | int, read_only: bool) -> None:
    """mount_setattr(2) on the mount at a path, or of a descriptor, and on all below it."""
    attributes = struct.pack("=QQQQ", *((READ_ONLY, 0) if read_only else (0, READ_ONLY)), 0, 0)
    at, path = (where, b"") if isinstance(where, int) else (FROM_WORKING_FOLDER, os.fsencode(where))
    flags = RECURSIVE | (EMPTY_PATH if isinstance(where, int) else 0)
    arguments = (ctypes.c_int(at), path, ctypes.c_uint(flags), attributes)
    syscall(MOUNT_SETATTR, *arguments, ctypes.c_size_t(len(attributes)))


def unmount(target: Path, flags: int) -> None:
    """umount2(2)."""
    check(libc.umount2(os.fsencode(target), ctypes.c_int(flags)))
