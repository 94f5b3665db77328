"""Remembers what gradings gave, by the hash of everything that decides it."""

import hashlib
import zipfile
from pathlib import Path

import msgspec

from autograder.grading.worker import Job, Reply
from autograder.packaging.archive import write_if_changed
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


class Memory:
    """Replies of earlier runs. Only those asked for again are kept."""

    def __init__(self, file: Path, grader: str) -> None:
        self.file = file
        self.grader = grader
        self.old: dict[str, Reply] = {}
        self.used: dict[str, Reply] = {}
        try:
            self.old = msgspec.msgpack.decode(file.read_bytes(), type=dict[str, Reply])
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            self.old = {}

    def key(self, job: Job) -> str:
        """A hash of the grader and the job."""
        encoded = msgspec.msgpack.encode(job, order="deterministic")
        return hashlib.sha256(self.grader.encode() + encoded).hexdigest()[:32]

    def recall(self, job: Job) -> Reply | None:
        """What this very job gave before."""
        key = self.key(job)
        if key in self.old:
            self.used[key] = self.old[key]
        return self.used.get(key)

    def keep(self, job: Job, reply: Reply) -> None:
        """Remember what a job gave."""
        self.used[self.key(job)] = reply

    def save(self) -> None:
        """Write it all down."""
        write_if_changed(self.file, msgspec.msgpack.encode(self.used))
