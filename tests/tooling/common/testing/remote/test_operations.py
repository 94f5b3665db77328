"""Tests of remote operations: inputs, held values, warnings, and counted calls."""

import time

import numpy as np
import pytest

from autograder.grading.sandbox.conversation import MOST_CALLS
from common.errors import ChildFailure
from common.student_code.values import Handle, JudgeFunction
from common.testing.feedback.failure import explain
from common.testing.remote.operations import (
    call_each,
    call_with_held,
    changed_inputs,
    fetch,
    hold,
    paced_function,
    warnings_of,
    with_substitute,
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
    for expected in ([1, 2, 3], [2, 3, 4]):
        assert call_with_held(student.spoil, held, 1) is None
        assert fetch(held).tolist() == expected


def test_warnings_are_heard_beside_the_code(student):
    ones, zeros = np.ones(2), np.zeros(2)
    for _ in range(2):  # a warning that was given before is given again
        heard = warnings_of(student.divide, ones, zeros)
        assert heard == ["divided", "divide by zero encountered in divide"]
    assert warnings_of(student.divide, ones, ones) == ["divided"]
    assert warnings_of(student.same, zeros) == []


def test_a_neighbor_is_replaced_by_a_function_of_the_test(student):
    assert student.second_twice(np.ones(2), 5) == 10
    numbers = iter((300, 7, 1))
    substitute = JudgeFunction(lambda: [0, next(numbers)])
    assert with_substitute(student.second_twice, "pair", substitute, np.ones(2), 5) == 307
    assert substitute.calls == 2
    assert student.second_twice(np.ones(2), 5) == 10
    assert with_substitute(student.second_twice, "nobody", substitute, np.ones(2), 5) == 10
    assert substitute.calls == 2


def test_a_paced_function_takes_its_time_and_counts_its_calls(student):
    function = paced_function([150, 0, 30])
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


def test_a_function_of_the_test_gives_student_code_plain_data(student):
    numbers = iter(range(10))
    function = JudgeFunction(lambda: [next(numbers), "text"])
    assert student.given(function) == [0, "text"]
    assert student.given(function) == [1, "text"]
    assert function.calls == 2


def test_functions_of_the_test_that_do_not_exist_are_not_called(faces):
    with faces["isolated"].open("1.1") as student:
        function = JudgeFunction(lambda: None)
        student.call(function, 1)
        for message in ([1, 1], [1, -1], [1, True], [0, 0]):
            conversation = student._face
            with pytest.raises(ValueError, match="call"):
                conversation.function_called(message)
        conversation.questions = 1
        assert conversation.function_called([1, 0]) is function
        function.calls = MOST_CALLS
        with pytest.raises(ValueError, match="unexpected call"):
            conversation.function_called([1, 0])
