"""Tests of the secret salt: a new one never destroys an old one."""

import msgspec
import pytest

from autograder.authoring.generate import check_forbidden
from common import semester
from common.assignment import Forbidden, load_assignment
from common.errors import CourseError
from common.semester import new_semester

A1 = load_assignment("a1")


def test_a_new_semester_keeps_the_secret_of_the_old_one(tmp_path):
    first = new_semester("spring", tmp_path / ".semester")
    second = new_semester("autumn", tmp_path / ".semester")
    assert first.salt != second.salt
    assert (tmp_path / ".semester").read_bytes() == second.to_bytes()
    assert (tmp_path / f".semester-{first.fingerprint}").read_bytes() == first.to_bytes()


def test_a_checkout_without_a_salt_gets_one_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(semester, "FILES", (tmp_path / ".semester", tmp_path / "semester"))
    monkeypatch.setattr(semester.new_semester, "__defaults__", (tmp_path / ".semester",))
    drawn = semester.read_semester()
    assert "a new secret salt was drawn" in capsys.readouterr().err
    assert semester.read_semester() == drawn


def test_a_forbidden_call_that_does_not_exist_is_an_error():
    check_forbidden(A1)
    wrong = Forbidden("numpy.convlve", ["1.2"], "slide the kernel yourself")
    changed = msgspec.structs.replace(A1, forbidden=(wrong,))
    with pytest.raises(CourseError, match=r"toml: .* numpy\.convlve, which doesn't exist"):
        check_forbidden(changed)
