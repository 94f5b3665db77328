"""What the tests of assignment 5 share: worked examples, random inputs and comparisons."""

import numpy as np
import torch

from common.testing.checks import check_refused
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import warnings_of

WORKED = 1e-6  # the tolerance of worked examples, which are given to eight digits
HIDDEN = 1e12  # what a key and value hold that no query may attend to

# The handout's examples: q, k and v; and the out and weights that they give.
EXAMPLES = {
    # the, cat, sat, on, the, mat: is-animal, is-action, is-object, definiteness
    "the six words": (
        (
            np.array([[0.9, 0.1, 0.2, 0.3]]),
            np.array(
                [
                    [0.0, 0.0, 0.0, 1.0],
                    [1.0, 0.0, 0.3, 0.0],
                    [0.0, 1.0, 0.0, 0.0],
                    [0.0, 0.0, 0.0, 0.0],
                    [0.0, 0.0, 0.0, 1.0],
                    [0.0, 0.0, 1.0, 0.0],
                ]
            ),
            np.array(
                [
                    [0.1, 0.0, 0.0, 0.8],
                    [0.9, 0.0, 0.1, 0.7],
                    [0.0, 0.9, 0.0, 0.3],
                    [0.0, 0.0, 0.5, 0.0],
                    [0.0, 0.0, 0.0, 0.9],
                    [0.0, 0.0, 0.9, 0.6],
                ]
            ),
        ),
        (
            np.array([[0.22133730, 0.13333136, 0.23340165, 0.57564089]]),
            np.array([[0.16372660, 0.22773849, 0.14814596, 0.14092079, 0.16372660, 0.15574156]]),
        ),
    ),
    "cat eats fish": (
        (
            np.array([[0.8, 0.2]]),
            np.array([[0.9, 0.1], [0.4, 0.3], [0.5, 0.5]]),
            np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]),
        ),
        (
            np.array([[0.54290311, 0.45709689]]),
            np.array([[0.38180006, 0.29599383, 0.32220611]]),
        ),
    ),
}


def draw_attention(rng, front, sizes, mask_shape=None, *, dtype="float64"):
    """Random q, k and v with these leading axes, and a mask if its shape is given."""
    mask = [] if mask_shape is None else [draw_mask(rng, mask_shape)]
    t_q, t_k, d_k, d_v = sizes
    shapes = ((*front, t_q, d_k), (*front, t_k, d_k), (*front, t_k, d_v))
    # Scores are between about -5 and 5.
    return [*(rng.normal(scale=1.3, size=shape).astype(dtype) for shape in shapes), *mask]


def as_tensors(arrays):
    """The same arrays as tensors."""
    return [torch.from_numpy(array) for array in arrays]


def draw_mask(rng, shape):
    """Every row has at least two True, so that weights can change; of three or more, one False."""
    ranks = rng.uniform(size=shape).argsort(axis=-1)
    return (rng.uniform(size=shape) < 0.5) & (ranks > 0) | (ranks > shape[-1] - 3)


def draw_like(rng, example):
    """A random array or tensor with the shape, type and dtype of the example."""
    array = rng.normal(size=example.shape)
    if isinstance(example, np.ndarray):
        return array.astype(example.dtype)
    return torch.from_numpy(array).to(example.dtype)


def draw_upstream(rng, oracle, inputs, dropout=None):
    """Random gradients of out and weights, and PyTorch's outputs and gradients for them."""
    q, k, v, mask = inputs if len(inputs) == 4 else (*inputs, None)
    outputs = oracle.attention(q, k, v, mask, dropout=dropout)
    upstream = [draw_like(rng, output) for output in outputs]
    gradients = oracle.attention_gradients(q, k, v, *upstream, mask=mask, dropout=dropout)
    return upstream, (outputs, gradients)


def draw_dout(rng, oracle, inputs):
    """A random gradient of out alone, and PyTorch's gradients of q, k and v for it."""
    q, k, v, mask = inputs if len(inputs) == 4 else (*inputs, None)
    dout = draw_like(rng, oracle.attention(q, k, v, mask)[0])
    return dout, oracle.attention_gradients(q, k, v, dout, mask=mask)


def with_hidden_key(q, k, v, mask):
    """The same inputs with a huge last key and value that no query may attend to."""
    k, v = k.copy(), v.copy()
    mask = np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2])).copy()
    k[..., -1, :], v[..., -1, :], mask[..., -1] = HIDDEN, -HIDDEN, False
    return q, k, v, mask


def as_view(view, tensor):
    """The same numbers in a tensor that is a view, made by sliced or transposed."""
    return torch.from_numpy(view(tensor.numpy()))


