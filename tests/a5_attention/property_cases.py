"""How the tests of exercises 5.6 and 5.7 check what attention is like."""

import math

import numpy as np
import torch

from common.testing.checks import check_float
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import gradients_left, stored_gradients, vjp
from tests.a5_attention.cases import draw_like

# Finite differences are right to about 1e-10 of the largest entry.
DIFFERENCES = 1e-7
# Gaps between two scores at which the squares in a slope nearly cancel out.
RUN_AWAY = [18.8 + step / 100 for step in range(31)]

# Exercise 5.6

STANDARD_ERRORS = 7  # a right estimate is further off with a chance below 1e-8


def check_score_variance(student, rng, d_k, scaled, *, samples=None):
    """The variance is 1 if scaled and d_k if not, but for the error that the docstring gives."""
    more = () if samples is None else (samples,)
    result = student.attention.score_variance(d_k, scaled, new_generator(rng), *more)
    check_float(result, "the variance")
    expected = 1 if scaled else d_k
    allowed = STANDARD_ERRORS * math.sqrt((2 + 6 / d_k) / (samples or 10_000))
    check(
        abs(result / expected - 1) <= allowed,
        f"The variance of scores that are {'' if scaled else 'not '}scaled is wrong.",
        f"got {result:.4g} for d_k {d_k}; {expected} is right, and chance explains {allowed:.0%}",
    )


def check_variance_is_drawn(student, rng, d_k, samples, *, repeats=60):
    """Equal generators give equal results, others others; few samples give a rough estimate.

    With at most 8 samples the estimates differ from each other by half of the variance or more,
    with many by a few percent. Right code has a spread below a fifth with a chance below 1e-9.
    """
    function = student.attention.score_variance
    seeds = [int(seed) for seed in rng.choice(2**31, size=repeats, replace=False)]
    calls = [(d_k, True, np.random.default_rng(seed), samples) for seed in (*seeds, seeds[0])]
    *results, again = call_each(function, calls)
    for result in (*results, again):
        check_float(result, "the variance")
    check(results[0] == again, "Equal generators must give equal variances.")
    check(len(set(results)) == repeats, "Other generators must give other variances.")
    spread = float(np.std(results))
    check(
        spread > 0.2,
        "The number of samples makes no difference.",
        f"With {samples} samples, estimates spread by {spread:.3f} around 1.",
    )


def new_generator(rng):
    """A generator of its own: what the student's code draws mustn't move the test's."""
    return np.random.default_rng(int(rng.integers(2**31)))


def check_saturation(student, scores, expected, situation, *, tolerance=None):
    """peak and slope are the expected ones."""
    results = unpack(student.attention.saturation(scores), 2, "saturation")
    for name, actual, wanted in zip(("peak", "slope"), results, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})", tolerance=tolerance)


def check_two_scores(student, gaps, tolerance=None):
    """With a gap of g between two scores, peak is s and slope 2 s (1 - s), where s = sigmoid(g)."""
    gaps = doubles(gaps)
    scores = torch.stack([torch.full_like(gaps, 0.7), gaps + 0.7], dim=-1)
    s, rest = torch.sigmoid(gaps), torch.sigmoid(-gaps)
    check_saturation(student, scores, (s, 2 * s * rest), "two scores", tolerance=tolerance)


# Exercise 5.7


def check_gap(student, oracle, x, order, *, mask, situation):
    """The gap of scaled_dot_product_attention, compared with that of PyTorch's."""
    mask = None if mask is None else torch.from_numpy(mask)
    before, after = x.double(), x[:, order].double()
    out, _ = oracle.attention(before, before, before, mask)
    moved, _ = oracle.attention(after, after, after, mask)
    code, more = student.attention, () if mask is None else (mask,)
    gap = code.permutation_gap(code.scaled_dot_product_attention, x, order, *more)
    compare_gap(gap, out[:, order], moved, situation, dtype=x.dtype)


def compare_gap(gap, reordered, moved, situation, *, dtype):
    """reordered and moved: the reordered out, and the out of the reordered sequence."""
    check_float(gap, "the gap")
    expected = float((moved - reordered).abs().max())
    rounding, tolerance = (1e-12, None) if dtype == torch.float64 else (1e-5, 1e-4)
    if expected > 1e-9:
        assert_close(gap, expected, what=f"the gap ({situation})", tolerance=tolerance)
    else:
        check(
            0 <= gap < rounding,
            f"The gap ({situation}) must be 0 but for rounding.",
            f"got {gap:.3g}",
        )


