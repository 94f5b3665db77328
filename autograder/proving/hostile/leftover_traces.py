"""Detects what a submission left behind: files, processes, shared memory."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder.proving.process_table import Process, descendants_of, process_table

# Every attack that chooses a name of its own, for a file or a process, puts this into it.
MARKER = "hostile"
DYING_SECONDS = 5.0
WORLD_WRITABLE = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")))
SHARED = tuple(Path("/proc/sysvipc") / kind for kind in ("shm", "sem", "msg"))

Snapshot = dict[str, tuple[Any, ...]]


def snapshot(folder: Path, left_out: Iterable[Path] = ()) -> Snapshot:
    """All that is known of every file in a folder without reading it."""
    skipped = set(left_out)
    found: Snapshot = {}
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        if place in skipped:
            continue
        status = place.lstat()
        changed = 0 if place == folder else status.st_mtime_ns
        found[str(place)] = (
            status.st_mode,
            status.st_size,
            changed,
            status.st_uid,
            status.st_nlink,
        )
        if place.is_dir() and not place.is_symlink():
            waiting += place.iterdir()
    return found


def differences(before: Snapshot, after: Snapshot) -> list[str]:
    """The files that were added, removed or changed."""
    return sorted(
        place for place in before.keys() | after.keys() if before.get(place) != after.get(place)
    )


def leftover_files(uid: int | None, others: Iterable[Path] = ()) -> list[str]:
    """Files of the child or of an attack in other folders, or in world-writable ones."""
    found = []
    for folder in (*WORLD_WRITABLE, *others):
        with suppress(OSError):
            for item in folder.iterdir():
                with suppress(OSError):  # it is gone again
                    if item.lstat().st_uid == uid or MARKER in item.name:
                        found.append(str(item))
    return found + list(shared_memory(uid))


def shared_memory(uid: int | None) -> Iterator[str]:
    """Segments, semaphores and queues of a user in the old way of sharing them."""
    for table in SHARED:
        with suppress(OSError):
            head, *lines = [line.split() for line in table.read_text().splitlines()]
            for line in lines:
                if dict(zip(head, line, strict=False)).get("uid") == str(uid):
                    yield f"{table.name} {' '.join(line)}"


def survivors(uid: int | None, ancestor: int, expected: set[int], elsewhere: set[int]) -> list[str]:
    """Processes of a user, of an attack, or below an ancestor, but for those that belong there.

    Attacks below a process in `elsewhere` are still being graded there, by others. When these kill
    them, their parents are gone first: on a busy machine it takes a while until they are, too.
    """
    table = process_table()
    owned = [process for process in running_in(table) if process.uid == uid]
    marked = marked_processes(table, uid, elsewhere)
    end = time.monotonic() + DYING_SECONDS
    while marked and time.monotonic() < end:
        time.sleep(0.1)
        still = {process.pid for process in marked_processes(process_table(), uid, elsewhere)}
        marked = [process for process in marked if process.pid in still]
    below = [pid for pid in descendants_of(ancestor, table) if pid not in expected]
    return [
        *(f"{process.pid} {process.name}" for process in (*owned, *marked)),
        *(f"{pid} below the judge" for pid in below),
    ]


def running_in(table: Mapping[int, Process]) -> list[Process]:
    """The processes of a table that have not ended."""
    return [process for process in table.values() if not process.zombie]


def marked_processes(
    table: Mapping[int, Process], uid: int | None, elsewhere: set[int]
) -> list[Process]:
    """Processes of attacks that another user runs, but for those that are graded elsewhere."""
    graded_elsewhere = {pid for other in elsewhere for pid in descendants_of(other, table)}
    return [
        process
        for process in running_in(table)
        if process.uid != uid and MARKER in process.name and process.pid not in graded_elsewhere
    ]
