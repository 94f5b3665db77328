"""The hidden tests of assignment 5: the public tests' properties on other shapes and seeds."""

import math

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_number
from common.testing.checks import check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_close, check
from tests.a5_attention.cases import (
    Case,
    as_view,
    check_attention_refuses,
    draw_case,
    draw_mask,
)
from tests.a5_attention.lab_cases import (
    check_evenly,
    check_same_numbers,
    check_time,
    check_two_further,
)
from tests.a5_attention.module_cases import (
    check_first_parameters,
    check_heads,
    check_heads_gradients,
    check_heads_refuse,
    check_heads_speed,
    check_heads_stay_apart,
    check_merged,
    check_one_head,
    check_split,
    draw_heads,
    draw_inputs,
)
from tests.a5_attention.numpy_cases import (
    check_backward,
    check_backward_refuses,
    check_forward,
    check_loops,
    check_softmax,
    check_softmax_gradient,
    check_softmax_of_nothing,
    check_softmax_stays_apart,
    check_stays_apart,
)
from tests.a5_attention.property_cases import (
    RUN_AWAY,
    check_gap,
    check_hard_lookup,
    check_influence,
    check_influence_leaves_nothing,
    check_lookup,
    check_nothing_above_the_diagonal,
    check_properties_of_heads,
    check_saturation,
    check_score_variance,
    check_two_scores,
    check_variance_is_drawn,
    compare_lookup,
    doubles,
    draw_order,
)
from tests.a5_attention.tensor_cases import (
    check_attention,
    check_attention_gradients,
    check_attention_stays_apart,
    check_combined,
    check_dropout,
    check_padding_mask,
)

# Exercise 5.1


@weight(1)
@number("5.1")
def test_softmax_is_right_for_other_axes_and_large_numbers(student, rng, oracle):
    """Along any axis of other shapes, with numbers near 1e4 and -1e4, and without warnings."""
    for shape, axis in (
        ((4, 2, 5), 1),
        ((3, 6), 0),
        ((2, 5, 1, 3), -3),
        ((7,), -1),
        ((3, 4), None),
    ):
        x = rng.normal(scale=3, size=shape)
        for shift in (0, 1e4, -1e4):
            check_softmax(student, oracle, x + shift, axis, situation="another shape")
    check_softmax(
        student, oracle, rng.normal(scale=4e3, size=(5, 3)), 0, situation="numbers far apart"
    )


@weight(1)
@number("5.1")
def test_softmax_is_right_for_other_entries_of_minus_infinity(student, rng, oracle):
    """-inf gets exactly 0, also where nothing else is along the axis, and without warnings."""
    x = rng.normal(scale=2, size=(4, 3, 5))
    x[rng.uniform(size=x.shape) < 0.3] = -np.inf
    x[:, 1] = 0.5  # so that no row is empty but this one
    x[2, :, 3] = -np.inf
    check_softmax_of_nothing(student, oracle, x, 1, dead=np.s_[2, :, 3])
    check_softmax_of_nothing(student, oracle, x.astype(np.float32), -2, dead=np.s_[2, :, 3])


@weight(1)
@number("5.1")
def test_softmax_backward_is_right_for_other_axes(student, rng, oracle):
    """dx along any axis of other shapes, with entries of -inf and rows of zeros."""
    for shape, axis in (((4, 2, 5), 1), ((3, 6), 0), ((2, 5, 1, 3), -3), ((3, 4), None)):
        x = rng.normal(scale=2, size=shape)
        check_softmax_gradient(student, oracle, rng, x, axis=axis, situation="another shape")
    x[1, 2:] = x[0, 1] = -np.inf
    check_softmax_gradient(
        student, oracle, rng, x, axis=-1, situation="entries of -inf", dead=np.s_[2]
    )


