"""Calls that cross together are told as if each were checked before the next, in both faces."""

import numpy as np
import pytest

from common.student_code.values import Handle
from common.testing.calls import Calls, Item
from common.testing.compare import assert_equal
from common.testing.feedback.failure import ChildFailure, explain


def check_double(calls, x, expected):
    what = f"double({x})"
    calls.add("double", (x,), then=lambda result: assert_equal(result, expected, what=what))


def told(student, ask):
    with pytest.raises(Exception) as raised, Calls(student) as calls:
        ask(calls)
    return explain(raised.value)


def test_results_are_checked_in_the_order_of_the_calls(student):
    seen = []
    with Calls(student) as calls:
        for x in (1, 2.5, "a"):
            calls.add("double", (), {"x": x}, then=seen.append)
        assert seen == []
    assert seen == [2, 5.0, "aa"]


def test_the_first_wrong_result_is_told_and_what_raises_only_in_its_turn(student):
    def ask(calls):
        check_double(calls, 1, 2)
        check_double(calls, 2, 5)
        check_double(calls, 3, 7)
        calls.add("fail", ("key",))

    assert told(student, ask).sentence == "double(2) is wrong."


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("key", "fail raised a KeyError."),
        ("own", "fail raised a ValueError."),
        ("none", "fail is not written yet."),
        ("exit", "The code ended the program (SystemExit) instead of returning."),
    ],
)
def test_a_call_that_raises_is_told_as_ever_and_only_refusals_end_nothing(student, kind, sentence):
    def ask(calls):
        check_double(calls, 1, 2)
        calls.add("fail", (kind,))
        check_double(calls, 1, 3)

    with pytest.raises((Exception, SystemExit)) as single:
        student.fail(kind)
    together = told(student, ask)
    assert together == explain(single.value) and together.sentence == sentence
    assert student.count_doublings() == (2 if kind == "own" else 1)


def test_a_missing_function_is_told_after_what_was_asked_before_it(student):
    def ask(calls):
        check_double(calls, 1, 3)
        calls.add("no_such_function", ())

    def ask_rightly(calls):
        check_double(calls, 1, 2)
        calls.add("no_such_function", ())

    assert told(student, ask).sentence == "double(1) is wrong."
    assert "has no no_such_function" in told(student, ask_rightly).sentence


def test_a_result_is_read_at_once_unless_its_end_is_asked_for(student):
    for final, expected in ((False, [1.0, 2.0]), (True, [2.0, 2.0])):
        seen = []
        with Calls(student) as calls:
            for x in (1.0, 2.0):
                calls.add("buffer_and_cache", (x,), then=seen.append, count=2, final=final)
        assert [out[0] for out, _ in seen] == expected


def test_what_is_not_sent_can_be_handed_on(student):
    seen = []
    with Calls(student) as calls:
        turns = [
            calls.add("buffer_and_cache", (x,), then=seen.append, count=2, sent=0) for x in (1, 2)
        ]
        for turn in turns:
            calls.add("of_cache", (10, Item(turn, 1)), then=seen.append)
    assert seen[2:] == [10, 20]
    assert all(isinstance(item, Handle) for result in seen[:2] for item in result)


def test_a_result_of_another_length_is_told_before_it_is_handed_on(student):
    def ask(calls):
        cache = Item(calls.add("three", (), count=2, sent=1), 1)
        calls.add("of_cache", (10, cache))

    assert told(student, ask).sentence == "three must return 2 values, but it returned more."


def test_calls_that_must_be_refused_and_inputs_that_must_stay(student):
    x = np.arange(3.0)
    with Calls(student) as calls:
        for kind in ("value", "own"):
            calls.refused("this", "fail", kind)
        calls.unchanged("double", x)
    for ask, sentence in (
        (lambda calls: calls.refused("this", "double", 1), "ValueError for this, but nothing was"),
        (lambda calls: calls.refused("this", "fail", "key"), "for this, but a KeyError was raised"),
        (lambda calls: calls.refused("this", "fail", "none"), "fail is not written yet."),
        (lambda calls: calls.refused("this", "fail", "exit"), "The code ended the program"),
        (lambda calls: calls.unchanged("spoil", x, 1), "spoil changes an input."),
    ):
        assert sentence in told(student, ask).sentence
    assert np.array_equal(x, [0, 1, 2])


def test_calls_outside_their_block_are_an_error(student):
    calls = Calls(student)
    with pytest.raises(RuntimeError, match="within their block"):
        calls.add("double", (1,))


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        [("returned", 2)],
        [("returned", 2)] * 3,
        [("returned", 2), 2],
        [("returned", 2), (True, 2)],
        [("returned", 2), ("raised", 2)],
        (("returned", 2),) * 2,
    ],
)
def test_a_made_up_reply_fails_the_test(faces, monkeypatch, reply):
    face = faces["direct"]
    made_up = pytest.raises(ChildFailure, match="not an answer")
    with face.open("1.1") as student, made_up, Calls(student) as calls:
        check_double(calls, 1, 2)
        check_double(calls, 1, 2)
        monkeypatch.setattr(face, "operate", lambda *details: reply)


def test_code_is_not_told_that_a_call_must_be_refused(faces, monkeypatch):
    face, crossed = faces["direct"], []
    with face.open("1.1") as student:
        monkeypatch.setattr(
            face, "operate", lambda *details: crossed.append(details) or [("refused", student)]
        )
        with Calls(student) as calls:
            calls.refused("this", "double", 1)
        with pytest.raises(ChildFailure), Calls(student) as calls:
            calls.add("double", (1,))
            calls.add("double", (1,))
    (_, _, (refused,), _), (_, _, (added, *_), _), *_ = crossed
    assert str(refused[0]) == str(added[0])


def test_a_refusal_where_a_result_is_due_is_told_and_the_calls_go_on(student):
    seen = []
    told_of = told(student, lambda calls: calls.add("fail", ("value",), then=seen.append))
    assert told_of.sentence == "fail raised a ValueError." and seen == []
    with Calls(student) as calls:
        calls.refused("this", "fail", "value")
        calls.add("double", (1,), then=seen.append)
    assert seen == [2]
