"""The hidden tests of assignment 5: the public tests' properties on other shapes and seeds."""

import math
from functools import partial, reduce

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_number
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_refused, sliced, transposed
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import gradients_left, new_module, stored_gradients, vjp
from tests.a5_attention.battery_cases import CASES
from tests.a5_attention.cases import (
    as_tensors,
    as_view,
    check_attention_refuses,
    check_backward_refuses,
    check_quiet,
    compare_attention,
    compare_backward,
    compare_forward,
    compare_gradients,
    compare_outputs,
    compare_passes,
    draw_attention,
    draw_dout,
    draw_like,
    draw_mask,
    draw_upstream,
    softmax_or_zeros,
    with_hidden_key,
)
from tests.a5_attention.lab_cases import (
    check_same_numbers,
    check_two_ahead,
    head_weights,
)
from tests.a5_attention.module_cases import (
    HEAD_AXES,
    TIME_AXES,
    check_heads_refuse,
    check_heads_speed,
    check_initial_parameters,
    compare_heads,
    compare_heads_passes,
    cut,
    draw_heads,
    draw_heads_upstream,
    draw_inputs,
    new_heads,
    one_plain_head,
    paste,
)
from tests.a5_attention.property_cases import (
    LARGE_GAPS,
    check_no_graph,
    check_nothing_above_the_diagonal,
    check_nothing_left,
    check_variance,
    check_variances_are_drawn,
    compare_gap,
    compare_hard_lookup,
    compare_influence,
    compare_lookup,
    compare_saturation,
    doubles,
    draw_generators,
    draw_order,
    new_generator,
    right_gap,
    two_scores,
)

SMALL = 1e-6
# Leading axes, and t_q, t_k, d_k and d_v.
SIZES = (
    ((), (2, 6, 3, 4)),
    ((3,), (5, 2, 4, 1)),
    ((2, 4), (3, 5, 6, 2)),
    ((1, 3, 2), (4, 3, 2, 5)),
)
# Leading axes, and the shape of a mask for two queries and four keys.
MASKS = (
    ((3,), (2, 4)),
    ((3,), (3, 1, 4)),
    ((2, 3), (2, 1, 1, 4)),
    ((2, 3), (3, 2, 4)),
    ((), (1, 4)),
)


def draw_fully_masked(rng):
    """q, k, v and a mask that masks some queries fully."""
    q, k, v, mask = draw_attention(rng, (3,), (4, 6, 2, 3), (3, 4, 6))
    mask[1, 3] = mask[2] = False
    return q, k, v, mask


def draw_masked(rng, masks):
    """Situations and inputs, drawn one at a time. masks: leading axes, and a shape."""
    for front, shape in masks:
        inputs = draw_attention(rng, front, (2, 4, 3, 5), shape)
        yield "another mask", inputs
        yield "huge numbers at a hidden key", with_hidden_key(*inputs)
    yield "fully masked queries", draw_fully_masked(rng)


# Exercise 5.1


@weight(1)
@number("5.1")
def test_softmax_is_right_for_other_axes_and_large_numbers(student, rng, oracle):
    """Along any axis of other shapes, with numbers near 1e4 and -1e4, and without warnings."""
    softmax = student.attention_numpy.softmax
    for shape, axis in (
        ((4, 2, 5), (1,)),
        ((3, 6), (0,)),
        ((2, 5, 1, 3), (-3,)),
        ((7,), (-1,)),
        ((3, 4), ()),
    ):
        normal = rng.normal(scale=3, size=shape)
        for x in (normal, normal + 1e4, normal - 1e4):
            expected = oracle.softmax(x, *axis)
            assert_close(softmax(x, *axis), expected, what="out (another shape)")
            check_quiet(softmax, x, *axis)
    x = rng.normal(scale=4e3, size=(5, 3))
    assert_close(softmax(x, 0), oracle.softmax(x, 0), what="out (numbers far apart)")
    check_quiet(softmax, x, 0)


