"""The public tests of assignment 5: attention in NumPy and in PyTorch."""

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
    EXAMPLES,
    WORKED,
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
from tests.a5_attention.lab_cases import check_two_ahead
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

# Leading axes, and t_q, t_k, d_k and d_v.
SIZES = (
    ((), (3, 5, 4, 2)),
    ((2,), (4, 3, 5, 6)),
    ((3, 2), (5, 4, 1, 3)),
    ((2, 1, 3), (1, 4, 3, 2)),
    ((1,), (2, 1, 3, 1)),
)


def draw_fully_masked(rng):
    """Situations and inputs with fully masked queries."""
    q, k, v, mask = draw_attention(rng, (2,), (3, 5, 4, 2), (2, 3, 5))
    mask[0, 1] = mask[1, 2] = False
    return (
        ("fully masked queries", (q, k, v, mask)),
        ("huge numbers at a hidden key", with_hidden_key(q, k, v, mask)),
        ("a mask that is False everywhere", (q, k, v, np.zeros((3, 5), dtype=bool))),
    )


# Exercise 5.1


@weight(1)
@number("5.1")
def test_softmax_sums_to_one_along_the_axis(student, rng, oracle):
    """out is PyTorch's along any axis, by default the last one, also for sizes of 1."""
    softmax = student.attention_numpy.softmax
    x = rng.normal(scale=2, size=(2, 3, 4))
    assert_close(softmax(x), oracle.softmax(x), what="out (no axis given, shape (2, 3, 4))")
    check_quiet(softmax, x)
    cases = [(x, axis) for axis in (0, 1, 2, -1, -2, -3)]
    cases += [(rng.normal(size=shape), 0) for shape in ((5,), (3, 1), (1, 1, 1), (2, 1, 2, 3))]
    for x, axis in cases:
        what = f"out (axis {axis}, shape {x.shape})"
        assert_close(softmax(x, axis), oracle.softmax(x, axis), what=what)
        check_quiet(softmax, x, axis)


@weight(1)
@number("5.1")
def test_softmax_takes_large_and_small_numbers(student, rng, oracle):
    """Numbers near 1e4 and -1e4 neither overflow nor warn; adding a constant changes nothing."""
    normal = rng.normal(scale=2, size=(3, 4))
    spread = rng.permuted(np.array([[-1e4, -3e3, 0, 1e4], [-1e4, -1e4 + 1, 2, 3]]), axis=1)
    # One row far below another: the maximum to subtract is that of the row.
    rows = np.array([[1e4, 1e4 + 1], [0, 1], [-1e4, -1e4 + 2]])
    for situation, x, axis in (
        ("numbers near 10000", normal + 1e4, 0),
        ("numbers near -10000", normal - 1e4, 0),
        ("numbers from -1e4 to 1e4", spread, -1),
        ("rows", rows, 1),
        ("float32", (100 * normal).astype(np.float32), 0),
    ):
        out = student.attention_numpy.softmax(x, axis)
        assert_close(out, oracle.softmax(x, axis), what=f"out ({situation})")
        check_quiet(student.attention_numpy.softmax, x, axis)


@weight(1)
@number("5.1")
def test_softmax_is_zero_at_entries_of_minus_infinity(student, rng, oracle):
    """-inf gets exactly 0; where all entries along the axis are -inf, all get 0; no warnings."""
    softmax = student.attention_numpy.softmax
    x = rng.normal(scale=2, size=(3, 4))
    x[0, 2] = x[2, :3] = -np.inf
    assert_close(softmax(x, 1), oracle.softmax(x, 1), what="out (some entries of -inf)")
    check_quiet(softmax, x, 1)
    x[1] = -np.inf
    for entries, axis in ((x, 1), (x.T.astype(np.float32), 0)):
        out, expected = softmax(entries, axis), softmax_or_zeros(oracle, entries, axis)
        assert_close(out, expected, what="out (with entries of -inf)")
        check(not out[np.isneginf(entries)].any(), "Entries of -inf must get exactly 0.")
        check_quiet(softmax, entries, axis)


@weight(1)
@number("5.1")
def test_softmax_backward_gives_the_gradient_along_the_axis(student, rng, oracle):
    """dx is PyTorch's for a random dout, along any axis; zeros where out is all zeros."""
    backward = student.attention_numpy.softmax_backward
    x = rng.normal(scale=2, size=(2, 3, 4))
    dout = rng.normal(size=(2, 3, 4))
    dx, expected = backward(dout, oracle.softmax(x)), oracle.softmax_gradient(x, dout)
    assert_close(dx, expected, what="dx (no axis given, shape (2, 3, 4))")
    for axis in (0, 1, 2, -2):
        dout = rng.normal(size=(2, 3, 4))
        dx = backward(dout, oracle.softmax(x, axis), axis)
        expected = oracle.softmax_gradient(x, dout, axis)
        assert_close(dx, expected, what=f"dx (axis {axis}, shape (2, 3, 4))")
    vector, dout = rng.normal(size=(2, 5))
    dx = backward(dout, oracle.softmax(vector, 0), 0)
    assert_close(dx, oracle.softmax_gradient(vector, dout, 0), what="dx (axis 0, shape (5,))")
    x[0, :2, 1] = x[1, 1:, 3] = -np.inf
    out, dout = oracle.softmax(x, 1), rng.normal(size=(2, 3, 4))
    expected = oracle.softmax_gradient(x, dout, 1)
    assert_close(backward(dout, out, 1), expected, what="dx (entries of -inf)")
    dout = rng.normal(size=(2, 3, 4))
    expected = oracle.softmax_gradient(x, dout, 1)
    out[1, :, 0] = expected[1, :, 0] = 0
    assert_close(backward(dout, out, 1), expected, what="dx (a row of zeros)")


