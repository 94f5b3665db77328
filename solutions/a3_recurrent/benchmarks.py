"""The speed of assignment 3's reference, against PyTorch on one thread."""

from collections.abc import Iterator

import numpy as np
import torch

from autograder.benchmarks.benchmark_row import Row, measure
from solutions.a3_recurrent.recurrent import lstm_backward, lstm_forward


def rows() -> Iterator[Row]:
    """32 sequences of 64 steps, 128 inputs and 128 cells, in float32, forward and backward."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    n, t, d, m = 32, 64, 128, 128

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    x, h0, c0 = normal(n, t, d), normal(n, m), normal(n, m)
    w_x, w_h, b = normal(d, 4 * m) / 16, normal(m, 4 * m) / 16, normal(4 * m)
    dh, dc_last = normal(n, t, m), normal(n, m)

    def ours() -> object:
        _, _, cache = lstm_forward(x, h0, c0, w_x, w_h, b)
        return lstm_backward(dh, dc_last, cache)

    lstm = torch.nn.LSTM(d, m, batch_first=True)
    inputs = [torch.from_numpy(array).requires_grad_() for array in (x, h0[None], c0[None])]
    cotangents = [torch.from_numpy(array) for array in (dh, dc_last[None])]

    def theirs() -> object:
        h, (_, c_last) = lstm(inputs[0], (inputs[1], inputs[2]))
        return torch.autograd.grad([h, c_last], [*inputs, *lstm.parameters()], cotangents)

    yield measure(
        "a3: lstm_forward + lstm_backward", ours, theirs, "nn.LSTM, both ways", bar=4, repeats=20
    )
