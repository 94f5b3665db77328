"""The hidden tests of assignment 6: the public tests' properties on other shapes and seeds."""

import itertools
import math

import torch
from gradescope_utils.autograder_utils.decorators import number, weight

from common.labs.answer_checks import check_choice, check_number, check_sizes
from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check
from common.testing.dropout import check_tensor
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import check_same_weights, hooks_of, vjp
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


@weight(1)
@number("6.1")
def test_sinusoidal_encoding_is_right_for_other_sizes(student, rng, oracle):
    """Sines and cosines of other lengths and sizes, large positions too, in float64."""
    drawn = int(rng.integers(5, 60)), 2 * int(rng.integers(2, 20))
    for sizes in ((7, 4), (1, 12), (3, 2), (2500, 8), drawn):
        result = student.layers.sinusoidal_encoding(*sizes)
        expected = oracle.sinusoidal_encoding(*sizes)
        assert_close(result, expected, what="the encoding", axes=blocks.POSITION_AXES)
    calls = [(6, 4), (3, 10), (6, 4), (3, 10)]
    for sizes, result in zip(
        calls, call_each(student.layers.sinusoidal_encoding, calls), strict=True
    ):
        expected = oracle.sinusoidal_encoding(*sizes)
        assert_close(result, expected, what="the encoding (several calls in a row)")
    check_refused("an odd d_model", student.layers.sinusoidal_encoding, 4, 7)


@weight(1)
@number("6.1")
def test_shift_matrix_is_right_for_other_shifts(student, rng, oracle):
    """One matrix for all positions, for other sizes and shifts, backwards too."""
    for k, d_model, length, situation in (
        (int(rng.integers(2, 30)), 8, 40, "forwards"),
        (-int(rng.integers(2, 30)), 10, 40, "backwards"),
        (0, 4, 10, "k = 0"),
        (1, 32, 1500, "large positions"),
    ):
        vectors = oracle.sinusoidal_encoding(length + abs(k), d_model)
        blocks.compare_shifted(student.layers.shift_matrix(k, d_model), vectors, k, situation)


@weight(1)
@number("6.1")
def test_learned_positions_are_right_for_other_sizes(student, rng):
    """Initial values, vectors, gradients of other sizes; lengths beyond the table are refused."""
    modules = student.layers.LearnedPositions(45, 80), student.layers.LearnedPositions(45, 80)
    blocks.check_first_positions(modules, (45, 80))
    cases = ((5, 3), (2, 5, 1), torch.float64), ((3, 6), (2,), torch.float32)
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
def test_layer_norm_is_right_for_other_shapes(student, rng, oracle):
    """out for other shapes, another eps, small vectors, and vectors far from 0."""
    check_parameters(student.layers.LayerNorm(d_model=5), "LayerNorm", {"d_model": 5})
    cases = []
    for shape in ((7,), (4, 3), (3, 2, 5), (1, 2, 3, 4)):
        block = draw_block(rng, "LayerNorm", d_model=shape[-1])
        cases.append((block, 2 * draw_vectors(rng, *shape) - 1, "other shapes"))
    block = draw_block(rng, "LayerNorm", d_model=6, eps=0.02)
    cases.append((block, 0.1 * draw_vectors(rng, 2, 6), "another eps"))
    block = draw_block(rng, "LayerNorm", d_model=6)
    cases.append((block, 1e-3 * draw_vectors(rng, 2, 6), "small x"))
    cases.append((block, draw_vectors(rng, 3, 6) - 1e5, "x far from 0"))
    for block, x, situation in cases:
        out = loaded(student.layers.LayerNorm(**block.settings), block)(x)
        compare(out, oracle.output(*block, (x,)), situation)


@weight(1)
@number("6.2")
def test_layer_norm_has_the_right_gradients_for_other_shapes(student, rng, oracle):
    """Gradients for other shapes, float32 and views; equal features; invalid input."""
    block, x = draw_block(rng, "LayerNorm", d_model=4), 3 * draw_vectors(rng, 3, 2, 4) + 1
    norm = loaded(student.layers.LayerNorm(d_model=4), block)
    check_gradients(norm, oracle, block, (x,), rng=rng, situation="any x")
    view, second = view_of(draw_vectors(rng, 3, 4)), draw_vectors(rng, 3, 4)
    norm = loaded(student.layers.LayerNorm(d_model=4), block)
    check_calls_stay_apart(norm, oracle, block, [(view,), (second,)])
    block, x = draw_block(rng, "LayerNorm", d_model=4), blocks.draw_equal(rng, 3, 2, 4)
    situation = "all features of a vector are the same"
    out = loaded(student.layers.LayerNorm(d_model=4), block)(x)
    assert_close(out, block.parameters["bias"].expand(3, 2, 4), what=f"out ({situation})")
    norm = loaded(student.layers.LayerNorm(d_model=4), block)
    check_gradients(norm, oracle, block, (x,), rng=rng, situation=situation)
    block = draw_block(rng, "LayerNorm", torch.float32, d_model=4)
    norm = loaded(student.layers.LayerNorm(d_model=4), block)
    check_gradients(norm, oracle, block, (view.float(),), rng=rng, situation="float32, a view")
    block = draw_block(rng, "LayerNorm", d_model=6)
    blocks.check_norm_refuses(loaded(student.layers.LayerNorm(d_model=6), block), 6)


