"""Tests of grading in Gradescope's tree: what children can't read, and reports of faults."""

import json

import pytest

from autograder.grading import gradescope
from autograder.semester import PRACTICE, PRACTICE_NOTE
from common.errors import CourseError, GraderFault
from tests.tooling.grading_fixtures import SEMESTER, assignment


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Gradescope's tree, with an empty submission of assignment 1."""
    monkeypatch.setattr(gradescope, "load_all", lambda: [assignment()])
    monkeypatch.setattr(gradescope, "hide", lambda paths: None)
    (tmp_path / "submission").mkdir()
    return tmp_path


def test_on_gradescope_children_must_not_reach_results_and_metadata(tree, monkeypatch):
    asked = []
    monkeypatch.setattr(gradescope, "read_semester", lambda: SEMESTER)
    (tree / "submission_metadata.json").touch()
    gradescope.grade_tree(tree, grading=lambda *given: asked.append(given[-1].private))
    names = ("submission", "results", "submission_metadata.json")
    assert {tree / name for name in names} == set(*asked)


@pytest.mark.parametrize("term", [PRACTICE, SEMESTER, CourseError("semester is damaged")])
def test_a_fault_on_gradescope_names_its_term_where_it_can_be_read(tree, monkeypatch, term):
    def read():
        if isinstance(term, CourseError):
            raise term
        return term

    def grade(*given):
        raise GraderFault("the machine is gone")

    monkeypatch.setattr(gradescope, "read_semester", read)
    gradescope.grade_tree(tree, grading=grade)
    written = json.loads((tree / "results" / "results.json").read_text("utf-8"))
    assert "The grader could not grade this submission: " in written["output"]
    assert (PRACTICE_NOTE.capitalize() in written["output"]) == (term is PRACTICE)
    salt = "" if isinstance(term, CourseError) else term.fingerprint
    assert written["extra_data"]["salt"] == salt