@weight(1)
@number("5.1")
def test_softmax_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """float32 stays float32; views work; calls are independent; a bad axis or shape is refused."""
    code, x = student.attention_numpy, rng.normal(size=(2, 4, 3)).astype(np.float32)
    out = oracle.softmax(x, 1)
    assert_close(code.softmax(transposed(x), 1), out, what="out (float32, a view)")
    check_quiet(code.softmax, transposed(x), 1)
    dout = draw_like(rng, x)
    dx = code.softmax_backward(sliced(dout), sliced(out), 1)
    assert_close(dx, oracle.softmax_gradient(x, dout, 1), what="dx (float32, views)")

    check_promises(student, rng, CASES["5.1"])
    first = rng.normal(size=(3, 4, 2))
    check_refused("an axis that x doesn't have", code.softmax, first, 3)
    check_refused("an empty array", code.softmax, first[:, :0], 1)
    check_refused("a dout of the wrong shape", code.softmax_backward, first[:1], first, 1)
    check_refused("an axis that out doesn't have", code.softmax_backward, first, first, -4)


# Exercise 5.2


@weight(1)
@number("5.2")
def test_attention_loops_solves_cat_eats_fish(student):
    """The handout's example: weights 0.3818, 0.2960, 0.3222 and the output 0.5429, 0.4571."""
    (q, k, v), expected = EXAMPLES["cat eats fish"]
    outputs = unpack(student.attention_numpy.attention_loops(q, k, v), 2, "attention_loops")
    compare_outputs(outputs, expected, "cat eats fish", tolerance=WORKED)


@weight(1)
@number("5.2")
def test_attention_loops_attends_from_every_query_to_every_key(student, rng, oracle):
    """out and weights are PyTorch's for one sequence: any sizes, large scores, float32, views."""
    loops = student.attention_numpy.attention_loops
    cases = {
        "t_q {}, t_k {}, d_k {}, d_v {}".format(*sizes): draw_attention(rng, (), sizes)
        for sizes in ((3, 5, 4, 2), (4, 2, 3, 5), (1, 3, 2, 1), (2, 1, 1, 3))
    }
    q, k, v = draw_attention(rng, (), (3, 4, 2, 5))
    cases["large scores"] = 1000 * q, k, v
    small = draw_attention(rng, (), (2, 3, 5, 4), dtype="float32")
    cases["float32, views"] = sliced(small[0]), transposed(small[1]), sliced(small[2])
    for situation, inputs in cases.items():
        outputs = unpack(loops(*inputs), 2, "attention_loops")
        compare_outputs(outputs, oracle.attention(*inputs), situation)
    check_refused("arrays of three axes", loops, *draw_attention(rng, (2,), (3, 5, 4, 2)))
    check_refused("a different number of values than keys", loops, q, k, v[1:])


@weight(1)
@number("5.2")
def test_attention_forward_solves_the_six_words(student):
    """The handout's example of six words and one query, and cat eats fish again."""
    for situation, ((q, k, v), expected) in EXAMPLES.items():
        result = student.attention_numpy.attention_forward(q, k, v)
        *outputs, _ = unpack(result, 3, "attention_forward")
        compare_outputs(outputs, expected, situation, tolerance=WORKED)


@weight(1)
@number("5.2")
def test_attention_forward_takes_many_sequences_at_once(student, rng, oracle):
    """out and weights are PyTorch's with up to three leading axes, also for large scores."""
    forward = student.attention_numpy.attention_forward
    for front, sizes in SIZES:
        inputs = draw_attention(rng, front, sizes)
        compare_forward(forward(*inputs), oracle, inputs, f"{len(front)} leading axes")
    q, k, v = draw_attention(rng, (2,), (3, 4, 5, 2))
    compare_forward(forward(1000 * q, k, v), oracle, (1000 * q, k, v), "large scores")


@weight(2)
@number("5.2")
def test_attention_forward_attends_only_where_the_mask_is_true(student, rng, oracle):
    """Masks of (t_q, t_k), of all axes, with axes of length 1; weights are 0 where it is False."""
    forward = student.attention_numpy.attention_forward
    for front, shape in (
        ((), (3, 5)),
        ((2,), (3, 5)),
        ((2,), (2, 3, 5)),
        ((2,), (2, 1, 5)),
        ((2,), (5,)),
        ((2, 4), (2, 1, 3, 5)),
    ):
        inputs = draw_attention(rng, front, (3, 5, 4, 2), shape)
        situation = f"{len(front)} leading axes, a mask of {shape}"
        compare_forward(forward(*inputs), oracle, inputs, situation)
    inputs = (*draw_attention(rng, (2,), (3, 4, 2, 5)), np.ones((3, 4), dtype=bool))
    compare_forward(forward(*inputs), oracle, inputs, "a mask that is True everywhere")


@weight(1)
@number("5.2")
def test_attention_forward_gives_zeros_to_fully_masked_queries(student, rng, oracle):
    """A row that is all False gets zeros, never NaN; hidden keys and values change nothing."""
    for situation, inputs in draw_fully_masked(rng):
        result = student.attention_numpy.attention_forward(*inputs)
        compare_forward(result, oracle, inputs, situation)


