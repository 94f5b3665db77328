"""Tests of `make study`: a handout laid out, and laid out again over a student's work."""

import pytest

from autograder.packaging.study_folder import lay_out
from autograder.packaging.zip_contents import handout
from common.assignment import ROOT, load_assignment
from common.errors import CourseError
from tests.tooling.scratch_copies import python

A1, A2 = load_assignment("a1"), load_assignment("a2")
WORK = "assignments/a1_convolution/convolution.py"


def test_a_new_folder_gets_the_whole_handout(tmp_path):
    laid_out = lay_out(A1, tmp_path / "study")
    assert laid_out.written == sorted(handout(A1)) and laid_out.kept == []
    for name, content in handout(A1).items():
        assert (tmp_path / "study" / name).read_bytes() == content


def test_a_students_work_stays_and_what_is_the_courses_is_updated(tmp_path):
    lay_out(A1, tmp_path)
    (tmp_path / WORK).write_text("mine", "utf-8")
    (tmp_path / "pytest.ini").write_text("old", "utf-8")
    laid_out = lay_out(A1, tmp_path)
    assert (laid_out.written, laid_out.kept) == (["pytest.ini"], [WORK])
    assert (tmp_path / WORK).read_text("utf-8") == "mine"
    assert lay_out(A2, tmp_path).kept == []
    assert (tmp_path / WORK).read_text("utf-8") == "mine"


def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(CourseError, match="holds no handout: name another folder with TO=path"):
        lay_out(A1, tmp_path)
    with pytest.raises(CourseError, match="holds no handout"):
        lay_out(A1, tmp_path / "photo.jpg")
    assert [file.name for file in tmp_path.iterdir()] == ["photo.jpg"]
    with pytest.raises(CourseError, match="is part of this checkout"):
        lay_out(A1, ROOT / "study")


def test_the_command_says_what_to_do_next(tmp_path):
    finished = python("-m", "autograder", "study", "a1", "--to", tmp_path / "my study", cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    for line in ("make test A=a1", f"make grade A=a1 SUBMISSION='{tmp_path}/my study/assignments"):
        assert line in finished.stdout
    finished = python("-m", "autograder", "study", "a99", cwd=ROOT)
    assert finished.returncode == 2 and "Traceback" not in finished.stderr
