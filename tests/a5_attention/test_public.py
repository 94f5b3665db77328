"""The public tests of assignment 5: attention in NumPy and in PyTorch."""

import math

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_number
from common.testing.checks import check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_close, check, unpack
from tests.a5_attention.cases import (
    CAT_EATS_FISH,
    CAT_EATS_FISH_OUT,
    CAT_EATS_FISH_WEIGHTS,
    SIX_WORDS,
    SIX_WORDS_OUT,
    SIX_WORDS_WEIGHTS,
    WORKED,
    Case,
    as_view,
    check_attention_refuses,
    compare_gradients,
    compare_outputs,
    draw_case,
    draw_mask,
)
from tests.a5_attention.lab_cases import check_nearest_hour, check_two_further
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
    axis_in_words,
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
    check_mask,
    check_padding_mask,
)

# Exercise 5.1


@weight(1)
@number("5.1")
def test_softmax_shares_out_one_along_the_axis(student, rng, oracle):
    """out is PyTorch's along any axis, the last one if none is named, also for sizes of 1."""
    x = rng.normal(scale=2, size=(2, 3, 4))
    for axis in (None, 0, 1, 2, -1, -2, -3):
        check_softmax(student, oracle, x, axis, situation=f"{axis_in_words(axis)}, shape (2, 3, 4)")
    for shape in ((5,), (3, 1), (1, 1, 1), (2, 1, 2, 3)):
        check_softmax(
            student, oracle, rng.normal(size=shape), 0, situation=f"axis 0, shape {shape}"
        )


@weight(1)
@number("5.1")
def test_softmax_takes_large_and_small_numbers(student, rng, oracle):
    """Numbers near 1e4 and -1e4 neither overflow nor warn; adding a constant changes nothing."""
    x = rng.normal(scale=2, size=(3, 4))
    for shift in (1e4, -1e4):
        check_softmax(student, oracle, x + shift, 0, situation=f"numbers near {shift:g}")
    spread = rng.permuted(np.array([[-1e4, -3e3, 0, 1e4], [-1e4, -1e4 + 1, 2, 3]]), axis=1)
    check_softmax(student, oracle, spread, -1, situation="numbers from -1e4 to 1e4")
    # One row far below another: what is subtracted belongs to the row.
    check_softmax(
        student, oracle, np.array([[1e4, 1e4 + 1], [0, 1], [-1e4, -1e4 + 2]]), 1, situation="rows"
    )
    check_softmax(student, oracle, (100 * x).astype(np.float32), 0, situation="float32")


@weight(1)
@number("5.1")
def test_softmax_gives_nothing_to_entries_of_minus_infinity(student, rng, oracle):
    """-inf gets exactly 0; where all along the axis are -inf, all get 0, without a warning."""
    x = rng.normal(scale=2, size=(3, 4))
    x[0, 2] = x[2, :3] = -np.inf
    check_softmax(student, oracle, x, 1, situation="some entries of -inf")
    x[1] = -np.inf
    check_softmax_of_nothing(student, oracle, x, 1, dead=np.s_[1])
    check_softmax_of_nothing(student, oracle, x.T.astype(np.float32), 0, dead=np.s_[:, 1])


@weight(1)
@number("5.1")
def test_softmax_backward_sends_the_gradient_back_along_the_axis(student, rng, oracle):
    """dx is PyTorch's under a random dout, along any axis; zeros where out is all zeros."""
    x = rng.normal(scale=2, size=(2, 3, 4))
    for axis in (None, 0, 1, 2, -2):
        situation = f"{axis_in_words(axis)}, shape (2, 3, 4)"
        check_softmax_gradient(student, oracle, rng, x, axis=axis, situation=situation)
    check_softmax_gradient(
        student, oracle, rng, rng.normal(size=5), axis=0, situation="axis 0, shape (5,)"
    )
    x[0, :2, 1] = x[1, 1:, 3] = -np.inf
    check_softmax_gradient(student, oracle, rng, x, axis=1, situation="entries of -inf")
    check_softmax_gradient(
        student, oracle, rng, x, axis=1, situation="a row of zeros", dead=np.s_[1, :, 0]
    )


@weight(1)
@number("5.1")
def test_softmax_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """float32 stays, views are nothing special, calls stay apart; no axis, no entries: refused."""
    x = rng.normal(size=(2, 4, 3)).astype(np.float32)
    check_softmax(student, oracle, transposed(x), 1, situation="float32, a view")
    check_softmax_gradient(student, oracle, rng, x, axis=1, situation="float32, views", view=sliced)
    first, second = rng.normal(size=(2, 3, 4, 2))
    check_softmax_stays_apart(student, oracle, rng, first, second)
    code = student.attention_numpy
    check_refused("an axis that x doesn't have", code.softmax, first, 3)
    check_refused("an empty array", code.softmax, first[:, :0], 1)
    check_refused("a dout of another shape", code.softmax_backward, first[:1], first, 1)
    check_refused("an axis that out doesn't have", code.softmax_backward, first, first, -4)


