"""Tests of the search for names that a patch leaves undefined."""

import pytest

from autograder.proving.wrong_versions.mistakes import newly_undefined
from autograder.proving.wrong_versions.undefined_names import undefined_names

FILE = """
import math
from typing import Any as Anything

HALF = 0.5

class Layer:
    size = 3
    doubled = size * 2

    def forward(self, x):
        wide = x * HALF
        return [math.sqrt(entry) for entry in wide] + [{last}]

def outer(n):
    inner = lambda k: k + n
    return inner(len([n]))
"""


@pytest.mark.parametrize(
    ("last", "found"),
    [("wide", set()), ("narrow", {"narrow"}), ("size", {"size"}), ("print", set())],
)
def test_a_name_that_nothing_defines_is_found(last, found):
    assert undefined_names(FILE.format(last=last)) == found


def test_a_patch_that_leaves_a_name_undefined_is_an_error_that_names_it():
    before, after = FILE.format(last="wide"), FILE.format(last="narrow")
    (problem,) = newly_undefined(before, after, "mistakes.toml, renamed")
    assert problem == "mistakes.toml, renamed: the name narrow is not defined in the patched file."
    assert [*newly_undefined(after, after, "")] == []
