"""How the tests of exercise 3.2 time an LSTM against a baseline."""

import numpy as np

from common.testing.compare import assert_close, unpack
from common.testing.remote.operations import call_each, call_each_held, fetch, hold
from common.testing.speed_ratio import check_speed
from tests.a3_recurrent.cases import LSTM, Case, check_array, draw_case, draw_upstream

BAR = 5  # of PyTorch's time; the docstring states 4, and a busy machine gets the rest
# The matrix products alone take about 0.8 of PyTorch's time: this is a bit more than 5 times that.
PRODUCTS_BAR = 7
TRIES = 6
PATIENCE = 30  # seconds: slow code should hear so before a test's time is up
# Half of the docstring's steps: the ratio is the same, and a cache with copies stays small.
TIMED_SHAPE = {"n": 32, "t": 32, "d": 128, "m": 128}


def check_lstm_speed(student, oracle, rng, baseline=None):
    """Both passes of the LSTM together are fast enough, and what was timed was really computed.

    The baseline is nn.LSTM, or without PyTorch the matrix products that an LSTM can't avoid.
    Each timed call gets another input, so that an answer remembered from an earlier one is wrong.
    """
    inputs = [draw_case(rng, LSTM, dtype=np.float32, **TIMED_SHAPE) for _ in range(2)]
    # Weights small enough that the states stay apart from -1 and 1.
    cases = [
        Case(LSTM, (*case.inputs[:3], *(w * np.float32(0.1) for w in case.inputs[3:])))
        for case in inputs
    ]
    upstream = [draw_upstream(rng, case) for case in cases]
    expected = [
        oracle.lstm_while_timed(*case.inputs, *gradients)
        for case, gradients in zip(cases, upstream, strict=True)
    ]
    x, h0, c0, w_x, w_h, _ = cases[0].inputs
    run = (
        matrix_products(x, h0, w_x, w_h)
        if baseline is None
        else baseline(x, h0, c0, upstream[0][0])
    )
    bar = PRODUCTS_BAR if baseline is None else BAR
    results = call_each(student.lstm_forward, [case.inputs for case in cases])
    caches = [unpack(result, 3, "lstm_forward")[2] for result in results]
    passes = (
        ("lstm_forward", 2, [tuple(hold(student, a) for a in case.inputs) for case in cases]),
        (
            "lstm_backward",
            6,
            [
                (*(hold(student, a) for a in gradients), cache)
                for gradients, cache in zip(upstream, caches, strict=True)
            ],
        ),
    )
    held = timed_passes(student, passes, run, bar, pytorch=baseline is not None)
    outputs, gradients = (fetch(results) for results in held)
    for result, gradient, (c_last, db) in zip(outputs, gradients, expected, strict=True):
        actual = unpack(result, 3, "lstm_forward")[1]
        check_array(actual, (TIMED_SHAPE["n"], TIMED_SHAPE["m"]), "float32", "c_last")
        assert_close(actual[:, :4], c_last, what="c_last (while timed)")
        assert_close(unpack(gradient, 6, "lstm_backward")[5], db, what="db (while timed)")


def timed_passes(student, passes, baseline, bar, *, pytorch):
    """Time both passes against the baseline; what they returned, if they were fast enough.

    passes: the function, how many of its outputs are to be there when the clock stops, the calls.
    """

    def run():
        return [
            call_each_held(getattr(student, name), calls, outputs)
            for name, outputs, calls in passes
        ]

    than = "PyTorch's nn.LSTM" if pytorch else "the matrix products of an LSTM alone"
    held, _ = check_speed(
        lambda: (run, baseline),
        bar=bar,
        runs=len(passes[0][2]),
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"lstm_forward and lstm_backward take more than {bar} times as long as {than}.",
        help="Loop over the steps only, never over sequences or units.",
    )
    return held


def matrix_products(x, h, w_x, w_h):
    """The baseline without PyTorch: the matrix products of both passes, and nothing else."""
    n, steps, d = x.shape
    rows, gates = x.reshape(n * steps, d), np.full((n * steps, w_x.shape[1]), 0.5, dtype=x.dtype)

    def run():
        _ = rows @ w_x, gates @ w_x.T, rows.T @ gates
        for _ in range(steps):
            _ = h @ w_h, gates[:n] @ w_h.T, h.T @ gates[:n]

    return run