@weight(2)
@number("5.2")
def test_attention_backward_gives_the_three_gradients(student, rng, oracle):
    """dq, dk and dv are PyTorch's for a random dout, without a mask; zeros with a single key."""
    code = student.attention_numpy
    for front, sizes in (
        ((), (3, 5, 4, 2)),
        ((2,), (4, 3, 5, 6)),
        ((3, 2), (1, 4, 2, 3)),
        ((1,), (5, 2, 1, 1)),
    ):
        q, k, v = draw_attention(rng, front, sizes)
        dout, expected = draw_dout(rng, oracle, (q, k, v))
        _, _, cache = unpack(code.attention_forward(q, k, v), 3, "attention_forward")
        result = code.attention_backward(dout, cache)
        compare_backward(result, expected, f"{len(front)} leading axes")
    q, k, v = draw_attention(rng, (2,), (3, 1, 4, 5))
    dout = rng.normal(size=(2, 3, 5))
    _, _, cache = unpack(code.attention_forward(q, k, v), 3, "attention_forward")
    expected = (np.zeros((2, 3, 4)), np.zeros((2, 1, 4)), dout.sum(axis=1, keepdims=True))
    compare_backward(code.attention_backward(dout, cache), expected, "a single key")


@weight(2)
@number("5.2")
def test_attention_backward_gives_zeros_where_the_mask_is_false(student, rng, oracle):
    """The three gradients with masks, fully masked queries and hidden keys."""
    code = student.attention_numpy
    for front, shape in (((2,), (3, 5)), ((2,), (2, 1, 5)), ((2, 4), (2, 1, 3, 5))):
        q, k, v, mask = draw_attention(rng, front, (3, 5, 4, 2), shape)
        dout, expected = draw_dout(rng, oracle, (q, k, v, mask))
        _, _, cache = unpack(code.attention_forward(q, k, v, mask), 3, "attention_forward")
        result = code.attention_backward(dout, cache)
        compare_backward(result, expected, f"a mask of {shape}")
    for situation, inputs in draw_fully_masked(rng):
        dout, expected = draw_dout(rng, oracle, inputs)
        _, _, cache = unpack(code.attention_forward(*inputs), 3, "attention_forward")
        compare_backward(code.attention_backward(dout, cache), expected, situation)


@weight(1)
@number("5.2")
def test_attention_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """float32, views, unchanged inputs, independent caches, and a ValueError for bad shapes."""
    code = student.attention_numpy
    inputs = draw_attention(rng, (2,), (3, 5, 4, 2), (3, 5), dtype="float32")
    compare_forward(code.attention_forward(*inputs), oracle, inputs, "float32")
    dout, expected = draw_dout(rng, oracle, inputs)
    _, _, cache = unpack(code.attention_forward(*inputs), 3, "attention_forward")
    compare_backward(code.attention_backward(dout, cache), expected, "float32")

    q, k, v = draw_attention(rng, (2,), (3, 5, 4, 2))
    views = sliced(q), transposed(k), sliced(v)
    compare_forward(code.attention_forward(*views), oracle, views, "views")
    dout, expected = draw_dout(rng, oracle, views)
    _, _, cache = unpack(code.attention_forward(*views), 3, "attention_forward")
    compare_backward(code.attention_backward(transposed(dout), cache), expected, "views")

    check_promises(student, rng, CASES["5.2"])
    q, k, v = draw_attention(rng, (2,), (3, 5, 4, 6))
    check_attention_refuses(code.attention_forward, q, k, v)
    _, _, cache = unpack(code.attention_forward(q, k, v), 3, "attention_forward")
    check_backward_refuses(code.attention_backward, rng.normal(size=(2, 3, 6)), cache)


