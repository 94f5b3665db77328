"""The hidden tests of assignment 4: the properties of the public tests on other inputs."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, weight

from common.data.numbers import EOS, PAD
from common.labs.answer_checks import check_choice, check_number
from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import check
from common.testing.remote.torch_modules import loss_gradients
from tests.a4_bahdanau import cases
from tests.a4_bahdanau import draw_cases as draw
from tests.a4_bahdanau import search_cases as search
from tests.a4_bahdanau import story_cases as story
from tests.a4_bahdanau import training_cases as training
from tests.a4_bahdanau.cases import as_views, check_gradients, compare_results, compare_weights

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
        scores, mask = draw.floats(rng, *shape), draw.mask(rng, *mask_shape)
        out = student.masked_softmax(scores)
        compare_weights(out, cases.SOFTMAX, (scores,), "no mask", oracle=oracle)
        out = student.masked_softmax(scores, mask)
        compare_weights(out, cases.SOFTMAX, (scores, mask), "another mask", oracle=oracle)


@weight(1)
@number("4.1")
def test_masked_softmax_gives_zeros_to_other_fully_masked_rows(student, rng, oracle):
    """Zeros in out and in the gradient of the scores, never NaN."""
    softmax, situation = student.masked_softmax, "fully masked rows"
    for shape in ((4, 3), (3, 4, 5)):
        scores, mask = draw.floats(rng, *shape), draw.mask(rng, *shape)
        mask[rng.integers(shape[0])] = False
        out = student.masked_softmax(scores, mask)
        compare_weights(out, cases.SOFTMAX, (scores, mask), situation, oracle=oracle)
        cases.check_softmax_vjp(softmax, (scores, mask), situation, oracle=oracle, rng=rng)


@weight(1)
@number("4.1")
def test_masked_softmax_has_the_gradient_of_softmax_for_other_shapes(student, rng, oracle):
    """With and without masks, for a random upstream gradient."""
    softmax = student.masked_softmax
    for shape, mask_shape in (((4, 6), (4, 6)), ((3, 2, 5), (3, 1, 5)), ((2, 7), (7,))):
        scores, mask = draw.floats(rng, *shape), draw.mask(rng, *mask_shape)
        cases.check_softmax_vjp(softmax, (scores,), "no mask", oracle=oracle, rng=rng)
        cases.check_softmax_vjp(softmax, (scores, mask), "another mask", oracle=oracle, rng=rng)


@weight(1)
@number("4.1")
def test_masked_softmax_takes_other_huge_scores_and_has_no_side_effects(student, rng, oracle):
    """Huge scores, float32 and views on other shapes; unchanged inputs; bad masks: ValueError."""
    softmax, scores, mask = student.masked_softmax, draw.floats(rng, 4, 5), draw.mask(rng, 4, 5)
    calls = ((draw.floats(rng, 4, 5), draw.mask(rng, 4, 5)), (scores, mask))
    cases.check_stays_apart(softmax, oracle, cases.SOFTMAX, calls)
    for shift in (9e3, -9e3):
        large = scores + shift
        out = softmax(large, mask)
        compare_weights(out, cases.SOFTMAX, (large, mask), "large scores", oracle=oracle)
        out = softmax(large)
        compare_weights(out, cases.SOFTMAX, (large,), "large scores, no mask", oracle=oracle)
        cases.check_softmax_vjp(softmax, (large, mask), "large scores", oracle=oracle, rng=rng)
    for hidden in (1e200, -1e200, 1e6):
        inputs = (scores.masked_fill(~mask, hidden), mask)
        situation = "huge masked scores"
        compare_weights(softmax(*inputs), cases.SOFTMAX, inputs, situation, oracle=oracle)
    views = as_views(scores.float(), mask)
    compare_weights(softmax(*views), cases.SOFTMAX, views, "float32, views", oracle=oracle)
    cases.check_masks_refused(softmax, (scores,), mask)


# Exercise 4.2


@weight(1)
@number("4.2")
def test_additive_attention_is_right_for_other_sizes(student, rng, oracle):
    """context and weights without a mask; the parameters of other sizes."""
    module = student.AdditiveAttention(6, 2, 5)
    cases.check_initial_parameters("AdditiveAttention", module, (6, 2, 5))
    for n, t, q, k, h in ((3, 6, 2, 5, 4), (2, 3, 7, 4, 2), (1, 1, 3, 2, 5), (5, 2, 4, 1, 3)):
        drawn = draw.module(rng, "AdditiveAttention", q, k, h)
        query, keys = draw.floats(rng, n, q), draw.floats(rng, n, t, k)
        result = drawn.build(student.AdditiveAttention)(query, keys)
        compare_weights(result, drawn, (query, keys), "other sizes", oracle=oracle)


@weight(1)
@number("4.2")
def test_additive_attention_is_right_for_other_masks(student, rng, oracle):
    """Masked keys have no effect, whatever they hold; if all are masked, zeros."""
    for n, t, q, k, h in ((4, 6, 2, 5, 3), (2, 3, 5, 4, 6), (1, 5, 3, 2, 4)):
        drawn, mask = draw.module(rng, "AdditiveAttention", q, k, h), draw.mask(rng, n, t)
        query, keys = draw.floats(rng, n, q), draw.floats(rng, n, t, k)
        unseeing = cases.hide_row(mask, rng.integers(n))
        for situation, inputs in (
            ("another mask", (query, keys, mask)),
            ("huge numbers in masked keys", cases.blinded(query, keys, mask)),
            ("a fully masked sentence", (query, keys, unseeing)),
        ):
            result = drawn.build(student.AdditiveAttention)(*inputs)
            compare_weights(result, drawn, inputs, situation, oracle=oracle)


@weight(2)
@number("4.2")
def test_additive_attention_has_all_gradients_for_other_sizes(student, rng, oracle):
    """Those of query, keys and parameters, with a mask, and if all is masked."""
    for n, t, q, k, h in ((3, 4, 2, 5, 6), (2, 6, 5, 3, 4)):
        drawn, mask = draw.module(rng, "AdditiveAttention", q, k, h), draw.mask(rng, n, t)
        query, keys = draw.floats(rng, n, q), draw.floats(rng, n, t, k)
        for situation, inputs in (
            ("no mask", (query, keys)),
            ("another mask", (query, keys, mask)),
        ):
            attention = drawn.build(student.AdditiveAttention)
            check_gradients(attention, drawn, inputs, situation, oracle=oracle, rng=rng)
        inputs = cases.blinded(query, keys, cases.hide_row(mask, rng.integers(n)))
        attention = drawn.build(student.AdditiveAttention)
        check_gradients(attention, drawn, inputs, "everything masked", oracle=oracle, rng=rng)


@weight(1)
@number("4.2")
def test_additive_attention_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; unchanged inputs; bad masks and sizes: ValueError."""
    mask = draw.mask(rng, 2, 5)
    drawn = draw.module(rng, "AdditiveAttention", 4, 3, 6, dtype=SINGLE)
    inputs = cases.as_single(draw.floats(rng, 2, 4), draw.floats(rng, 2, 5, 3), mask)
    views = as_views(*inputs)
    result = drawn.build(student.AdditiveAttention)(*views)
    compare_weights(result, drawn, views, "views", oracle=oracle)
    attention = drawn.build(student.AdditiveAttention)
    check_gradients(attention, drawn, inputs, "float32", oracle=oracle, rng=rng)
    drawn, calls = draw.module(rng, "AdditiveAttention", 4, 3, 6), []
    for _ in range(2):
        other = draw.mask(rng, 2, 5)
        calls.append((draw.floats(rng, 2, 4), draw.floats(rng, 2, 5, 3), other))
    cases.check_stays_apart(drawn.build(student.AdditiveAttention), oracle, drawn, calls)
    cases.check_masks_refused(drawn.build(student.AdditiveAttention), calls[0][:2], mask)
    cases.check_batches_refused(drawn.build(student.AdditiveAttention), calls[0][:2])


