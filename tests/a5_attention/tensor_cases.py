"""How the tests of exercises 5.3 and 5.4 check attention in PyTorch and masks."""

import numpy as np
import torch

from common.testing.checks import check_unchanged
from common.testing.compare import assert_close, unpack
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import vjp
from tests.a5_attention.cases import (
    check_exactly_zero,
    compare_gradients,
    compare_outputs,
    draw_like,
)

# Exercise 5.3


def check_attention(student, oracle, case, situation):
    """scaled_dot_product_attention gives PyTorch's out and weights."""
    result = student.attention.scaled_dot_product_attention(*case.arguments)
    results = unpack(result, 2, "scaled_dot_product_attention")
    compare_outputs(results, oracle.attention(*case.arguments), situation)
    if case.mask is not None:
        check_exactly_zero(results[1], case.mask)


def check_attention_gradients(student, oracle, rng, case, *, situation):
    """Gradients through out and through the weights are PyTorch's, each under a random one."""
    upstream = [draw_like(rng, s, case.q) for s in (case.out_shape, case.weights_shape)]
    expected = oracle.attention_gradients(*case.inputs, *upstream, mask=case.mask)
    function = student.attention.scaled_dot_product_attention
    outputs, gradients, _ = vjp(function, case.arguments, upstream)
    results = unpack(outputs, 2, "scaled_dot_product_attention")
    compare_outputs(results, oracle.attention(*case.arguments), situation)
    compare_gradients(gradients[:3], expected, situation)


def check_dropout(student, oracle, rng, case, *, p):
    """Dropped weights meet the values, whole ones are returned, and gradients are right."""
    function, situation = student.attention.scaled_dot_product_attention, "with dropout"
    keep = torch.from_numpy(rng.uniform(size=case.weights_shape) > p)
    dropout = student.attention.FixedDropout(keep, p)
    upstream = [draw_like(rng, s, case.q) for s in (case.out_shape, case.weights_shape)]
    expected = oracle.attention(*case.inputs, case.mask, dropout=(keep, p))
    gradients = oracle.attention_gradients(
        *case.inputs, *upstream, mask=case.mask, dropout=(keep, p)
    )
    result = function(*case.inputs, case.mask, dropout)
    compare_outputs(unpack(result, 2, "scaled_dot_product_attention"), expected, situation)
    _, results, _ = vjp(function, (*case.inputs, case.mask, dropout), upstream)
    compare_gradients(results[:3], gradients, situation)


def check_attention_stays_apart(student, oracle, first, second):
    """Inputs stay as they are, and a result survives further calls."""
    function, cases = student.attention.scaled_dot_product_attention, (first, second, first)
    results = call_each(function, [case.arguments for case in cases])
    for case, result in zip(cases, results, strict=True):
        expected = oracle.attention(*case.arguments)
        result = unpack(result, 2, "scaled_dot_product_attention")
        compare_outputs(result, expected, "several calls in a row")
    check_unchanged("scaled_dot_product_attention", function, *first.arguments)


# Exercise 5.4


def check_mask(actual, expected, what):
    """The mask is of bool, and the right one. expected: nested lists, or an array."""
    assert_close(actual, torch.from_numpy(np.array(expected, dtype=bool)), what=what)


def check_padding_mask(student, lengths, n, dtype="int64", *, view=np.asarray):
    """mask[b, 0, j] tells whether j is below the length of sequence b."""
    expected = [[[j < length for j in range(n)]] for length in lengths]
    given = torch.from_numpy(view(np.array(lengths, dtype=dtype)))
    result = student.attention.padding_mask(given, n)
    assert_close(
        result,
        torch.tensor(expected),
        what="the padding mask",
        axes=("sequence", "query", "key"),
    )


def check_combined(student, *masks):
    """True where each mask is True; None is skipped."""
    expected = np.array(True)
    for mask in masks:
        expected = np.logical_and(expected, True if mask is None else mask)
    tensors = [None if mask is None else torch.from_numpy(mask) for mask in masks]
    check_mask(student.attention.combine_masks(*tensors), expected, "the combined mask")
    check_unchanged("combine_masks", student.attention.combine_masks, *tensors)
