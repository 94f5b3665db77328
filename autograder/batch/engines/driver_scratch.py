"""The scratch folder of a batch's driver: locked while it runs, cleaned up if it dies.

The lock ends with its process, however that ends; a pid may be another's by then.
"""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from autograder.grading.sandbox.kernel.tree_removal import remove_tree

PREFIX = "conv2gpt-driver-"
LOCK = ".lock"
MODE = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """A folder that no other user can enter, locked until it is removed."""

    def __init__(self) -> None:
        while True:
            self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            with suppress(FileNotFoundError):  # another driver took it for a leftover: a new one
                self.lock = os.open(self.folder / LOCK, MODE, 0o600)
                with suppress(OSError):  # where there are no locks, nobody clears anything
                    fcntl.flock(self.lock, fcntl.LOCK_EX)
                if is_there(self.folder / LOCK, self.lock):
                    return
                os.close(self.lock)

    def remove(self) -> None:
        """Remove the folder, then let go of it."""
        remove_tree(self.folder)
        os.close(self.lock)


def is_there(file: Path, opened: int) -> bool:
    """Whether a file that we have opened still lies where it was."""
    with suppress(OSError):
        return os.path.samestat(file.lstat(), os.fstat(opened))
    return False


def clear_leftovers() -> None:
    """Remove the folders of drivers that are dead: those of ours that nobody holds locked."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            with suppress(OSError):  # another driver's, or gone meanwhile
                if entry.name.startswith(PREFIX) and is_ours(entry):
                    clear(Path(entry.path))


def is_ours(entry: os.DirEntry[str]) -> bool:
    """Whether this is a folder, no link to one, and this user's."""
    return (
        entry.is_dir(follow_symlinks=False)
        and entry.stat(follow_symlinks=False).st_uid == os.getuid()
    )


def clear(folder: Path) -> None:
    """Remove a folder; an error if its driver lives."""
    lock = os.open(folder / LOCK, MODE, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_there(folder / LOCK, lock):  # or another has cleared it, and a third made another
            remove_tree(
                folder
            )  # while it is locked: a driver that has just made it waits, and sees
    finally:
        os.close(lock)