# Exercise 5.2


@weight(1)
@number("5.2")
def test_attention_loops_works_out_cat_eats_fish(student):
    """The handout's example: weights 0.3818, 0.2960, 0.3222 and the output 0.5429, 0.4571."""
    result = student.attention_numpy.attention_loops(*CAT_EATS_FISH.inputs)
    expected = (CAT_EATS_FISH_OUT, CAT_EATS_FISH_WEIGHTS)
    compare_outputs(unpack(result, 2, "attention_loops"), expected, "cat eats fish", WORKED)


@weight(1)
@number("5.2")
def test_attention_loops_looks_from_every_query_at_every_key(student, rng, oracle):
    """out and weights are PyTorch's for one sequence: any sizes, large scores, float32, views."""
    for sizes in ((3, 5, 4, 2), (4, 2, 3, 5), (1, 3, 2, 1), (2, 1, 1, 3)):
        case = draw_case(rng, (), *sizes)
        check_loops(student, oracle, case, "t_q {}, t_k {}, d_k {}, d_v {}".format(*sizes))
    large = draw_case(rng, (), 3, 4, 2, 5)
    check_loops(student, oracle, Case(1000 * large.q, large.k, large.v), "large scores")
    case = draw_case(rng, (), 2, 3, 5, 4, "float32").seen_as(sliced, transposed, sliced)
    check_loops(student, oracle, case, "float32, views")
    loops = student.attention_numpy.attention_loops
    check_unchanged("attention_loops", loops, *large.inputs)
    check_refused("arrays of three axes", loops, *draw_case(rng, (2,), 3, 5, 4, 2).inputs)
    check_refused("another number of values than keys", loops, large.q, large.k, large.v[1:])


@weight(1)
@number("5.2")
def test_attention_forward_works_out_the_six_words(student):
    """The handout's example of six words and one query, and cat eats fish once more."""
    for case, expected, situation in (
        (SIX_WORDS, (SIX_WORDS_OUT, SIX_WORDS_WEIGHTS), "the six words"),
        (CAT_EATS_FISH, (CAT_EATS_FISH_OUT, CAT_EATS_FISH_WEIGHTS), "cat eats fish"),
    ):
        result = student.attention_numpy.attention_forward(*case.inputs)
        *results, _ = unpack(result, 3, "attention_forward")
        compare_outputs(results, expected, situation, WORKED)


@weight(1)
@number("5.2")
def test_attention_forward_takes_many_sequences_at_once(student, rng, oracle):
    """out and weights are PyTorch's with up to three axes in front, also for large scores."""
    for front, sizes in (
        ((), (3, 5, 4, 2)),
        ((2,), (4, 3, 5, 6)),
        ((3, 2), (5, 4, 1, 3)),
        ((2, 1, 3), (1, 4, 3, 2)),
        ((1,), (2, 1, 3, 1)),
    ):
        case = draw_case(rng, front, *sizes)
        check_forward(student, oracle, case, f"{len(front)} axes in front")
    case = draw_case(rng, (2,), 3, 4, 5, 2)
    check_forward(student, oracle, Case(1000 * case.q, case.k, case.v), "large scores")


@weight(2)
@number("5.2")
def test_attention_forward_looks_only_where_the_mask_is_true(student, rng, oracle):
    """Masks of (t_q, t_k), of all axes, with axes of length 1; elsewhere weights of exactly 0."""
    for front, shape in (
        ((), (3, 5)),
        ((2,), (3, 5)),
        ((2,), (2, 3, 5)),
        ((2,), (2, 1, 5)),
        ((2,), (5,)),
        ((2, 4), (2, 1, 3, 5)),
    ):
        case = draw_case(rng, front, 3, 5, 4, 2, mask=draw_mask(rng, *shape))
        situation = f"{len(front)} axes in front, a mask of {shape}"
        check_forward(student, oracle, case, situation)
    case = draw_case(rng, (2,), 3, 4, 2, 5, mask=np.ones((3, 4), dtype=bool))
    check_forward(student, oracle, case, "a mask that is True everywhere")


@weight(1)
@number("5.2")
def test_attention_forward_gives_zeros_to_a_query_that_may_look_at_nothing(student, rng, oracle):
    """A row that is all False gets zeros, never NaN; what lies at unseen keys plays no part."""
    mask = draw_mask(rng, 2, 3, 5)
    mask[0, 1] = mask[1, 2] = False
    case = draw_case(rng, (2,), 3, 5, 4, 2, mask=mask)
    check_forward(student, oracle, case, "queries that may look at nothing")
    check_forward(student, oracle, case.blinded(), "huge numbers at a key that nobody sees")
    case = Case(*case.inputs, np.zeros((3, 5), dtype=bool))
    check_forward(student, oracle, case, "a mask that is False everywhere")


