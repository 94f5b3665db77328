"""The public tests of assignment 6: the Transformer, from positions to beam search."""

import itertools
import math

import numpy as np
import torch
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.data import load_numbers
from common.data.numbers import pad
from common.labs.answer_checks import check_number
from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check
from common.testing.dropout import check_tensor
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import check_same_weights, hooks_of, seed_torch, vjp
from tests.a6_transformer import block_cases as blocks
from tests.a6_transformer import complexity_cases as complexity
from tests.a6_transformer import decoding_cases as decoding
from tests.a6_transformer import dropout_cases as dropout
from tests.a6_transformer import training_cases as training
from tests.a6_transformer.cases import (
    FINE,
    Block,
    check_calls_stay_apart,
    check_evaluation,
    check_gradients,
    check_is_module,
    check_parameters,
    compare,
    draw_block,
    draw_mask,
    draw_vectors,
    loaded,
    new_transformer,
    view_of,
)
from tests.a6_transformer.model_cases import (
    EOS,
    changed_targets,
    check_fast,
    check_first_weights,
    check_model_refuses,
    compare_decoded,
    compare_logits,
    compare_masks,
    compare_memory,
    compare_with_alone,
    draw_ids,
    draw_model,
    padded,
    visible_memory,
)

# Exercise 6.1


@weight(2)
@number("6.1")
def test_sinusoidal_encoding_has_a_sine_and_a_cosine_for_each_frequency(student, rng, oracle):
    """Alternating, from fast to slow, from position 0 on, and exact in float64."""
    result = student.layers.sinusoidal_encoding(3, 4)
    angles = [(position, position / 100) for position in range(3)]
    rows = [[math.sin(a), math.cos(a), math.sin(b), math.cos(b)] for a, b in angles]
    expected = torch.tensor(rows, dtype=torch.float64)
    assert_close(result, expected, what="the encoding", axes=blocks.POSITION_AXES)
    drawn = int(rng.integers(10, 99)), 2 * int(rng.integers(7, 30))
    for sizes in ((1, 2), (5, 6), (4, 10), (2, 64), (3000, 6), drawn):
        result = student.layers.sinusoidal_encoding(*sizes)
        expected = oracle.sinusoidal_encoding(*sizes)
        assert_close(result, expected, what="the encoding", axes=blocks.POSITION_AXES)
    calls = [(4, 6), (5, 8), (4, 6), (5, 8)]
    for sizes, result in zip(
        calls, call_each(student.layers.sinusoidal_encoding, calls), strict=True
    ):
        expected = oracle.sinusoidal_encoding(*sizes)
        assert_close(result, expected, what="the encoding (several calls in a row)")
    for sizes in ((3, 5), (3, 0), (0, 4)):
        check_refused(
            "an odd or empty d_model, or an empty length",
            student.layers.sinusoidal_encoding,
            *sizes,
        )


@weight(1)
@number("6.1")
def test_shift_matrix_moves_every_position_by_k(student, oracle):
    """One matrix for all positions, applied from the left; backwards too, and 0 moves nothing."""
    for shifts, d_model, length, situation in (
        ((1, 3, 40), 6, 50, "forwards"),
        ((-1, -7), 4, 50, "backwards"),
        ((0,), 8, 20, "k = 0"),
        ((2,), 2, 2000, "large positions"),
        ((5,), 64, 30, "many features"),
    ):
        for k in shifts:
            vectors = oracle.sinusoidal_encoding(length + abs(k), d_model)
            blocks.compare_shifted(student.layers.shift_matrix(k, d_model), vectors, k, situation)
    check_refused("an odd d_model", student.layers.shift_matrix, 1, 5)


@weight(1)
@number("6.1")
def test_learned_positions_are_the_first_rows_of_a_trainable_weight(student, rng):
    """Initialized from the standard normal distribution; positions beyond the table are refused."""
    modules = student.layers.LearnedPositions(60, 50), student.layers.LearnedPositions(60, 50)
    blocks.check_first_positions(modules, (60, 50))
    cases = ((7, 4), (1, 3, 7), torch.float64), ((4, 5), (4,), torch.float32)
    for sizes, lengths, dtype in cases:
        values = draw_vectors(rng, *sizes, dtype=dtype)
        block = Block("LearnedPositions", {}, {"weight": values})
        positions = loaded(student.layers.LearnedPositions(*sizes), block)
        blocks.check_positions(positions, rng, values, lengths)
        for wrong in ((0, sizes[1]), (-1, sizes[1]), (sizes[0], 0)):
            check_refused("a size below 1", student.layers.LearnedPositions, *wrong)


# Exercise 6.2


@weight(1)
@number("6.2")
def test_layer_norm_brings_every_vector_to_mean_0_and_variance_1(student, rng, oracle):
    """out is that of F.layer_norm, over the last axis of any number of axes, also for small x."""
    check_parameters(student.layers.LayerNorm(d_model=7), "LayerNorm", {"d_model": 7})
    for shape in ((5,), (3, 4), (2, 3, 6), (2, 1, 3, 2)):
        block = draw_block(rng, "LayerNorm", d_model=shape[-1])
        x = 3 * draw_vectors(rng, *shape) + 2
        out = loaded(student.layers.LayerNorm(**block.settings), block)(x)
        compare(out, oracle.output(*block, (x,)), f"x of {shape}")
    for scale, more, situation in ((1e-3, {}, "small x"), (1, {"eps": 0.3}, "another eps")):
        block = draw_block(rng, "LayerNorm", d_model=4, **more)
        x = scale * draw_vectors(rng, 3, 4)
        out = loaded(student.layers.LayerNorm(**block.settings), block)(x)
        compare(out, oracle.output(*block, (x,)), situation)


@weight(1)
@number("6.2")
def test_layer_norm_is_exact_far_from_0_and_has_pytorchs_gradients(student, rng, oracle):
    """Gradients, vectors near 1e5, equal features, float32, views, and invalid input."""
    block, x = draw_block(rng, "LayerNorm", d_model=5), 2 * draw_vectors(rng, 2, 3, 5) - 1
    norm = loaded(student.layers.LayerNorm(d_model=5), block)
    check_gradients(norm, oracle, block, (x,), rng=rng, situation="any x")
    x = draw_vectors(rng, 4, 5) + 1e5
    out = loaded(student.layers.LayerNorm(d_model=5), block)(x)
    compare(out, oracle.output(*block, (x,)), "x near 1e5")
    situation = "all features of a vector are the same"
    for shape in ((2, 3, 5), (4, 1)):
        plain, x = draw_block(rng, "LayerNorm", d_model=shape[-1]), blocks.draw_equal(rng, *shape)
        out = loaded(student.layers.LayerNorm(d_model=shape[-1]), plain)(x)
        assert_close(out, plain.parameters["bias"].expand(shape), what=f"out ({situation})")
        if shape[-1] > 1:  # the gradient of a vector with one feature is only rounding error
            norm = loaded(student.layers.LayerNorm(d_model=shape[-1]), plain)
            check_gradients(norm, oracle, plain, (x,), rng=rng, situation=situation)
    x = view_of(draw_vectors(rng, 2, 3, 5))
    out = loaded(student.layers.LayerNorm(d_model=5), block)(x)
    compare(out, oracle.output(*block, (x,)), "a view")
    norm, second = loaded(student.layers.LayerNorm(d_model=5), block), draw_vectors(rng, 2, 3, 5)
    check_calls_stay_apart(norm, oracle, block, [(x,), (second,)])
    single = draw_block(rng, "LayerNorm", torch.float32, d_model=5)
    norm = loaded(student.layers.LayerNorm(d_model=5), single)
    check_gradients(norm, oracle, single, (x.float(),), rng=rng, situation="float32")
    block = draw_block(rng, "LayerNorm", d_model=4)
    blocks.check_norm_refuses(loaded(student.layers.LayerNorm(d_model=4), block), 4)