@weight(1)
@number("5.1")
def test_softmax_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs stay, and calls don't disturb each other."""
    x = rng.normal(size=(3, 5, 2)).astype(np.float32)
    check_softmax(student, oracle, sliced(x), 0, situation="float32, a view")
    check_softmax_gradient(
        student, oracle, rng, x, axis=1, situation="float32, views", view=transposed
    )
    check_softmax_stays_apart(student, oracle, rng, *rng.normal(size=(2, 2, 5, 3)))
    code = student.attention_numpy
    check_refused("an axis that x doesn't have", code.softmax, x, -4)
    check_refused("a dout of another shape", code.softmax_backward, x[:, :1], x, 1)


# Exercise 5.2


@weight(1)
@number("5.2")
def test_attention_loops_is_right_for_other_sizes(student, rng, oracle):
    """out and weights of one sequence: other sizes, large scores, float32 and views."""
    for sizes in ((4, 3, 6, 5), (2, 7, 1, 3), (1, 1, 5, 2)):
        check_loops(student, oracle, draw_case(rng, (), *sizes), "other sizes")
    case = draw_case(rng, (), 2, 5, 3, 4)
    check_loops(student, oracle, Case(case.q, -800 * case.k, case.v), "large scores")
    case = draw_case(rng, (), 3, 2, 4, 5, "float32").seen_as(transposed, sliced, transposed)
    check_loops(student, oracle, case, "float32, views")
    loops = student.attention_numpy.attention_loops
    check_refused("arrays of three axes", loops, *draw_case(rng, (3,), 2, 4, 3, 5).inputs)


@weight(1)
@number("5.2")
def test_attention_forward_is_right_for_other_sizes(student, rng, oracle):
    """out and weights without a mask, with up to three axes in front, also for large scores."""
    for front, sizes in (
        ((), (2, 6, 3, 4)),
        ((3,), (5, 2, 4, 1)),
        ((2, 4), (3, 5, 6, 2)),
        ((1, 3, 2), (4, 3, 2, 5)),
    ):
        check_forward(student, oracle, draw_case(rng, front, *sizes), "other sizes")
    case = draw_case(rng, (2,), 3, 4, 5, 2)
    check_forward(student, oracle, Case(900 * case.q, case.k, case.v), "large scores")


@weight(1)
@number("5.2")
def test_attention_forward_is_right_for_other_masks(student, rng, oracle):
    """Masks that broadcast, queries that may look at nothing, and keys that nobody sees."""
    for front, shape in (
        ((3,), (2, 4)),
        ((3,), (3, 1, 4)),
        ((2, 3), (2, 1, 1, 4)),
        ((2, 3), (3, 2, 4)),
        ((), (1, 4)),
    ):
        case = draw_case(rng, front, 2, 4, 3, 5, mask=draw_mask(rng, *shape))
        check_forward(student, oracle, case, "another mask")
        check_forward(student, oracle, case.blinded(), "huge numbers at a key nobody sees")
    mask = draw_mask(rng, 3, 4, 6)
    mask[1, 3] = mask[2] = False
    case = draw_case(rng, (3,), 4, 6, 2, 3, mask=mask)
    check_forward(student, oracle, case, "queries that may look at nothing")


@weight(1)
@number("5.2")
def test_attention_backward_is_right_for_other_sizes(student, rng, oracle):
    """dq, dk and dv without a mask, with up to three axes in front."""
    for front, sizes in (
        ((), (2, 6, 3, 4)),
        ((3,), (5, 2, 4, 1)),
        ((2, 4), (3, 5, 6, 2)),
        ((1, 3, 2), (1, 3, 2, 5)),
    ):
        check_backward(student, oracle, rng, draw_case(rng, front, *sizes), situation="other sizes")


@weight(1)
@number("5.2")
def test_attention_backward_is_right_for_other_masks(student, rng, oracle):
    """dq, dk and dv with masks that broadcast, blind queries, and keys that nobody sees."""
    for front, shape in (((3,), (2, 4)), ((3,), (3, 1, 4)), ((2, 3), (3, 2, 4))):
        case = draw_case(rng, front, 2, 4, 3, 5, mask=draw_mask(rng, *shape))
        check_backward(student, oracle, rng, case, situation="another mask")
        check_backward(
            student, oracle, rng, case.blinded(), situation="huge numbers at a key nobody sees"
        )
    mask = draw_mask(rng, 3, 4, 6)
    mask[1, 3] = mask[2] = False
    case = draw_case(rng, (3,), 4, 6, 2, 3, mask=mask)
    check_backward(student, oracle, rng, case, situation="queries that may look at nothing")