@weight(1)
@number("5.1")
def test_softmax_is_right_for_other_entries_of_minus_infinity(student, rng, oracle):
    """-inf gets exactly 0, also where all entries along the axis are -inf, without warnings."""
    x = rng.normal(scale=2, size=(4, 3, 5))
    x[rng.uniform(size=x.shape) < 0.3] = -np.inf
    x[:, 1] = 0.5  # so that no row is empty but this one
    x[2, :, 3] = -np.inf
    for entries, axis in ((x, 1), (x.astype(np.float32), -2)):
        out = student.attention_numpy.softmax(entries, axis)
        expected = softmax_or_zeros(oracle, entries, axis)
        assert_close(out, expected, what="out (with entries of -inf)")
        check(not out[np.isneginf(entries)].any(), "Entries of -inf must get exactly 0.")
        check_quiet(student.attention_numpy.softmax, entries, axis)


@weight(1)
@number("5.1")
def test_softmax_backward_is_right_for_other_axes(student, rng, oracle):
    """dx along any axis of other shapes, with entries of -inf and rows of zeros."""
    backward = student.attention_numpy.softmax_backward
    for shape, axis in (((4, 2, 5), (1,)), ((3, 6), (0,)), ((2, 5, 1, 3), (-3,)), ((3, 4), ())):
        x, dout = rng.normal(scale=2, size=shape), rng.normal(size=shape)
        dx = backward(dout, oracle.softmax(x, *axis), *axis)
        assert_close(dx, oracle.softmax_gradient(x, dout, *axis), what="dx (another shape)")
    x[1, 2:] = x[0, 1] = -np.inf
    out, dout = oracle.softmax(x, -1), rng.normal(size=(3, 4))
    expected = oracle.softmax_gradient(x, dout, -1)
    out[2] = expected[2] = 0
    assert_close(backward(dout, out, -1), expected, what="dx (entries of -inf)")


@weight(1)
@number("5.1")
def test_softmax_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs don't change, and calls are independent."""
    code, x = student.attention_numpy, rng.normal(size=(3, 5, 2)).astype(np.float32)
    out = code.softmax(sliced(x), 0)
    assert_close(out, oracle.softmax(x, 0), what="out (float32, a view)")
    check_quiet(code.softmax, sliced(x), 0)
    dout = draw_like(rng, x)
    dx = code.softmax_backward(transposed(dout), transposed(oracle.softmax(x, 1)), 1)
    assert_close(dx, oracle.softmax_gradient(x, dout, 1), what="dx (float32, views)")
    check_promises(student, rng, CASES["5.1"])
    check_refused("an axis that x doesn't have", code.softmax, x, -4)
    check_refused("a dout of the wrong shape", code.softmax_backward, x[:, :1], x, 1)


# Exercise 5.2


@weight(1)
@number("5.2")
def test_attention_loops_is_right_for_other_sizes(student, rng, oracle):
    """out and weights of one sequence: other sizes, large scores, float32 and views."""
    loops = student.attention_numpy.attention_loops
    sizes = ((4, 3, 6, 5), (2, 7, 1, 3), (1, 1, 5, 2))
    cases = [("other sizes", draw_attention(rng, (), size)) for size in sizes]
    q, k, v = draw_attention(rng, (), (2, 5, 3, 4))
    cases.append(("large scores", (q, -800 * k, v)))
    q, k, v = draw_attention(rng, (), (3, 2, 4, 5), dtype="float32")
    cases.append(("float32, views", (transposed(q), sliced(k), transposed(v))))
    for situation, inputs in cases:
        outputs = unpack(loops(*inputs), 2, "attention_loops")
        compare_outputs(outputs, oracle.attention(*inputs), situation)
    check_refused("arrays of three axes", loops, *draw_attention(rng, (3,), (2, 4, 3, 5)))


@weight(1)
@number("5.2")
def test_attention_forward_is_right_for_other_sizes(student, rng, oracle):
    """out and weights without a mask, with up to three leading axes, also for large scores."""
    forward = student.attention_numpy.attention_forward
    for front, sizes in SIZES:
        inputs = draw_attention(rng, front, sizes)
        compare_forward(forward(*inputs), oracle, inputs, "other sizes")
    q, k, v = draw_attention(rng, (2,), (3, 4, 5, 2))
    compare_forward(forward(900 * q, k, v), oracle, (900 * q, k, v), "large scores")


@weight(1)
@number("5.2")
def test_attention_forward_is_right_for_other_masks(student, rng, oracle):
    """Masks that broadcast, fully masked queries and hidden keys."""
    for situation, inputs in draw_masked(rng, MASKS):
        result = student.attention_numpy.attention_forward(*inputs)
        compare_forward(result, oracle, inputs, situation)


