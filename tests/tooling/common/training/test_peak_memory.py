"""Tests of peak memory on a CPU, against closed forms."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from common.assignment import ROOT
from common.training.peak_memory import cpu_peak_memory

SIDE = 1000
ONE = 4 * SIDE * SIDE  # bytes of a matrix of float32


def matrix():
    return torch.ones(SIDE, SIDE)


def test_a_temporary_counts_with_its_bytes():
    assert cpu_peak_memory(lambda: matrix().sum()) == ONE + 4
    assert cpu_peak_memory(lambda: None) == 0
    assert cpu_peak_memory(lambda: torch.ones(3, dtype=torch.float64)) == 24
    assert cpu_peak_memory(lambda: torch.tensor([1, 2, 3])) == 24


def test_temporaries_that_are_gone_do_not_add_up():
    def one_after_another():
        for _ in range(5):
            matrix()

    def side_by_side():
        return [matrix() for _ in range(5)]

    assert cpu_peak_memory(one_after_another) == ONE
    assert cpu_peak_memory(side_by_side) == 5 * ONE


def test_the_peak_is_the_highest_moment_and_not_the_last():
    def rise_and_fall():
        x = matrix()
        y = x * 2 + 1  # x, x * 2 and the sum
        del x
        return y

    assert cpu_peak_memory(rise_and_fall) == 3 * ONE


def test_a_view_counts_once():
    def views():
        x = matrix()
        return x, x.T, x[3:], x.view(-1), x.expand(4, SIDE, SIDE), x.detach()

    assert cpu_peak_memory(views) == ONE


def test_a_view_keeps_all_of_its_storage_alive():
    def corner():
        kept = matrix()[:1, :1]
        return kept, matrix()

    assert cpu_peak_memory(corner) == 2 * ONE


def test_what_was_there_before_does_not_count():
    before = matrix()
    assert cpu_peak_memory(lambda: before.T[3:]) == 0
    assert cpu_peak_memory(lambda: before.mul_(2)) == 0
    assert cpu_peak_memory(lambda: before + before) == ONE
    assert cpu_peak_memory(lambda: torch.add(before, 1, out=before)) == 0
    # Nor does memory that is given back count as less than none.
    holder = [matrix()]
    assert cpu_peak_memory(lambda: (holder[0].sum(), holder.clear(), matrix())[1]) == ONE + 4


def test_what_autograd_keeps_for_the_backward_pass_counts():
    x = matrix().requires_grad_()

    def squares():
        y = x.exp()  # kept: its own derivative
        return (y * 2).exp()

    with torch.no_grad():
        assert cpu_peak_memory(squares) == 3 * ONE
    # exp of exp: without autograd the first is gone after use, with it all stay.
    with torch.no_grad():
        assert cpu_peak_memory(lambda: x.exp().exp().exp().exp()) == 2 * ONE
    assert cpu_peak_memory(lambda: x.exp().exp().exp().exp()) == 4 * ONE


def test_gradients_count():
    x = matrix().requires_grad_()

    def learn():
        (x * 2).sum().backward()

    peak = cpu_peak_memory(learn)
    assert x.grad is not None
    # x * 2 is gone when the product's gradient is made: from an expanded 1, which takes nothing.
    assert ONE <= peak <= ONE + 100


def test_a_storage_that_grows_counts_with_its_new_size():
    def grow():
        out = torch.empty(0)
        torch.add(torch.ones(500), 1, out=out)
        return out

    assert cpu_peak_memory(grow) == 2 * 4 * 500


@pytest.mark.parametrize("length", [64, 256])
def test_attention_by_hand_takes_memory_with_the_square_of_the_length(length):
    q, k, v = torch.randn(3, 1, 2, length, 8)

    def by_hand():
        return torch.softmax(q @ k.transpose(2, 3), dim=-1) @ v

    scores, out = 4 * 2 * length**2, 4 * 2 * length * 8
    assert cpu_peak_memory(by_hand) == max(2 * scores, scores + out)
    fused = cpu_peak_memory(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))
    assert out <= fused <= out + 4 * 2 * length  # and a number for each row


def test_what_a_call_raises_comes_through_and_the_next_call_counts_as_ever():
    with pytest.raises(ZeroDivisionError):
        cpu_peak_memory(lambda: 1 / 0)
    assert cpu_peak_memory(matrix) == ONE


def test_to_import_it_does_not_load_pytorch():
    code = "import sys, common.training.peak_memory, common.testing.cuda\n"
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