@weight(1)
@number("5.2")
def test_attention_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs and caches stay; bad shapes are refused."""
    case = draw_case(rng, (3,), 4, 7, 5, 6, "float32", draw_mask(rng, 3, 1, 7))
    check_forward(student, oracle, case, "float32")
    check_backward(student, oracle, rng, case, situation="float32")
    case = draw_case(rng, (2, 3), 4, 5, 2, 3).seen_as(transposed, sliced, transposed)
    check_forward(student, oracle, case, "views")
    check_backward(student, oracle, rng, case, situation="views", view=sliced)
    first, second = (draw_case(rng, (3,), 2, 4, 5, 3, mask=draw_mask(rng, 2, 4)) for _ in range(2))
    check_stays_apart(student, oracle, rng, first, second=second)
    case = draw_case(rng, (3,), 2, 6, 5, 4)
    check_attention_refuses(student.attention_numpy.attention_forward, case)
    check_backward_refuses(student, rng, case)


# Exercise 5.3


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_is_right_for_other_sizes(student, rng, oracle):
    """out and weights without a mask, with up to three axes in front, also for large scores."""
    for front, sizes in (
        ((), (2, 6, 3, 4)),
        ((3,), (5, 2, 4, 1)),
        ((2, 4), (3, 5, 6, 2)),
        ((1, 3, 2), (4, 3, 2, 5)),
    ):
        check_attention(student, oracle, draw_case(rng, front, *sizes).as_tensors(), "other sizes")
    case = draw_case(rng, (2,), 3, 4, 5, 2)
    case = Case(900 * case.q, case.k, case.v).as_tensors()
    check_attention(student, oracle, case, "large scores")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_is_right_for_other_masks(student, rng, oracle):
    """Masks that broadcast, queries that may look at nothing, and keys that nobody sees."""
    for front, shape in (
        ((3,), (2, 4)),
        ((3,), (3, 1, 4)),
        ((2, 3), (2, 1, 1, 4)),
        ((2, 3), (3, 2, 4)),
        ((), (1, 4)),
    ):
        case = draw_case(rng, front, 2, 4, 3, 5, mask=draw_mask(rng, *shape))
        check_attention(student, oracle, case.as_tensors(), "another mask")
        case = case.blinded().as_tensors()
        check_attention(student, oracle, case, "huge numbers at a key nobody sees")
    mask = draw_mask(rng, 3, 4, 6)
    mask[1, 3] = mask[2] = False
    case = draw_case(rng, (3,), 4, 6, 2, 3, mask=mask).as_tensors()
    check_attention(student, oracle, case, "queries that may look at nothing")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_has_other_gradients_right(student, rng, oracle):
    """Through out and weights, with and without masks, and where nothing is seen."""
    case = draw_case(rng, (2, 3), 4, 5, 2, 6).as_tensors()
    check_attention_gradients(student, oracle, rng, case, situation="no mask")
    mask = draw_mask(rng, 3, 4, 6)
    mask[1, 3] = mask[2] = False
    case = draw_case(rng, (3,), 4, 6, 2, 3, mask=mask)
    for one in (case, case.blinded()):
        situation = "queries that may look at nothing"
        check_attention_gradients(student, oracle, rng, one.as_tensors(), situation=situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_is_right_with_other_dropouts(student, rng, oracle):
    """Dropped weights meet the values, whole ones are returned, and gradients are right."""
    case = draw_case(rng, (2, 3), 4, 5, 2, 6, mask=draw_mask(rng, 2, 1, 1, 5)).as_tensors()
    check_dropout(student, oracle, rng, case, p=0.4)
    check_dropout(student, oracle, rng, draw_case(rng, (), 3, 7, 5, 2).as_tensors(), p=0.1)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_keeps_other_types_and_inputs(student, rng, oracle):
    """float32 and views on other shapes; inputs and results stay; bad shapes are refused."""
    case = draw_case(rng, (3,), 4, 7, 5, 6, "float32", draw_mask(rng, 3, 1, 7)).as_tensors()
    check_attention(student, oracle, case, "float32")
    check_attention_gradients(student, oracle, rng, case, situation="float32")
    case = draw_case(rng, (2, 3), 4, 5, 2, 3).seen_as(transposed, sliced, transposed)
    check_attention(student, oracle, case.as_tensors(), "views")
    cases = (draw_case(rng, (3,), 2, 4, 5, 3, mask=draw_mask(rng, 2, 4)) for _ in range(2))
    check_attention_stays_apart(student, oracle, *(case.as_tensors() for case in cases))
    case = draw_case(rng, (3,), 2, 6, 5, 4).as_tensors()
    check_attention_refuses(student.attention.scaled_dot_product_attention, case)


# Exercise 5.4


@weight(1)
@number("5.4")
def test_causal_mask_is_right_for_other_lengths(student, rng, oracle):
    """A tensor of bool, True on the diagonal and below it."""
    for n in (1, 4, int(rng.integers(5, 20))):
        result = student.attention.causal_mask(n)
        assert_close(result, oracle.causal_mask(n), what="the causal mask")
    check_refused("a sequence of no positions", student.attention.causal_mask, 0)


@weight(1)
@number("5.4")
def test_padding_mask_is_right_for_other_lengths(student, rng):
    """(batch, 1, n) of bool, True below each length, from 0 to n."""
    for batch, n in ((1, 6), (4, 1), (5, 3), (3, 5)):
        lengths = [0, n, *(int(length) for length in rng.integers(0, n + 1, size=batch))][-batch:]
        check_padding_mask(student, lengths, n)
        check_padding_mask(student, [n, *lengths, 0], n, "int32", view=sliced)
    check_refused("a length above n", student.attention.padding_mask, torch.tensor([1, 4]), 3)


@weight(1)
@number("5.4")
def test_combine_masks_is_right_for_other_masks(student, rng):
    """True where each is True, with broadcasting; None is skipped."""
    square, whole, keys, queries = (
        rng.uniform(size=shape) < 0.6 for shape in ((5, 3), (2, 5, 3), (2, 1, 3), (5, 1))
    )
    for masks in (
        (whole, queries, None),
        (queries, keys),
        (None, square, whole, keys),
        (square, np.roll(square, 1)),
        (square,),
        (sliced(whole), transposed(square)),
    ):
        check_combined(student, *masks)
    combine = student.attention.combine_masks
    check(combine(None, None, None) is None, "Where no mask is given, the result must be None.")
    square, keys = torch.from_numpy(square), torch.from_numpy(keys)
    check_refused("a mask of floats", combine, keys.float(), square)
    check_refused("masks that don't broadcast together", combine, keys, square[:, :2])


# Exercise 5.5


@weight(1)
@number("5.5")
def test_heads_are_split_and_merged_right_for_other_sizes(student, rng):
    """Each head gets its features of every position, and merging lays them side by side."""
    for sizes in ((3, 4, 2, 5), (1, 6, 5, 2), (2, 1, 3, 4)):
        for view in (np.asarray, transposed):
            check_split(student, rng, *sizes, view)
            check_merged(student, rng, *sizes, view)
    code, merged = student.attention, torch.ones(2, 1, 12)
    check_refused("heads that don't divide the features", code.split_heads, merged, 5)
    check_refused("an x of three axes", code.merge_heads, merged)


@weight(1)
@number("5.5")
def test_multi_head_attention_is_pytorchs_for_other_sizes(student, rng, oracle):
    """Self- and cross-attention with other numbers of heads, with and without biases."""
    for n, t_q, t_k, d_model, num_heads, bias in (
        (3, 2, 4, 10, 2, True),
        (2, 5, 3, 12, 4, True),
        (2, 3, 6, 5, 1, False),
        (1, 4, 2, 6, 6, True),
    ):
        heads = draw_heads(rng, d_model, num_heads, bias)
        inputs = draw_inputs(rng, n, t_q, t_k, d_model=d_model)
        check_heads(student, oracle, heads, inputs, situation="cross-attention")
        check_heads(student, oracle, heads, inputs[:1] * 3, situation="self-attention")
    check_first_parameters(student, 36, 3, True)
    check_first_parameters(student, 44, 4, False)


@weight(1)
@number("5.5")
def test_multi_head_attention_has_pytorchs_gradients_for_other_sizes(student, rng, oracle):
    """The gradients of the three inputs and of all parameters, with and without biases."""
    for n, t_q, t_k, d_model, num_heads, bias in (
        (3, 2, 4, 10, 2, True),
        (2, 5, 3, 8, 4, False),
        (2, 3, 6, 5, 1, True),
    ):
        heads = draw_heads(rng, d_model, num_heads, bias)
        inputs = draw_inputs(rng, n, t_q, t_k, d_model=d_model)
        check_heads_gradients(student, oracle, rng, heads, inputs=inputs, situation="no mask")
        mask = torch.from_numpy(draw_mask(rng, n, 1, t_k))
        check_heads_gradients(
            student, oracle, rng, heads, inputs=inputs, situation="a mask", mask=mask
        )


@weight(1)
@number("5.5")
def test_multi_head_attention_is_right_for_other_masks(student, rng, oracle):
    """Masks that hold for every head, and queries that may look at nothing."""
    heads, inputs = draw_heads(rng, 8, 4), draw_inputs(rng, 4, 3, 6, d_model=8)
    for shape in ((3, 6), (4, 3, 6), (4, 1, 6), (1, 3, 6)):
        mask = torch.from_numpy(draw_mask(rng, *shape))
        check_heads(student, oracle, heads, inputs, situation="another mask", mask=mask)
    mask = torch.from_numpy(draw_mask(rng, 4, 3, 6))
    mask[1, 0] = mask[3] = False
    situation = "queries that may look at nothing"
    check_heads(student, oracle, heads, inputs, situation=situation, mask=mask)
    check_heads_gradients(
        student, oracle, rng, heads, inputs=inputs, situation=situation, mask=mask
    )


@weight(1)
@number("5.5")
def test_multi_head_attention_keeps_other_types_and_inputs(student, rng, oracle):
    """float32 and views on other shapes; inputs and results stay; bad shapes are refused."""
    heads, inputs = draw_heads(rng, 9, 3, dtype=torch.float32), draw_inputs(rng, 2, 5, 4, d_model=9)
    inputs = [torch.from_numpy(sliced(x.float().numpy())) for x in inputs]
    check_heads(student, oracle, heads, inputs, situation="float32, views")
    check_heads_gradients(student, oracle, rng, heads, inputs=inputs, situation="float32, views")
    heads, inputs = draw_heads(rng, 9, 3), draw_inputs(rng, 2, 5, 4, d_model=9)
    mask = torch.from_numpy(draw_mask(rng, 2, 1, 4))
    check_heads_stay_apart(
        student, oracle, heads, inputs, second=draw_inputs(rng, 2, 5, 4, d_model=9), mask=mask
    )
    check_heads_refuse(student, heads, inputs)


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
            check_score_variance(student, rng, d_k, scaled)
    check_score_variance(student, rng, 12, True, samples=30_000)


@weight(1)
@number("5.6")
def test_score_variance_draws_other_numbers_of_samples(student, rng):
    """Equal generators give equal results, and few samples a rough one."""
    check_variance_is_drawn(student, rng, 5, 6)
    generator = np.random.default_rng(3)
    check_refused("a d_k below 1", student.attention.score_variance, -3, False, generator)


@weight(1)
@number("5.6")
def test_saturation_follows_its_closed_forms_for_other_scores(student, rng):
    """Equal scores, two scores with a gap, and scores that have run away."""
    for t in (3, 8, 50):
        expected = [doubles([[x] * 2]) for x in (1 / t, math.sqrt(t - 1) / t)]
        scores = doubles([[[-7.0], [0.25]]]).expand(1, 2, t)
        check_saturation(student, scores, expected, "equal scores")
    check_two_scores(student, [0.0, *(float(gap) for gap in rng.uniform(0, 4, size=5))])
    # A slope from squares that nearly cancel out may be off by 1e-8 here, but must not be NaN.
    far = [float(gap) for gap in rng.uniform(15, 800, size=20)]
    check_two_scores(student, [0.0, *RUN_AWAY, *far], tolerance=1e-6)


@weight(1)
@number("5.6")
def test_saturation_is_the_norm_of_the_jacobian_for_other_scores(student, rng, oracle):
    """peak and slope are PyTorch's on other shapes, in float32 too, and scores stay."""
    for shape in ((7,), (2, 5), (3, 1, 4), (2, 2, 2, 3)):
        scores = torch.from_numpy(rng.normal(scale=1.5, size=shape))
        check_saturation(student, scores, oracle.saturation(scores), "other scores", tolerance=1e-7)
        check_unchanged("saturation", student.attention.saturation, scores)
    scores = torch.from_numpy(sliced(rng.normal(size=(4, 3)).astype(np.float32)))
    check_saturation(student, scores, oracle.saturation(scores), "float32, a view")