@weight(1)
@number("5.2")
def test_attention_backward_is_right_for_other_sizes(student, rng, oracle):
    """dq, dk and dv without a mask, with up to three leading axes."""
    code = student.attention_numpy
    for front, sizes in (*SIZES[:3], ((1, 3, 2), (1, 3, 2, 5))):
        q, k, v = draw_attention(rng, front, sizes)
        dout, expected = draw_dout(rng, oracle, (q, k, v))
        _, _, cache = unpack(code.attention_forward(q, k, v), 3, "attention_forward")
        compare_backward(code.attention_backward(dout, cache), expected, "other sizes")


@weight(1)
@number("5.2")
def test_attention_backward_is_right_for_other_masks(student, rng, oracle):
    """dq, dk and dv with masks that broadcast, fully masked queries and hidden keys."""
    code = student.attention_numpy
    masks = (((3,), (2, 4)), ((3,), (3, 1, 4)), ((2, 3), (3, 2, 4)))
    for situation, inputs in draw_masked(rng, masks):
        dout, expected = draw_dout(rng, oracle, inputs)
        _, _, cache = unpack(code.attention_forward(*inputs), 3, "attention_forward")
        compare_backward(code.attention_backward(dout, cache), expected, situation)


@weight(1)
@number("5.2")
def test_attention_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs and caches stay; bad shapes are refused."""
    code = student.attention_numpy
    inputs = draw_attention(rng, (3,), (4, 7, 5, 6), (3, 1, 7), dtype="float32")
    compare_forward(code.attention_forward(*inputs), oracle, inputs, "float32")
    dout, expected = draw_dout(rng, oracle, inputs)
    _, _, cache = unpack(code.attention_forward(*inputs), 3, "attention_forward")
    compare_backward(code.attention_backward(dout, cache), expected, "float32")
    q, k, v = draw_attention(rng, (2, 3), (4, 5, 2, 3))
    views = transposed(q), sliced(k), transposed(v)
    compare_forward(code.attention_forward(*views), oracle, views, "views")
    dout, expected = draw_dout(rng, oracle, views)
    _, _, cache = unpack(code.attention_forward(*views), 3, "attention_forward")
    compare_backward(code.attention_backward(sliced(dout), cache), expected, "views")
    check_promises(student, rng, CASES["5.2"])
    q, k, v = draw_attention(rng, (3,), (2, 6, 5, 4))
    check_attention_refuses(code.attention_forward, q, k, v)
    _, _, cache = unpack(code.attention_forward(q, k, v), 3, "attention_forward")
    check_backward_refuses(code.attention_backward, rng.normal(size=(3, 2, 4)), cache)


# Exercise 5.3


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_is_right_for_other_sizes(student, rng, oracle):
    """out and weights without a mask, with up to three leading axes, also for large scores."""
    attend = student.attention.scaled_dot_product_attention
    for front, sizes in SIZES:
        inputs = as_tensors(draw_attention(rng, front, sizes))
        compare_attention(attend(*inputs), oracle, inputs, "other sizes")
    q, k, v = as_tensors(draw_attention(rng, (2,), (3, 4, 5, 2)))
    compare_attention(attend(900 * q, k, v), oracle, (900 * q, k, v), "large scores")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_is_right_for_other_masks(student, rng, oracle):
    """Masks that broadcast, fully masked queries and hidden keys."""
    for situation, arrays in draw_masked(rng, MASKS):
        inputs = as_tensors(arrays)
        result = student.attention.scaled_dot_product_attention(*inputs)
        compare_attention(result, oracle, inputs, situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_has_other_gradients_right(student, rng, oracle):
    """Through out and weights, with and without masks, and for fully masked queries."""
    attend = student.attention.scaled_dot_product_attention
    inputs = as_tensors(draw_attention(rng, (2, 3), (4, 5, 2, 6)))
    upstream, expected = draw_upstream(rng, oracle, inputs)
    compare_passes(vjp(attend, inputs, upstream), expected, "no mask")
    masked = draw_fully_masked(rng)
    for inputs in (as_tensors(masked), as_tensors(with_hidden_key(*masked))):
        upstream, expected = draw_upstream(rng, oracle, inputs)
        found = vjp(attend, inputs, upstream)
        compare_passes(found, expected, "fully masked queries")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_is_right_with_other_dropouts(student, rng, oracle):
    """Dropout acts on the weights before the values, not on those returned; right gradients."""
    attend = student.attention.scaled_dot_product_attention
    for front, sizes, shape, p in (
        ((2, 3), (4, 5, 2, 6), (2, 1, 1, 5), 0.4),
        ((), (3, 7, 5, 2), None, 0.1),
    ):
        inputs = as_tensors(draw_attention(rng, front, sizes, shape))
        inputs = inputs if shape else [*inputs, None]
        keep = torch.from_numpy(rng.uniform(size=(*front, *sizes[:2])) > p)
        dropout = student.attention.FixedDropout(keep, p)
        upstream, (expected, expected_gradients) = draw_upstream(rng, oracle, inputs, (keep, p))
        outputs = unpack(attend(*inputs, dropout), 2, "scaled_dot_product_attention")
        compare_outputs(outputs, expected, "with dropout")
        _, gradients, _ = vjp(attend, (*inputs, dropout), upstream)
        compare_gradients(gradients[:3], expected_gradients, "with dropout")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_keeps_other_types_and_inputs(student, rng, oracle):
    """float32 and views on other shapes; inputs and results stay; bad shapes are refused."""
    attend = student.attention.scaled_dot_product_attention
    inputs = as_tensors(draw_attention(rng, (3,), (4, 7, 5, 6), (3, 1, 7), dtype="float32"))
    compare_attention(attend(*inputs), oracle, inputs, "float32")
    upstream, expected = draw_upstream(rng, oracle, inputs)
    compare_passes(vjp(attend, inputs, upstream), expected, "float32")
    q, k, v = draw_attention(rng, (2, 3), (4, 5, 2, 3))
    views = as_tensors((transposed(q), sliced(k), transposed(v)))
    compare_attention(attend(*views), oracle, views, "views")
    check_promises(student, rng, CASES["5.3"])
    q, k, v = as_tensors(draw_attention(rng, (3,), (2, 6, 5, 4)))
    check_attention_refuses(attend, q, k, v)


# Exercise 5.4


@weight(1)
@number("5.4")
def test_causal_mask_is_right_for_other_lengths(student, rng, oracle):
    """A boolean tensor, True on the diagonal and below it."""
    for n in (1, 4, int(rng.integers(5, 20))):
        result = student.attention.causal_mask(n)
        assert_close(result, oracle.causal_mask(n), what="the causal mask")
    check_refused("an empty sequence", student.attention.causal_mask, 0)


@weight(1)
@number("5.4")
def test_padding_mask_is_right_for_other_lengths(student, rng):
    """(batch, 1, n), boolean, True below each length, from 0 to n."""
    for batch, n in ((1, 6), (4, 1), (5, 3), (3, 5)):
        few = [0, n, *(int(length) for length in rng.integers(0, n + 1, size=batch))][-batch:]
        more = torch.tensor([n, *few, 0], dtype=torch.int32)
        for lengths in (torch.tensor(few), as_view(sliced, more)):
            mask = student.attention.padding_mask(lengths, n)
            expected = torch.arange(n) < lengths[:, None, None]
            assert_close(mask, expected, "the padding mask", axes=("sequence", "query", "key"))
    check_refused("a length above n", student.attention.padding_mask, torch.tensor([1, 4]), 3)


@weight(1)
@number("5.4")
def test_combine_masks_is_right_for_other_masks(student, rng):
    """True where each is True, with broadcasting; None is skipped."""
    combine = student.attention.combine_masks
    square, whole, keys, queries = (
        torch.from_numpy(rng.uniform(size=shape) < 0.6)
        for shape in ((5, 3), (2, 5, 3), (2, 1, 3), (5, 1))
    )
    for masks in (
        (whole, queries, None),
        (queries, keys),
        (None, square, whole, keys),
        (square, torch.roll(square, 1)),
        (square,),
        (as_view(sliced, whole), as_view(transposed, square)),
    ):
        expected = reduce(torch.logical_and, (mask for mask in masks if mask is not None))
        assert_close(combine(*masks), expected, what="the combined mask")
    check(combine(None, None, None) is None, "Without any mask, the result must be None.")
    check_promises(student, rng, CASES["5.4"])
    check_refused("a mask of floats", combine, keys.float(), square)
    check_refused("masks that don't broadcast together", combine, keys, square[:, :2])


# Exercise 5.5


@weight(1)
@number("5.5")
def test_heads_are_split_and_merged_right_for_other_sizes(student, rng):
    """Each head gets its features of every position, and merging concatenates them."""
    split, merge = student.attention.split_heads, student.attention.merge_heads
    for n, t, num_heads, d_head in ((3, 4, 2, 5), (1, 6, 5, 2), (2, 1, 3, 4)):
        for view in (np.asarray, transposed):
            x = torch.from_numpy(view(rng.normal(size=(n, t, num_heads * d_head))))
            expected = cut(x, num_heads)
            assert_close(split(x, num_heads), expected, what="out of split_heads", axes=HEAD_AXES)
            upstream = draw_like(rng, expected)
            _, gradients, _ = vjp(split, (x, num_heads), [upstream])
            assert_close(gradients[0], paste(upstream), what="the gradient of x", axes=TIME_AXES)
            x = torch.from_numpy(view(rng.normal(size=(n, num_heads, t, d_head))))
            expected = paste(x)
            assert_close(merge(x), expected, what="out of merge_heads", axes=TIME_AXES)
            upstream = draw_like(rng, expected)
            _, gradients, _ = vjp(merge, (x,), [upstream])
            assert_close(gradients[0], cut(upstream, num_heads), what="the gradient of the heads")
    merged = torch.ones(2, 1, 12)
    check_refused("heads that don't divide the features", split, merged, 5)
    check_refused("an x of three axes", merge, merged)


@weight(1)
@number("5.5")
def test_multi_head_attention_is_pytorchs_for_other_sizes(student, rng, oracle):
    """Self- and cross-attention with other numbers of heads, with and without biases."""
    for sizes, d_model, num_heads, bias in (
        ((3, 2, 4), 10, 2, True),
        ((2, 5, 3), 12, 4, True),
        ((2, 3, 6), 5, 1, False),
        ((1, 4, 2), 6, 6, True),
    ):
        heads = draw_heads(rng, d_model, num_heads, bias)
        cross = draw_inputs(rng, sizes, d_model)
        for situation, inputs in (("cross-attention", cross), ("self-attention", cross[:1] * 3)):
            result = new_heads(student.attention, *heads)(*inputs)
            compare_heads(result, oracle, heads, inputs, situation=situation)
    for d_model, num_heads, bias in ((36, 3, True), (44, 4, False)):
        module = new_module(student.attention, "MultiHeadAttention", d_model, num_heads, bias)
        check_initial_parameters(module, d_model, bias)


@weight(1)
@number("5.5")
def test_multi_head_attention_has_pytorchs_gradients_for_other_sizes(student, rng, oracle):
    """The gradients of the three inputs and of all parameters, with and without biases."""
    for (n, t_q, t_k), d_model, num_heads, bias in (
        ((3, 2, 4), 10, 2, True),
        ((2, 5, 3), 8, 4, False),
        ((2, 3, 6), 5, 1, True),
    ):
        heads = draw_heads(rng, d_model, num_heads, bias)
        inputs = draw_inputs(rng, (n, t_q, t_k), d_model)
        upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
        found = vjp(new_heads(student.attention, *heads), inputs, upstream)
        compare_heads_passes(found, expected, "no mask")
        inputs.append(torch.from_numpy(draw_mask(rng, (n, 1, t_k))))
        upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
        found = vjp(new_heads(student.attention, *heads), inputs, upstream)
        compare_heads_passes(found, expected, "a mask")


@weight(1)
@number("5.5")
def test_multi_head_attention_is_right_for_other_masks(student, rng, oracle):
    """Masks that hold for every head, and fully masked queries."""
    heads, inputs = draw_heads(rng, 8, 4), draw_inputs(rng, (4, 3, 6), 8)
    shapes = ((3, 6), (4, 3, 6), (4, 1, 6), (1, 3, 6))
    masks = [("another mask", torch.from_numpy(draw_mask(rng, shape))) for shape in shapes]
    last, masked = torch.from_numpy(draw_mask(rng, (4, 3, 6))), "fully masked queries"
    last[1, 0] = last[3] = False
    for situation, mask in (*masks, (masked, last)):
        result = new_heads(student.attention, *heads)(*inputs, mask)
        compare_heads(result, oracle, heads, (*inputs, mask), situation=situation)
    upstream, expected = draw_heads_upstream(rng, oracle, heads, (*inputs, last))
    found = vjp(new_heads(student.attention, *heads), (*inputs, last), upstream)
    compare_heads_passes(found, expected, masked)


@weight(1)
@number("5.5")
def test_multi_head_attention_keeps_other_types_and_inputs(student, rng, oracle):
    """float32 and views on other shapes; inputs and results stay; bad shapes are refused."""
    heads = draw_heads(rng, 9, 3, dtype=torch.float32)
    inputs = [as_view(sliced, x.float()) for x in draw_inputs(rng, (2, 5, 4), 9)]
    result = new_heads(student.attention, *heads)(*inputs)
    compare_heads(result, oracle, heads, inputs, situation="float32, views")
    upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
    found = vjp(new_heads(student.attention, *heads), inputs, upstream)
    compare_heads_passes(found, expected, "float32, views")
    check_promises(student, rng, CASES["5.5"])
    heads, first = draw_heads(rng, 9, 3), draw_inputs(rng, (2, 5, 4), 9)
    check_heads_refuse(new_heads(student.attention, *heads), *first)


@weight(1)
@number("5.5")
@tags("timing")
def test_multi_head_attention_is_about_as_fast_as_pytorchs_on_other_numbers(student, rng, oracle):
    """Forward and backward take at most twice as long as nn.MultiheadAttention's."""
    check_heads_speed(student, oracle, rng)


