"""The hidden tests of assignment 4: the public tests' properties on other shapes and seeds."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, weight

from common.data.numbers import END, PADDING
from common.labs.answer_checks import check_choice, check_number
from common.testing.checks import check_refused
from common.testing.compare import check
from tests.a4_bahdanau.attention_cases import (
    blinded,
    check_attention,
    check_attention_views,
    check_masks_refused,
    check_softmax,
    check_softmax_gradient,
    check_softmax_stays_apart,
    draw_attention_inputs,
    draw_step,
    draw_whole,
)
from tests.a4_bahdanau.cases import (
    FIRST_WORD,
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
from tests.a4_bahdanau.search_cases import (
    beams,
    best_of,
    check_beam_stories,
    check_greedy,
    check_greedy_stories,
    check_loss,
    check_loss_gradients,
    check_searches_stay_apart,
    check_single_beam,
    check_widest_beam,
    compare_beam,
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
def test_masked_softmax_is_right_for_other_shapes_and_masks(student, rng, oracle):
    """With and without a mask, with masks that broadcast, and exactly 0 where they are False."""
    for shape, mask_shape in (
        ((7,), (7,)),
        ((4, 6), (4, 6)),
        ((4, 6), (1, 6)),
        ((3, 2, 5), (3, 1, 5)),
        ((3, 2, 5), (5,)),
        ((2, 4, 1, 3), (4, 1, 3)),
    ):
        scores = draw_floats(rng, *shape)
        check_softmax(student, oracle, scores, None, situation="no mask")
        check_softmax(
            student, oracle, scores, draw_mask(rng, *mask_shape), situation="another mask"
        )


@weight(1)
@number("4.1")
def test_masked_softmax_gives_zeros_to_other_rows_without_any_place(student, rng, oracle):
    """Zeros in out and in the gradient of the scores, never NaN."""
    for shape in ((4, 3), (3, 4, 5)):
        scores, mask = draw_floats(rng, *shape), draw_mask(rng, *shape)
        mask[rng.integers(shape[0])] = False
        situation = "rows without any place"
        check_softmax(student, oracle, scores, mask, situation=situation)
        check_softmax_gradient(student, oracle, rng, scores, mask=mask, situation=situation)


@weight(1)
@number("4.1")
def test_masked_softmax_has_the_gradient_of_softmax_for_other_shapes(student, rng, oracle):
    """With and without masks, under a random gradient."""
    for shape, mask_shape in (((4, 6), (4, 6)), ((3, 2, 5), (3, 1, 5)), ((2, 7), (7,))):
        scores, mask = draw_floats(rng, *shape), draw_mask(rng, *mask_shape)
        check_softmax_gradient(student, oracle, rng, scores, mask=None, situation="no mask")
        check_softmax_gradient(student, oracle, rng, scores, mask=mask, situation="another mask")


@weight(1)
@number("4.1")
def test_masked_softmax_takes_other_huge_scores_and_has_no_side_effects(student, rng, oracle):
    """Huge scores, float32 and views on other shapes; inputs stay; odd masks are refused."""
    scores, mask = draw_floats(rng, 4, 5), draw_mask(rng, 4, 5)
    other = (draw_floats(rng, 4, 5), draw_mask(rng, 4, 5))
    check_softmax_stays_apart(student, oracle, other, (scores, mask))
    for shift in (9e3, -9e3):
        check_softmax(student, oracle, scores + shift, mask, situation="large scores")
        check_softmax(student, oracle, scores + shift, None, situation="large scores, no mask")
        check_softmax_gradient(
            student, oracle, rng, scores + shift, mask=mask, situation="large scores"
        )
    for hidden in (1e200, -1e200, 1e6):
        lured = scores.masked_fill(~mask, hidden)
        check_softmax(
            student, oracle, lured, mask, situation="huge numbers where the mask is False"
        )
    check_softmax(student, oracle, *as_views(scores.float(), mask), situation="float32, views")
    check_masks_refused(student.masked_softmax, (scores,), mask)


# Exercise 4.2


@weight(1)
@number("4.2")
def test_additive_attention_is_right_for_other_sizes(student, rng, oracle):
    """context and weights without a mask; the parameters of other sizes."""
    check_first_parameters(student, "AdditiveAttention", 6, 2, 5)
    for n, t, q, k, h in ((3, 6, 2, 5, 4), (2, 3, 7, 4, 2), (1, 1, 3, 2, 5), (5, 2, 4, 1, 3)):
        drawn = draw_module(rng, "AdditiveAttention", q, k, h)
        inputs = draw_attention_inputs(rng, n, t, q, key_size=k)
        check_attention(student, oracle, drawn, inputs, situation="other sizes")


@weight(1)
@number("4.2")
def test_additive_attention_is_right_for_other_masks(student, rng, oracle):
    """Hidden keys play no part, whatever they hold; where all are hidden, zeros."""
    for n, t, q, k, h in ((4, 6, 2, 5, 3), (2, 3, 5, 4, 6), (1, 5, 3, 2, 4)):
        drawn, mask = draw_module(rng, "AdditiveAttention", q, k, h), draw_mask(rng, n, t)
        inputs = draw_attention_inputs(rng, n, t, q, key_size=k, mask=mask)
        check_attention(student, oracle, drawn, inputs, situation="another mask")
        check_attention(
            student, oracle, drawn, blinded(inputs), situation="huge numbers in hidden keys"
        )
        mask[rng.integers(n)] = False
        check_attention(
            student, oracle, drawn, inputs, situation="a sentence in which all is hidden"
        )


@weight(2)
@number("4.2")
def test_additive_attention_has_all_gradients_for_other_sizes(student, rng, oracle):
    """Those of query, keys and weights, with a mask, and where all is hidden."""
    for n, t, q, k, h in ((3, 4, 2, 5, 6), (2, 6, 5, 3, 4)):
        drawn, mask = draw_module(rng, "AdditiveAttention", q, k, h), draw_mask(rng, n, t)
        inputs = draw_attention_inputs(rng, n, t, q, key_size=k, mask=mask)
        check_module_gradients(student, oracle, rng, drawn, inputs=inputs[:2], situation="no mask")
        check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="another mask")
        mask[rng.integers(n)] = False
        check_module_gradients(
            student, oracle, rng, drawn, inputs=blinded(inputs), situation="all is hidden"
        )


@weight(1)
@number("4.2")
def test_additive_attention_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs stay; odd masks and sizes are refused."""
    mask = draw_mask(rng, 2, 5)
    drawn = draw_module(rng, "AdditiveAttention", 4, 3, 6, dtype=SINGLE)
    inputs = draw_attention_inputs(rng, 2, 5, 4, key_size=3, mask=mask, dtype=SINGLE)
    check_attention_views(student, oracle, drawn, inputs)
    check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="float32")
    drawn = draw_module(rng, "AdditiveAttention", 4, 3, 6)
    first, second = (
        draw_attention_inputs(rng, 2, 5, 4, key_size=3, mask=draw_mask(rng, 2, 5)) for _ in "ab"
    )
    check_stays_apart(student, oracle, drawn, first, second)
    check_masks_refused(drawn.on(student), first[:2], mask)
    check_batches_refused(drawn.on(student), first[:2])