@weight(1)
@number("6.2")
def test_feed_forward_is_two_linear_layers_with_a_relu_between(student, rng, oracle):
    """Names, initial values, outputs and gradients are nn.Linear's; other vectors are refused."""
    sizes = {"d_model": 20, "d_ff": 30}
    check_parameters(student.layers.FeedForward(**sizes), "FeedForward", sizes)
    for n, t, d_model, d_ff in ((2, 3, 4, 7), (1, 4, 5, 2), (3, 1, 1, 3)):
        block = draw_block(rng, "FeedForward", d_model=d_model, d_ff=d_ff)
        inputs, situation = (draw_vectors(rng, n, t, d_model),), f"d_model {d_model}, d_ff {d_ff}"
        feed_forward = loaded(student.layers.FeedForward(**block.settings), block)
        check_gradients(feed_forward, oracle, block, inputs, rng=rng, situation=situation)
    block = draw_block(rng, "FeedForward", torch.float32, d_model=4, d_ff=6)
    inputs = (view_of(draw_vectors(rng, 2, 3, 4)).float(),)
    feed_forward = loaded(student.layers.FeedForward(**block.settings), block)
    check_gradients(feed_forward, oracle, block, inputs, rng=rng, situation="float32, a view")
    block = draw_block(rng, "FeedForward", d_model=4, d_ff=6)
    blocks.check_feed_forward_refuses(student.layers.FeedForward, block)


@weight(1)
@number("6.2")
def test_feed_forward_drops_hidden_features_in_training_mode_only(student, rng, oracle):
    """Dropout is applied between relu and linear2, and not at all in evaluation mode."""
    for p in (0.3, 0.6):
        block, x = dropout.constant_feed_forward(rng, 10), draw_vectors(rng, 20, 10, 10)
        out = loaded(student.layers.FeedForward(**block.settings, dropout=p), block)(x)
        dropout.check_hidden_features(out, x, block, p)
    x, block = draw_vectors(rng, 2, 3, 4), draw_block(rng, "FeedForward", d_model=4, d_ff=5)
    feed_forward = loaded(student.layers.FeedForward(**block.settings, dropout=0.5), block)
    check_evaluation(feed_forward, oracle, block, (x,))


@weight(1)
@number("6.2")
def test_feed_forward_conv_is_two_convolutions_of_size_1(student, rng, oracle):
    """Names, initial values, outputs and gradients are nn.Conv1d's; other vectors are refused."""
    sizes = {"d_model": 20, "d_ff": 30}
    check_parameters(student.layers.FeedForwardConv(**sizes), "FeedForwardConv", sizes)
    for n, t, d_model, d_ff, dtype, situation in (
        (2, 3, 4, 7, torch.float64, "d_model 4, d_ff 7"),
        (1, 4, 5, 2, torch.float64, "d_model 5, d_ff 2"),
        (3, 1, 1, 3, torch.float64, "d_model 1, d_ff 3"),
        (2, 3, 4, 6, torch.float32, "float32"),
    ):
        block = draw_block(rng, "FeedForwardConv", dtype, d_model=d_model, d_ff=d_ff)
        inputs = (draw_vectors(rng, n, t, d_model, dtype=dtype),)
        conv = loaded(student.layers.FeedForwardConv(**block.settings), block)
        check_gradients(conv, oracle, block, inputs, rng=rng, situation=situation)
    block = draw_block(rng, "FeedForwardConv", d_model=4, d_ff=6)
    blocks.check_feed_forward_refuses(student.layers.FeedForwardConv, block)


@weight(1)
@number("6.2")
def test_from_linear_gives_the_same_as_convolutions_with_copied_weights(student, rng, oracle):
    """The same outputs without dropout; trainable copies of the weights, in their dtype."""
    for d_model, d_ff, dtype in ((4, 7, torch.float64), (5, 3, torch.float32)):
        block = draw_block(rng, "FeedForward", dtype, d_model=d_model, d_ff=d_ff)
        # In training mode and with dropout, which from_linear must leave out.
        linear = loaded(student.layers.FeedForward(**block.settings, dropout=0.5), block)
        conv = student.layers.from_linear(linear)
        x = draw_vectors(rng, 2, 3, d_model, dtype=dtype)
        blocks.check_converted(conv, linear, block, x=x, expected=oracle.output(*block, (x,)))
        student.layers.from_linear(linear)
        check_same_weights(linear, block.parameters, "from_linear")


# Exercise 6.3


@weight(1)
@number("6.3")
def test_encoder_layer_is_pytorchs_with_the_norm_before_or_after(student, rng, oracle):
    """Names, outputs, gradients are those of nn.TransformerEncoderLayer; the default is "pre"."""
    for n, t, sizes in (
        (2, 3, {"d_model": 6, "num_heads": 2, "d_ff": 7}),
        (1, 4, {"d_model": 8, "num_heads": 4, "d_ff": 5}),
        (3, 1, {"d_model": 4, "num_heads": 1, "d_ff": 4}),
    ):
        check_parameters(student.transformer.EncoderLayer(**sizes), "EncoderLayer", sizes)
        x = draw_vectors(rng, n, t, sizes["d_model"])
        for situation, norm in blocks.NORMS.items():
            block = draw_block(rng, "EncoderLayer", **sizes, **norm)
            layer = loaded(student.transformer.EncoderLayer(**block.settings), block)
            check_gradients(layer, oracle, block, (x,), rng=rng, situation=situation)


@weight(1)
@number("6.3")
def test_encoder_layer_attends_only_where_the_mask_is_true(student, rng, oracle):
    """Masks of (t, t), (n, t, t) and (n, 1, t), with either norm; others are refused."""
    for shape, norm in (((4, 4), "pre"), ((3, 4, 4), "post"), ((3, 1, 4), "pre")):
        block = draw_block(rng, "EncoderLayer", d_model=6, num_heads=2, d_ff=7, norm=norm)
        inputs = draw_vectors(rng, 3, 4, 6), draw_mask(rng, *shape)
        layer = loaded(student.transformer.EncoderLayer(**block.settings), block)
        check_gradients(layer, oracle, block, inputs, rng=rng, situation=f"a mask of {shape}")
    blocks.check_layer_refuses(
        rng, "EncoderLayer", student.transformer.EncoderLayer, student.transformer.Encoder
    )


