"""What the tests of assignment 3 share: how one case of the exercises up to 3.6 is checked."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from common.testing.checks import check_float, check_refused, check_unchanged
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.operations import call_each, call_each_held, fetch, hold

LN2 = math.log(2)


@dataclass(frozen=True)
class Layer:
    """Two functions of the exercise, and what PyTorch's answer to them is called in oracle.py."""

    forward: str
    backward: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    oracle: str


RNN_STEP = Layer(
    "rnn_step_forward",
    "rnn_step_backward",
    ("x", "h", "w_xh", "w_hh", "b_h"),
    ("h_next",),
    "rnn_step",
)
RNN = Layer("rnn_forward", "rnn_backward", ("x", "h0", "w_xh", "w_hh", "b_h"), ("h",), "rnn")
LSTM_STEP = Layer(
    "lstm_step_forward",
    "lstm_step_backward",
    ("x", "h", "c", "w_x", "w_h", "b"),
    ("h_next", "c_next"),
    "lstm_step",
)
LSTM = Layer(
    "lstm_forward",
    "lstm_backward",
    ("x", "h0", "c0", "w_x", "w_h", "b"),
    ("h", "c_last"),
    "lstm",
)
GRU_STEP = Layer(
    "gru_step_forward",
    "gru_step_backward",
    ("x", "h", "w_x", "w_h", "b_x", "b_h"),
    ("h_next",),
    "gru_step",
)
GATES = {"rnn": 1, "lstm": 4, "gru": 3}  # blocks of columns in the weights


@dataclass(frozen=True)
class Case:
    """The inputs of one call of a layer."""

    layer: Layer
    inputs: tuple[np.ndarray, ...]
    mask: np.ndarray | None = None

    @property
    def arguments(self):
        return self.inputs if self.mask is None else (*self.inputs, self.mask)

    @property
    def options(self):
        return {} if self.mask is None else {"mask": self.mask}

    @property
    def output_shapes(self):
        x, h = self.inputs[:2]
        first = h.shape if x.ndim == 2 else (*x.shape[:2], h.shape[1])
        return (first, h.shape)[: len(self.layer.outputs)]

    def seen_as(self, *views):
        """The same case with its arrays as views, of each of these kinds in turn."""
        pairs = zip(self.inputs, itertools.cycle(views), strict=False)
        return Case(self.layer, tuple(view(array) for array, view in pairs), self.mask)


def draw_case(rng, layer, n, d, *, m, t=None, dtype=np.float64, mask=None):
    """Random inputs, states and weights, and biases that are far from 0; t only for sequences."""
    columns = GATES[layer.oracle.partition("_")[0]] * m
    shapes = {"x": (n, d) if t is None else (n, t, d), "w_x": (d, columns), "w_h": (m, columns)}
    shapes |= {"w_xh": (d, m), "w_hh": (m, m)}
    arrays = []
    for name in layer.inputs:
        if name.startswith("b"):
            array = rng.uniform(0.4, 1, size=columns) * rng.choice([-1, 1], size=columns)
        else:
            # Large states, so that a wrong use of one shows.
            array = rng.normal(scale=0.7, size=shapes.get(name, (n, m)))
        arrays.append(array.astype(dtype))
    return Case(layer, tuple(arrays), mask)


def draw_mask(rng, n, t):
    """A mask with gaps; one sequence begins with padding, one ends with it, the last is all of it.

    It needs 3 sequences and 4 steps or more.
    """
    mask = rng.uniform(size=(n, t)) < 0.7
    mask[0, :2], mask[0, -2:] = (False, True), True
    mask[1, 0], mask[1, 1], mask[1, -2:] = True, False, (True, False)
    mask[-1] = False
    return mask


def axes_of(name, dimensions):
    """What a failure calls the axes of an array."""
    name = name.removeprefix("d")
    if name.startswith("w"):
        return ("row", "column")
    if name.startswith("b"):
        return ("column",)
    last = "feature" if name == "x" else "unit"
    return ("sequence", last) if dimensions == 2 else ("sequence", "step", last)