# Exercise 4.3


@weight(1)
@number("4.3")
def test_encoder_is_right_for_other_sizes(student, rng, oracle):
    """states and final without padding, for other sizes; the parameters of other sizes."""
    cases.check_initial_parameters("Encoder", student.Encoder(6, 5, 2), (6, 5, 2))
    for n, t, v, e, h in ((3, 4, 8, 5, 2), (2, 7, 5, 2, 6), (1, 1, 6, 3, 3)):
        drawn, source = draw.module(rng, "Encoder", v, e, h), draw.source(rng, [t] * n, v)
        result = drawn.build(student.Encoder)(source)
        compare_results(result, drawn, (source,), "other sizes", oracle=oracle)


@weight(1)
@number("4.3")
def test_encoder_gives_the_same_numbers_with_other_padding(student, rng, oracle):
    """Sentences of other lengths, in any order, and with columns of only padding."""
    for n, t, v, e, h in ((4, 6, 8, 5, 3), (6, 5, 9, 2, 4), (1, 4, 6, 3, 2)):
        drawn = draw.module(rng, "Encoder", v, e, h)
        lengths = [1, *rng.integers(1, t, size=n - 1)]
        for situation, last in (("columns to spare", lengths[-1]), ("other lengths", t)):
            source = draw.source(rng, [*lengths[:-1], last], v, t)
            result = drawn.build(student.Encoder)(source)
            compare_results(result, drawn, (source,), situation, oracle=oracle)