# Exercise 5.6


@weight(1)
@number("5.6")
def test_score_variance_is_right_for_other_d_k(student, rng):
    """About d_k without the scale and about 1 with it, within 7 standard errors."""
    for d_k in (2, 7, 25, 64):
        for scaled in (True, False):
            result = student.attention.score_variance(d_k, scaled, new_generator(rng))
            check_variance(result, d_k, scaled)
    result = student.attention.score_variance(12, True, new_generator(rng), 30_000)
    check_variance(result, 12, True, samples=30_000)


@weight(1)
@number("5.6")
def test_score_variance_draws_other_numbers_of_samples(student, rng):
    """Equal generators give equal results, and few samples rough ones."""
    function = student.attention.score_variance
    calls = [(5, True, generator, 6) for generator in draw_generators(rng)]
    check_variances_are_drawn(call_each(function, calls), samples=6)
    check_refused("a d_k below 1", function, -3, False, np.random.default_rng(3))


@weight(1)
@number("5.6")
def test_saturation_follows_its_closed_forms_for_other_scores(student, rng):
    """Equal scores, two scores with a gap, and scores with large gaps."""
    for t in (3, 8, 50):
        scores = doubles([[[-7.0], [0.25]]]).expand(1, 2, t)
        expected = [doubles([[x] * 2]) for x in (1 / t, math.sqrt(t - 1) / t)]
        compare_saturation(student.attention.saturation(scores), expected, "equal scores")
    scores, expected = two_scores([0.0, *rng.uniform(0, 4, size=5)])
    compare_saturation(student.attention.saturation(scores), expected, "two scores")
    # A norm from squares that nearly cancel may be off by 1e-8 here, but must not be NaN.
    scores, expected = two_scores([0.0, *LARGE_GAPS, *rng.uniform(15, 800, size=20)])
    compare_saturation(student.attention.saturation(scores), expected, "two scores", 1e-6)


