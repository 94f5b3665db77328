"""Caches the gradings of proofs on disk, by a hash of their inputs, so that they can resume.

A file that is only appended to, rather than a database: damage costs only what lies behind it.
"""

import hashlib
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from autograder.authoring.syntax_hash import python_hash
from autograder.grading.warm.judge_messages import GradingRequest, Verdict
from autograder.packaging.graded_test_hash import test_hashes
from autograder.packaging.grading_code_hash import grading_code_hash
from common.assignment import ROOT, Assignment, Record
from common.atomic_write import write_atomically
from common.testing.graded_tests import read_graded_tests

LENGTH = struct.Struct(">I")


class CachedVerdict(Record, frozen=True):
    """One entry of the file."""

    key: str
    verdict: Verdict


class VerdictCache:
    """The verdicts of earlier runs, in a file that only grows until it is tidied."""

    def __init__(self, file: Path, assignment: Assignment) -> None:
        self.file = file
        self.code = grading_code_hash(assignment)
        self.tests = test_hashes(assignment)
        graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
        self.read_artifacts = {test.name for test in graded_tests if test.reads_artifacts}
        needing = {one.number for one in assignment.exercises if any(one.needs.values())}
        self.rerun = {test.name for test in graded_tests if test.exercise in needing}
        self.verdicts: dict[str, Verdict] = {}
        self.used: set[str] = set()
        entries, whole = read_entries(file)
        self.verdicts = {entry.key: entry.verdict for entry in entries}
        if not whole:  # cut off when a run was killed: what comes next must be readable
            self.rewrite(self.verdicts)

    def key(self, job: GradingRequest, test: str, others: Iterable[str] = ()) -> str:
        """A hash of everything that decides how a test of a job ends.

        others: the tests beside it, if they do, too.
        """
        submitted = [
            python_hash(content) if name.endswith(".py") else hashlib.sha256(content).hexdigest()
            for name, content in sorted(job.files.items())
            if name.endswith(".py") or test in self.read_artifacts
        ]
        decides = (self.code, test, self.tests[test], submitted, job.salt, job.cpu_seconds)
        digest = hashlib.sha256(repr((*decides, job.compare_all, *others)).encode())
        return digest.hexdigest()[:32]

    def others(self, job: GradingRequest, verdict: Verdict) -> tuple[str, ...]:
        """The tests of a job whose ends decide this verdict, too: none, as a rule.

        A test that fails at first is run once more, on stand-ins, if others fail.
        """
        independent = verdict.test not in self.rerun or verdict.passed_at_once
        independent = independent or job.stop_at_failure
        return () if independent else job.only or ()

    def find(self, job: GradingRequest) -> tuple[list[Verdict], tuple[str, ...]]:
        """The verdicts on this very job that are known, and the tests that are left to run."""
        known: list[Verdict] = []
        left: list[str] = []
        for test in job.only or ():
            keys = (self.key(job, test), self.key(job, test, job.only or ()))
            key = keys[keys[0] not in self.verdicts]
            verdict = self.verdicts.get(key)
            # Where the first failure ends a job, what comes after an unknown test is unknown too.
            if verdict is None or (left and job.stop_at_failure):
                left.append(test)
                continue
            self.used.add(key)
            known.append(verdict)
            if job.stop_at_failure and not verdict.passed:
                break
        if left and any(self.others(job, verdict) for verdict in known):
            return [], job.only or ()
        return known, tuple(left)

    def store(self, job: GradingRequest, verdicts: Iterable[Verdict]) -> None:
        """Remember how tests of a job ended, on disk at once."""
        entries = [
            CachedVerdict(self.key(job, verdict.test, self.others(job, verdict)), verdict)
            for verdict in verdicts
        ]
        self.verdicts |= {entry.key: entry.verdict for entry in entries}
        self.used |= {entry.key for entry in entries}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab") as stream:
            stream.write(b"".join(map(framed, entries)))

    def drop_unused(self) -> None:
        """Forget what this run has not used."""
        self.rewrite({key: self.verdicts[key] for key in sorted(self.used)})

    def rewrite(self, verdicts: dict[str, Verdict]) -> None:
        """Write the file again, with these verdicts alone."""
        entries = (CachedVerdict(key, verdict) for key, verdict in verdicts.items())
        write_atomically(self.file, b"".join(map(framed, entries)))


def framed(entry: CachedVerdict) -> bytes:
    """An entry as it stands in the file: its length first."""
    content = msgspec.msgpack.encode(entry)
    return LENGTH.pack(len(content)) + content


def read_entries(file: Path) -> tuple[list[CachedVerdict], bool]:
    """The entries of a file, up to the first that is damaged, and whether there was none such."""
    try:
        content = file.read_bytes()
    except OSError:
        return [], True
    entries: list[CachedVerdict] = []
    place = 0
    with suppress(struct.error, msgspec.DecodeError):
        while place < len(content):
            (length,) = LENGTH.unpack_from(content, place)
            place += LENGTH.size + length
            frame = content[place - length : place]
            entries.append(msgspec.msgpack.decode(frame, type=CachedVerdict))
        return entries, True
    return entries, False