@weight(1)
@number("6.3")
def test_encoder_runs_its_layers_in_order_and_has_a_last_norm_if_pre(student, rng, oracle):
    """Outputs and gradients of one to three layers; a last norm with "pre", none with "post"."""
    sizes = {"d_model": 6, "num_heads": 3, "d_ff": 5}
    for layers, norm in ((1, "pre"), (2, "post"), (3, "pre")):
        settings = sizes | {"num_layers": layers, "norm": norm}
        check_parameters(student.transformer.Encoder(**settings), "Encoder", settings)
        block = draw_block(rng, "Encoder", **settings)
        for mask in ((), (draw_mask(rng, 2, 1, 4),)):
            inputs = (draw_vectors(rng, 2, 4, 6), *mask)
            situation = f'{layers} layer{"s" * (layers > 1)}, norm="{norm}"'
            stack = loaded(student.transformer.Encoder(**settings), block)
            check_gradients(stack, oracle, block, inputs, rng=rng, situation=situation)
    block, x = draw_block(rng, "Encoder", **sizes, num_layers=2), draw_vectors(rng, 2, 4, 6)
    out = loaded(student.transformer.Encoder(**block.settings), block)(x)
    compare(out, oracle.output(*block, (x,)), "norm not given")
    check_refused("an unknown norm", student.transformer.Encoder, 6, 3, 5, 2, 0.0, "both")


@weight(1)
@number("6.3")
def test_encoder_layer_has_dropout_on_each_sublayers_output_before_it_is_added(
    student, rng, oracle
):
    """In training mode: on the attention's output, hidden features, feed-forward's output."""
    for norm, sublayer in itertools.product(("pre", "post"), ("self_attention", "feed_forward")):
        case = dropout.draw_layer(rng, "EncoderLayer", sublayer, norm, p=0.3, shape=(20, 6))
        block, (x,), _ = case
        out = loaded(student.transformer.EncoderLayer(**block.settings, dropout=0.3), block)(x)
        dropout.check_layer(out, oracle, case, sublayer)
    sizes, x = {"d_model": 6, "num_heads": 2, "d_ff": 5}, draw_vectors(rng, 2, 3, 6)
    layer = draw_block(rng, "EncoderLayer", **sizes)
    stack = draw_block(rng, "Encoder", **sizes, num_layers=2)
    for new, block in (
        (student.transformer.EncoderLayer, layer),
        (student.transformer.Encoder, stack),
    ):
        module = loaded(new(**block.settings, dropout=0.5), block)
        check_evaluation(module, oracle, block, (x,))


@weight(1)
@number("6.3")
def test_encoder_keeps_float32_accepts_views_and_changes_no_input(student, rng, oracle):
    """dtypes, views, unchanged inputs, and calls that don't affect each other."""
    sizes, mask = {"d_model": 6, "num_heads": 2, "d_ff": 5}, draw_mask(rng, 2, 3, 3)
    single = draw_block(rng, "Encoder", torch.float32, **sizes, num_layers=2)
    inputs = draw_vectors(rng, 2, 3, 6, dtype=torch.float32), mask
    encoder = loaded(student.transformer.Encoder(**single.settings), single)
    check_gradients(encoder, oracle, single, inputs, rng=rng, situation="float32")
    view, second = view_of(draw_vectors(rng, 2, 3, 6)), draw_vectors(rng, 2, 3, 6)
    layer = draw_block(rng, "EncoderLayer", **sizes, norm="post")
    stack = draw_block(rng, "Encoder", **sizes, num_layers=2)
    for new, block in (
        (student.transformer.EncoderLayer, layer),
        (student.transformer.Encoder, stack),
    ):
        out = loaded(new(**block.settings), block)(view, mask)
        compare(out, oracle.output(*block, (view, mask)), "a view")
        module = loaded(new(**block.settings), block)
        check_calls_stay_apart(module, oracle, block, [(view, mask), (second, mask)])


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
        check_parameters(student.transformer.DecoderLayer(**sizes), "DecoderLayer", sizes)
        inputs = [draw_vectors(rng, n, length, sizes["d_model"]) for length in (t, s)]
        for situation, norm in blocks.NORMS.items():
            block = draw_block(rng, "DecoderLayer", **sizes, **norm)
            layer = loaded(student.transformer.DecoderLayer(**block.settings), block)
            check_gradients(layer, oracle, block, inputs, rng=rng, situation=situation)


@weight(1)
@number("6.4")
def test_decoder_layer_has_a_mask_for_each_of_its_attentions(student, rng, oracle):
    """mask for the self-attention, memory_mask for memory; None means no mask."""
    x, memory = draw_vectors(rng, 3, 4, 6), draw_vectors(rng, 3, 5, 6)
    for shape, memory_shape, norm in (
        ((4, 4), None, "pre"),
        (None, (3, 1, 5), "post"),
        ((3, 4, 4), (4, 5), "post"),
        ((3, 1, 4), (3, 4, 5), "pre"),
    ):
        block = draw_block(rng, "DecoderLayer", d_model=6, num_heads=2, d_ff=7, norm=norm)
        inputs = (x, memory, *(draw_mask(rng, *s) if s else None for s in (shape, memory_shape)))
        layer = loaded(student.transformer.DecoderLayer(**block.settings), block)
        situation = f"mask of {shape}, memory_mask of {memory_shape}"
        check_gradients(layer, oracle, block, inputs, rng=rng, situation=situation)
    blocks.check_layer_refuses(
        rng, "DecoderLayer", student.transformer.DecoderLayer, student.transformer.Decoder
    )


@weight(1)
@number("6.4")
def test_decoder_runs_its_layers_in_order_and_has_a_last_norm_if_pre(student, rng, oracle):
    """Outputs and gradients of one to three layers; all of them get memory and both masks."""
    sizes = {"d_model": 6, "num_heads": 3, "d_ff": 5}
    for layers, norm in ((1, "pre"), (2, "post"), (3, "pre")):
        settings = sizes | {"num_layers": layers, "norm": norm}
        check_parameters(student.transformer.Decoder(**settings), "Decoder", settings)
        block = draw_block(rng, "Decoder", **settings)
        for masks in ((), (draw_mask(rng, 4, 4), draw_mask(rng, 2, 1, 5))):
            inputs = (draw_vectors(rng, 2, 4, 6), draw_vectors(rng, 2, 5, 6), *masks)
            situation = f'{layers} layer{"s" * (layers > 1)}, norm="{norm}"'
            stack = loaded(student.transformer.Decoder(**settings), block)
            check_gradients(stack, oracle, block, inputs, rng=rng, situation=situation)
    block = draw_block(rng, "Decoder", **sizes, num_layers=2)
    inputs = draw_vectors(rng, 2, 4, 6), draw_vectors(rng, 2, 3, 6)
    out = loaded(student.transformer.Decoder(**block.settings), block)(*inputs)
    compare(out, oracle.output(*block, inputs), "norm not given")


