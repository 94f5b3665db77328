"""How the tests of exercise 6.5 check masks and a whole Transformer, and time it."""

import math

import torch

from common.testing.checks import check_normal, check_refused
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import fetch, hold, vjp_each_held
from common.testing.speed_ratio import check_speed
from tests.a6_transformer.cases import (
    FINE,
    VECTOR_AXES,
    check_parameters,
    draw_block,
    draw_vectors,
    new_transformer,
    silent_block,
)

BEGIN, END = 1, 2
SMALL = {
    "source_vocabulary": 9,
    "target_vocabulary": 7,
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 10,
    "encoder_layers": 1,
    "decoder_layers": 2,
}
BAR = 2  # of PyTorch's time; the docstring states 1.5, and a busy machine gets the rest
TRIES = 6
PATIENCE = 20  # seconds: code that is slow all the while should hear so before a test's time is up
BATCH = 16  # a quarter of the docstring's: the ratio is the same
TIMED = {"d_model": 128, "num_heads": 4, "d_ff": 512, "encoder_layers": 3, "decoder_layers": 3}


def draw_ids(rng, vocabulary, lengths, begin=False, *, width=None):
    """A sequence of each length, with padding after it; begin: with BEGIN as its first token."""
    ids = torch.zeros(len(lengths), width or max(lengths), dtype=torch.int64)
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = torch.from_numpy(rng.integers(3, vocabulary, size=length))
        if begin:
            row[0] = BEGIN
    return ids


def draw_model(rng, dtype=torch.float64, **settings):
    """A Transformer of these settings, small where nothing else is said."""
    return draw_block(rng, "Transformer", dtype, **SMALL | settings)


def silent_model(vocabularies, **settings):
    """A Transformer with a layer on each side, which adds nothing, and learned places of 0."""
    sizes = {"source_vocabulary": vocabularies[0], "target_vocabulary": vocabularies[1]}
    layers = {"encoder_layers": 1, "decoder_layers": 1, "positions": "learned"}
    return silent_block("Transformer", **sizes, **layers, **settings)


def padded(pairs, columns):
    """Sources and targets with more columns of padding."""
    return [torch.nn.functional.pad(ids, (0, columns)) for ids in pairs]


def compare_masks(result, expected):
    """The masks are of bool, in the shapes of the docstring, and the right ones."""
    masks = unpack(result, 2, "make_masks")
    for name, actual, wanted in zip(("source_mask", "target_mask"), masks, expected, strict=True):
        assert_close(actual, wanted, what=name, axes=("sequence", "query", "key"))


def compare_logits(actual, expected, situation):
    tolerance = FINE if expected.dtype == torch.float64 else None
    axes = ("sequence", "place", "id")
    assert_close(actual, expected, f"the logits ({situation})", axes, tolerance)


def visible_memory(oracle, model, source):
    """What PyTorch's encoder makes of a source whose padding is hidden."""
    mask, _ = oracle.visible(source, source)
    return oracle.output("Transformer.encode", model.settings, model.parameters, (source, mask))


def compare_memory(memory, oracle, model, inputs):
    """memory is the encoder's output. inputs: a source, and a mask or none."""
    expected = oracle.output("Transformer.encode", model.settings, model.parameters, inputs)
    situation = "with a mask" if len(inputs) > 1 else "without a mask"
    assert_close(memory, expected, f"memory ({situation})", VECTOR_AXES, FINE)


def compare_decoded(logits, oracle, model, inputs):
    """The logits are the decoder's. inputs: targets, any memory, and both masks or none."""
    expected = oracle.output("Transformer.decode", model.settings, model.parameters, inputs)
    situation = "decode with masks" if len(inputs) > 2 else "decode without masks"
    compare_logits(logits, expected, situation)


def compare_with_alone(logits, oracle, model, ids, *, situation):
    """Each sentence of a batch has the logits that it has alone. ids: the batch."""
    source, target = ids
    shape = (*target.shape, model.settings["target_vocabulary"])
    check(
        isinstance(logits, torch.Tensor) and logits.shape == shape,
        "The logits must be a tensor with a row for each place, and a column for each id.",
    )
    for row, pair in enumerate(zip(source, target, strict=True)):
        alone = [sentence[sentence != 0][None] for sentence in pair]
        real = logits[row : row + 1, : alone[1].shape[1]]
        expected = oracle.output(*model, alone)
        compare_logits(real, expected, f"{situation}, beside the sentence alone")


