"""The hidden tests of assignment 6: the public tests' properties on other shapes and seeds."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, weight

from common.labs.answer_checks import check_choice, check_number, check_sizes
from common.testing.checks import check_refused, check_unchanged, transposed
from common.testing.compare import check
from tests.a6_transformer.block_cases import (
    check_alike,
    check_evaluation,
    check_feed_forward_refuses,
    check_from_linear,
    check_layer_refuses,
    check_norm_order,
    check_norm_refuses,
)
from tests.a6_transformer.cases import (
    FINE,
    check_calls_stay_apart,
    check_gradients,
    check_output,
    check_parameters,
    draw_block,
    draw_mask,
    draw_vectors,
)
from tests.a6_transformer.complexity_cases import (
    check_complexity,
    check_costs_refuse,
    check_layer,
    check_measure,
)
from tests.a6_transformer.complexity_cases import check_layer_refuses as check_run_layer_refuses
from tests.a6_transformer.decoding_cases import (
    check_beam,
    check_beam_leaves_all,
    check_beam_refuses,
    check_counting,
    check_greedy,
    check_learned_places_end,
    check_maps,
    check_next,
    check_translations,
    check_widths,
    steady_model,
    table_model,
)
from tests.a6_transformer.dropout_cases import (
    check_dropout_of_feed_forward,
    check_dropout_of_model,
    check_dropout_of_part,
)
from tests.a6_transformer.loss_cases import (
    check_loss,
    check_loss_refuses,
    check_nothing_but_padding,
    check_rates,
    draw_targets,
)
from tests.a6_transformer.model_cases import (
    check_decode,
    check_encode,
    check_first_weights,
    check_logits,
    check_masks,
    check_model_refuses,
    check_no_look_ahead,
    check_padding_changes_nothing,
    draw_ids,
    draw_model,
)
from tests.a6_transformer.position_cases import (
    check_encoding,
    check_encodings_stay_apart,
    check_first_positions,
    check_learned,
    check_shift,
)
from tests.a6_transformer.training_cases import (
    TINY,
    TINY_NORM,
    check_each_pair_once,
    check_modes,
    check_not_finite,
    check_orders,
    check_run,
    check_train_leaves_pairs_alone,
    draw_pairs,
    draw_told_apart,
)

# Exercise 6.1


@weight(1)
@number("6.1")
def test_sinusoidal_encoding_is_right_for_other_sizes(student, rng, oracle):
    """Sines and cosines of other lengths and sizes, far places too, in float64."""
    for length, d_model in ((7, 4), (1, 12), (3, 2), (2500, 8)):
        check_encoding(student, oracle, length, d_model)
    check_encoding(student, oracle, int(rng.integers(5, 60)), 2 * int(rng.integers(2, 20)))
    check_encodings_stay_apart(student, oracle, (6, 4), (3, 10))
    check_refused("an odd d_model", student.sinusoidal_encoding, 4, 7)


@weight(1)
@number("6.1")
def test_shift_matrix_is_right_for_other_shifts(student, rng, oracle):
    """One matrix for all places, for other sizes and shifts, backwards too."""
    check_shift(student, oracle, int(rng.integers(2, 30)), 8, places=40, situation="forwards")
    check_shift(student, oracle, -int(rng.integers(2, 30)), 10, places=40, situation="backwards")
    check_shift(student, oracle, 0, 4, places=10, situation="k = 0")
    check_shift(student, oracle, 1, 32, places=1500, situation="far places")


@weight(1)
@number("6.1")
def test_learned_positions_are_right_for_other_sizes(student, rng):
    """First values, vectors and gradients of other sizes; unknown places are refused."""
    check_first_positions(student, 45, 80)
    check_learned(student, rng, 5, 3, lengths=(2, 5, 1))
    check_learned(student, rng, 3, 6, lengths=(2,), dtype=torch.float32)


# Exercise 6.2


@weight(1)
@number("6.2")
def test_layer_norm_is_right_for_other_shapes(student, rng, oracle):
    """out of other shapes, another epsilon, small vectors, and vectors far from 0."""
    check_parameters(student, "LayerNorm", {"d_model": 5})
    for shape in ((7,), (4, 3), (3, 2, 5), (1, 2, 3, 4)):
        block = draw_block(rng, "LayerNorm", d_model=shape[-1])
        check_output(
            student, oracle, block, (2 * draw_vectors(rng, *shape) - 1,), situation="other shapes"
        )
    block = draw_block(rng, "LayerNorm", d_model=6, epsilon=0.02)
    check_output(
        student, oracle, block, (0.1 * draw_vectors(rng, 2, 6),), situation="another epsilon"
    )
    block = draw_block(rng, "LayerNorm", d_model=6)
    check_output(student, oracle, block, (1e-3 * draw_vectors(rng, 2, 6),), situation="small x")
    check_output(student, oracle, block, (draw_vectors(rng, 3, 6) - 1e5,), situation="x far from 0")


@weight(1)
@number("6.2")
def test_layer_norm_has_the_right_gradients_for_other_shapes(student, rng, oracle):
    """Gradients of other shapes, float32 and views; equal features; what is refused."""
    block = draw_block(rng, "LayerNorm", d_model=4)
    check_gradients(
        student, oracle, rng, block, inputs=(3 * draw_vectors(rng, 3, 2, 4) + 1,), situation="any x"
    )
    x = torch.from_numpy(transposed(rng.normal(size=(3, 4))))
    check_calls_stay_apart(student, oracle, block, (x,), second=(draw_vectors(rng, 3, 4),))
    check_alike(student, oracle, rng, 4, shape=(3, 2))
    single = draw_block(rng, "LayerNorm", torch.float32, d_model=4)
    check_gradients(student, oracle, rng, single, inputs=(x.float(),), situation="float32, a view")
    check_norm_refuses(student, rng, 6)


@weight(1)
@number("6.2")
def test_feed_forward_is_right_for_other_sizes(student, rng, oracle):
    """First values, outputs, gradients and dropout of other sizes."""
    check_parameters(student, "FeedForward", {"d_model": 25, "d_ff": 16})
    for n, t, d_model, d_ff in ((3, 2, 5, 4), (1, 1, 2, 6)):
        block = draw_block(rng, "FeedForward", d_model=d_model, d_ff=d_ff)
        x = torch.from_numpy(transposed(rng.normal(size=(n, t, d_model))))
        check_gradients(student, oracle, rng, block, inputs=(x,), situation="other sizes")
    check_dropout_of_feed_forward(student, rng, 12, 0.4, shape=(10, 20))
    check_feed_forward_refuses(student, rng, "FeedForward", 5, d_ff=3)
    settings = {"d_model": 3, "d_ff": 6}
    check_evaluation(
        student, oracle, rng, "FeedForward", settings=settings, inputs=(draw_vectors(rng, 2, 4, 3),)
    )


@weight(1)
@number("6.2")
def test_feed_forward_conv_and_from_linear_are_right_for_other_sizes(student, rng, oracle):
    """Outputs and gradients of convolutions of size 1; copies of dense layers as such."""
    check_parameters(student, "FeedForwardConv", {"d_model": 25, "d_ff": 16})
    for n, t, d_model, d_ff in ((3, 2, 5, 4), (1, 3, 2, 6)):
        block = draw_block(rng, "FeedForwardConv", d_model=d_model, d_ff=d_ff)
        x = torch.from_numpy(transposed(rng.normal(size=(n, t, d_model))))
        check_gradients(student, oracle, rng, block, inputs=(x,), situation="other sizes")
    check_from_linear(student, oracle, rng, 6, d_ff=4)
    check_from_linear(student, oracle, rng, 3, d_ff=8, dtype=torch.float32)
    check_feed_forward_refuses(student, rng, "FeedForwardConv", 5, d_ff=3)


# Exercise 6.3


@weight(1)
@number("6.3")
def test_encoder_layer_is_right_for_other_sizes_and_masks(student, rng, oracle):
    """Outputs and all gradients of other sizes, with both norms and all kinds of masks."""
    sizes = {"d_model": 9, "num_heads": 3, "d_ff": 4}
    check_norm_order(
        student, oracle, rng, "EncoderLayer", inputs=(draw_vectors(rng, 2, 5, 9),), sizes=sizes
    )
    for shape, norm in (((5, 5), "post"), ((2, 5, 5), "pre"), ((2, 1, 5), "post")):
        block = draw_block(rng, "EncoderLayer", **sizes, norm=norm)
        inputs = (draw_vectors(rng, 2, 5, 9), draw_mask(rng, *shape))
        check_gradients(student, oracle, rng, block, inputs=inputs, situation="a mask")
    check_layer_refuses(student, rng, "EncoderLayer")


@weight(1)
@number("6.3")
def test_encoder_is_right_for_other_numbers_of_layers(student, rng, oracle):
    """Names, outputs and gradients of other stacks, with a mask and without."""
    for layers, norm in ((2, "pre"), (3, "post"), (1, "post")):
        sizes = {"d_model": 4, "num_heads": 2, "d_ff": 6, "num_layers": layers, "norm": norm}
        check_parameters(student, "Encoder", sizes)
        block, x = draw_block(rng, "Encoder", **sizes), draw_vectors(rng, 3, 4, 4)
        check_gradients(student, oracle, rng, block, inputs=(x,), situation="no mask")
        check_gradients(
            student, oracle, rng, block, inputs=(x, draw_mask(rng, 4, 4)), situation="a mask"
        )


@weight(1)
@number("6.3")
def test_encoder_drops_and_keeps_types_with_other_sizes(student, rng, oracle):
    """Dropout where it belongs at another rate; float32, views, and inputs that stay."""
    for norm in ("post", "pre"):
        for part in ("feed_forward", "self_attention"):
            check_dropout_of_part(
                student, oracle, rng, "EncoderLayer", part=part, norm=norm, p=0.4, shape=(15, 8)
            )
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 3, "num_layers": 2}
    single = draw_block(rng, "Encoder", torch.float32, **sizes, norm="post")
    x = torch.from_numpy(transposed(rng.normal(size=(3, 2, 8))))
    check_gradients(student, oracle, rng, single, inputs=(x.float(),), situation="float32")
    first, second = (x, None), (draw_vectors(rng, 3, 2, 8), None)
    check_calls_stay_apart(
        student, oracle, draw_block(rng, "Encoder", **sizes), first, second=second
    )
    check_evaluation(student, oracle, rng, "Encoder", settings=sizes, inputs=(x,))


# Exercise 6.4


@weight(1)
@number("6.4")
def test_decoder_layer_is_right_for_other_sizes_and_masks(student, rng, oracle):
    """Outputs and all gradients of other sizes, with both norms and all kinds of masks."""
    sizes = {"d_model": 9, "num_heads": 3, "d_ff": 4}
    x, memory = draw_vectors(rng, 2, 5, 9), draw_vectors(rng, 2, 4, 9)
    check_norm_order(student, oracle, rng, "DecoderLayer", inputs=(x, memory), sizes=sizes)
    for shape, memory_shape, norm in (
        ((5, 5), (2, 1, 4), "post"),
        (None, (2, 5, 4), "pre"),
        ((2, 5, 5), None, "post"),
    ):
        block = draw_block(rng, "DecoderLayer", **sizes, norm=norm)
        masks = (None if s is None else draw_mask(rng, *s) for s in (shape, memory_shape))
        check_gradients(student, oracle, rng, block, inputs=(x, memory, *masks), situation="masks")
    check_layer_refuses(student, rng, "DecoderLayer")


@weight(1)
@number("6.4")
def test_decoder_is_right_for_other_numbers_of_layers(student, rng, oracle):
    """Names, outputs and gradients of other stacks, with masks and without."""
    for layers, norm in ((2, "pre"), (3, "post"), (1, "post")):
        sizes = {"d_model": 4, "num_heads": 2, "d_ff": 6, "num_layers": layers, "norm": norm}
        check_parameters(student, "Decoder", sizes)
        block = draw_block(rng, "Decoder", **sizes)
        inputs = draw_vectors(rng, 3, 4, 4), draw_vectors(rng, 3, 6, 4)
        check_gradients(student, oracle, rng, block, inputs=inputs, situation="no masks")
        masks = draw_mask(rng, 3, 4, 4), draw_mask(rng, 3, 1, 6)
        check_gradients(student, oracle, rng, block, inputs=(*inputs, *masks), situation="masks")


@weight(1)
@number("6.4")
def test_decoder_drops_and_keeps_types_with_other_sizes(student, rng, oracle):
    """Dropout where it belongs at another rate; float32, views, and inputs that stay."""
    for part in ("feed_forward", "cross_attention", "self_attention"):
        for norm in ("post", "pre"):
            check_dropout_of_part(
                student, oracle, rng, "DecoderLayer", part=part, norm=norm, p=0.4, shape=(15, 8)
            )
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 3, "num_layers": 2}
    single = draw_block(rng, "Decoder", torch.float32, **sizes, norm="post")
    views = [torch.from_numpy(transposed(rng.normal(size=(3, t, 8)))) for t in (2, 4)]
    check_gradients(
        student, oracle, rng, single, inputs=[x.float() for x in views], situation="float32"
    )
    second = draw_vectors(rng, 3, 2, 8), draw_vectors(rng, 3, 4, 8)
    check_calls_stay_apart(
        student, oracle, draw_block(rng, "Decoder", **sizes), views, second=second
    )
    check_evaluation(student, oracle, rng, "Decoder", settings=sizes, inputs=views)


# Exercise 6.5


@weight(1)
@number("6.5")
def test_make_masks_is_right_for_other_lengths(student, rng, oracle):
    """Padding and later places are hidden, for other lengths and more padding."""
    for lengths, target_lengths in (([4, 1], [2, 6]), ([2], [5]), ([1, 3, 6, 2], [3, 1, 1, 2])):
        source = draw_ids(rng, 12, lengths, width=7)
        target = draw_ids(rng, 12, target_lengths, begin=True)
        check_masks(student, oracle, source, target)
        check_unchanged("make_masks", student.make_masks, source, target)
    check_refused("a source without a token", student.make_masks, 0 * source, target)


@weight(1)
@number("6.5")
def test_transformer_has_the_right_parameters_for_other_settings(student, rng, oracle):
    """Names, shapes and first values; a shared matrix is one, and gets all three gradients."""
    sizes = {"d_model": 24, "num_heads": 3, "d_ff": 30, "encoder_layers": 2, "decoder_layers": 1}
    vocabulary = {"source_vocabulary": 180, "target_vocabulary": 180}
    check_first_weights(student, **sizes, **vocabulary, positions="learned", max_length=150)
    first = check_first_weights(student, **sizes, **vocabulary, norm="post", shared=True)
    check("target_embedding.weight" not in first, "A shared matrix must be listed once.")
    shared = {"source_vocabulary": 6, "target_vocabulary": 6, "shared": True, "norm": "post"}
    model = draw_model(rng, **shared, positions="learned", max_length=5)
    ids = draw_ids(rng, 6, [2, 5, 1]), draw_ids(rng, 6, [5, 2, 3], begin=True)
    check_gradients(student, oracle, rng, model, inputs=ids, situation="shared")


@weight(1)
@number("6.5")
def test_transformer_is_right_for_other_settings(student, rng, oracle):
    """Logits and all gradients of other sizes; encode and decode with masks and without."""
    for settings in (
        {"d_model": 6, "num_heads": 3, "encoder_layers": 2, "norm": "post"},
        {"d_model": 5, "num_heads": 1, "positions": "learned", "max_length": 7},
        {"d_ff": 3, "decoder_layers": 1, "max_length": 2},
    ):
        model = draw_model(rng, **settings)
        source, target = draw_ids(rng, 9, [3, 6, 1]), draw_ids(rng, 7, [7, 2, 4], begin=True)
        check_gradients(
            student,
            oracle,
            rng,
            model,
            inputs=(source, target),
            situation="other settings",
            tolerance=FINE,
        )
        for masked in (False, True):
            check_encode(student, oracle, model, source, masked=masked)
            check_decode(student, oracle, rng, model, source=source, target=target, masked=masked)
    long = draw_ids(rng, 9, [70]), draw_ids(rng, 7, [75], begin=True)
    check_logits(student, oracle, model, *long, "more places than max_length")


@weight(1)
@number("6.5")
def test_padding_and_later_tokens_change_nothing_in_other_batches(student, rng, oracle):
    """Each sentence gets what it gets alone, and no place sees what comes later."""
    source, target = draw_ids(rng, 9, [2, 4, 6]), draw_ids(rng, 7, [5, 1, 4], begin=True)
    for settings in ({"positions": "learned", "max_length": 9}, {"encoder_layers": 2}):
        model = draw_model(rng, **settings)
        check_padding_changes_nothing(student, oracle, model, source, target=target, more=2)
        whole = draw_ids(rng, 7, [4] * 3, begin=True)
        check_no_look_ahead(student, oracle, rng, model, source=source, target=whole)


@weight(2)
@number("6.5")
def test_transformer_drops_keeps_types_and_refuses_with_other_sizes(student, rng, oracle):
    """Dropout at another rate, float32, inputs that stay, and a ValueError for bad ids."""
    for side in ("decoder", "encoder"):
        for where in ("self_attention", "embedding"):
            check_dropout_of_model(student, oracle, side, where, p=0.4, shape=(15, 8))
    single = draw_model(rng, torch.float32, norm="post", d_ff=4)
    first = draw_ids(rng, 9, [2, 4]), draw_ids(rng, 7, [5, 1], begin=True)
    second = draw_ids(rng, 9, [4, 1]).T.contiguous().T, draw_ids(rng, 7, [2, 5], begin=True)
    check_gradients(student, oracle, rng, single, inputs=first, situation="float32")
    check_calls_stay_apart(student, oracle, draw_model(rng, norm="post"), first, second=second)
    check_model_refuses(student, rng)


# Exercise 6.6


@weight(1)
@number("6.6")
def test_label_smoothing_loss_is_right_for_other_shapes(student, rng, oracle):
    """Loss and gradient with padding, large logits, float32 and views, for other smoothings."""
    for lengths, width, v in (([3, 5, 1], 5, 4), ([2], 2, 9), ([0, 2, 4, 1], 6, 3)):
        logits = 2 * draw_vectors(rng, len(lengths), width, v)
        targets = draw_targets(rng, v, lengths, width)
        for smoothing in (None, 0.0, 0.25, 0.7):
            check_loss(
                student, oracle, logits, targets, smoothing=smoothing, situation="other shapes"
            )
        check_loss(student, oracle, 1e4 * logits, targets, smoothing=0.2, situation="large logits")
        check_loss(student, oracle, logits.float(), targets, smoothing=0.3, situation="float32")
        view = torch.from_numpy(transposed(logits.numpy()))
        check_loss(student, oracle, view, targets, smoothing=0.05, situation="a view")
    check_nothing_but_padding(student, rng, (3, 2, 4))
    check_loss_refuses(student, logits, targets)


@weight(1)
@number("6.6")
def test_noam_rate_is_right_for_other_sizes(student, rng):
    """Before, at and after the end of the warm-up, for other sizes; bad numbers are refused."""
    for d_model, warmup in ((128, 10), (3, 1000), (int(rng.integers(5, 999)), 37)):
        check_rates(student, d_model, warmup, (1, 9, 10, 11, 37, 999, 1000, 12345))
    for sizes in ((0, 4, 4), (2, -1, 4), (2, 4, -3)):
        check_refused("a step, d_model or warmup below 1", student.noam_rate, *sizes)


# Exercise 6.7


@weight(2)
@number("6.7")
def test_train_takes_the_right_steps_with_other_settings(student, rng, oracle):
    """Losses, learning rates and weights of other models and settings, with more padding."""
    pairs = draw_pairs(rng, [(3, 1), (1, 3), (2, 2), (4, 4), (2, 1)])
    config = {"steps": 5, "batch_size": 5, "warmup": 2, "factor": 0.2, "smoothing": 0.15}
    for more in (
        {"norm": "post", "max_norm": TINY_NORM},
        {"positions": "learned", "max_norm": 0.8},
    ):
        settings = TINY | {"d_model": 6, "max_length": 6} | more
        config["max_norm"] = settings.pop("max_norm")
        model = draw_model(rng, **settings)
        check_run(student, oracle, model, *pairs, config, "other settings", more=2)
    check_train_leaves_pairs_alone(student, rng)


@weight(1)
@number("6.7")
def test_train_has_the_right_batches_for_other_pairs(student, rng, oracle):
    """Each pair once in a pass, leftovers unused, and a new order in each pass, by the seed."""
    lengths = [(1, 3), (4, 2), (2, 2), (3, 1), (2, 4), (1, 1), (3, 3), (4, 4)]
    case = draw_told_apart(oracle, rng, lengths, (1, 3))
    check_each_pair_once(student, case, 3, 3, seed=7)
    seeds = [int(seed) for seed in rng.choice(1000, size=3, replace=False)]
    check_orders(student, case, seeds)


@weight(1)
@number("6.7")
def test_train_has_the_right_modes_and_stops_at_a_bad_loss_for_other_pairs(student, rng, oracle):
    """Dropout while it trains, the same run for the same seed; a bad step is named."""
    check_modes(student, oracle, rng)
    check_not_finite(student, rng)


@weight(1)
@number("6.7")
def test_next_log_probabilities_are_right_for_other_models(student, rng, oracle):
    """After the last column of other prefixes, with sources of several lengths."""
    source = draw_ids(rng, 9, [2, 6, 1, 4])
    for settings in ({"norm": "post"}, {"positions": "learned", "max_length": 6}):
        model = draw_model(rng, **settings)
        for length in (1, 3, 5):
            prefix = draw_ids(rng, 7, [length] * 4, begin=True)
            check_next(student, oracle, model, source, prefix=prefix, situation="other models")
    check_next(
        student, oracle, draw_model(rng, torch.float32), source, prefix=prefix, situation="float32"
    )


@weight(1)
@number("6.7")
def test_greedy_decode_is_right_for_other_models(student, rng, oracle):
    """Sources that end at different lengths; ties, padding and BEGIN; max_length."""
    model, source = draw_model(rng, decoder_layers=1), draw_ids(rng, 9, [4, 2, 1, 5, 3, 3])
    check_greedy(student, oracle, model, source, max_length=6, dropout=0.4)
    check_counting(student, [4, 7, 3, 5], 9, dropout=0.4)
    source = torch.tensor([[4], [3]])
    for logits, expected in (([3, 9, 1, 4, 2, 4], [3] * 6), ([9, 9, 4, 4, 4], [])):
        found = student.greedy_decode(steady_model(logits).on(student), source, 6)
        check_translations(found, [expected] * 2, "greedy_decode")
    check_learned_places_end(student, student.greedy_decode, "greedy_decode")


@weight(1)
@number("6.7")
def test_beam_decode_is_right_for_other_models(student, rng, oracle):
    """The best of all if it is wide, greedy_decode if it is narrow, and what lies between."""
    check_widths(student, oracle, rng, [2, 4, 1], max_length=3, alphas=(0, 1.0), width=150)
    for width in (2, 3):
        for _ in range(3):
            table, settings, expected = draw_search(rng, width)
            model, source = table_model(table), torch.tensor([[3]])
            check_beam(student, model, source, [expected], situation="between", **settings)
            single = model.single()
            check_beam(
                student, single, source, [expected], situation="between, float32", **settings
            )
    check_beam_leaves_all(student, model, torch.tensor([[4, 3], [3, 0]]))
    check_beam_refuses(student, model, source)
    check_learned_places_end(student, student.beam_decode, "beam_decode")


def draw_search(rng, width):
    """A table of what follows what, settings, and what the search finds.

    It finds something else than a search of width 1, and than one that is a bit wider.
    """
    while True:
        table = rng.integers(0, 6, size=(6, 6))
        settings = {
            "max_length": int(rng.integers(3, 6)),
            "width": width,
            "alpha": float(rng.choice([0.5, 1.0, 1.5])),
        }
        found, gap = follow(table, **settings)
        if gap > 1e-3 and all(
            follow(table, **settings | {"width": other})[0] != found for other in (1, width + 1)
        ):
            return table.tolist(), settings, found


def follow(table, max_length, width, alpha):
    """What a search finds in a table, by the words of the docstring, and its closest choice."""
    chances = torch.log_softmax(torch.from_numpy(table).double(), dim=1).tolist()
    alive, ended, gap = [(0.0, (1,))], [], math.inf
    for _step in range(max_length):
        longer = [
            (total + chances[ids[-1]][new], (*ids, new))
            for total, ids in alive
            for new in range(2, len(table))
        ]
        longer.sort(reverse=True)
        if len(longer) > width:
            gap = min(gap, longer[width - 1][0] - longer[width][0])
        ended += [one for one in longer[:width] if one[1][-1] == 2]
        alive = [one for one in longer[:width] if one[1][-1] != 2]
    scores = [(total / (len(ids) - 1) ** alpha, ids) for total, ids in ended + alive]
    first, *rest = sorted(scores, reverse=True)
    gap = min([gap, *(first[0] - other[0] for other in rest[:1])])
    return [new for new in first[1][1:] if new != 2], gap


@weight(1)
@number("6.7")
def test_attention_maps_are_right_for_other_models(student, rng, oracle):
    """The weights of all layers and heads, call after call, for other sizes."""
    source, target = draw_ids(rng, 9, [1, 3, 6, 2]), draw_ids(rng, 7, [5, 2, 1, 3], begin=True)
    for settings in (
        {"encoder_layers": 3, "decoder_layers": 1, "d_model": 6, "num_heads": 3},
        {"decoder_layers": 2, "norm": "post", "positions": "learned", "max_length": 6},
    ):
        check_maps(student, oracle, draw_model(rng, **settings), source, target=target)
    single = draw_model(rng, torch.float32, norm="post")
    check_maps(student, oracle, single, source, target=target)


# Exercise 6.8


@weight(1)
@number("6.8")
def test_complexity_is_right_for_other_sizes(student, rng):
    """Counts for other sizes, around powers of the kernel's size, and for very large ones."""
    for _ in range(20):
        n, d, k = (int(rng.integers(low, high)) for low, high in ((1, 90), (1, 40), (2, 7)))
        check_complexity(student, "recurrent", (n, d, k), (2 * n * d * d, n, n))
        check_complexity(student, "attention", (n, d, k), (2 * n * n * d, 2, 2))
        deep = max(1, -((1 - n) // (k - 1)))
        check_complexity(student, "convolution", (n, d, k), (n * k * d * d, 1, deep))
    for k in (2, 3, 5):
        for power in (1, 4, int(rng.integers(20, 60))):
            for n, deep in ((k**power, power), (k**power + 1, power + 1)):
                check_complexity(student, "dilated", (n, 2, k), (4 * n * k, 1, deep))
    n = 10**18 + int(rng.integers(1000))
    check_complexity(student, "attention", (n, 7), (14 * n * n, 2, 2))
    check_costs_refuse(student, student.complexity)


@weight(2)
@number("6.8")
def test_run_layer_is_right_for_other_sizes(student, rng, oracle):
    """Outputs, gradients and counts of other layers, in float32 too; what is refused."""
    for n, d, dtype in ((7, 2, torch.float64), (3, 5, torch.float64), (2, 4, torch.float32)):
        check_layer(
            student, oracle, rng, "recurrent", n=n, d=d, counts=(2 * n * d * d, n), dtype=dtype
        )
        check_layer(
            student, oracle, rng, "attention", n=n, d=d, counts=(2 * n * n * d, 2), dtype=dtype
        )
        for k, dilation in ((2, 3), (4, 1), (3, 2)):
            counts = (n * k * d * d, 1)
            check_layer(
                student,
                oracle,
                rng,
                "convolution",
                n=n,
                d=d,
                counts=counts,
                k=k,
                dilation=dilation,
                dtype=dtype,
            )
    check_run_layer_refuses(student, rng)


@weight(1)
@number("6.8")
def test_measure_is_right_for_other_sizes(student):
    """Numbers from runs of run_layer, of other sizes and of stacks of several layers."""
    for kind, sizes, expected in (
        ("recurrent", (9, 2), (72, 9, 9)),
        ("convolution", (10, 2, 4), (160, 1, 3)),
        ("convolution", (7, 1, 2), (14, 1, 6)),
        ("dilated", (16, 1, 4), (64, 1, 2)),
        ("dilated", (17, 1, 4), (68, 1, 3)),
        ("attention", (3, 5), (90, 2, 2)),
        ("dilated", (1, 3, 2), (18, 1, 1)),
    ):
        check_measure(student, kind, sizes, expected)


# Exercises 6.9 and 6.10: the lab


@weight(1)
@number("6.9")
def test_q1_the_slowest_pair_needs_the_right_number_of_places_for_a_turn(lab):
    """Lab, question 1: its frequency is that of the last of 32 pairs, within 1 %."""
    turn = 2 * math.pi * 10000 ** (62 / 64)
    check_number(lab, "q1_slow", turn, tolerance=turn / 100)


@weight(1)
@number("6.9")
def test_q2_two_places_have_the_dot_product_of_their_distance(lab):
    """Lab, question 2: the sum of the cosines of three turns of each pair."""
    product = sum(math.cos(3 * 10000 ** (-2 * pair / 64)) for pair in range(32))
    check_number(lab, "q2_apart", product, tolerance=0.01)


@weight(1)
@number("6.9")
def test_q3_the_distance_at_which_the_dot_product_first_rises_is_found(lab):
    """Lab, question 3: dot products don't fall with every step."""
    turns = [10000 ** (-2 * pair / 64) for pair in range(32)]
    products = [sum(math.cos(distance * turn) for turn in turns) for distance in range(60)]
    rises = [place for place in range(1, 60) if products[place] > products[place - 1]]
    check_number(lab, "q3_rise", rises[0])


@weight(1)
@number("6.9")
def test_q5_the_growth_of_vectors_with_pre_norm_is_seen(lab):
    """Lab, question 5: every layer adds about the same mean square."""
    check_choice(lab, "q5_growth", "b", ("a", "b", "c", "d"))


@weight(1)
@number("6.9")
def test_q6_what_comes_along_the_shortcut_with_post_norm_is_right(lab):
    """Lab, question 6: 48 norms, each of which divides by the root of 1.5; within 2 %."""
    left = math.sqrt(1.5) ** -48
    check_number(lab, "q6_left", left, tolerance=left / 50)


@weight(1)
@number("6.10")
def test_q9_two_causal_layers_change_at_the_right_number_of_places(lab):
    """Lab, question 9: the second layer sees what the first made of each place."""
    check_number(lab, "q9_two", 5)


@weight(1)
@number("6.10")
def test_q10_the_rows_across_look_at_the_mirrored_places(lab):
    """Lab, question 10: the row that writes digit p of the answer looks at source place 5 - p."""
    check_sizes(lab, "q10_places", [5 - row for row in range(6)])