@weight(1)
@number("6.4")
def test_decoder_has_dropout_keeps_dtypes_and_changes_no_input(student, rng, oracle):
    """Dropout on all three sublayers in training mode; float32, views, unchanged inputs."""
    sublayers = ("self_attention", "cross_attention", "feed_forward")
    for sublayer, norm in itertools.product(sublayers, ("pre", "post")):
        case = dropout.draw_layer(rng, "DecoderLayer", sublayer, norm, p=0.3, shape=(20, 6))
        block, inputs, _ = case
        out = loaded(student.transformer.DecoderLayer(**block.settings, dropout=0.3), block)(
            *inputs
        )
        dropout.check_layer(out, oracle, case, sublayer)
    masks = draw_mask(rng, 3, 3), draw_mask(rng, 2, 1, 4)
    settings = {"d_model": 6, "num_heads": 2, "d_ff": 5, "num_layers": 2}
    single = draw_block(rng, "Decoder", torch.float32, **settings)
    inputs = (*(draw_vectors(rng, 2, t, 6, dtype=torch.float32) for t in (3, 4)), *masks)
    decoder = loaded(student.transformer.Decoder(**settings), single)
    check_gradients(decoder, oracle, single, inputs, rng=rng, situation="float32")
    views = (*(view_of(draw_vectors(rng, 2, t, 6)) for t in (3, 4)), *masks)
    second = (*(draw_vectors(rng, 2, t, 6) for t in (3, 4)), *masks)
    block = draw_block(rng, "Decoder", **settings)
    decoder = loaded(student.transformer.Decoder(**settings), block)
    check_calls_stay_apart(decoder, oracle, block, [views, second])
    block = draw_block(rng, "Decoder", **settings)
    decoder = loaded(student.transformer.Decoder(**settings, dropout=0.5), block)
    check_evaluation(decoder, oracle, block, second)


# Exercise 6.5


@weight(1)
@number("6.5")
def test_make_masks_hides_padding_and_later_positions(student, rng, oracle):
    """Boolean, (n, 1, s) and (n, t, t): padding is hidden, and later positions in targets."""
    source, target = torch.tensor([[4, 5, 3], [6, 0, 0]]), torch.tensor([[1, 3, 0], [1, 4, 5]])
    compare_masks(student.transformer.make_masks(source, target), oracle.visible(source, target))
    for lengths, target_lengths in (([2, 5, 1], [4, 1, 3]), ([1], [1]), ([3, 3], [2, 2])):
        source = draw_ids(rng, 9, lengths)
        target = draw_ids(rng, 9, target_lengths, begin=True)
        compare_masks(
            student.transformer.make_masks(source, target), oracle.visible(source, target)
        )
        check_unchanged("make_masks", student.transformer.make_masks, source, target)
    wide = view_of(draw_ids(rng, 9, [2, 3], width=5)), draw_ids(rng, 9, [3, 1], True, width=6)
    compare_masks(student.transformer.make_masks(*wide), oracle.visible(*wide))
    check_refused(
        "padding before a token", student.transformer.make_masks, torch.tensor([[0, 3]]), target
    )


@weight(1)
@number("6.5")
def test_transformer_has_the_parameters_that_the_docstring_names(student):
    """Names and shapes; initialization as the docstring says, elsewhere PyTorch's."""
    sizes = {"num_heads": 4, "d_ff": 40, "num_encoder_layers": 1, "num_decoder_layers": 2}
    learned = {"positions": "learned", "max_length": 200, "norm": "post"}
    for settings in (
        {"source_vocab_size": 150, "target_vocab_size": 120, "d_model": 32, **sizes},
        {"source_vocab_size": 200, "target_vocab_size": 210, "d_model": 20, **sizes, **learned},
    ):
        module = student.transformer.Transformer(student.transformer.TransformerConfig(**settings))
        check_first_weights(module, settings)


@weight(1)
@number("6.5")
def test_tied_embeddings_are_one_matrix(student, rng, oracle):
    """One parameter for both embeddings and the output; its gradient is the sum of all three."""
    model = draw_model(rng, source_vocab_size=8, target_vocab_size=8, tied_embeddings=True)
    settings = model.settings | {"source_vocab_size": 400, "target_vocab_size": 400}
    module = student.transformer.Transformer(student.transformer.TransformerConfig(**settings))
    first = check_first_weights(module, settings)
    check("output.weight" not in first, "A tied matrix must be listed once.")
    ids = draw_ids(rng, 8, [3, 5]), draw_ids(rng, 8, [4, 2], begin=True)
    module = new_transformer(student, model)
    check_gradients(module, oracle, model, ids, rng=rng, situation="tied embeddings")


@weight(1)
@number("6.5")
def test_transformer_is_pytorchs_with_copied_weights(student, rng, oracle):
    """Logits and all gradients are those of PyTorch's layers, for all norms and positions."""
    for settings in (
        {},
        {"norm": "post", "num_encoder_layers": 2, "num_decoder_layers": 1},
        {"positions": "learned", "max_length": 6, "d_model": 9, "num_heads": 3},
        {"source_vocab_size": 5, "target_vocab_size": 12, "d_ff": 3, "num_encoder_layers": 3},
    ):
        model = draw_model(rng, **settings)
        source = draw_ids(rng, model.settings["source_vocab_size"], [5, 2, 4])
        target = draw_ids(rng, model.settings["target_vocab_size"], [3, 6, 1], begin=True)
        situation = ", ".join(f"{name} {value}" for name, value in settings.items()) or "defaults"
        case = {"rng": rng, "situation": situation, "tolerance": FINE}
        check_gradients(new_transformer(student, model), oracle, model, (source, target), **case)


@weight(1)
@number("6.5")
def test_encode_and_decode_use_the_masks_that_they_get(student, rng, oracle):
    """Memory and logits with and without masks; sinusoidal positions have no maximum."""
    source, target = draw_ids(rng, 9, [5, 2, 4]), draw_ids(rng, 7, [3, 6, 1], begin=True)
    source_mask, target_mask = oracle.visible(source, target)
    for settings in ({"num_encoder_layers": 2, "max_length": 3}, {"norm": "post"}):
        model = draw_model(rng, **settings)
        for mask, masks in (((source_mask,), (target_mask, source_mask)), ((), ())):
            memory = new_transformer(student, model).encode(source, *mask)
            compare_memory(memory, oracle, model, (source, *mask))
            any_memory = draw_vectors(rng, 3, 5, 8)
            logits = new_transformer(student, model).decode(target, any_memory, *masks)
            compare_decoded(logits, oracle, model, (target, any_memory, *masks))
    long = draw_ids(rng, 9, [90]), draw_ids(rng, 7, [80], begin=True)
    logits = new_transformer(student, model)(*long)
    compare_logits(logits, oracle.output(*model, long), "more positions than max_length")


