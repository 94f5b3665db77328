"""Tries, from inside, what a confined child must not be able to do."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

from autograder.grading.confinement.plan import Attempts

FILES, RESULTS, NETWORK, PROGRAMS = "files", "results", "network", "programs"


def refused(action: Callable[[], object]) -> bool:
    """Whether the system says no."""
    try:
        action()
    except OSError:
        return True
    return False


def probe(attempts: Attempts) -> dict[str, bool]:
    """Try each thing for real; True where the system said no."""

    def read(path: str) -> Callable[[], object]:
        return lambda: Path(path).open("rb").close()

    def write_into(folder: str) -> Callable[[], object]:
        return (Path(folder) / "probe").touch

    def connect() -> None:
        with socket.create_connection(("127.0.0.1", attempts.connect_to), timeout=0.2):
            pass

    return {
        FILES: all(refused(read(path)) for path in attempts.read),
        RESULTS: all(refused(write_into(folder)) for folder in attempts.write_into),
        NETWORK: refused(connect),
        PROGRAMS: refused(lambda: os.execv("/bin/true", ["true"])),
    }