# Exercise 5.7


@weight(1)
@number("5.7")
def test_permutation_gap_is_right_for_other_sequences(student, rng, oracle):
    """0 but for rounding without a mask; PyTorch's with one, which isn't reordered."""
    for n, t, d in ((3, 4, 5), (1, 6, 2), (2, 3, 4)):
        x, order = torch.from_numpy(rng.normal(size=(n, t, d))), draw_order(rng, t)
        check_gap(student, oracle, x, order, mask=None, situation="no mask")
        square = np.tri(t, dtype=bool)
        check_gap(student, oracle, x, order, mask=square, situation="a causal mask")
        check_gap(
            student,
            oracle,
            x,
            order,
            mask=square & draw_mask(rng, n, 1, t),
            situation="another mask",
        )
        views = as_view(sliced, x), as_view(sliced, order)
        check_gap(student, oracle, *views, mask=square, situation="views")
    code, bad = student.attention, torch.tensor([2, 0, 0])
    check_refused(
        "an order that isn't one", code.permutation_gap, code.scaled_dot_product_attention, x, bad
    )


@weight(1)
@number("5.7")
def test_influence_is_right_for_other_sequences(student, rng, oracle):
    """The norms of the Jacobians are PyTorch's, with and without masks, in float32 too."""
    for t, d in ((5, 2), (2, 4), (3, 3)):
        x, causal = torch.from_numpy(rng.normal(size=(t, d))), oracle.causal_mask(t)
        check_influence(student, oracle, x, None, situation="no mask")
        check_influence(student, oracle, x, causal, situation="a causal mask")
        check_nothing_above_the_diagonal(student, x.float(), causal)
    mask = torch.from_numpy(draw_mask(rng, 3, 3))
    mask[0] = False
    check_influence(student, oracle, x, mask, situation="a query that may look at nothing")
    check_influence(student, oracle, x.float(), None, situation="float32")
    check_influence(student, oracle, as_view(sliced, x), mask, situation="a view")
    check_influence_leaves_nothing(student, oracle, rng, x, mask=mask)


