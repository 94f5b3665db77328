"""Tests of reading the graded tests without running them."""

import ast
import re

import pytest

from common.assignment import ROOT, load_all
from common.errors import CourseError
from common.testing.graded_tests import (
    HIDDEN_FILE,
    PUBLIC_FILE,
    points_by_exercise,
    read_graded_tests,
    read_hidden_points,
)

EACH = pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.name)
GOOD = '''
@weight(2)
@number("1.1")
def test_a_thing_holds(student):
    """It holds."""
'''


def write(folder, text, name=PUBLIC_FILE):
    (folder / name).write_text(text)
    return folder


def test_decorators_and_docstring_are_read(tmp_path):
    write(
        tmp_path,
        GOOD + '@weight(1.5)\n@number("1.2")\n@tags("timing")\n'
        'def test_b(student):\n    """Fast.\n\n    More."""\n',
    )
    write(tmp_path, GOOD.replace("a_thing", "another"), HIDDEN_FILE)
    first, second, third = read_graded_tests(tmp_path)
    assert (first.name, first.exercise, first.points) == ("test_a_thing_holds", "1.1", 2)
    assert (first.title, first.label) == ("It holds.", "a thing holds")
    assert (first.hidden, first.visibility) == (False, "visible")
    assert (second.points, second.title, second.tags) == (1.5, "Fast.", ("timing",))
    assert (third.hidden, third.visibility) == (True, "after_published")
    assert points_by_exercise([first, second, third], hidden=False) == {"1.1": 2, "1.2": 1.5}


BAD = {
    "no weight": ("@weight(2)\n", "", "line 3, test_a_thing_holds: @weight is missing"),
    "no number": ('@number("1.1")\n', "", "@number is missing"),
    "no docstring": ('"""It holds."""', "pass", "docstring"),
    "another decorator": (
        "@weight(2)",
        "@weight(2)\n@pytest.mark.slow",
        "only gradescope-utils decorators",
    ),
    "weight without points": ("@weight(2)", "@weight()", "line 4.*@weight"),
    "weight by keyword": ("@weight(2)", "@weight(points=2)", "line 4.*@weight"),
    "weight that is computed": ("@weight(2)", "@weight(POINTS)", "line 4.*@weight"),
    "weight that is text": ("@weight(2)", '@weight("2")', "line 4.*@weight"),
    "weight below 0": ("@weight(2)", "@weight(-2)", "line 4.*@weight"),
    "number that is no text": ('@number("1.1")', "@number(1.1)", "line 4.*@number"),
    "test in a class": ("def test", "class TestA: ...\n\n\ndef test", "line 4.*plain function"),
    "test that is async": ("def test", "async def test", "line 4.*plain function"),
    "not Python": ("def test", "def def test", "line 4.*not valid Python"),
}


@pytest.mark.parametrize(("find", "put", "named"), BAD.values(), ids=BAD)
def test_an_error_says_what_is_wrong_in_which_file(tmp_path, find, put, named):
    assert find in GOOD
    with pytest.raises(CourseError, match=rf"{re.escape(str(tmp_path))}.*{named}"):
        read_graded_tests(write(tmp_path, GOOD.replace(find, put, 1)))


def test_two_tests_of_one_name_are_refused(tmp_path):
    write(tmp_path, GOOD)
    with pytest.raises(CourseError, match="test_a_thing_holds is defined more than once"):
        read_graded_tests(write(tmp_path, GOOD, HIDDEN_FILE))


def test_a_folder_without_tests_is_refused(tmp_path):
    with pytest.raises(CourseError, match="contains no graded tests"):
        read_graded_tests(tmp_path)


@EACH
def test_an_assignment_has_100_points_of_which_about_60_are_public(assignment):
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    public, hidden = (
        sum(points_by_exercise(graded_tests, hidden=flag).values()) for flag in (False, True)
    )
    assert public + hidden == 100
    assert 55 <= public <= 65


@EACH
def test_every_exercise_has_public_and_hidden_tests_and_every_test_an_exercise(assignment):
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    numbers = {exercise.number for exercise in assignment.exercises}
    for hidden in (False, True):
        assert set(points_by_exercise(graded_tests, hidden=hidden)) == numbers


@EACH
def test_the_handout_tells_the_hidden_points_without_the_hidden_tests(assignment, tmp_path):
    folder = ROOT / "tests" / assignment.name
    write(tmp_path, (folder / "hidden_points.json").read_text(), "hidden_points.json")
    assert read_hidden_points(tmp_path) == read_hidden_points(folder)
    assert sum(read_hidden_points(folder).values()) > 0


@EACH
def test_graded_tests_import_neither_solutions_nor_the_machinery(assignment):
    files = sorted((ROOT / "tests" / assignment.name).glob("*.py"))
    assert len(files) >= 3
    for file in files:
        for name in imported_names(file.read_text("utf-8")):
            assert name.partition(".")[0] not in ("solutions", "assignments", "autograder"), file


def imported_names(source):
    """The modules that a file imports, also inside functions and through importlib."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import hides what it imports"
            yield node.module
        elif isinstance(node, ast.Name):  # a module of PyTorch has a method eval
            assert node.id not in ("importlib", "__import__", "exec", "eval", "builtins")
        elif isinstance(node, ast.Attribute):
            assert node.attr not in ("importlib", "__import__", "import_module", "exec")