# Exercise 5.3


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_solves_both_examples(student):
    """The handout's six words and cat eats fish, now with tensors."""
    for situation, (inputs, expected) in EXAMPLES.items():
        result = student.attention.scaled_dot_product_attention(*as_tensors(inputs))
        outputs = unpack(result, 2, "scaled_dot_product_attention")
        compare_outputs(outputs, as_tensors(expected), situation, tolerance=WORKED)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_takes_any_leading_axes(student, rng, oracle):
    """out and weights are PyTorch's with no, one, two and three leading axes."""
    for front, sizes in SIZES:
        inputs = as_tensors(draw_attention(rng, front, sizes))
        result = student.attention.scaled_dot_product_attention(*inputs)
        compare_attention(result, oracle, inputs, f"{len(front)} leading axes")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_attends_only_where_the_mask_is_true(student, rng, oracle):
    """Masks of (t_q, t_k), of all axes, with axes of length 1; weights are 0 where it is False."""
    for front, shape in (
        ((), (3, 5)),
        ((2,), (3, 5)),
        ((2,), (2, 3, 5)),
        ((2,), (2, 1, 5)),
        ((2, 4), (2, 1, 3, 5)),
    ):
        inputs = as_tensors(draw_attention(rng, front, (3, 5, 4, 2), shape))
        result = student.attention.scaled_dot_product_attention(*inputs)
        situation = f"{len(front)} leading axes, a mask of {shape}"
        compare_attention(result, oracle, inputs, situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_has_gradients_through_out_and_weights(student, rng, oracle):
    """The gradients of q, k and v are PyTorch's for random gradients of out and weights."""
    for situation, front, sizes, shape in (
        ("no mask", (2,), (4, 3, 5, 6), None),
        ("a mask of (2, 1, 3, 5)", (2, 4), (3, 5, 4, 2), (2, 1, 3, 5)),
    ):
        inputs = as_tensors(draw_attention(rng, front, sizes, shape))
        upstream, expected = draw_upstream(rng, oracle, inputs)
        found = vjp(student.attention.scaled_dot_product_attention, inputs, upstream)
        compare_passes(found, expected, situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_never_gives_nan_to_fully_masked_queries(student, rng, oracle):
    """A row that is all False: zeros in out, weights and gradients; hidden keys change nothing."""
    attend = student.attention.scaled_dot_product_attention
    for situation, arrays in draw_fully_masked(rng):
        inputs = as_tensors(arrays)
        compare_attention(attend(*inputs), oracle, inputs, situation)
        upstream, expected = draw_upstream(rng, oracle, inputs)
        compare_passes(vjp(attend, inputs, upstream), expected, situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_drops_weights_but_returns_all(student, rng, oracle):
    """dropout acts between softmax and values; the returned weights are from before dropout."""
    attend = student.attention.scaled_dot_product_attention
    for front, sizes, shape, p in (
        ((2,), (3, 5, 4, 2), None, 0.25),
        ((), (4, 6, 3, 5), (4, 6), 0.5),
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
def test_scaled_dot_product_attention_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """float32, views, unchanged inputs, independent calls, and a ValueError for bad shapes."""
    attend = student.attention.scaled_dot_product_attention
    inputs = as_tensors(draw_attention(rng, (2,), (3, 5, 4, 2), (3, 5), dtype="float32"))
    compare_attention(attend(*inputs), oracle, inputs, "float32")
    upstream, expected = draw_upstream(rng, oracle, inputs)
    compare_passes(vjp(attend, inputs, upstream), expected, "float32")
    q, k, v = draw_attention(rng, (2,), (3, 5, 4, 2))
    views = as_tensors((sliced(q), transposed(k), sliced(v)))
    compare_attention(attend(*views), oracle, views, "views")

    check_promises(student, rng, CASES["5.3"])
    q, k, v = as_tensors(draw_attention(rng, (2,), (3, 5, 4, 6)))
    check_attention_refuses(attend, q, k, v)


# Exercise 5.4


@weight(1)
@number("5.4")
def test_causal_mask_lets_a_position_attend_to_itself_and_back(student, oracle):
    """mask[i, j] is boolean, True where j <= i; an empty sequence is refused."""
    expected = torch.tensor([[True, False, False], [True, True, False], [True, True, True]])
    assert_close(student.attention.causal_mask(3), expected, what="the causal mask")
    for n in (1, 2, 7):
        result = student.attention.causal_mask(n)
        assert_close(result, oracle.causal_mask(n), what="the causal mask", axes=("query", "key"))
    for n in (0, -2):
        check_refused("an empty sequence", student.attention.causal_mask, n)


@weight(1)
@number("5.4")
def test_padding_mask_hides_positions_beyond_the_length(student, rng):
    """(batch, 1, n), boolean, True below the length; lengths 0 and n; bad lengths are refused."""
    for lengths, n in (
        (torch.tensor([2, 4, 0, 1, 3]), 4),
        (torch.tensor([3]), 3),
        (torch.tensor([1, 5], dtype=torch.int32), 6),
        (as_view(sliced, torch.tensor([1, 0, 2])), 2),
        (torch.from_numpy(rng.integers(0, 30, size=9)), 30),
    ):
        mask = student.attention.padding_mask(lengths, n)
        expected = torch.arange(n) < lengths[:, None, None]
        assert_close(mask, expected, "the padding mask", axes=("sequence", "query", "key"))
    function, lengths = student.attention.padding_mask, torch.tensor([2, 3])
    for situation, args in (
        ("a length above n", (lengths, 2)),
        ("a negative length", (torch.tensor([2, -1]), 3)),
        ("lengths of floats", (lengths.double(), 3)),
        ("lengths of int16", (lengths.short(), 3)),
        ("an n of 0", (0 * lengths, 0)),
        ("lengths of two axes", (lengths[None], 3)),
        ("no lengths", (lengths[:0], 3)),
        ("lengths that are a list", ([2, 3], 3)),
    ):
        check_refused(situation, function, *args)


@weight(1)
@number("5.4")
def test_combine_masks_allows_what_all_masks_allow(student, rng):
    """True where each is True, with broadcasting; None is skipped; without any mask, None."""
    combine = student.attention.combine_masks
    square, whole, keys = (
        torch.from_numpy(rng.uniform(size=shape) < 0.6) for shape in ((4, 4), (3, 4, 4), (3, 1, 4))
    )
    for masks in (
        (square, keys),
        (keys, square),
        (whole, square, keys),
        (whole, ~whole),
        (None, square),
        (keys, None, square, None),
        (whole,),
        (as_view(transposed, square), as_view(sliced, keys)),
    ):
        expected = reduce(torch.logical_and, (mask for mask in masks if mask is not None))
        assert_close(combine(*masks), expected, what="the combined mask")
    for masks in ((), (None,), (None, None)):
        check(combine(*masks) is None, "Without any mask, the result must be None.")
    check_promises(student, rng, CASES["5.4"])
    check_refused("a mask of integers", combine, square, keys.long())
    check_refused("a mask that is a list", combine, square, [[True] * 4])
    check_refused("masks that don't broadcast together", combine, square, keys[..., :3])


# Exercise 5.5


@weight(1)
@number("5.5")
def test_split_heads_gives_each_head_its_features(student, rng):
    """Head h gets the d_head features from h * d_head of every position; bad sizes are refused."""
    split = student.attention.split_heads
    for n, t, num_heads, d_head in ((2, 3, 4, 5), (3, 2, 1, 4), (1, 4, 3, 1)):
        x = torch.from_numpy(transposed(rng.normal(size=(n, t, num_heads * d_head))))
        expected = cut(x, num_heads)
        assert_close(split(x, num_heads), expected, what="out of split_heads", axes=HEAD_AXES)
        upstream = draw_like(rng, expected)
        _, gradients, _ = vjp(split, (x, num_heads), [upstream])
        assert_close(gradients[0], paste(upstream), what="the gradient of x", axes=TIME_AXES)
    check_refused("heads that don't divide the features", split, torch.ones(2, 3, 8), 3)
    check_refused("no heads", split, torch.ones(2, 3, 8), 0)
    check_refused("an x of two axes", split, torch.ones(3, 8), 2)
    check_refused("an empty sequence", split, torch.ones(2, 0, 8), 2)


@weight(1)
@number("5.5")
def test_merge_heads_concatenates_the_heads(student, rng):
    """The features of head 0 first, then those of head 1, and so on: undoes split_heads."""
    merge, split = student.attention.merge_heads, student.attention.split_heads
    for n, t, num_heads, d_head in ((2, 3, 4, 5), (3, 2, 1, 4), (1, 4, 3, 1)):
        x = torch.from_numpy(rng.normal(size=(n, num_heads, t, d_head)))
        expected = paste(x)
        assert_close(merge(x), expected, what="out of merge_heads", axes=TIME_AXES)
        upstream = draw_like(rng, expected)
        _, gradients, _ = vjp(merge, (x,), [upstream])
        assert_close(gradients[0], cut(upstream, num_heads), what="the gradient of the heads")
    x = torch.from_numpy(rng.normal(size=(2, 3, 8))).float()
    assert_close(merge(split(x, 4)), x, what="x after split_heads and merge_heads")
    check_refused("an x of three axes", merge, torch.ones(2, 3, 8))
    check_refused("empty heads", merge, torch.ones(2, 4, 0, 3))


@weight(1)
@number("5.5")
def test_multi_head_attention_has_the_parameters_of_the_docstring(student):
    """Names and shapes, the initialization of nn.Linear, and no biases if bias is False."""
    for d_model, num_heads, bias in ((48, 4, True), (40, 2, False)):
        module = new_module(student.attention, "MultiHeadAttention", d_model, num_heads, bias)
        check_initial_parameters(module, d_model, bias)
    new = student.attention.MultiHeadAttention
    for sizes in ((6, 4), (6, 0), (0, 1), (6, -2)):
        check_refused("heads that don't divide the features", new, *sizes)


@weight(1)
@number("5.5")
def test_multi_head_attention_is_pytorchs_on_one_sequence(student, rng, oracle):
    """Self-attention: out and each head's weights are those of nn.MultiheadAttention."""
    for n, t, d_model, num_heads, bias in (
        (2, 3, 8, 2, True),
        (3, 5, 6, 3, True),
        (1, 4, 6, 1, True),
        (2, 1, 4, 4, True),
        (2, 3, 6, 2, False),
    ):
        heads = draw_heads(rng, d_model, num_heads, bias)
        x, *_ = draw_inputs(rng, (n, t, t), d_model)
        result = new_heads(student.attention, *heads)(x, x, x)
        situation = f"{num_heads} heads of {d_model // num_heads}, bias {bias}"
        compare_heads(result, oracle, heads, (x, x, x), situation=situation)


@weight(1)
@number("5.5")
def test_multi_head_attention_attends_from_one_sequence_to_another(student, rng, oracle):
    """Cross-attention: query, key and value all differ, and query has another length."""
    for n, t_q, t_k in ((2, 3, 5), (3, 4, 1), (1, 1, 4)):
        heads, inputs = draw_heads(rng, 6, 2), draw_inputs(rng, (n, t_q, t_k), 6)
        result = new_heads(student.attention, *heads)(*inputs)
        compare_heads(result, oracle, heads, inputs, situation=f"t_q {t_q}, t_k {t_k}")


@weight(2)
@number("5.5")
def test_multi_head_attention_has_pytorchs_gradients(student, rng, oracle):
    """The gradients of the three inputs and of all parameters, through out and the weights."""
    heads, inputs = draw_heads(rng, 6, 3), draw_inputs(rng, (2, 4, 5), 6)
    upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
    found = vjp(new_heads(student.attention, *heads), inputs, upstream)
    compare_heads_passes(found, expected, "no mask")
    heads, inputs = draw_heads(rng, 8, 2, bias=False), draw_inputs(rng, (3, 2, 4), 8)
    upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
    found = vjp(new_heads(student.attention, *heads), inputs, upstream)
    compare_heads_passes(found, expected, "no bias")
    inputs.append(torch.from_numpy(draw_mask(rng, (3, 2, 4))))
    upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
    found = vjp(new_heads(student.attention, *heads), inputs, upstream)
    compare_heads_passes(found, expected, "a mask")


@weight(2)
@number("5.5")
def test_multi_head_attention_applies_the_mask_to_every_head(student, rng, oracle):
    """Masks of (t_q, t_k), (n, t_q, t_k) and (n, 1, t_k), with as many heads as sequences."""
    heads, inputs = draw_heads(rng, 6, 3), draw_inputs(rng, (3, 4, 5), 6)
    for shape in ((4, 5), (3, 4, 5), (3, 1, 5), (1, 4, 5), (1, 5)):
        masked = (*inputs, torch.from_numpy(draw_mask(rng, shape)))
        result = new_heads(student.attention, *heads)(*masked)
        compare_heads(result, oracle, heads, masked, situation=f"a mask of {shape}")
    x, *_ = draw_inputs(rng, (2, 4, 4), 6)
    masked = x, x, x, oracle.causal_mask(4)
    result = new_heads(student.attention, *heads)(*masked)
    compare_heads(result, oracle, heads, masked, situation="a causal mask")


@weight(1)
@number("5.5")
def test_multi_head_attention_gives_the_bias_to_fully_masked_queries(student, rng, oracle):
    """A fully masked query gets out.bias, weights of zero and no NaN in gradients."""
    situation = "fully masked queries"
    for bias in (True, False):
        heads, inputs = draw_heads(rng, 6, 2, bias), draw_inputs(rng, (3, 4, 5), 6)
        mask = torch.from_numpy(draw_mask(rng, (3, 4, 5)))
        mask[0, 2] = mask[2] = False
        inputs.append(mask)
        result = new_heads(student.attention, *heads)(*inputs)
        compare_heads(result, oracle, heads, inputs, situation=situation)
        upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
        found = vjp(new_heads(student.attention, *heads), inputs, upstream)
        compare_heads_passes(found, expected, situation)


@weight(1)
@number("5.5")
def test_multi_head_attention_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """float32, views, unchanged inputs, independent calls, and a ValueError for bad shapes."""
    heads = draw_heads(rng, 6, 2, dtype=torch.float32)
    mask = torch.from_numpy(draw_mask(rng, (4, 5)))
    inputs = (*draw_inputs(rng, (3, 4, 5), 6, torch.float32), mask)
    result = new_heads(student.attention, *heads)(*inputs)
    compare_heads(result, oracle, heads, inputs, situation="float32")
    upstream, expected = draw_heads_upstream(rng, oracle, heads, inputs)
    found = vjp(new_heads(student.attention, *heads), inputs, upstream)
    compare_heads_passes(found, expected, "float32")

    heads, first = draw_heads(rng, 6, 2), draw_inputs(rng, (3, 4, 5), 6)
    views = [as_view(transposed, x) for x in first]
    result = new_heads(student.attention, *heads)(*views)
    compare_heads(result, oracle, heads, views, situation="views")

    check_promises(student, rng, CASES["5.5"])
    check_heads_refuse(new_heads(student.attention, *heads), *first)


@weight(1)
@number("5.5")
@tags("timing")
def test_multi_head_attention_is_about_as_fast_as_pytorchs(student, rng, oracle):
    """Forward and backward take at most twice as long as nn.MultiheadAttention's.

    The docstring says 1.5 times; the rest is for a busy machine.
    """
    check_heads_speed(student, oracle, rng)


# Exercise 5.6


@weight(1)
@number("5.6")
def test_score_variance_grows_with_d_k_unless_scores_are_scaled(student, rng):
    """About d_k without the scale and about 1 with it, within 7 standard errors.

    The docstring gives the standard error. Right code fails with a probability below 1e-8.
    """
    for d_k in (1, 4, 16, 100):
        for scaled in (False, True):
            result = student.attention.score_variance(d_k, scaled, new_generator(rng))
            check_variance(result, d_k, scaled)
    result = student.attention.score_variance(9, False, new_generator(rng), 40_000)
    check_variance(result, 9, False, samples=40_000)


@weight(1)
@number("5.6")
def test_score_variance_draws_all_samples_from_the_generator(student, rng):
    """Equal generators give equal results; few samples rough ones; bad arguments are refused."""
    function = student.attention.score_variance
    calls = [(16, True, generator, 8) for generator in draw_generators(rng)]
    check_variances_are_drawn(call_each(function, calls), samples=8)
    check_refused("a d_k of 0", function, 0, True, np.random.default_rng(1))
    check_refused("a single sample", function, 4, True, np.random.default_rng(1), 1)


@weight(1)
@number("5.6")
def test_saturation_follows_its_closed_forms(student, rng):
    """Equal scores: 1 / t and sqrt(t - 1) / t. Two scores: s and 2 s (1 - s), s = sigmoid(gap)."""
    for t in (1, 2, 5, 100):
        scores = doubles([[0.0], [3.5], [-20.0]]).expand(3, t)
        expected = [doubles([x] * 3) for x in (1 / t, math.sqrt(t - 1) / t)]
        compare_saturation(student.attention.saturation(scores), expected, f"{t} equal scores")
    scores, expected = two_scores([0.0, 0.5, 1.0, 2.0, 4.0, *rng.uniform(0.2, 4, size=3).tolist()])
    compare_saturation(student.attention.saturation(scores), expected, "two scores")
    # A norm from squares that nearly cancel may be off by 1e-8 here, but must not be NaN.
    scores, expected = two_scores([0.0, *LARGE_GAPS, 37.0, 60.0, 800.0, 1e4])
    compare_saturation(student.attention.saturation(scores), expected, "two scores", 1e-6)


@weight(2)
@number("5.6")
def test_saturation_is_the_norm_of_the_jacobian_for_each_row(student, rng, oracle):
    """Largest weight and Jacobian norm are PyTorch's for any leading axes, in float32 too."""
    saturation = student.attention.saturation
    for shape in ((5,), (3, 4), (2, 3, 6)):
        scores = torch.from_numpy(rng.normal(scale=1.5, size=shape))
        expected = oracle.saturation(scores)
        compare_saturation(saturation(scores), expected, f"scores of {shape}", tolerance=1e-7)
    check_promises(student, rng, CASES["5.6"])
    scores = torch.from_numpy(transposed(rng.normal(size=(3, 4)).astype(np.float32)))
    compare_saturation(saturation(scores), oracle.saturation(scores), "float32, a view")
    check_refused("scores without an axis", saturation, scores[0, 0])
    check_refused("empty scores", saturation, scores[:, :0])


# Exercise 5.7


@weight(1)
@number("5.7")
def test_permutation_gap_is_zero_without_a_mask(student, rng, oracle):
    """Reordering a sequence reorders the output of self-attention, and changes nothing else."""
    code, attend = student.attention, student.attention.scaled_dot_product_attention
    for n, t, d in ((2, 5, 3), (1, 4, 6), (3, 3, 1)):
        x, order = torch.from_numpy(rng.normal(size=(n, t, d))), draw_order(rng, t)
        gap = code.permutation_gap(attend, x, order)
        compare_gap(gap, right_gap(oracle.attention, x, order), "no mask")
    x, order = x.float(), draw_order(rng, 3)
    gap = code.permutation_gap(attend, x, order)
    compare_gap(gap, right_gap(oracle.attention, x, order), "float32", torch.float32)
    # A constant 0 would pass so far. With a mask the gap isn't 0.
    x, order = torch.from_numpy(rng.normal(size=(1, 4, 3))), draw_order(rng, 4)
    mask = oracle.causal_mask(4)
    gap = code.permutation_gap(attend, x, order, mask)
    compare_gap(gap, right_gap(oracle.attention, x, order, mask), "a causal mask")


@weight(1)
@number("5.7")
def test_permutation_gap_is_the_largest_difference_with_a_mask(student, rng, oracle):
    """The sequence is reordered, the mask isn't: the gap is PyTorch's."""
    code, attend = student.attention, student.attention.scaled_dot_product_attention
    for n, t, d in ((2, 5, 3), (3, 3, 2)):
        x, order = torch.from_numpy(rng.normal(size=(n, t, d))), draw_order(rng, t)
        causal, each = oracle.causal_mask(t), torch.from_numpy(draw_mask(rng, (n, t, t)))
        for situation, mask in (("a causal mask", causal), ("a mask for each sequence", each)):
            gap = code.permutation_gap(attend, x, order, mask)
            compare_gap(gap, right_gap(oracle.attention, x, order, mask), situation)
    expected = right_gap(oracle.attention, x.float(), order, causal)
    gap = code.permutation_gap(attend, x.float(), order, causal)
    compare_gap(gap, expected, "float32", torch.float32)
    gap = code.permutation_gap(attend, as_view(transposed, x), as_view(sliced, order), causal)
    compare_gap(gap, right_gap(oracle.attention, x, order, causal), "views")
    check_refused("an x of two axes", code.permutation_gap, attend, x[0], order)
    for bad in ([0, 1, 1], [0, 1], [1, 2, 3], [0.0, 1.0, 2.0]):
        bad = torch.tensor(bad)
        check_refused("an order that isn't a permutation", code.permutation_gap, attend, x, bad)


@weight(2)
@number("5.7")
def test_influence_shows_which_output_depends_on_which_input(student, rng, oracle):
    """The Jacobian norms are PyTorch's, without a graph; 0 above the diagonal of a causal mask."""
    influence, attend = student.attention.influence, student.attention.scaled_dot_product_attention
    for t, d in ((4, 3), (3, 5), (1, 2)):
        x, causal = torch.from_numpy(rng.normal(size=(t, d))), oracle.causal_mask(t)
        result = influence(attend, x)
        compare_influence(result, oracle.influence(x), f"no mask, x of ({t}, {d})")
        result = influence(attend, x, causal)
        compare_influence(result, oracle.influence(x, causal), f"a causal mask, x of ({t}, {d})")
        check_nothing_above_the_diagonal(result)
    original = torch.from_numpy(rng.normal(size=(4, 3)))
    mask = torch.from_numpy(draw_mask(rng, (4, 4)))
    mask[2] = False
    for situation, x in (
        ("a fully masked query", original),
        ("float32", original.float()),
        ("a view", as_view(transposed, original)),
    ):
        compare_influence(influence(attend, x, mask), oracle.influence(x, mask), situation)

    x, upstream = original, torch.from_numpy(rng.normal(size=(4, 4)))
    outputs, gradients, _ = vjp(influence, (attend, x, mask), [upstream])
    compare_influence(outputs[0], oracle.influence(x, mask), "an x that requires gradients")
    check_no_graph(gradients[1])
    check_nothing_left(gradients_left(influence, attend, x, mask)[1:2], "x")
    check_refused("an x of three axes", influence, attend, x[None])


@weight(1)
@number("5.7")
def test_permutation_gap_and_influence_take_a_multi_head_attention(student, rng, oracle):
    """Both are PyTorch's for a module as well; the .grad of its parameters stays unchanged.

    And one head whose layers are identities gives what scaled_dot_product_attention gives.
    """
    code, situation = student.attention, "a MultiHeadAttention"
    x = torch.from_numpy(rng.normal(size=(2, 4, 6)))
    heads, order = draw_heads(rng, 6, 2), draw_order(rng, 4)
    module = new_heads(code, *heads)
    for mask in ((), (oracle.causal_mask(4),)):
        gap = code.permutation_gap(module, x, order, *mask)
        expected = right_gap(partial(oracle.multi_head_attention, *heads), x, order, *mask)
        compare_gap(gap, expected, situation)
        result = code.influence(module, x[0], *mask)
        compare_influence(result, oracle.influence_of_heads(*heads, x[0], *mask), situation)
    check_nothing_left(stored_gradients(module).values(), "the parameters")

    attend = code.scaled_dot_product_attention
    for n, d_model, mask in ((2, 3, ()), (3, 5, (oracle.causal_mask(4),))):
        module = new_heads(code, *one_plain_head(d_model))
        x = torch.from_numpy(rng.normal(size=(n, 4, d_model)))
        expected, _ = oracle.attention(x, x, x, *mask)
        for function, name in ((module, "one head"), (attend, "scaled_dot_product_attention")):
            out, _ = unpack(function(x, x, x, *mask), 2, name)
            assert_close(out, expected, f"out (one head is attention, {name})", TIME_AXES)


@weight(1)
@number("5.7")
def test_soft_lookup_mixes_values_by_the_temperature(student, rng, oracle):
    """value and weights are PyTorch's with scale 1 / temperature; sqrt(d) gives the six words."""
    lookup = student.attention.soft_lookup
    for t, d, d_v, temperature in ((1, 2, 1, 5.0), (3, 1, 4, 2), (5, 3, 2, 1.0), (4, 6, 3, 0.3)):
        query, keys, values = (
            torch.from_numpy(rng.normal(size=size)) for size in ((d,), (t, d), (t, d_v))
        )
        result = lookup(query, keys, values, temperature)
        expected = oracle.attention(query[None], keys, values, scale=1 / temperature)
        compare_lookup(result, expected, f"temperature {temperature}")
    (q, k, v), expected = map(as_tensors, EXAMPLES["the six words"])
    compare_lookup(lookup(q[0], k, v, 2.0), expected, "the six words", tolerance=WORKED)
    inputs = query, keys, values
    views = as_view(sliced, query), as_view(transposed, keys), as_view(sliced, values)
    for situation, (q, k, v) in (("float32", [x.float() for x in inputs]), ("views", views)):
        expected = oracle.attention(q[None], k, v, scale=1 / 0.7)
        compare_lookup(lookup(q, k, v, 0.7), expected, situation)
    check_promises(student, rng, CASES["5.7"])


@weight(1)
@number("5.7")
def test_soft_lookup_becomes_hard_as_the_temperature_goes_to_zero(student, rng):
    """Temperature 0: all weight on the best key, or split equally between keys that tie exactly."""
    query, values = doubles([1.0, 2.0]), torch.from_numpy(rng.normal(size=(4, 3)))
    clear = doubles([[2.0, 1.0], [-9.0, 3.0], [0.0, 3.0], [1.0, 1.0]])
    tied = doubles([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0], [5.0, 0.0]])
    near = doubles([[1.0, 2.0], [1.0, 2.0 + 1e-9], [0.0, 1.0], [0.0, 0.0]])
    for keys, winners, temperatures in (
        (clear, [2], (0.0, 0, 1e-6, 1e-3)),
        (100 * clear - 1000, [2], (0.0, 1e-6)),
        (tied, [0, 2, 3], (0.0, 1e-6, 1e-2)),
        (tied.float(), [0, 2, 3], (0.0, 1e-6)),
        (near, [1], (0.0,)),
    ):
        query, values = query.to(keys.dtype), values.to(keys.dtype)
        for temperature in temperatures:
            result = student.attention.soft_lookup(query, keys, values, temperature)
            compare_hard_lookup(result, values, winners, temperature)


@weight(1)
@number("5.7")
def test_soft_lookup_is_uniform_when_hot_and_refuses_bad_input(student, rng):
    """Uniform weights at a huge temperature; bad temperatures and shapes are refused."""
    query, keys, values = (torch.from_numpy(rng.normal(size=s)) for s in ((3,), (5, 3), (5, 2)))
    lookup = student.attention.soft_lookup
    expected = values.mean(dim=0, keepdim=True), doubles([[0.2] * 5])
    compare_lookup(lookup(query, keys, values, 1e12), expected, "a huge temperature")
    for situation, args in (
        ("a negative temperature", (query, keys, values, -1.0)),
        ("an infinite temperature", (query, keys, values, math.inf)),
        ("a temperature that is NaN", (query, keys, values, math.nan)),
        ("a query of the wrong length", (query[:2], keys, values, 1.0)),
        ("a different number of values than keys", (query, keys, values[:4], 1.0)),
        ("a query of two axes", (query[None], keys, values, 1.0)),
        ("no keys", (query, keys[:0], values[:0], 1.0)),
    ):
        check_refused(situation, lookup, *args)


# The lab


@weight(1)
@number("5.8")
def test_q1_the_query_finds_the_nearest_hour(lab):
    """Lab, question 1: the hour 14 has the largest score."""
    query, hours = array_answer(lab, "q1_query", (2,)), np.arange(24.0)
    best = int(np.argmax(np.stack([hours, -(hours**2) / 2], axis=1) @ query))
    check(best == 14, "q1_query finds another hour.", f"got {best}, expected 14", value=query)


@weight(2)
@number("5.8")
def test_q2_the_temperature_halves_the_weight_of_the_neighbors(lab):
    """Lab, question 2: exp(-1 / (2 T)) is 1/2."""
    check_number(lab, "q2_temperature", 0.5 / math.log(2), tolerance=0.01)


@weight(2)
@number("5.8")
def test_q4_the_variance_of_scores_of_uniform_numbers_is_right(lab):
    """Lab, question 4: 64 products, each with the squared variance of a uniform number."""
    check_number(lab, "q4_variance", 64 * ((1 - -1) ** 2 / 12) ** 2, tolerance=0.4)


@weight(1)
@number("5.9")
def test_q7_the_first_four_positions_attend_two_ahead(lab):
    """Lab, question 7: position i attends to position i + 2."""
    check_two_ahead(array_answer(lab, "q7_scores", (6, 6)), range(4))


@weight(2)
@number("5.9")
def test_q8_a_uniform_head_under_a_causal_mask_favors_the_first_word(lab):
    """Lab, question 8: the first column of uniform weights over 1, 2, ..., 6 keys."""
    column = (np.tri(6) / np.tri(6).sum(axis=1, keepdims=True))[:, 0]
    check_number(lab, "q8_total", column.sum(), tolerance=0.01)