@weight(1)
@number("5.7")
def test_permutation_gap_and_influence_take_other_multi_head_attentions(student, rng, oracle):
    """Both are PyTorch's for a module; no gradient stays behind; one head alone is attention."""
    x = torch.from_numpy(rng.normal(size=(3, 3, 8)))
    heads = draw_heads(rng, 8, 4, bias=False)
    check_properties_of_heads(student, oracle, heads, x, order=draw_order(rng, 3))
    check_one_head(student, oracle, rng, 3, t=2, d_model=5)
    check_one_head(student, oracle, rng, 2, t=5, d_model=4, mask=oracle.causal_mask(5))


@weight(1)
@number("5.7")
def test_soft_lookup_is_right_for_other_temperatures(student, rng, oracle):
    """value and weights are PyTorch's with scale 1 / temperature, from cold to hot."""
    for t, d, d_v, temperature in ((3, 5, 4, 0.5), (6, 2, 3, 1.7), (2, 4, 1, 2.0), (4, 3, 5, 40.0)):
        inputs = [torch.from_numpy(rng.normal(size=size)) for size in ((d,), (t, d), (t, d_v))]
        check_lookup(student, oracle, *inputs, temperature, "another temperature")
        check_lookup(student, oracle, *(x.float() for x in inputs), temperature, "float32")
        views = [as_view(transposed, x) for x in inputs[1:]]
        check_lookup(student, oracle, inputs[0], *views, temperature, "views")
        weights = torch.full((t,), 1 / t, dtype=torch.float64)
        value = inputs[2].mean(dim=0)
        compare_lookup(student, (*inputs, 1e12), value, weights, situation="a huge temperature")
    check_unchanged("soft_lookup", student.attention.soft_lookup, *inputs, 0.3)
    check_refused("a negative temperature", student.attention.soft_lookup, *inputs, -1e-3)


