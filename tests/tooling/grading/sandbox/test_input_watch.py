"""Tests that the judge sees for itself which inputs a call changed, whatever the child says."""

import numpy as np
import pytest

from autograder.grading.sandbox.input_watch import name_of, parameters_of_stubs, same_bytes
from common.assignment import ROOT
from common.errors import ChildFailure, Failure
from common.testing.checks import check_unchanged
from common.testing.remote.operations import call_each, changed_inputs
from tests.tooling.grading_fixtures import both_faces

CODE = b"""
import sys
import numpy as np

calls = 0


def spoil(x, w, secret_0_25=0):
    x[...] = 0


def spoil_renamed(a_0_25, b_0_75):
    b_0_75 += 1


def restore(x):
    x += 1
    x -= 1


def reshape(x):
    x.shape = (x.size,)


def large(x):
    x[-1] += 1


def same(x):
    return x


def spare_the_third(x):
    global calls
    calls += 1
    if calls != 3:
        x += 1
    return 0


def spare_watched(x):
    if sys._getframe(1).f_code.co_name != "changed_by":
        x += 1


def lie(answer):
    operations = sys.modules["common.testing.remote.operations"]
    operations.OPERATIONS["changed_inputs"] = lambda function, args, kwargs: (
        function(*args, **kwargs), answer)[1]


def never_call():
    operations = sys.modules["common.testing.remote.operations"]
    operations.OPERATIONS["changed_inputs"] = lambda function, args, kwargs: {}
"""


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    with both_faces(tmp_path_factory.mktemp("watched"), CODE) as made:
        yield made


@pytest.fixture
def student(faces):
    with faces["isolated"].open("1.1") as code:
        yield code


@pytest.mark.parametrize("answer", [{}, {1: "w"}, {7: "x"}, {"x": "x"}, {0: ["x"]}], ids=repr)
def test_a_child_that_lies_hides_no_change(student, answer):
    student.lie(answer)
    x, w = np.ones(3), np.ones((2, 2))
    changed = changed_inputs(student.spoil, x, w)
    assert changed[0] in ("x", "input 1") and changed[1:] in ([], ["w"])
    with pytest.raises(Failure, match="spoil modifies an input"):
        check_unchanged("spoil", student.spoil, x, w)


@pytest.mark.parametrize("answer", [None, [], [0], "x", 5], ids=repr)
def test_an_answer_of_another_kind_fails_the_test(student, answer):
    student.lie(answer)
    with pytest.raises(ChildFailure, match="malformed reply"):
        changed_inputs(student.spoil, np.ones(3), np.ones(3))


def test_a_call_that_was_never_made_is_no_excuse_for_those_before(student):
    student.never_call()
    student.spoil(np.ones(3), np.ones(3))
    assert changed_inputs(student.spoil, np.ones(3), np.ones(3)) == [
        "an input in another call of this test"
    ]
    assert changed_inputs(student.same, np.ones(3)) == []


def test_a_function_can_not_spare_just_the_call_that_is_watched(student):
    call_each(student.spare_the_third, [(np.ones(3),), (np.ones(3),)])
    assert len(changed_inputs(student.spare_the_third, np.ones(3))) == 1


def test_a_function_can_not_tell_that_all_its_calls_are_watched(student):
    assert changed_inputs(student.spare_watched, np.ones(3)) == [
        "an input in another call of this test"
    ]


def test_what_is_as_before_is_unchanged(student):
    x = np.array([np.nan, 1.0, 0.5])
    assert changed_inputs(student.restore, x) == []
    assert changed_inputs(student.same, np.zeros((0, 3))) == []


def test_what_only_the_child_sees_is_still_reported(student):
    assert changed_inputs(student.reshape, np.ones((2, 2))) == ["x"]


def test_the_last_value_of_a_large_array_is_looked_at(student):
    large = np.ones((3, 400_000))
    for x in (large, large[:, ::2], large.T):
        assert changed_inputs(student.large, x) == ["x"]
        assert changed_inputs(student.same, x) == []


def test_an_argument_that_is_passed_twice_is_known_by_its_place(student):
    x = np.ones(3)
    assert changed_inputs(student.spoil, x, x) == ["x"]
    assert changed_inputs(student.spoil, x=x, w=x) == ["x"]


def test_inputs_that_do_not_fit_are_not_taken_for_unchanged(student, monkeypatch):
    inputs = student._face.arrays.inputs
    inputs.used = len(inputs.memory)
    student._face.arrays.reuse_at = inputs.used
    with pytest.raises(ChildFailure, match="keeps more inputs"):
        changed_inputs(student.spoil, np.ones(3), np.ones(3))


def test_a_name_that_no_stub_has_is_not_repeated(student):
    found = changed_inputs(student.spoil_renamed, np.ones(3), np.ones(3))
    assert found == ["input 2"]


def test_names_are_those_of_stubs_or_places():
    stubs = ROOT / "assignments" / "a1_convolution"
    assert {"x", "w", "b", "dout"} <= parameters_of_stubs(stubs)
    assert name_of(0, "x", stubs) == "x" and name_of("dout", "x", stubs) == "dout"
    for said in ("0.25", "x ", None, 1, ["x"], b"x"):
        assert name_of(1, said, stubs) == "input 2"


def test_bytes_are_compared_and_not_values():
    for one, other, same in (
        (np.array([np.nan]), np.array([np.nan]), True),
        (np.array([0.0]), np.array([-0.0]), False),
        (np.ones(10**6), np.ones(10**6), True),
    ):
        assert same_bytes(one, other) == same