@weight(1)
@number("6.2")
def test_feed_forward_is_right_for_other_sizes(student, rng, oracle):
    """Initial values, outputs, gradients and dropout for other sizes."""
    sizes = {"d_model": 25, "d_ff": 16}
    check_parameters(student.layers.FeedForward(**sizes), "FeedForward", sizes)
    for n, t, d_model, d_ff in ((3, 2, 5, 4), (1, 1, 2, 6)):
        block = draw_block(rng, "FeedForward", d_model=d_model, d_ff=d_ff)
        inputs = (view_of(draw_vectors(rng, n, t, d_model)),)
        feed_forward = loaded(student.layers.FeedForward(**block.settings), block)
        check_gradients(feed_forward, oracle, block, inputs, rng=rng, situation="other sizes")
    block, x = dropout.constant_feed_forward(rng, 12), draw_vectors(rng, 10, 20, 12)
    out = loaded(student.layers.FeedForward(**block.settings, dropout=0.4), block)(x)
    dropout.check_hidden_features(out, x, block, 0.4)
    block = draw_block(rng, "FeedForward", d_model=5, d_ff=3)
    blocks.check_feed_forward_refuses(student.layers.FeedForward, block)
    x, block = draw_vectors(rng, 2, 4, 3), draw_block(rng, "FeedForward", d_model=3, d_ff=6)
    feed_forward = loaded(student.layers.FeedForward(**block.settings, dropout=0.5), block)
    check_evaluation(feed_forward, oracle, block, (x,))


@weight(1)
@number("6.2")
def test_feed_forward_conv_and_from_linear_are_right_for_other_sizes(student, rng, oracle):
    """Outputs and gradients of convolutions with kernel_size 1; linear layers copied to them."""
    sizes = {"d_model": 25, "d_ff": 16}
    check_parameters(student.layers.FeedForwardConv(**sizes), "FeedForwardConv", sizes)
    for n, t, d_model, d_ff in ((3, 2, 5, 4), (1, 3, 2, 6)):
        block = draw_block(rng, "FeedForwardConv", d_model=d_model, d_ff=d_ff)
        inputs = (view_of(draw_vectors(rng, n, t, d_model)),)
        conv = loaded(student.layers.FeedForwardConv(**block.settings), block)
        check_gradients(conv, oracle, block, inputs, rng=rng, situation="other sizes")
    for d_model, d_ff, dtype in ((6, 4, torch.float64), (3, 8, torch.float32)):
        block = draw_block(rng, "FeedForward", dtype, d_model=d_model, d_ff=d_ff)
        linear = loaded(student.layers.FeedForward(**block.settings, dropout=0.5), block)
        conv, x = student.layers.from_linear(linear), draw_vectors(rng, 2, 3, d_model, dtype=dtype)
        blocks.check_converted(conv, linear, block, x=x, expected=oracle.output(*block, (x,)))
        student.layers.from_linear(linear)
        check_same_weights(linear, block.parameters, "from_linear")
    block = draw_block(rng, "FeedForwardConv", d_model=5, d_ff=3)
    blocks.check_feed_forward_refuses(student.layers.FeedForwardConv, block)


# Exercise 6.3


@weight(1)
@number("6.3")
def test_encoder_layer_is_right_for_other_sizes_and_masks(student, rng, oracle):
    """Outputs and all gradients for other sizes, with both norms and all kinds of masks."""
    sizes, x = {"d_model": 9, "num_heads": 3, "d_ff": 4}, draw_vectors(rng, 2, 5, 9)
    for situation, norm in blocks.NORMS.items():
        block = draw_block(rng, "EncoderLayer", **sizes, **norm)
        layer = loaded(student.transformer.EncoderLayer(**block.settings), block)
        check_gradients(layer, oracle, block, (x,), rng=rng, situation=situation)
    for shape, norm in (((5, 5), "post"), ((2, 5, 5), "pre"), ((2, 1, 5), "post")):
        block = draw_block(rng, "EncoderLayer", **sizes, norm=norm)
        inputs = draw_vectors(rng, 2, 5, 9), draw_mask(rng, *shape)
        layer = loaded(student.transformer.EncoderLayer(**block.settings), block)
        check_gradients(layer, oracle, block, inputs, rng=rng, situation="a mask")
    blocks.check_layer_refuses(
        rng, "EncoderLayer", student.transformer.EncoderLayer, student.transformer.Encoder
    )


