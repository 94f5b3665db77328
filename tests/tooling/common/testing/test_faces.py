"""Tests that the two faces of `student`, direct and isolated, behave the same."""

import numpy as np
import pytest

from autograder.grading.results import to_gradescope
from common.assignment import load_assignment
from common.errors import Failure
from common.student_code.values import Handle
from common.student_text import contains_pattern, unmarked
from common.testing.feedback.failure import explain
from tests.tooling.grading_fixtures import REFERENCE, STUB, grade, with_lab


def test_values_cross_and_constants_are_read(student):
    assert student.CONSTANT == (1, [2.5, "three"])
    for value in (None, True, 3, 2**100, "text", b"bytes", [1, (2.5, {"a": None})], {(1, 2): "k"}):
        assert student.same(value) == value and isinstance(student.same(value), type(value))
    nan = student.same(np.array([np.nan, -0.0, np.inf]))
    assert np.array_equal(nan, [np.nan, 0, np.inf], equal_nan=True) and np.signbit(nan[1])
    result = student.nothing_plain()
    assert [isinstance(item, Handle) for item in result] == [True] * 3 + [False] * 3
    assert result[3:] == [3 + 4j, np.float32(0.5), 2**100]
    assert isinstance(student.subclass(np.arange(3.0)), Handle)
    assert student.big_endian().dtype.str == ">i4"


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4).T,
        np.arange(24.0).reshape(4, 6)[::2, ::-2],
        np.arange(6, dtype=np.int16)[::-1],
        np.broadcast_to(np.float32(2), (2, 3)),
        np.array(3.0),
        np.zeros((0, 3)),
    ],
    ids=["plain", "transposed", "gaps", "backwards", "broadcast", "0-d", "empty"],
)
def test_an_input_has_the_layout_that_the_test_gave_it(student, x):
    strides, contiguous, writeable, dtype = student.layout(x)
    assert (contiguous, writeable, dtype) == (x.flags.c_contiguous, True, x.dtype.str)
    if not x.flags.c_contiguous:
        assert strides == x.strides
    assert np.array_equal(student.same(x), x) and student.same(x).dtype == x.dtype


def test_objects_stay_and_can_be_used(student):
    x = np.arange(3.0)
    out, layer = student.with_object(x)
    assert isinstance(layer, Handle) and np.array_equal(out, 2 * x)
    assert np.array_equal(layer(x), x * x) and layer.calls == 1
    assert np.array_equal(layer.factor, x)
    assert student.same(layer).calls == 1  # handed back, it is the same object
    assert student.Layer(4)(2) == 8
    with pytest.raises(TypeError):
        layer.calls = 7
    with pytest.raises(KeyError):
        layer.broken  # noqa: B018
    with pytest.raises(Failure, match="doesn't define nothing"):
        layer.nothing  # noqa: B018


def test_a_namedtuple_is_an_object_and_works_as_a_cache(student):
    _, cache = student.with_namedtuple(np.arange(3.0))
    assert isinstance(cache, Handle) and cache.factor == 3
    out, name = student.of_namedtuple(cache)
    assert np.array_equal(out, [0, 3, 6]) and name == "Cache"


def test_a_dict_that_two_calls_share_is_shared(student):
    _, first = student.with_dict(np.zeros(2))
    _, second = student.with_dict(np.ones(2))
    assert np.array_equal(first["x"], [0, 0]) and np.array_equal(second["x"], [1, 1])
    x, same = student.of_dict(first)
    assert same and np.array_equal(x, [1, 1])


def test_a_container_that_is_handed_back_is_the_very_same(student):
    kept = student.with_list(np.zeros(2))
    assert student.is_same_list(kept) == (True, True, True)
    kept.append(3)  # of the copy that the test holds
    assert student.is_same_list(kept) == (True, True, True)
    copied = student.is_same_list([np.zeros(2), kept[1]])
    assert copied == (False, True, False)
    (inner,) = student.same([kept])
    assert student.is_same_list(inner)[0] is True


def test_results_and_inputs_are_copies(student):
    first = student.into_buffer(np.arange(3.0))
    second = student.into_buffer(np.zeros(3))
    assert np.array_equal(first, [0, 1, 2]) and np.array_equal(second, [0, 0, 0])
    first[:] = 9
    assert np.array_equal(student.buffer, [0, 0, 0])
    x = np.arange(3.0)
    assert np.array_equal(student.spoil(x, 1), [1, 2, 3]) and np.array_equal(x, [0, 1, 2])


