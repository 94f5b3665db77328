"""Opens submitted files once, following no symbolic link: what is checked is what is read."""

import errno
import os
import stat
from pathlib import PurePath

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A FIFO or a device must neither make us wait nor become our terminal.
FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)  # a link, a socket


class NotPlain(Exception):
    """A link, a FIFO, a device or the like, where a file or a folder is wanted."""


def open_below(folder: int, name: str, flags: int = FILE) -> int:
    """A descriptor of what lies below an open folder; no part of the name may be a link."""
    *parents, last = PurePath(name).parts or (".",)
    place = os.dup(folder)
    try:
        for part in parents:
            place = replaced(place, part, FOLDER)
        return replaced(place, last, flags)
    except OSError as error:
        if error.errno in NOT_PLAIN:
            raise NotPlain(name) from None
        raise


def replaced(folder: int, name: str, flags: int) -> int:
    """A descriptor of an entry of a folder, which is closed."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def read_below(folder: int, name: str, count: int = -1) -> bytes:
    """The content of a regular file below an open folder that has no other name elsewhere."""
    descriptor = open_below(folder, name)
    try:
        found = os.fstat(descriptor)
        # Another name is as good as a link to a file that must stay secret.
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise NotPlain(name)
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            return stream.read(count)
    finally:
        os.close(descriptor)