@weight(1)
@number("5.6")
def test_saturation_is_the_norm_of_the_jacobian_for_other_scores(student, rng, oracle):
    """Largest weight and Jacobian norm are PyTorch's on other shapes, in float32 too."""
    saturation = student.attention.saturation
    for shape in ((7,), (2, 5), (3, 1, 4), (2, 2, 2, 3)):
        scores = torch.from_numpy(rng.normal(scale=1.5, size=shape))
        expected = oracle.saturation(scores)
        compare_saturation(saturation(scores), expected, "other scores", tolerance=1e-7)
    scores = torch.from_numpy(sliced(rng.normal(size=(4, 3)).astype(np.float32)))
    compare_saturation(saturation(scores), oracle.saturation(scores), "float32, a view")
    check_promises(student, rng, CASES["5.6"])


# Exercise 5.7


@weight(1)
@number("5.7")
def test_permutation_gap_is_right_for_other_sequences(student, rng, oracle):
    """0 up to rounding without a mask; PyTorch's with one, which isn't reordered."""
    gap_of, attend = (
        student.attention.permutation_gap,
        student.attention.scaled_dot_product_attention,
    )
    for n, t, d in ((3, 4, 5), (1, 6, 2), (2, 3, 4)):
        x, order = torch.from_numpy(rng.normal(size=(n, t, d))), draw_order(rng, t)
        causal = oracle.causal_mask(t)
        other = causal & torch.from_numpy(draw_mask(rng, (n, 1, t)))
        for situation, mask in (
            ("no mask", ()),
            ("a causal mask", (causal,)),
            ("another mask", (other,)),
        ):
            gap = gap_of(attend, x, order, *mask)
            compare_gap(gap, right_gap(oracle.attention, x, order, *mask), situation)
        gap = gap_of(attend, as_view(sliced, x), as_view(sliced, order), causal)
        compare_gap(gap, right_gap(oracle.attention, x, order, causal), "views")
    check_refused("an order that isn't a permutation", gap_of, attend, x, torch.tensor([2, 0, 0]))