def test_each_test_starts_with_a_fresh_module(faces):
    for face in faces.values():
        for _ in range(2):
            with face.open("1.1") as student:
                assert [student.count(), student.count()] == [1, 2]


def test_a_generator_is_copied_and_draws_the_same(student):
    generator = np.random.default_rng(3)
    drawn = student.Network(generator).parameters["w"]
    assert np.array_equal(drawn, student.Network(generator).parameters["w"])
    assert np.array_equal(drawn, generator.normal(size=3))


@pytest.mark.parametrize(
    ("kind", "error", "sentence"),
    [
        ("value", ValueError, "fail raised a ValueError."),
        ("key", KeyError, "fail raised a KeyError."),
        ("none", NotImplementedError, "fail is not written yet."),
        ("exit", Failure, "Your code exited the program (SystemExit) instead of returning."),
    ],
)
def test_exceptions_arrive_as_what_they_are(student, kind, error, sentence):
    with pytest.raises(error) as raised:
        student.fail(kind)
    assert explain(raised.value).sentence == sentence
    assert student.count() == 1  # the code lives on


def test_an_exception_of_ones_own_is_caught_as_what_it_is_derived_from(student):
    with pytest.raises(ValueError) as raised:
        student.fail("own")
    assert contains_pattern(raised.value, "too big")
    with pytest.raises(ValueError if "Direct" in type(student._face).__name__ else RuntimeError):
        student.fail("unicode")  # this one can't be made from a message alone


def test_a_result_that_holds_itself_cannot_be_read(student):
    with pytest.raises(Failure) as raised:
        student.deep()
    assert raised.value.explanation.sentence == "The return value can't be read."
    assert "nested more than 32 levels deep" in unmarked(raised.value.explanation.details)


def test_a_name_that_is_not_there(student):
    with pytest.raises(Failure) as raised:
        student.constant  # noqa: B018
    assert raised.value.explanation.sentence == "convolution.py doesn't define constant."
    assert "count" in unmarked(raised.value.explanation.details)


# One wrong version for each way to be wrong, in as many functions.
MISTAKES = {
    "np.sum(patch * w[k]) + b[k]": "np.sum(patch * w[k, ::-1]) + b[k]",
    "    return dx, dw, db\n": "    return dx, dw\n",
    "out[:, :, r, s] = flat.max(axis=2)": "x[0, 0, 0, 0] = 0; out[:, :, r, s] = flat.max(2)",
    "winners[:, :, r, s]] += dout": "winners[:, :, r, s]] = dout",
    "share = dout / (kh * kw)": "share = dout / undefined",
    "    cols = np.empty(": "    sum(range(1_000_000))\n    cols = np.empty(",
    "return c_out * (c_in * kh * kw + int(bias))": "print(c_in)",
    "return n_out * (n_in + int(bias))": "return np.float64(n_out * (n_in + int(bias)))",
}


def broken():
    source = REFERENCE.read_text()
    for right, wrong in MISTAKES.items():
        assert source.count(right) == 1, right
        source = source.replace(right, wrong)
    return source


SUBMISSIONS = {"reference": REFERENCE.read_text, "stub": STUB.read_text, "broken": broken}
LOST = {
    "reference": set(),
    "stub": {"1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9"},
    "broken": {"1.2", "1.3", "1.4", "1.5", "1.6", "1.7"},
}


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_all_graded_tests_end_the_same_in_both_faces(name):
    source = SUBMISSIONS[name]()
    source = source if name == "stub" else with_lab(source)
    results = [grade(source, load_assignment("a1"), direct=direct) for direct in (True, False)]
    direct, isolated = (
        {item.test.name: item.explanation and item.explanation.sentence for item in r.all_outcomes}
        for r in results
    )
    assert direct == isolated
    assert len(isolated) == len(results[0].tests) > 60
    for result in results:
        assert result.finished and not result.notes and result.maximum == 100
        failed = {item.test.exercise for item in result.all_outcomes if not item.passed}
        assert failed == LOST[name]
        assert not any("bug in the course" in str(item) for item in isolated.values())
    assert results[1].score == {"reference": 100, "stub": 0}.get(name, results[0].score)
    outputs = [to_gradescope(result)["output"] for result in results]
    assert "WITHOUT PROTECTION" in outputs[0] and "WITHOUT PROTECTION" not in outputs[1]
