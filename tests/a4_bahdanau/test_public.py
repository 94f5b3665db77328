"""The public tests of assignment 4: translation with attention."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.data.numbers import PADDING
from common.labs.answer_checks import check_number
from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import check
from tests.a4_bahdanau.attention_cases import (
    blinded,
    check_attention,
    check_attention_views,
    check_masks_refused,
    check_scores_refused,
    check_softmax,
    check_softmax_gradient,
    check_softmax_stays_apart,
    draw_attention_inputs,
    draw_step,
    draw_whole,
)
from tests.a4_bahdanau.cases import (
    as_single,
    as_views,
    bad_ids,
    bad_sources,
    bad_targets,
    check_batches_refused,
    check_each_refused,
    check_first_parameters,
    check_module,
    check_module_gradients,
    check_stays_apart,
    draw_floats,
    draw_ids,
    draw_inputs,
    draw_mask,
    draw_module,
    draw_source,
    draw_target,
)
from tests.a4_bahdanau.lab_cases import share_of_longer_french, share_of_padding
from tests.a4_bahdanau.search_cases import (
    check_beam_stories,
    check_greedy,
    check_greedy_stories,
    check_loss,
    check_loss_gradients,
    check_searches_stay_apart,
    check_single_beam,
    check_widest_beam,
    draw_sources,
    draw_translator,
)
from tests.a4_bahdanau.story_cases import LETTERS, STORIES, flat_model, story_model
from tests.a4_bahdanau.training_cases import (
    TINY,
    broken,
    check_alignment,
    check_every_pair_once,
    check_exact_match,
    check_no_gradient,
    check_number_words,
    check_orders,
    check_stops,
    check_told_alignments,
    check_training,
    draw_pairs,
)

SINGLE = torch.float32

# Exercise 4.1


@weight(1)
@number("4.1")
def test_masked_softmax_without_a_mask_is_softmax(student, rng, oracle):
    """out is PyTorch's over the last axis, for any axes in front and for sizes of 1."""
    for shape in ((5,), (3, 4), (2, 3, 4), (4, 1), (1, 1, 1), (2, 1, 3, 5)):
        check_softmax(
            student, oracle, draw_floats(rng, *shape), None, situation=f"scores of {shape}"
        )
    scores = draw_floats(rng, 3, 4)
    check_softmax(student, oracle, scores, torch.ones(3, 4, dtype=torch.bool), situation="all True")


@weight(1)
@number("4.1")
def test_masked_softmax_shares_out_one_among_the_allowed_places(student, rng, oracle):
    """Masks of the scores' shape and those that broadcast; exactly 0 where the mask is False."""
    for shape, mask_shape in (
        ((5,), (5,)),
        ((3, 4), (3, 4)),
        ((3, 4), (4,)),
        ((3, 4), (1, 4)),
        ((2, 3, 4), (2, 1, 4)),
        ((2, 3, 4), (3, 4)),
        ((2, 3, 4, 5), (2, 1, 1, 5)),
    ):
        scores, mask = draw_floats(rng, *shape), draw_mask(rng, *mask_shape)
        situation = f"scores of {shape}, a mask of {mask_shape}"
        check_softmax(student, oracle, scores, mask, situation=situation)


@weight(1)
@number("4.1")
def test_masked_softmax_gives_zeros_to_a_row_without_any_place(student, rng, oracle):
    """A row that is all False gets zeros, and its scores a gradient of zero: no NaN."""
    scores, mask = draw_floats(rng, 2, 3, 4), draw_mask(rng, 2, 3, 4)
    mask[0, 1] = mask[1, 2] = False
    check_softmax(student, oracle, scores, mask, situation="rows without any place")
    check_softmax_gradient(
        student, oracle, rng, scores, mask=mask, situation="rows without any place"
    )
    mask = torch.zeros(4, dtype=torch.bool)
    check_softmax(student, oracle, scores, mask, situation="nothing is allowed")
    check_softmax_gradient(student, oracle, rng, scores, mask=mask, situation="nothing is allowed")


@weight(1)
@number("4.1")
def test_masked_softmax_has_the_gradient_of_softmax(student, rng, oracle):
    """The gradient is PyTorch's under a random one, with and without a mask."""
    check_softmax_gradient(
        student, oracle, rng, draw_floats(rng, 3, 5), mask=None, situation="no mask"
    )
    for shape, mask_shape in (((3, 4), (3, 4)), ((2, 3, 4), (2, 1, 4)), ((5,), (5,))):
        scores, mask = draw_floats(rng, *shape), draw_mask(rng, *mask_shape)
        check_softmax_gradient(
            student, oracle, rng, scores, mask=mask, situation=f"a mask of {mask_shape}"
        )


