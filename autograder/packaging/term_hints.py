"""Stores and validates the hints for a term's secret salt."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from autograder.packaging.fingerprint import fingerprint
from autograder.semester import DIST, Semester, hints_folder
from autograder.zip_archive import write_if_changed
from common.assignment import Assignment, Record
from common.testing.feedback.hints import HINT_FILES


class TermRecord(Record, frozen=True):
    """What the hints of a term were recorded from, and which they are."""

    fingerprint: dict[str, str]
    proving_modules: tuple[str, ...]  # the code that recorded them, for the fingerprint
    hints: dict[str, str]  # the hash of each file


def unfinished_file(fingerprint: str, dist: Path = DIST) -> Path:
    """What says that a new term was asked for and isn't made yet."""
    return dist / f"term-{fingerprint}" / "unfinished"


def record_file(assignment: Assignment, semester: Semester, dist: Path = DIST) -> Path:
    """Where it says what a secret term's hints were recorded from."""
    return hints_folder(assignment, semester, dist) / "record.json"


def write_term(
    assignment: Assignment,
    semester: Semester,
    hints: Mapping[str, bytes],
    sources: dict[str, str],
    proving_modules: tuple[str, ...],
    dist: Path = DIST,
) -> None:
    """Keep the hints of a secret term, and the fingerprint of what they were recorded from."""
    record = TermRecord(sources, proving_modules, hashes(hints))
    for name, content in hints.items():
        write_if_changed(hints_folder(assignment, semester, dist) / name, content)
    encoded = msgspec.json.format(msgspec.json.encode(record)) + b"\n"
    write_if_changed(record_file(assignment, semester, dist), encoded)


def term_hints(
    assignment: Assignment, semester: Semester, dist: Path = DIST
) -> dict[str, bytes] | None:
    """The hint files of a secret term's zip; None where they are missing or out of date."""
    try:
        folder = hints_folder(assignment, semester, dist)
        hints = {name: (folder / name).read_bytes() for name in HINT_FILES}
        content = record_file(assignment, semester, dist).read_bytes()
        record = msgspec.json.decode(content, type=TermRecord)
        now = fingerprint(assignment, record.proving_modules)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return hints if (record.fingerprint, record.hints) == (now, hashes(hints)) else None


def hashes(hints: Mapping[str, bytes]) -> dict[str, str]:
    """The hash of each hint file, by its name."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in hints.items()}
