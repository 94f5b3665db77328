"""What the tests of assignment 3 share: random inputs, and comparisons up to exercise 3.6."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from common.student_code.values import Handle
from common.testing.checks import check_float, check_refused
from common.testing.compare import assert_close, check, kind_of, unpack


class Layer(NamedTuple):
    """What a failure calls a layer's inputs and outputs."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    gates: int  # blocks of columns in the weights


LAYERS = {
    "rnn_step": Layer(("x", "h", "w_xh", "w_hh", "b_h"), ("h_next",), 1),
    "rnn": Layer(("x", "h0", "w_xh", "w_hh", "b_h"), ("h",), 1),
    "lstm_step": Layer(("x", "h", "c", "w_x", "w_h", "b"), ("h_next", "c_next"), 4),
    "lstm": Layer(("x", "h0", "c0", "w_x", "w_h", "b"), ("h", "c_last"), 4),
    "gru_step": Layer(("x", "h", "w_x", "w_h", "b_x", "b_h"), ("h_next",), 3),
}


class Passes(NamedTuple):
    """The name of a layer, and the student's two functions for it."""

    layer: str
    forward: Handle
    backward: Handle


def draw_inputs(rng, layer, x_shape, m, *, dtype=np.float64):
    """Random inputs, states and weights, and biases that are far from 0."""
    n, d, columns = x_shape[0], x_shape[-1], LAYERS[layer].gates * m
    shapes = {"x": x_shape, "w_xh": (d, m), "w_hh": (m, m)}
    shapes |= {"w_x": (d, columns), "w_h": (m, columns)}
    arrays = []
    for name in LAYERS[layer].inputs:
        if name.startswith("b"):
            array = rng.uniform(0.4, 1, size=columns) * rng.choice([-1, 1], size=columns)
        else:
            # Large states, so that a wrong use of one shows.
            array = rng.normal(scale=0.7, size=shapes.get(name, (n, m)))
        arrays.append(array.astype(dtype))
    return tuple(arrays)


def draw_upstream(rng, layer, inputs):
    """A random gradient for each output, in the dtype of the inputs."""
    x, h = inputs[:2]
    shapes = ((*x.shape[:-1], h.shape[1]), h.shape)[: len(LAYERS[layer].outputs)]
    return tuple(rng.normal(size=shape).astype(x.dtype) for shape in shapes)


def draw_with_upstream(rng, layer, x_shape, m, *, dtype=np.float64):
    """The inputs of a forward pass, and the upstream gradients of the backward pass."""
    inputs = draw_inputs(rng, layer, x_shape, m, dtype=dtype)
    return inputs, draw_upstream(rng, layer, inputs)


def draw_mask(rng, n, t):
    """A mask with gaps and padding at both ends; the last sequence is all padding."""
    mask = rng.uniform(size=(n, t)) < 0.7
    mask[0, :2], mask[0, -2:] = (False, True), True
    mask[1, 0], mask[1, 1], mask[1, -2:] = True, False, (True, False)
    mask[-1] = False
    return mask


def draw_cell(rng, layer, x_shape, m, *, dtype=np.float64):
    """x, state and weights of one sequence, as gradient_norms_through_time takes them."""
    x, *others = draw_inputs(rng, layer, (1, *x_shape), m, dtype=dtype)
    states = len(others) - 3
    return x[0], tuple(state[0] for state in others[:states]), tuple(others[states:])


def new_generator(rng):
    """A generator for student code; the test's own would continue in a copy."""
    return np.random.default_rng(rng.integers(2**32))


def orthogonal(rng, m):
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.normal(size=(m, m)))[0]


def seen_as(arrays, *views):
    """The same arrays as views, of each of these kinds in turn."""
    return tuple(view(array) for array, view in zip(arrays, itertools.cycle(views), strict=False))


LAST_AXIS = {"x": "feature", "logits": "id"}


