"""Tests of outdated ledgers: one sentence each, and nothing counts as proved."""

import json
import shutil

import pytest
from msgspec.structs import replace

from autograder.proving import job_runner
from autograder.proving.ledgers import proof_ledger as module
from autograder.proving.ledgers.proof_ledger import current_ledger, ledger_file, write_ledger
from autograder.proving.proof_findings import Proof
from common.assignment import ROOT, load_assignment
from common.errors import CourseError

A1 = load_assignment("a1")
RUN = r": run `make verify A=a1`\.$"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder with the ledger and the hints of assignment 1, for a test to damage."""
    for name in ("solutions/a1_convolution", "tests/a1_convolution"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ledger_file(A1), tmp_path / "solutions" / "a1_convolution")
    for file in (ROOT / "tests" / "a1_convolution").glob("*.hints"):
        shutil.copy(file, tmp_path / "tests" / "a1_convolution")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path


def change(file, **parts):
    """Write other values into a ledger."""
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **parts}), "utf-8")


def test_the_committed_ledger_is_whole_and_current(course):
    ledger = current_ledger(A1)
    assert ledger.proof.whole
    assert ledger.proof.all_problems == []
    assert ledger.proof.effort is None
    assert ledger.proof.margins and ledger.proof.noticed


def test_a_missing_ledger_is_a_sentence(course):
    ledger_file(A1).unlink()
    with pytest.raises(CourseError, match=f"proof.json is missing{RUN}"):
        current_ledger(A1)


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b"\xff", b"null", b'{"version": 1}', "cut off"]
)
def test_a_damaged_ledger_is_a_sentence(course, damage):
    content = ledger_file(A1).read_bytes()
    ledger_file(A1).write_bytes(content[: len(content) // 2] if damage == "cut off" else damage)
    with pytest.raises(CourseError, match=rf"proof.json is damaged \(.*\){RUN}"):
        current_ledger(A1)


@pytest.mark.parametrize("version", [0, 2, "1"])
def test_a_ledger_of_another_version_is_a_sentence(course, version):
    change(ledger_file(A1), version=version)
    with pytest.raises(CourseError, match=f"has another format version{RUN}"):
        current_ledger(A1)


def test_a_wrong_fingerprint_names_what_changed(course):
    parts = json.loads(ledger_file(A1).read_text("utf-8"))["fingerprint"]
    change(ledger_file(A1), fingerprint={**parts, "tests": "0", "mistakes": "0"})
    with pytest.raises(CourseError, match=f"before these parts changed: mistakes, tests{RUN}"):
        current_ledger(A1)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"assignment": "a2_lenet"}, "belongs to a2_lenet"),
        ({"noticed": {}, "survivors": []}, "holds no whole proof"),
        ({"problems": ["one"]}, "holds no whole proof"),
    ],
)
def test_the_ledger_of_another_or_of_no_whole_proof_is_a_sentence(course, part, sentence):
    proof = json.loads(ledger_file(A1).read_text("utf-8"))["proof"]
    change(ledger_file(A1), proof={**proof, **part})
    with pytest.raises(CourseError, match=f"{sentence}{RUN}"):
        current_ledger(A1)


@pytest.mark.parametrize("name", ["public.hints", "hidden.hints"])
@pytest.mark.parametrize("damage", ["other", "missing"])
def test_hints_that_do_not_fit_the_ledger_are_a_sentence(course, name, damage):
    file = course / "tests" / "a1_convolution" / name
    if damage == "other":
        file.write_bytes(file.read_bytes() + b"\n")
    else:
        file.unlink()
    with pytest.raises(CourseError, match=f"doesn't fit tests/a1_convolution/{name}{RUN}"):
        current_ledger(A1)


def test_only_a_whole_proof_without_problems_is_written(course):
    before = ledger_file(A1).read_bytes()
    partial = Proof("a1_convolution", "", 0, 0.0, [], [], [], {}, [], [], [])
    with pytest.raises(ValueError, match="only a whole proof"):
        write_ledger(A1, partial, {})
    assert ledger_file(A1).read_bytes() == before


def test_the_same_proof_again_keeps_its_date(course):
    change(ledger_file(A1), date="2026-01-01")
    ledger = current_ledger(A1)
    assert not write_ledger(A1, ledger.proof, ledger.fingerprint)
    assert current_ledger(A1).date == "2026-01-01"


def test_what_rounding_decides_on_another_machine_changes_no_ledger(course):
    ledger = current_ledger(A1)
    margins = [replace(margin, noise=margin.noise * 2) for margin in ledger.proof.margins]
    rows = [replace(row, hinted=row.hinted[:1]) for row in ledger.proof.mistakes]
    proof = replace(ledger.proof, margins=margins, mistakes=rows)
    assert not write_ledger(A1, proof, ledger.fingerprint)
    other = replace(ledger.proof, margins=margins[1:])
    assert write_ledger(A1, other, ledger.fingerprint)


def test_a_ledger_is_of_the_sources_that_were_graded(course):
    ledger = current_ledger(A1)
    assert write_ledger(A1, ledger.proof, ledger.fingerprint | {"tests": "0"})
    with pytest.raises(CourseError, match=f"before these parts changed: tests{RUN}"):
        current_ledger(A1)


def test_what_is_edited_before_the_zip_is_built_is_refused(monkeypatch):
    now = {"tests": "1", "solution": "2"}
    monkeypatch.setattr(job_runner, "fresh_fingerprint", lambda assignment: now)
    job_runner.check_sources(A1, {**now})
    with pytest.raises(CourseError, match=r"edited while its proof began \(tests\)"):
        job_runner.check_sources(A1, {**now, "tests": "0"})