# Exercise 4.3


@weight(1)
@number("4.3")
def test_encoder_is_right_for_other_sizes(student, rng, oracle):
    """states and final without padding, for other sizes; the parameters of other sizes."""
    check_first_parameters(student, "Encoder", 6, 5, 2)
    for n, t, v, e, h in ((3, 4, 8, 5, 2), (2, 7, 5, 2, 6), (1, 1, 6, 3, 3)):
        drawn = draw_module(rng, "Encoder", v, e, h)
        check_module(
            student, oracle, drawn, (draw_source(rng, [t] * n, v),), situation="other sizes"
        )


@weight(1)
@number("4.3")
def test_encoder_gives_the_same_numbers_with_other_padding(student, rng, oracle):
    """Sentences of other lengths, in any order, and with columns of padding alone."""
    for n, t, v, e, h in ((4, 6, 8, 5, 3), (6, 5, 9, 2, 4), (1, 4, 6, 3, 2)):
        drawn = draw_module(rng, "Encoder", v, e, h)
        lengths = [1, *rng.integers(1, t, size=n - 1)]
        check_module(
            student, oracle, drawn, (draw_source(rng, lengths, v, t),), situation="columns to spare"
        )
        lengths[-1] = t
        source = draw_source(rng, lengths, v, t)
        check_module(student, oracle, drawn, (source,), situation="other lengths")


