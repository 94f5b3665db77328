"""How the tests of exercise 3.2 time an LSTM against a baseline."""

import math

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
# What both passes return, in order.
PARTS = (
    *(("h", (N, T, M)), ("c_last", (N, M)), ("dx", (N, T, D)), ("dh0", (N, M)), ("dc0", (N, M))),
    *(("dw_x", (D, 4 * M)), ("dw_h", (M, 4 * M)), ("db", (4 * M,))),
)


def check_lstm_speed(student, oracle, rng, baseline=None):
    """Both passes of the LSTM together are fast enough, and the timed results are correct.

    The baseline is nn.LSTM, or without PyTorch the matrix products that an LSTM can't avoid.
    Each try has inputs of its own, which arrive while the clock runs.
    """
    cases = [draw_case(rng) for _ in range(CASES)]
    # All of them now, however many tries there are: public tests have stored answers.
    directions = [draw_directions(rng) for _ in cases]
    right = [
        oracle.lstm_while_timed(*inputs, *upstream, along)
        for (inputs, upstream), along in zip(cases, directions, strict=True)
    ]
    (x, h0, c0, w_x, w_h, _), (dh, _) = cases[0]
    if baseline is None:
        bar, than = PRODUCTS_BAR, "the matrix products of an LSTM alone"
        run_baseline = matrix_products(x, h0, w_x, w_h)
    else:
        bar, than = BAR, "PyTorch's nn.LSTM"
        run_baseline = baseline(x, h0, c0, dh)
    waiting = iter(zip(cases, directions, right, strict=True))

    def prepare():
        case, along, expected = next(waiting, (None, None, None))

        def verify(results, _):
            compare_timed(*results[0], along, expected)

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


def draw_directions(rng):
    """For each output and gradient, the weights of a sum over all axes but the first."""
    return [rng.normal(size=math.prod(shape[1:])) for _, shape in PARTS]


def compare_timed(outputs, gradients, along, expected):
    """Everything that was timed is right, each array by its sums with random weights."""
    if gradients is None:
        unpack(outputs, 3, "lstm_forward")
    arrays = [*outputs, *unpack(gradients, 6, "lstm_backward")]
    rows = zip(PARTS, arrays, along, expected, strict=True)
    for (name, shape), array, weights, right in rows:
        check_array(array, shape, "float32", name)
        sums = (array.reshape(len(array), -1) @ weights).astype(np.float32)
        assert_close(sums, right, what=f"{name} (while timed, in sums with random weights)")


def matrix_products(x, h, w_x, w_h):
    """The baseline without PyTorch: the matrix products of both passes, and nothing else."""
    n, steps, d = x.shape
    rows, gates = x.reshape(n * steps, d), np.full((n * steps, w_x.shape[1]), 0.5, dtype=x.dtype)

    def run():
        _ = rows @ w_x, gates @ w_x.T, rows.T @ gates
        for _ in range(steps):
            _ = h @ w_h, gates[:n] @ w_h.T, h.T @ gates[:n]

    return run