@weight(1)
@number("6.3")
def test_encoder_is_right_for_other_numbers_of_layers(student, rng, oracle):
    """Names, outputs and gradients of other stacks, with a mask and without."""
    for layers, norm in ((2, "pre"), (3, "post"), (1, "post")):
        sizes = {"d_model": 4, "num_heads": 2, "d_ff": 6, "num_layers": layers, "norm": norm}
        check_parameters(student.transformer.Encoder(**sizes), "Encoder", sizes)
        block, x = draw_block(rng, "Encoder", **sizes), draw_vectors(rng, 3, 4, 4)
        encoder = loaded(student.transformer.Encoder(**sizes), block)
        check_gradients(encoder, oracle, block, (x,), rng=rng, situation="no mask")
        inputs, encoder = (
            (x, draw_mask(rng, 4, 4)),
            loaded(student.transformer.Encoder(**sizes), block),
        )
        check_gradients(encoder, oracle, block, inputs, rng=rng, situation="a mask")


@weight(1)
@number("6.3")
def test_encoder_has_dropout_and_keeps_dtypes_with_other_sizes(student, rng, oracle):
    """Dropout acts where it should, at another rate; float32, views, unchanged inputs."""
    for norm, sublayer in itertools.product(("post", "pre"), ("feed_forward", "self_attention")):
        case = dropout.draw_layer(rng, "EncoderLayer", sublayer, norm, p=0.4, shape=(15, 8))
        block, (x,), _ = case
        out = loaded(student.transformer.EncoderLayer(**block.settings, dropout=0.4), block)(x)
        dropout.check_layer(out, oracle, case, sublayer)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 3, "num_layers": 2}
    single = draw_block(rng, "Encoder", torch.float32, **sizes, norm="post")
    x = view_of(draw_vectors(rng, 3, 2, 8))
    encoder = loaded(student.transformer.Encoder(**single.settings), single)
    check_gradients(encoder, oracle, single, (x.float(),), rng=rng, situation="float32")
    second, block = draw_vectors(rng, 3, 2, 8), draw_block(rng, "Encoder", **sizes)
    encoder = loaded(student.transformer.Encoder(**sizes), block)
    check_calls_stay_apart(encoder, oracle, block, [(x, None), (second, None)])
    block = draw_block(rng, "Encoder", **sizes)
    encoder = loaded(student.transformer.Encoder(**sizes, dropout=0.5), block)
    check_evaluation(encoder, oracle, block, (x,))


# Exercise 6.4


@weight(1)
@number("6.4")
def test_decoder_layer_is_right_for_other_sizes_and_masks(student, rng, oracle):
    """Outputs and all gradients for other sizes, with both norms and all kinds of masks."""
    sizes = {"d_model": 9, "num_heads": 3, "d_ff": 4}
    x, memory = draw_vectors(rng, 2, 5, 9), draw_vectors(rng, 2, 4, 9)
    for situation, norm in blocks.NORMS.items():
        block = draw_block(rng, "DecoderLayer", **sizes, **norm)
        layer = loaded(student.transformer.DecoderLayer(**block.settings), block)
        check_gradients(layer, oracle, block, (x, memory), rng=rng, situation=situation)
    for shape, memory_shape, norm in (
        ((5, 5), (2, 1, 4), "post"),
        (None, (2, 5, 4), "pre"),
        ((2, 5, 5), None, "post"),
    ):
        block = draw_block(rng, "DecoderLayer", **sizes, norm=norm)
        inputs = (x, memory, *(draw_mask(rng, *s) if s else None for s in (shape, memory_shape)))
        layer = loaded(student.transformer.DecoderLayer(**block.settings), block)
        check_gradients(layer, oracle, block, inputs, rng=rng, situation="masks")
    blocks.check_layer_refuses(
        rng, "DecoderLayer", student.transformer.DecoderLayer, student.transformer.Decoder
    )


@weight(1)
@number("6.4")
def test_decoder_is_right_for_other_numbers_of_layers(student, rng, oracle):
    """Names, outputs and gradients of other stacks, with masks and without."""
    for layers, norm in ((2, "pre"), (3, "post"), (1, "post")):
        sizes = {"d_model": 4, "num_heads": 2, "d_ff": 6, "num_layers": layers, "norm": norm}
        check_parameters(student.transformer.Decoder(**sizes), "Decoder", sizes)
        block = draw_block(rng, "Decoder", **sizes)
        inputs = draw_vectors(rng, 3, 4, 4), draw_vectors(rng, 3, 6, 4)
        decoder = loaded(student.transformer.Decoder(**sizes), block)
        check_gradients(decoder, oracle, block, inputs, rng=rng, situation="no masks")
        inputs = (*inputs, draw_mask(rng, 3, 4, 4), draw_mask(rng, 3, 1, 6))
        decoder = loaded(student.transformer.Decoder(**sizes), block)
        check_gradients(decoder, oracle, block, inputs, rng=rng, situation="masks")