def compare_arrays(names, results, expected, situation):
    """Inputs, outputs or gradients are the expected ones."""
    for name, actual, wanted in zip(names, results, expected, strict=True):
        last = LAST_AXIS.get(name.removeprefix("d"), "unit")
        axes = ("sequence", "step", last) if wanted.ndim == 3 else ("sequence", last)
        if name.removeprefix("d").startswith(("w", "b")):
            axes = ("row", "column")[-wanted.ndim :]
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=axes)


def compare_outputs(layer, result, expected, situation):
    """A forward function returned the expected outputs (before its cache)."""
    *outputs, _ = unpack(result, len(LAYERS[layer].outputs) + 1, f"{layer}_forward")
    expected = expected if isinstance(expected, tuple) else (expected,)
    compare_arrays(LAYERS[layer].outputs, outputs, expected, situation)


def compare_gradients(layer, result, expected, situation):
    """A backward function returned the expected gradients of all inputs."""
    gradients = unpack(result, len(LAYERS[layer].inputs), f"{layer}_backward")
    compare_arrays([f"d{name}" for name in LAYERS[layer].inputs], gradients, expected, situation)


def check_both_passes(passes, oracle, case, situation, *, mask=None):
    """Outputs and gradients are PyTorch's. case: inputs, and gradients of the outputs."""
    layer, (inputs, _) = passes.layer, case
    options = {} if mask is None else {"mask": mask}
    result = passes.forward(*inputs, *options.values())
    compare_outputs(layer, result, getattr(oracle, layer)(*inputs, **options), situation)
    check_gradients(passes, oracle, case, situation, mask=mask)


def check_gradients(passes, oracle, case, situation, *, mask=None):
    """Gradients are PyTorch's. case: inputs, and gradients of the outputs."""
    layer, (inputs, upstream) = passes.layer, case
    options = {} if mask is None else {"mask": mask}
    cache = cache_of(layer, passes.forward(*inputs, *options.values()))
    result = passes.backward(*upstream, cache)
    expected = getattr(oracle, f"{layer}_gradients")(*inputs, *upstream, **options)
    compare_gradients(layer, result, expected, situation)


def cache_of(layer, result):
    """The last item of what a forward function returned."""
    return unpack(result, len(LAYERS[layer].outputs) + 1, f"{layer}_forward")[-1]


def check_layer_refuses(forward, inputs):
    """Mismatched shapes, empty axes and invalid masks raise ValueError; valid inputs don't."""
    x, *others = inputs
    forward(*inputs)
    forward(*inputs, np.ones(x.shape[:2], dtype=bool))
    for situation, args in (
        ("an x whose number of features doesn't match the weights", (x[:, :, :-1], *others)),
        ("a state whose number of sequences doesn't match x", (x[:-1], *others)),
        ("an x with two axes", (x[:, 0], *others)),
        ("sequences without any steps", (x[:, :0], *others)),
        ("biases of the wrong length", (x, *others[:-1], others[-1][:-1])),
        ("a mask of the wrong shape", (x, *others, np.ones(x.shape[1::-1], dtype=bool))),
        ("a mask of integers", (x, *others, np.ones(x.shape[:2], dtype=np.int64))),
    ):
        check_refused(situation, forward, *args)


def check_lstm_parameters(result, d, m, *, forget_bias, dtype):
    """Shapes, dtypes, biases, and the uniform distribution of the weights."""
    w_x, w_h, b = unpack(result, 3, "lstm_parameters")
    expected = np.zeros(4 * m, dtype=dtype)
    expected[m : 2 * m] = forget_bias
    assert_close(b, expected, what="b", axes=("column",))
    for name, array, shape in (("w_x", w_x, (d, 4 * m)), ("w_h", w_h, (m, 4 * m))):
        check_array(array, shape, dtype, name)
        check_uniform(array, 1 / math.sqrt(m), name, "1 / sqrt(m)")