def check_outputs(student, oracle, case, situation):
    """The outputs of a forward function are PyTorch's."""
    layer = case.layer
    expected = getattr(oracle, layer.oracle)(*case.inputs, **case.options)
    result = getattr(student, layer.forward)(*case.arguments)
    compare_outputs(result, expected, layer, situation)


def compare_outputs(result, expected, layer, situation):
    *outputs, _ = unpack(result, len(layer.outputs) + 1, layer.forward)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for name, actual, wanted in zip(layer.outputs, outputs, expected, strict=True):
        axes = axes_of(name, wanted.ndim)
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=axes)


def check_gradients(student, oracle, rng, case, *, situation, only=None, view=None):
    """The gradients of a layer, or some of them, are PyTorch's under a random upstream gradient."""
    layer = case.layer
    upstream = draw_upstream(rng, case)
    expected = oracle_gradients(oracle, case, upstream)
    result = getattr(student, layer.forward)(*case.arguments)
    cache = unpack(result, len(layer.outputs) + 1, layer.forward)[-1]
    seen = upstream if view is None else [view(array) for array in upstream]
    result = getattr(student, layer.backward)(*seen, cache)
    compare_gradients(result, expected, layer, situation, only=only)


def draw_upstream(rng, case):
    """A random gradient for each output, in the type of the inputs."""
    dtype = case.inputs[0].dtype
    return [rng.normal(size=shape).astype(dtype) for shape in case.output_shapes]


def oracle_gradients(oracle, case, upstream):
    ask = getattr(oracle, f"{case.layer.oracle}_gradients")
    return ask(*case.inputs, *upstream, **case.options)


def compare_gradients(result, expected, layer, situation, *, only=None):
    gradients = unpack(result, len(layer.inputs), layer.backward)
    for name, actual, wanted in zip(layer.inputs, gradients, expected, strict=True):
        if only is None or f"d{name}" in only:
            axes = axes_of(name, wanted.ndim)
            assert_close(actual, wanted, what=f"d{name} ({situation})", axes=axes)


def check_stays_apart(student, oracle, rng, first, *, second):
    """All forward calls, then all backward calls, the first of each once more at the end.

    Outputs and gradients are read at the very end, so none may lie in memory that is used again.
    """
    layer, cases = first.layer, (first, second)
    upstream = [draw_upstream(rng, case) for case in cases]
    outputs = [getattr(oracle, layer.oracle)(*case.inputs, **case.options) for case in cases]
    gradients = [oracle_gradients(oracle, *pair) for pair in zip(cases, upstream, strict=True)]
    order, situation = (0, 1, 0), "several calls in a row"
    results = call_each(getattr(student, layer.forward), [cases[i].arguments for i in order])
    for i, result in zip(order, results, strict=True):
        compare_outputs(result, outputs[i], layer, situation)
    calls = [(*upstream[i], results[i][-1]) for i in order]
    results = call_each(getattr(student, layer.backward), calls)
    for i, result in zip(order, results, strict=True):
        compare_gradients(result, gradients[i], layer, situation)


def check_layer_changes_nothing(student, rng, case):
    """Neither pass changes what it is given."""
    layer = case.layer
    check_unchanged(layer.forward, getattr(student, layer.forward), *case.arguments)
    result = getattr(student, layer.forward)(*case.arguments)
    cache = unpack(result, len(layer.outputs) + 1, layer.forward)[-1]
    upstream = draw_upstream(rng, case)
    check_unchanged(layer.backward, getattr(student, layer.backward), *upstream, cache)