@weight(1)
@number("6.4")
def test_decoder_has_dropout_and_keeps_dtypes_with_other_sizes(student, rng, oracle):
    """Dropout acts where it should, at another rate; float32, views, unchanged inputs."""
    sublayers = ("feed_forward", "cross_attention", "self_attention")
    for sublayer, norm in itertools.product(sublayers, ("post", "pre")):
        case = dropout.draw_layer(rng, "DecoderLayer", sublayer, norm, p=0.4, shape=(15, 8))
        block, inputs, _ = case
        out = loaded(student.transformer.DecoderLayer(**block.settings, dropout=0.4), block)(
            *inputs
        )
        dropout.check_layer(out, oracle, case, sublayer)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 3, "num_layers": 2}
    single = draw_block(rng, "Decoder", torch.float32, **sizes, norm="post")
    views = [view_of(draw_vectors(rng, 3, t, 8)) for t in (2, 4)]
    inputs, decoder = (
        [x.float() for x in views],
        loaded(student.transformer.Decoder(**single.settings), single),
    )
    check_gradients(decoder, oracle, single, inputs, rng=rng, situation="float32")
    second = [draw_vectors(rng, 3, t, 8) for t in (2, 4)]
    block = draw_block(rng, "Decoder", **sizes)
    decoder = loaded(student.transformer.Decoder(**sizes), block)
    check_calls_stay_apart(decoder, oracle, block, [views, second])
    block = draw_block(rng, "Decoder", **sizes)
    decoder = loaded(student.transformer.Decoder(**sizes, dropout=0.5), block)
    check_evaluation(decoder, oracle, block, views)


# Exercise 6.5


@weight(1)
@number("6.5")
def test_make_masks_is_right_for_other_lengths(student, rng, oracle):
    """Padding and later positions are hidden, for other lengths and more padding."""
    for lengths, target_lengths in (([4, 1], [2, 6]), ([2], [5]), ([1, 3, 6, 2], [3, 1, 1, 2])):
        source = draw_ids(rng, 12, lengths, width=7)
        target = draw_ids(rng, 12, target_lengths, begin=True)
        compare_masks(
            student.transformer.make_masks(source, target), oracle.visible(source, target)
        )
        check_unchanged("make_masks", student.transformer.make_masks, source, target)
    check_refused("a source without a token", student.transformer.make_masks, 0 * source, target)


@weight(1)
@number("6.5")
def test_transformer_has_the_right_parameters_for_other_settings(student, rng, oracle):
    """Names, shapes, initial values; a tied matrix is one parameter, with all three gradients."""
    sizes = {
        "d_model": 24,
        "num_heads": 3,
        "d_ff": 30,
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
    }
    sizes |= {"source_vocab_size": 180, "target_vocab_size": 180}
    for more in (
        {"positions": "learned", "max_length": 150},
        {"norm": "post", "tied_embeddings": True},
    ):
        module = student.transformer.Transformer(
            student.transformer.TransformerConfig(**sizes, **more)
        )
        first = check_first_weights(module, sizes | more)
    check("target_embedding.weight" not in first, "A tied matrix must be listed once.")
    tied = {"source_vocab_size": 6, "target_vocab_size": 6, "tied_embeddings": True, "norm": "post"}
    model = draw_model(rng, **tied, positions="learned", max_length=5)
    ids = draw_ids(rng, 6, [2, 5, 1]), draw_ids(rng, 6, [5, 2, 3], begin=True)
    module = new_transformer(student, model)
    check_gradients(module, oracle, model, ids, rng=rng, situation="tied embeddings")


@weight(1)
@number("6.5")
def test_transformer_is_right_for_other_settings(student, rng, oracle):
    """Logits and all gradients of other sizes; encode and decode with masks and without."""
    for settings in (
        {"d_model": 6, "num_heads": 3, "num_encoder_layers": 2, "norm": "post"},
        {"d_model": 5, "num_heads": 1, "positions": "learned", "max_length": 7},
        {"d_ff": 3, "num_decoder_layers": 1, "max_length": 2},
    ):
        model = draw_model(rng, **settings)
        source, target = draw_ids(rng, 9, [3, 6, 1]), draw_ids(rng, 7, [7, 2, 4], begin=True)
        case = {"rng": rng, "situation": "other settings", "tolerance": FINE}
        check_gradients(new_transformer(student, model), oracle, model, (source, target), **case)
        source_mask, target_mask = oracle.visible(source, target)
        for mask, masks in (((), ()), ((source_mask,), (target_mask, source_mask))):
            memory = new_transformer(student, model).encode(source, *mask)
            compare_memory(memory, oracle, model, (source, *mask))
            any_memory = draw_vectors(rng, 3, 6, model.settings["d_model"])
            logits = new_transformer(student, model).decode(target, any_memory, *masks)
            compare_decoded(logits, oracle, model, (target, any_memory, *masks))
    long = draw_ids(rng, 9, [70]), draw_ids(rng, 7, [75], begin=True)
    logits = new_transformer(student, model)(*long)
    compare_logits(logits, oracle.output(*model, long), "more positions than max_length")