@weight(1)
@number("5.7")
def test_influence_is_right_for_other_sequences(student, rng, oracle):
    """The Jacobian norms are PyTorch's, with and without masks, in float32 too."""
    influence, attend = student.attention.influence, student.attention.scaled_dot_product_attention
    for t, d in ((5, 2), (2, 4), (3, 3)):
        x, causal = torch.from_numpy(rng.normal(size=(t, d))), oracle.causal_mask(t)
        compare_influence(influence(attend, x), oracle.influence(x), "no mask")
        result = influence(attend, x, causal)
        compare_influence(result, oracle.influence(x, causal), "a causal mask")
        check_nothing_above_the_diagonal(influence(attend, x.float(), causal))
    mask = torch.from_numpy(draw_mask(rng, (3, 3)))
    mask[0] = False
    for situation, arguments in (
        ("a fully masked query", (x, mask)),
        ("float32", (x.float(),)),
        ("a view", (as_view(sliced, x), mask)),
    ):
        compare_influence(influence(attend, *arguments), oracle.influence(*arguments), situation)
    upstream = torch.from_numpy(rng.normal(size=(3, 3)))
    outputs, gradients, _ = vjp(influence, (attend, x, mask), [upstream])
    compare_influence(outputs[0], oracle.influence(x, mask), "an x that requires gradients")
    check_no_graph(gradients[1])
    check_nothing_left(gradients_left(influence, attend, x, mask)[1:2], "x")


