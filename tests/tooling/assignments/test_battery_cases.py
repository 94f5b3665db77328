"""Tests that every function and method of the exercise tables goes through the battery."""

import ast
from functools import cache
from importlib import import_module

import pytest

from autograder.authoring.solution_markers import find_blocks
from common.assignment import ROOT, load_all, load_assignment
from common.testing.graded_tests import HIDDEN_FILE, PUBLIC_FILE

# This list shrinks: an assignment that has battery_cases.py can't be in it.
NOT_YET = {"a4", "a6", "a7"}
NAMES = [assignment.short for assignment in load_all()]
ADOPTED = [short for short in NAMES if short not in NOT_YET]


@cache
def battery_cases(short):
    return import_module(f"tests.{load_assignment(short).name}.battery_cases")


def exempt(short):
    return getattr(battery_cases(short), "EXEMPT", {})


def called(short, number):
    """What the cases of an exercise call, as the table and the solution blocks name it."""
    return {case.name for case in battery_cases(short).CASES.get(number, ())}


def asked(assignment):
    """By exercise, the functions of the table; for a class, the methods that students write."""
    folder = ROOT / "solutions" / assignment.name
    blocks = {
        block.function
        for file in assignment.files
        for block in find_blocks((folder / file).read_text("utf-8"), file)
    }
    found = {}
    for exercise in assignment.exercises:
        names = set(exercise.functions)
        methods = {name for name in blocks if name.partition(".")[0] in names and "." in name}
        classes = {name.partition(".")[0] for name in methods}
        public = {name for name in methods if not name.partition(".")[2].startswith("_")}
        found[exercise.number] = (names - classes) | public
    return found


@pytest.mark.parametrize("short", ADOPTED)
def test_every_function_of_the_table_goes_through_the_battery_or_says_why_not(short):
    missing = {
        number: sorted(names - called(short, number) - {*exempt(short)})
        for number, names in asked(load_assignment(short)).items()
    }
    assert {number: names for number, names in missing.items() if names} == {}


@pytest.mark.parametrize("short", ADOPTED)
def test_what_is_exempt_is_in_the_table_and_has_a_reason(short):
    names = set().union(*asked(load_assignment(short)).values())
    assert {*exempt(short)} <= names
    assert all(exempt(short).values())


@pytest.mark.parametrize("short", ADOPTED)
@pytest.mark.parametrize("file", [PUBLIC_FILE, HIDDEN_FILE])
def test_the_cases_of_each_exercise_are_graded_in_a_test_of_this_exercise(short, file):
    folder = ROOT / "tests" / load_assignment(short).name
    graded = {}
    for test in ast.parse((folder / file).read_text("utf-8")).body:
        for call in ast.walk(test):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "check_promises":
                (number,) = (
                    ast.literal_eval(decorator.args[0])
                    for decorator in test.decorator_list
                    if decorator.func.id == "number"
                )
                graded[number] = ast.unparse(call.args[2])
    numbers = list(battery_cases(short).CASES)
    assert graded == {number: f"CASES[{number!r}]" for number in numbers}


def test_the_assignments_that_have_no_cases_yet_are_those_of_the_list():
    files = (ROOT / "tests").glob("a*/battery_cases.py")
    assert {file.parent.name.partition("_")[0] for file in files} == {*ADOPTED}
