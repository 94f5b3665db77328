"""Remembers what gradings gave, by the hash of everything that decides it."""

import hashlib
import zipfile
from pathlib import Path

import msgspec

from autograder.grading.worker import Job, Reply
from autograder.packaging.archive import write_if_changed
from common.assignment import Record
from common.hints import HIDDEN_HINTS, PUBLIC_HINTS

# Members of a zip that change what is said about a failure, and never whether it is one.
WITHOUT_WEIGHT = (PUBLIC_HINTS, HIDDEN_HINTS, "semester")


def grader_fingerprint(archive: Path) -> str:
    """A hash of a built zip, but for what doesn't decide a grade."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(archive) as opened:
        for name in sorted(opened.namelist()):
            if Path(name).name not in WITHOUT_WEIGHT:
                digest.update(name.encode() + b"\0" + opened.read(name))
    return digest.hexdigest()


class Remembered(Record, frozen=True):
    """What the file holds: the replies of one grader."""

    grader: str
    replies: dict[str, Reply]


class Memory:
    """The replies of earlier runs of the same grader."""

    def __init__(self, file: Path, grader: str) -> None:
        self.file = file
        self.grader = grader
        self.replies: dict[str, Reply] = {}
        try:
            content = msgspec.msgpack.decode(file.read_bytes(), type=Remembered)
        except (OSError, msgspec.DecodeError):
            return
        if content.grader == grader:
            self.replies = content.replies

    def key(self, job: Job) -> str:
        """A hash of the job."""
        encoded = msgspec.msgpack.encode(job, order="deterministic")
        return hashlib.sha256(encoded).hexdigest()[:32]

    def recall(self, job: Job) -> Reply | None:
        """What this very job gave before."""
        return self.replies.get(self.key(job))

    def keep(self, job: Job, reply: Reply) -> None:
        """Remember what a job gave."""
        self.replies[self.key(job)] = reply

    def save(self) -> None:
        """Write it all down."""
        content = Remembered(self.grader, dict(sorted(self.replies.items())))
        write_if_changed(self.file, msgspec.msgpack.encode(content))
