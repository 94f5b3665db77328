"""The secret that hidden tests draw their inputs from: one for each semester."""

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec

from common.assignment import ROOT, Record
from common.errors import CourseError

# In a checkout it is a dot-file that git ignores; in a built zip it has no dot.
FILES = (ROOT / ".semester", ROOT / "semester")


class Semester(Record, frozen=True):
    """What the file holds."""

    name: str
    salt: str


@dataclass(frozen=True)
class Salt:
    """The secret, and the short name by which results may mention it."""

    secret: str

    @property
    def fingerprint(self) -> str:
        """A hash that tells two salts apart and gives neither away."""
        return hashlib.sha256(f"fingerprint/{self.secret}".encode()).hexdigest()[:8]


def new_semester(name: str, file: Path = FILES[0]) -> Semester:
    """Draw a new secret, and keep it where only its owner can read it."""
    semester = Semester(name, secrets.token_hex(16))
    file.touch(mode=0o600)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(semester)) + b"\n")
    return semester


def read_salt() -> Salt:
    """The salt of this checkout or zip; a checkout without one gets one."""
    for file in FILES:
        if file.is_file():
            try:
                return Salt(msgspec.json.decode(file.read_bytes(), type=Semester).salt)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CourseError(
                    f"{file.name} is damaged ({error}); `make semester` makes a new one."
                ) from None
    return Salt(new_semester("first").salt)
