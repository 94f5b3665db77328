"""Tests of terms: the practice salt, secret salts that are never lost, and releases."""

import json
import os
import re
import zipfile
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from autograder import semester
from autograder.commands import semester_command as command
from autograder.packaging.term_hints import record_file, term_hints, unfinished_file, write_term
from autograder.packaging.zip_build import (
    Kind,
    autograder_file,
    build,
    find_autograder,
    kind_and_hints,
)
from autograder.proving.proof_fingerprint import PROVING_MODULES, proof_fingerprint
from autograder.release import term_proof as module
from autograder.release.term_proof import check_ledgers, prove_term
from autograder.semester import (
    PRACTICE,
    PRACTICE_SALT,
    Semester,
    backup_file,
    hints_folder,
    how_to_restore,
    new_semester,
)
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from common.testing.feedback.hints import HintFile, hint_bytes
from tests.tooling.scratch_copies import copy_repo, python

A1 = load_assignment("a1")
SECRET = Semester("fall", "0123456789abcdef")
HINTS = {name: hint_bytes(HintFile([name], {})) for name in ("public.hints", "hidden.hints")}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Where the secret of a checkout would lie."""
    monkeypatch.setattr(semester, "FILES", (tmp_path / ".semester", tmp_path / "semester"))
    monkeypatch.setattr(semester.new_semester, "__defaults__", (tmp_path / ".semester",))
    monkeypatch.setattr(command, "FILES", semester.FILES)
    monkeypatch.setattr(command.open_term, "__defaults__", (tmp_path / "dist",))
    return tmp_path / ".semester"


def test_a_new_semester_keeps_the_secret_of_the_old_one(tmp_path):
    first = new_semester("spring", tmp_path / ".semester")
    second = new_semester("fall", tmp_path / ".semester")
    assert first.salt != second.salt
    assert (tmp_path / ".semester").read_bytes() == second.to_bytes()
    assert (tmp_path / ".semester").stat().st_mode & 0o777 == 0o600
    assert re.fullmatch("[0-9a-f]{32}", second.salt) and second.salt not in second.label
    assert (tmp_path / f".semester-{first.fingerprint}").read_bytes() == first.to_bytes()


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize("calls", [0, 1])  # the earlier secret is kept first, then the new written
def test_a_secret_is_not_lost_when_drawing_another_is_interrupted(
    tmp_path, monkeypatch, step, calls
):
    first = new_semester("spring", tmp_path / ".semester")
    real, left = getattr(os, step), [None] * calls

    def interrupted(*arguments, **options):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            new_semester("fall", tmp_path / ".semester")
    assert (tmp_path / ".semester").read_bytes() == first.to_bytes()
    second = new_semester("fall", tmp_path / ".semester")
    kept = tmp_path / f".semester-{first.fingerprint}"
    assert kept.read_bytes() == first.to_bytes()
    assert kept.stat().st_mode & 0o077 == 0
    assert (tmp_path / ".semester").read_bytes() == second.to_bytes()
    assert sorted(tmp_path.iterdir()) == [tmp_path / ".semester", kept]


def test_a_damaged_secret_is_kept_too(tmp_path):
    (tmp_path / ".semester").write_bytes(b"{")
    new_semester("fall", tmp_path / ".semester")
    kept = [file for file in tmp_path.iterdir() if file.name.startswith(".semester-")]
    assert [file.read_bytes() for file in kept] == [b"{"]


def test_a_checkout_without_a_secret_is_set_to_the_practice_term(checkout):
    assert semester.read_semester() is PRACTICE
    assert not checkout.exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", r"^\.semester is damaged"),
        (b"{", r"^\.semester is damaged"),
        (b"\xff", r"^\.semester is damaged"),
        (b'{"name": "x"}', r"^\.semester is damaged"),
        (PRACTICE.to_bytes(), "holds the practice salt, which is public"),
    ],
)
def test_a_secret_that_can_not_be_used_is_a_sentence(checkout, content, sentence):
    checkout.write_bytes(content)
    with pytest.raises(CourseError, match=sentence) as error:
        semester.read_semester()
    assert "`make semester NEW=1`" in str(error.value)
    with pytest.raises(CourseError, match=sentence):
        build(A1, checkout.parent / "dist")
    assert not (checkout.parent / "dist").exists()


def packed_salt(archive):
    with zipfile.ZipFile(archive) as members:
        return json.loads(members.read("semester"))["salt"]


def test_only_a_zip_with_a_secret_and_its_hints_is_a_release(tmp_path):
    built = build(A1, tmp_path, PRACTICE)
    assert (built.kind, built.autograder.name) == (Kind.PRACTICE, "a1-autograder-practice.zip")
    assert packed_salt(built.autograder) == PRACTICE_SALT
    built = build(A1, tmp_path, SECRET)
    assert (built.kind, built.autograder.name) == (Kind.DRAFT, "a1-autograder-draft.zip")
    write_term(A1, SECRET, HINTS, proof_fingerprint(A1), PROVING_MODULES, tmp_path)
    built = build(A1, tmp_path, SECRET)
    assert (built.kind, built.autograder.name) == (Kind.RELEASE, "a1-autograder.zip")
    assert packed_salt(built.autograder) == SECRET.salt
    with zipfile.ZipFile(built.autograder) as members:
        for name, content in HINTS.items():
            assert members.read(f"tests/a1_convolution/{name}") == content
    assert [file.name for file in tmp_path.glob("*-autograder*")] == ["a1-autograder.zip"]
    assert find_autograder(A1, tmp_path) == built.autograder


def test_a_release_never_carries_the_practice_salt(tmp_path):
    disguised = Semester("fall", PRACTICE_SALT)
    # Hints that fit, in the folder where those of a secret term lie.
    folder = tmp_path / f"term-{disguised.fingerprint}"
    folder.mkdir()
    write_term(A1, SECRET, HINTS, proof_fingerprint(A1), PROVING_MODULES, tmp_path)
    hints_folder(A1, SECRET, tmp_path).rename(folder / "a1")
    built = build(A1, tmp_path, disguised)
    assert built.kind is Kind.PRACTICE
    assert built.autograder.name == "a1-autograder-practice.zip"
    assert not (tmp_path / "a1-autograder.zip").exists()
    with pytest.raises(ValueError, match="is public"):
        prove_term(A1, disguised, print, tmp_path)


def test_a_zip_has_the_public_hints_of_its_own_term_or_none(tmp_path):
    committed = (ROOT / "tests" / A1.name / "public.hints").read_bytes()
    for term, hints in ((PRACTICE, committed), (SECRET, None)):
        built = build(A1, tmp_path, term)
        with zipfile.ZipFile(built.autograder) as members:
            found = [members.read(name) for name in members.namelist() if "public.hints" in name]
        assert found == ([] if hints is None else [hints])
    with zipfile.ZipFile(built.handout) as members:
        assert members.read("tests/a1_convolution/public.hints") == committed


def test_hints_that_no_longer_fit_make_a_draft(tmp_path):
    write_term(A1, SECRET, HINTS, proof_fingerprint(A1), PROVING_MODULES, tmp_path)
    assert term_hints(A1, SECRET, tmp_path) == HINTS
    folder, record = hints_folder(A1, SECRET, tmp_path), record_file(A1, SECRET, tmp_path)
    for changed, content in (
        *((folder / name, hints + b"\n") for name, hints in HINTS.items()),
        (record, b"{"),
        (record, record.read_bytes().replace(b'"tests": "', b'"tests": "0')),
        (record, record.read_bytes().replace(b"proving.margins", b"proving.no_longer_there")),
    ):
        before = changed.read_bytes()
        assert before != content
        changed.write_bytes(content)
        assert term_hints(A1, SECRET, tmp_path) is None
        assert kind_and_hints(A1, SECRET, tmp_path)[0] is Kind.DRAFT
        changed.write_bytes(before)
    assert term_hints(A1, SECRET, tmp_path) == HINTS


@pytest.fixture
def proofs(monkeypatch):
    """Stands in for the proof: what it says can be set, and each call is noted."""
    fake = SimpleNamespace(problems=[], calls=[], fault=None)

    def verify(assignment, scope, progress, dist):
        fake.calls.append(scope)
        if fake.fault:
            raise fake.fault
        evidence = SimpleNamespace(sources=proof_fingerprint(assignment))
        return SimpleNamespace(all_problems=fake.problems), evidence

    monkeypatch.setattr(module, "verify", verify)
    monkeypatch.setattr(module, "fresh_hints", lambda *given, hidden: HintFile([str(hidden)], {}))
    return fake


def test_a_term_is_proved_once_under_its_own_salt(proofs, tmp_path):
    assert prove_term(A1, SECRET, print, tmp_path)
    assert not prove_term(A1, SECRET, print, tmp_path)
    (scope,) = proofs.calls
    assert (scope.salt, scope.training) == (SECRET.salt, True)
    hints = term_hints(A1, SECRET, tmp_path)
    for name, hidden in (("public.hints", "False"), ("hidden.hints", "True")):
        assert hints[name] == hint_bytes(HintFile([hidden], {}))


def test_what_is_not_proved_gets_no_hints_and_is_tried_again(proofs, tmp_path):
    proofs.problems = [f"problem {number}" for number in range(7)]
    with pytest.raises(CourseError, match=r"a1 can't be proved under term 'fall'.*") as error:
        prove_term(A1, SECRET, print, tmp_path)
    assert "problem 4\n... and 2 more" in str(error.value)
    assert kind_and_hints(A1, SECRET, tmp_path)[0] is Kind.DRAFT
    proofs.problems, proofs.fault = [], KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        prove_term(A1, SECRET, print, tmp_path)
    assert kind_and_hints(A1, SECRET, tmp_path)[0] is Kind.DRAFT
    proofs.fault = None
    assert prove_term(A1, SECRET, print, tmp_path)
    assert kind_and_hints(A1, SECRET, tmp_path)[0] is Kind.RELEASE


def test_a_secret_is_drawn_once_unless_another_is_asked_for(checkout):
    console = Console(quiet=True)
    first = command.open_term(console, new=False, name="fall")
    assert first.name == "fall"
    assert command.open_term(console, new=False, name=None) == first
    assert command.open_term(console, new=False, name="fall") == first
    with pytest.raises(CourseError, match=r"set to term 'fall' .* new term 'spring', add NEW=1"):
        command.open_term(console, new=False, name="spring")
    release, draft = (
        autograder_file(A1, kind, checkout.parent / "dist") for kind in (Kind.RELEASE, Kind.DRAFT)
    )
    release.parent.mkdir(exist_ok=True)
    release.touch(), draft.touch()
    second = command.open_term(console, new=True, name="spring")
    assert second.salt != first.salt
    assert not release.exists() and draft.exists()  # it was the release of another term
    assert backup_file(first.fingerprint, checkout).read_bytes() == first.to_bytes()


@pytest.fixture
def releases(checkout, monkeypatch):
    """Stands in for all that `make semester` does with a term; how it ends can be set."""
    fake = SimpleNamespace(fault=None)

    def release(*given, **options):
        if fake.fault:
            raise fake.fault
        return []

    dist = checkout.parent / "dist"
    monkeypatch.setattr(unfinished_file, "__defaults__", (dist,))
    monkeypatch.setattr(prove_term, "__defaults__", (dist,))
    monkeypatch.setattr(command, "check_ledgers", lambda assignments: None)
    monkeypatch.setattr(command, "release", release)
    return fake


def make_semester(*words):
    """What the command prints, or the error that it ends with."""
    result = CliRunner().invoke(command.semester, ["a1", *words])
    return result.output if result.exit_code == 0 else result.exception


@pytest.mark.parametrize("names", [(), ("--name", "fall")])
def test_a_new_term_that_was_interrupted_is_resumed(checkout, proofs, releases, names):
    new_semester("fall", checkout)
    for proofs.fault, releases.fault in ((KeyboardInterrupt(), None), (None, KeyboardInterrupt())):
        assert isinstance(make_semester("--new", *names), SystemExit)
        drawn = semester.read_semester()
        assert len([*checkout.parent.glob(".semester-*")]) == 1
    proofs.fault = releases.fault = None
    output = make_semester("--new", *names)
    assert f"Resuming {drawn.label}; NEW=1 with another NAME draws a new salt." in output
    assert f"The release of {drawn.label}" in output
    # It is made: what asks for a new one now gets one.
    kept = f".semester-{drawn.fingerprint}"
    assert f"The previous .semester was moved to {kept}." in make_semester("--new")
    assert semester.read_semester() != drawn


def test_another_name_draws_a_new_term_though_one_is_unfinished(checkout, proofs, releases):
    proofs.fault = KeyboardInterrupt()
    make_semester("--new", "--name", "fall")
    first = semester.read_semester()
    make_semester("--new", "--name", "spring")
    assert semester.read_semester().name == "spring"
    assert backup_file(first.fingerprint, checkout).read_bytes() == first.to_bytes()


def test_a_new_term_that_can_not_be_proved_is_not_resumed(checkout, proofs, releases):
    proofs.problems = ["a problem"]
    assert "`make semester NEW=1` draws another salt" in str(make_semester("--new"))
    first = semester.read_semester()
    proofs.problems = []
    assert "The release of" in make_semester("--new")
    assert semester.read_semester() != first


def test_all_ledgers_that_are_not_current_are_named(monkeypatch):
    def current(assignment):
        raise CourseError(f"run `make verify A={assignment.short}`")

    monkeypatch.setattr(module, "current_ledger", current)
    with pytest.raises(CourseError, match="A=a1`\nrun `make verify A=a2`"):
        check_ledgers([A1, load_assignment("a2")])


def test_nothing_is_drawn_for_what_is_not_proved(tmp_path):
    root = copy_repo(tmp_path / "repo")
    (root / "solutions" / "a1_convolution" / "proof.json").unlink()
    result = python("-m", "autograder", "semester", "a1", cwd=root)
    assert result.returncode == 2
    assert result.stderr == (
        "solutions/a1_convolution/proof.json is missing: run `make verify A=a1`.\n"
    )
    assert not (root / ".semester").exists()


KEPT = f".semester-{SECRET.fingerprint}"
BACKUP = "copy the backup of that term's .semester here"


@pytest.mark.parametrize(
    ("wanted", "now", "is_kept", "steps"),
    [
        (PRACTICE.fingerprint, SECRET, False, f"run `mv .semester {KEPT}`"),
        ("aaaaaaaa", PRACTICE, True, "run `cp .semester-aaaaaaaa .semester`"),
        (
            *("aaaaaaaa", SECRET, True),
            f"run `mv .semester {KEPT} && cp .semester-aaaaaaaa .semester`",
        ),
        ("aaaaaaaa", PRACTICE, False, BACKUP),
        ("aaaaaaaa", SECRET, False, f"run `cp .semester {KEPT}`, then {BACKUP}"),
    ],
)
def test_the_way_back_to_a_term_loses_no_other(checkout, wanted, now, is_kept, steps):
    if is_kept:
        backup_file(wanted, checkout).touch()
    assert how_to_restore(wanted, now) == steps


def test_no_secret_is_committed():
    assert ".semester" in (ROOT / ".gitignore").read_text("utf-8")