@weight(2)
@number("6.5")
def test_padding_and_later_tokens_change_nothing(student, rng, oracle):
    """Each sequence of a batch has the logits it has alone; no position depends on a later one."""
    ids = draw_ids(rng, 9, [5, 2, 1, 4]), draw_ids(rng, 7, [3, 6, 2, 1], begin=True)
    wide = padded(ids, 3)
    for settings in ({"num_encoder_layers": 2}, {"norm": "post"}):
        model = draw_model(rng, **settings)
        module = new_transformer(student, model)
        for batch, situation in ((ids, "a batch"), (wide, "a batch with more padding")):
            compare_with_alone(module(*batch), oracle, model, batch, situation=situation)
        source, target = ids[0], draw_ids(rng, 7, [5] * 4, begin=True)
        module, before = new_transformer(student, model), oracle.output(*model, (source, target))
        for position, other in changed_targets(rng, target, 7):
            logits = module(source, other)
            compare_logits(logits, oracle.output(*model, (source, other)), "a later token")
            situation = "positions before a changed token"
            compare_logits(logits[:, :position], before[:, :position], situation)


@weight(1)
@number("6.5")
def test_transformer_has_dropout_keeps_dtypes_and_refuses_invalid_ids(student, rng, oracle):
    """Dropout on token vectors and in layers; float32, views, unchanged inputs; ValueErrors."""
    ids, memory = torch.full((20, 6), 3), torch.zeros(20, 2, 20, dtype=torch.float64)
    for side, where in itertools.product(("encoder", "decoder"), ("embedding", "self_attention")):
        model, levels, what = dropout.constant_model(side, where, 6, 0.3)
        module = new_transformer(student, model, dropout=0.3)
        out = module.encode(ids) if side == "encoder" else module.decode(ids, memory)
        check_tensor(out, (20, 6, 20))
        dropout.check_pattern(oracle, out, levels, 1, what=what)
    single = draw_model(rng, torch.float32)
    ids = draw_ids(rng, 9, [5, 2, 4]), draw_ids(rng, 7, [3, 6, 1], begin=True)
    module = new_transformer(student, single)
    check_gradients(module, oracle, single, ids, rng=rng, situation="float32")
    other = draw_ids(rng, 9, [3, 1, 4]), draw_ids(rng, 7, [2, 5, 3], begin=True)
    model, views = draw_model(rng), tuple(map(view_of, ids))
    check_calls_stay_apart(new_transformer(student, model), oracle, model, [views, other])
    check_model_refuses(student, rng)


@weight(1)
@number("6.5")
@tags("timing")
def test_transformer_is_about_as_fast_as_pytorchs(student, rng, oracle):
    """Forward and backward take at most twice as long as nn.Transformer's.

    The docstring promises 1.5 times; the rest is tolerance for a busy machine.
    """
    check_fast(student, oracle, rng)


# Exercise 6.6


@weight(2)
@number("6.6")
def test_label_smoothing_loss_is_pytorchs_cross_entropy(student, rng, oracle):
    """Loss and gradient for several values of label_smoothing, by default 0.1, without padding."""
    for n, t, v in ((2, 3, 5), (1, 4, 3), (3, 1, 7)):
        logits, targets = 2 * draw_vectors(rng, n, t, v), training.draw_targets(rng, v, [t] * n, t)
        result = training.loss_vjp(student.training.label_smoothing_loss, logits, targets)
        expected = oracle.smoothed_loss(logits, targets, 0.1)
        training.compare_loss(result, expected, "label_smoothing not given")
        for smoothing in (0.0, 0.1, 0.35, 0.9):
            result = training.loss_vjp(
                student.training.label_smoothing_loss, logits, targets, smoothing
            )
            expected = oracle.smoothed_loss(logits, targets, smoothing)
            training.compare_loss(result, expected, f"label_smoothing {smoothing}")


@weight(1)
@number("6.6")
def test_label_smoothing_loss_leaves_padding_out_of_the_mean(student, rng, oracle):
    """The mean is over all real positions, whatever sequence they are in; 0 if there are none."""
    logits = 2 * draw_vectors(rng, 3, 4, 6)
    for lengths in ([4, 1, 2], [1, 0, 4], [0, 0, 1]):
        targets = training.draw_targets(rng, 6, lengths, 4)
        for smoothing in (0.0, 0.2):
            result = training.loss_vjp(
                student.training.label_smoothing_loss, logits, targets, smoothing
            )
            expected = oracle.smoothed_loss(logits, targets, smoothing)
            training.compare_loss(result, expected, "with padding")
    for logits in draw_vectors(rng, 2, 3, 5), draw_vectors(rng, 1, 1, 4, dtype=torch.float32):
        padding, upstream = torch.zeros(logits.shape[:2]).long(), torch.ones_like(logits[0, 0, 0])
        result = vjp(student.training.label_smoothing_loss, (logits, padding), [upstream])
        training.compare_with_zero(result, logits)


@weight(1)
@number("6.6")
def test_label_smoothing_loss_is_stable_for_large_logits_and_keeps_float32(student, rng, oracle):
    """Logits of 1e4 and -1e4, float32, views; label_smoothing outside [0, 1) is refused."""
    targets = training.draw_targets(rng, 5, [3, 2, 4], 4)
    logits = draw_vectors(rng, 3, 4, 5)
    for inputs, situation in (
        ((1e4 * logits, targets, 0.1), "logits near 1e4"),
        ((logits - 1e4, targets, 0.1), "logits near -1e4"),
        ((logits.float(), targets, 0.2), "float32"),
        ((view_of(logits), view_of(targets), 0.2), "views"),
    ):
        result = training.loss_vjp(student.training.label_smoothing_loss, *inputs)
        training.compare_loss(result, oracle.smoothed_loss(*inputs), situation)
    check_unchanged(
        "label_smoothing_loss", student.training.label_smoothing_loss, logits, targets, 0.3
    )
    training.check_loss_refuses(student.training.label_smoothing_loss, logits, targets)


@weight(1)
@number("6.6")
def test_noam_rate_rises_for_warmup_steps_and_then_decays(student, rng):
    """With d_model 64 and warmup 100: 1/80 at its maximum, half of it at steps 50 and 400."""
    for step, inverse in ((100, 80), (25, 320), (50, 160), (400, 160), (1, 8000)):
        rate = student.training.noam_rate(step, 64, 100)
        assert_close(rate, 1 / inverse, what="the learning rate")
    large = (1, 2, 3999, 4000, 4001, 10**6)
    drawn = int(rng.integers(20, 999)), int(rng.integers(100, 999)), (int(rng.integers(9, 2000)),)
    fixed = (512, 4000, large), (9, 1, (1, 2, 5)), (1, 7, (3, 7, 11))
    for d_model, warmup, steps in (*fixed, drawn):
        for step in steps:
            rate = student.training.noam_rate(step, d_model, warmup)
            training.compare_rate(rate, step, d_model, warmup)
    for sizes in ((0, 8, 5), (-1, 8, 5), (3, 0, 5), (3, 8, 0)):
        check_refused("a step, d_model or warmup below 1", student.training.noam_rate, *sizes)


