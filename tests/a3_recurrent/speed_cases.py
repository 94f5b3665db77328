"""How the tests of exercise 3.2 time an LSTM against a baseline."""

import numpy as np

from common.testing.compare import assert_close, unpack
from common.testing.remote.timed_calls import timed_passes
from common.testing.speed_ratio import Try, check_speed
from tests.a3_recurrent.cases import check_array, draw_inputs, draw_upstream

BAR = 5  # of PyTorch's time; the docstring says 4, the rest is for busy machines
# The matrix products alone take about 0.8 of PyTorch's time, so this is a bit more than 5 times.
PRODUCTS_BAR = 7
TRIES = 6
CASES = 10  # as many tries at most, each with inputs of its own
PATIENCE = 30  # seconds: slow code must fail before the test's time limit
# Half of the docstring's steps: the ratio is the same, and a cache with copies stays small.
N, T, D, M = 32, 32, 128, 128


def check_lstm_speed(student, oracle, rng, baseline=None):
    """Both passes of the LSTM together are fast enough, and the timed results are correct.

    The baseline is nn.LSTM, or without PyTorch the matrix products that an LSTM can't avoid.
    Each try has inputs of its own, which arrive while the clock runs.
    """
    cases = [draw_case(rng) for _ in range(CASES)]
    # All of them now, however many tries there are: public tests have stored answers.
    right = [oracle.lstm_while_timed(*inputs, *upstream) for inputs, upstream in cases]
    (x, h0, c0, w_x, w_h, _), (dh, _) = cases[0]
    if baseline is None:
        bar, than = PRODUCTS_BAR, "the matrix products of an LSTM alone"
        run_baseline = matrix_products(x, h0, w_x, w_h)
    else:
        bar, than = BAR, "PyTorch's nn.LSTM"
        run_baseline = baseline(x, h0, c0, dh)
    waiting = iter(zip(cases, right, strict=True))

    def prepare():
        case, expected = next(waiting, (None, None))

        def verify(results, _):
            compare_timed(*results[0], expected)

        def run():
            return timed_passes(student.lstm_forward, student.lstm_backward, [case], outputs=2)

        return Try(run, run_baseline, verify) if case else None

    check_speed(
        prepare,
        bar=bar,
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"lstm_forward and lstm_backward take more than {bar} times as long as {than}.",
        help="Loop over time steps only, never over sequences or units.",
    )


def draw_case(rng):
    """Inputs with small weights, so that the states don't saturate, and upstream gradients."""
    inputs = draw_inputs(rng, "lstm", (N, T, D), M, dtype=np.float32)
    inputs = (*inputs[:3], *(w * np.float32(0.1) for w in inputs[3:]))
    return inputs, draw_upstream(rng, "lstm", inputs)


def compare_timed(outputs, gradients, expected):
    """What was timed is right: a part of it that depends on all of it."""
    if gradients is None:
        unpack(outputs, 3, "lstm_forward")
    c_last, db = expected
    check_array(outputs[1], (N, M), "float32", "c_last")
    assert_close(outputs[1][:, :4], c_last, what="c_last (while timed)")
    actual = unpack(gradients, 6, "lstm_backward")[5]
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