@weight(1)
@number("5.7")
def test_permutation_gap_and_influence_take_other_multi_head_attentions(student, rng, oracle):
    """Both are PyTorch's for a module; no .grad changes; one plain head equals attention."""
    code, situation = student.attention, "a MultiHeadAttention"
    x = torch.from_numpy(rng.normal(size=(3, 3, 8)))
    heads, order = draw_heads(rng, 8, 4, bias=False), draw_order(rng, 3)
    module = new_heads(code, *heads)
    for mask in ((), (oracle.causal_mask(3),)):
        gap = code.permutation_gap(module, x, order, *mask)
        expected = right_gap(partial(oracle.multi_head_attention, *heads), x, order, *mask)
        compare_gap(gap, expected, situation)
        result = code.influence(module, x[0], *mask)
        compare_influence(result, oracle.influence_of_heads(*heads, x[0], *mask), situation)
    check_nothing_left(stored_gradients(module).values(), "the parameters")
    attend = code.scaled_dot_product_attention
    for shape, mask in (((3, 2, 5), ()), ((2, 5, 4), (oracle.causal_mask(5),))):
        module = new_heads(code, *one_plain_head(shape[2]))
        x = torch.from_numpy(rng.normal(size=shape))
        expected, _ = oracle.attention(x, x, x, *mask)
        for function, name in ((module, "one head"), (attend, "scaled_dot_product_attention")):
            out, _ = unpack(function(x, x, x, *mask), 2, name)
            assert_close(out, expected, f"out (one head is attention, {name})", TIME_AXES)


