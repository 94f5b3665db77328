"""Tests that a result lists exactly the defenses that work."""

import os
from dataclasses import replace

import pytest

from autograder.grading.sandbox import probe
from autograder.grading.sandbox.defenses import (
    Findings,
    check_required,
    defenses_in_force,
    mechanisms,
)
from autograder.grading.sandbox.isolated_face import IsolatedFace
from autograder.grading.sandbox.kernel import landlock
from autograder.grading.sandbox.probe_targets import files_among
from autograder.grading.sandbox.sandbox import Sandbox
from common.assignment import Limits
from common.errors import ChildFailure, CourseError
from tests.tooling.grading_fixtures import admitted, assignment, code_in
from tests.tooling.weakened_sandbox import NO_LANDLOCK, needs_root, said, weakened

pytestmark = needs_root


def test_what_is_in_force_is_named(sandbox_and_defenses):
    _, defenses = sandbox_and_defenses
    said = [str(defense) for defense in defenses]
    assert all(defense.holds for defense in defenses)
    assert sum(defense.required for defense in defenses) == 2
    assert "own uid" in said[0]
    assert ("Landlock" in said[0]) == bool(landlock.version())
    assert "nothing outlives a test: pid namespace" in said


def test_every_finding_changes_what_is_reported(sandbox):
    found = sandbox.findings
    limits = Limits(1, 1, 100)
    before = said(defenses_in_force(found, limits))
    for key in set(found.refused) - {probe.GPU, probe.ELSEWHERE}:
        worse = replace(found, refused={**found.refused, key: False})
        after = said(defenses_in_force(worse, limits))
        assert "not protected" in [after[name] for name in before if after[name] != before[name]]


def test_a_mechanism_that_is_missing_is_named_with_what_it_costs(sandbox):
    assert all(one.there for one in mechanisms(sandbox.findings))
    had = sandbox.server.mechanisms
    bare = type(had)(False, False, False, False, False, {})
    refused = {**sandbox.findings.refused, probe.CALLS: False}
    there = [one for one in mechanisms(Findings(refused, True, None, bare, False)) if one.there]
    assert {one.name.partition(" ")[0] for one in there} <= {"Landlock"}
    assert all(one.cost for one in mechanisms(sandbox.findings))


def test_a_slow_machine_is_tried_with_patience(packages):
    """What the probe may take has nothing to do with what a test may."""
    chosen = assignment(test_seconds=0.001)
    with Sandbox(chosen) as made:
        assert all(defense.holds for defense in made.admit(code_in(packages)))
        with (
            pytest.raises(ChildFailure, match=r"used|longer"),
            IsolatedFace(made).open("1.1") as student,
        ):
            student.sleep(1)


def test_of_a_folder_its_first_file_is_tried_and_no_link(tmp_path):
    """A student's link to what all may read would have no submission graded."""
    for name in ("b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "code.py").touch()
    (tmp_path / "a" / "c" / "ago").symlink_to("/etc/hostname")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "aaa")
    given = [tmp_path, tmp_path / "b" / "code.py", tmp_path / "empty", tmp_path / "gone"]
    assert [*files_among(given)] == [tmp_path / "a/c/code.py", tmp_path / "b/code.py"]


def test_without_landlock_grading_is_refused_where_files_are_open_to_all(
    tmp_path, packages, private
):
    with weakened(tmp_path, NO_LANDLOCK), admitted(packages, [private]) as (made, defenses):
        with pytest.raises(CourseError, match="Refusing to grade") as raised:
            check_required(defenses, unsafe=False)
        assert "tests and metadata can't be read" in str(raised.value)
        check_required(defenses, unsafe=True)
        assert "tests and metadata can't be read: not protected" in map(str, defenses)
        with IsolatedFace(made).open("1.1") as student:
            assert student.read(str(private / "results.json")) == "done"
            assert student.late_imports() == "0.333"


def test_without_landlock_another_user_is_enough_where_files_are_roots(tmp_path, packages):
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "own" / "results.json").touch(mode=0o600)
    own = tmp_path / "own"
    with weakened(tmp_path, NO_LANDLOCK), admitted(packages, [own]) as (_, defenses):
        check_required(defenses, unsafe=False)
        assert "Landlock" not in str(defenses[0])
