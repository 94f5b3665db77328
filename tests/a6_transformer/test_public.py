"""The public tests of assignment 6: the Transformer, from positions to beam search."""

import math

import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import check_number
from common.testing.checks import check_refused, check_unchanged, transposed
from common.testing.compare import assert_close, check
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
    SEARCHES,
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
    logs,
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
    check_fast,
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
    check_numbers,
    check_orders,
    check_run,
    check_train_leaves_pairs_alone,
    check_trimmed,
    draw_pairs,
    draw_told_apart,
)

# Exercise 6.1


@weight(2)
@number("6.1")
def test_sinusoidal_encoding_has_a_sine_and_a_cosine_for_each_frequency(student, oracle):
    """In turns and from fast to slow, from place 0 on, and in float64 to the last digits."""
    result = student.sinusoidal_encoding(3, 4)
    angles = [(place, place / 100) for place in range(3)]
    rows = [[math.sin(a), math.cos(a), math.sin(b), math.cos(b)] for a, b in angles]
    expected = torch.tensor(rows, dtype=torch.float64)
    assert_close(result, expected, what="the encoding", axes=("place", "feature"))
    for length, d_model in ((1, 2), (5, 6), (4, 10), (2, 64), (3000, 6)):
        check_encoding(student, oracle, length, d_model)
    check_encodings_stay_apart(student, oracle, (4, 6), (5, 8))
    for length, d_model in ((3, 5), (3, 0), (0, 4)):
        check_refused(
            "a length or d_model without waves", student.sinusoidal_encoding, length, d_model
        )


@weight(1)
@number("6.1")
def test_shift_matrix_moves_every_place_by_k(student, oracle):
    """One matrix for all places, from the left; backwards too, and 0 moves nothing."""
    for k in (1, 3, 40):
        check_shift(student, oracle, k, 6, places=50, situation="forwards")
    for k in (-1, -7):
        check_shift(student, oracle, k, 4, places=50, situation="backwards")
    check_shift(student, oracle, 0, 8, places=20, situation="k = 0")
    check_shift(student, oracle, 2, 2, places=2000, situation="far places")
    check_shift(student, oracle, 5, 64, places=30, situation="many features")
    check_refused("an odd d_model", student.shift_matrix, 1, 5)


@weight(1)
@number("6.1")
def test_learned_positions_are_the_first_rows_of_a_weight_that_learns(student, rng):
    """A standard normal weight at first; no vectors for places that were never learned."""
    check_first_positions(student, 60, 50)
    check_learned(student, rng, 7, 4, lengths=(1, 3, 7))
    check_learned(student, rng, 4, 5, lengths=(4,), dtype=torch.float32)


# Exercise 6.2


@weight(1)
@number("6.2")
def test_layer_norm_brings_every_vector_to_mean_0_and_variance_1(student, rng, oracle):
    """out is that of F.layer_norm, over the last axis of any number of axes, also for small x."""
    check_parameters(student, "LayerNorm", {"d_model": 7})
    for shape in ((5,), (3, 4), (2, 3, 6), (2, 1, 3, 2)):
        block = draw_block(rng, "LayerNorm", d_model=shape[-1])
        check_output(
            student, oracle, block, (3 * draw_vectors(rng, *shape) + 2,), situation=f"x of {shape}"
        )
    block = draw_block(rng, "LayerNorm", d_model=4)
    check_output(student, oracle, block, (1e-3 * draw_vectors(rng, 3, 4),), situation="small x")
    block = draw_block(rng, "LayerNorm", d_model=4, epsilon=0.3)
    check_output(student, oracle, block, (draw_vectors(rng, 3, 4),), situation="another epsilon")


@weight(1)
@number("6.2")
def test_layer_norm_is_exact_far_from_0_and_has_pytorchs_gradients(student, rng, oracle):
    """Gradients, vectors near 1e5, equal features, float32, views, and what is refused."""
    block = draw_block(rng, "LayerNorm", d_model=5)
    check_gradients(
        student, oracle, rng, block, inputs=(2 * draw_vectors(rng, 2, 3, 5) - 1,), situation="any x"
    )
    check_output(student, oracle, block, (draw_vectors(rng, 4, 5) + 1e5,), situation="x near 1e5")
    check_alike(student, oracle, rng, 5, shape=(2, 3))
    check_alike(student, oracle, rng, 1, shape=(4,))
    x = torch.from_numpy(transposed(rng.normal(size=(2, 3, 5))))
    check_output(student, oracle, block, (x,), situation="a view")
    check_calls_stay_apart(student, oracle, block, (x,), second=(draw_vectors(rng, 2, 3, 5),))
    single = draw_block(rng, "LayerNorm", torch.float32, d_model=5)
    check_gradients(student, oracle, rng, single, inputs=(x.float(),), situation="float32")
    check_norm_refuses(student, rng, 4)


