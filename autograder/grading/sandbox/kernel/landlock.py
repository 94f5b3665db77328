"""Restricts a process to an allowlist of files with Landlock: no reading of hidden tests."""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

from autograder.grading.sandbox.kernel.syscalls import syscall

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 7, 1 << 8
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
READ = READ_FILE | READ_DIR
DEVICE = READ_FILE | WRITE_FILE | IOCTL_DEVICE
WRITE = READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | TRUNCATE


def version() -> int:
    """The kernel's Landlock version; 0 where there is none."""
    try:
        return syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(VERSION_FLAG))
    except OSError:
        return 0


def handled_rights(abi: int) -> tuple[int, int, int]:
    """All that this version can deny: to files, to TCP, to the world outside."""
    files = (1 << 13) - 1
    files |= (1 << 13) * (abi >= 2) | TRUNCATE * (abi >= 3) | IOCTL_DEVICE * (abi >= 5)
    return files, 3 * (abi >= 4), 3 * (abi >= 6)


def prepare(
    listable: Iterable[Path],
    readable: Iterable[Path],
    writable: Iterable[Path],
    devices: Iterable[Path] = (),
) -> int:
    """Rules that leave only these files; made while all of them can still be reached."""
    files, network, scoped = handled_rights(version())
    ruleset = new_ruleset(files, network, scoped)
    rules = ((listable, READ_DIR), (readable, READ), (writable, WRITE), (devices, DEVICE))
    for paths, rights in rules:
        for path in paths:
            allow(ruleset, path, rights & files)
    return ruleset


def writable_only(paths: Iterable[Path]) -> int:
    """Rules that leave reading as it is, and writing to these files."""
    files, _, _ = handled_rights(version())
    files &= ~(EXECUTE | READ | IOCTL_DEVICE)
    ruleset = new_ruleset(files)
    for path in paths:
        allow(ruleset, path, WRITE & files)
    return ruleset


def new_ruleset(files: int, network: int = 0, scoped: int = 0) -> int:
    """Rules that deny those rights, and as yet leave nothing."""
    attributes = struct.pack("=QQQ", files, network, scoped)
    size = 24 if scoped else 16 if network else 8
    return syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint(0))


def enter(ruleset: int) -> None:
    """Deny this process what the rules don't leave, on top of what it is denied already."""
    syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def allow(ruleset: int, path: Path, rights: int) -> None:
    """Add one path, and all below it. A path that isn't there needs no rule."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(PATH_BENEATH), rule, ctypes.c_uint(0))
    finally:
        os.close(descriptor)
