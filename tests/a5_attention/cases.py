"""What the tests of assignment 5 share: worked examples, random cases and their comparison."""

from dataclasses import dataclass

import numpy as np
import torch

from common.testing.checks import check_refused
from common.testing.compare import assert_close, check

WORKED = 1e-6  # the tolerance of worked examples, which are given to eight digits
UNSEEN = 1e12  # what keys and values hold where no query may look


@dataclass(frozen=True)
class Case:
    """The inputs of one attention, as arrays or as tensors."""

    q: np.ndarray | torch.Tensor
    k: np.ndarray | torch.Tensor
    v: np.ndarray | torch.Tensor
    mask: np.ndarray | torch.Tensor | None = None

    @property
    def inputs(self):
        return self.q, self.k, self.v

    @property
    def arguments(self):
        return self.inputs if self.mask is None else (*self.inputs, self.mask)

    @property
    def out_shape(self):
        return *self.q.shape[:-1], self.v.shape[-1]

    @property
    def weights_shape(self):
        return *self.q.shape[:-1], self.k.shape[-2]

    def as_tensors(self):
        return Case(
            *(None if a is None else torch.from_numpy(a) for a in (*self.inputs, self.mask))
        )

    def seen_as(self, *views):
        """The same case with q, k and v as views, each of its own kind."""
        pairs = zip(self.inputs, views, strict=True)
        return Case(*(view(array) for array, view in pairs), self.mask)

    def blinded(self):
        """The same case with a last key and value, both huge, that no query may look at."""
        k, v = self.k.copy(), self.v.copy()
        mask = np.ones(self.weights_shape, dtype=bool) if self.mask is None else self.mask
        mask = np.broadcast_to(mask, self.weights_shape).copy()
        k[..., -1, :], v[..., -1, :], mask[..., -1] = UNSEEN, -UNSEEN, False
        return Case(self.q, k, v, mask)


CAT_EATS_FISH = Case(
    np.array([[0.8, 0.2]]),
    np.array([[0.9, 0.1], [0.4, 0.3], [0.5, 0.5]]),
    np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]),
)
CAT_EATS_FISH_WEIGHTS = np.array([[0.38180006, 0.29599383, 0.32220611]])
CAT_EATS_FISH_OUT = np.array([[0.54290311, 0.45709689]])

# the, cat, sat, on, the, mat: is-animal, is-action, is-object, definiteness
SIX_WORDS = Case(
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
)
SIX_WORDS_WEIGHTS = np.array(
    [[0.16372660, 0.22773849, 0.14814596, 0.14092079, 0.16372660, 0.15574156]]
)
SIX_WORDS_OUT = np.array([[0.22133730, 0.13333136, 0.23340165, 0.57564089]])


def draw_case(rng, front, t_q, t_k, d_k, d_v, dtype="float64", mask=None):
    """Random queries, keys and values with these axes in front; scores between about -5 and 5."""
    shapes = ((*front, t_q, d_k), (*front, t_k, d_k), (*front, t_k, d_v))
    q, k, v = (rng.normal(scale=1.3, size=shape).astype(dtype) for shape in shapes)
    return Case(q, k, v, mask)


def draw_mask(rng, *shape):
    """In every row at least two are True and one is False, for three keys or more.

    With a single True, weights would not move, and there would be no gradient to compare.
    """
    places = rng.uniform(size=shape).argsort(axis=-1)
    return (rng.uniform(size=shape) < 0.5) & (places > 0) | (places > shape[-1] - 3)


def draw_like(rng, shape, example):
    """A random array or tensor of that shape, of the kind and type of the example."""
    array = rng.normal(size=shape)
    if isinstance(example, np.ndarray):
        return array.astype(example.dtype)
    return torch.from_numpy(array).to(example.dtype)


def as_view(view, tensor):
    """The same numbers in a tensor that is a view: of the kind of sliced, or of transposed."""
    return torch.from_numpy(view(tensor.numpy()))


def axes_of(name, dimensions):
    """What a failure calls the axes of an array."""
    last = {
        "weights": ("query", "key"),
        "k": ("key", "feature"),
        "v": ("key", "feature"),
    }.get(name.removeprefix("d"), ("query", "feature"))
    front = {0: (), 1: ("sequence",), 2: ("sequence", "head")}.get(dimensions - 2)
    return None if front is None else (*front, *last)


def compare_outputs(results, expected, situation, tolerance=None):
    for name, actual, wanted in zip(("out", "weights"), results, expected, strict=True):
        axes = axes_of(name, wanted.ndim)
        assert_close(actual, wanted, f"{name} ({situation})", axes, tolerance)


def compare_gradients(results, expected, situation):
    for name, actual, wanted in zip(("dq", "dk", "dv"), results, expected, strict=True):
        assert_close(actual, wanted, f"{name} ({situation})", axes_of(name, wanted.ndim))


def check_exactly_zero(weights, mask):
    """No weight where the mask is False, not even a tiny one."""
    hidden = ~np.broadcast_to(np.asarray(mask), weights.shape)
    check(
        not np.asarray(weights)[hidden].any(),
        "Where the mask is False, the weight must be exactly 0.",
    )


def check_attention_refuses(function, case):
    """Shapes that don't fit, axes of length 0 and odd masks raise ValueError; the case doesn't.

    The case has one axis in front, two sequences or more, and no mask; its sizes all differ.
    """
    (q, k, v), (n, t_q, t_k) = case.inputs, case.weights_shape
    ones = np.ones if isinstance(q, np.ndarray) else torch.ones
    true = np.bool_ if isinstance(q, np.ndarray) else torch.bool
    check(function(q, k, v, ones((t_q, t_k), dtype=true)) is not None, "Nothing was returned.")
    for situation, args in (
        ("queries and keys with other numbers of features", (q[..., :-1], k, v)),
        ("another number of values than keys", (q, k, v[:, :-1])),
        ("another number of sequences in q than in k", (q[:-1], k, v)),
        ("a q of one axis", (q[0, 0], k, v)),
        ("no keys", (q, k[:, :0], v[:, :0])),
        ("a mask of integers", (q, k, v, ones((t_q, t_k), dtype=true) * 1)),
        ("a mask that is a list", (q, k, v, [[True] * t_k] * t_q)),
        ("a mask with the axes swapped", (q, k, v, ones((t_k, t_q), dtype=true))),
        ("a mask with too many axes", (q, k, v, ones((1, n, t_q, t_k), dtype=true))),
    ):
        check_refused(situation, function, *args)