@weight(1)
@number("4.3")
def test_encoder_has_all_gradients_for_other_sizes(student, rng, oracle):
    """Those of the embedding and of the GRU, with padding."""
    for lengths, t, v, e, h in (([3, 5, 1], 5, 6, 4, 2), ([2, 1], 4, 9, 2, 5)):
        drawn, source = draw_module(rng, "Encoder", v, e, h), draw_source(rng, lengths, v, t)
        check_module_gradients(
            student, oracle, rng, drawn, inputs=(source,), situation="other sizes"
        )


@weight(1)
@number("4.3")
def test_encoder_keeps_other_types_and_refuses_what_is_no_source(student, rng, oracle):
    """float32 and views on other shapes; calls stay apart; what is no source is refused."""
    drawn = draw_module(rng, "Encoder", 9, 4, 2, dtype=SINGLE)
    source = draw_source(rng, [3, 5, 2], 9, 6)
    check_module(student, oracle, drawn, as_views(source), situation="float32, views")
    check_module_gradients(student, oracle, rng, drawn, inputs=(source,), situation="float32")
    drawn, other = draw_module(rng, "Encoder", 9, 4, 2), draw_source(rng, [4, 2], 9)
    check_stays_apart(student, oracle, drawn, (other,), (source,))
    check_each_refused(drawn.on(student), (), bad_sources(other, 9))


# Exercise 4.4


@weight(1)
@number("4.4")
def test_fixed_context_decoder_takes_other_first_steps(student, rng, oracle):
    """state_0, and the logits and state after a step, with gradients, for other sizes."""
    check_first_parameters(student, "FixedContextDecoder", 5, 4, 2, 3)
    for n, (v, e, c, h) in ((4, (8, 2, 6, 3)), (1, (6, 5, 1, 4)), (3, (9, 3, 4, 7))):
        drawn, context = (
            draw_module(rng, "FixedContextDecoder", v, e, c, h),
            draw_floats(rng, n, c),
        )
        check_module(student, oracle, drawn, (context,), situation="other sizes", method="start")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=(context,), situation="other sizes", method="start"
        )
        inputs = (draw_ids(rng, v, n), draw_floats(rng, n, h), context)
        check_module(student, oracle, drawn, inputs, situation="other sizes", method="step")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation="other sizes", method="step"
        )


@weight(2)
@number("4.4")
def test_fixed_context_decoder_reads_other_targets(student, rng, oracle):
    """The logits of all steps, with gradients, for other sizes."""
    for n, u, (v, e, c, h) in ((3, 5, (8, 2, 6, 3)), (1, 1, (6, 5, 1, 4)), (4, 2, (9, 3, 4, 7))):
        drawn = draw_module(rng, "FixedContextDecoder", v, e, c, h)
        inputs = (draw_inputs(rng, v, n, u), draw_floats(rng, n, c))
        check_module(student, oracle, drawn, inputs, situation="other sizes")
        check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="other sizes")