# Exercise 6.7


@weight(1)
@number("6.7")
def test_train_takes_the_steps_that_the_docstring_describes(student, rng, oracle):
    """Losses, learning rates and parameters, step by step: teacher forcing, clipping, Adam."""
    model = draw_model(rng, **training.TINY)
    pairs = training.draw_pairs(rng, [(2, 3), (4, 1), (1, 2), (3, 3)])
    config = {"steps": 6, "batch_size": 4, "warmup": 3, "factor": 0.3, "label_smoothing": 0.2}
    config["max_norm"] = training.TINY_NORM
    other = config | {"batch_size": 9, "max_norm": 50.0, "label_smoothing": 0.0, "warmup": 50}
    for settings, situation in (
        (config, "all pairs in each batch, clipped"),
        (other, "fewer pairs than batch_size, not clipped"),
    ):
        module = new_transformer(student, model)
        history = student.training.train(
            module, *map(view_of, pairs), student.training.TrainConfig(**settings)
        )
        expected = training.expected_run(oracle, model, pairs, settings)
        training.compare_run(history, module, expected, situation)
    model, pairs = draw_model(rng, **training.TINY), training.draw_pairs(rng, [(2, 1), (1, 3)])
    module, config = (
        new_transformer(student, model),
        student.training.TrainConfig(steps=2, batch_size=2),
    )
    check_unchanged("train", student.training.train, module, *pairs, config)


@weight(1)
@number("6.7")
def test_train_takes_each_pair_once_per_epoch_in_a_new_order(student, rng, oracle):
    """Batches share no pair, leftovers are not used, and each epoch has its own order."""
    lengths = [(2, 3), (4, 1), (1, 2), (3, 3), (2, 1), (1, 4), (3, 2)]
    case = training.draw_distinct_losses(oracle, rng, lengths, (1, 3))
    training.check_each_pair_once(training.batches_of(student, case, 3, 3, seed=1))
    training.check_orders(student, case, (0, 1, 2))


@weight(1)
@number("6.7")
def test_train_uses_dropout_and_its_seed_and_ends_in_evaluation_mode(student, rng, oracle):
    """It trains in training mode, whatever the mode was; the same seed gives the same run."""
    training.check_modes(student, oracle, rng)


@weight(1)
@number("6.7")
def test_train_trims_its_batches_and_stops_at_a_loss_that_is_not_finite(student, rng, oracle):
    """Columns that hold only padding are cut off; a ValueError names the step that failed."""
    pairs = training.draw_pairs(rng, [(2, 3), (4, 1), (1, 2)])
    model = draw_model(rng, **training.TINY, positions="learned", max_length=5)
    config = {"steps": 3, "batch_size": 3, "warmup": 2, "factor": 0.3, "label_smoothing": 0.1}
    config["max_norm"] = 0.5
    module = new_transformer(student, model)
    training.read_history(
        student.training.train(module, *pairs, student.training.TrainConfig(**config)), 3
    )
    (source, target), wide = pairs, padded(pairs, 3)
    for side, ids in (("source", (wide[0], target)), ("target", (source, wide[1]))):
        with training.only_padding_added(side):
            module = new_transformer(student, model)
            training.read_history(
                student.training.train(module, *ids, student.training.TrainConfig(**config)), 3
            )
    module = new_transformer(student, model)
    history = student.training.train(
        module, *map(view_of, wide), student.training.TrainConfig(**config)
    )
    expected = training.expected_run(oracle, model, pairs, config)
    training.compare_run(history, module, expected, "columns of padding")
    training.check_not_finite(student, rng)


# The fraction of unseen numbers that a trained model must translate exactly. The docstring of train
# promises it for these settings. In 48 runs of four correct versions, with other seeds for weights
# and batches, it was 95.5 to 100 %: 98.8 % on average, with a standard deviation of 0.9 points. So
# 90 % lies 10 of these below; 8 by the 24 runs of the reference alone, which has 1.1. By the
# t-distribution with 23 degrees of freedom, correct code fails with a probability below 1e-7. A
# model that can't read its source gets almost none right.
EXACT = 0.9
HELD_OUT = 400


@weight(3)
@number("6.7")
@tags("training")
def test_a_trained_transformer_translates_90_percent_of_unseen_numbers(student, rng):
    """One encoder and one decoder layer, 250 steps; the numbers are not in the training set."""
    numbers = load_numbers()
    sizes = len(numbers.source_vocabulary), len(numbers.target_vocabulary)
    seed_torch(student, int(rng.integers(2**31)))
    settings = student.transformer.TransformerConfig(
        *sizes, num_encoder_layers=1, num_decoder_layers=1
    )
    model = student.transformer.Transformer(settings)
    check_is_module(model, "Transformer")
    lists = numbers.train.source_ids, numbers.train.target_ids
    pairs = [torch.from_numpy(pad(ids)[0]) for ids in lists]
    history = student.training.train(
        model, *pairs, student.training.TrainConfig(steps=250, warmup=40, factor=0.35)
    )
    training.read_history(history, 250)
    chosen = rng.permutation(len(numbers.test))[:HELD_OUT]
    right = 0
    for rows in np.split(chosen, 4):
        source, _ = pad([numbers.test.source_ids[row] for row in rows])
        decoded = student.decoding.greedy_decode(model, torch.from_numpy(source))
        decoding.check_lists(decoded, len(rows), "greedy_decode")
        for row, ids in zip(rows, decoded, strict=True):
            right += list(ids) == numbers.test.target_ids[row].tolist()[1:-1]
    check(
        right >= EXACT * HELD_OUT,
        f"At least {EXACT:.0%} of unseen numbers must be translated exactly.",
        f"{right} of {HELD_OUT} are.",
        "If all other tests pass: are TransformerConfig and TrainConfig as they were given?",
    )


@weight(1)
@number("6.7")
def test_next_log_probabilities_are_those_after_the_last_column(student, rng, oracle):
    """A log-softmax over all ids; then PAD and BOS get -inf, the others keep theirs."""
    source, cases = draw_ids(rng, 9, [3, 1, 5]), []
    for settings in ({}, {"norm": "post", "num_encoder_layers": 2}):
        model = draw_model(rng, **settings)
        for length in (1, 2, 4):
            prefix = draw_ids(rng, 7, [length] * 3, begin=True)
            cases.append((model, prefix, f"a prefix of {length}"))
    cases.append((draw_model(rng, torch.float32), prefix, "float32"))
    for model, prefix, situation in cases:
        module = new_transformer(student, model)
        given = (prefix, visible_memory(oracle, model, source), source)
        expected = decoding.expected_next(oracle, model, source, prefix)
        for arguments, views in ((given, ""), (map(view_of, given), ", views")):
            result = student.decoding.next_log_probabilities(module, *arguments)
            decoding.compare_next(result, expected, f"{situation}{views}")
        decoding.check_changes_nothing(
            student.decoding.next_log_probabilities, module, model, given
        )


