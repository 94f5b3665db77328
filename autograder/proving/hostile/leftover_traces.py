"""What a submission may have left on the machine: files, changes, processes, shared memory."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

# Every attack that chooses a name of its own, for a file or a process, puts this into it.
MARKER = "hostile"
WORLD_WRITABLE = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")))
SHARED = tuple(Path("/proc/sysvipc") / kind for kind in ("shm", "sem", "msg"))

Snapshot = dict[str, tuple]


def snapshot(folder: Path, left_out: Iterable[Path] = ()) -> Snapshot:
    """All that can be told of every file in a folder without reading it."""
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


def strays(uid: int | None, others: Iterable[Path] = ()) -> list[str]:
    """What is the child's or an attack's in other places, or where everybody may write."""
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

    Attacks below a process in `elsewhere` are still being graded there, by others.
    """
    parents, owned, marked = {}, [], {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            status = dict(
                line.split(":\t", 1)
                for line in (folder / "status").read_text().splitlines()
                if "\t" in line
            )
            pid = int(folder.name)
            parents[pid] = int(status["PPid"])
            if status["State"].startswith("Z"):
                continue
            if int(status["Uid"].split()[0]) == uid:
                owned.append(f"{pid} {status['Name']}")
            elif MARKER in status["Name"]:
                marked[pid] = f"{pid} {status['Name']}"
    below = [pid for pid in parents if pid not in expected and descends(pid, ancestor, parents)]
    loose = [
        name
        for pid, name in marked.items()
        if not any(descends(pid, other, parents) for other in elsewhere)
    ]
    return owned + loose + [f"{pid} below the judge" for pid in below]


def descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    """Whether a process was started, however indirectly, by another."""
    while pid := parents.get(pid, 0):
        if pid == ancestor:
            return True
    return False