@weight(1)
@number("6.2")
def test_feed_forward_is_two_dense_layers_with_a_relu_between(student, rng, oracle):
    """Names, first values, outputs and gradients are nn.Linear's; other vectors are refused."""
    check_parameters(student, "FeedForward", {"d_model": 20, "d_ff": 30})
    for n, t, d_model, d_ff in ((2, 3, 4, 7), (1, 4, 5, 2), (3, 1, 1, 3)):
        block = draw_block(rng, "FeedForward", d_model=d_model, d_ff=d_ff)
        x = draw_vectors(rng, n, t, d_model)
        check_gradients(
            student, oracle, rng, block, inputs=(x,), situation=f"d_model {d_model}, d_ff {d_ff}"
        )
    block = draw_block(rng, "FeedForward", torch.float32, d_model=4, d_ff=6)
    x = torch.from_numpy(transposed(rng.normal(size=(2, 3, 4)))).float()
    check_gradients(student, oracle, rng, block, inputs=(x,), situation="float32, a view")
    check_feed_forward_refuses(student, rng, "FeedForward", 4, d_ff=6)


@weight(1)
@number("6.2")
def test_feed_forward_drops_hidden_features_in_training_mode_only(student, rng, oracle):
    """Dropout acts between relu and linear2, and not at all in evaluation mode."""
    check_dropout_of_feed_forward(student, rng, 10, 0.3, shape=(20, 10))
    check_dropout_of_feed_forward(student, rng, 10, 0.6, shape=(20, 10))
    x = draw_vectors(rng, 2, 3, 4)
    check_evaluation(
        student, oracle, rng, "FeedForward", settings={"d_model": 4, "d_ff": 5}, inputs=(x,)
    )


@weight(1)
@number("6.2")
def test_feed_forward_conv_is_two_convolutions_of_size_1(student, rng, oracle):
    """Names, first values, outputs and gradients are nn.Conv1d's; other vectors are refused."""
    check_parameters(student, "FeedForwardConv", {"d_model": 20, "d_ff": 30})
    for n, t, d_model, d_ff in ((2, 3, 4, 7), (1, 4, 5, 2), (3, 1, 1, 3)):
        block = draw_block(rng, "FeedForwardConv", d_model=d_model, d_ff=d_ff)
        x = draw_vectors(rng, n, t, d_model)
        check_gradients(
            student, oracle, rng, block, inputs=(x,), situation=f"d_model {d_model}, d_ff {d_ff}"
        )
    block = draw_block(rng, "FeedForwardConv", torch.float32, d_model=4, d_ff=6)
    check_gradients(
        student,
        oracle,
        rng,
        block,
        inputs=(draw_vectors(rng, 2, 3, 4).float(),),
        situation="float32",
    )
    check_feed_forward_refuses(student, rng, "FeedForwardConv", 4, d_ff=6)


@weight(1)
@number("6.2")
def test_from_linear_gives_the_same_as_convolutions_with_weights_of_its_own(student, rng, oracle):
    """The same outputs without dropout; copies of the weights, in their type, that learn."""
    check_from_linear(student, oracle, rng, 4, d_ff=7)
    check_from_linear(student, oracle, rng, 5, d_ff=3, dtype=torch.float32)


# Exercise 6.3


@weight(1)
@number("6.3")
def test_encoder_layer_is_pytorchs_with_the_norm_before_or_after(student, rng, oracle):
    """Names, outputs and all gradients are those of nn.TransformerEncoderLayer; "pre" is usual."""
    for n, t, sizes in (
        (2, 3, {"d_model": 6, "num_heads": 2, "d_ff": 7}),
        (1, 4, {"d_model": 8, "num_heads": 4, "d_ff": 5}),
        (3, 1, {"d_model": 4, "num_heads": 1, "d_ff": 4}),
    ):
        check_parameters(student, "EncoderLayer", sizes)
        inputs = (draw_vectors(rng, n, t, sizes["d_model"]),)
        check_norm_order(student, oracle, rng, "EncoderLayer", inputs=inputs, sizes=sizes)


@weight(1)
@number("6.3")
def test_encoder_layer_looks_only_where_the_mask_is_true(student, rng, oracle):
    """Masks of (t, t), (n, t, t) and (n, 1, t), in either norm; others are refused."""
    for shape, norm in (((4, 4), "pre"), ((3, 4, 4), "post"), ((3, 1, 4), "pre")):
        block = draw_block(rng, "EncoderLayer", d_model=6, num_heads=2, d_ff=7, norm=norm)
        inputs = (draw_vectors(rng, 3, 4, 6), draw_mask(rng, *shape))
        check_gradients(student, oracle, rng, block, inputs=inputs, situation=f"a mask of {shape}")
    check_layer_refuses(student, rng, "EncoderLayer")


@weight(1)
@number("6.3")
def test_encoder_runs_its_layers_in_turn_and_norms_at_the_end_if_pre(student, rng, oracle):
    """Outputs and gradients of one to three layers; a last norm with "pre", none with "post"."""
    sizes = {"d_model": 6, "num_heads": 3, "d_ff": 5}
    for layers, norm in ((1, "pre"), (2, "post"), (3, "pre")):
        settings = sizes | {"num_layers": layers, "norm": norm}
        check_parameters(student, "Encoder", settings)
        block = draw_block(rng, "Encoder", **settings)
        for mask in ((), (draw_mask(rng, 2, 1, 4),)):
            inputs = (draw_vectors(rng, 2, 4, 6), *mask)
            situation = f'{layers} layer{"s" * (layers > 1)}, norm="{norm}"'
            check_gradients(student, oracle, rng, block, inputs=inputs, situation=situation)
    block = draw_block(rng, "Encoder", **sizes, num_layers=2)
    check_output(student, oracle, block, (draw_vectors(rng, 2, 4, 6),), situation="norm not given")
    check_refused("a norm that isn't known", student.Encoder, 6, 3, 5, 2, 0.0, "both")