@weight(1)
@number("6.5")
def test_padding_and_later_tokens_change_nothing_in_other_batches(student, rng, oracle):
    """Each sequence has the logits it has alone, and no position depends on a later one."""
    ids = draw_ids(rng, 9, [2, 4, 6]), draw_ids(rng, 7, [5, 1, 4], begin=True)
    wide = padded(ids, 2)
    for settings in ({"positions": "learned", "max_length": 9}, {"num_encoder_layers": 2}):
        model = draw_model(rng, **settings)
        module = new_transformer(student, model)
        for batch, situation in ((ids, "a batch"), (wide, "a batch with more padding")):
            compare_with_alone(module(*batch), oracle, model, batch, situation=situation)
        source, target = ids[0], draw_ids(rng, 7, [4] * 3, begin=True)
        module, before = new_transformer(student, model), oracle.output(*model, (source, target))
        for position, other in changed_targets(rng, target, 7):
            logits = module(source, other)
            compare_logits(logits, oracle.output(*model, (source, other)), "a later token")
            situation = "positions before a changed token"
            compare_logits(logits[:, :position], before[:, :position], situation)


@weight(2)
@number("6.5")
def test_transformer_has_dropout_keeps_dtypes_and_refuses_with_other_sizes(student, rng, oracle):
    """Dropout at another rate, float32, unchanged inputs, and a ValueError for invalid ids."""
    ids, memory = torch.full((15, 8), 3), torch.zeros(15, 2, 20, dtype=torch.float64)
    for side, where in itertools.product(("decoder", "encoder"), ("self_attention", "embedding")):
        model, levels, what = dropout.constant_model(side, where, 8, 0.4)
        module = new_transformer(student, model, dropout=0.4)
        out = module.encode(ids) if side == "encoder" else module.decode(ids, memory)
        check_tensor(out, (15, 8, 20))
        dropout.check_pattern(oracle, out, levels, 1, what=what)
    single = draw_model(rng, torch.float32, norm="post", d_ff=4)
    first = draw_ids(rng, 9, [2, 4]), draw_ids(rng, 7, [5, 1], begin=True)
    second = view_of(draw_ids(rng, 9, [4, 1])), draw_ids(rng, 7, [2, 5], begin=True)
    module = new_transformer(student, single)
    check_gradients(module, oracle, single, first, rng=rng, situation="float32")
    model = draw_model(rng, norm="post")
    check_calls_stay_apart(new_transformer(student, model), oracle, model, [first, second])
    check_model_refuses(student, rng)


# Exercise 6.6


@weight(1)
@number("6.6")
def test_label_smoothing_loss_is_right_for_other_shapes(student, rng, oracle):
    """Loss and gradient with padding, large logits, float32, views, and other label_smoothing."""
    for lengths, width, v in (([3, 5, 1], 5, 4), ([2], 2, 9), ([0, 2, 4, 1], 6, 3)):
        logits = 2 * draw_vectors(rng, len(lengths), width, v)
        targets = training.draw_targets(rng, v, lengths, width)
        result = training.loss_vjp(student.training.label_smoothing_loss, logits, targets)
        training.compare_loss(result, oracle.smoothed_loss(logits, targets, 0.1), "other shapes")
        for given, smoothing, situation in (
            (logits, 0.0, "other shapes"),
            (logits, 0.25, "other shapes"),
            (logits, 0.7, "other shapes"),
            (1e4 * logits, 0.2, "large logits"),
            (logits.float(), 0.3, "float32"),
            (view_of(logits), 0.05, "a view"),
        ):
            result = training.loss_vjp(
                student.training.label_smoothing_loss, given, targets, smoothing
            )
            expected = oracle.smoothed_loss(given, targets, smoothing)
            training.compare_loss(result, expected, situation)
    any_logits, one = draw_vectors(rng, 3, 2, 4), torch.tensor(1.0, dtype=torch.float64)
    padding = torch.zeros(3, 2, dtype=torch.int64)
    result = vjp(student.training.label_smoothing_loss, (any_logits, padding), [one])
    training.compare_with_zero(result, any_logits)
    training.check_loss_refuses(student.training.label_smoothing_loss, logits, targets)


