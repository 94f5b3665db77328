"""How the tests of exercise 6.5 check masks and a whole Transformer, and time it."""

import math

import torch

from common.testing.checks import check_normal, check_refused
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.timed_calls import carried, timed_vjps
from common.testing.speed_ratio import Try, check_speed
from tests.a6_transformer.cases import (
    FINE,
    VECTOR_AXES,
    check_parameters,
    draw_block,
    draw_vectors,
    new_transformer,
    silent_block,
)

BOS, EOS = 1, 2
SMALL = {
    "source_vocab_size": 9,
    "target_vocab_size": 7,
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 10,
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
}
BAR = 2  # times PyTorch's time; the docstring promises 1.5, the rest is for a busy machine
TRIES = 6
PATIENCE = 20  # seconds: slow code should get this test's message, not a timeout
BATCH = 16  # a quarter of the docstring's: the ratio is the same
TIMED = {
    "d_model": 128,
    "num_heads": 4,
    "d_ff": 512,
    "num_encoder_layers": 3,
    "num_decoder_layers": 3,
}


def draw_ids(rng, vocab_size, lengths, begin=False, *, width=None):
    """A sequence of each length, padded at the end; begin: with BOS as its first token."""
    ids = torch.zeros(len(lengths), width or max(lengths), dtype=torch.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.from_numpy(rng.integers(3, vocab_size, size=length))
        if begin:
            row[0] = BOS
    return ids


def draw_model(rng, dtype=torch.float64, **settings):
    """A Transformer of these settings, otherwise small."""
    return draw_block(rng, "Transformer", dtype, **SMALL | settings)


def silent_model(vocab_sizes, **settings):
    """A Transformer with one layer on each side that adds nothing, and learned positions of 0."""
    sizes = {"source_vocab_size": vocab_sizes[0], "target_vocab_size": vocab_sizes[1]}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1, "positions": "learned"}
    return silent_block("Transformer", **sizes, **layers, **settings)


def padded(pairs, columns):
    """Sources and targets with more columns of padding."""
    return [torch.nn.functional.pad(ids, (0, columns)) for ids in pairs]


def compare_masks(result, expected):
    """The masks are boolean, in the shapes of the docstring, and right."""
    masks = unpack(result, 2, "make_masks")
    for name, actual, wanted in zip(("source_mask", "target_mask"), masks, expected, strict=True):
        assert_close(actual, wanted, what=name, axes=("sequence", "query", "key"))


def compare_logits(actual, expected, situation):
    tolerance = FINE if expected.dtype == torch.float64 else None
    axes = ("sequence", "position", "id")
    assert_close(actual, expected, f"the logits ({situation})", axes, tolerance=tolerance)


def visible_memory(oracle, model, source):
    """The output of PyTorch's encoder for a source with masked padding."""
    mask, _ = oracle.visible(source, source)
    return oracle.output("Transformer.encode", model.settings, model.parameters, (source, mask))


def compare_memory(memory, oracle, model, inputs):
    """memory is the encoder's output. inputs: a source, and a mask or none."""
    expected = oracle.output("Transformer.encode", model.settings, model.parameters, inputs)
    situation = "with a mask" if len(inputs) > 1 else "without a mask"
    assert_close(memory, expected, f"memory ({situation})", VECTOR_AXES, tolerance=FINE)


def compare_decoded(logits, oracle, model, inputs):
    """The logits are the decoder's. inputs: targets, any memory, and both masks or none."""
    expected = oracle.output("Transformer.decode", model.settings, model.parameters, inputs)
    situation = "decode with masks" if len(inputs) > 2 else "decode without masks"
    compare_logits(logits, expected, situation)


def compare_with_alone(logits, oracle, model, ids, *, situation):
    """Each sequence of a batch has the logits that it has alone. ids: the batch."""
    source, target = ids
    shape = (*target.shape, model.settings["target_vocab_size"])
    check(
        isinstance(logits, torch.Tensor) and logits.shape == shape,
        "The logits must be a tensor with a row for each position, and a column for each id.",
    )
    for row, pair in enumerate(zip(source, target, strict=True)):
        alone = [ids[ids != 0][None] for ids in pair]
        real = logits[row : row + 1, : alone[1].shape[1]]
        expected = oracle.output(*model, alone)
        compare_logits(real, expected, f"{situation}, compared with the sequence alone")


def changed_targets(rng, target, vocab_size):
    """For each position from 1 on: the position, and the targets with another token there."""
    for position in range(1, target.shape[1]):
        other = target.clone()
        shift = torch.from_numpy(rng.integers(1, vocab_size - 3, size=len(target)))
        other[:, position] = 3 + (target[:, position] - 3 + shift) % (vocab_size - 3)
        yield position, other


