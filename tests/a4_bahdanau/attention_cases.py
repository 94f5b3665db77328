"""What the tests of exercises 4.1, 4.2 and 4.5 pass to attention, and how they check its masks."""

import torch

from common.testing.checks import check_refused
from common.testing.compare import assert_close, check
from common.testing.remote.torch_modules import vjp
from tests.a4_bahdanau.cases import SOFTMAX, compare_results, draw_floats, draw_ids, draw_inputs

UNSEEN = 1e12  # what keys hold where no query may look


def compare_weights(result, drawn, inputs, situation, *, oracle):
    """The results are PyTorch's, and weights are exactly 0 where the mask, if any, is False."""
    compare_results(result, drawn, inputs, situation, oracle=oracle)
    weights, mask = result if drawn is SOFTMAX else result[-1], inputs[-1]
    if mask.dtype == torch.bool:
        hidden = ~mask.expand(weights.shape)
        sentence = "Where the mask is False, the weight must be exactly 0."
        check(not bool(weights[hidden].any()), sentence)


def check_softmax_gradient(softmax, inputs, situation, *, oracle, rng):
    """The gradient of the scores is PyTorch's under a random one, and 0 at hidden places."""
    scores, *mask = inputs
    upstream = [draw_floats(rng, *scores.shape, dtype=scores.dtype)]
    (wanted, *_), _ = oracle.gradients("masked_softmax", {}, inputs, upstream)
    (out,), gradients, _ = vjp(softmax, inputs, upstream)
    compare_results(out, SOFTMAX, inputs, situation, oracle=oracle)
    assert_close(gradients[0], wanted, what=f"the gradient of the scores ({situation})")
    if mask:
        hidden = ~mask[0].expand(scores.shape)
        sentence = "The gradient of a score that the mask hides must be exactly 0."
        check(not bool(gradients[0][hidden].any()), sentence)


def check_masks_refused(function, front, mask):
    """Masks of a wrong type or shape raise ValueError, this one doesn't. mask: (n, t), n != t."""
    check(function(*front, mask) is not None, "Nothing was returned.")
    for situation, bad in (
        ("a mask of floats", mask.double()),
        ("a mask of integers", mask.long()),
        ("a mask with its axes swapped", mask.T),
        ("a mask with too many keys", torch.cat([mask, mask], dim=1)),
        ("a mask with too many axes", mask[None]),
    ):
        check_refused(situation, function, *front, bad)


def blinded(query, keys, mask):
    """The same inputs, with huge numbers in the keys that the mask hides."""
    return query, keys.masked_fill(~mask[..., None], UNSEEN), mask


def without(mask, row):
    """The same mask, with nothing allowed in one row."""
    return mask.index_fill(0, torch.tensor(row), False)


def draw_step(rng, n, t, sizes, *, mask=None):
    """Tokens, states and keys for one step of an AttentionDecoder of these sizes."""
    v, _, c, h, _ = sizes
    inputs = (draw_ids(rng, v, n), draw_floats(rng, n, h), draw_floats(rng, n, t, c))
    return inputs if mask is None else (*inputs, mask)


def draw_whole(rng, n, u, t, *, sizes, mask=None):
    """Ids, final and keys for u steps of an AttentionDecoder of these sizes."""
    v, _, c, _, _ = sizes
    inputs = (draw_inputs(rng, v, n, u), draw_floats(rng, n, c), draw_floats(rng, n, t, c))
    return inputs if mask is None else (*inputs, mask)