@weight(1)
@number("6.6")
def test_noam_rate_is_right_for_other_sizes(student, rng):
    """Before, at and after the end of the warm-up, for other sizes; invalid ones are refused."""
    for d_model, warmup in ((128, 10), (3, 1000), (int(rng.integers(5, 999)), 37)):
        for step in (1, 9, 10, 11, 37, 999, 1000, 12345):
            training.compare_rate(
                student.training.noam_rate(step, d_model, warmup), step, d_model, warmup
            )
    for sizes in ((0, 4, 4), (2, -1, 4), (2, 4, -3)):
        check_refused("a step, d_model or warmup below 1", student.training.noam_rate, *sizes)


# Exercise 6.7


@weight(2)
@number("6.7")
def test_train_takes_the_right_steps_with_other_settings(student, rng, oracle):
    """Losses, learning rates and parameters of other models and settings, with more padding."""
    pairs = training.draw_pairs(rng, [(3, 1), (1, 3), (2, 2), (4, 4), (2, 1)])
    config = {"steps": 5, "batch_size": 5, "warmup": 2, "factor": 0.2, "label_smoothing": 0.15}
    for more, max_norm in (({"norm": "post"}, training.TINY_NORM), ({"positions": "learned"}, 0.8)):
        model = draw_model(rng, **training.TINY | {"d_model": 6, "max_length": 6} | more)
        config["max_norm"] = max_norm
        module, wide = new_transformer(student, model), map(view_of, padded(pairs, 2))
        history = student.training.train(module, *wide, student.training.TrainConfig(**config))
        expected = training.expected_run(oracle, model, pairs, config)
        training.compare_run(history, module, expected, "other settings")
    model, pairs = draw_model(rng, **training.TINY), training.draw_pairs(rng, [(2, 1), (1, 3)])
    module, config = (
        new_transformer(student, model),
        student.training.TrainConfig(steps=2, batch_size=2),
    )
    check_unchanged("train", student.training.train, module, *pairs, config)


@weight(1)
@number("6.7")
def test_train_has_the_right_batches_for_other_pairs(student, rng, oracle):
    """Each pair once per epoch, leftovers unused, and a new order in each epoch, by the seed."""
    lengths = [(1, 3), (4, 2), (2, 2), (3, 1), (2, 4), (1, 1), (3, 3), (4, 4)]
    case = training.draw_distinct_losses(oracle, rng, lengths, (1, 3))
    training.check_each_pair_once(training.batches_of(student, case, 3, 3, seed=7))
    seeds = [int(seed) for seed in rng.choice(1000, size=3, replace=False)]
    training.check_orders(student, case, seeds)


@weight(1)
@number("6.7")
def test_train_has_the_right_modes_and_stops_at_an_infinite_loss_for_other_pairs(
    student, rng, oracle
):
    """Dropout while it trains, the same run for the same seed; a failing step is named."""
    training.check_modes(student, oracle, rng)
    training.check_not_finite(student, rng)


@weight(1)
@number("6.7")
def test_next_log_probabilities_are_right_for_other_models(student, rng, oracle):
    """After the last column of other prefixes, with sources of several lengths."""
    source, cases = draw_ids(rng, 9, [2, 6, 1, 4]), []
    for settings in ({"norm": "post"}, {"positions": "learned", "max_length": 6}):
        model = draw_model(rng, **settings)
        for length in (1, 3, 5):
            cases.append((model, draw_ids(rng, 7, [length] * 4, begin=True), "other models"))
    cases.append((draw_model(rng, torch.float32), cases[-1][1], "float32"))
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
def test_greedy_decode_is_right_for_other_models(student, rng, oracle):
    """Translations of different lengths; ties, PAD and BOS; max_length."""
    model, source = draw_model(rng, num_decoder_layers=1), draw_ids(rng, 9, [4, 2, 1, 5, 3, 3])
    module = new_transformer(student, model, dropout=0.4)
    for mode, given in ((True, source), (False, view_of(source))):
        module.train(mode)
        decoded = student.decoding.greedy_decode(module, given, 6)
        decoding.check_most_likely(decoded, oracle, model, source, max_length=6)
        check(module.training is mode, "greedy_decode must restore the model's mode.")
    alone = [student.decoding.greedy_decode(module, row[row > 0][None], 6) for row in source]
    decoding.compare_one_by_one(alone, decoded)
    decoding.check_changes_nothing(student.decoding.greedy_decode, module, model, (source, 6))
    decoding.check_greedy_refuses(student, module, source, decoded)
    starts, module = [4, 7, 3, 5], new_transformer(student, decoding.counting_model(7), dropout=0.4)
    for length in (9, 2):
        found = student.decoding.greedy_decode(module, decoding.counting_sources(starts), length)
        expected = [list(range(start, EOS, -1))[:length] for start in starts]
        decoding.check_translations(found, expected, "greedy_decode")
    source = torch.tensor([[4], [3]])
    for logits, expected in (([3, 9, 1, 4, 2, 4], [3] * 6), ([9, 9, 4, 4, 4], [])):
        module = new_transformer(student, decoding.steady_model(logits))
        found = student.decoding.greedy_decode(module, source, 6)
        decoding.check_translations(found, [expected] * 2, "greedy_decode")
    module = new_transformer(student, decoding.steady_model(decoding.ENDS_AT_ONCE))
    decoding.check_learned_positions_end(student.decoding.greedy_decode, module)


