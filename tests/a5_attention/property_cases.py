"""How the tests of exercises 5.6 and 5.7 check the properties of attention."""

import math

import numpy as np
import torch

from common.testing.checks import check_float
from common.testing.compare import assert_close, check, unpack

# Finite differences have an error of about 1e-10 of the largest entry.
DIFFERENCES = 1e-7
# Gaps between two scores at which the squares in a Jacobian norm nearly cancel.
LARGE_GAPS = [18.8 + step / 100 for step in range(31)]
STANDARD_ERRORS = 7  # right code is further off with a probability below 1e-8
GENERATORS = 60
NAMES = ("the largest weight", "the Jacobian norm")  # what saturation returns


def doubles(numbers):
    """A float64 tensor of these numbers."""
    return torch.tensor(numbers, dtype=torch.float64)


# Exercise 5.6


def new_generator(rng):
    """A separate generator: what the student's code draws must not affect the test's."""
    return np.random.default_rng(int(rng.integers(2**31)))


def check_variance(result, d_k, scaled, samples=10_000):
    """The variance is 1 if scaled and d_k if not, within the error that the docstring gives."""
    check_float(result, "the variance")
    expected = 1 if scaled else d_k
    allowed = STANDARD_ERRORS * math.sqrt((2 + 6 / d_k) / samples)
    check(
        abs(result / expected - 1) <= allowed,
        f"The variance of {'scaled' if scaled else 'unscaled'} scores is wrong.",
        f"got {result:.4g} for d_k {d_k}, expected {expected} within {allowed:.0%}",
    )


def draw_generators(rng):
    """Generators that all differ, and then the first again."""
    seeds = rng.choice(2**31, size=GENERATORS, replace=False)
    return [np.random.default_rng(int(seed)) for seed in (*seeds, seeds[0])]


def check_variances_are_drawn(results, samples):
    """Equal generators give equal results, different ones different results, few samples rough.

    With at most 8 samples the estimates have a standard deviation of half the variance or more,
    with many samples of a few percent. Right code is below a fifth with a probability below 1e-9.
    """
    for result in results:
        check_float(result, "the variance")
    *results, again = results
    check(results[0] == again, "Equal generators must give equal variances.")
    check(len(set(results)) == GENERATORS, "Different generators must give different variances.")
    spread = float(np.std(results))
    check(
        spread > 0.2,
        "The number of samples makes no difference.",
        f"With {samples} samples, the estimates have a standard deviation of only {spread:.3f}.",
    )


def two_scores(gaps):
    """Pairs of scores with these gaps; s = sigmoid(gap) and the Jacobian norm 2 s (1 - s)."""
    gaps = doubles(gaps)
    scores = torch.stack([torch.full_like(gaps, 0.7), gaps + 0.7], dim=-1)
    s, rest = torch.sigmoid(gaps), torch.sigmoid(-gaps)
    return scores, (s, 2 * s * rest)


def compare_saturation(result, expected, situation, tolerance=None):
    """The largest weight and the Jacobian norm are right."""
    results = unpack(result, 2, "saturation")
    for name, actual, wanted in zip(NAMES, results, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})", tolerance=tolerance)


# Exercise 5.7


def draw_order(rng, t):
    """An order that is not its own inverse; t is 3 or more."""
    order = rng.permutation(t)
    while np.array_equal(order[order], np.arange(t)):
        order = rng.permutation(t)
    return torch.from_numpy(order)


def right_gap(attend, x, order, mask=None):
    """The gap of PyTorch's attention, in float64. attend: a function of the oracle."""
    before, after = x.double(), x[:, order].double()
    out, _ = attend(before, before, before, mask)
    moved, _ = attend(after, after, after, mask)
    return float((moved - out[:, order]).abs().max())


def compare_gap(gap, expected, situation, dtype=torch.float64):
    """The gap is right, or 0 up to rounding in this dtype."""
    check_float(gap, "the gap")
    rounding, tolerance = (1e-12, None) if dtype == torch.float64 else (1e-5, 1e-4)
    if expected > 1e-9:
        assert_close(gap, expected, what=f"the gap ({situation})", tolerance=tolerance)
    else:
        check(
            0 <= gap < rounding,
            f"The gap ({situation}) must be 0 up to rounding.",
            f"got {gap:.3g}",
        )


def compare_influence(result, expected, situation):
    """The influence is that of PyTorch's attention."""
    tolerance = DIFFERENCES if expected.dtype == torch.float64 else None
    assert_close(
        result, expected, f"the influence ({situation})", ("output", "input"), tolerance=tolerance
    )


def check_nothing_above_the_diagonal(influence):
    """With a causal mask, no output depends on a later input."""
    above = np.triu(influence.numpy(), 1)
    check(not above.any(), "With a causal mask, entries above the diagonal must be exactly 0.")


def check_no_graph(gradient):
    """vjp finds no gradient for x."""
    check(
        not gradient.any(),
        "The influence must have no graph, but a gradient flows back to x.",
        help=".detach() returns a tensor without its graph.",
    )


def check_nothing_left(gradients, where):
    """influence adds nothing to any .grad."""
    check(
        not any(gradient.any() for gradient in gradients if gradient is not None),
        f"influence changes the .grad of {where}.",
        help="torch.autograd.grad returns gradients without adding them to any .grad.",
    )


def compare_lookup(result, expected, situation, tolerance=None):
    """value and weights are right. expected: out and weights of an attention with one query."""
    results = unpack(result, 2, "soft_lookup")
    for name, actual, (wanted,) in zip(("value", "weights"), results, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})", tolerance=tolerance)


def compare_hard_lookup(result, values, winners, temperature):
    """All weight is on the winners, split equally."""
    weights = torch.zeros(1, len(values), dtype=values.dtype)
    weights[:, winners] = 1 / len(winners)
    value = values[winners].mean(dim=0, keepdim=True)
    situation = "temperature 0" if temperature == 0 else "a tiny temperature"
    compare_lookup(result, (value, weights), situation)
