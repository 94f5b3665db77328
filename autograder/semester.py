"""Draws, stores and reads a term's secret salt (.semester), which seeds the tests' inputs."""

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from common.assignment import ROOT, Assignment, Record
from common.atomic_write import write_atomically
from common.errors import CourseError
from common.testing.graded_tests import PRACTICE_SALT

# In a checkout it is a dot-file that git ignores; in a built zip it has no dot.
FILES = (ROOT / ".semester", ROOT / "semester")
DIST = ROOT / "dist"
PRACTICE_NOTE = "practice term: all inputs are public"


class Semester(Record, frozen=True):
    """A name for people, and the salt."""

    name: str
    salt: str

    @property
    def fingerprint(self) -> str:
        """A short hash that distinguishes salts without revealing them."""
        return hashlib.sha256(f"fingerprint/{self.salt}".encode()).hexdigest()[:8]

    @property
    def is_practice(self) -> bool:
        """Whether everybody knows the salt."""
        return self.salt == PRACTICE_SALT

    @property
    def label(self) -> str:
        """The term as messages name it."""
        if self.is_practice:
            return f"the practice term (salt {self.fingerprint})"
        return f"term '{self.name}' (salt {self.fingerprint})"

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


PRACTICE = Semester("practice", PRACTICE_SALT)


def hints_folder(assignment: Assignment, semester: Semester, dist: Path = DIST) -> Path:
    """Where the hints lie, which fit one salt.

    Beside the tests lie those of a zip's own term, and in a checkout those of the practice term.
    """
    if FILES[1].is_file() or semester.is_practice:
        return ROOT / "tests" / assignment.name
    return dist / f"term-{semester.fingerprint}" / assignment.short


def new_semester(name: str, file: Path = FILES[0]) -> Semester:
    """Draw a new secret, and keep it where only its owner can read it.

    The secret of an earlier term is kept as a backup: its regrades need it.
    """
    semester = Semester(name, secrets.token_hex(16))
    if file.is_file():
        write_secret(backup_file(salt_of(file), file), file.read_bytes())
    write_secret(file, semester.to_bytes())
    return semester


def write_secret(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read, and that nothing could bring back."""
    write_atomically(file, content, mode=0o600, durable=True)


def backup_file(fingerprint: str, file: Path = FILES[0]) -> Path:
    """Where the secret of an earlier term is kept."""
    return file.with_name(f"{file.name}-{fingerprint}")


def salt_of(file: Path) -> str:
    """What to call the secret of a file, which may be damaged."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(file.read_bytes(), type=Semester).fingerprint
    return hashlib.sha256(file.read_bytes()).hexdigest()[:8]


def label_of(fingerprint: str) -> str:
    """A term as messages name it, of which only the salt's fingerprint is known."""
    practice = fingerprint == PRACTICE.fingerprint
    return PRACTICE.label if practice else f"a term with salt {fingerprint}"


def how_to_restore(fingerprint: str, now: Semester) -> str:
    """What to do to bring a term back to a checkout, and lose no other."""
    secret, present = FILES[0].name, backup_file(now.fingerprint).name
    wanted = backup_file(fingerprint, FILES[0])
    if fingerprint == PRACTICE.fingerprint:
        return f"run `mv {secret} {present}`"
    if wanted.is_file():
        keep = "" if now.is_practice else f"mv {secret} {present} && "
        return f"run `{keep}cp {wanted.name} {secret}`"
    keep = "" if now.is_practice else f"run `cp {secret} {present}`, then "
    return f"{keep}copy the backup of that term's {secret} here"


def read_semester() -> Semester:
    """The term of this checkout or zip; the practice term where there is no file."""
    for file in FILES:
        if file.is_file():
            return read_file(file)
    return PRACTICE


def read_file(file: Path) -> Semester:
    """The term that a file holds. A checkout's own file must hold a secret."""
    try:
        semester = msgspec.json.decode(file.read_bytes(), type=Semester)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CourseError(
            f"{file.name} is damaged ({error}). Restore it from a backup, or draw a new salt with "
            "`make semester NEW=1`, which keeps the damaged file beside it."
        ) from None
    if semester.is_practice and file == FILES[0]:
        raise CourseError(
            f"{file.name} holds the practice salt, which is public. Delete the file to use "
            "the practice term, or draw a secret salt with `make semester NEW=1`."
        )
    return semester