def check_layer_refuses(student, case):
    """Shapes that don't fit, an axis of length 0 and odd masks raise ValueError; the case doesn't.

    The case is one of sequences, and its n, t, d and m differ from each other.
    """
    function = getattr(student, case.layer.forward)
    x, *others = case.inputs
    function(*case.inputs)
    function(*case.inputs, np.ones(x.shape[:2], dtype=bool))
    for situation, args in (
        ("an x with another number of features than the weights", (x[:, :, :-1], *others)),
        ("a state with another number of sequences than x", (x[:-1], *others)),
        ("an x with two axes", (x[:, 0], *others)),
        ("sequences of no steps", (x[:, :0], *others)),
        ("biases of the wrong length", (x, *others[:-1], others[-1][:-1])),
        ("a mask of another shape", (x, *others, np.ones(x.shape[1::-1], dtype=bool))),
        ("a mask of integers", (x, *others, np.ones(x.shape[:2], dtype=np.int64))),
    ):
        check_refused(situation, function, *args)


def check_lstm_parameters(student, rng, d, m, *, forget_bias, dtype):
    """Shapes, types, biases, and the even distribution of the weights."""
    arguments = (np.random.default_rng(rng.integers(2**32)), d, m)
    if forget_bias is not None:
        arguments += (forget_bias, dtype)
    w_x, w_h, b = unpack(student.lstm_parameters(*arguments), 3, "lstm_parameters")
    expected = np.zeros(4 * m, dtype=dtype)
    expected[m : 2 * m] = 1.0 if forget_bias is None else forget_bias
    assert_close(b, expected, what="b", axes=("column",))
    for name, array, shape in (("w_x", w_x, (d, 4 * m)), ("w_h", w_h, (m, 4 * m))):
        check_array(array, shape, dtype, name)
        check_even(array, 1 / math.sqrt(m), name, "1 / sqrt(m)")


def check_array(array, shape, dtype, what):
    """It is an array of that shape and type, whatever is in it."""
    check(type(array) is np.ndarray, f"{what} must be a NumPy array, but it is {kind_of(array)}.")
    check(array.shape == shape, f"{what} has the wrong shape.", f"{array.shape}, not {shape}")
    check(array.dtype == dtype, f"{what} must have dtype {dtype}, but it has {array.dtype}.")


def check_even(array, bound, name, formula):
    """Numbers drawn evenly between -bound and bound, each on its own."""
    largest = float(np.abs(array).max())
    check(
        largest <= bound * (1 + 1e-6),
        f"{name} has entries outside of -{formula} .. {formula}.",
        f"The largest is {largest:.4g}, and {formula} is {bound:.4g}.",
    )
    check_distribution(array, lambda value: (value / bound + 1) / 2, name, "the even one")


def check_normal(array, name):
    """Numbers drawn from the standard normal distribution."""
    check_distribution(
        array, np.vectorize(lambda z: (1 + math.erf(z / math.sqrt(2))) / 2), name, "the normal one"
    )


# How often a right distribution is called wrong. Each test asks at most six times.
DISTRIBUTION_CHANCE = 1e-8


def check_distribution(array, cdf, name, kind):
    """The share of entries below each value is the right one.

    By the Dvoretzky-Kiefer-Wolfowitz inequality, the largest distance of that share from the
    truth is above `allowed` with a chance of at most DISTRIBUTION_CHANCE. Nothing depends on the
    order in which the numbers are drawn.
    """
    # Rows or columns that are copies of each other make fewer different numbers.
    distinct = len(np.unique(array)) / array.size
    check(distinct > 0.9, f"Many entries of {name} are equal; each is drawn on its own.")
    below = cdf(np.sort(array.astype(np.float64), axis=None))
    shares = np.arange(array.size + 1) / array.size
    distance = max(np.max(shares[1:] - below), np.max(below - shares[:-1]))
    allowed = math.sqrt(math.log(2 / DISTRIBUTION_CHANCE) / (2 * array.size))
    check(
        distance <= allowed,
        f"The entries of {name} don't follow the distribution of the docstring, {kind}.",
        f"The share of entries below some value is off by {distance:.3f}; chance explains "
        f"{allowed:.3f}. Their standard deviation is {array.std():.4g}.",
    )