@weight(1)
@number("4.4")
def test_fixed_context_decoder_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs stay; odd ids and sizes are refused."""
    single = draw_module(rng, "FixedContextDecoder", 8, 2, 6, 3, dtype=SINGLE)
    inputs = (draw_inputs(rng, 8, 3, 4), draw_floats(rng, 3, 6, dtype=SINGLE))
    check_module(student, oracle, single, as_views(*inputs), situation="float32, views")
    check_module_gradients(student, oracle, rng, single, inputs=inputs, situation="float32")
    drawn = draw_module(rng, "FixedContextDecoder", 8, 2, 6, 3)
    first, second = ((draw_inputs(rng, 8, 3, 4), draw_floats(rng, 3, 6)) for _ in range(2))
    check_stays_apart(student, oracle, drawn, first, second)
    module, step = drawn.on(student), (draw_ids(rng, 8, 3), draw_floats(rng, 3, 3), first[1])
    check_module(
        student,
        oracle,
        single,
        as_views(*as_single(*step)),
        situation="float32, views",
        method="step",
    )
    check_module(student, oracle, drawn, as_views(first[1]), situation="views", method="start")
    check_each_refused(module, (), bad_ids(first[0], 8), first[1])
    check_each_refused(module.step, (), bad_ids(step[0], 8), *step[1:])
    check_batches_refused(module, first)
    check_batches_refused(module.step, step)


# Exercise 4.5


@weight(1)
@number("4.5")
def test_attention_decoder_takes_other_first_steps(student, rng, oracle):
    """state_0, and logits, state and weights after a step, with masks and gradients."""
    check_first_parameters(student, "AttentionDecoder", 5, 4, 2, 3, 6)
    for n, t, sizes in ((4, 5, (8, 2, 6, 3, 5)), (1, 4, (6, 5, 3, 4, 1)), (3, 3, (9, 3, 4, 7, 2))):
        drawn = draw_module(rng, "AttentionDecoder", *sizes)
        final = draw_floats(rng, n, sizes[2])
        check_module(student, oracle, drawn, (final,), situation="other sizes", method="start")
        inputs = draw_step(rng, n, t, sizes, mask=draw_mask(rng, n, t))
        check_module(student, oracle, drawn, inputs[:3], situation="no mask", method="step")
        check_module(student, oracle, drawn, inputs, situation="another mask", method="step")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation="another mask", method="step"
        )


@weight(2)
@number("4.5")
def test_attention_decoder_looks_anew_at_every_step_of_other_targets(student, rng, oracle):
    """Logits, weights and gradients of all steps, with masks, and where all is hidden."""
    for n, u, t, sizes in ((3, 4, 5, (8, 2, 6, 3, 5)), (2, 2, 4, (6, 5, 3, 4, 1))):
        drawn = draw_module(rng, "AttentionDecoder", *sizes)
        inputs = draw_whole(rng, n, u, t, sizes=sizes, mask=draw_mask(rng, n, t))
        check_module_gradients(student, oracle, rng, drawn, inputs=inputs[:3], situation="no mask")
        check_module_gradients(student, oracle, rng, drawn, inputs=inputs, situation="another mask")
        inputs[3][int(rng.integers(n))] = False
        check_module(student, oracle, drawn, inputs, situation="a sentence in which all is hidden")
        check_module_gradients(
            student, oracle, rng, drawn, inputs=inputs, situation="all is hidden"
        )


@weight(1)
@number("4.5")
def test_attention_decoder_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; inputs stay; odd ids, masks and sizes are refused."""
    sizes, mask = (8, 2, 6, 3, 5), draw_mask(rng, 3, 4)
    single = draw_module(rng, "AttentionDecoder", *sizes, dtype=SINGLE)
    inputs = draw_whole(rng, 3, 2, 4, sizes=sizes, mask=mask, dtype=SINGLE)
    check_module(student, oracle, single, as_views(*inputs), situation="float32, views")
    check_module_gradients(student, oracle, rng, single, inputs=inputs, situation="float32")
    drawn = draw_module(rng, "AttentionDecoder", *sizes)
    first, second = (
        draw_whole(rng, 3, 2, 4, sizes=sizes, mask=draw_mask(rng, 3, 4)) for _ in range(2)
    )
    check_stays_apart(student, oracle, drawn, first, second)
    steps = [draw_step(rng, 3, 4, sizes, mask=draw_mask(rng, 3, 4)) for _ in range(2)]
    check_stays_apart(student, oracle, drawn, *steps, "step")
    views = as_views(*as_single(*steps[0]))
    check_module(student, oracle, single, views, situation="float32, views", method="step")
    check_module(student, oracle, drawn, as_views(first[1]), situation="views", method="start")
    module = drawn.on(student)
    check_masks_refused(module, first[:3], mask)
    check_masks_refused(module.step, steps[0][:3], mask)
    check_each_refused(module.step, (), bad_ids(steps[0][0], 8), *steps[0][1:])
    check_batches_refused(module, first[:3])
    check_batches_refused(module.step, steps[0][:3])


# Exercise 4.6


@weight(1)
@number("4.6")
def test_loss_is_right_for_other_pairs(student, rng, oracle):
    """Other lengths and more padding, with both decoders; what is no pair is refused."""
    for attention in (True, False):
        drawn = draw_translator(rng, attention, (9, 8, 3, 4))
        for lengths, counts, t, u in (
            ([2, 5, 1, 3], [4, 1, 0, 2], 5, 6),
            ([3, 2], [1, 5], 5, 9),
            ([4], [3], 4, 5),
        ):
            source, target = draw_sources(rng, drawn, lengths, t), draw_target(rng, counts, 8, u)
            check_loss(student, oracle, drawn, source, target, "other lengths")
    source, target = draw_sources(rng, drawn, [4, 2, 3]), draw_target(rng, [2, 0, 1], 8)
    model = drawn.on(student)
    check_each_refused(model.loss, (source,), bad_targets(target, 8))
    check_each_refused(model.loss, (), bad_sources(source, 9), target)