def axes_of(name, dimensions):
    """The names of an array's axes in failures."""
    last = {
        "weights": ("query", "key"),
        "k": ("key", "feature"),
        "v": ("key", "feature"),
    }.get(name.removeprefix("d"), ("query", "feature"))
    front = {0: (), 1: ("sequence",), 2: ("sequence", "head")}.get(dimensions - 2)
    return None if front is None else (*front, *last)


def compare_outputs(outputs, expected, situation, mask=None, *, tolerance=None):
    """out and weights are right; where the mask is False, weights are exactly 0."""
    for name, actual, wanted in zip(("out", "weights"), outputs, expected, strict=True):
        axes = axes_of(name, wanted.ndim)
        assert_close(actual, wanted, f"{name} ({situation})", axes, tolerance=tolerance)
    if mask is not None:
        weights = np.asarray(outputs[1])
        hidden = ~np.broadcast_to(np.asarray(mask), weights.shape)
        check(not weights[hidden].any(), "Where the mask is False, weights must be exactly 0.")


def compare_gradients(gradients, expected, situation):
    """dq, dk and dv are right."""
    for name, actual, wanted in zip(("dq", "dk", "dv"), gradients, expected, strict=True):
        assert_close(actual, wanted, f"{name} ({situation})", axes_of(name, wanted.ndim))


def compare_forward(result, oracle, inputs, situation):
    """attention_forward returned PyTorch's out and weights for these inputs, and a cache."""
    *outputs, _ = unpack(result, 3, "attention_forward")
    compare_outputs(outputs, oracle.attention(*inputs), situation, *inputs[3:])


def compare_backward(result, expected, situation):
    """attention_backward returned the right dq, dk and dv."""
    compare_gradients(unpack(result, 3, "attention_backward"), expected, situation)


def compare_attention(result, oracle, inputs, situation):
    """scaled_dot_product_attention returned PyTorch's out and weights for these inputs."""
    outputs = unpack(result, 2, "scaled_dot_product_attention")
    compare_outputs(outputs, oracle.attention(*inputs), situation, *inputs[3:])


def compare_passes(found, expected, situation):
    """Outputs and gradients are right. found: from vjp; expected: from draw_upstream."""
    outputs = unpack(found[0], 2, "scaled_dot_product_attention")
    compare_outputs(outputs, expected[0], situation)
    compare_gradients(found[1][:3], expected[1], situation)


def check_quiet(softmax, *arguments):
    """softmax raises no warning."""
    warnings = warnings_of(softmax, *arguments)
    check(not warnings, "softmax causes a warning.", "; ".join(map(str, warnings)))


def softmax_or_zeros(oracle, x, axis):
    """PyTorch's softmax; zeros where all entries along the axis are -inf."""
    empty = np.isneginf(x).all(axis=axis, keepdims=True)
    return np.where(empty, 0, oracle.softmax(np.where(empty, 0, x), axis))


def check_attention_refuses(function, q, k, v):
    """Bad inputs raise ValueError; q, k and v, whose sizes all differ, don't."""
    (n, t_q, _), t_k = q.shape, k.shape[1]
    ones = np.ones if isinstance(q, np.ndarray) else torch.ones
    true = np.bool_ if isinstance(q, np.ndarray) else torch.bool
    check(function(q, k, v, ones((t_q, t_k), dtype=true)) is not None, "Nothing was returned.")
    for situation, args in (
        ("queries and keys with different numbers of features", (q[..., :-1], k, v)),
        ("a different number of values than keys", (q, k, v[:, :-1])),
        ("a different number of sequences in q than in k", (q[:-1], k, v)),
        ("a q of one axis", (q[0, 0], k, v)),
        ("no keys", (q, k[:, :0], v[:, :0])),
        ("a mask of integers", (q, k, v, ones((t_q, t_k), dtype=true) * 1)),
        ("a mask that is a list", (q, k, v, [[True] * t_k] * t_q)),
        ("a mask with the axes swapped", (q, k, v, ones((t_k, t_q), dtype=true))),
        ("a mask with too many axes", (q, k, v, ones((1, n, t_q, t_k), dtype=true))),
    ):
        check_refused(situation, function, *args)


def check_backward_refuses(backward, dout, cache):
    """A dout whose shape isn't that of out raises ValueError, even if it would broadcast."""
    for situation, wrong in (
        ("a dout of one sequence instead of several", dout[:1]),
        ("a dout of one query instead of several", dout[:, :1]),
        ("a dout with one axis too many", dout[None]),
    ):
        check_refused(situation, backward, wrong, cache)