@weight(1)
@number("6.7")
def test_beam_decode_is_right_for_other_models(student, rng, oracle):
    """The best of all if the beam is wide, greedy_decode if it is 1, and the cases between."""
    model, source, best = decoding.draw_ranked(oracle, rng, ([2, 4, 1], 3), (0, 1.0))
    greedy = student.decoding.greedy_decode(new_transformer(student, model), source, 3)
    decoding.check_most_likely(greedy, oracle, model, source, max_length=3)
    cases = []
    for penalty in (0, 1.0):
        settings = {"max_length": 3, "length_penalty": penalty}
        wide, narrow = settings | {"beam_width": 150}, settings | {"beam_width": 1}
        cases.append((model, source, wide, best[penalty], "all hypotheses"))
        cases.append((model, source, narrow, greedy, "beam_width 1"))
    source = torch.tensor([[3]])
    for width in (2, 2, 2, 3, 3, 3):
        table, settings, expected = draw_search(rng, width)
        model = decoding.table_model(table)
        cases.append((model, source, settings, [expected], "a narrow beam"))
        cases.append((model.single(), source, settings, [expected], "a narrow beam, float32"))
    for searched, sources, settings, expected, situation in cases:
        found = student.decoding.beam_decode(
            new_transformer(student, searched), sources, **settings
        )
        decoding.check_translations(found, expected, f"beam_decode ({situation})")
    module, sources = new_transformer(student, model), torch.tensor([[4, 3], [3, 0]])
    decoding.check_beam_changes_nothing(student.decoding.beam_decode, module, model, sources)
    decoding.check_beam_refuses(
        student.decoding.beam_decode, new_transformer(student, model), source
    )
    module = new_transformer(student, decoding.steady_model(decoding.ENDS_AT_ONCE))
    decoding.check_learned_positions_end(student.decoding.beam_decode, module)


def draw_search(rng, width):
    """A table, settings, and what the search finds: not what width 1 or a wider beam finds."""
    while True:
        table = rng.integers(0, 6, size=(6, 6))
        length, penalty = int(rng.integers(3, 6)), float(rng.choice([0.5, 1.0, 1.5]))
        settings = {"max_length": length, "beam_width": width, "length_penalty": penalty}
        found, gap = follow(table, **settings)
        if gap > 1e-3 and all(
            follow(table, **settings | {"beam_width": other})[0] != found
            for other in (1, width + 1)
        ):
            return table.tolist(), settings, found


def follow(table, max_length, beam_width, length_penalty):
    """What a search finds in a table, by the words of the docstring, and its closest choice."""
    log_probability = torch.log_softmax(torch.from_numpy(table).double(), dim=1).tolist()
    live, finished, gap = [(0.0, (1,))], [], math.inf
    for _step in range(max_length):
        longer = [
            (total + log_probability[ids[-1]][new], (*ids, new))
            for total, ids in live
            for new in range(2, len(table))
        ]
        longer.sort(reverse=True)
        if len(longer) > beam_width:
            gap = min(gap, longer[beam_width - 1][0] - longer[beam_width][0])
        finished += [one for one in longer[:beam_width] if one[1][-1] == 2]
        live = [one for one in longer[:beam_width] if one[1][-1] != 2]
    scores = [(total / (len(ids) - 1) ** length_penalty, ids) for total, ids in finished + live]
    first, *rest = sorted(scores, reverse=True)
    gap = min([gap, *(first[0] - other[0] for other in rest[:1])])
    return [new for new in first[1][1:] if new != 2], gap