@weight(1)
@number("5.7")
def test_soft_lookup_is_right_for_other_temperatures(student, rng, oracle):
    """value and weights are PyTorch's with scale 1 / temperature, from cold to hot."""
    lookup = student.attention.soft_lookup
    for t, d, d_v, temperature in ((3, 5, 4, 0.5), (6, 2, 3, 1.7), (2, 4, 1, 2.0), (4, 3, 5, 40.0)):
        inputs = [torch.from_numpy(rng.normal(size=size)) for size in ((d,), (t, d), (t, d_v))]
        views = [inputs[0], *(as_view(transposed, x) for x in inputs[1:])]
        for situation, (query, keys, values) in (
            ("another temperature", inputs),
            ("float32", [x.float() for x in inputs]),
            ("views", views),
        ):
            expected = oracle.attention(query[None], keys, values, scale=1 / temperature)
            compare_lookup(lookup(query, keys, values, temperature), expected, situation)
        expected = inputs[2].mean(dim=0, keepdim=True), doubles([[1 / t] * t])
        compare_lookup(lookup(*inputs, 1e12), expected, "a huge temperature")
    check_promises(student, rng, CASES["5.7"])
    check_refused("a negative temperature", lookup, *inputs, -1e-3)


@weight(1)
@number("5.7")
def test_soft_lookup_becomes_hard_for_other_keys(student, rng):
    """At temperature 0 and near it, all weight is on the best keys, split equally."""
    values = torch.from_numpy(rng.normal(size=(5, 2)))
    query = doubles([2.0, -1.0, 1.0])
    tied = doubles([[3, 1, 0], [1, 0, 1], [2, -1, 0], [0, -5, 0], [-4, 0, 2]])
    order = rng.permutation(5)
    moved_to = {int(before): after for after, before in enumerate(order)}
    near = tied - doubles([[0, 0, 0], [0, 0, 0], [1e-9, 0, 0], [0, 0, 1e-9], [0, 0, 0]])
    for keys, winners, temperatures in (
        (tied, (0, 2, 3), (0.0, 1e-6, 1e-2)),
        (near, (0,), (0.0, 1e-12)),
        (-near * 50, (4,), (0, 1e-6)),
    ):
        winners = sorted(moved_to[before] for before in winners)
        for temperature in temperatures:
            result = student.attention.soft_lookup(query, keys[order], values, temperature)
            compare_hard_lookup(result, values, winners, temperature)


# The lab


@weight(1)
@number("5.8")
def test_q1_the_query_asks_for_the_exact_time(lab):
    """Lab, question 1: the score is largest at 14.3, and falls off on both sides."""
    query = array_answer(lab, "q1_query", (2,))
    check(query[1] > 0, "With q1_query the scores have no maximum.", value=query)
    time = query[0] / query[1]
    check(abs(time - 14.3) < SMALL, "q1_query asks for another time.", f"{time:g}", value=query)


@weight(1)
@number("5.8")
def test_q3_only_the_ends_of_a_line_can_be_found(lab):
    """Lab, question 3: a score that is linear in the hour is largest at an end."""
    check_same_numbers(lab, "q3_hours", {0, 23})


@weight(1)
@number("5.8")
def test_q5_the_score_of_a_query_with_itself_is_right(lab):
    """Lab, question 5: 256 squares with mean 1, divided by the square root of 256."""
    check_number(lab, "q5_score", math.sqrt(256), tolerance=0.5)


@weight(1)
@number("5.9")
def test_q7_the_last_two_positions_attend_uniformly(lab):
    """Lab, question 7: equal scores where there is no position i + 2."""
    scores = array_answer(lab, "q7_scores", (6, 6))
    check_two_ahead(scores, range(4))
    for position in (4, 5):
        uniform = np.abs(head_weights(scores)[position] - 1 / 6).max() < SMALL
        check(uniform, f"Position {position} doesn't attend uniformly to all six.", value=scores)


@weight(1)
@number("5.9")
def test_q9_the_permutation_equivariant_heads_are_found(lab):
    """Lab, question 9: the heads whose queries and keys don't contain the position."""
    check_same_numbers(lab, "q9_heads", {0, 2})


@weight(2)
@number("5.9")
def test_q10_the_means_of_pairs_are_counted(lab):
    """Lab, question 10: a mean doesn't show which of the two words was first."""
    means = {tuple(np.eye(12)[a] + np.eye(12)[b]) for a in range(12) for b in range(12)}
    check_number(lab, "q10_outputs", len(means))