@weight(1)
@number("4.1")
def test_masked_softmax_takes_huge_scores_views_and_float32_and_leaves_them_alone(
    student, rng, oracle
):
    """Scores near 1e4 and -1e4, any number at hidden places, types, views; odd input is refused."""
    scores, mask = draw_floats(rng, 3, 4), draw_mask(rng, 3, 4)
    other = (draw_floats(rng, 3, 4), draw_mask(rng, 4))
    check_softmax_stays_apart(student, oracle, (scores, mask), other)
    for shift in (1e4, -1e4):
        check_softmax(student, oracle, scores + shift, mask, situation=f"scores near {shift:g}")
        check_softmax(
            student, oracle, scores + shift, None, situation=f"scores near {shift:g}, no mask"
        )
    for hidden in (1e300, -1e300, 1e9):
        lured = scores.masked_fill(~mask, hidden)
        check_softmax(student, oracle, lured, mask, situation=f"{hidden:g} where the mask is False")
        check_softmax_gradient(
            student, oracle, rng, lured, mask=mask, situation="huge hidden scores"
        )
    check_softmax(student, oracle, scores.float(), mask, situation="float32")
    check_softmax_gradient(student, oracle, rng, scores.float(), mask=mask, situation="float32")
    check_softmax(student, oracle, *as_views(scores, mask), situation="views")
    check_masks_refused(student.masked_softmax, (scores,), mask)
    check_scores_refused(student, scores)


# Exercise 4.2


@weight(1)
@number("4.2")
def test_additive_attention_has_the_parameters_of_the_docstring(student):
    """query.weight, key.weight and score.weight, with their shapes, and nothing else."""
    check_first_parameters(student, "AdditiveAttention", 3, 5, 4)
    check_first_parameters(student, "AdditiveAttention", 4, 2, 1)


@weight(1)
@number("4.2")
def test_additive_attention_weighs_all_keys_without_a_mask(student, rng, oracle):
    """context and weights for queries and keys of different sizes, and for a single key."""
    for n, t, q, k, h in ((2, 5, 3, 4, 6), (3, 4, 5, 2, 1), (1, 3, 2, 6, 4), (4, 1, 1, 3, 2)):
        drawn = draw_module(rng, "AdditiveAttention", q, k, h)
        situation = f"{n} sentences of {t} keys"
        check_attention(
            student,
            oracle,
            drawn,
            draw_attention_inputs(rng, n, t, q, key_size=k),
            situation=situation,
        )


@weight(2)
@number("4.2")
def test_additive_attention_looks_only_at_keys_that_the_mask_allows(student, rng, oracle):
    """Hidden keys get exactly 0 and play no part; where all are hidden, zeros and no NaN."""
    for n, t, q, k, h in ((2, 5, 3, 4, 6), (3, 4, 2, 5, 3), (1, 3, 4, 2, 5)):
        drawn, mask = draw_module(rng, "AdditiveAttention", q, k, h), draw_mask(rng, n, t)
        inputs = draw_attention_inputs(rng, n, t, q, key_size=k, mask=mask)
        check_attention(student, oracle, drawn, inputs, situation="a mask")
        check_attention(
            student, oracle, drawn, blinded(inputs), situation="huge numbers in hidden keys"
        )
        mask[-1] = False
        check_attention(
            student, oracle, drawn, inputs, situation="a sentence in which all is hidden"
        )


@weight(2)
@number("4.2")
def test_additive_attention_has_all_gradients(student, rng, oracle):
    """Those of query, keys and the three weights, through context and weights, with a mask too."""
    drawn = draw_module(rng, "AdditiveAttention", 3, 4, 6)
    inputs = draw_attention_inputs(rng, 2, 5, 3, key_size=4)
    check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="no mask")
    mask = draw_mask(rng, 2, 5)
    inputs = (*inputs, mask)
    check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="a mask")
    check_module_gradients(
        student, oracle, rng, drawn, inputs=blinded(inputs), situation="huge hidden keys"
    )
    mask[0] = False
    check_module_gradients(
        student, oracle, rng, drawn, inputs=inputs, situation="a sentence that sees nothing"
    )