def draw_order(rng, t):
    """An order that is not its own inverse; t is 3 or more."""
    order = rng.permutation(t)
    while np.array_equal(order[order], np.arange(t)):
        order = rng.permutation(t)
    return torch.from_numpy(order)


def check_influence(student, oracle, x, mask, *, situation):
    """The influence in scaled_dot_product_attention is that in PyTorch's."""
    code, more = student.attention, () if mask is None else (mask,)
    result = code.influence(code.scaled_dot_product_attention, x, *more)
    compare_influence(result, oracle.influence(x, mask), situation)


def compare_influence(result, expected, situation):
    tolerance = DIFFERENCES if expected.dtype == torch.float64 else None
    axes = ("output", "input")
    assert_close(result, expected, f"the influence ({situation})", axes, tolerance)


def check_influence_leaves_nothing(student, oracle, rng, x, *, mask):
    """The influence has no graph, and nothing is left in the .grad of x."""
    code = student.attention
    arguments = (code.scaled_dot_product_attention, x, mask)
    upstream = draw_like(rng, (len(x), len(x)), x)
    outputs, gradients, _ = vjp(code.influence, arguments, [upstream])
    compare_influence(outputs[0], oracle.influence(x, mask), "an x that asks for gradients")
    check(
        not gradients[1].any(),
        "The influence must have no graph, but a gradient flows back to x.",
        help=".detach() gives a tensor without its graph.",
    )
    left = gradients_left(code.influence, *arguments)[1]
    check(
        left is None or not left.any(),
        "influence leaves something in the .grad of x.",
        help="torch.autograd.grad gives gradients without adding them to anything.",
    )


def check_nothing_above_the_diagonal(student, x, mask):
    """With a causal mask, no output depends on a later input, not even a little."""
    code = student.attention
    result = code.influence(code.scaled_dot_product_attention, x, mask)
    above = np.triu(result.numpy(), 1)
    check(not above.any(), "With a causal mask, what lies above the diagonal must be exactly 0.")


def check_properties_of_heads(student, oracle, heads, x, *, order):
    """Gap and influence of a MultiHeadAttention; no gradient is left in its parameters."""
    module, settings = heads.on(student), (heads.parameters, heads.num_heads)
    mask = oracle.causal_mask(x.shape[1])
    for allowed in (None, mask):
        after = x[:, order]
        out, _ = oracle.multi_head_attention(*settings, x, x, x, allowed)
        moved, _ = oracle.multi_head_attention(*settings, after, after, after, allowed)
        more = () if allowed is None else (allowed,)
        gap = student.attention.permutation_gap(module, x, order, *more)
        compare_gap(gap, out[:, order], moved, "a MultiHeadAttention", dtype=x.dtype)
        result = student.attention.influence(module, x[0], *more)
        expected = oracle.influence_of_heads(*settings, x[0], allowed)
        compare_influence(result, expected, "a MultiHeadAttention")
    check(
        not any(gradient.any() for gradient in stored_gradients(module).values()),
        "influence leaves something in the .grad of the parameters.",
        help="torch.autograd.grad gives gradients without adding them to anything.",
    )


def doubles(numbers):
    """A tensor of these numbers in float64, to the last digit."""
    return torch.tensor(numbers, dtype=torch.float64)


def check_lookup(student, oracle, query, keys, values, temperature, situation):
    """value and weights are PyTorch's with the scale 1 / temperature."""
    out, weights = oracle.attention(query[None], keys, values, scale=1 / temperature)
    compare_lookup(
        student, (query, keys, values, temperature), out[0], weights[0], situation=situation
    )


def compare_lookup(student, arguments, value, weights, *, situation, tolerance=None):
    result = unpack(student.attention.soft_lookup(*arguments), 2, "soft_lookup")
    for name, actual, wanted in zip(("value", "weights"), result, (value, weights), strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})", tolerance=tolerance)


def check_hard_lookup(student, query, keys, values, *, winners, temperatures):
    """All weight is on the winners, in equal parts."""
    weights = torch.zeros(len(keys), dtype=values.dtype)
    weights[list(winners)] = 1 / len(winners)
    value = values[list(winners)].mean(dim=0)
    for temperature in temperatures:
        situation = "temperature 0" if temperature == 0 else "a tiny temperature"
        compare_lookup(
            student, (query, keys, values, temperature), value, weights, situation=situation
        )
