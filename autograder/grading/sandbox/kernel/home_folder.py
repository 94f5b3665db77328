"""Makes a child's home folder: an empty tmpfs of limited size, removed with the child."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from autograder.grading.sandbox.kernel.namespaces import NEW_MOUNT, attempt
from autograder.grading.sandbox.kernel.syscalls import mount, unmount
from autograder.grading.sandbox.kernel.tree_removal import remove_tree

HOME_BYTES = 32 * 1024 * 1024
HOME_FILES = 4096
NO_SUID, NO_DEVICES, NO_PROGRAMS = 1 << 1, 1 << 2, 1 << 3
RECURSIVE, SLAVE, DETACH = 1 << 14, 1 << 19, 1 << 1
# Folders in which every user may leave files.
SHARED = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")))


class Homes:
    """Makes homes. Where mounts can be our own, each is a small file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.mounted: set[Path] = set()
        self.in_memory = attempt(NEW_MOUNT) and self.try_one(folder / f"tried-{os.getpid()}")

    def try_one(self, folder: Path) -> bool:
        """Whether a file system in memory can be mounted, for us alone to see."""
        folder.mkdir(exist_ok=True)
        try:
            mount("none", Path("/"), RECURSIVE | SLAVE)
            self.mount(folder, None)
            unmount(folder, DETACH)
        except OSError:
            return False
        finally:
            folder.rmdir()
        return True

    def mount(self, home: Path, uid: int | None) -> None:
        options = f"size={HOME_BYTES},nr_inodes={HOME_FILES},mode=700"
        if uid is not None:
            options += f",uid={uid},gid={uid}"
        mount("tmpfs", home, NO_SUID | NO_DEVICES | NO_PROGRAMS, options)

    def make(self, home: Path, uid: int | None) -> None:
        """An empty folder that belongs to the child."""
        self.remove(home)
        if self.in_memory:
            with suppress(FileExistsError):  # of a server that was killed; the mount hides it
                os.mkdir(home, 0o700)
            self.mount(home, uid)
            self.mounted.add(home)
            return
        os.mkdir(home, 0o700)
        if uid is not None:
            os.chown(home, uid, uid)

    def remove(self, home: Path) -> None:
        """Take a home away, with all that is in it."""
        if not self.in_memory:
            remove_tree(home)
        elif home in self.mounted:
            unmount(home, DETACH)
            self.mounted.remove(home)
            with suppress(OSError):  # in it was only the mount; the next one may lie there too
                os.rmdir(home)


def too_full(home: Path) -> bool:
    """Whether a home holds more than it may. Looks at no more files than it may hold."""
    taken = 0
    for count, size in enumerate(sizes_below(home)):
        taken += size
        if taken > HOME_BYTES or count >= HOME_FILES:
            return True
    return False


def sizes_below(folder: Path) -> Iterator[int]:
    """The space that each entry takes, in a folder that may change meanwhile."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    yield entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))


def sweep_files(uid: int, shared: Iterable[Path] = SHARED) -> None:
    """Remove what a user has left in folders that are open to all."""
    for folder in shared:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid != uid:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        remove_tree(entry.path)
                    else:
                        Path(entry.path).unlink()