@weight(1)
@number("4.2")
def test_additive_attention_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, calls that stay apart; a ValueError for odd masks, sizes."""
    drawn, mask = draw_module(rng, "AdditiveAttention", 3, 5, 4, dtype=SINGLE), draw_mask(rng, 3, 4)
    inputs = draw_attention_inputs(rng, 3, 4, 3, key_size=5, mask=mask, dtype=SINGLE)
    check_attention(student, oracle, drawn, inputs, situation="float32")
    check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="float32")
    drawn = draw_module(rng, "AdditiveAttention", 3, 5, 4)
    first = draw_attention_inputs(rng, 3, 4, 3, key_size=5, mask=mask)
    check_attention_views(student, oracle, drawn, first)
    second = draw_attention_inputs(rng, 3, 4, 3, key_size=5, mask=draw_mask(rng, 3, 4))
    check_stays_apart(student, oracle, drawn, first, second)
    check_masks_refused(drawn.on(student), first[:2], mask)
    check_batches_refused(drawn.on(student), first[:2])


# Exercise 4.3


@weight(1)
@number("4.3")
def test_encoder_has_the_parameters_of_the_docstring(student):
    """An embedding and the eight weights of a bidirectional GRU, with the names of nn.GRU."""
    check_first_parameters(student, "Encoder", 7, 3, 4)
    check_first_parameters(student, "Encoder", 4, 1, 2)


@weight(1)
@number("4.3")
def test_encoder_reads_a_sentence_in_both_directions(student, rng, oracle):
    """states and final are those of an nn.GRU for each direction, also for a single id."""
    for n, t, v, e, h in ((2, 5, 7, 3, 4), (3, 4, 9, 2, 1), (1, 6, 5, 4, 3), (2, 1, 6, 3, 2)):
        drawn = draw_module(rng, "Encoder", v, e, h)
        source = draw_source(rng, [t] * n, v)
        check_module(student, oracle, drawn, (source,), situation=f"{n} sentences of {t} ids")


@weight(2)
@number("4.3")
def test_encoder_gives_a_sentence_the_same_numbers_with_any_padding(student, rng, oracle):
    """Sentences of different lengths in any order; zeros at padding; columns of padding alone."""
    for lengths, t in (([5, 3, 1], 5), ([2, 4, 1, 4, 3], 4), ([1, 3], 6), ([2], 5)):
        drawn = draw_module(rng, "Encoder", 7, 3, 4)
        source = draw_source(rng, lengths, 7, t)
        check_module(
            student, oracle, drawn, (source,), situation=f"lengths {lengths} in {t} columns"
        )


@weight(1)
@number("4.3")
def test_encoder_has_all_gradients(student, rng, oracle):
    """Those of the embedding and of all weights of the GRU, with padding."""
    drawn = draw_module(rng, "Encoder", 7, 3, 4)
    for lengths, t in (([4, 4], 4), ([2, 5, 3], 6)):
        source = draw_source(rng, lengths, 7, t)
        situation = f"lengths {lengths} in {t} columns"
        check_module_gradients(student, oracle, rng, drawn, inputs=(source,), situation=situation)


@weight(1)
@number("4.3")
def test_encoder_keeps_float32_and_refuses_what_is_no_source(student, rng, oracle):
    """Types, views, calls that stay apart; ids out of range, empty sources, padding in between."""
    drawn, source = draw_module(rng, "Encoder", 7, 3, 4, dtype=SINGLE), draw_source(rng, [2, 4], 7)
    check_module(student, oracle, drawn, (source,), situation="float32")
    check_module_gradients(student, oracle, rng, drawn, inputs=(source,), situation="float32")
    drawn = draw_module(rng, "Encoder", 7, 3, 4)
    check_module(student, oracle, drawn, as_views(source), situation="views")
    other = draw_source(rng, [3, 1, 2], 7, 5)
    check_stays_apart(student, oracle, drawn, (source,), (other,))
    check_each_refused(drawn.on(student), (), bad_sources(source, 7))


# Exercise 4.4


@weight(1)
@number("4.4")
def test_fixed_context_decoder_has_the_parameters_of_the_docstring(student):
    """embedding, initial, cell and output, with their shapes, and nothing else."""
    check_first_parameters(student, "FixedContextDecoder", 7, 3, 5, 4)
    check_first_parameters(student, "FixedContextDecoder", 4, 2, 1, 3)


@weight(1)
@number("4.4")
def test_fixed_context_decoder_starts_from_the_context(student, rng, oracle):
    """state_0 is the tanh of W c + b, with gradients."""
    for n, sizes in ((2, (7, 3, 5, 4)), (1, (5, 2, 3, 6))):
        drawn = draw_module(rng, "FixedContextDecoder", *sizes)
        inputs = (draw_floats(rng, n, sizes[2]),)
        check_module(student, oracle, drawn, inputs, situation=f"{n} sentences", method="start")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation=f"{n} sentences", method="start"
        )


@weight(1)
@number("4.4")
def test_fixed_context_decoder_takes_one_step(student, rng, oracle):
    """Logits and the new state, from any state, with gradients; special ids are like others."""
    for n, (v, e, c, h) in ((3, (7, 3, 5, 4)), (1, (5, 2, 3, 6)), (8, (6, 4, 2, 3))):
        drawn = draw_module(rng, "FixedContextDecoder", v, e, c, h)
        token = torch.arange(n) % v
        inputs = (token, draw_floats(rng, n, h), draw_floats(rng, n, c))
        check_module(student, oracle, drawn, inputs, situation=f"{n} sentences", method="step")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation=f"{n} sentences", method="step"
        )
    check_each_refused(drawn.on(student).step, (), bad_ids(token, v), *inputs[1:])


@weight(2)
@number("4.4")
def test_fixed_context_decoder_reads_a_whole_target(student, rng, oracle):
    """Teacher forcing: logits[:, k] are those after inputs 0 to k, also for one step."""
    for n, u, (v, e, c, h) in ((2, 4, (7, 3, 5, 4)), (3, 1, (5, 2, 3, 6)), (1, 5, (6, 4, 2, 3))):
        drawn = draw_module(rng, "FixedContextDecoder", v, e, c, h)
        inputs = (draw_inputs(rng, v, n, u), draw_floats(rng, n, c))
        check_module(student, oracle, drawn, inputs, situation=f"{n} sentences, {u} steps")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation=f"{n} sentences, {u} steps"
        )
    inputs[0][0, 2:] = PADDING
    check_module(student, oracle, drawn, inputs, situation="padding in a target")


@weight(1)
@number("4.4")
def test_fixed_context_decoder_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, calls that stay apart; a ValueError for odd ids, sizes."""
    single = draw_module(rng, "FixedContextDecoder", 7, 3, 5, 4, dtype=SINGLE)
    inputs = (draw_inputs(rng, 7, 2, 3), draw_floats(rng, 2, 5, dtype=SINGLE))
    check_module(student, oracle, single, inputs, situation="float32")
    check_module_gradients(student, oracle, rng, single, inputs=inputs, situation="float32")
    drawn = draw_module(rng, "FixedContextDecoder", 7, 3, 5, 4)
    first, second = ((draw_inputs(rng, 7, 2, 3), draw_floats(rng, 2, 5)) for _ in range(2))
    check_module(student, oracle, drawn, as_views(*first), situation="views")
    check_stays_apart(student, oracle, drawn, first, second)
    module = drawn.on(student)
    check_each_refused(module, (), bad_ids(first[0], 7), first[1])
    check_refused("no steps at all", module, first[0][:, :0], first[1])
    check_batches_refused(module, first)
    first, second = (
        (draw_ids(rng, 7, 2), draw_floats(rng, 2, 4), draw_floats(rng, 2, 5)) for _ in range(2)
    )
    check_stays_apart(student, oracle, drawn, first, second, "step")
    check_module(student, oracle, drawn, as_views(*first), situation="views", method="step")
    check_module(student, oracle, single, as_single(*first), situation="float32", method="step")
    check_module(
        student,
        oracle,
        single,
        as_views(*as_single(first[2])),
        situation="float32, views",
        method="start",
    )
    check_batches_refused(module.step, first)
    check_batches_refused(module.start, first[2:])