@weight(1)
@number("6.7")
def test_greedy_decode_takes_the_most_likely_token_until_eos(student, rng, oracle):
    """Translations of different lengths, in one batch and one by one; without dropout."""
    for settings, length in (
        ({"max_length": 2}, 5),
        ({"norm": "post", "num_encoder_layers": 2}, 3),
    ):
        model, source = draw_model(rng, **settings), draw_ids(rng, 9, [3, 1, 5, 2, 4])
        module = new_transformer(student, model, dropout=0.5)
        for mode, given in ((True, source), (False, view_of(source))):
            module.train(mode)
            decoded = student.decoding.greedy_decode(module, given, length)
            decoding.check_most_likely(decoded, oracle, model, source, max_length=length)
            check(module.training is mode, "greedy_decode must restore the model's mode.")
        alone = [
            student.decoding.greedy_decode(module, row[row > 0][None], length) for row in source
        ]
        decoding.compare_one_by_one(alone, decoded)
        decoding.check_changes_nothing(
            student.decoding.greedy_decode, module, model, (source, length)
        )
        decoding.check_greedy_refuses(student, module, source, decoded)
    starts = [5, 3, 8, 3, 6]
    module = new_transformer(student, decoding.counting_model(8), dropout=0.3)
    for length in (10, 2):
        found = student.decoding.greedy_decode(module, decoding.counting_sources(starts), length)
        expected = [list(range(start, EOS, -1))[:length] for start in starts]
        decoding.check_translations(found, expected, "greedy_decode")


@weight(1)
@number("6.7")
def test_greedy_decode_never_takes_pad_or_bos_and_stops_at_max_length(student):
    """Both are excluded even where they are most likely; on a tie, the lower id wins.

    A max_length beyond the learned positions is refused.
    """
    source = torch.tensor([[3, 4], [4, 0]])
    model = new_transformer(student, decoding.steady_model([9, 8, 0, 1, 5, 5, 2]))
    for length in (1, 2, 5):
        found = student.decoding.greedy_decode(model, source, length)
        decoding.check_translations(found, [[4] * length] * 2, "greedy_decode")
    found = student.decoding.greedy_decode(model, source)
    what = "greedy_decode with the default max_length of 32"
    decoding.check_translations(found, [[4] * 32] * 2, what)
    model = new_transformer(student, decoding.steady_model([1, 1, 7, 2, 7, 3]))
    decoding.check_translations(
        student.decoding.greedy_decode(model, source), [[], []], "greedy_decode"
    )
    # 5, then 3, then 6, then EOS.
    rows = [[0] * 7, [0, 0, 1, 2, 3, 9, 4], [0] * 7, [5, 0, 3, 1, 2, 1, 4], [0] * 7]
    table = [*rows, [0, 0, 1, 6, 2, 5, 3], [8, 0, 9, 1, 2, 3, 4]]
    found = student.decoding.greedy_decode(
        new_transformer(student, decoding.table_model(table)), source, 10
    )
    decoding.check_translations(found, [[5, 3, 6]] * 2, "greedy_decode")
    model = new_transformer(student, decoding.steady_model(decoding.ENDS_AT_ONCE))
    decoding.check_learned_positions_end(student.decoding.greedy_decode, model)


@weight(1)
@number("6.7")
def test_beam_decode_finds_the_best_of_all_if_it_is_wide_enough(student, rng, oracle):
    """Against exhaustive search, for several length penalties; a beam_width of 1 is greedy."""
    batch, single = ([3, 1, 5, 2], 3, (0, 0.6, 1.5), 100), ([2], 4, (1,), 200)
    for lengths, length, penalties, wide in (batch, single):
        model, source, best = decoding.draw_ranked(oracle, rng, (lengths, length), penalties)
        greedy = student.decoding.greedy_decode(new_transformer(student, model), source, length)
        decoding.check_most_likely(greedy, oracle, model, source, max_length=length)
        for penalty in penalties:
            widths = (wide, best[penalty], "all hypotheses"), (1, greedy, "beam_width 1")
            for width, expected, situation in widths:
                module = new_transformer(student, model)
                settings = {
                    "max_length": length,
                    "beam_width": width,
                    "length_penalty": penalty,
                }
                found = student.decoding.beam_decode(module, source, **settings)
                decoding.check_translations(found, expected, f"beam_decode ({situation})")


@weight(1)
@number("6.7")
def test_beam_decode_follows_beam_width_hypotheses(student):
    """Four tables of next-token logits, float32 too; nothing changes; ValueErrors."""
    source, cases = torch.tensor([[3]]), []
    # 3 is more likely at first, but then leads nowhere: 0.55 * 0.4 is less than 0.4 * 0.9.
    probabilities = [[1, 0, 0], [0.05, 0.55, 0.4], [1, 0, 0], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]]
    model = decoding.table_model([decoding.logs(row) for row in probabilities])
    for width, expected in ((1, [3]), (2, [4]), (3, [4])):
        settings = {"max_length": 6, "length_penalty": 0.0, "beam_width": width}
        cases.append((model, settings, expected, f"beam_width {width}"))
    # Two tokens have 0.55 * 0.7 = 0.385, three 0.45 * 0.95 * 0.7 = 0.299: more per token.
    probabilities = [[1, 0, 0], [0, 0.55, 0.45], [1, 0, 0], [0.7, 0.15, 0.15], [0.05, 0.95, 0]]
    model = decoding.table_model([decoding.logs(row) for row in probabilities])
    for penalty, expected in ((0.0, [3]), (1.0, [4, 3])):
        settings = {"max_length": 6, "length_penalty": penalty, "beam_width": 2}
        cases.append((model, settings, expected, f"length_penalty {penalty}"))
    for table, alternatives in decoding.SEARCHES:
        model = decoding.table_model([[int(digit) for digit in row] for row in table])
        for settings, expected in alternatives:
            situation = ", ".join(f"{name} {value}" for name, value in settings.items())
            cases.append((model, settings, expected, situation))
        cases.append((model.single(), settings, expected, f"{situation}, float32"))
    for searched, settings, expected, situation in cases:
        found = student.decoding.beam_decode(new_transformer(student, searched), source, **settings)
        decoding.check_translations(found, [expected], f"beam_decode ({situation})")
    module, sources = new_transformer(student, model), torch.tensor([[3, 0], [4, 3]])
    decoding.check_beam_changes_nothing(student.decoding.beam_decode, module, model, sources)
    decoding.check_beam_refuses(
        student.decoding.beam_decode, new_transformer(student, model), source
    )
    module = new_transformer(student, decoding.steady_model(decoding.ENDS_AT_ONCE))
    decoding.check_learned_positions_end(student.decoding.beam_decode, module)


