"""Stores and validates the hidden tests' hints for a term's secret salt."""

import hashlib
from pathlib import Path

import msgspec

from autograder.packaging.fingerprint import fingerprint
from autograder.semester import DIST, Semester, hidden_hints_file
from autograder.zip_archive import write_if_changed
from common.assignment import Assignment, Record


class TermRecord(Record, frozen=True):
    """What the hints of a term were recorded from, and which they are."""

    fingerprint: dict[str, str]
    proving_modules: tuple[str, ...]  # the code that recorded them, for the fingerprint
    hints: str  # the hash of the file


def unfinished_file(fingerprint: str, dist: Path = DIST) -> Path:
    """What says that a new term was asked for and isn't made yet."""
    return dist / f"term-{fingerprint}" / "unfinished"


def record_file(assignment: Assignment, semester: Semester, dist: Path = DIST) -> Path:
    """Where it says what a secret term's hints were recorded from."""
    return hidden_hints_file(assignment, semester, dist).with_suffix(".json")


def write_term(
    assignment: Assignment,
    semester: Semester,
    hints: bytes,
    sources: dict[str, str],
    proving_modules: tuple[str, ...],
    dist: Path = DIST,
) -> None:
    """Keep the hints of a secret term, and the fingerprint of what they were recorded from."""
    record = TermRecord(sources, proving_modules, hashlib.sha256(hints).hexdigest())
    write_if_changed(hidden_hints_file(assignment, semester, dist), hints)
    encoded = msgspec.json.format(msgspec.json.encode(record)) + b"\n"
    write_if_changed(record_file(assignment, semester, dist), encoded)


def term_hints(assignment: Assignment, semester: Semester, dist: Path = DIST) -> bytes | None:
    """The hints that a secret term's zip carries; None where they are missing or out of date."""
    try:
        hints = hidden_hints_file(assignment, semester, dist).read_bytes()
        content = record_file(assignment, semester, dist).read_bytes()
        record = msgspec.json.decode(content, type=TermRecord)
        now = fingerprint(assignment, record.proving_modules)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    current = (record.fingerprint, record.hints) == (now, hashlib.sha256(hints).hexdigest())
    return hints if current else None