# Exercise 4.5


@weight(1)
@number("4.5")
def test_attention_decoder_has_the_parameters_of_the_docstring(student):
    """Those of FixedContextDecoder, and three of the attention."""
    check_first_parameters(student, "AttentionDecoder", 7, 3, 5, 4, 6)
    check_first_parameters(student, "AttentionDecoder", 4, 2, 1, 3, 2)


@weight(1)
@number("4.5")
def test_attention_decoder_starts_from_the_final_state(student, rng, oracle):
    """state_0 is the tanh of W final + b, with gradients."""
    for n, sizes in ((2, (7, 3, 5, 4, 6)), (1, (5, 2, 3, 6, 1))):
        drawn, inputs = (
            draw_module(rng, "AttentionDecoder", *sizes),
            (draw_floats(rng, n, sizes[2]),),
        )
        check_module(student, oracle, drawn, inputs, situation=f"{n} sentences", method="start")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation=f"{n} sentences", method="start"
        )


@weight(1)
@number("4.5")
def test_attention_decoder_looks_from_the_state_before_the_step(student, rng, oracle):
    """Logits, the new state and the weights of one step, with a mask and without."""
    for n, t, sizes in ((3, 4, (7, 3, 5, 4, 6)), (1, 3, (5, 2, 4, 3, 2)), (2, 1, (6, 4, 2, 5, 3))):
        drawn = draw_module(rng, "AttentionDecoder", *sizes)
        inputs = draw_step(rng, n, t, sizes)
        check_module(student, oracle, drawn, inputs, situation="no mask", method="step")
        if t > 1:
            masked = (*inputs, draw_mask(rng, n, t))
            check_module(student, oracle, drawn, masked, situation="a mask", method="step")
            check_module_gradients(
                student, oracle, rng, drawn, inputs=masked, situation="a mask", method="step"
            )
    check_each_refused(drawn.on(student).step, (), bad_ids(inputs[0], 6), *inputs[1:])


@weight(2)
@number("4.5")
def test_attention_decoder_looks_anew_at_every_step(student, rng, oracle):
    """Teacher forcing: the logits and weights of all steps, with a mask and without."""
    for n, u, t, sizes in (
        (2, 4, 3, (7, 3, 5, 4, 6)),
        (3, 1, 5, (5, 2, 4, 3, 2)),
        (1, 5, 4, (6, 4, 2, 5, 3)),
    ):
        drawn, inputs = (
            draw_module(rng, "AttentionDecoder", *sizes),
            draw_whole(rng, n, u, t, sizes=sizes),
        )
        check_module(student, oracle, drawn, inputs, situation=f"{n} sentences, {u} steps")
        masked = (*inputs, draw_mask(rng, n, t))
        check_module(student, oracle, drawn, masked, situation=f"{n} sentences, {u} steps, a mask")
    masked[0][0, 2:] = PADDING
    check_module(student, oracle, drawn, masked, situation="padding in a target")
    masked[3][0] = False
    check_module(student, oracle, drawn, masked, situation="a sentence in which all is hidden")