def changed_targets(rng, target, vocabulary):
    """For each place from 1 on: the place, and the same targets with another token there."""
    for place in range(1, target.shape[1]):
        other = target.clone()
        shift = torch.from_numpy(rng.integers(1, vocabulary - 3, size=len(target)))
        other[:, place] = 3 + (target[:, place] - 3 + shift) % (vocabulary - 3)
        yield place, other


def check_first_weights(module, settings):
    """Embeddings and output from a normal distribution, the rest as PyTorch's layers draw it."""
    first = check_parameters(module, "Transformer", settings)
    deviation = 1 / math.sqrt(settings["d_model"])
    for name in ("source_embedding.weight", "target_embedding.weight", "output.weight"):
        if name in first:
            check_normal(first[name], deviation, name)
            check(
                bool(first[name][0].all()),
                f"The row of padding in {name} must be drawn like the others.",
                help="Masks keep padding out. padding_idx would keep its row from learning.",
            )
    if "positions.weight" in first:
        check_normal(first["positions.weight"], 1.0, "positions.weight")
    return first


def check_model_refuses(student, rng):
    """Ids, masks and lengths that make no sense raise ValueError; those beside them don't."""
    settings = {"positions": "learned", "max_length": 5, "d_model": 9, "num_heads": 3}
    module = new_transformer(student, draw_model(rng, **settings))
    source, target = draw_ids(rng, 9, [5, 2]), draw_ids(rng, 7, [3, 5], begin=True)
    check(module(source, target) is not None, "The Transformer returned None.")
    long = [draw_ids(rng, vocabulary, [6, 1], begin=True) for vocabulary in (9, 7)]
    check_refused("a source that is longer than max_length", module, long[0], target)
    check_refused("a target that is longer than max_length", module, source, long[1])
    check_refused("a source that is longer than max_length", module.encode, long[0])
    check_refused("another number of targets than sources", module, source, target[:1])
    for side, wrong in ((0, 9), (0, -1), (1, 7), (1, -1)):
        ids = [source.clone(), target.clone()]
        ids[side][0, 1] = wrong
        check_refused("an id that isn't in the vocabulary", module, *ids)
    check_refused("an empty source", module, torch.zeros_like(source), target)
    check_refused("ids in lists", module, source.tolist(), target.tolist())
    check_refused("a number in place of ids", module, 3, target)
    check_refused("a number in place of ids", module, source, 3)
    check_refused("ids in a list", module.encode, source.tolist())
    check_refused("a mask of floats", module.encode, source, torch.ones(2, 1, 5).double())
    check(student.transformer.TransformerConfig(4, 4) is not None, "There is no TransformerConfig.")
    for sizes in ((3, 9), (9, 3)):
        check_refused(
            "a vocabulary of special ids alone", student.transformer.TransformerConfig, *sizes
        )
    for heads in (3, 32):
        situation = "heads that don't divide d_model"
        check_refused(
            situation, student.transformer.TransformerConfig, 10, 10, d_model=16, num_heads=heads
        )


def check_fast(student, oracle, rng):
    """Forward and backward together are fast enough, and what was timed was really computed."""
    vocabularies = {"source_vocabulary": 40, "target_vocabulary": 40}
    model = draw_model(rng, torch.float32, **vocabularies, **TIMED)
    module = new_transformer(student, model)
    cotangent = draw_vectors(rng, BATCH, 24, 40, dtype=torch.float32)
    upstream, lengths = hold(student, [cotangent]), [24] * BATCH

    def prepare():
        ids = draw_ids(rng, 40, lengths), draw_ids(rng, 40, lengths, begin=True)
        baseline = oracle.transformer_pass(model.settings, model.parameters, *ids, cotangent)
        calls = [(hold(student, list(ids)), upstream)]
        return lambda: (ids, vjp_each_held(module, calls)), baseline

    (ids, results), norm = check_speed(
        prepare,
        bar=BAR,
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"A training step takes more than {BAR} times as long as one of nn.Transformer.",
        help="Do all sequences and places at once, without a loop over them.",
    )
    (logits, *_), _, gradients = fetch(results)[0]
    check(isinstance(logits, torch.Tensor), "The logits must be a tensor.")
    few = tuple(values[:2] for values in ids)
    compare_logits(logits[:2], oracle.output(*model, few), "while timed")
    check(set(gradients) == set(model.parameters), "Some parameters have no gradients.")
    squares = sum(float(gradient.double().square().sum()) for gradient in gradients.values())
    what = "the norm of all gradients (while timed)"
    assert_close(math.sqrt(squares), norm, what=what, tolerance=1e-3)
