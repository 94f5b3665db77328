"""Tests of timed operations: inputs and results cross while they run, and nothing is kept."""

import numpy as np
import pytest
import torch

from common.errors import ChildFailure
from common.testing.compare import assert_close
from common.testing.remote.timed_calls import (
    carried,
    on_device,
    timed_calls,
    timed_passes,
    timed_vjps,
)


def test_results_come_back_without_the_cache(student):
    xs = [np.full(3, float(n)) for n in range(3)]
    results = timed_calls(student.with_dict, [(x,) for x in xs], outputs=1)
    assert [[out.tolist() for out in result] for result in results] == [
        [[0, 0, 0]],
        [[2, 2, 2]],
        [[4, 4, 4]],
    ]
    assert timed_calls(student.layout, [(xs[0],)])[0][1] is True
    spoiled = timed_calls(student.spoil, [(xs[0], 1), (xs[1], 1)], z=np.zeros(1))
    assert [out.tolist() for out in spoiled] == [[1, 1, 1], [2, 2, 2]]
    assert xs[0].tolist() == [0, 0, 0]


def test_backward_gets_the_cache_of_its_own_forward_pass(student):
    calls = [((np.full(2, n),), (np.full(2, 10.0),)) for n in (1.0, 3.0)]
    results = timed_passes(student.with_dict, student.backward_of_dict, calls, outputs=1)
    assert [(out[0].tolist(), dx.tolist()) for out, dx in results] == [
        ([2, 2], [10, 10]),
        ([6, 6], [30, 30]),
    ]
    wrong = timed_passes(student.same, student.backward_of_dict, calls, outputs=1)
    assert [dx for _, dx in wrong] == [None, None]


def test_gradients_come_back(torch_student):
    module = torch_student.layers.Scale(3)
    xs, dout = torch.rand(2, 4, 3), torch.rand(4, 3)
    results = timed_vjps(module, [((x,), (dout, None)) for x in xs])
    for x, (outputs, (dx,), parameters) in zip(xs, results, strict=True):
        assert_close(outputs[0], x)
        assert_close(dx, dout)
        assert_close(parameters["weight"], (dout * x).sum(0))


def test_what_is_timed_is_not_kept_by_the_child(faces):
    """Large results of many tries would fill its memory."""
    with faces["isolated"].open("1.1") as student:
        timed_calls(student.with_list, [(np.zeros(1),)])
        first = student.three().reference
        for _ in range(5):
            timed_calls(student.with_list, [(np.zeros(1),)])
        assert student.three().reference <= first + 2


def test_a_baseline_gets_copies(student):
    given = [(np.arange(3.0), 2), {"a": np.ones((2, 2)).T}]
    (pair, named) = carried(student, given)
    assert pair[0].tolist() == [0, 1, 2] and pair[1] == 2
    pair[0][0] = 7
    assert given[0][0][0] == 0
    assert np.array_equal(named["a"], given[1]["a"])


def test_tensors_in_containers_go_to_a_device():
    x = torch.rand(3)
    (pair, named) = on_device([(x, 2), {"a": x}], "cpu")
    assert torch.equal(pair[0], x) and pair[1] == 2 and torch.equal(named["a"], x)
    assert on_device((x,), "meta")[0].device.type == "meta"


def test_no_call_begins_before_the_result_of_the_one_before_is_here(faces, monkeypatch):
    """Else student code could look at all arguments, and do the work for them together."""
    face = faces["direct"]
    with face.open("1.1") as student:
        function, seen = student.same, []
        monkeypatch.setattr(face, "operate", lambda name, label, details, _: seen.append(details))
        timed_calls(function, [(1,), (2,)])
    assert [args for _, args, _, _ in seen] == [(1,), (2,)]


@pytest.mark.parametrize("reply", [None, [1, 2, 3], (1, 2, 3, 4), {1: 2}], ids=repr)
def test_made_up_passes_fail_the_test(faces, monkeypatch, reply):
    face = faces["direct"]
    with face.open("1.1") as student:
        function = student.same
        monkeypatch.setattr(face, "operate", lambda *details: reply)
        with pytest.raises(ChildFailure, match="malformed reply"):
            timed_vjps(function, [((1,), (1,))])
        with pytest.raises(ChildFailure, match="malformed reply"):
            timed_passes(function, function, [((1,), (1,))], outputs=1)
