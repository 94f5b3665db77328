"""Tests of the picture of what a student sees: current, and whole without a network."""

import xml.etree.ElementTree as ElementTree

import pytest

from autograder.classroom.demo_grading import grade_demo
from autograder.classroom.demo_picture import PICTURE, student_picture, write_picture
from tests.tooling.scratch_copies import open_to_others


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo, graded."""
    folder = tmp_path_factory.mktemp("graded")
    open_to_others(folder)
    return grade_demo(folder, lambda done, count: None)


def texts(picture):
    """What a picture says, line by line."""
    lines = {}
    for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        lines.setdefault(element.get("y"), []).append(element.text.replace("\xa0", " "))
    return ["".join(parts).strip() for parts in lines.values()]


def test_the_picture_of_what_a_student_sees_is_current(demo):
    """Its words alone are compared: another version of rich may draw them elsewhere."""
    stored = texts(PICTURE.read_text("utf-8"))
    assert stored == texts(student_picture(demo.result)), "`make figures` draws the picture"
    said = " ".join(" ".join(stored).split())
    assert stored[0] == "What a student sees"
    assert "Your output matches a known mistake: The kernel is flipped." in said
    assert "85 of 100 points." in said


def test_the_picture_loads_nothing_from_another_host(demo):
    for picture in (PICTURE.read_text("utf-8"), student_picture(demo.result)):
        for loaded in ("@font-face", "@import", "url(http", "href="):
            assert loaded not in picture


def test_drawing_the_picture_again_changes_no_byte(demo, tmp_path):
    file = write_picture(demo.result, tmp_path / "images" / "demo.svg")
    first = file.read_bytes()
    assert (
        write_picture(demo.result, file).read_bytes()
        == first
        == student_picture(demo.result).encode()
    )
