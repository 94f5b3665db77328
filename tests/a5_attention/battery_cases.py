"""With what the battery calls the functions of assignment 5, by exercise."""

import torch

from common.testing.battery.battery_case import Case
from tests.a5_attention.cases import as_tensors, draw_attention, draw_mask
from tests.a5_attention.module_cases import draw_heads, draw_inputs, new_heads
from tests.a5_attention.property_cases import draw_order, new_generator

SIZES = (2,), (3, 5, 4, 6), (2, 3, 5)
VIEW = {"views": "reshape, view and transpose return views; no docstring asks for a copy"}


def draw_arrays(student, rng):
    """q, k, v and a mask."""
    return draw_attention(rng, *SIZES)


def draw_tensors(student, rng):
    """q, k, v and a mask as tensors."""
    return as_tensors(draw_attention(rng, *SIZES))


def draw_pass(student, rng):
    """A gradient, and the cache of a forward pass."""
    *_, cache = student.attention_numpy.attention_forward(*draw_arrays(student, rng))
    return rng.normal(size=(2, 3, 6)), cache


def draw_masks(student, rng):
    """Masks that broadcast to the shape of the first."""
    return [torch.from_numpy(draw_mask(rng, shape)) for shape in ((3, 6, 7), (6, 7))]


def new_attention(student, rng):
    """A MultiHeadAttention of the student."""
    return new_heads(student.attention, *draw_heads(rng, 6, 3))


def draw_heads_inputs(student, rng):
    """Queries, keys and values, and a mask."""
    mask = torch.from_numpy(draw_mask(rng, (2, 4, 5)))
    return [*draw_inputs(rng, (2, 4, 5), 6), mask]


def draw_reordered(student, rng):
    """An attention, sequences, an order and a mask."""
    x, mask = torch.from_numpy(rng.normal(size=(2, 5, 6))), torch.from_numpy(draw_mask(rng, (5, 5)))
    return student.attention.scaled_dot_product_attention, x, draw_order(rng, 5), mask


def draw_influence(student, rng):
    """An attention, a sequence and a mask."""
    attend, x, _, mask = draw_reordered(student, rng)
    return attend, x[0], mask


def draw_table(student, rng):
    """A query, keys, values and a temperature."""
    return [*(torch.from_numpy(rng.normal(size=size)) for size in ((4,), (3, 4), (3, 2))), 0.7]


def with_heads(draw):
    """The same inputs, but a MultiHeadAttention in the place of the attention."""

    def draw_heads_first(student, rng):
        _, *inputs = draw(student, rng)
        return new_attention(student, rng), *inputs

    return draw_heads_first


CASES = {
    "5.1": [
        Case(
            "attention_numpy.softmax",
            "x axis",
            lambda student, rng: (rng.normal(size=(3, 4, 2)), 1),
        ),
        Case(
            "attention_numpy.softmax_backward",
            "dout out axis",
            lambda student, rng: (*rng.normal(size=(2, 3, 4, 2)), 1),
        ),
    ],
    "5.2": [
        Case(
            "attention_numpy.attention_loops",
            "q k v",
            lambda student, rng: [array[0] for array in draw_arrays(student, rng)[:3]],
        ),
        Case("attention_numpy.attention_forward", "q k v mask", draw_arrays, returns=2),
        Case("attention_numpy.attention_backward", "dout cache", draw_pass),
    ],
    "5.3": [Case("attention.scaled_dot_product_attention", "q k v mask", draw_tensors)],
    "5.4": [
        Case(
            "attention.causal_mask",
            "n",
            lambda student, rng: (int(rng.integers(3, 9)),),
            exempt={"differs": "two lengths may be equal"},
        ),
        Case(
            "attention.padding_mask",
            "lengths n",
            lambda student, rng: (torch.from_numpy(rng.integers(0, 41, size=12)), 40),
        ),
        Case("attention.combine_masks", "mask1 mask2", draw_masks),
    ],
    "5.5": [
        Case(
            "attention.split_heads",
            "x num_heads",
            lambda student, rng: (torch.from_numpy(rng.normal(size=(2, 3, 6))), 3),
            exempt=VIEW,
        ),
        Case(
            "attention.merge_heads",
            "x",
            lambda student, rng: (torch.from_numpy(rng.normal(size=(2, 3, 4, 2))),),
            exempt=VIEW,
        ),
        Case(
            "attention.MultiHeadAttention.forward",
            "query key value mask",
            draw_heads_inputs,
            new_attention,
            in_both_modes=True,
        ),
    ],
    "5.6": [
        Case(
            "attention.score_variance",
            "d_k scaled rng samples",
            lambda student, rng: (5, True, new_generator(rng), 20),
        ),
        Case(
            "attention.saturation",
            "scores",
            lambda student, rng: (torch.from_numpy(rng.normal(size=(3, 4))),),
        ),
    ],
    "5.7": [
        Case("attention.permutation_gap", "attention x order mask", draw_reordered),
        Case("attention.permutation_gap", "attention x order mask", with_heads(draw_reordered)),
        Case("attention.influence", "attention x mask", draw_influence),
        Case("attention.influence", "attention x mask", with_heads(draw_influence)),
        Case("attention.soft_lookup", "query keys values temperature", draw_table),
    ],
}