@weight(1)
@number("6.7")
def test_attention_maps_are_the_weights_of_all_layers_and_heads(student, rng, oracle):
    """encoder, decoder and cross, first layer first, without gradients; nothing changes."""
    ids = draw_ids(rng, 9, [5, 2, 4]), draw_ids(rng, 7, [3, 6, 1], begin=True)
    for model in (
        draw_model(rng, num_encoder_layers=2, num_decoder_layers=3),
        draw_model(rng, num_encoder_layers=1, num_decoder_layers=1, norm="post", num_heads=4),
        draw_model(rng, torch.float32),
    ):
        module = new_transformer(student, model, dropout=0.5)
        expected = oracle.attention_maps(model.settings, model.parameters, *ids)
        hooks = hooks_of(module)
        for mode, given in ((True, ids), (False, map(view_of, ids))):
            module.train(mode)
            decoding.compare_maps(student.decoding.attention_maps(module, *given), expected)
            check(module.training is mode, "attention_maps must restore the model's mode.")
            decoding.check_hooks(module, hooks)
        decoding.check_changes_nothing(student.decoding.attention_maps, module, model, ids)
        decoding.check_untracked(student.decoding.attention_maps, module, ids)


# Exercise 6.8


@weight(1)
@number("6.8")
def test_complexity_counts_products_steps_and_the_longest_path(student, rng):
    """n vectors of d features: counts that can be checked with pen and paper."""
    n, d = map(int, rng.integers(20, 999, size=2))
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
        ("attention", (n, d), (2 * n * n * d, 2, 2)),
        ("recurrent", (n, d), (2 * n * d * d, n, n)),
    ):
        complexity.compare_costs(
            student.layers.complexity(kind, *sizes), expected, "complexity", kind
        )
    complexity.check_costs_refuse(student.layers.complexity)


@weight(1)
@number("6.8")
def test_complexity_is_exact_for_sizes_beyond_float_precision(student):
    """Powers of the kernel size, and one more: a logarithm in floats would round them."""
    cases = []
    for power in (5, 20, 34):
        n = 3**power
        cases.append(("dilated", (n, 1), (3 * n, 1, power)))
        cases.append(("dilated", (n + 1, 1), (3 * (n + 1), 1, power + 1)))
    n = 10**17 + 1
    cases += [
        ("dilated", (10**15, 1, 10), (10**16, 1, 15)),
        ("convolution", (n, 3, 2), (18 * n, 1, 10**17)),
        ("convolution", (n + 1, 1, 3), (3 * (n + 1), 1, 5 * 10**16 + 1)),
        ("attention", (n, 3), (6 * n * n, 2, 2)),
        ("recurrent", (n, 2), (8 * n, n, n)),
    ]
    for kind, sizes, expected in cases:
        complexity.compare_costs(
            student.layers.complexity(kind, *sizes), expected, "complexity", kind
        )


@weight(2)
@number("6.8")
def test_run_layer_computes_the_layers_and_counts_their_cost(student, rng, oracle):
    """Outputs and gradients are PyTorch's; products with zeros before the first are counted."""
    for kind, n, d, counts, more in (
        ("recurrent", 5, 3, (90, 5), {}),
        ("recurrent", 1, 4, (32, 1), {}),
        ("recurrent", 4, 1, (8, 4), {}),
        ("convolution", 5, 3, (90, 1), {"k": 2}),
        ("convolution", 6, 2, (72, 1), {"dilation": 2}),
        ("convolution", 3, 1, (12, 1), {"k": 4, "dilation": 3}),
        ("convolution", 1, 2, (12, 1), {}),
        ("attention", 5, 3, (150, 2), {}),
        ("attention", 1, 4, (8, 2), {}),
        ("attention", 3, 1, (18, 2), {}),
    ):
        inputs, upstream = complexity.draw_layer(rng, kind, n, d, **more)
        result = vjp(student.layers.run_layer, inputs, [upstream, None, None])
        complexity.compare_layer(result, oracle, inputs, upstream, counts=counts)
        check_unchanged("run_layer", student.layers.run_layer, *inputs)


@weight(1)
@number("6.8")
def test_run_layer_keeps_float32_and_refuses_unknown_kinds(student, rng, oracle):
    """float32 stays float32; "dilated" is a stack, not a layer; dilations start at 1."""
    for kind, counts in (("recurrent", (72, 4)), ("convolution", (108, 1)), ("attention", (96, 2))):
        inputs, upstream = complexity.draw_layer(rng, kind, 4, 3, dtype=torch.float32)
        result = vjp(student.layers.run_layer, inputs, [upstream, None, None])
        complexity.compare_layer(result, oracle, inputs, upstream, counts=counts)
        check_unchanged("run_layer", student.layers.run_layer, *inputs)
    complexity.check_run_layer_refuses(student.layers.run_layer, rng)


@weight(1)
@number("6.8")
def test_measure_agrees_with_the_formulas(student, rng):
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
        complexity.check_measure(student.layers.measure, rng, kind, sizes, expected=expected)
    complexity.check_costs_refuse(student.layers.measure)


# Exercises 6.9 and 6.10: the lab


@weight(1)
@number("6.9")
def test_q1_the_period_of_the_fastest_pair_is_right(lab):
    """Lab, question 1: it rotates by 1 rad per position, and a full rotation is 2 pi."""
    check_number(lab, "q1_fast", 2 * math.pi, tolerance=0.07)


@weight(1)
@number("6.9")
def test_q2_the_dot_product_of_a_position_with_itself_is_right(lab):
    """Lab, question 2: sin^2 + cos^2 for each of the pairs."""
    check_number(lab, "q2_same", 64 / 2, tolerance=0.01)


@weight(1)
@number("6.9")
def test_q4_the_position_that_the_fastest_pair_confuses_with_0_is_found(lab):
    """Lab, question 4: the integer up to 50 that is nearest to a multiple of 2 pi."""
    nearest = min(range(1, 51), key=lambda p: abs(math.remainder(p, 2 * math.pi)))
    check_number(lab, "q4_back", nearest)


@weight(1)
@number("6.9")
def test_q6_the_relative_change_by_a_late_pre_norm_layer_is_right(lab):
    """Lab, question 6: what layer 100 adds, relative to its input, as a ratio of square roots."""
    check_number(lab, "q6_change", math.sqrt(1.2 / (1 + 99 * 1.2)), tolerance=0.002)


@weight(2)
@number("6.10")
def test_q8_the_number_of_distinct_outputs_without_positions_is_right(lab):
    """Lab, question 8: one for each digit that occurs in 3, 1, 4, 1, 5, 9, 2, 6, 5."""
    check_number(lab, "q8_different", len(set("314159265")))


@weight(1)
@number("6.10")
def test_q9_one_causal_layer_changes_at_the_right_number_of_positions(lab):
    """Lab, question 9: the two swapped positions; the others attend to a set of keys."""
    check_number(lab, "q9_one", 2)


@weight(1)
@number("6.10")
def test_q10_the_decoders_self_attention_map_has_the_right_number_of_zeros(lab):
    """Lab, question 10: all weights above the diagonal of a 7 x 7 map."""
    check_number(lab, "q10_zeros", 7 * 6 // 2)