@weight(2)
@number("5.2")
def test_attention_backward_gives_the_three_gradients(student, rng, oracle):
    """dq, dk and dv are PyTorch's under a random dout, without a mask; one key moves no weight."""
    for front, sizes in (
        ((), (3, 5, 4, 2)),
        ((2,), (4, 3, 5, 6)),
        ((3, 2), (1, 4, 2, 3)),
        ((1,), (5, 2, 1, 1)),
    ):
        case = draw_case(rng, front, *sizes)
        check_backward(student, oracle, rng, case, situation=f"{len(front)} axes in front")
    code, case = student.attention_numpy, draw_case(rng, (2,), 3, 1, 4, 5)
    dout = rng.normal(size=(2, 3, 5))
    _, _, cache = unpack(code.attention_forward(*case.inputs), 3, "attention_forward")
    results = unpack(code.attention_backward(dout, cache), 3, "attention_backward")
    expected = (np.zeros((2, 3, 4)), np.zeros((2, 1, 4)), dout.sum(axis=1, keepdims=True))
    compare_gradients(results, expected, "a single key")


@weight(2)
@number("5.2")
def test_attention_backward_sends_nothing_where_the_mask_is_false(student, rng, oracle):
    """The three gradients with masks, queries that see nothing, and keys that nobody sees."""
    for front, shape in (((2,), (3, 5)), ((2,), (2, 1, 5)), ((2, 4), (2, 1, 3, 5))):
        case = draw_case(rng, front, 3, 5, 4, 2, mask=draw_mask(rng, *shape))
        check_backward(student, oracle, rng, case, situation=f"a mask of {shape}")
    mask = draw_mask(rng, 2, 3, 5)
    mask[0, 1] = mask[1, 2] = False
    case = draw_case(rng, (2,), 3, 5, 4, 2, mask=mask)
    check_backward(student, oracle, rng, case, situation="queries that may look at nothing")
    check_backward(
        student, oracle, rng, case.blinded(), situation="huge numbers at a key nobody sees"
    )
    case = Case(*case.inputs, np.zeros((3, 5), dtype=bool))
    check_backward(student, oracle, rng, case, situation="a mask that is False everywhere")


@weight(1)
@number("5.2")
def test_attention_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, caches apart, and a ValueError for what doesn't fit."""
    case = draw_case(rng, (2,), 3, 5, 4, 2, "float32", draw_mask(rng, 3, 5))
    check_forward(student, oracle, case, "float32")
    check_backward(student, oracle, rng, case, situation="float32")
    case = draw_case(rng, (2,), 3, 5, 4, 2).seen_as(sliced, transposed, sliced)
    check_forward(student, oracle, case, "views")
    check_backward(student, oracle, rng, case, situation="views", view=transposed)
    first, second = (draw_case(rng, (2,), 3, 5, 4, 2, mask=draw_mask(rng, 3, 5)) for _ in range(2))
    check_stays_apart(student, oracle, rng, first, second=second)
    case = draw_case(rng, (2,), 3, 5, 4, 6)
    check_attention_refuses(student.attention_numpy.attention_forward, case)
    check_backward_refuses(student, rng, case)


