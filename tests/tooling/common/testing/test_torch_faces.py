"""Tests of PyTorch code and assignments of several files, through both faces of `student`."""

import numpy as np
import pytest
import torch

from common.errors import Failure
from common.testing.compare import assert_close
from common.testing.feedback.failure import explain
from common.testing.remote.operations import changed_inputs


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_tensors_cross_by_value(torch_student, dtype):
    given = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype)
    got = torch_student.layers.same(given)
    assert type(got) is torch.Tensor
    assert got.dtype == dtype
    assert torch.equal(got, given)
    assert got.data_ptr() != given.data_ptr()
    assert not torch.equal(torch_student.layers.same(given), given + 1)


def test_a_tensor_keeps_its_layout(torch_student):
    stride, dtype = torch_student.layers.layout(torch.zeros(4, 6).T[::2])
    assert stride == (2, 6)
    assert dtype == "torch.float32"


def test_a_tensor_that_numpy_does_not_know_is_refused_or_copied(torch_student, request):
    if "isolated" in request.node.name:
        with pytest.raises(Failure, match="can't be read"):
            torch_student.layers.half()
    else:
        assert torch_student.layers.half().dtype == torch.bfloat16


def test_changed_inputs_sees_tensors(torch_student):
    assert changed_inputs(torch_student.layers.in_place, torch.ones(2), torch.ones(2)) == ["x"]
    assert changed_inputs(torch_student.layers.same, torch.ones(2)) == []


def test_a_file_that_does_not_parse_leaves_the_others_alone(torch_student):
    with pytest.raises(Failure) as raised:
        _ = torch_student.wrong.broken
    assert explain(raised.value).sentence == "wrong.py is not valid Python."
    with pytest.raises(Failure) as raised:  # the file that is imported is named
        _ = torch_student.borrowing.broken
    assert (
        explain(raised.value)
        .text(hidden=False)
        .startswith("borrowing.py can't be imported: it raises SyntaxError.\nwrong.py: Line 1: ")
    )
    with pytest.raises(Failure) as raised:
        _ = torch_student.layers.missing
    assert explain(raised.value).sentence == "layers.py doesn't define missing."


def test_a_tensor_is_compared_with_tensors_only():
    with pytest.raises(Failure, match="must be a PyTorch tensor, got a NumPy array"):
        assert_close(np.ones(2), torch.ones(2))
    with pytest.raises(Failure, match="must be a NumPy array, got a PyTorch tensor"):
        assert_close(torch.ones(2), np.ones(2))


def test_code_without_a_seed_of_its_own_draws_the_same_in_both_faces(torch_faces):
    drawn = []
    for face in ("direct", "isolated", "direct"):
        with torch_faces[face].open("1.1") as code:
            drawn.append(code.layers.draw(3))
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])
