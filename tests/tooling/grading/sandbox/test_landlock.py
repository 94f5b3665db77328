"""Tests of Landlock: a child can access few files, and some limits come from Landlock alone."""

import os
import subprocess
from pathlib import Path

import pytest

from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import landlock
from common.assignment import ROOT
from tests.tooling.grading_fixtures import admitted
from tests.tooling.weakened_sandbox import (
    NO_FILTER,
    NO_LANDLOCK,
    NO_OWN_NETWORK,
    NO_TREES,
    needs_root,
)

pytestmark = needs_root
REFUSALS = ("EACCES", "EROFS")  # by Landlock, by read-only mounts


@pytest.mark.skipif(not landlock.version(), reason="the files here are readable by every user")
def test_tests_results_metadata_and_the_course_cannot_be_read_or_written(student, private):
    for path in (
        ROOT / "tests" / "a1_convolution" / "test_hidden.py",
        ROOT / "solutions" / "a1_convolution" / "convolution.py",
        ROOT / "autograder" / "grading" / "judge.py",
        private / "results.json",
        private / "submission_metadata.json",
        "/etc/passwd",
        "/etc/shadow",
    ):
        assert student.read(str(path)) == "EACCES", path
    for name in ("environ", "mem", "maps", "cmdline"):
        assert student.read(f"/proc/{os.getpid()}/{name}") in ("EACCES", "ENOENT")
    for path in (ROOT, ROOT / "tests", private, "/proc", "/tmp", "/"):
        assert student.listing(str(path)) == "EACCES", path
    for path in (private / "results.json", private / "new", ROOT / "x", "/tmp/conv2gpt-x", "/x"):
        assert student.write(str(path)) in REFUSALS, path
    assert (private / "results.json").read_text() == "{}" and len(os.listdir(private)) == 2


def test_the_submission_cannot_be_changed(student, sandbox):
    folder = Path(sandbox.packages["a1_convolution"])
    for path in (folder / "convolution.py", folder / "new.py", folder / "__pycache__" / "x.pyc"):
        assert student.write(str(path)) in REFUSALS


def test_no_child_is_given_the_rules_of_another(sandbox):
    """Rules that a child holds open are rules that it could loosen for the children after it."""
    for exercise in ("1.2", "1.4", "1.1", "1.2"):
        with IsolatedFace(sandbox).open(exercise) as student:
            assert not [x for x in student.descriptors().values() if "landlock" in x]


def test_without_a_uid_of_its_own_a_child_writes_to_its_home_and_not_beside_it(
    packages, monkeypatch
):
    monkeypatch.setattr("autograder.grading.sandbox.sandbox.free_slot", lambda folder: None)
    with admitted(packages) as (made, _), IsolatedFace(made).open("1.1") as student:
        assert student.write("note") == student.write("/dev/null") == "done"
        assert student.write(str(made.folder / "homes" / "note")) in REFUSALS


def test_without_landlock_a_child_reads_its_own_submission_and_not_that_of_another_grader(
    packages, without
):
    with without(NO_LANDLOCK) as (student, _, made), admitted(packages) as (other, _):
        own, others = (Path(one.packages["a1_convolution"]) for one in (made, other))
        assert student.read(str(own / "convolution.py")) == "done"
        assert (others / "convolution.py").is_file()
        assert student.read(str(others / "convolution.py")) == "EACCES"


@pytest.mark.skipif(landlock.version() < 4, reason="Landlock knows TCP from version 4 on")
def test_landlock_alone_denies_tcp(without, ports):
    with without(NO_FILTER, NO_OWN_NETWORK) as (student, *_):
        assert student.connect("AF_INET", ports[0]) == student.listen() == "EACCES"


@pytest.mark.skipif(landlock.version() < 6, reason="Landlock knows abstract sockets from 6 on")
def test_landlock_alone_denies_abstract_sockets_and_signals(without, ports):
    with without(NO_FILTER, NO_OWN_NETWORK, NO_TREES) as (student, _, made):
        assert student.connect_abstract(ports[1]) == "EPERM"
        own = subprocess.Popen(["sleep", "60"], user=made.slot.uid)  # the uid alone allows it
        try:
            assert student.kill(own.pid) == ["EPERM"] * 3
        finally:
            own.kill()
            own.wait()