@weight(1)
@number("6.3")
def test_encoder_layer_drops_what_each_part_gives_before_it_is_added(student, rng, oracle):
    """In training mode: what the attention gives, hidden features, what the feed-forward gives."""
    kind, shape = "EncoderLayer", (20, 6)
    for norm in ("pre", "post"):
        for part in ("self_attention", "feed_forward"):
            check_dropout_of_part(
                student, oracle, rng, kind, part=part, norm=norm, p=0.3, shape=shape
            )
    settings, x = {"d_model": 6, "num_heads": 2, "d_ff": 5}, draw_vectors(rng, 2, 3, 6)
    check_evaluation(student, oracle, rng, kind, settings=settings, inputs=(x,))
    check_evaluation(
        student, oracle, rng, "Encoder", settings=settings | {"num_layers": 2}, inputs=(x,)
    )


@weight(1)
@number("6.3")
def test_encoder_keeps_float32_takes_views_and_leaves_inputs_alone(student, rng, oracle):
    """Types, views, inputs that stay as they are, and calls that don't disturb each other."""
    sizes, mask = {"d_model": 6, "num_heads": 2, "d_ff": 5}, draw_mask(rng, 2, 3, 3)
    single = draw_block(rng, "Encoder", torch.float32, **sizes, num_layers=2)
    inputs = (draw_vectors(rng, 2, 3, 6, dtype=torch.float32), mask)
    check_gradients(student, oracle, rng, single, inputs=inputs, situation="float32")
    x = torch.from_numpy(transposed(rng.normal(size=(2, 3, 6))))
    second = (draw_vectors(rng, 2, 3, 6), mask)
    for kind, more in (("EncoderLayer", {"norm": "post"}), ("Encoder", {"num_layers": 2})):
        block = draw_block(rng, kind, **sizes, **more)
        check_output(student, oracle, block, (x, mask), situation="a view")
        check_calls_stay_apart(student, oracle, block, (x, mask), second=second)


# Exercise 6.4


@weight(1)
@number("6.4")
def test_decoder_layer_is_pytorchs_with_the_norm_before_or_after(student, rng, oracle):
    """Names, outputs and all gradients, memory's too, are those of nn.TransformerDecoderLayer."""
    for n, t, s, sizes in (
        (2, 3, 5, {"d_model": 6, "num_heads": 2, "d_ff": 7}),
        (1, 4, 2, {"d_model": 8, "num_heads": 4, "d_ff": 5}),
        (3, 1, 1, {"d_model": 4, "num_heads": 1, "d_ff": 4}),
    ):
        check_parameters(student, "DecoderLayer", sizes)
        inputs = (
            draw_vectors(rng, n, t, sizes["d_model"]),
            draw_vectors(rng, n, s, sizes["d_model"]),
        )
        check_norm_order(student, oracle, rng, "DecoderLayer", inputs=inputs, sizes=sizes)


@weight(1)
@number("6.4")
def test_decoder_layer_has_a_mask_for_each_of_its_attentions(student, rng, oracle):
    """mask for the self-attention, memory_mask for memory; without one, all places are seen."""
    x, memory = draw_vectors(rng, 3, 4, 6), draw_vectors(rng, 3, 5, 6)
    for shape, memory_shape, norm in (
        ((4, 4), None, "pre"),
        (None, (3, 1, 5), "post"),
        ((3, 4, 4), (4, 5), "post"),
        ((3, 1, 4), (3, 4, 5), "pre"),
    ):
        block = draw_block(rng, "DecoderLayer", d_model=6, num_heads=2, d_ff=7, norm=norm)
        masks = (None if s is None else draw_mask(rng, *s) for s in (shape, memory_shape))
        situation = f"mask of {shape}, memory_mask of {memory_shape}"
        check_gradients(
            student, oracle, rng, block, inputs=(x, memory, *masks), situation=situation
        )
    check_layer_refuses(student, rng, "DecoderLayer")


@weight(1)
@number("6.4")
def test_decoder_runs_its_layers_in_turn_and_norms_at_the_end_if_pre(student, rng, oracle):
    """Outputs and gradients of one to three layers; all of them get memory and both masks."""
    sizes = {"d_model": 6, "num_heads": 3, "d_ff": 5}
    for layers, norm in ((1, "pre"), (2, "post"), (3, "pre")):
        settings = sizes | {"num_layers": layers, "norm": norm}
        check_parameters(student, "Decoder", settings)
        block = draw_block(rng, "Decoder", **settings)
        for masks in ((), (draw_mask(rng, 4, 4), draw_mask(rng, 2, 1, 5))):
            inputs = (draw_vectors(rng, 2, 4, 6), draw_vectors(rng, 2, 5, 6), *masks)
            situation = f'{layers} layer{"s" * (layers > 1)}, norm="{norm}"'
            check_gradients(student, oracle, rng, block, inputs=inputs, situation=situation)
    block = draw_block(rng, "Decoder", **sizes, num_layers=2)
    inputs = (draw_vectors(rng, 2, 4, 6), draw_vectors(rng, 2, 3, 6))
    check_output(student, oracle, block, inputs, situation="norm not given")


