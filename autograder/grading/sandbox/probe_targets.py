"""Sets up the files and sockets that a probe must fail to reach."""

import os
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.grading.sandbox.wire.frames import readable

EXIT_SECONDS = 1.0


def files_among(paths: Iterable[Path]) -> Iterator[Path]:
    """The files named, and one file of each folder named: the first, as far up as there is one.

    Not the one that a link leads to: students' folders may hold links to what all may read.
    """
    for path in paths:
        if path.is_file():
            yield path
            continue
        for folder, folders, names in os.walk(path):  # no further: there may be thousands
            folders.sort()
            files = [Path(folder) / name for name in sorted(names)]
            found = [file for file in files if file.is_file() and not file.is_symlink()]
            if found:
                yield found[0]
                break


def unread_file(folder: Path) -> Path:
    """A file that any user can read, with an access time that the next reading would change."""
    file = folder / "unread"
    file.touch(mode=0o644)
    file.chmod(0o644)  # whatever the umask is
    os.utime(file, (0, 0))
    return file


@contextmanager
def listening() -> Iterator[tuple[int, str]]:
    """A port and an abstract socket of this machine, for a child to reach if it can."""
    name = f"conv2gpt-{os.getpid()}-{threading.get_ident()}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as other:
        other.bind(f"\0{name}")
        other.listen()
        yield listener.getsockname()[1], name


def all_exited(output: int) -> bool:
    """Whether no process holds that output open any more. Closes it."""
    try:
        while readable([output], EXIT_SECONDS):
            if not os.read(output, 1 << 16):
                return True
        return False
    finally:
        os.close(output)