@weight(1)
@number("4.6")
def test_loss_has_gradients_for_all_weights_with_other_pairs(student, rng, oracle):
    """Those of the encoder and of the decoder, with other lengths."""
    for attention in (True, False):
        drawn = draw_translator(rng, attention, (9, 8, 3, 4))
        source, target = draw_sources(rng, drawn, [1, 4], 6), draw_target(rng, [3, 2], 8, 7)
        check_loss_gradients(
            student, oracle, drawn, source, target=target, situation="other lengths"
        )


def rename(rng, vocabulary):
    """Other ids for the letters of the stories."""
    ids = FIRST_WORD + rng.permutation(vocabulary - FIRST_WORD)[: len(LETTERS)]
    return dict(zip(LETTERS, ids.tolist(), strict=True))


def some_stories(rng, expected):
    """All stories and what is expected of each, in another order."""
    order = rng.permutation(len(STORIES)).tolist()
    stories = list(STORIES.values())
    return [stories[place] for place in order], [expected[place] for place in order]


@weight(1)
@number("4.6")
def test_greedy_decode_writes_other_ids_until_the_end(student, rng):
    """The stories with other ids and in another order; ties."""
    for attention, max_length, expected in (
        (True, 5, ("a$", "a$", "$", "a$", "babab", "_a^_a")),
        (False, 2, ("a$", "a$", "$", "a$", "ba", "_a")),
    ):
        letters = rename(rng, 14)
        stories, texts = some_stories(rng, expected)
        drawn = story_model(stories, 14, letters, attention)
        check_greedy_stories(
            student, drawn, texts, max_length, situation="other stories", letters=letters
        )
    source = torch.tensor([[4, 3, 5], [3, 0, 0], [5, 5, 0]])
    for bias, expected in (
        ((0.0, -1.0, 1.0, 0.0, 2.0, 2.0), [4] * 3),
        ((2.0, 0.0, 2.0, 2.0), [0] * 3),
    ):
        rows = flat_model(6, bias, attention=False).on(student).greedy_decode(source, 3)
        check(rows == [expected] * 3, "On a tie, greedy_decode must write the lowest id.")


@weight(1)
@number("4.6")
def test_searches_translate_other_sentences_alike_in_every_batch(student, rng, oracle):
    """Greedy decoding and a beam of width 1: each id has the highest logit for its sentence."""
    for attention in (True, False):
        for sizes in ((8, 6, 3, 4), (25, 30, 5, 7)):
            drawn = draw_translator(rng, attention, sizes)
            source = draw_sources(rng, drawn, [2, 6, 1, 3, 4], 6)
            check_greedy(student, oracle, drawn, source, max_length=7, situation="other sentences")
            check_single_beam(
                student, oracle, drawn, source, max_length=5, situation="other sentences"
            )
    drawn = draw_translator(rng, False, (8, 6, 3, 4), SINGLE)
    views = as_views(draw_sources(rng, drawn, [1, 4, 2], 5))
    check_greedy(student, oracle, drawn, *views, max_length=5, situation="float32, views")
    check_single_beam(student, oracle, drawn, *views, max_length=5, situation="float32, views")


@weight(1)
@number("4.6")
def test_beam_decode_finds_the_best_of_all_for_other_sentences(student, rng, oracle):
    """Nothing is dropped: the best of all rows of ids, whatever alpha is."""
    for attention, sizes, max_length in ((True, (8, 4, 3, 4), 4), (False, (6, 6, 4, 3), 3)):
        drawn = draw_translator(rng, attention, sizes)
        source = draw_sources(rng, drawn, [2, 4, 1], 5)
        check_widest_beam(
            student, oracle, drawn, source, alphas=(0.0, 0.5, 2.0), max_length=max_length
        )


def kept_by(found, width, max_length):
    """The candidates of a search of that width, of all rows and their log-probabilities."""
    kept = {()}
    for before in range(max_length):
        rows = [row for row in found if len(row) - 1 == before and row[:-1] in kept]
        kept |= {*sorted(rows, key=found.__getitem__)[-width:]}
    kept -= {()}
    return {row: found[row] for row in kept if row[-1] == END or len(row) == max_length}


