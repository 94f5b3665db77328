"""How the tests of exercise 3.2 time an LSTM against a baseline."""

import numpy as np

from common.testing.compare import assert_close, unpack
from common.testing.remote.operations import call_each, call_each_held, fetch, hold_each
from common.testing.speed_ratio import check_speed
from tests.a3_recurrent.cases import check_array, draw_inputs, draw_upstream

BAR = 5  # of PyTorch's time; the docstring says 4, the rest is for busy machines
# The matrix products alone take about 0.8 of PyTorch's time, so this is a bit more than 5 times.
PRODUCTS_BAR = 7
TRIES = 6
PATIENCE = 30  # seconds: slow code must fail before the test's time limit
# Half of the docstring's steps: the ratio is the same, and a cache with copies stays small.
N, T, D, M = 32, 32, 128, 128


def check_lstm_speed(student, oracle, rng, baseline=None):
    """Both passes of the LSTM together are fast enough, and the timed results are correct.

    The baseline is nn.LSTM, or without PyTorch the matrix products that an LSTM can't avoid.
    Each timed call gets a different input, so a remembered answer is wrong.
    """
    cases = [draw_inputs(rng, "lstm", (N, T, D), M, dtype=np.float32) for _ in range(2)]
    # Small weights, so that the states don't saturate.
    cases = [(*case[:3], *(w * np.float32(0.1) for w in case[3:])) for case in cases]
    upstream = [draw_upstream(rng, "lstm", case) for case in cases]
    x, h0, c0, w_x, w_h, _ = cases[0]
    if baseline is None:
        bar, than = PRODUCTS_BAR, "the matrix products of an LSTM alone"
        run_baseline = matrix_products(x, h0, w_x, w_h)
    else:
        bar, than = BAR, "PyTorch's nn.LSTM"
        run_baseline = baseline(x, h0, c0, upstream[0][0])
    results = call_each(student.lstm_forward, cases)
    caches = [unpack(result, 3, "lstm_forward")[2] for result in results]
    forward_calls = [tuple(hold_each(student, case)) for case in cases]
    held_upstream = [hold_each(student, gradients) for gradients in upstream]
    backward_calls = [(*held, cache) for held, cache in zip(held_upstream, caches, strict=True)]

    def run():
        return (
            call_each_held(student.lstm_forward, forward_calls, outputs=2),
            call_each_held(student.lstm_backward, backward_calls, outputs=6),
        )

    held, _ = check_speed(
        lambda: (run, run_baseline),
        bar=bar,
        runs=len(cases),
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"lstm_forward and lstm_backward take more than {bar} times as long as {than}.",
        help="Loop over time steps only, never over sequences or units.",
    )
    outputs, gradients = map(fetch, held)
    for i, case in enumerate(cases):
        c_last, db = oracle.lstm_while_timed(*case, *upstream[i])
        actual = unpack(outputs[i], 3, "lstm_forward")[1]
        check_array(actual, (N, M), "float32", "c_last")
        assert_close(actual[:, :4], c_last, what="c_last (while timed)")
        actual = unpack(gradients[i], 6, "lstm_backward")[5]
        assert_close(actual, db, what="db (while timed)")


def matrix_products(x, h, w_x, w_h):
    """The baseline without PyTorch: the matrix products of both passes, and nothing else."""
    n, steps, d = x.shape
    rows, gates = x.reshape(n * steps, d), np.full((n * steps, w_x.shape[1]), 0.5, dtype=x.dtype)

    def run():
        _ = rows @ w_x, gates @ w_x.T, rows.T @ gates
        for _ in range(steps):
            _ = h @ w_h, gates[:n] @ w_h.T, h.T @ gates[:n]

    return run
