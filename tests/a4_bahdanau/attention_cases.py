"""How the tests of exercises 4.1, 4.2 and 4.5 check attention, and what they hand in."""

import torch

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import vjp
from tests.a4_bahdanau.cases import (
    UNSEEN,
    as_views,
    check_exactly_zero,
    check_module,
    compare_results,
    draw_floats,
    draw_ids,
    draw_inputs,
)

# Exercise 4.1


def arguments(scores, mask):
    return (scores,) if mask is None else (scores, mask)


def check_softmax(student, oracle, scores, mask, *, situation):
    """The weights are PyTorch's over the allowed places, and exactly 0 elsewhere."""
    given = arguments(scores, mask)
    expected = oracle.answer("masked_softmax", {}, given)
    out = student.masked_softmax(*given)
    compare_results("masked_softmax", [out], expected, situation)
    if mask is not None:
        check_exactly_zero(out, mask)


def check_softmax_gradient(student, oracle, rng, scores, *, mask, situation):
    """The gradient of the scores is PyTorch's under a random one, and 0 at hidden places."""
    given, upstream = arguments(scores, mask), [draw_floats(rng, *scores.shape).to(scores.dtype)]
    wanted, _ = oracle.gradients("masked_softmax", {}, given, upstream)
    outputs, gradients, _ = vjp(student.masked_softmax, given, upstream)
    expected = oracle.answer("masked_softmax", {}, given)
    compare_results("masked_softmax", outputs, expected, situation)
    assert_close(gradients[0], wanted[0], what=f"the gradient of the scores ({situation})")
    if mask is not None:
        hidden = ~mask.expand(scores.shape)
        check(
            not bool(gradients[0][hidden].any()),
            "The gradient of a score that the mask hides must be exactly 0.",
        )


def check_softmax_stays_apart(student, oracle, first, second):
    """Inputs stay as they are, and a result survives further calls. first, second: arguments."""
    function, given = student.masked_softmax, (first, second, first)
    for inputs, out in zip(given, call_each(function, given), strict=True):
        expected = oracle.answer("masked_softmax", {}, inputs)
        compare_results("masked_softmax", [out], expected, "several calls in a row")
    check_unchanged("masked_softmax", function, *first)


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


def check_scores_refused(student, scores):
    """Scores that are no tensor, or have no axis, raise ValueError."""
    check_refused("scores that are a list", student.masked_softmax, scores.tolist())
    check_refused("scores without an axis", student.masked_softmax, scores.sum())


# Exercise 4.2


def draw_attention_inputs(rng, n, t, query_size, *, key_size, mask=None, dtype=torch.float64):
    """A query for each sentence, and its keys; with a mask, where there is one."""
    query = draw_floats(rng, n, query_size, dtype=dtype)
    keys = draw_floats(rng, n, t, key_size, dtype=dtype)
    return (query, keys) if mask is None else (query, keys, mask)


def check_attention(student, oracle, drawn, inputs, *, situation):
    """Context and weights are right, and no weight is where the mask is False."""
    _, weights = check_module(student, oracle, drawn, inputs, situation=situation)
    if len(inputs) == 3:
        check_exactly_zero(weights, inputs[2])


def blinded(inputs):
    """The same inputs, with huge numbers in the keys that the mask hides."""
    query, keys, mask = inputs
    return query, keys.masked_fill(~mask[..., None], UNSEEN), mask


def check_attention_views(student, oracle, drawn, inputs):
    check_attention(student, oracle, drawn, as_views(*inputs), situation="views")


# Exercise 4.5


def draw_step(rng, n, t, sizes, *, mask=None, dtype=torch.float64):
    """Tokens, states and keys for one step of an AttentionDecoder of these sizes."""
    v, _, c, h, _ = sizes
    token = draw_ids(rng, v, n)
    inputs = (token, draw_floats(rng, n, h, dtype=dtype), draw_floats(rng, n, t, c, dtype=dtype))
    return inputs if mask is None else (*inputs, mask)


def draw_whole(rng, n, u, t, *, sizes, mask=None, dtype=torch.float64):
    """Ids, final and keys for u steps of an AttentionDecoder of these sizes."""
    v, _, c, _, _ = sizes
    ids = draw_inputs(rng, v, n, u)
    inputs = (ids, draw_floats(rng, n, c, dtype=dtype), draw_floats(rng, n, t, c, dtype=dtype))
    return inputs if mask is None else (*inputs, mask)
