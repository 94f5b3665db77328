"""Tests of assignment.toml: an error names the file and the key."""

import pytest

from common.assignment import assignment_files, load_all, load_assignment, read_assignment, up_to
from common.errors import CourseError

GOOD = """
title = "Convolution"
files = ["convolution.py"]
libraries = ["numpy"]

[limits]
test_seconds = 20
total_seconds = 240
memory_mb = 1024

[[forbidden]]
call = "torch"
exercises = ["1.1"]
instead = "write it with NumPy"

[[exercises]]
number = "1.1"
functions = ["size"]
minutes = 10

[[exercises]]
number = "1.2"
functions = ["forward"]
minutes = 40
needs = { "1.1" = [] }
"""


def read(folder, text):
    file = folder / "a1_convolution" / "assignment.toml"
    file.parent.mkdir()
    file.write_text(text)
    return read_assignment(file)


def test_a_good_file_is_read(tmp_path):
    assignment = read(tmp_path, GOOD)
    assert (assignment.name, assignment.short) == ("a1_convolution", "a1")
    assert assignment.modules == ("convolution",)
    assert assignment.limits.test_seconds == 20
    assert assignment.exercise("1.2").needs == {"1.1": []}
    assert [entry.call for entry in assignment.forbidden_in("1.1")] == ["torch"]
    assert assignment.forbidden_in("1.2") == ()


BAD = {
    "unknown key": ("title", 'color = "red"\ntitle', "color"),
    "unknown key in limits": ("memory_mb", "cores = 2\nmemory_mb", "cores.*limits"),
    "unknown key in an exercise": ("minutes = 10", "minutes = 10\nhours = 1", "hours.*exercises"),
    "unknown key in forbidden": ('call = "torch"', 'call = "torch"\nwhy = ""', "why.*forbidden"),
    "missing key": ('title = "Convolution"', "", "title"),
    "missing limit": ("memory_mb = 1024", "", "memory_mb"),
    "wrong type": ('title = "Convolution"', "title = 1", "str.*int.*title"),
    "text for a number": ("= 1024", '= "1024"', "int.*str.*limits.memory_mb"),
    "fraction for a whole number": ("= 1024", "= 1024.5", "int.*limits.memory_mb"),
    "limit of 0": ("test_seconds = 20", "test_seconds = 0", "limits.test_seconds"),
    "number of an exercise as a number": ('number = "1.1"', "number = 1.1", "exercises.*number"),
    "number of an exercise without a dot": ('number = "1.1"', 'number = "1"', "exercises.*number"),
    "file that is no module": ('"convolution.py"', '"../convolution.py"', "files"),
    "no file": ('["convolution.py"]', "[]", "files"),
    "list of the wrong things": ('["size"]', "[1]", "exercises.*functions"),
    "duplicate exercise": (
        'number = "1.2"',
        'number = "1.1"',
        "exercises lists 1.1 more than once",
    ),
    "need of an unknown exercise": (
        '{ "1.1" = [] }',
        '{ "1.9" = [] }',
        "exercises.needs of 1.2 names 1.9, which is not an exercise",
    ),
    "need of itself": (
        '{ "1.1" = [] }',
        '{ "1.2" = [] }',
        "exercises.needs of 1.2 names 1.2, which doesn't come earlier.*circle",
    ),
    "needs in a circle": (
        "minutes = 10",
        'minutes = 10\nneeds = { "1.2" = [] }',
        "exercises.needs of 1.1 names 1.2, which doesn't come earlier.*circle",
    ),
    "need of a function of another exercise": (
        '{ "1.1" = [] }',
        '{ "1.1" = ["forward"] }',
        "exercises.needs of 1.2 names forward, which is not a function of exercise 1.1",
    ),
    "need without a stand-in": (
        '{ "1.1" = [] }',
        '{ "1.1" = ["size"] }',
        "exercises.needs of 1.2 names size, but .*a1_convolution has no stand-in for size",
    ),
    "need that is no list": ('{ "1.1" = [] }', '["1.1"]', "exercises.*needs"),
    "unknown exercise in forbidden": (
        'exercises = ["1.1"]',
        'exercises = ["2.1"]',
        "forbidden.exercises of torch names 2.1",
    ),
    "operator without a namespace": (
        'call = "torch"',
        'call = "torch"\noperators = ["layer_norm"]',
        r"forbidden.*operators",
    ),
    "operator forbidden twice": (
        "[[exercises]]",
        '[[forbidden]]\ncall = "x"\nexercises = ["1.1"]\ninstead = "y"\n'
        'operators = ["aten::add", "aten::add"]\n\n[[exercises]]',
        "forbidden.operators of x lists aten::add, which exercise 1.1 forbids already",
    ),
    "more time by the clock than Gradescope has": (
        "total_seconds = 240",
        "total_seconds = 580",
        "limits let code that sleeps take 2400 seconds by the clock. Gradescope allows 2400",
    ),
    "not TOML": ("[limits]", "[limits", "not valid TOML.*line 6"),
}


@pytest.mark.parametrize(("find", "put", "named"), BAD.values(), ids=BAD)
def test_an_error_names_file_and_key(tmp_path, find, put, named):
    assert GOOD.count(find) >= 1
    with pytest.raises(CourseError, match=rf"(?s)a1_convolution/assignment\.toml.*{named}"):
        read(tmp_path, GOOD.replace(find, put, 1))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CourseError, match=r"assignment\.toml is missing"):
        read_assignment(tmp_path / "assignment.toml")


def test_an_assignment_is_found_by_its_short_and_its_long_name():
    for assignment in load_all():
        assert load_assignment(assignment.short) == load_assignment(assignment.name) == assignment


@pytest.mark.parametrize("name", ["a99", "", "a", "convolution", "a1_"])
def test_an_unknown_name_is_reported_with_the_known_ones(name):
    with pytest.raises(CourseError, match=rf"No assignment is named '{name}'\. Available: a1"):
        load_assignment(name)


def test_assignments_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("a10_late", "a2_early", "a9_middle"):
        file = tmp_path / "assignments" / name / "assignment.toml"
        file.parent.mkdir(parents=True)
        file.touch()
    names = [file.parent.name for file in assignment_files(tmp_path)]
    assert names == ["a2_early", "a9_middle", "a10_late"]


def test_the_course_up_to_an_assignment_includes_it():
    assert [one.short for one in up_to(load_assignment("a3"))] == ["a1", "a2", "a3"]