@weight(1)
@number("4.3")
def test_encoder_has_all_gradients_for_other_sizes(student, rng, oracle):
    """Those of the embedding and of the GRU, with padding."""
    for lengths, t, v, e, h in (([3, 5, 1], 5, 6, 4, 2), ([2, 1], 4, 9, 2, 5)):
        drawn, source = draw.module(rng, "Encoder", v, e, h), draw.source(rng, lengths, v, t)
        encoder = drawn.build(student.Encoder)
        check_gradients(encoder, drawn, (source,), "other sizes", oracle=oracle, rng=rng)


@weight(1)
@number("4.3")
def test_encoder_keeps_other_types_and_rejects_bad_sources(student, rng, oracle):
    """float32 and views on other shapes; independent calls; bad sources: ValueError."""
    drawn = draw.module(rng, "Encoder", 9, 4, 2, dtype=SINGLE)
    source = draw.source(rng, [3, 5, 2], 9, 6)
    result = drawn.build(student.Encoder)(*as_views(source))
    compare_results(result, drawn, (source,), "float32, views", oracle=oracle)
    encoder = drawn.build(student.Encoder)
    check_gradients(encoder, drawn, (source,), "float32", oracle=oracle, rng=rng)
    drawn, other = draw.module(rng, "Encoder", 9, 4, 2), draw.source(rng, [4, 2], 9)
    cases.check_stays_apart(drawn.build(student.Encoder), oracle, drawn, ((other,), (source,)))
    cases.check_each_refused(drawn.build(student.Encoder), (), cases.bad_sources(other, 9))


# Exercise 4.4


@weight(1)
@number("4.4")
def test_fixed_context_decoder_takes_other_first_steps(student, rng, oracle):
    """state_0, and the logits and state after a step, with gradients, for other sizes."""
    decoder = student.FixedContextDecoder(5, 4, 2, 3)
    cases.check_initial_parameters("FixedContextDecoder", decoder, (5, 4, 2, 3))
    for n, (v, e, c, h) in ((4, (8, 2, 6, 3)), (1, (6, 5, 1, 4)), (3, (9, 3, 4, 7))):
        drawn = draw.module(rng, "FixedContextDecoder", v, e, c, h)
        context, situation = draw.floats(rng, n, c), "other sizes"
        state = drawn.build(student.FixedContextDecoder).start(context)
        compare_results(state, drawn, (context,), situation, oracle=oracle, method="start")
        start = drawn.build(student.FixedContextDecoder).start
        check_gradients(start, drawn, (context,), situation, oracle=oracle, rng=rng, method="start")
        inputs = (draw.ids(rng, v, n), draw.floats(rng, n, h), context)
        result = drawn.build(student.FixedContextDecoder).step(*inputs)
        compare_results(result, drawn, inputs, "other sizes", oracle=oracle, method="step")
        step = drawn.build(student.FixedContextDecoder).step
        check_gradients(step, drawn, inputs, "other sizes", oracle=oracle, rng=rng, method="step")


@weight(2)
@number("4.4")
def test_fixed_context_decoder_reads_other_targets(student, rng, oracle):
    """The logits of all steps, with gradients, for other sizes."""
    for n, u, (v, e, c, h) in ((3, 5, (8, 2, 6, 3)), (1, 1, (6, 5, 1, 4)), (4, 2, (9, 3, 4, 7))):
        drawn = draw.module(rng, "FixedContextDecoder", v, e, c, h)
        inputs = (draw.inputs(rng, v, n, u), draw.floats(rng, n, c))
        logits = drawn.build(student.FixedContextDecoder)(*inputs)
        compare_results(logits, drawn, inputs, "other sizes", oracle=oracle)
        decoder = drawn.build(student.FixedContextDecoder)
        check_gradients(decoder, drawn, inputs, "other sizes", oracle=oracle, rng=rng)


