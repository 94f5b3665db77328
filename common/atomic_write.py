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
    temporary = write_temporary(file, content, mode=mode, durable=durable)
    try:
        os.replace(temporary, file)
    except BaseException:
        remove(temporary)
        raise


def write_temporary(
    file: Path, content: bytes, *, mode: int = 0o666, durable: bool = False
) -> Path:
    """Write the new content of a file into a temporary file in its folder, and return the path."""
    temporary = file.with_name(f"{file.name}.{get_native_id()}.part")
    # One may be there: of a process that was killed, or a link that someone put there.
    temporary.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        # "x" makes a new file, and follows no link.
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
    except BaseException:
        remove(temporary)
        raise
    return temporary


def remove(temporary: Path) -> None:
    """Remove a temporary file that replaces nothing after all."""
    with suppress(OSError):
        temporary.unlink()