@weight(1)
@number("6.7")
def test_attention_maps_are_right_for_other_models(student, rng, oracle):
    """The weights of all layers and heads, in several calls, for other sizes."""
    ids = draw_ids(rng, 9, [1, 3, 6, 2]), draw_ids(rng, 7, [5, 2, 1, 3], begin=True)
    learned = {"positions": "learned", "max_length": 6}
    for model in (
        draw_model(rng, num_encoder_layers=3, num_decoder_layers=1, d_model=6, num_heads=3),
        draw_model(rng, num_decoder_layers=2, norm="post", **learned),
        draw_model(rng, torch.float32, norm="post"),
    ):
        expected = oracle.attention_maps(model.settings, model.parameters, *ids)
        module = new_transformer(student, model, dropout=0.5)
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
def test_complexity_is_right_for_other_sizes(student, rng):
    """Counts for other sizes, around powers of the kernel size, and for very large ones."""
    cases = []
    for _ in range(20):
        n, d, k = (int(rng.integers(low, high)) for low, high in ((1, 90), (1, 40), (2, 7)))
        deep = max(1, -((1 - n) // (k - 1)))
        cases.append(("recurrent", (n, d, k), (2 * n * d * d, n, n)))
        cases.append(("attention", (n, d, k), (2 * n * n * d, 2, 2)))
        cases.append(("convolution", (n, d, k), (n * k * d * d, 1, deep)))
    for k in (2, 3, 5):
        for power in (1, 4, int(rng.integers(20, 60))):
            for n, deep in ((k**power, power), (k**power + 1, power + 1)):
                cases.append(("dilated", (n, 2, k), (4 * n * k, 1, deep)))
    n = 10**18 + int(rng.integers(1000))
    cases.append(("attention", (n, 7), (14 * n * n, 2, 2)))
    for kind, sizes, expected in cases:
        complexity.compare_costs(
            student.layers.complexity(kind, *sizes), expected, "complexity", kind
        )
    complexity.check_costs_refuse(student.layers.complexity)


@weight(2)
@number("6.8")
def test_run_layer_is_right_for_other_sizes(student, rng, oracle):
    """Outputs, gradients and counts of other layers, in float32 too; invalid input."""
    for n, d, dtype in ((7, 2, torch.float64), (3, 5, torch.float64), (2, 4, torch.float32)):
        for kind, counts, more in (
            ("recurrent", (2 * n * d * d, n), {}),
            ("attention", (2 * n * n * d, 2), {}),
            ("convolution", (2 * n * d * d, 1), {"k": 2, "dilation": 3}),
            ("convolution", (4 * n * d * d, 1), {"k": 4, "dilation": 1}),
            ("convolution", (3 * n * d * d, 1), {"k": 3, "dilation": 2}),
        ):
            inputs, upstream = complexity.draw_layer(rng, kind, n, d, **more, dtype=dtype)
            result = vjp(student.layers.run_layer, inputs, [upstream, None, None])
            complexity.compare_layer(result, oracle, inputs, upstream, counts=counts)
            check_unchanged("run_layer", student.layers.run_layer, *inputs)
    complexity.check_run_layer_refuses(student.layers.run_layer, rng)


@weight(1)
@number("6.8")
def test_measure_is_right_for_other_sizes(student, rng):
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
        complexity.check_measure(student.layers.measure, rng, kind, sizes, expected=expected)


# Exercises 6.9 and 6.10: the lab


@weight(1)
@number("6.9")
def test_q1_the_period_of_the_slowest_pair_is_right(lab):
    """Lab, question 1: its frequency is that of the last of 32 pairs, within 1 %."""
    period = 2 * math.pi * 10000 ** (62 / 64)
    check_number(lab, "q1_slow", period, tolerance=period / 100)


@weight(1)
@number("6.9")
def test_q2_the_dot_product_of_two_positions_is_that_of_their_distance(lab):
    """Lab, question 2: the sum over pairs of the cosine of three times the frequency."""
    product = sum(math.cos(3 * 10000 ** (-2 * pair / 64)) for pair in range(32))
    check_number(lab, "q2_apart", product, tolerance=0.01)


@weight(1)
@number("6.9")
def test_q3_the_distance_at_which_the_dot_product_first_rises_is_found(lab):
    """Lab, question 3: dot products don't decrease monotonically with distance."""
    frequencies = [10000 ** (-2 * pair / 64) for pair in range(32)]
    products = [sum(math.cos(distance * w) for w in frequencies) for distance in range(60)]
    rises = [d for d in range(1, 60) if products[d] > products[d - 1]]
    check_number(lab, "q3_rise", rises[0])


@weight(1)
@number("6.9")
def test_q5_the_growth_of_vectors_with_pre_norm_is_right(lab):
    """Lab, question 5: every layer adds about the same mean square."""
    check_choice(lab, "q5_growth", "b", ("a", "b", "c", "d"))


@weight(1)
@number("6.9")
def test_q6_the_gradient_along_post_norm_residual_connections_is_right(lab):
    """Lab, question 6: 48 norms, each of which divides by the square root of 1.5; within 2 %."""
    left = math.sqrt(1.5) ** -48
    check_number(lab, "q6_left", left, tolerance=left / 50)


@weight(1)
@number("6.10")
def test_q9_two_causal_layers_change_at_the_right_number_of_positions(lab):
    """Lab, question 9: the second layer attends to the changed outputs of the first."""
    check_number(lab, "q9_two", 5)


@weight(1)
@number("6.10")
def test_q10_cross_attention_attends_to_the_mirrored_positions(lab):
    """Lab, question 10: the row that predicts digit p attends to source position 5 - p."""
    check_sizes(lab, "q10_positions", [5 - row for row in range(6)])