@weight(1)
@number("4.4")
def test_fixed_context_decoder_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; unchanged inputs; bad ids and sizes: ValueError."""
    single = draw.module(rng, "FixedContextDecoder", 8, 2, 6, 3, dtype=SINGLE)
    inputs = cases.as_single(draw.inputs(rng, 8, 3, 4), draw.floats(rng, 3, 6))
    logits = single.build(student.FixedContextDecoder)(*as_views(*inputs))
    compare_results(logits, single, inputs, "float32, views", oracle=oracle)
    decoder = single.build(student.FixedContextDecoder)
    check_gradients(decoder, single, inputs, "float32", oracle=oracle, rng=rng)
    drawn = draw.module(rng, "FixedContextDecoder", 8, 2, 6, 3)
    calls = [(draw.inputs(rng, 8, 3, 4), draw.floats(rng, 3, 6)) for _ in range(2)]
    cases.check_stays_apart(drawn.build(student.FixedContextDecoder), oracle, drawn, calls)
    decoder, (ids, context) = drawn.build(student.FixedContextDecoder), calls[0]
    step = (draw.ids(rng, 8, 3), draw.floats(rng, 3, 3), context)
    views = as_views(*cases.as_single(*step))
    result = single.build(student.FixedContextDecoder).step(*views)
    compare_results(result, single, views, "float32, views", oracle=oracle, method="step")
    state = drawn.build(student.FixedContextDecoder).start(*as_views(context))
    compare_results(state, drawn, (context,), "views", oracle=oracle, method="start")
    cases.check_each_refused(decoder, (), cases.bad_ids(ids, 8), context)
    cases.check_each_refused(decoder.step, (), cases.bad_ids(step[0], 8), *step[1:])
    cases.check_batches_refused(decoder, calls[0])
    cases.check_batches_refused(decoder.step, step)


# Exercise 4.5


@weight(1)
@number("4.5")
def test_attention_decoder_takes_other_first_steps(student, rng, oracle):
    """state_0, and logits, state and weights after a step, with masks and gradients."""
    decoder = student.AttentionDecoder(5, 4, 2, 3, 6)
    cases.check_initial_parameters("AttentionDecoder", decoder, (5, 4, 2, 3, 6))
    for n, t, sizes in ((4, 5, (8, 2, 6, 3, 5)), (1, 4, (6, 5, 3, 4, 1)), (3, 3, (9, 3, 4, 7, 2))):
        drawn = draw.module(rng, "AttentionDecoder", *sizes)
        final = draw.floats(rng, n, sizes[2])
        state = drawn.build(student.AttentionDecoder).start(final)
        compare_results(state, drawn, (final,), "other sizes", oracle=oracle, method="start")
        masked = draw.step(rng, n, t, sizes, mask=draw.mask(rng, n, t))
        for situation, inputs in (("no mask", masked[:3]), ("another mask", masked)):
            result = drawn.build(student.AttentionDecoder).step(*inputs)
            compare_results(result, drawn, inputs, situation, oracle=oracle, method="step")
        step = drawn.build(student.AttentionDecoder).step
        check_gradients(step, drawn, masked, "another mask", oracle=oracle, rng=rng, method="step")


@weight(2)
@number("4.5")
def test_attention_decoder_attends_at_every_step_of_other_targets(student, rng, oracle):
    """Logits, weights and gradients of all steps, with masks, and if all is masked."""
    for n, u, t, sizes in ((3, 4, 5, (8, 2, 6, 3, 5)), (2, 2, 4, (6, 5, 3, 4, 1))):
        drawn = draw.module(rng, "AttentionDecoder", *sizes)
        masked = draw.whole(rng, n, u, t, sizes=sizes, mask=draw.mask(rng, n, t))
        for situation, inputs in (("no mask", masked[:3]), ("another mask", masked)):
            decoder = drawn.build(student.AttentionDecoder)
            check_gradients(decoder, drawn, inputs, situation, oracle=oracle, rng=rng)
        inputs = (*masked[:3], cases.hide_row(masked[3], rng.integers(n)))
        result = drawn.build(student.AttentionDecoder)(*inputs)
        compare_results(result, drawn, inputs, "a fully masked sentence", oracle=oracle)
        decoder = drawn.build(student.AttentionDecoder)
        check_gradients(decoder, drawn, inputs, "everything masked", oracle=oracle, rng=rng)


@weight(1)
@number("4.5")
def test_attention_decoder_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """float32 and views on other shapes; unchanged inputs; bad ids, masks, sizes: ValueError."""
    sizes, mask = (8, 2, 6, 3, 5), draw.mask(rng, 3, 4)
    single = draw.module(rng, "AttentionDecoder", *sizes, dtype=SINGLE)
    inputs = cases.as_single(*draw.whole(rng, 3, 2, 4, sizes=sizes, mask=mask))
    result = single.build(student.AttentionDecoder)(*as_views(*inputs))
    compare_results(result, single, inputs, "float32, views", oracle=oracle)
    decoder = single.build(student.AttentionDecoder)
    check_gradients(decoder, single, inputs, "float32", oracle=oracle, rng=rng)
    drawn = draw.module(rng, "AttentionDecoder", *sizes)
    calls = [draw.whole(rng, 3, 2, 4, sizes=sizes, mask=draw.mask(rng, 3, 4)) for _ in range(2)]
    cases.check_stays_apart(drawn.build(student.AttentionDecoder), oracle, drawn, calls)
    steps = [draw.step(rng, 3, 4, sizes, mask=draw.mask(rng, 3, 4)) for _ in range(2)]
    decoder = drawn.build(student.AttentionDecoder)
    cases.check_stays_apart(decoder, oracle, drawn, steps, method="step")
    (token, *others), final = steps[0], calls[0][1]
    views = as_views(*cases.as_single(*steps[0]))
    result = single.build(student.AttentionDecoder).step(*views)
    compare_results(result, single, views, "float32, views", oracle=oracle, method="step")
    state = drawn.build(student.AttentionDecoder).start(*as_views(final))
    compare_results(state, drawn, (final,), "views", oracle=oracle, method="start")
    decoder = drawn.build(student.AttentionDecoder)
    cases.check_masks_refused(decoder, calls[0][:3], mask)
    cases.check_masks_refused(decoder.step, steps[0][:3], mask)
    cases.check_each_refused(decoder.step, (), cases.bad_ids(token, 8), *others)
    cases.check_batches_refused(decoder, calls[0][:3])
    cases.check_batches_refused(decoder.step, steps[0][:3])


# Exercise 4.6


@weight(1)
@number("4.6")
def test_loss_is_right_for_other_pairs(student, rng, oracle):
    """Other lengths and more padding, with both decoders; bad pairs: ValueError."""
    for attention in (True, False):
        drawn = draw.translator(rng, attention, (9, 8, 3, 4))
        for lengths, counts, t, u in (
            ([2, 5, 1, 3], [4, 1, 0, 2], 5, 6),
            ([3, 2], [1, 5], 5, 9),
            ([4], [3], 4, 5),
        ):
            pairs = (draw.source(rng, lengths, 9, t), draw.target(rng, counts, 8, u))
            loss = drawn.build(student.Seq2Seq).loss(*pairs)
            compare_results(loss, drawn, pairs, "other lengths", oracle=oracle, method="loss")
    source, target = draw.source(rng, [4, 2, 3], 9), draw.target(rng, [2, 0, 1], 8)
    model = drawn.build(student.Seq2Seq)
    cases.check_each_refused(model.loss, (source,), cases.bad_targets(target, 8))
    cases.check_each_refused(model.loss, (), cases.bad_sources(source, 9), target)


@weight(1)
@number("4.6")
def test_loss_has_gradients_for_all_parameters_with_other_pairs(student, rng, oracle):
    """Those of the encoder and of the decoder, with other lengths."""
    for attention in (True, False):
        drawn = draw.translator(rng, attention, (9, 8, 3, 4))
        pairs = (draw.source(rng, [1, 4], 9, 6), draw.target(rng, [3, 2], 8, 7))
        model = drawn.build(student.Seq2Seq)
        loss, gradients = loss_gradients(model, model.loss, *pairs)
        compare_results(loss, drawn, pairs, "other lengths", oracle=oracle, method="loss")
        search.compare_loss_gradients(gradients, oracle, drawn, pairs, situation="other lengths")


def rename(rng, vocab_size, letters=story.LETTERS):
    """Random ids for the letters of the stories."""
    ids = draw.FIRST_WORD + rng.permutation(vocab_size - draw.FIRST_WORD)[: len(letters)]
    return dict(zip(letters, ids.tolist(), strict=True))


def some_stories(rng, expected):
    """All stories and their expected translations, in random order."""
    order = rng.permutation(len(story.STORIES)).tolist()
    stories = list(story.STORIES.values())
    return [stories[index] for index in order], [expected[index] for index in order]


@weight(1)
@number("4.6")
def test_greedy_decode_takes_other_ids_until_the_end(student, rng):
    """Other ids, and sentences in another order; ties."""
    for attention, max_length, expected in (
        (True, 5, ("a$", "a$", "$", "a$", "babab", "_a^_a")),
        (False, 2, ("a$", "a$", "$", "a$", "ba", "_a")),
    ):
        letters = rename(rng, 14)
        stories, texts = some_stories(rng, expected)
        model = story.model(stories, 14, letters, attention).build(student.Seq2Seq)
        rows = model.greedy_decode(story.source(6), max_length)
        search.compare_greedy(rows, texts, max_length, situation="other stories", letters=letters)
    source = torch.tensor([[4, 3, 5], [3, 0, 0], [5, 5, 0]])
    for bias, expected in (
        ((0.0, -1.0, 1.0, 0.0, 2.0, 2.0), [4] * 3),
        ((2.0, 0.0, 2.0, 2.0), [0] * 3),
    ):
        model = story.flat_model(6, bias, attention=False).build(student.Seq2Seq)
        rows = model.greedy_decode(source, 3)
        check(rows == [expected] * 3, "On a tie, greedy_decode must take the lowest id.")


@weight(1)
@number("4.6")
def test_searches_give_other_sentences_the_same_translation_in_every_batch(student, rng, oracle):
    """Greedy decoding and beam_width 1: each id has the highest logit for its sentence."""
    calls = []
    for attention in (True, False):
        for sizes in ((8, 6, 3, 4), (25, 30, 5, 7)):
            drawn = draw.translator(rng, attention, sizes)
            source = draw.source(rng, [2, 6, 1, 3, 4], sizes[0], 6)
            calls.append((drawn, source, 7, "other sentences"))
    drawn = draw.translator(rng, False, (8, 6, 3, 4), SINGLE)
    calls.append((drawn, *as_views(draw.source(rng, [1, 4, 2], 8, 5)), 5, "float32, views"))
    for drawn, source, steps, situation in calls:
        rows = drawn.build(student.Seq2Seq).greedy_decode(source, steps)
        search.check_greedy(rows, oracle, drawn, source, max_length=steps, situation=situation)
        result = drawn.build(student.Seq2Seq).beam_decode(source, 1, 1.0, 5)
        search.check_beam_width_1(result, oracle, drawn, source, max_length=5, situation=situation)


@weight(1)
@number("4.6")
def test_beam_decode_finds_the_best_of_all_for_other_sentences(student, rng, oracle):
    """Nothing is dropped: the best of all rows of ids, for any length_penalty."""
    for attention, sizes, max_length in ((True, (8, 4, 3, 4), 4), (False, (6, 6, 4, 3), 3)):
        drawn = draw.translator(rng, attention, sizes)
        source = draw.source(rng, [2, 4, 1], sizes[0], 5)
        beam_width = 2 * sizes[1] ** max_length
        every = [search.all_candidates(oracle, drawn, ids, max_length) for ids in source]
        for penalty in (0.0, 0.5, 2.0):
            model = drawn.build(student.Seq2Seq)
            result = model.beam_decode(source, beam_width, penalty, max_length)
            expected = [search.best_of(found, penalty) for found in every]
            search.compare_beams(result, expected, f"nothing is dropped, length_penalty {penalty}")


def candidates_of(found, beam_width, max_length):
    """The candidates of a beam search, from all rows and their log-probabilities."""
    kept = {()}
    for before in range(max_length):
        rows = [row for row in found if len(row) - 1 == before and row[:-1] in kept]
        kept |= {*sorted(rows, key=found.__getitem__)[-beam_width:]}
    kept -= {()}
    return {row: found[row] for row in kept if row[-1] == EOS or len(row) == max_length}


def draw_tricky(rng, oracle, attention, *, widths, penalty):
    """A model and sources that two beam widths translate differently; the result of the first."""
    while True:
        drawn = draw.translator(rng, attention, (9, 5, 4, 3))
        source = draw.source(rng, [3, 1, 2, 4, 1], 9, 5)
        rows = [oracle.sequences(drawn.parameters, ids[ids.ne(PAD)], 4) for ids in source]
        expected, differs = (
            [search.best_of(candidates_of(found, width, 4), penalty) for found in rows]
            for width in widths
        )
        if expected != differs:
            return drawn, source, expected


@weight(1)
@number("4.6")
def test_beam_decode_keeps_beam_width_hypotheses_elsewhere(student, rng, oracle):
    """Models for which one hypothesis more, or one fewer, changes the result."""
    for attention, widths, penalty in (
        (True, (2, 1), 1.0),
        (False, (2, 3), 0.0),
        (True, (3, 2), 1.5),
        (False, (3, 2), 0.6),
    ):
        drawn, source, expected = draw_tricky(
            rng, oracle, attention, widths=widths, penalty=penalty
        )
        result = drawn.build(student.Seq2Seq).beam_decode(source, widths[0], penalty, 4)
        situation = f"beam_width {widths[0]}, length_penalty {penalty}"
        search.compare_beams(result, expected, situation)


@weight(1)
@number("4.6")
def test_beam_decode_weighs_other_sentences_by_length_penalty(student, rng):
    """Many sentences in one batch, with other ids and in another order."""
    for settings, expected in (
        ((2, 2.0, 8), ("b$", "aaaaaaa$", "aaaaaaa$", "bcdef$", "babababa", "_a^_a^_a")),
        ((2, 3.0, 3), ("b$", "aa$", "aa$", "bcd", "bab", "_a^")),
        ((3, 0.5, 4), ("b$", "c$", "$", "a$", "baba", "_a^_")),
        ((4, 1.0, 6), ("b$", "c$", "b$", "bcdef$", "bababa", "_a^_a^")),
        ((2, 1.0, 3), ("b$", "a$", "$", "a$", "bab", "_a^")),
    ):
        letters = rename(rng, 13)
        stories, texts = some_stories(rng, expected)
        drawn = story.model(stories, 13, letters, attention=settings[0] != 3)
        result = drawn.build(student.Seq2Seq).beam_decode(story.source(6), *settings)
        search.compare_stories(result, drawn, stories, texts, settings=settings, letters=letters)


@weight(1)
@number("4.6")
def test_decoding_has_no_side_effects_and_rejects_bad_settings(student, rng):
    """Unchanged sources and weights, repeated calls; bad settings and sources: ValueError."""
    for attention in (True, False):
        drawn = draw.translator(rng, attention, (9, 6, 3, 4), SINGLE)
        source = draw.source(rng, [2, 4, 1, 3], 9, 5)
        target = draw.target(rng, [2, 0, 1, 3], 6)
        search.check_searches_stay_apart(drawn.build(student.Seq2Seq), drawn, source, target)
    model = drawn.build(student.Seq2Seq)
    check_refused("a max_length of 0", model.greedy_decode, source, 0)
    for situation, more in (
        ("a beam_width of 0", (0,)),
        ("a negative length_penalty", (1, -1.0)),
        ("an infinite length_penalty", (3, math.inf)),
        ("a length_penalty of NaN", (3, math.nan)),
        ("a negative max_length", (2, 1.0, -1)),
    ):
        check_refused(situation, model.beam_decode, source, *more)
    cases.check_each_refused(model.greedy_decode, (), cases.bad_sources(source, 9))
    cases.check_each_refused(model.beam_decode, (), cases.bad_sources(source, 9), 3)
    spoiled = training.broken(drawn, "encoder.embedding.weight", source[0, 0], math.nan)
    model = spoiled.build(student.Seq2Seq)
    check_refused("logits that are not finite", model.greedy_decode, source)
    check_refused("logits that are not finite", model.beam_decode, source, 3)


# Exercise 4.7


@weight(1)
@number("4.7")
def test_train_takes_the_steps_of_adam_on_other_pairs(student, rng, oracle):
    """Loss, norm and learning rate of each step, and the weights at the end."""
    runs = []
    for attention, max_norm, situation in (
        (True, 500.0, "nothing to clip"),
        (True, 0.2, "every step clipped"),
        (False, 0.05, "no attention"),
    ):
        drawn = draw.module(rng, "Seq2Seq", *training.TINY, attention)
        pairs = training.draw_pairs(rng, [1, 4, 2], [2, 0, 3])
        runs.append((drawn, pairs, max_norm, situation))
    runs.append((drawn, as_views(*pairs), max_norm, "views"))
    for drawn, pairs, max_norm, situation in runs:
        model = drawn.build(student.Seq2Seq)
        config = student.TrainConfig(batch_size=4, epochs=5, learning_rate=0.03, max_norm=max_norm)
        history = student.train(model, *pairs, config)
        expected = oracle.training(drawn.parameters, *pairs, 5, 0.03, max_norm)
        training.compare_training(history, model, expected, situation, learning_rate=0.03)


@weight(1)
@number("4.7")
def test_train_uses_other_pairs_once_in_each_epoch_and_stops_in_time(student, rng, oracle):
    """Mini-batches, orders, and the step at which a loss is not finite."""
    training.check_every_pair_once(student, oracle, rng, n=6, batch_size=4)
    training.check_orders(student, oracle, rng)
    training.check_stops(student, oracle, rng)


@weight(1)
@number("4.7")
def test_exact_match_counts_other_translations(student, rng):
    """Too long, too short, without EOS, with PAD inside, and very long, with other ids."""
    for situation, texts, settings in (
        ("all kinds", (("fed$", "fed"), ("ab$", "abc"), ("abcd$", "ab"), ("ce$", "ec")), {}),
        ("one id too many", (("fe$", "f"), ("dc", "dc")), {}),
        (
            "padding in between",
            (("_ab$", "ab"), ("ab_$", "ab"), ("d$", "d"), ("$", "")),
            {"attention": False},
        ),
        ("no end", (("c", "ccc"), ("abc", "abc"), ("abcd$", "abcd")), {"attention": False}),
        (
            "float32, views",
            (("fa$", "fa"), ("b$", "bc"), ("dec$", "dec"), ("$", "")),
            {"dtype": SINGLE},
        ),
    ):
        drawn, source, target = training.story_pairs(texts, 11, rename(rng, 11), **settings)
        model = drawn.build(student.Seq2Seq)
        training.compare_accuracy(student.exact_match(model, source, target), texts, situation)
        check_unchanged("exact_match", student.exact_match, model, source, target)
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    texts = ((f"{alphabet}$", alphabet), (f"{alphabet[2:]}$", alphabet[2:]), ("ab$", "b"))
    drawn, source, target = training.story_pairs(texts, 29, rename(rng, 29, alphabet))
    model = drawn.build(student.Seq2Seq)
    training.compare_accuracy(student.exact_match(model, source, target), texts, "many words")
    check_unchanged("exact_match", student.exact_match, model, source, target)


@weight(1)
@number("4.7")
def test_alignment_is_right_for_other_models(student, rng, oracle):
    """Tokens with EOS, the weights of every step, no gradient; padding has no weight."""
    texts = ("bdf$", "fa", "ce_$", "$")
    for steps in (2, 5):
        letters = rename(rng, 12)
        model = story.model([story.certain(text) for text in texts], 12, letters).build(
            student.Seq2Seq
        )
        for ids, text in zip(story.source(4), texts, strict=True):
            result = student.alignment(model, ids, steps)
            training.compare_certain_alignment(result, ids, text, max_length=steps, letters=letters)
    for sizes, length, t in (((8, 6, 3, 4), 5, 5), ((10, 9, 5, 3), 2, 5), ((6, 5, 2, 6), 3, 4)):
        drawn = draw.translator(rng, True, sizes)
        ids = draw.source(rng, [length], sizes[0], t)[0]
        for given, steps, situation in ((ids, 6, "other sizes"), (*as_views(ids), 4, "views")):
            model = drawn.build(student.Seq2Seq)
            result = student.alignment(model, given, steps)
            training.check_alignment(
                result, oracle, drawn, given, max_length=steps, situation=situation
            )
            check_unchanged("alignment", student.alignment, model, given)
    training.check_no_gradient(student.alignment, drawn.build(student.Seq2Seq), ids)
    plain = draw.translator(rng, False, sizes).build(student.Seq2Seq)
    check_refused("a model without attention", student.alignment, plain, ids)
    model = drawn.build(student.Seq2Seq)
    check_refused("a max_length of 0", student.alignment, model, ids, 0)


# The lab


@weight(2)
@number("4.8")
def test_q3_what_counting_lacks_is_found(lab):
    """Lab, question 3: what attention has that counting word pairs lacks."""
    check_choice(lab, "q3_lack", "c", ("a", "b", "c", "d"))


@weight(2)
@number("4.8")
def test_q5_the_vector_grows_with_the_sentence(lab):
    """Lab, question 5: the noise has the variance length / size."""
    check_number(lab, "q5_size", 64 * 24 / 8)


@weight(1)
@number("4.8")
def test_q7_the_bits_of_a_number_are_counted(lab):
    """Lab, question 7: the smallest power of two that is at least 999,999."""
    check_number(lab, "q7_bits", (999_999 - 1).bit_length())


@weight(2)
@number("4.9")
def test_q10_the_smallest_safe_beam_width_is_found(lab):
    """Lab, question 10: the best sentence starts with the third most likely word."""
    check_number(lab, "q10_beam_width", 3)