@weight(2)
@number("4.5")
def test_attention_decoder_has_all_gradients(student, rng, oracle):
    """Those of final, keys and all weights, through logits and weights, over several steps."""
    sizes = (7, 3, 5, 4, 6)
    drawn = draw_module(rng, "AttentionDecoder", *sizes)
    inputs = draw_whole(rng, 2, 3, 4, sizes=sizes)
    check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="no mask")
    inputs = (*inputs, draw_mask(rng, 2, 4))
    check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="a mask")
    inputs[3][1] = False
    check_module_gradients(
        student, oracle, rng, drawn, inputs=inputs, situation="a sentence that sees nothing"
    )


@weight(1)
@number("4.5")
def test_attention_decoder_keeps_float32_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay, calls that stay apart; odd ids, masks, sizes: refused."""
    sizes, mask = (7, 3, 5, 4, 6), draw_mask(rng, 2, 3)
    single = draw_module(rng, "AttentionDecoder", *sizes, dtype=SINGLE)
    inputs = draw_whole(rng, 2, 4, 3, sizes=sizes, mask=mask, dtype=SINGLE)
    check_module(student, oracle, single, inputs, situation="float32")
    check_module_gradients(student, oracle, rng, single, inputs=inputs, situation="float32")
    drawn = draw_module(rng, "AttentionDecoder", *sizes)
    first, second = (
        draw_whole(rng, 2, 4, 3, sizes=sizes, mask=draw_mask(rng, 2, 3)) for _ in range(2)
    )
    check_module(student, oracle, drawn, as_views(*first), situation="views")
    check_stays_apart(student, oracle, drawn, first, second)
    steps = [draw_step(rng, 2, 3, sizes, mask=draw_mask(rng, 2, 3)) for _ in range(2)]
    check_stays_apart(student, oracle, drawn, *steps, "step")
    check_module(student, oracle, drawn, as_views(*steps[0]), situation="views", method="step")
    check_module(student, oracle, single, as_single(*steps[0]), situation="float32", method="step")
    check_module(
        student,
        oracle,
        single,
        as_views(*as_single(first[1])),
        situation="float32, views",
        method="start",
    )
    module = drawn.on(student)
    check_masks_refused(module, first[:3], mask)
    check_masks_refused(module.step, steps[0][:3], mask)
    check_each_refused(module, (), bad_ids(first[0], 7), *first[1:])
    check_batches_refused(module, first[:3])
    check_batches_refused(module.step, steps[0][:3])
    check_batches_refused(module.start, first[1:2])


# Exercise 4.6


@weight(1)
@number("4.6")
def test_loss_is_the_mean_over_all_ids_that_are_to_be_predicted(student, rng, oracle):
    """END counts, BEGIN and padding don't; more padding changes nothing; with both decoders."""
    for attention in (True, False):
        drawn = draw_translator(rng, attention)
        for lengths, counts, t, u in (
            ([3, 3], [2, 2], 3, 4),
            ([4, 1, 2], [1, 4, 2], 4, 6),
            ([2, 4, 1], [3, 0, 1], 6, 8),
            ([2], [0], 2, 2),
        ):
            source, target = draw_sources(rng, drawn, lengths, t), draw_target(rng, counts, 5, u)
            situation = f"attention {attention}, targets of {counts} words in {u} columns"
            check_loss(student, oracle, drawn, source, target, situation)
    drawn = draw_translator(rng, True, dtype=SINGLE)
    check_loss(student, oracle, drawn, source, target, "float32")
    source, target = draw_sources(rng, drawn, [3, 1, 2]), draw_target(rng, [2, 1, 3], 5)
    drawn = draw_translator(rng, True)
    check_loss(student, oracle, drawn, *as_views(source, target), "views")
    model = drawn.on(student)
    check_each_refused(model.loss, (source,), bad_targets(target, 5))
    check_each_refused(model.loss, (), bad_sources(source, 7), target)


@weight(1)
@number("4.6")
def test_loss_has_gradients_for_all_weights(student, rng, oracle):
    """Those of the encoder and of the decoder, with padding in sources and targets."""
    for attention in (True, False):
        drawn = draw_translator(rng, attention)
        source, target = draw_sources(rng, drawn, [3, 1, 2]), draw_target(rng, [1, 3, 2], 5)
        check_loss_gradients(
            student, oracle, drawn, source, target=target, situation=f"attention {attention}"
        )


@weight(1)
@number("4.6")
def test_greedy_decode_writes_the_highest_logit_until_the_end(student):
    """END is left out, PADDING and BEGIN are not; max_length; on a tie, the lowest id."""
    for attention in (True, False):
        drawn = story_model(list(STORIES.values()), 10, attention=attention)
        for max_length, expected in (
            (8, ("a$", "a$", "$", "a$", "babababa", "_a^_a^_a")),
            (3, ("a$", "a$", "$", "a$", "bab", "_a^")),
            (1, ("a", "a", "$", "a", "b", "_")),
        ):
            check_greedy_stories(
                student, drawn, expected, max_length, situation=f"max_length {max_length}"
            )
    source = torch.tensor([[3, 4], [5, 0]])
    for bias, expected in (
        ((0.0, 1.0, -1.0, 2.0, 2.0, 2.0), [3, 3, 3, 3]),
        ((1.0, 0.0, -1.0, 1.0, 0.0, 1.0), [0, 0, 0, 0]),
        ((0.0, 1.0, 3.0, 2.0, 3.0, 3.0), []),
    ):
        rows = flat_model(6, bias).on(student).greedy_decode(source, 4)
        check(
            rows == [expected, expected],
            "On a tie, greedy_decode must write the lowest id.",
            f"got {rows} where the logits are always {bias}",
        )