@weight(1)
@number("5.7")
def test_soft_lookup_becomes_hard_for_other_keys(student, rng):
    """At temperature 0 and near it, all weight is on the best keys, in equal parts."""
    values = torch.from_numpy(rng.normal(size=(5, 2)))
    query = doubles([2.0, -1.0, 1.0])
    keys = doubles([[3, 1, 0], [1, 0, 1], [2, -1, 0], [0, -5, 0], [-4, 0, 2]])
    order = rng.permutation(5)
    places = {int(before): after for after, before in enumerate(order)}
    winners = sorted(places[before] for before in (0, 2, 3))
    check_hard_lookup(
        student, query, keys[order], values, winners=winners, temperatures=(0.0, 1e-6, 1e-2)
    )
    keys[2] -= doubles([1e-9, 0, 0])
    keys[3] -= doubles([0, 0, 1e-9])
    check_hard_lookup(
        student, query, keys[order], values, winners=[places[0]], temperatures=(0.0, 1e-12)
    )
    check_hard_lookup(
        student, query, -keys[order] * 50, values, winners=[places[4]], temperatures=(0, 1e-6)
    )


# The lab


@weight(1)
@number("5.8")
def test_q1_the_query_asks_for_the_very_time(lab):
    """Lab, question 1: the score is largest at 14.3, and falls off on both sides."""
    check_time(array_answer(lab, "q1_query", (2,)), 14.3)


