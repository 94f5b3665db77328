"""How the tests of exercise 6.5 check masks and a whole Transformer, and time it."""

import math

import torch

from common.testing.checks import check_normal, check_refused
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import fetch, hold, vjp_each_held
from common.testing.speed_ratio import check_speed
from tests.a6_transformer.cases import (
    FINE,
    check_parameters,
    draw_block,
    draw_vectors,
    expected_output,
)

BEGIN, END = 1, 2
LOGIT_AXES = ("sequence", "place", "id")
BAR = 2  # of PyTorch's time; the docstring states 1.5, and a busy machine gets the rest
TRIES = 6
PATIENCE = 20  # seconds: code that is slow all the while should hear so before a test's time is up
BATCH = 16  # a quarter of the docstring's: the ratio is the same
TIMED = {
    "source_vocabulary": 40,
    "target_vocabulary": 40,
    "d_model": 128,
    "num_heads": 4,
    "d_ff": 512,
    "encoder_layers": 3,
    "decoder_layers": 3,
}


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
    small = {
        "source_vocabulary": 9,
        "target_vocabulary": 7,
        "d_model": 8,
        "num_heads": 2,
        "d_ff": 10,
        "encoder_layers": 1,
        "decoder_layers": 2,
    }
    return draw_block(rng, "Transformer", dtype, **small | settings)


def check_masks(student, oracle, source, target):
    """The masks are of bool, in the shapes of the docstring, and the right ones."""
    masks = unpack(student.make_masks(source, target), 2, "make_masks")
    names = ("source_mask", "target_mask")
    for name, actual, wanted in zip(names, masks, oracle.visible(source, target), strict=True):
        assert_close(actual, wanted, what=name, axes=("sequence", "query", "key"))


def check_logits(student, oracle, model, source, target, situation):
    """The logits of the whole model are those of PyTorch's layers."""
    expected = expected_output(oracle, model, (source, target))
    compare_logits(model.on(student)(source, target), expected, situation)


def compare_logits(actual, expected, situation):
    tolerance = FINE if expected.dtype == torch.float64 else None
    assert_close(actual, expected, f"the logits ({situation})", LOGIT_AXES, tolerance)


def check_encode(student, oracle, model, source, *, masked):
    """memory is the encoder's output, with the mask that is given and no other."""
    mask = oracle.visible(source, source)[0] if masked else None
    arguments = (source, mask) if masked else (source,)
    expected = oracle.output("Transformer.encode", model.settings, model.parameters, (source, mask))
    situation = "with a mask" if masked else "without a mask"
    memory = model.on(student).encode(*arguments)
    assert_close(memory, expected, f"memory ({situation})", ("sequence", "place", "feature"), FINE)


def check_decode(student, oracle, rng, model, *, source, target, masked):
    """The logits for any memory, with the masks that are given and no others."""
    memory = draw_vectors(rng, *source.shape, model.settings["d_model"])
    masks = oracle.visible(source, target)[::-1] if masked else ()
    kind = "Transformer.decode"
    expected = oracle.output(kind, model.settings, model.parameters, (target, memory, *masks))
    logits = model.on(student).decode(target, memory, *masks)
    compare_logits(logits, expected, "decode with masks" if masked else "decode without masks")


def check_padding_changes_nothing(student, oracle, model, source, *, target, more):
    """Each sentence gets the logits that it gets alone, however much padding there is."""
    wide = [torch.nn.functional.pad(ids, (0, more)) for ids in (source, target)]
    module = model.on(student)
    for ids, situation in (((source, target), "a batch"), (wide, "a batch with more padding")):
        logits = module(*ids)
        shape = (*ids[1].shape, model.settings["target_vocabulary"])
        check(
            isinstance(logits, torch.Tensor) and logits.shape == shape,
            "The logits must be a tensor with a row for each place, and a column for each id.",
        )
        for row, (one_source, one_target) in enumerate(zip(source, target, strict=True)):
            alone = [ids[ids != 0][None] for ids in (one_source, one_target)]
            expected = expected_output(oracle, model, alone)
            real = logits[row : row + 1, : alone[1].shape[1]]
            compare_logits(real, expected, f"{situation}, beside the sentence alone")