@weight(1)
@number("4.6")
def test_greedy_decode_translates_a_sentence_alike_in_every_batch(student, rng, oracle):
    """Sentences of all lengths at once: each id has the highest logit for its sentence alone."""
    for attention in (True, False):
        for sizes in ((7, 5, 4, 3), (30, 20, 6, 8)):
            drawn = draw_translator(rng, attention, sizes)
            source = draw_sources(rng, drawn, [3, 1, 5, 2, 4, 1], 7)
            check_greedy(
                student, oracle, drawn, source, max_length=6, situation=f"attention {attention}"
            )
    drawn = draw_translator(rng, True, dtype=SINGLE)
    source = draw_sources(rng, drawn, [2, 3, 1])
    check_greedy(
        student, oracle, drawn, *as_views(source), max_length=4, situation="float32, views"
    )


@weight(1)
@number("4.6")
def test_beam_decode_of_width_1_is_greedy(student, rng, oracle):
    """Each id has the highest logit, and the score is the mean of the log-probabilities."""
    for attention in (True, False):
        for sizes in ((7, 5, 4, 3), (30, 20, 6, 8)):
            drawn = draw_translator(rng, attention, sizes)
            source = draw_sources(rng, drawn, [3, 1, 5, 2], 6)
            check_single_beam(
                student, oracle, drawn, source, max_length=6, situation=f"attention {attention}"
            )
    drawn = draw_translator(rng, True, dtype=SINGLE)
    source = draw_sources(rng, drawn, [2, 3, 1])
    check_single_beam(
        student, oracle, drawn, *as_views(source), max_length=4, situation="float32, views"
    )
    stories = list(STORIES.values())
    drawn = story_model(stories, 10)
    expected = ("a$", "a$", "$", "a$", "babababa", "_a^_a^_a")
    check_beam_stories(student, drawn, stories, expected, settings=(1, 1.0, 8))


@weight(1)
@number("4.6")
def test_beam_decode_finds_the_best_of_all_if_nothing_is_dropped(student, rng, oracle):
    """A width above the number of all rows of ids: the best of these, whatever alpha is."""
    for attention, max_length in ((True, 4), (False, 3), (True, 1)):
        drawn = draw_translator(rng, attention)
        source = draw_sources(rng, drawn, [3, 1, 2], 4)
        check_widest_beam(
            student, oracle, drawn, source, alphas=(0.0, 1.0, 1.7), max_length=max_length
        )


@weight(2)
@number("4.6")
def test_beam_decode_follows_as_many_beginnings_as_it_is_wide(student):
    """Small stories: a better second, a better third, and an end that takes one of the places."""
    names = ("a better second", "a better third", "an early end")
    stories = [STORIES[name] for name in names]
    for attention, dtype in ((True, torch.float64), (False, torch.float64), (True, SINGLE)):
        drawn = story_model(stories, 10, attention=attention, dtype=dtype)
        for settings, expected in (
            ((2, 0.0, 8), ("b$", "a$", "$")),
            ((2, 1.0, 8), ("b$", "a$", "$")),
            ((3, 0.0, 8), ("b$", "c$", "$")),
            ((3, 1.0, 8), ("b$", "c$", "b$")),
            ((2, 2.0, 8), ("b$", "aaaaaaa$", "aaaaaaa$")),
        ):
            check_beam_stories(student, drawn, stories, expected, settings=settings)


@weight(1)
@number("4.6")
def test_beam_decode_weighs_long_against_short_by_alpha(student):
    """log-probability / length**alpha, END counted; what has not ended is a candidate, too."""
    names = ("a long one", "no end", "special ids")
    stories = [STORIES[name] for name in names]
    drawn = story_model(stories, 10)
    for settings, expected in (
        ((2, 0.0, 8), ("a$", "babababa", "_a$")),
        ((2, 1.0, 8), ("bcdef$", "babababa", "_a^_a^_a")),
        ((3, 0.5, 4), ("a$", "baba", "_a^_")),
        ((2, 1.0, 3), ("a$", "bab", "_a^")),
        ((2, 3.0, 3), ("bcd", "bab", "_a^")),
        ((4, 1.0, 6), ("bcdef$", "bababa", "_a^_a^")),
    ):
        check_beam_stories(student, drawn, stories, expected, settings=settings)


