"""Reads and writes solutions/aN/proof.json, and decides whether it is out of date."""

import hashlib
from contextlib import suppress
from datetime import date
from pathlib import Path

import msgspec
from msgspec.structs import replace

from autograder.packaging.fingerprint import differing
from autograder.proving.proof_findings import Proof
from autograder.proving.proof_fingerprint import proof_fingerprint
from autograder.zip_archive import write_if_changed
from common.assignment import ROOT, Assignment, Record
from common.errors import CourseError
from common.testing.feedback.hints import HINT_FILES

VERSION = 1


class Ledger(Record, frozen=True):
    """The whole of `solutions/aN/proof.json`."""

    version: int
    date: str
    fingerprint: dict[str, str]  # of each part that decides
    hints: dict[str, str]  # the hashes of the hint files that the proof recorded
    proof: Proof


def ledger_file(assignment: Assignment) -> Path:
    """Where the ledger lies."""
    return ROOT / "solutions" / assignment.name / "proof.json"


def hint_hashes(assignment: Assignment) -> dict[str, str]:
    """The hashes of the committed hint files, by name."""
    folder = ROOT / "tests" / assignment.name
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in HINT_FILES
        if (folder / name).is_file()
    }


def write_ledger(assignment: Assignment, proof: Proof, sources: dict[str, str]) -> bool:
    """Keep what a whole proof without problems has found; whether that changed anything.

    sources: the fingerprint of what was graded.
    """
    if not proof.whole or proof.all_problems:
        raise ValueError("only a whole proof without problems goes into the ledger")
    today = f"{date.today():%Y-%m-%d}"
    hints = hint_hashes(assignment)
    ledger = Ledger(VERSION, today, sources, hints, replace(proof, effort=None))
    with suppress(CourseError):  # the date is when this was first found
        if same_findings(read_ledger(assignment), ledger):
            return False
    encoded = msgspec.json.format(msgspec.json.encode(ledger), indent=1) + b"\n"
    return write_if_changed(ledger_file(assignment), encoded)


def same_findings(first: Ledger, second: Ledger) -> bool:
    """Whether two ledgers say the same, but for what rounding decides on each machine.

    That is how large float errors are, and at which of several tests a hint is found again.
    """

    def rounded(ledger: Ledger) -> Ledger:
        margins = [replace(margin, noise=0.0, nearest=None) for margin in ledger.proof.margins]
        mistakes = [replace(row, hinted=[]) for row in ledger.proof.mistakes]
        proof = replace(ledger.proof, margins=margins, mistakes=mistakes)
        return replace(ledger, date="", proof=proof)

    return rounded(first) == rounded(second)


def read_ledger(assignment: Assignment) -> Ledger:
    """The committed ledger; an error says what is wrong with it."""
    file = ledger_file(assignment)
    try:
        content = file.read_bytes()
        version = msgspec.json.decode(content, type=dict[str, msgspec.Raw]).get("version")
        if version is not None and bytes(version) != str(VERSION).encode():
            raise outdated(assignment, "has another format version")
        ledger = msgspec.json.decode(content, type=Ledger)
    except OSError:
        raise outdated(assignment, "is missing") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise outdated(assignment, f"is damaged ({error})") from None
    if ledger.proof.assignment != assignment.name:
        raise outdated(assignment, f"belongs to {ledger.proof.assignment}")
    if not ledger.proof.whole or ledger.proof.all_problems:
        raise outdated(assignment, "holds no whole proof")
    return ledger


def current_ledger(assignment: Assignment) -> Ledger:
    """The committed ledger, if it is of the assignment as it is now; an error says what changed."""
    ledger = read_ledger(assignment)
    changed = differing(ledger.fingerprint, proof_fingerprint(assignment))
    if changed:
        raise outdated(assignment, f"was recorded before these parts changed: {', '.join(changed)}")
    hints = differing(ledger.hints, hint_hashes(assignment))
    if hints:
        raise outdated(assignment, f"doesn't fit tests/{assignment.name}/{' and '.join(hints)}")
    return ledger


def outdated(assignment: Assignment, reason: str) -> CourseError:
    """An error that says how to make it good."""
    where = ledger_file(assignment).relative_to(ROOT)
    return CourseError(f"{where} {reason}: run `make verify A={assignment.short}`.")
