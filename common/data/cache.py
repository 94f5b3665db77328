"""Caches prepared data in the user's cache folder, verified by hash.

A process can also hold it in memory, for forks that have no access to that folder.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from common.atomic_write import write_atomically
from common.errors import CourseError

held: dict[str, bytes] | None = None  # by hash; None: nothing is held


def hold_in_memory() -> None:
    """From now on, hold in memory what is loaded in this process or in a fork of it."""
    global held
    held = {}


def cache_folder() -> Path | None:
    """$CONV2GPT_CACHE, else conv2gpt in the user's cache folder; None where there is no home."""
    if named := os.environ.get("CONV2GPT_CACHE"):
        return Path(named)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(caches):  # the XDG standard has relative ones ignored
        return Path(caches) / "conv2gpt"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "conv2gpt"
    return None


def cached(name: str, sha256: str, make: Callable[[], bytes]) -> bytes:
    """The content with this hash: from memory, from the cache, or prepared again and cached.

    A damaged file counts as none. A folder that can't be read or written costs time only.
    """
    if held is not None and sha256 in held:
        return held[sha256]
    content = from_folder(name, sha256, make)
    if held is not None:
        held[sha256] = content
    return content


def from_folder(name: str, sha256: str, make: Callable[[], bytes]) -> bytes:
    """The content from the cache's folder, or prepared again and cached there."""
    folder = cache_folder()
    file = folder / f"{name}-{sha256[:12]}" if folder else None
    if file and (found := read_checked(file, sha256)) is not None:
        return found
    content = make()
    if digest(content) != sha256:
        raise CourseError(
            f"The prepared data of {name} has the wrong SHA-256: "
            "please report it to the course staff."
        )
    if file:
        store(file, content)
    return content


def read_checked(file: Path, sha256: str) -> bytes | None:
    """The content of a file, or None if it isn't there or isn't what it should be."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return content if digest(content) == sha256 else None


def store(file: Path, content: bytes) -> None:
    """Keep a file, if that can be done."""
    with suppress(OSError):
        write_atomically(file, content)


def digest(content: bytes) -> str:
    """The SHA-256 of some bytes, in hex."""
    return hashlib.sha256(content).hexdigest()