def check_array(array, shape, dtype, what):
    """It is an array of that shape and dtype; its values are not checked."""
    check(type(array) is np.ndarray, f"{what} must be a NumPy array, got {kind_of(array)}.")
    check(
        array.shape == shape, f"{what} has the wrong shape.", f"got {array.shape}, expected {shape}"
    )
    check(array.dtype == dtype, f"{what} must have dtype {dtype}, got {array.dtype}.")


def check_uniform(array, bound, name, formula):
    """Independent numbers, uniform on [-bound, bound]."""
    largest = float(np.abs(array).max())
    check(
        largest <= bound * (1 + 1e-6),
        f"{name} has entries outside [-{formula}, {formula}].",
        f"The largest absolute value is {largest:.4g}; {formula} is {bound:.4g}.",
    )
    check_distribution(array, lambda value: (value / bound + 1) / 2, name, "uniform")


# The probability that a correct distribution is rejected. Each test checks at most six times.
DISTRIBUTION_ERROR = 1e-8


def check_distribution(array, cdf, name, kind):
    """The empirical distribution of the entries is close to the expected one.

    By the Dvoretzky-Kiefer-Wolfowitz inequality, their largest distance is above `allowed` with a
    probability of at most DISTRIBUTION_ERROR. The order in which the numbers are drawn makes no
    difference.
    """
    # Copied rows or columns leave fewer distinct numbers.
    distinct = len(np.unique(array)) / array.size
    check(distinct > 0.9, f"Many entries of {name} are equal; draw each one independently.")
    below = cdf(np.sort(array.astype(np.float64), axis=None))
    shares = np.arange(array.size + 1) / array.size
    distance = max(np.max(shares[1:] - below), np.max(below - shares[:-1]))
    allowed = math.sqrt(math.log(2 / DISTRIBUTION_ERROR) / (2 * array.size))
    check(
        distance <= allowed,
        f"The entries of {name} don't follow the distribution of the docstring: {kind}.",
        f"The share of entries below some value is off by {distance:.3f}; random draws explain at "
        f"most {allowed:.3f}. The standard deviation is {array.std():.4g}.",
    )


def compare_cross_entropy(result, expected, situation):
    """Loss and dlogits are the expected ones."""
    loss, dlogits = expected
    actual, gradient = unpack(result, 2, "temporal_cross_entropy")
    check_float(actual, "loss")
    # In float32 the logits themselves carry that error, even if the loss is a Python float.
    tolerance = 1e-4 if dlogits.dtype == np.float32 else None
    assert_close(actual, float(loss), what=f"loss ({situation})", tolerance=tolerance)
    compare_arrays(("dlogits",), (gradient,), (dlogits,), situation)


def compare_clipped(result, names, expected, situation):
    """The norm and the gradients of these names are the expected ones."""
    norm, *gradients = expected
    clipped, actual = unpack(result, 2, "clip_by_global_norm")
    check_float(actual, "norm")
    assert_close(actual, float(norm), what=f"norm ({situation})")
    check(isinstance(clipped, dict), f"The gradients must be a dict, got {kind_of(clipped)}.")
    check(set(clipped) == set(names), "The clipped gradients must have the names of the gradients.")
    for name, wanted in zip(names, gradients, strict=True):
        assert_close(clipped[name], wanted, what=f"a clipped gradient ({situation})")


def compare_windows(result, expected, situation):
    """Every window holds the ids that the docstring describes."""
    results = unpack(result, 2, "make_windows")
    for name, actual, wanted in zip(("inputs", "targets"), results, expected, strict=True):
        axes = ("window", "stream", "step")
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=axes)


def compare_truncated(result, expected, situation):
    """h and the gradients of truncated backpropagation are the expected ones."""
    names = ("h", "dx", "dw_xh", "dw_hh", "db_h")
    compare_arrays(names, unpack(result, 5, "truncated_bptt"), expected, situation)