@weight(1)
@number("6.4")
def test_decoder_drops_like_the_encoder_keeps_types_and_leaves_inputs_alone(student, rng, oracle):
    """Dropout of all three parts in training mode; float32, views, and inputs that stay."""
    kind, sizes = "DecoderLayer", {"d_model": 6, "num_heads": 2, "d_ff": 5}
    for part in ("self_attention", "cross_attention", "feed_forward"):
        for norm in ("pre", "post"):
            check_dropout_of_part(
                student, oracle, rng, kind, part=part, norm=norm, p=0.3, shape=(20, 6)
            )
    masks = draw_mask(rng, 3, 3), draw_mask(rng, 2, 1, 4)
    single = draw_block(rng, "Decoder", torch.float32, **sizes, num_layers=2)
    inputs = [draw_vectors(rng, 2, t, 6, dtype=torch.float32) for t in (3, 4)]
    check_gradients(student, oracle, rng, single, inputs=(*inputs, *masks), situation="float32")
    views = [torch.from_numpy(transposed(rng.normal(size=(2, t, 6)))) for t in (3, 4)]
    second = (draw_vectors(rng, 2, 3, 6), draw_vectors(rng, 2, 4, 6), *masks)
    block = draw_block(rng, "Decoder", **sizes, num_layers=2)
    check_calls_stay_apart(student, oracle, block, (*views, *masks), second=second)
    settings = sizes | {"num_layers": 2}
    check_evaluation(student, oracle, rng, "Decoder", settings=settings, inputs=second)


# Exercise 6.5


@weight(1)
@number("6.5")
def test_make_masks_hides_padding_and_later_places(student, rng, oracle):
    """(n, 1, s) and (n, t, t) of bool: no padding, and in targets nothing that comes later."""
    source, target = torch.tensor([[4, 5, 3], [6, 0, 0]]), torch.tensor([[1, 3, 0], [1, 4, 5]])
    check_masks(student, oracle, source, target)
    for lengths, target_lengths in (([2, 5, 1], [4, 1, 3]), ([1], [1]), ([3, 3], [2, 2])):
        source = draw_ids(rng, 9, lengths)
        target = draw_ids(rng, 9, target_lengths, begin=True)
        check_masks(student, oracle, source, target)
        check_unchanged("make_masks", student.make_masks, source, target)
    wide = draw_ids(rng, 9, [2, 3], width=5).T.contiguous().T
    check_masks(student, oracle, wide, draw_ids(rng, 9, [3, 1], begin=True, width=6))
    check_refused("padding before a token", student.make_masks, torch.tensor([[0, 3]]), target)


@weight(1)
@number("6.5")
def test_transformer_has_the_parameters_that_the_docstring_names(student):
    """Names and shapes; first weights normal where the docstring says so, the rest PyTorch's."""
    sizes = {"num_heads": 4, "d_ff": 40, "encoder_layers": 1, "decoder_layers": 2}
    check_first_weights(student, source_vocabulary=150, target_vocabulary=120, d_model=32, **sizes)
    learned = {"positions": "learned", "max_length": 200, "norm": "post"}
    check_first_weights(
        student, source_vocabulary=200, target_vocabulary=210, d_model=20, **sizes, **learned
    )


@weight(1)
@number("6.5")
def test_transformer_shares_one_matrix_if_told_to(student, rng, oracle):
    """One parameter for both embeddings and the output; its gradient is the sum of all three."""
    sizes = {"source_vocabulary": 8, "target_vocabulary": 8, "shared": True}
    model = draw_model(rng, **sizes)
    first = check_first_weights(
        student, **model.settings | {"source_vocabulary": 400, "target_vocabulary": 400}
    )
    check("output.weight" not in first, "A shared matrix must be listed once.")
    source, target = draw_ids(rng, 8, [3, 5]), draw_ids(rng, 8, [4, 2], begin=True)
    check_gradients(student, oracle, rng, model, inputs=(source, target), situation="shared")


@weight(1)
@number("6.5")
def test_transformer_is_pytorchs_with_copied_weights(student, rng, oracle):
    """Logits and all gradients are those of PyTorch's layers: both norms, both kinds of places."""
    for settings in (
        {},
        {"norm": "post", "encoder_layers": 2, "decoder_layers": 1},
        {"positions": "learned", "max_length": 6, "d_model": 9, "num_heads": 3},
        {"source_vocabulary": 5, "target_vocabulary": 12, "d_ff": 3, "encoder_layers": 3},
    ):
        model = draw_model(rng, **settings)
        vocabularies = [model.settings[f"{side}_vocabulary"] for side in ("source", "target")]
        source = draw_ids(rng, vocabularies[0], [5, 2, 4])
        target = draw_ids(rng, vocabularies[1], [3, 6, 1], begin=True)
        situation = ", ".join(f"{name} {value}" for name, value in settings.items()) or "usual"
        check_gradients(
            student,
            oracle,
            rng,
            model,
            inputs=(source, target),
            situation=situation,
            tolerance=FINE,
        )


