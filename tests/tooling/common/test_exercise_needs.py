"""Tests of what exercises need: the stand-ins' source, and the errors about them."""

from dataclasses import dataclass, field

import pytest

from common.errors import CourseError
from common.exercise_needs import (
    Needed,
    check_needs,
    in_words,
    needed_of,
    replacements_for,
)

STANDINS = """
import math
import decimal

SCALE, UNUSED = math.tau, 1


def circle(r):
    return scaled(r)


def scaled(r):
    return SCALE * r


def ball(r):
    return decimal.Decimal(circle(r))


disc = circle
"""


@dataclass
class Row:
    number: str
    functions: list
    needs: dict = field(default_factory=dict)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shapes.py").write_text(STANDINS)
    return tmp_path


def test_only_functions_of_failed_exercises_are_replaced():
    rows = [Row("1.3", [], {"1.1": ["f", "g"], "1.2": []})]
    assert needed_of(rows, "1.3", {"1.1", "1.2"}) == (Needed("f", "1.1"), Needed("g", "1.1"))
    assert needed_of(rows, "1.3", {"1.2", "1.3"}) == ()
    assert needed_of(rows, "9.9", {"1.1"}) == ()


def test_a_sentence_names_functions_and_exercises():
    one, two = Needed("f", "1.1"), Needed("g", "1.2")
    assert in_words([one]) == "our `f` instead of yours (exercise 1.1)"
    assert in_words([one, two]) == "our `f` and `g` instead of yours (exercises 1.1 and 1.2)"


def test_the_source_of_a_stand_in_holds_what_it_uses_and_nothing_else(folder):
    (found,) = replacements_for(folder, [Needed("circle", "1.1")])
    assert (found.module, found.names) == ("shapes", ["circle"])
    space = {}
    exec(found.source, space)
    assert space["circle"](1) == pytest.approx(6.283185)
    assert {"ball", "disc", "decimal"}.isdisjoint(space)


def test_a_stand_in_that_uses_another_exercises_function_is_refused(folder):
    def check(function, file="a1/assignment.toml"):
        asked = ["circle", function]
        check_needs(file, [Row("1.1", asked), Row("1.2", [], {"1.1": [function]})], folder)

    check("scaled")
    for function in ("ball", "disc"):
        with pytest.raises(CourseError) as raised:
            check(function)
        assert str(raised.value).startswith("a1/assignment.toml: exercises.needs of 1.2 names")
        assert f"{function}, but its stand-in in" in str(raised.value)
        assert "uses circle, which exercise 1.1 asks for" in str(raised.value)