@weight(1)
@number("4.6")
def test_beam_decode_keeps_sentences_and_calls_apart(student, rng):
    """All stories in one batch, in two orders; sources and weights stay; calls give the same."""
    expected = ("b$", "c$", "b$", "bcdef$", "babababa", "_a^_a^_a")
    stories = list(STORIES.values())
    for order in ((0, 1, 2, 3, 4, 5), (5, 3, 1, 4, 0, 2)):
        some = [stories[place] for place in order]
        wanted = [expected[place] for place in order]
        check_beam_stories(student, story_model(some, 12), some, wanted, settings=(3, 1.0, 8))
    for attention in (True, False):
        drawn = draw_translator(rng, attention, dtype=SINGLE)
        source, target = draw_sources(rng, drawn, [3, 1, 2], 4), draw_target(rng, [1, 2, 0], 5)
        check_searches_stay_apart(student, drawn, source, target)


@weight(1)
@number("4.6")
def test_decoding_refuses_what_makes_no_sense(student, rng):
    """A width or a max_length below 1, an alpha below 0 or not finite, no source, logits of NaN."""
    drawn = draw_translator(rng, True)
    model, source = drawn.on(student), draw_sources(rng, drawn, [3, 2])
    check(model.greedy_decode(source) is not None, "greedy_decode returned None.")
    check(model.beam_decode(source, 2) is not None, "beam_decode returned None.")
    check_refused("a max_length of 0", model.greedy_decode, source, 0)
    for situation, more in (
        ("a width of 0", (0,)),
        ("a negative width", (-2,)),
        ("a negative alpha", (2, -0.5)),
        ("an infinite alpha", (2, math.inf)),
        ("an alpha that is NaN", (2, math.nan)),
        ("a max_length of 0", (2, 1.0, 0)),
    ):
        check_refused(situation, model.beam_decode, source, *more)
    check_each_refused(model.greedy_decode, (), bad_sources(source, 7))
    check_each_refused(model.beam_decode, (), bad_sources(source, 7), 2)
    for attention in (True, False):
        drawn = draw_translator(rng, attention)
        model = broken(drawn, "decoder.output.bias", 0, math.nan).on(student)
        check_refused("logits that are not finite", model.greedy_decode, source)
        check_refused("logits that are not finite", model.beam_decode, source, 2)


# Exercise 4.7


@weight(1)
@number("4.7")
def test_train_takes_the_steps_of_adam_with_clipped_gradients(student, rng, oracle):
    """Loss, norm and learning rate of each step, and the weights at the end, with all pairs."""
    settings = {"epochs": 4, "learning_rate": 0.05}
    for attention, max_norm, situation in (
        (True, 1000.0, "nothing to clip"),
        (True, 0.1, "every step clipped"),
        (False, 0.5, "no attention"),
    ):
        drawn = draw_module(rng, "Seq2Seq", *TINY, attention)
        source, target = draw_pairs(rng, [3, 1, 2], [1, 3, 2])
        config = settings | {"max_norm": max_norm}
        check_training(student, oracle, drawn, source, target, config, situation)
    check_training(student, oracle, drawn, *as_views(source, target), config, "views")


@weight(1)
@number("4.7")
def test_train_uses_every_pair_once_in_each_epoch(student, rng, oracle):
    """Also when the last mini-batch is smaller; in a new order each time, decided by the seed."""
    check_every_pair_once(student, oracle, rng, n=7, batch_size=3, epochs=2)
    check_orders(student, oracle, rng)


@weight(1)
@number("4.7")
def test_train_stops_when_a_loss_is_not_finite(student, rng, oracle):
    """NaN and infinity raise a ValueError that names the step; bad pairs are refused."""
    check_stops(student, oracle, rng)
    drawn = draw_module(rng, "Seq2Seq", *TINY, True)
    (source, target), config = draw_pairs(rng, [3, 2], [1, 2]), student.Config(epochs=1)
    model = drawn.on(student)
    check_each_refused(student.train, (model,), bad_sources(source, TINY[0]), target, config)
    check_each_refused(student.train, (model, source), bad_targets(target, TINY[1]), config)