@weight(1)
@number("6.5")
def test_encode_and_decode_use_the_masks_that_they_get(student, rng, oracle):
    """Memory and logits with masks and without any; places count from 0 on, without an end."""
    source, target = draw_ids(rng, 9, [5, 2, 4]), draw_ids(rng, 7, [3, 6, 1], begin=True)
    for settings in ({"encoder_layers": 2, "max_length": 3}, {"norm": "post"}):
        model = draw_model(rng, **settings)
        for masked in (True, False):
            check_encode(student, oracle, model, source, masked=masked)
            check_decode(student, oracle, rng, model, source=source, target=target, masked=masked)
    long = draw_ids(rng, 9, [90]), draw_ids(rng, 7, [80], begin=True)
    check_logits(student, oracle, model, *long, "more places than max_length")


@weight(2)
@number("6.5")
def test_padding_and_later_tokens_change_nothing(student, rng, oracle):
    """Each sentence of a batch gets what it gets alone, and no place sees what comes later."""
    source, target = draw_ids(rng, 9, [5, 2, 1, 4]), draw_ids(rng, 7, [3, 6, 2, 1], begin=True)
    for settings in ({"encoder_layers": 2}, {"norm": "post"}):
        model = draw_model(rng, **settings)
        check_padding_changes_nothing(student, oracle, model, source, target=target, more=3)
        whole = draw_ids(rng, 7, [5] * 4, begin=True)
        check_no_look_ahead(student, oracle, rng, model, source=source, target=whole)


@weight(1)
@number("6.5")
def test_transformer_drops_token_vectors_keeps_types_and_refuses_odd_ids(student, rng, oracle):
    """Dropout on token vectors and in layers; float32, views, inputs that stay; a ValueError."""
    for side in ("encoder", "decoder"):
        for where in ("embedding", "self_attention"):
            check_dropout_of_model(student, oracle, side, where, p=0.3, shape=(20, 6))
    single = draw_model(rng, torch.float32)
    source, target = draw_ids(rng, 9, [5, 2, 4]), draw_ids(rng, 7, [3, 6, 1], begin=True)
    check_gradients(student, oracle, rng, single, inputs=(source, target), situation="float32")
    other = draw_ids(rng, 9, [3, 1, 4]), draw_ids(rng, 7, [2, 5, 3], begin=True)
    views = source.T.contiguous().T, target.T.contiguous().T
    check_calls_stay_apart(student, oracle, draw_model(rng), views, second=other)
    check_model_refuses(student, rng)


@weight(1)
@number("6.5")
@tags("timing")
def test_transformer_is_about_as_fast_as_pytorchs(student, rng, oracle):
    """A step forward and back takes at most twice as long as nn.Transformer's.

    The docstring states 1.5 times; the rest is for a busy machine.
    """
    check_fast(student, oracle, rng)


# Exercise 6.6


@weight(2)
@number("6.6")
def test_label_smoothing_loss_is_pytorchs_cross_entropy(student, rng, oracle):
    """Loss and gradient for several smoothings, 0.1 if none is given, without padding."""
    for n, t, v in ((2, 3, 5), (1, 4, 3), (3, 1, 7)):
        logits, targets = 2 * draw_vectors(rng, n, t, v), draw_targets(rng, v, [t] * n, t)
        for smoothing in (None, 0.0, 0.1, 0.35, 0.9):
            situation = "smoothing not given" if smoothing is None else f"smoothing {smoothing}"
            check_loss(student, oracle, logits, targets, smoothing=smoothing, situation=situation)


@weight(1)
@number("6.6")
def test_label_smoothing_loss_leaves_padding_out_of_the_mean(student, rng, oracle):
    """The mean is over real places, whatever sequence they are in; 0 if there are none."""
    logits = 2 * draw_vectors(rng, 3, 4, 6)
    for lengths in ([4, 1, 2], [1, 0, 4], [0, 0, 1]):
        targets = draw_targets(rng, 6, lengths, 4)
        for smoothing in (0.0, 0.2):
            check_loss(
                student, oracle, logits, targets, smoothing=smoothing, situation="with padding"
            )
    check_nothing_but_padding(student, rng, (2, 3, 5))
    check_nothing_but_padding(student, rng, (1, 1, 4), torch.float32)


@weight(1)
@number("6.6")
def test_label_smoothing_loss_takes_large_logits_and_float32(student, rng, oracle):
    """Logits of 1e4 and -1e4, float32 and views; smoothings outside of [0, 1) are refused."""
    targets = draw_targets(rng, 5, [3, 2, 4], 4)
    logits = draw_vectors(rng, 3, 4, 5)
    check_loss(student, oracle, 1e4 * logits, targets, smoothing=0.1, situation="logits near 1e4")
    check_loss(student, oracle, logits - 1e4, targets, smoothing=0.1, situation="logits near -1e4")
    check_loss(student, oracle, logits.float(), targets, smoothing=0.2, situation="float32")
    view = torch.from_numpy(transposed(logits.numpy()))
    check_loss(student, oracle, view, targets.T.contiguous().T, smoothing=0.2, situation="views")
    check_unchanged("label_smoothing_loss", student.label_smoothing_loss, logits, targets, 0.3)
    check_loss_refuses(student, logits, targets)


