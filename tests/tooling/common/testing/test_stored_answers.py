"""Tests of stored answers: the correct one is found, or none."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Failure
from common.testing.stored_answers import RecordingOracle, StoredOracle, call_key, write_answers

SIZES = st.one_of(st.integers(0, 30), st.tuples(st.integers(0, 30), st.integers(0, 30)))
CALLS = st.tuples(
    st.lists(SIZES, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(["stride", "padding"]), SIZES),
)


@given(CALLS, CALLS)
def test_two_questions_have_one_key_only_if_they_are_the_same(first, second):
    assert (call_key("conv2d", *first) == call_key("conv2d", *second)) == (first == second)


def test_sizes_that_read_alike_when_run_together_are_distinguished():
    assert call_key("im2col", (1, 11), {}) != call_key("im2col", (11, 1), {})


def test_arrays_are_distinguished_by_values_shape_and_type():
    x = np.arange(6.0)
    others = (x + 1, x.reshape(2, 3), x.astype(np.float32), x[:5])
    keys = {call_key("f", (array,), {}) for array in (x, *others)}
    assert len(keys) == 5
    assert call_key("f", (np.repeat(x, 2)[::2],), {}) == call_key("f", (x,), {})


def oracle_of_sums():
    return SimpleNamespace(
        total=lambda x: x.sum(), parts=lambda x, scale=1: (x * scale, x.sum(0)), same=lambda x: x
    )


def test_what_was_recorded_is_found_again(tmp_path):
    recording = RecordingOracle(oracle_of_sums())
    x = np.arange(6.0).reshape(2, 3)
    asked = [recording.total(x), recording.parts(x, scale=3), recording.same(x)]
    write_answers(tmp_path / "answers.npz", recording.answers)
    stored = StoredOracle(tmp_path / "answers.npz")
    found = [stored.total(x), stored.parts(x, scale=3), stored.same(x)]
    assert found[0] == asked[0] == 15
    for mine, theirs in zip((*found[1], found[2]), (*asked[1], asked[2]), strict=True):
        np.testing.assert_array_equal(mine, theirs, strict=True)


def test_a_question_that_was_never_asked_is_a_failure_that_says_so(tmp_path):
    write_answers(tmp_path / "answers.npz", {})
    with pytest.raises(Failure, match=r"answers\.npz has no stored answer for this test's inputs"):
        StoredOracle(tmp_path / "answers.npz").total(np.ones(3))


def test_the_same_answers_give_the_same_bytes_in_any_order_at_any_time(tmp_path, monkeypatch):
    answers = {"b": np.ones(3), "a": np.zeros((2, 2))}
    write_answers(tmp_path / "one.npz", answers)
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    write_answers(tmp_path / "two.npz", dict(reversed(answers.items())))
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
