"""Tests of remote operations: inputs, held values, warnings, and counted calls."""

import time

import numpy as np
import pytest

from common.errors import ChildFailure, Failure
from common.student_code.values import Handle
from common.testing.feedback.failure import explain
from common.testing.remote.operations import (
    call_each,
    call_each_held,
    calls_during,
    changed_inputs,
    fetch,
    hold,
    paced_function,
    warnings_of,
    write_into,
)


def test_changed_inputs_names_what_was_changed(student):
    x, z = np.arange(3.0), np.array([np.nan, 1.0])
    assert changed_inputs(student.spoil, x, x) == ["x"]
    assert changed_inputs(student.spoil, x, x, z) in (["x", "z"], ["x", "input 3"])
    assert changed_inputs(student.spoil, x=x, y=3, z=z) == ["x", "z"]
    assert changed_inputs(student.same, z) == []
    assert np.array_equal(x, [0, 1, 2])


def test_weights_can_be_written_into_a_network(student):
    model = student.Network(np.random.default_rng(3))
    write_into(model, "parameters", {"w": np.arange(3.0), "b": np.ones(1)})
    assert model.forward(np.ones(3)) == 4.0
    with pytest.raises(KeyError) as raised:
        write_into(model, "parameters", {"v": np.ones(1)})
    assert "Network.parameters" in explain(raised.value).sentence


def test_call_each_reads_results_after_the_last_call(student):
    calls = [(np.full(3, float(n)),) for n in range(3)]
    assert [result[0] for result in call_each(student.same, calls)] == [0, 1, 2]
    assert [result[0] for result in call_each(student.into_buffer, calls)] == [2, 2, 2]


@pytest.mark.parametrize("reply", [None, [], [1], [1, 2, 3], (1, 2), {1: 2, 3: 4}], ids=repr)
def test_a_made_up_reply_to_call_each_fails_the_test(faces, monkeypatch, reply):
    face = faces["direct"]
    with face.open("1.1") as student, pytest.raises(ChildFailure, match="malformed reply"):
        function = student.same
        monkeypatch.setattr(face, "operate", lambda *details: reply)
        call_each(function, [(1,), (2,)])


def test_held_values_stay_until_they_are_fetched(student):
    held = hold(student, np.arange(3.0))
    assert isinstance(held, Handle) and np.array_equal(fetch(held), [0, 1, 2])
    left = call_each_held(student.spoil, [(held, 1), (held, 2)], z=[0])
    assert isinstance(left.results, Handle)
    assert [result.tolist() for result in fetch(left)] == [[2, 3, 4], [2, 3, 4]]


def test_results_that_change_after_the_calls_do_not_fit_their_seal(student):
    """What is timed must be finished when the clock stops; a cache may still change."""
    for calls, fits in (([(1.0,)], True), ([(1.0,), (2.0,)], False)):
        left = call_each_held(student.late, calls, 1)
        student.finish()
        if fits:
            assert fetch(left)[0][0].tolist() == [1, 1, 1]
        else:
            with pytest.raises(Failure, match="missing or not final"):
                fetch(left)


def test_warnings_are_heard_beside_the_code(student):
    ones, zeros = np.ones(2), np.zeros(2)
    for _ in range(2):  # a warning that was given before is given again
        heard = warnings_of(student.divide, ones, zeros)
        assert heard == ["divided", "divide by zero encountered in divide"]
    assert warnings_of(student.divide, ones, ones) == ["divided"]
    assert warnings_of(student.same, zeros) == []


def test_calls_of_a_neighbor_are_counted_while_a_function_runs(student):
    for _ in range(2):
        assert calls_during(student.same_twice, "same", np.ones(2)) == 2
    assert calls_during(student.same, "same", np.ones(2)) == 0
    assert calls_during(student.same_twice, "nobody", np.ones(2)) == 0


def test_a_paced_function_takes_its_time_and_counts_its_calls(student):
    function = paced_function(student, [150, 0, 30])
    assert function.calls == 0
    start = time.perf_counter()
    student.call(function, 2)
    seconds = time.perf_counter() - start
    assert function.calls == 2
    assert seconds >= 0.15
    start = time.perf_counter()
    student.call(function, 5)
    assert function.calls == 7
    assert time.perf_counter() - start >= 5 * 0.03