@weight(1)
@number("6.6")
def test_noam_rate_goes_up_for_warmup_steps_and_then_down(student):
    """With d_model 64 and warmup 100: 1/80 at its peak, half of it at steps 50 and 400."""
    for step, expected in (
        (100, 1 / 80),
        (25, 1 / 320),
        (50, 1 / 160),
        (400, 1 / 160),
        (1, 1 / 8000),
    ):
        assert_close(student.noam_rate(step, 64, 100), expected, what="the learning rate")
    check_rates(student, 512, 4000, (1, 2, 3999, 4000, 4001, 10**6))
    check_rates(student, 9, 1, (1, 2, 5))
    check_rates(student, 1, 7, (3, 7, 11))
    for sizes in ((0, 8, 5), (-1, 8, 5), (3, 0, 5), (3, 8, 0)):
        check_refused("a step, d_model or warmup below 1", student.noam_rate, *sizes)


# Exercise 6.7


@weight(1)
@number("6.7")
def test_train_takes_the_steps_that_the_docstring_describes(student, rng, oracle):
    """Losses, learning rates and weights, step by step: teacher forcing, clipping, and Adam."""
    model = draw_model(rng, **TINY)
    source, target = draw_pairs(rng, [(2, 3), (4, 1), (1, 2), (3, 3)])
    config = {"steps": 6, "batch_size": 4, "warmup": 3, "factor": 0.3, "smoothing": 0.2}
    config["max_norm"] = TINY_NORM
    check_run(student, oracle, model, source, target, config, "all pairs in each batch, clipped")
    other = config | {"batch_size": 9, "max_norm": 50.0, "smoothing": 0.0, "warmup": 50}
    check_run(
        student, oracle, model, source, target, other, "fewer pairs than batch_size, not clipped"
    )
    check_train_leaves_pairs_alone(student, rng)


@weight(1)
@number("6.7")
def test_train_takes_each_pair_once_in_a_pass_in_a_new_order(student, rng, oracle):
    """Batches share no pair, leftovers are not used, and each pass has an order of its own."""
    lengths = [(2, 3), (4, 1), (1, 2), (3, 3), (2, 1), (1, 4), (3, 2)]
    case = draw_told_apart(oracle, rng, lengths, (1, 3))
    check_each_pair_once(student, case, 3, 3, seed=1)
    check_orders(student, case, (0, 1, 2))


@weight(1)
@number("6.7")
def test_train_drops_out_starts_from_its_seed_and_ends_in_evaluation_mode(student, rng, oracle):
    """Training mode while it trains, whatever the mode was; the same seed gives the same run."""
    check_modes(student, oracle, rng)


@weight(1)
@number("6.7")
def test_train_trims_its_batches_and_stops_at_a_loss_that_is_no_number(student, rng, oracle):
    """Columns of nothing but padding are cut off; a ValueError names the step that went wrong."""
    pairs = draw_pairs(rng, [(2, 3), (4, 1), (1, 2)])
    model = draw_model(rng, **TINY, positions="learned", max_length=5)
    config = {"steps": 3, "batch_size": 3, "warmup": 2, "factor": 0.3, "smoothing": 0.1}
    config["max_norm"] = 0.5
    check_trimmed(student, model, *pairs, config=config)
    check_run(student, oracle, model, *pairs, config, "columns of padding", more=3)
    check_not_finite(student, rng)


@weight(3)
@number("6.7")
@tags("training")
def test_a_trained_transformer_translates_90_percent_of_unseen_numbers(student, rng):
    """One encoder layer, one decoder layer, 250 steps; number words that it has never seen."""
    check_numbers(student, rng)


@weight(1)
@number("6.7")
def test_next_log_probabilities_are_those_after_the_last_column(student, rng, oracle):
    """A log-softmax over all ids; afterwards padding and BEGIN get -inf, the others stay."""
    source = draw_ids(rng, 9, [3, 1, 5])
    for settings in ({}, {"norm": "post", "encoder_layers": 2}):
        model = draw_model(rng, **settings)
        for length in (1, 2, 4):
            prefix = draw_ids(rng, 7, [length] * 3, begin=True)
            situation = f"a prefix of {length}"
            check_next(student, oracle, model, source, prefix=prefix, situation=situation)
    single = draw_model(rng, torch.float32)
    check_next(student, oracle, single, source, prefix=prefix, situation="float32")


@weight(1)
@number("6.7")
def test_greedy_decode_takes_the_likeliest_token_until_the_end(student, rng, oracle):
    """Sources that end at different lengths, in one batch and one by one; without dropout."""
    lengths = [3, 1, 5, 2, 4]
    for settings, max_length in (
        ({"max_length": 2}, 5),
        ({"norm": "post", "encoder_layers": 2}, 3),
    ):
        model, source = draw_model(rng, **settings), draw_ids(rng, 9, lengths)
        check_greedy(student, oracle, model, source, max_length=max_length, dropout=0.5)
    check_counting(student, [5, 3, 8, 3, 6], 10, dropout=0.3)


