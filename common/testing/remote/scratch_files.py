"""Remote operations on files that student code saves and loads."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.errors import Failure
from common.student_code.values import Handle


def scratch_path(student: Handle, name: str) -> str:
    """A path of that name in a private folder that the student's code may write to.

    There is one such folder for each test. It is gone when the test has ended.
    """
    return student._face.operate("scratch_path", "scratch_path", (name,), {})


def scratch_bytes(student: Handle, path: str, limit: int) -> bytes:
    """What the student's code wrote to a scratch path; a Failure if it is nothing, or too much."""
    content = student._face.operate("scratch_bytes", "scratch_bytes", (path, limit + 1), {})
    if not isinstance(content, bytes):
        raise Failure(
            "The file was not written.",
            f"It should be {path}.",
            help="Write to exactly the path passed to the call.",
        )
    if len(content) > limit:
        raise Failure(f"The file is larger than the limit of {limit:,} bytes.", f"It is {path}.")
    return content


def write_scratch(student: Handle, path: str, content: bytes) -> None:
    """Put a file there, for the student's code to read."""
    student._face.operate("write_scratch", "write_scratch", (path, content), {})


class ScratchFolder:
    """The folder of one test, made when it is first asked for."""

    def __init__(self) -> None:
        self.folder: Path | None = None

    def path(self, name: str) -> str:
        if self.folder is None:
            # A child has its home in TMPDIR, the only folder that it may write to.
            self.folder = Path(tempfile.mkdtemp(prefix="scratch-"))
        return str(self.folder / name)

    def remove(self) -> None:
        """Forget it, with all that is in it."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None


FOLDER = ScratchFolder()


def _scratch_bytes(path: str, count: int) -> bytes | None:
    try:
        with open(path, "rb") as stream:
            return stream.read(count)
    except OSError:
        return None


def _write_scratch(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


SCRATCH_OPERATIONS: dict[str, Callable[..., Any]] = {
    "scratch_path": FOLDER.path,
    "scratch_bytes": _scratch_bytes,
    "write_scratch": _write_scratch,
}