def check_first_weights(module, settings):
    """Embeddings and output from a normal distribution, the rest as in PyTorch's layers."""
    first = check_parameters(module, "Transformer", settings)
    deviation = 1 / math.sqrt(settings["d_model"])
    for name in ("source_embedding.weight", "target_embedding.weight", "output.weight"):
        if name in first:
            check_normal(first[name], deviation, name)
            check(
                bool(first[name][0].all()),
                f"The row of PAD in {name} must be initialized like the others.",
                help="Masks hide padding. With padding_idx, its row would get no gradient.",
            )
    if "positions.weight" in first:
        check_normal(first["positions.weight"], 1.0, "positions.weight")
    return first


def check_model_refuses(student, rng):
    """Invalid ids, masks and lengths raise ValueError; valid ones don't."""
    settings = {"positions": "learned", "max_length": 5, "d_model": 9, "num_heads": 3}
    module = new_transformer(student, draw_model(rng, **settings))
    source, target = draw_ids(rng, 9, [5, 2]), draw_ids(rng, 7, [3, 5], begin=True)
    check(module(source, target) is not None, "The Transformer returned None.")
    long = [draw_ids(rng, vocab_size, [6, 1], begin=True) for vocab_size in (9, 7)]
    check_refused("a source that is longer than max_length", module, long[0], target)
    check_refused("a target that is longer than max_length", module, source, long[1])
    check_refused("a source that is longer than max_length", module.encode, long[0])
    check_refused("fewer targets than sources", module, source, target[:1])
    for side, wrong in ((0, 9), (0, -1), (1, 7), (1, -1)):
        ids = [source.clone(), target.clone()]
        ids[side][0, 1] = wrong
        check_refused("an id outside the vocabulary", module, *ids)
    check_refused("an empty source", module, torch.zeros_like(source), target)
    check_refused("lists instead of ids", module, source.tolist(), target.tolist())
    check_refused("a number instead of ids", module, 3, target)
    check_refused("a number instead of ids", module, source, 3)
    check_refused("a list instead of ids", module.encode, source.tolist())
    check_refused("a float mask", module.encode, source, torch.ones(2, 1, 5).double())
    check(
        student.transformer.TransformerConfig(4, 4) is not None, "TransformerConfig returned None."
    )
    for sizes in ((3, 9), (9, 3)):
        check_refused(
            "a vocabulary of special tokens only", student.transformer.TransformerConfig, *sizes
        )
    for heads in (3, 32):
        situation = "heads that don't divide d_model"
        check_refused(
            situation, student.transformer.TransformerConfig, 10, 10, d_model=16, num_heads=heads
        )


def check_fast(student, oracle, rng):
    """Forward and backward together are fast enough, and the timed results are right."""
    vocab_sizes = {"source_vocab_size": 40, "target_vocab_size": 40}
    model = draw_model(rng, torch.float32, **vocab_sizes, **TIMED)
    module = new_transformer(student, model)
    lengths = [24] * BATCH

    def prepare():
        ids = draw_ids(rng, 40, lengths), draw_ids(rng, 40, lengths, begin=True)
        cotangent = draw_vectors(rng, BATCH, 24, 40, dtype=torch.float32)
        pytorchs = oracle.transformer_pass(model.settings, model.parameters, *ids, cotangent)

        def verify(results, right):
            compare_timed_pass(results[0], oracle, model, ids=ids, right=right[1])

        return Try(
            lambda: timed_vjps(module, [(ids, [cotangent])]),
            lambda: carried(student, pytorchs()),
            verify,
        )

    check_speed(
        prepare,
        bar=BAR,
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"A training step takes more than {BAR} times as long as one of nn.Transformer.",
        help="Process all sequences and positions at once, without a loop over them.",
    )


def compare_timed_pass(result, oracle, model, *, ids, right):
    """All logits, and all gradients together. right: the gradients, in any order."""
    outputs, _, gradients = result
    check(isinstance(outputs[0], torch.Tensor), "The logits must be a tensor.")
    compare_logits(outputs[0], oracle.output(*model, ids), "while timed")
    check(set(gradients) == set(model.parameters), "Every parameter must have a gradient.")
    found, norm = norm_of(gradients.values()), norm_of(right)
    what = "the norm of all gradients (while timed)"
    assert_close(found, norm, what=what, tolerance=1e-3)


def norm_of(gradients):
    """The norm of all their entries."""
    return math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))