@weight(1)
@number("6.7")
def test_greedy_decode_never_takes_padding_or_begin_and_stops_at_max_length(student):
    """Both are left out even where they are likeliest; of two that tie, the lower id comes.

    A max_length beyond the learned places is refused.
    """
    source = torch.tensor([[3, 4], [4, 0]])
    model = steady_model([9, 8, 0, 1, 5, 5, 2]).on(student)
    for length in (1, 2, 5):
        found = student.greedy_decode(model, source, length)
        check_translations(found, [[4] * length] * 2, "greedy_decode")
    found = student.greedy_decode(model, source)
    check_translations(found, [[4] * 32] * 2, "greedy_decode, 32 tokens if nothing is said,")
    model = steady_model([1, 1, 7, 2, 7, 3]).on(student)
    check_translations(student.greedy_decode(model, source), [[], []], "greedy_decode")
    # 5, then 3, then 6, then END.
    rows = [[0] * 7, [0, 0, 1, 2, 3, 9, 4], [0] * 7, [5, 0, 3, 1, 2, 1, 4], [0] * 7]
    model = table_model([*rows, [0, 0, 1, 6, 2, 5, 3], [8, 0, 9, 1, 2, 3, 4]]).on(student)
    found = student.greedy_decode(model, source, 10)
    check_translations(found, [[5, 3, 6]] * 2, "greedy_decode")
    check_learned_places_end(student, student.greedy_decode, "greedy_decode")


@weight(1)
@number("6.7")
def test_beam_decode_finds_the_best_of_all_if_it_is_wide_enough(student, rng, oracle):
    """Beside a search through everything, for several alphas; width 1 is greedy_decode."""
    check_widths(student, oracle, rng, [3, 1, 5, 2], max_length=3, alphas=(0, 0.6, 1.5), width=100)
    check_widths(student, oracle, rng, [2], max_length=4, alphas=(1,), width=200)


@weight(1)
@number("6.7")
def test_beam_decode_follows_as_many_hypotheses_as_it_is_told(student):
    """Four tables of what follows what, in float32 too; source and model stay; a ValueError."""
    source = torch.tensor([[3]])
    # 3 is likelier at first, but then leads nowhere: 0.55 * 0.4 is less than 0.4 * 0.9.
    chances = [[1, 0, 0], [0.05, 0.55, 0.4], [1, 0, 0], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]]
    model = table_model([logs(row) for row in chances])
    for width, expected in ((1, [3]), (2, [4]), (3, [4])):
        settings = {"max_length": 6, "alpha": 0.0, "width": width}
        check_beam(student, model, source, [expected], situation=f"width {width}", **settings)
    # Two tokens have 0.55 * 0.7 = 0.385, three 0.45 * 0.95 * 0.7 = 0.299: more for each of them.
    chances = [[1, 0, 0], [0, 0.55, 0.45], [1, 0, 0], [0.7, 0.15, 0.15], [0.05, 0.95, 0]]
    model = table_model([logs(row) for row in chances])
    for alpha, expected in ((0.0, [3]), (1.0, [4, 3])):
        settings = {"max_length": 6, "alpha": alpha, "width": 2}
        check_beam(student, model, source, [expected], situation=f"alpha {alpha}", **settings)
    for table, alternatives in SEARCHES:
        model = table_model(table)
        for settings, expected in alternatives:
            situation = ", ".join(f"{name} {value}" for name, value in settings.items())
            check_beam(student, model, source, [expected], situation=situation, **settings)
        single = model.single()
        check_beam(
            student, single, source, [expected], situation=f"{situation}, float32", **settings
        )
    check_beam_leaves_all(student, model, torch.tensor([[3, 0], [4, 3]]))
    check_beam_refuses(student, model, source)
    check_learned_places_end(student, student.beam_decode, "beam_decode")


@weight(1)
@number("6.7")
def test_attention_maps_are_the_weights_of_all_layers_and_heads(student, rng, oracle):
    """encoder, decoder and cross, first layer first, without gradients; the model stays."""
    source, target = draw_ids(rng, 9, [5, 2, 4]), draw_ids(rng, 7, [3, 6, 1], begin=True)
    for settings in (
        {"encoder_layers": 2, "decoder_layers": 3},
        {"encoder_layers": 1, "decoder_layers": 1, "norm": "post", "num_heads": 4},
    ):
        check_maps(student, oracle, draw_model(rng, **settings), source, target=target)
    check_maps(student, oracle, draw_model(rng, torch.float32), source, target=target)


# Exercise 6.8


@weight(1)
@number("6.8")
def test_complexity_counts_products_steps_and_the_longest_path(student):
    """n vectors of d features: counts that can be checked with pen and paper."""
    for kind, sizes, expected in (
        ("recurrent", (7, 5), (350, 7, 7)),
        ("recurrent", (1, 3), (18, 1, 1)),
        ("convolution", (7, 5), (525, 1, 3)),
        ("convolution", (8, 2, 3), (96, 1, 4)),
        ("convolution", (9, 2, 5), (180, 1, 2)),
        ("convolution", (1, 4, 2), (32, 1, 1)),
        ("dilated", (7, 5), (525, 1, 2)),
        ("dilated", (9, 2), (108, 1, 2)),
        ("dilated", (10, 2), (120, 1, 3)),
        ("dilated", (8, 3, 2), (144, 1, 3)),
        ("dilated", (1, 2, 4), (16, 1, 1)),
        ("attention", (7, 5), (490, 2, 2)),
        ("attention", (1, 6, 4), (12, 2, 2)),
    ):
        check_complexity(student, kind, sizes, expected)
    check_costs_refuse(student, student.complexity)