@weight(1)
@number("5.8")
def test_q3_only_the_ends_of_a_line_can_be_found(lab):
    """Lab, question 3: a score that is linear in the hour is largest at an end."""
    check_same_numbers(lab, "q3_hours", {0, 23})


@weight(1)
@number("5.8")
def test_q5_the_score_of_a_query_with_itself_is_right(lab):
    """Lab, question 5: 256 squares with the mean 1, divided by the root of 256."""
    check_number(lab, "q5_score", math.sqrt(256), tolerance=0.5)


@weight(1)
@number("5.9")
def test_q7_the_last_two_positions_look_at_all_alike(lab):
    """Lab, question 7: equal scores where there is no position i + 2."""
    scores = array_answer(lab, "q7_scores", (6, 6))
    check_two_further(scores, range(4))
    check_evenly(scores, (4, 5))


@weight(1)
@number("5.9")
def test_q9_the_heads_that_do_not_care_for_the_order_are_found(lab):
    """Lab, question 9: those whose queries and keys hold no position."""
    check_same_numbers(lab, "q9_heads", {0, 2})


@weight(2)
@number("5.9")
def test_q10_the_means_of_pairs_are_counted(lab):
    """Lab, question 10: a mean doesn't tell which of the two words stood first."""
    means = {tuple(np.eye(12)[a] + np.eye(12)[b]) for a in range(12) for b in range(12)}
    check_number(lab, "q10_outputs", len(means))