def draw_tricky(rng, oracle, attention, width, other, alpha, max_length):
    """A model and sources to which another width gives something else; what is expected of each."""
    while True:
        drawn = draw_translator(rng, attention, (9, 5, 4, 3))
        source = draw_sources(rng, drawn, [3, 1, 2, 4, 1], 5)
        rows = [
            oracle.sequences(drawn.parameters, ids[ids.ne(PADDING)], max_length) for ids in source
        ]
        expected, differs = (
            [best_of(kept_by(found, w, max_length), alpha) for found in rows]
            for w in (width, other)
        )
        if expected != differs:
            return drawn, source, expected


@weight(1)
@number("4.6")
def test_beam_decode_follows_as_many_beginnings_as_it_is_wide_elsewhere(student, rng, oracle):
    """Models for which one beginning more, or one fewer, gives something else."""
    for attention, width, other, alpha in (
        (True, 2, 1, 1.0),
        (False, 2, 3, 0.0),
        (True, 3, 2, 1.5),
        (False, 3, 2, 0.6),
    ):
        drawn, source, expected = draw_tricky(rng, oracle, attention, width, other, alpha, 4)
        rows, scores = beams(student, drawn, source, width, alpha=alpha, max_length=4)
        for row, score, wanted in zip(rows, scores, expected, strict=True):
            compare_beam(row, score, wanted, f"width {width}, alpha {alpha}")


@weight(1)
@number("4.6")
def test_beam_decode_weighs_other_stories_by_alpha(student, rng):
    """All stories in one batch, with other ids and in another order."""
    for settings, expected in (
        ((2, 2.0, 8), ("b$", "aaaaaaa$", "aaaaaaa$", "bcdef$", "babababa", "_a^_a^_a")),
        ((2, 3.0, 3), ("b$", "aa$", "aa$", "bcd", "bab", "_a^")),
        ((3, 0.5, 4), ("b$", "c$", "$", "a$", "baba", "_a^_")),
        ((4, 1.0, 6), ("b$", "c$", "b$", "bcdef$", "bababa", "_a^_a^")),
        ((2, 1.0, 3), ("b$", "a$", "$", "a$", "bab", "_a^")),
    ):
        letters = rename(rng, 13)
        stories, texts = some_stories(rng, expected)
        drawn = story_model(stories, 13, letters, attention=settings[0] != 3)
        check_beam_stories(student, drawn, stories, texts, settings=settings, letters=letters)


@weight(1)
@number("4.6")
def test_decoding_has_no_side_effects_and_refuses_what_makes_no_sense(student, rng):
    """Sources and weights stay, calls give the same; bad numbers and sources are refused."""
    for attention in (True, False):
        drawn = draw_translator(rng, attention, (9, 6, 3, 4), SINGLE)
        source, target = (
            draw_sources(rng, drawn, [2, 4, 1, 3], 5),
            draw_target(rng, [2, 0, 1, 3], 6),
        )
        check_searches_stay_apart(student, drawn, source, target)
    model = drawn.on(student)
    check_refused("a max_length of 0", model.greedy_decode, source, 0)
    for situation, more in (
        ("a width of 0", (0,)),
        ("a negative alpha", (1, -1.0)),
        ("an infinite alpha", (3, math.inf)),
        ("an alpha that is NaN", (3, math.nan)),
        ("a negative max_length", (2, 1.0, -1)),
    ):
        check_refused(situation, model.beam_decode, source, *more)
    check_each_refused(model.greedy_decode, (), bad_sources(source, 9))
    check_each_refused(model.beam_decode, (), bad_sources(source, 9), 3)
    model = broken(drawn, "encoder.embedding.weight", source[0, 0], math.nan).on(student)
    check_refused("logits that are not finite", model.greedy_decode, source)
    check_refused("logits that are not finite", model.beam_decode, source, 3)


# Exercise 4.7