# Exercise 5.3


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_works_out_both_examples(student):
    """The handout's six words and cat eats fish, now with tensors."""
    for case, expected, situation in (
        (SIX_WORDS, (SIX_WORDS_OUT, SIX_WORDS_WEIGHTS), "the six words"),
        (CAT_EATS_FISH, (CAT_EATS_FISH_OUT, CAT_EATS_FISH_WEIGHTS), "cat eats fish"),
    ):
        result = student.attention.scaled_dot_product_attention(*case.as_tensors().inputs)
        expected = [torch.from_numpy(array) for array in expected]
        results = unpack(result, 2, "scaled_dot_product_attention")
        compare_outputs(results, expected, situation, WORKED)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_takes_any_axes_in_front(student, rng, oracle):
    """out and weights are PyTorch's with no, one, two and three axes in front."""
    for front, sizes in (
        ((), (3, 5, 4, 2)),
        ((2,), (4, 3, 5, 6)),
        ((3, 2), (5, 4, 1, 3)),
        ((2, 1, 3), (1, 4, 3, 2)),
        ((1,), (2, 1, 3, 1)),
    ):
        case = draw_case(rng, front, *sizes).as_tensors()
        check_attention(student, oracle, case, f"{len(front)} axes in front")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_looks_only_where_the_mask_is_true(student, rng, oracle):
    """Masks of (t_q, t_k), of all axes, with axes of length 1; elsewhere weights of exactly 0."""
    for front, shape in (
        ((), (3, 5)),
        ((2,), (3, 5)),
        ((2,), (2, 3, 5)),
        ((2,), (2, 1, 5)),
        ((2, 4), (2, 1, 3, 5)),
    ):
        case = draw_case(rng, front, 3, 5, 4, 2, mask=draw_mask(rng, *shape)).as_tensors()
        situation = f"{len(front)} axes in front, a mask of {shape}"
        check_attention(student, oracle, case, situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_has_gradients_through_out_and_weights(student, rng, oracle):
    """The gradients of q, k and v are PyTorch's under random ones of out and weights."""
    case = draw_case(rng, (2,), 4, 3, 5, 6).as_tensors()
    check_attention_gradients(student, oracle, rng, case, situation="no mask")
    case = draw_case(rng, (2, 4), 3, 5, 4, 2, mask=draw_mask(rng, 2, 1, 3, 5)).as_tensors()
    check_attention_gradients(student, oracle, rng, case, situation="a mask of (2, 1, 3, 5)")


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_never_gives_nan_where_nothing_is_seen(student, rng, oracle):
    """A row that is all False: zeros in out, weights and gradients; unseen keys play no part."""
    mask = draw_mask(rng, 2, 3, 5)
    mask[0, 1] = mask[1, 2] = False
    case = draw_case(rng, (2,), 3, 5, 4, 2, mask=mask)
    for situation, one in (
        ("queries that may look at nothing", case),
        ("huge numbers at a key nobody sees", case.blinded()),
        ("a mask that is False everywhere", Case(*case.inputs, np.zeros((3, 5), dtype=bool))),
    ):
        check_attention(student, oracle, one.as_tensors(), situation)
        check_attention_gradients(student, oracle, rng, one.as_tensors(), situation=situation)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_drops_weights_but_returns_all(student, rng, oracle):
    """dropout comes between softmax and values; the weights returned are those before it."""
    check_dropout(student, oracle, rng, draw_case(rng, (2,), 3, 5, 4, 2).as_tensors(), p=0.25)
    case = draw_case(rng, (), 4, 6, 3, 5, mask=draw_mask(rng, 4, 6)).as_tensors()
    check_dropout(student, oracle, rng, case, p=0.5)


@weight(1)
@number("5.3")
def test_scaled_dot_product_attention_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, calls that stay apart, and a ValueError for bad shapes."""
    case = draw_case(rng, (2,), 3, 5, 4, 2, "float32", draw_mask(rng, 3, 5)).as_tensors()
    check_attention(student, oracle, case, "float32")
    check_attention_gradients(student, oracle, rng, case, situation="float32")
    case = draw_case(rng, (2,), 3, 5, 4, 2).seen_as(sliced, transposed, sliced).as_tensors()
    check_attention(student, oracle, case, "views")
    cases = (draw_case(rng, (2,), 3, 5, 4, 2, mask=draw_mask(rng, 3, 5)) for _ in range(2))
    check_attention_stays_apart(student, oracle, *(case.as_tensors() for case in cases))
    case = draw_case(rng, (2,), 3, 5, 4, 6).as_tensors()
    check_attention_refuses(student.attention.scaled_dot_product_attention, case)


# Exercise 5.4


@weight(1)
@number("5.4")
def test_causal_mask_lets_a_position_look_at_itself_and_back(student, oracle):
    """mask[i, j] is True where j <= i, of bool; a sequence without positions is refused."""
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    check_mask(student.attention.causal_mask(3), expected, "the causal mask")
    for n in (1, 2, 7):
        result = student.attention.causal_mask(n)
        assert_close(result, oracle.causal_mask(n), what="the causal mask", axes=("query", "key"))
    for n in (0, -2):
        check_refused("a sequence of no positions", student.attention.causal_mask, n)


@weight(1)
@number("5.4")
def test_padding_mask_hides_what_lies_beyond_the_length(student):
    """(batch, 1, n) of bool, True below the length; lengths of 0 and of n; bad ones are refused."""
    check_padding_mask(student, [2, 4, 0, 1, 3], 4)
    check_padding_mask(student, [3], 3)
    check_padding_mask(student, [1, 5], 6, "int32")
    check_padding_mask(student, [1, 0, 2], 2, view=sliced)
    function, lengths = student.attention.padding_mask, torch.tensor([2, 3])
    check_unchanged("padding_mask", function, lengths, 3)
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
    """True where each is True, with broadcasting; None is skipped, and nothing but None is None."""
    square, whole, keys = (rng.uniform(size=s) < 0.6 for s in ((4, 4), (3, 4, 4), (3, 1, 4)))
    for masks in (
        (square, keys),
        (keys, square),
        (whole, square, keys),
        (whole, ~whole),
        (None, square),
        (keys, None, square, None),
        (whole,),
        (transposed(square), sliced(keys)),
    ):
        check_combined(student, *masks)
    combine = student.attention.combine_masks
    for masks in ((), (None,), (None, None)):
        check(combine(*masks) is None, "Where no mask is given, the result must be None.")
    square, keys = torch.from_numpy(square), torch.from_numpy(keys)
    check_refused("a mask of integers", combine, square, keys.long())
    check_refused("a mask that is a list", combine, square, [[True] * 4])
    check_refused("masks that don't broadcast together", combine, square, keys[..., :3])


# Exercise 5.5


@weight(1)
@number("5.5")
def test_split_heads_gives_each_head_its_features(student, rng):
    """Head h gets the features from h * d_head on, of every position; other numbers are refused."""
    for sizes in ((2, 3, 4, 5), (3, 2, 1, 4), (1, 4, 3, 1)):
        check_split(student, rng, *sizes, view=transposed)
    split = student.attention.split_heads
    check_refused("heads that don't divide the features", split, torch.ones(2, 3, 8), 3)
    check_refused("no heads", split, torch.ones(2, 3, 8), 0)
    check_refused("an x of two axes", split, torch.ones(3, 8), 2)
    check_refused("a sequence of no positions", split, torch.ones(2, 0, 8), 2)


@weight(1)
@number("5.5")
def test_merge_heads_lays_the_heads_side_by_side(student, rng):
    """Features of head 0 first, then those of head 1, and so on: the inverse of split_heads."""
    for sizes in ((2, 3, 4, 5), (3, 2, 1, 4), (1, 4, 3, 1)):
        check_merged(student, rng, *sizes)
    merge, split = student.attention.merge_heads, student.attention.split_heads
    x = torch.from_numpy(rng.normal(size=(2, 3, 8))).float()
    assert_close(merge(split(x, 4)), x, what="what was split and merged")
    check_refused("an x of three axes", merge, torch.ones(2, 3, 8))
    check_refused("heads of no positions", merge, torch.ones(2, 4, 0, 3))


@weight(1)
@number("5.5")
def test_multi_head_attention_has_the_parameters_of_the_docstring(student):
    """Names, shapes, and first values as nn.Linear draws them; no biases if bias is False."""
    check_first_parameters(student, 48, 4, True)
    check_first_parameters(student, 40, 2, False)
    new = student.attention.MultiHeadAttention
    for sizes in ((6, 4), (6, 0), (0, 1), (6, -2)):
        check_refused("heads that can't share the features out", new, *sizes)


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
        x, *_ = draw_inputs(rng, n, t, t, d_model=d_model)
        situation = f"{num_heads} heads of {d_model // num_heads}, bias {bias}"
        check_heads(student, oracle, heads, (x, x, x), situation=situation)


@weight(1)
@number("5.5")
def test_multi_head_attention_looks_from_one_sequence_at_another(student, rng, oracle):
    """Cross-attention: query, key and value all differ, and query has another length."""
    for n, t_q, t_k in ((2, 3, 5), (3, 4, 1), (1, 1, 4)):
        heads, inputs = draw_heads(rng, 6, 2), draw_inputs(rng, n, t_q, t_k, d_model=6)
        check_heads(student, oracle, heads, inputs, situation=f"t_q {t_q}, t_k {t_k}")


@weight(2)
@number("5.5")
def test_multi_head_attention_has_pytorchs_gradients(student, rng, oracle):
    """The gradients of the three inputs and of all parameters, through out and the weights."""
    heads, inputs = draw_heads(rng, 6, 3), draw_inputs(rng, 2, 4, 5, d_model=6)
    check_heads_gradients(student, oracle, rng, heads, inputs=inputs, situation="no mask")
    heads, inputs = draw_heads(rng, 8, 2, bias=False), draw_inputs(rng, 3, 2, 4, d_model=8)
    check_heads_gradients(student, oracle, rng, heads, inputs=inputs, situation="no bias")
    mask = torch.from_numpy(draw_mask(rng, 3, 2, 4))
    check_heads_gradients(student, oracle, rng, heads, inputs=inputs, situation="a mask", mask=mask)


@weight(2)
@number("5.5")
def test_multi_head_attention_holds_the_mask_for_every_head(student, rng, oracle):
    """Masks of (t_q, t_k), (n, t_q, t_k) and (n, 1, t_k); as many heads as sequences, too."""
    heads, inputs = draw_heads(rng, 6, 3), draw_inputs(rng, 3, 4, 5, d_model=6)
    for shape in ((4, 5), (3, 4, 5), (3, 1, 5), (1, 4, 5), (1, 5)):
        mask = torch.from_numpy(draw_mask(rng, *shape))
        check_heads(student, oracle, heads, inputs, situation=f"a mask of {shape}", mask=mask)
    x, *_ = draw_inputs(rng, 2, 4, 4, d_model=6)
    check_heads(
        student, oracle, heads, (x, x, x), situation="a causal mask", mask=oracle.causal_mask(4)
    )


@weight(1)
@number("5.5")
def test_multi_head_attention_gives_the_bias_where_nothing_is_seen(student, rng, oracle):
    """A query that may look at nothing gets out.bias, weights of zero and no NaN in gradients."""
    for bias in (True, False):
        heads, inputs = draw_heads(rng, 6, 2, bias), draw_inputs(rng, 3, 4, 5, d_model=6)
        mask = torch.from_numpy(draw_mask(rng, 3, 4, 5))
        mask[0, 2] = mask[2] = False
        situation = "queries that may look at nothing"
        check_heads(student, oracle, heads, inputs, situation=situation, mask=mask)
        check_heads_gradients(
            student, oracle, rng, heads, inputs=inputs, situation=situation, mask=mask
        )


@weight(1)
@number("5.5")
def test_multi_head_attention_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, calls that stay apart, and a ValueError for bad shapes."""
    heads, mask = draw_heads(rng, 6, 2, dtype=torch.float32), torch.from_numpy(draw_mask(rng, 4, 5))
    inputs = draw_inputs(rng, 3, 4, 5, d_model=6, dtype=torch.float32)
    check_heads(student, oracle, heads, inputs, situation="float32", mask=mask)
    check_heads_gradients(
        student, oracle, rng, heads, inputs=inputs, situation="float32", mask=mask
    )
    heads, inputs = draw_heads(rng, 6, 2), draw_inputs(rng, 3, 4, 5, d_model=6)
    views = [torch.from_numpy(transposed(x.numpy())) for x in inputs]
    check_heads(student, oracle, heads, views, situation="views")
    check_heads_stay_apart(
        student, oracle, heads, inputs, second=draw_inputs(rng, 3, 4, 5, d_model=6), mask=mask
    )
    check_heads_refuse(student, heads, inputs)


@weight(1)
@number("5.5")
@tags("timing")
def test_multi_head_attention_is_about_as_fast_as_pytorchs(student, rng, oracle):
    """Forward and backward take at most twice as long as nn.MultiheadAttention's.

    The docstring states 1.5 times; the rest is for a busy machine.
    """
    check_heads_speed(student, oracle, rng)


# Exercise 5.6


@weight(1)
@number("5.6")
def test_score_variance_grows_with_d_k_unless_scores_are_scaled(student, rng):
    """About d_k without the scale and about 1 with it; the docstring tells how far off it may be.

    Right code is off by 7 standard errors with a chance below 1e-8.
    """
    for d_k in (1, 4, 16, 100):
        for scaled in (False, True):
            check_score_variance(student, rng, d_k, scaled)
    check_score_variance(student, rng, 9, False, samples=40_000)


@weight(1)
@number("5.6")
def test_score_variance_draws_from_the_generator_as_often_as_it_is_told(student, rng):
    """Equal generators give equal results; few samples, rough ones; bad numbers are refused."""
    check_variance_is_drawn(student, rng, 16, 8)
    function = student.attention.score_variance
    check_refused("a d_k of 0", function, 0, True, np.random.default_rng(1))
    check_refused("a single sample", function, 4, True, np.random.default_rng(1), 1)


@weight(1)
@number("5.6")
def test_saturation_follows_its_closed_forms(student):
    """Equal scores: 1 / t and sqrt(t - 1) / t. Two scores: s and 2 s (1 - s), s = sigmoid(gap)."""
    for t in (1, 2, 5, 100):
        expected = [doubles([x] * 3) for x in (1 / t, math.sqrt(t - 1) / t)]
        scores = doubles([[0.0], [3.5], [-20.0]]).expand(3, t)
        check_saturation(student, scores, expected, f"{t} equal scores")
    check_two_scores(student, [0.0, 0.5, 1.0, 2.0, 4.0])
    # A slope from squares that nearly cancel out may be off by 1e-8 here, but must not be NaN.
    check_two_scores(student, [0.0, *RUN_AWAY, 37.0, 60.0, 800.0, 1e4], tolerance=1e-6)


@weight(2)
@number("5.6")
def test_saturation_is_the_norm_of_the_jacobian_for_each_row(student, rng, oracle):
    """peak and slope are PyTorch's for any axes in front; float32; scores without entries."""
    for shape in ((5,), (3, 4), (2, 3, 6)):
        scores = torch.from_numpy(rng.normal(scale=1.5, size=shape))
        situation = f"scores of {shape}"
        check_saturation(student, scores, oracle.saturation(scores), situation, tolerance=1e-7)
    check_unchanged("saturation", student.attention.saturation, scores)
    scores = torch.from_numpy(transposed(rng.normal(size=(3, 4)).astype(np.float32)))
    check_saturation(student, scores, oracle.saturation(scores), "float32, a view")
    check_refused("scores without an axis", student.attention.saturation, scores[0, 0])
    check_refused("scores without entries", student.attention.saturation, scores[:, :0])


# Exercise 5.7


@weight(1)
@number("5.7")
def test_permutation_gap_is_zero_without_a_mask(student, rng, oracle):
    """Reordering a sequence reorders the output of self-attention, and changes nothing else."""
    for n, t, d in ((2, 5, 3), (1, 4, 6), (3, 3, 1)):
        x = torch.from_numpy(rng.normal(size=(n, t, d)))
        check_gap(student, oracle, x, draw_order(rng, t), mask=None, situation="no mask")
    check_gap(student, oracle, x.float(), draw_order(rng, 3), mask=None, situation="float32")
    # A gap of 0 is easily returned. With a mask it isn't 0.
    x, order = torch.from_numpy(rng.normal(size=(1, 4, 3))), draw_order(rng, 4)
    check_gap(student, oracle, x, order, mask=np.tri(4, dtype=bool), situation="a causal mask")


@weight(1)
@number("5.7")
def test_permutation_gap_is_the_largest_difference_with_a_mask(student, rng, oracle):
    """The mask stays as it is while the sequence is reordered: the gap is PyTorch's."""
    for n, t, d in ((2, 5, 3), (3, 3, 2)):
        x = torch.from_numpy(rng.normal(size=(n, t, d)))
        order = draw_order(rng, t)
        check_gap(student, oracle, x, order, mask=np.tri(t, dtype=bool), situation="a causal mask")
        check_gap(
            student,
            oracle,
            x,
            order,
            mask=draw_mask(rng, n, t, t),
            situation="a mask for each sequence",
        )
    check_gap(student, oracle, x.float(), order, mask=np.tri(t, dtype=bool), situation="float32")
    views = as_view(transposed, x), as_view(sliced, order)
    check_gap(student, oracle, *views, mask=np.tri(t, dtype=bool), situation="views")
    code = student.attention
    attend, gap = code.scaled_dot_product_attention, code.permutation_gap
    check_unchanged("permutation_gap", gap, attend, x, order)
    check_refused("an x of two axes", gap, attend, x[0], order)
    for bad in ([0, 1, 1], [0, 1], [1, 2, 3], [0.0, 1.0, 2.0]):
        check_refused("an order that isn't one", gap, attend, x, torch.tensor(bad))


@weight(2)
@number("5.7")
def test_influence_tells_which_output_depends_on_which_input(student, rng, oracle):
    """The norms of the Jacobians are PyTorch's, without a graph; 0 where the mask is causal."""
    for t, d in ((4, 3), (3, 5), (1, 2)):
        x = torch.from_numpy(rng.normal(size=(t, d)))
        check_influence(student, oracle, x, None, situation=f"no mask, x of ({t}, {d})")
        causal = oracle.causal_mask(t)
        check_influence(student, oracle, x, causal, situation=f"a causal mask, x of ({t}, {d})")
        check_nothing_above_the_diagonal(student, x, causal)
    x = torch.from_numpy(rng.normal(size=(4, 3)))
    mask = torch.from_numpy(draw_mask(rng, 4, 4))
    mask[2] = False
    check_influence(student, oracle, x, mask, situation="a query that may look at nothing")
    check_influence(student, oracle, x.float(), mask, situation="float32")
    check_influence(student, oracle, as_view(transposed, x), mask, situation="a view")
    check_influence_leaves_nothing(student, oracle, rng, x, mask=mask)
    code = student.attention
    check_unchanged("influence", code.influence, code.scaled_dot_product_attention, x, mask)
    attend = code.scaled_dot_product_attention
    check_refused("an x of three axes", code.influence, attend, x[None])


@weight(1)
@number("5.7")
def test_permutation_gap_and_influence_take_a_multi_head_attention(student, rng, oracle):
    """Both are PyTorch's for a module as well; no gradient stays behind in its parameters.

    And one head whose layers change nothing gives what scaled_dot_product_attention gives.
    """
    x = torch.from_numpy(rng.normal(size=(2, 4, 6)))
    check_properties_of_heads(student, oracle, draw_heads(rng, 6, 2), x, order=draw_order(rng, 4))
    check_one_head(student, oracle, rng, 2, t=4, d_model=3)
    check_one_head(student, oracle, rng, 3, t=4, d_model=5, mask=oracle.causal_mask(4))


@weight(1)
@number("5.7")
def test_soft_lookup_mixes_values_by_the_temperature(student, rng, oracle):
    """value and weights are PyTorch's with scale 1 / temperature; sqrt(d) gives the six words."""
    for t, d, d_v, temperature in ((1, 2, 1, 5.0), (3, 1, 4, 2), (5, 3, 2, 1.0), (4, 6, 3, 0.3)):
        query, keys, values = (
            torch.from_numpy(rng.normal(size=size)) for size in ((d,), (t, d), (t, d_v))
        )
        situation = f"temperature {temperature}"
        check_lookup(student, oracle, query, keys, values, temperature, situation)
    case = SIX_WORDS.as_tensors()
    expected = [torch.from_numpy(array[0]) for array in (SIX_WORDS_OUT, SIX_WORDS_WEIGHTS)]
    arguments = (case.q[0], case.k, case.v, 2.0)
    compare_lookup(student, arguments, *expected, situation="the six words", tolerance=WORKED)
    check_lookup(student, oracle, query.float(), keys.float(), values.float(), 0.7, "float32")
    views = as_view(sliced, query), as_view(transposed, keys), as_view(sliced, values)
    check_lookup(student, oracle, *views, 0.7, "views")
    lookup = student.attention.soft_lookup
    check_unchanged("soft_lookup", lookup, query, keys, values, 0.0)


@weight(1)
@number("5.7")
def test_soft_lookup_becomes_hard_as_the_temperature_goes_to_zero(student, rng):
    """Temperature 0: all weight on the best key, or in equal parts on those that tie exactly."""
    query, values = doubles([1.0, 2.0]), torch.from_numpy(rng.normal(size=(4, 3)))
    clear = doubles([[2.0, 1.0], [-9.0, 3.0], [0.0, 3.0], [1.0, 1.0]])
    check_hard_lookup(student, query, clear, values, winners=[2], temperatures=(0.0, 0, 1e-6, 1e-3))
    check_hard_lookup(
        student, query, 100 * clear - 1000, values, winners=[2], temperatures=(0.0, 1e-6)
    )
    tied = doubles([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0], [5.0, 0.0]])
    check_hard_lookup(
        student, query, tied, values, winners=[0, 2, 3], temperatures=(0.0, 1e-6, 1e-2)
    )
    check_hard_lookup(
        student,
        query.float(),
        tied.float(),
        values.float(),
        winners=[0, 2, 3],
        temperatures=(0.0, 1e-6),
    )
    near = doubles([[1.0, 2.0], [1.0, 2.0 + 1e-9], [0.0, 1.0], [0.0, 0.0]])
    check_hard_lookup(student, query, near, values, winners=[1], temperatures=(0.0,))