def check_cross_entropy(student, oracle, logits, targets, mask, situation):
    """Loss and dlogits are PyTorch's."""
    options = {} if mask is None else {"mask": mask}
    loss, dlogits = oracle.cross_entropy(logits, targets, **options)
    arguments = (logits, targets) if mask is None else (logits, targets, mask)
    compare_cross_entropy(student, arguments, float(loss), dlogits, situation=situation)


def compare_cross_entropy(student, arguments, loss, dlogits, *, situation):
    result = student.temporal_cross_entropy(*arguments)
    actual, gradient = unpack(result, 2, "temporal_cross_entropy")
    check_float(actual, "loss")
    # In float32 the logits themselves carry that error, though a float holds the loss.
    tolerance = 1e-4 if dlogits.dtype == np.float32 else None
    assert_close(actual, loss, what=f"loss ({situation})", tolerance=tolerance)
    axes = ("sequence", "step", "id")
    assert_close(gradient, dlogits, what=f"dlogits ({situation})", axes=axes)


def check_clipped(student, gradients, max_norm, norm, *, expected, situation):
    """The norm and every gradient are right."""
    result = student.clip_by_global_norm(gradients, max_norm)
    clipped, actual = unpack(result, 2, "clip_by_global_norm")
    check_float(actual, "norm")
    assert_close(actual, norm, what=f"norm ({situation})")
    check(isinstance(clipped, dict), f"The gradients must be a dict, not {kind_of(clipped)}.")
    check(set(clipped) == set(expected), "The clipped gradients have other names.")
    for name, wanted in expected.items():
        assert_close(clipped[name], wanted, what=f"a clipped gradient ({situation})")


def check_windows(student, oracle, ids, batch, *, window, situation):
    """Every window holds the ids that the docstring names."""
    expected = oracle.windows(ids, batch, window)
    results = unpack(student.make_windows(ids, batch, window), 2, "make_windows")
    for name, actual, wanted in zip(("inputs", "targets"), results, expected, strict=True):
        axes = ("window", "stream", "step")
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=axes)


def check_truncated(student, oracle, rng, case, *, window, situation):
    """h and the gradients of truncated backpropagation are PyTorch's."""
    x, *others = case.inputs
    (dh,) = draw_upstream(rng, case)
    expected = oracle.truncated_bptt(x, dh, *others, window)
    result = unpack(student.truncated_bptt(x, dh, *others, window), 5, "truncated_bptt")
    for name, actual, wanted in zip(
        ("h", "dx", "dw_xh", "dw_hh", "db_h"), result, expected, strict=True
    ):
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=axes_of(name, wanted.ndim))


def draw_cell(rng, kind, t, d, *, m, dtype=np.float64):
    """x, state and weights of one sequence, as gradient_norms_through_time takes them."""
    case = draw_case(rng, {"rnn": RNN, "lstm": LSTM}[kind], 1, d, m=m, t=t, dtype=dtype)
    states = 1 if kind == "rnn" else 2
    rows = [array[0] for array in case.inputs[: 1 + states]]
    return rows[0], tuple(rows[1:]), case.inputs[1 + states :]


def check_norms(student, oracle, kind, x, state, weights, situation):
    """The norms through time are those of PyTorch's Jacobians."""
    expected = getattr(oracle, f"{kind}_norms")(x, *state, *weights)
    norms = student.gradient_norms_through_time(kind, x, state, weights)
    assert_close(norms, expected, what=f"norms ({situation})", axes=("step",))


def orthogonal(rng, m):
    """A random matrix that changes no length."""
    return np.linalg.qr(rng.normal(size=(m, m)))[0]


def check_container_kept(student, function, container, call, *, what):
    """The call leaves every array in a dict or a tuple as it was.

    call(container) gives the arguments, with the container where it belongs.
    """
    held = hold(student, container)
    call_each_held(function, [call(held)])
    after = fetch(held)
    keys = container if isinstance(container, dict) else range(len(container))
    same = len(after) == len(container) and all(
        np.array_equal(after[key], container[key]) for key in keys
    )
    check(same, f"{what} is changed by the call.")
