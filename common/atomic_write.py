"""Writes a file in one step, so that a reader never sees half of it; never through a link."""

import os
from contextlib import suppress
from pathlib import Path
from threading import get_native_id


def write_atomically(
    file: Path, content: bytes, *, mode: int = 0o666, durable: bool = False
) -> None:
    """Replace a file, or leave it as it is: when killed too, and however many write it at once.

    durable: it must also outlast a power failure, at the price of several milliseconds.
    """
    beside = write_beside(file, content, mode=mode, durable=durable)
    try:
        os.replace(beside, file)
    except BaseException:
        remove(beside)
        raise


def write_beside(file: Path, content: bytes, *, mode: int = 0o666, durable: bool = False) -> Path:
    """Write what is to take a file's place; where it lies until then."""
    beside = file.with_name(f"{file.name}.{get_native_id()}.part")
    beside.unlink(missing_ok=True)  # of a process that was killed, or a link that someone put there
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        # "x" makes a new file, and follows no link.
        with open(beside, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
    except BaseException:
        remove(beside)
        raise
    return beside


def remove(beside: Path) -> None:
    """Remove what takes no file's place after all."""
    with suppress(OSError):
        beside.unlink()