@weight(1)
@number("6.8")
def test_complexity_is_exact_for_sizes_that_floats_can_not_hold(student):
    """Powers of the kernel's size, and one more: a logarithm in floats would round them."""
    for power in (5, 20, 34):
        n = 3**power
        check_complexity(student, "dilated", (n, 1), (3 * n, 1, power))
        check_complexity(student, "dilated", (n + 1, 1), (3 * (n + 1), 1, power + 1))
    check_complexity(student, "dilated", (10**15, 1, 10), (10**16, 1, 15))
    n = 10**17 + 1
    check_complexity(student, "convolution", (n, 3, 2), (18 * n, 1, 10**17))
    check_complexity(student, "convolution", (n + 1, 1, 3), (3 * (n + 1), 1, 5 * 10**16 + 1))
    check_complexity(student, "attention", (n, 3), (6 * n * n, 2, 2))
    check_complexity(student, "recurrent", (n, 2), (8 * n, n, n))


@weight(2)
@number("6.8")
def test_run_layer_computes_the_layers_and_counts_what_they_cost(student, rng, oracle):
    """Outputs and gradients are PyTorch's; products with zeros before the first are counted."""
    for n, d, counts in ((5, 3, (90, 5)), (1, 4, (32, 1)), (4, 1, (8, 4))):
        check_layer(student, oracle, rng, "recurrent", n=n, d=d, counts=counts)
    for n, d, k, dilation, counts in (
        (5, 3, 2, 1, (90, 1)),
        (6, 2, 3, 2, (72, 1)),
        (3, 1, 4, 3, (12, 1)),
        (1, 2, 3, 1, (12, 1)),
    ):
        check_layer(
            student, oracle, rng, "convolution", n=n, d=d, counts=counts, k=k, dilation=dilation
        )
    for n, d, counts in ((5, 3, (150, 2)), (1, 4, (8, 2)), (3, 1, (18, 2))):
        check_layer(student, oracle, rng, "attention", n=n, d=d, counts=counts)


@weight(1)
@number("6.8")
def test_run_layer_keeps_float32_and_refuses_what_it_does_not_know(student, rng, oracle):
    """float32 stays; "dilated" is no layer but a stack; a dilation below 1 makes no sense."""
    for kind, counts in (("recurrent", (72, 4)), ("convolution", (108, 1)), ("attention", (96, 2))):
        check_layer(student, oracle, rng, kind, n=4, d=3, counts=counts, dtype=torch.float32)
    check_run_layer_refuses(student, rng)


@weight(1)
@number("6.8")
def test_measure_finds_what_the_formulas_say(student):
    """From runs of run_layer, stacked until the last output depends on the first input."""
    for kind, sizes, expected in (
        ("recurrent", (6, 3), (108, 6, 6)),
        ("convolution", (8, 2), (96, 1, 4)),
        ("convolution", (5, 3, 4), (180, 1, 2)),
        ("dilated", (9, 2), (108, 1, 2)),
        ("dilated", (10, 1), (30, 1, 3)),
        ("dilated", (8, 2, 2), (64, 1, 3)),
        ("attention", (6, 4), (288, 2, 2)),
        ("convolution", (1, 2, 2), (8, 1, 1)),
    ):
        check_measure(student, kind, sizes, expected)
    check_costs_refuse(student, student.measure)


# Exercises 6.9 and 6.10: the lab


@weight(1)
@number("6.9")
def test_q1_the_fastest_pair_needs_the_right_number_of_places_for_a_turn(lab):
    """Lab, question 1: it turns by 1 from a place to the next, and a turn is 2 pi."""
    check_number(lab, "q1_fast", 2 * math.pi, tolerance=0.07)


@weight(1)
@number("6.9")
def test_q2_a_place_has_the_right_dot_product_with_itself(lab):
    """Lab, question 2: sin^2 + cos^2 for each of the pairs."""
    check_number(lab, "q2_same", 64 / 2, tolerance=0.01)


@weight(1)
@number("6.9")
def test_q4_the_place_that_the_fastest_pair_takes_for_place_0_is_found(lab):
    """Lab, question 4: the whole number up to 50 that is nearest to a multiple of 2 pi."""
    nearest = min(range(1, 51), key=lambda place: abs(math.remainder(place, 2 * math.pi)))
    check_number(lab, "q4_back", nearest)


@weight(1)
@number("6.9")
def test_q6_a_late_layer_of_a_pre_norm_stack_changes_its_input_by_the_right_part(lab):
    """Lab, question 6: what layer 100 adds, compared with what is there, as roots."""
    check_number(lab, "q6_change", math.sqrt(1.2 / (1 + 99 * 1.2)), tolerance=0.002)


@weight(2)
@number("6.10")
def test_q8_an_encoder_without_places_gives_the_right_number_of_different_vectors(lab):
    """Lab, question 8: one for each digit that occurs in 3, 1, 4, 1, 5, 9, 2, 6, 5."""
    check_number(lab, "q8_different", len(set("314159265")))


@weight(1)
@number("6.10")
def test_q9_one_causal_layer_changes_at_the_right_number_of_places(lab):
    """Lab, question 9: the two swapped places; to the others their keys are a set."""
    check_number(lab, "q9_one", 2)


@weight(1)
@number("6.10")
def test_q10_the_decoders_own_map_has_the_right_number_of_zeros(lab):
    """Lab, question 10: all weights above the diagonal of a 7 x 7 map."""
    check_number(lab, "q10_zeros", 7 * 6 // 2)
