"""The semester's secret salt, which hidden tests draw their inputs from."""

import hashlib
import secrets
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from common.assignment import ROOT, Record
from common.errors import CourseError

# In a checkout it is a dot-file that git ignores; in a built zip it has no dot.
FILES = (ROOT / ".semester", ROOT / "semester")


class Semester(Record, frozen=True):
    """A name for people, and the secret."""

    name: str
    salt: str

    @property
    def fingerprint(self) -> str:
        """A short hash that tells two salts apart and gives neither away."""
        return hashlib.sha256(f"fingerprint/{self.salt}".encode()).hexdigest()[:8]

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


def new_semester(name: str, file: Path = FILES[0]) -> Semester:
    """Draw a new secret, and keep it where only its owner can read it."""
    semester = Semester(name, secrets.token_hex(16))
    if file.is_file():
        put_away(file)
    file.touch(mode=0o600)
    file.write_bytes(semester.to_bytes())
    return semester


def put_away(file: Path) -> Path:
    """Keep the secret of a term that is over: with it, its grades can be repeated."""
    age = hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        age = msgspec.json.decode(file.read_bytes(), type=Semester).fingerprint
    return file.rename(file.with_name(f"{file.name}-{age}"))


def read_semester() -> Semester:
    """The semester of this checkout or zip; a checkout without one gets one."""
    for file in FILES:
        if file.is_file():
            try:
                return msgspec.json.decode(file.read_bytes(), type=Semester)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CourseError(
                    f"{file.name} is damaged ({error}); `make semester` makes a new one."
                ) from None
    print(
        "There was no .semester here: a new secret salt was drawn. To grade with the hidden inputs "
        "of a term that has begun, copy that term's .semester here.",
        file=sys.stderr,
    )
    return new_semester("first")