@weight(1)
@number("5.7")
def test_soft_lookup_spreads_out_when_hot_and_refuses_what_makes_no_sense(student, rng):
    """Every key weighs the same at a huge temperature; negative ones and bad shapes are refused."""
    query, keys, values = (torch.from_numpy(rng.normal(size=s)) for s in ((3,), (5, 3), (5, 2)))
    weights = doubles([0.2] * 5)
    arguments = (query, keys, values, 1e12)
    compare_lookup(student, arguments, values.mean(dim=0), weights, situation="a huge temperature")
    lookup = student.attention.soft_lookup
    for situation, args in (
        ("a negative temperature", (query, keys, values, -1.0)),
        ("an infinite temperature", (query, keys, values, math.inf)),
        ("a temperature that is NaN", (query, keys, values, math.nan)),
        ("a query of another length", (query[:2], keys, values, 1.0)),
        ("another number of values than keys", (query, keys, values[:4], 1.0)),
        ("a query of two axes", (query[None], keys, values, 1.0)),
        ("no keys", (query, keys[:0], values[:0], 1.0)),
    ):
        check_refused(situation, lookup, *args)


# The lab


@weight(1)
@number("5.8")
def test_q1_the_query_finds_the_nearest_hour(lab):
    """Lab, question 1: the hour 14 has the largest score."""
    check_nearest_hour(array_answer(lab, "q1_query", (2,)), 14)


@weight(2)
@number("5.8")
def test_q2_the_temperature_halves_the_weight_of_the_neighbours(lab):
    """Lab, question 2: exp(-1 / (2 T)) is 1/2."""
    check_number(lab, "q2_temperature", 0.5 / math.log(2), tolerance=0.01)


@weight(2)
@number("5.8")
def test_q4_the_variance_of_scores_of_uniform_numbers_is_right(lab):
    """Lab, question 4: 64 products, each with the variance of a uniform number squared."""
    check_number(lab, "q4_variance", 64 * ((1 - -1) ** 2 / 12) ** 2, tolerance=0.4)


@weight(1)
@number("5.9")
def test_q7_the_first_four_positions_look_two_further(lab):
    """Lab, question 7: position i looks at position i + 2."""
    check_two_further(array_answer(lab, "q7_scores", (6, 6)), range(4))


@weight(2)
@number("5.9")
def test_q8_an_even_head_under_a_causal_mask_looks_much_at_the_first_word(lab):
    """Lab, question 8: the first column of equal weights over 1, 2, ..., 6 keys."""
    column = (np.tri(6) / np.tri(6).sum(axis=1, keepdims=True))[:, 0]
    check_number(lab, "q8_total", column.sum(), tolerance=0.01)