@weight(1)
@number("4.7")
def test_exact_match_counts_translations_without_a_mistake(student):
    """Too long, too short, without an end, or with padding in it: wrong. Very long can be right."""
    for situation, cases in (
        ("all kinds", (("abc$", "abc"), ("abc$", "ab"), ("ab$", "abc"), ("abd$", "abc"))),
        ("right ones", (("abc$", "abc"), ("$", ""), ("f$", "f"))),
        ("one id too many", (("abcd$", "abc"),)),
        ("no end", (("a", "aaa"), ("ba", "ba"), ("bac$", "bac"))),
        ("padding in between", (("ab_$", "ab"), ("a_b$", "ab"), ("abc$", "abc"))),
        ("nothing written", (("$", "a"), ("$", ""))),
    ):
        check_exact_match(student, cases, LETTERS, 9, situation=situation)
    check_exact_match(
        student,
        (("ab$", "ab"), ("ba$", "ab")),
        LETTERS,
        9,
        situation="no attention",
        attention=False,
    )
    cases = (("ab$", "ab"), ("c$", "cd"), ("def$", "def"), ("$", ""))
    check_exact_match(student, cases, LETTERS, 9, situation="float32, views", dtype=SINGLE)
    letters = {letter: 3 + place for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    cases = (("zyxwvutsrqponmlkjihgfedcba$", "zyxwvutsrqponmlkjihgfedcba"), ("b$", "b"))
    check_exact_match(student, cases, letters, 29, situation="26 words")
    drawn = flat_model(6, (0.0, 0.0, 1.0, 0.0))
    source, target = torch.tensor([[3, 4], [5, 0]]), torch.tensor([[1, 2, 0], [1, 3, 2]])
    match = student.exact_match
    check_each_refused(match, (drawn.on(student),), bad_sources(source, 6), target)
    check_each_refused(match, (drawn.on(student), source), bad_targets(target, 4))


@weight(1)
@number("4.7")
def test_alignment_gives_the_tokens_of_greedy_decoding_with_their_end(student):
    """END is there if it was written; nothing comes after max_length; padding has no weight."""
    check_told_alignments(student, ("abc$", "ab", "$", "ab_c$"), LETTERS, 9, max_length=6)
    check_told_alignments(student, ("abc$", "ab", "$", "ab_c$"), LETTERS, 9, max_length=3)
    drawn = flat_model(6, (0.0, 0.0, 1.0, 0.0))
    model, source = drawn.on(student), torch.tensor([3, 4, 0])
    check_unchanged("alignment", student.alignment, model, source)
    check_refused("a max_length of 0", student.alignment, model, source, 0)
    for situation, bad in bad_ids(source, 6):
        check_refused(situation, student.alignment, model, bad)
    check_refused("padding between ids", student.alignment, model, torch.tensor([3, 0, 4]))
    model = broken(drawn, "decoder.output.bias", 0, math.nan).on(student)
    check_refused("logits that are not finite", student.alignment, model, source)
    plain = flat_model(6, (0.0, 0.0, 1.0, 0.0), attention=False).on(student)
    check_refused("a model without attention", student.alignment, plain, source)


@weight(1)
@number("4.7")
def test_alignment_shows_the_weights_of_every_step(student, rng, oracle):
    """matrix[k, j] is the weight of source[j] when tokens[k] was written; it has no gradient."""
    for sizes, length, t in (((7, 5, 4, 3), 4, 4), ((9, 12, 3, 5), 3, 6), ((7, 5, 4, 3), 1, 2)):
        drawn = draw_translator(rng, True, sizes)
        for _ in range(3):
            ids = draw_sources(rng, drawn, [length], t)[0]
            check_alignment(
                student, oracle, drawn, ids, max_length=5, situation=f"{length} ids in {t} columns"
            )
    check_no_gradient(student, drawn, ids)
    drawn = draw_translator(rng, True, dtype=SINGLE)
    ids = torch.tensor([3, 5, 4, 0])
    check_alignment(
        student, oracle, drawn, *as_views(ids), max_length=4, situation="float32, views"
    )


@weight(3)
@number("4.7")
@tags("training")
def test_a_model_translates_90_percent_of_held_out_numbers_after_one_epoch(student, rng):
    """4,000 pairs in mini-batches of 32, and the usual sizes; 1,000 other numbers decide."""
    check_number_words(student, rng)


# The lab


@weight(2)
@number("4.8")
def test_q1_the_pairs_with_a_longer_french_side_are_counted(lab):
    """Lab, question 1: a part of the 8,000 training pairs."""
    check_number(lab, "q1_share", share_of_longer_french(), tolerance=0.002)


@weight(1)
@number("4.8")
def test_q2_counting_can_not_tell_two_equal_words_apart(lab):
    """Lab, question 2: equal words have equal chances, and so equal weights."""
    check_number(lab, "q2_ratio", 1)


@weight(1)
@number("4.8")
def test_q4_the_noise_in_one_vector_is_right(lab):
    """Lab, question 4: the root of 16 variances of 1/64."""
    check_number(lab, "q4_noise", math.sqrt(16 * (1 / 64)), tolerance=0.03)


@weight(2)
@number("4.9")
def test_q8_the_padding_of_a_batch_is_counted(lab):
    """Lab, question 8: the part of the rectangle that no word fills."""
    check_number(lab, "q8_padding", share_of_padding(), tolerance=0.002)


@weight(1)
@number("4.9")
def test_q9_padding_takes_weight_where_no_mask_keeps_it_out(lab):
    """Lab, question 9: nine of twelve terms of the softmax are exp(0)."""
    weights = torch.softmax(torch.tensor([2.0, 1.0] + [0.0] * 10).double(), dim=0)
    check_number(lab, "q9_lost", weights[3:].sum().item(), tolerance=0.001)


@weight(1)
@number("4.9")
def test_q10_the_greedy_sentence_has_the_right_probability(lab):
    """Lab, question 10: the likeliest word at each of three steps."""
    check_number(lab, "q10_greedy", 0.5 * 0.4 * 0.5)
