"""Tests of the hash of graded tests: it changes with what the test uses, and nothing else."""

import pytest

from autograder.packaging import graded_test_hash
from common.assignment import ROOT, load_all, load_assignment
from common.testing.graded_tests import read_graded_tests

A1 = load_assignment("a1")
PUBLIC = '''"""Public."""

from tests.a1_convolution.cases import SIZES, check_sum
from tests.a1_convolution import shapes


@weight(1)
@number("1.1")
def test_sum(student):
    """Sums."""
    check_sum(student.add(1, 2), SIZES)


@weight(2)
@number("1.2")
def test_shape(student, rng):
    shapes.check(student.shape(rng))


@weight(2)
@number("1.3")
def test_asks(student, oracle):
    assert student.one() == oracle.one() == helper()


def helper():
    return 1
'''
HIDDEN = """from tests.a1_convolution.cases import check_sum as summed


def test_hidden_sum(student):
    summed(student.add(3, 4), ())
"""
CASES = """import numpy as np

SIZES = (1, 2)
UNUSED = 3


def check_sum(value, sizes):
    assert value == 3 or close(value)


def close(value):
    return np.isclose(value, 3)


def other():
    return UNUSED
"""
FILES = {
    "test_public.py": PUBLIC,
    "test_hidden.py": HIDDEN,
    "cases.py": CASES,
    "shapes.py": "SIDE = 2\n\n\ndef check(shape):\n    assert shape == SIDE\n",
    "oracle.py": "from tests.a1_convolution.sides import SIDES\n\n\ndef one():\n    return 1\n",
    "sides.py": "SIDES = 4\nCORNERS = 5\n",
}
ALL = {"test_sum", "test_shape", "test_asks", "test_hidden_sum"}
SUMS = {"test_sum", "test_hidden_sum"}


@pytest.fixture
def hashes(tmp_path, monkeypatch):
    """The hashes with one text replaced in one file. Each call reads a folder of its own."""

    def read(file="cases.py", old="", new=""):
        root = tmp_path / str(len([*tmp_path.iterdir()]))
        folder = root / "tests" / A1.name
        folder.mkdir(parents=True)
        assert not old or FILES[file].count(old) == 1
        for name, text in FILES.items():
            (folder / name).write_text(text.replace(old, new) if name == file else text)
        monkeypatch.setattr(graded_test_hash, "ROOT", root)
        return graded_test_hash.test_hashes(A1)

    return read


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("test_public.py", "student.add(1, 2)", "student.add(1, 3)", {"test_sum"}),
        ("test_public.py", "@weight(1)", "@weight(4)", {"test_sum"}),
        ("test_public.py", "    return 1", "    return 2", {"test_asks"}),
        ("test_hidden.py", "add(3, 4)", "add(4, 3)", {"test_hidden_sum"}),
        ("cases.py", "value == 3", "value == 4", SUMS),
        ("cases.py", "isclose(value, 3)", "isclose(value, 4)", SUMS),  # by a helper's helper
        ("cases.py", "import numpy as np", "import other as np", SUMS),
        ("cases.py", "SIZES = (1, 2)", "SIZES = (1, 3)", {"test_sum"}),
        ("cases.py", "UNUSED = 3", "UNUSED = 4", set()),
        ("cases.py", "    return UNUSED", "    return 0", set()),
        ("cases.py", "UNUSED = 3", "UNUSED = 3\nprint(UNUSED)", SUMS),  # it may change anything
        ("shapes.py", "SIDE = 2", "SIDE = 3", {"test_shape"}),
        ("oracle.py", "return 1", "return 2", {"test_asks"}),
        ("sides.py", "SIDES = 4", "SIDES = 3", {"test_asks"}),  # by the oracle
        ("sides.py", "CORNERS = 5", "CORNERS = 6", set()),
        ("test_public.py", '"""Sums."""', '"""Adds up."""', set()),
        ("cases.py", "def other():", "# A comment.\n\n\ndef other():", set()),
    ],
)
def test_a_change_concerns_the_tests_that_use_it(hashes, file, old, new, changed):
    before, after = hashes(), hashes(file, old, new)
    assert before.keys() == after.keys() == ALL
    assert {name for name in ALL if before[name] != after[name]} == changed


def test_two_tests_of_the_same_code_have_hashes_of_their_own(hashes):
    assert len({*hashes().values()}) == len(ALL)


@pytest.mark.parametrize("assignment", load_all(), ids=lambda entry: entry.short)
def test_every_graded_test_has_a_hash(assignment):
    graded_tests = read_graded_tests(ROOT / "tests" / assignment.name)
    assert graded_test_hash.test_hashes(assignment).keys() == {test.name for test in graded_tests}
