"""Returns numbers of thousands of digits, where a float, a count or a few of them are expected.

As: attention.py
Earns: nothing
"""

LONG = 10**9000


def score_variance(d_k, scaled, rng, samples=10_000):
    return LONG if scaled else -LONG


def saturation(scores):
    return LONG, -LONG


def causal_mask(length):
    return LONG


def padding_mask(lengths, max_len):
    return [LONG] * 100_000


def soft_lookup(query, keys, values, temperature=1.0):
    return {LONG: LONG}, (LONG,)