def check_no_look_ahead(student, oracle, rng, model, *, source, target):
    """What comes later changes no logits before it, and does change those from there on."""
    module, vocabulary = model.on(student), model.settings["target_vocabulary"]
    before = expected_output(oracle, model, (source, target))
    for place in range(1, target.shape[1]):
        other = target.clone()
        shift = torch.from_numpy(rng.integers(1, vocabulary - 3, size=len(target)))
        other[:, place] = 3 + (target[:, place] - 3 + shift) % (vocabulary - 3)
        logits = module(source, other)
        compare_logits(logits, expected_output(oracle, model, (source, other)), "a later token")
        compare_logits(logits[:, :place], before[:, :place], "places before a changed token")


def check_first_weights(student, **settings):
    """Embeddings and output from a normal distribution, the rest as PyTorch's layers draw it."""
    first = check_parameters(student, "Transformer", settings)
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
    model = draw_model(rng, **settings)
    module, vocabularies = model.on(student), (9, 7)
    source, target = draw_ids(rng, 9, [5, 2]), draw_ids(rng, 7, [3, 5], begin=True)
    check(module(source, target) is not None, "The Transformer returned None.")
    long = [draw_ids(rng, size, [6, 1], begin=True) for size in vocabularies]
    check_refused("a source that is longer than max_length", module, long[0], target)
    check_refused("a target that is longer than max_length", module, source, long[1])
    check_refused("a source that is longer than max_length", module.encode, long[0])
    check_refused("another number of targets than sources", module, source, target[:1])
    for size, place in zip(vocabularies, (0, 1), strict=True):
        for wrong in (size, -1):
            ids = [source.clone(), target.clone()]
            ids[place][0, 1] = wrong
            check_refused("an id that isn't in the vocabulary", module, *ids)
    check_refused("an empty source", module, torch.zeros_like(source), target)
    check_refused("ids in lists", module, source.tolist(), target.tolist())
    check_refused("a number in place of ids", module, 3, target)
    check_refused("a number in place of ids", module, source, 3)
    check_refused("ids in a list", module.encode, source.tolist())
    check_refused("a mask of floats", module.encode, source, torch.ones(2, 1, 5).double())
    check(student.TransformerConfig(4, 4) is not None, "There is no TransformerConfig.")
    for sizes in ((3, 9), (9, 3)):
        check_refused("a vocabulary of special ids alone", student.TransformerConfig, *sizes)
    for heads in (3, 32):
        situation = "heads that don't divide d_model"
        check_refused(situation, student.TransformerConfig, 10, 10, d_model=16, num_heads=heads)


def check_fast(student, oracle, rng):
    """Forward and backward together are fast enough, and what was timed was really computed."""
    model = draw_block(rng, "Transformer", torch.float32, **TIMED)
    module, cotangent = model.on(student), draw_vectors(rng, BATCH, 24, 40, dtype=torch.float32)
    upstream, lengths = hold(student, [cotangent]), [24] * BATCH

    def prepare():
        ids = draw_ids(rng, 40, lengths), draw_ids(rng, 40, lengths, begin=True)
        baseline = oracle.transformer_pass(TIMED, model.parameters, *ids, cotangent)
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
    check_timed(oracle, model, ids, fetch(results)[0], norm=norm)


def check_timed(oracle, model, ids, results, *, norm):
    """The logits of a few sequences, and the norm of all gradients, are PyTorch's."""
    (logits, *_), _, gradients = results
    few = tuple(values[:2] for values in ids)
    check(isinstance(logits, torch.Tensor), "The logits must be a tensor.")
    compare_logits(logits[:2], expected_output(oracle, model, few), "while timed")
    check(set(gradients) == set(model.parameters), "Some parameters have no gradients.")
    squares = sum(float(gradient.double().square().sum()) for gradient in gradients.values())
    what = "the norm of all gradients (while timed)"
    assert_close(math.sqrt(squares), norm, what=what, tolerance=1e-3)