@weight(1)
@number("4.7")
def test_train_takes_the_steps_of_adam_on_other_pairs(student, rng, oracle):
    """Loss, norm and learning rate of each step, and the weights at the end."""
    for attention, max_norm, situation in (
        (True, 500.0, "nothing to clip"),
        (True, 0.2, "every step clipped"),
        (False, 0.05, "no attention"),
    ):
        drawn = draw_module(rng, "Seq2Seq", *TINY, attention)
        source, target = draw_pairs(rng, [1, 4, 2], [2, 0, 3])
        settings = {"epochs": 5, "learning_rate": 0.03, "max_norm": max_norm}
        check_training(student, oracle, drawn, source, target, settings, situation)
    check_training(student, oracle, drawn, *as_views(source, target), settings, "views")


@weight(1)
@number("4.7")
def test_train_uses_other_pairs_once_in_each_epoch_and_stops_in_time(student, rng, oracle):
    """Mini-batches, orders, and the step at which a loss is not finite."""
    check_every_pair_once(student, oracle, rng, n=6, batch_size=4, epochs=2)
    check_orders(student, oracle, rng)
    check_stops(student, oracle, rng)


@weight(1)
@number("4.7")
def test_exact_match_counts_other_translations(student, rng):
    """Too long, too short, without an end, with padding in it, and very long, with other ids."""
    for attention, situation, cases in (
        (True, "all kinds", (("fed$", "fed"), ("ab$", "abc"), ("abcd$", "ab"), ("ce$", "ec"))),
        (True, "one id too many", (("fe$", "f"), ("dc", "dc"))),
        (False, "padding in between", (("_ab$", "ab"), ("ab_$", "ab"), ("d$", "d"), ("$", ""))),
        (False, "no end", (("c", "ccc"), ("abc", "abc"), ("abcd$", "abcd"))),
    ):
        check_exact_match(
            student, cases, rename(rng, 11), 11, situation=situation, attention=attention
        )
    cases = (("fa$", "fa"), ("b$", "bc"), ("dec$", "dec"), ("$", ""))
    check_exact_match(student, cases, rename(rng, 11), 11, situation="float32, views", dtype=SINGLE)
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    ids = (FIRST_WORD + rng.permutation(len(alphabet))).tolist()
    letters = dict(zip(alphabet, ids, strict=True))
    cases = ((f"{alphabet}$", alphabet), (f"{alphabet[2:]}$", alphabet[2:]), ("ab$", "b"))
    check_exact_match(student, cases, letters, FIRST_WORD + len(alphabet), situation="many words")


@weight(1)
@number("4.7")
def test_alignment_is_right_for_other_models(student, rng, oracle):
    """Tokens with their END, the weights of every step, no gradient; padding has no weight."""
    for max_length in (2, 5):
        texts = ("bdf$", "fa", "ce_$", "$")
        check_told_alignments(student, texts, rename(rng, 12), 12, max_length=max_length)
    for sizes, length, t in (((8, 6, 3, 4), 5, 5), ((10, 9, 5, 3), 2, 5), ((6, 5, 2, 6), 3, 4)):
        drawn = draw_translator(rng, True, sizes)
        ids = draw_sources(rng, drawn, [length], t)[0]
        check_alignment(student, oracle, drawn, ids, max_length=6, situation="other sizes")
        check_alignment(student, oracle, drawn, *as_views(ids), max_length=4, situation="views")
    check_no_gradient(student, drawn, ids)
    plain = draw_translator(rng, False, sizes).on(student)
    check_refused("a model without attention", student.alignment, plain, ids)
    check_refused("a max_length of 0", student.alignment, drawn.on(student), ids, 0)


# The lab


@weight(2)
@number("4.8")
def test_q3_what_counting_lacks_is_found(lab):
    """Lab, question 3: what attention has that counting pairs of words lacks."""
    check_choice(lab, "q3_lack", "c", ("a", "b", "c", "d"))


@weight(2)
@number("4.8")
def test_q5_the_vector_grows_with_the_sentence(lab):
    """Lab, question 5: the noise has the variance length / size."""
    check_number(lab, "q5_size", 64 * 24 / 8)


@weight(1)
@number("4.8")
def test_q7_the_bits_of_a_number_are_counted(lab):
    """Lab, question 7: the smallest power of two that has room for 999,999 numbers."""
    check_number(lab, "q7_bits", (999_999 - 1).bit_length())


@weight(2)
@number("4.9")
def test_q10_the_smallest_safe_width_is_found(lab):
    """Lab, question 10: the best sentence begins with the third likeliest word."""
    check_number(lab, "q10_width", 3)
