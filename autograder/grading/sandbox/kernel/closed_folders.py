"""Opens libraries below folders that other users can't enter, and nothing else that is there.

The interpreter may lie in a home that only its owner can enter, perhaps with the tests beside it.
A child with another uid could use what was imported before, but read no source: `inspect`,
tracebacks, and parts of PyTorch that compile their own source would fail.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from autograder.grading.sandbox.kernel.home_folder import (
    DETACH,
    NO_DEVICES,
    NO_PROGRAMS,
    NO_SUID,
)
from autograder.grading.sandbox.kernel.syscalls import (
    mount,
    move_mount,
    open_detached,
    set_read_only,
    unmount,
)


def reachable_by_others(folder: Path) -> bool:
    """Whether any user may enter the folder and all above it."""
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents))


def outermost_closed(folder: Path) -> Path:
    """The first folder on the way to this one that other users can't enter."""
    way = (*reversed(folder.parents), folder)
    return next(each for each in way if not reachable_by_others(each))


def open_libraries(libraries: Iterable[Path]) -> None:
    """Cover each closed folder with one that holds its libraries alone, at their old paths.

    For a process with mounts of its own: once, before it forks. What a closed folder holds besides
    is out of reach for this process too. Where the kernel refuses (OSError), or a library's own
    folder is closed, all stays as it is.
    """
    libraries = list(libraries)
    # Imports name a folder as sys.path does; a link on the way leads to its real path.
    paths = {path for folder in libraries for path in (folder, folder.resolve())}
    contents: dict[Path, dict[Path, int]] = {}
    try:
        for path in sorted(path for path in paths if not reachable_by_others(path)):
            closed = outermost_closed(path)
            if path.parent.is_relative_to(closed) and closed.parent != closed:
                inside = contents.setdefault(closed.resolve(), {})
                inside[path.relative_to(closed)] = open_detached(path)
        for closed, inside in contents.items():
            cover(closed, inside)
    finally:
        for inside in contents.values():
            for descriptor in inside.values():
                os.close(descriptor)


def cover(closed: Path, inside: dict[Path, int]) -> None:
    """Mount an empty folder over a closed one, and detached libraries in it."""
    mount("tmpfs", closed, NO_SUID | NO_DEVICES | NO_PROGRAMS, "size=64k,mode=755")
    umask = os.umask(0o022)
    try:
        for place, descriptor in inside.items():
            (closed / place).mkdir(parents=True, exist_ok=True)
            move_mount(descriptor, closed / place)
        set_read_only(closed, True)
    except OSError:
        unmount(closed, DETACH)
        raise
    finally:
        os.umask(umask)
