"""Deletes folders that student code wrote to, however deep or write-protected."""

import os
import secrets
from contextlib import suppress
from itertools import count
from pathlib import Path

FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: str | Path) -> None:
    """Remove a folder with all that is in it. What the system doesn't let us remove stays.

    Folders inside are moved to the top and emptied there, one by one: no recursion, no long path.
    """
    with suppress(OSError):
        top = open_folder(folder)
        try:
            empty(top)
        finally:
            os.close(top)
    with suppress(OSError):
        os.rmdir(folder)


def empty(top: int) -> None:
    """Remove all that is in an open folder."""
    prefix, numbers = secrets.token_hex(8), count()
    waiting = remove_files(top)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            inner = open_folder(name, top)
            try:
                for each in remove_files(inner):
                    new_name = f"{prefix}-{next(numbers)}"
                    with suppress(OSError):
                        os.close(open_folder(each, inner))  # only what is ours to write to moves
                        os.rename(each, new_name, src_dir_fd=inner, dst_dir_fd=top)
                        waiting.append(new_name)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def remove_files(folder: int) -> list[str]:
    """Remove what is no folder from an open folder; the names of the folders in it."""
    folders = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            folders.append(name)
        except OSError:  # it stays, and so does what it is in
            continue
    return folders


def open_folder(name: str | Path, parent: int | None = None) -> int:
    """A descriptor of a folder, made ours to list and change; a link is not followed."""
    way = os.open(name, os.O_PATH | FOLDER, dir_fd=parent)
    try:
        with suppress(OSError):
            os.chmod(f"/proc/self/fd/{way}", 0o700)
        return os.open(f"/proc/self/fd/{way}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(way)
