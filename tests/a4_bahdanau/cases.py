"""Comparisons of results and gradients for the tests of assignment 4, and inputs to reject."""

import torch

from common.data.numbers import BOS, EOS, PAD
from common.testing.checks import check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import (
    check_same_weights,
    load_parameters,
    parameters_of,
    vjp,
)
from tests.a4_bahdanau import draw_cases as draw

SOFTMAX = draw.Drawn("masked_softmax", (), {})  # a function, which has no parameters
UNSEEN = 1e12  # what masked keys hold
RESULTS = {
    "masked_softmax": ("out",),
    "AdditiveAttention": ("context", "weights"),
    "Encoder": ("states", "final"),
    "FixedContextDecoder": ("logits",),
    "FixedContextDecoder.start": ("state_0",),
    "FixedContextDecoder.step": ("logits", "state"),
    "AttentionDecoder": ("logits", "weights"),
    "AttentionDecoder.start": ("state_0",),
    "AttentionDecoder.step": ("logits", "state", "weights"),
    "Seq2Seq.loss": ("loss",),
}
INPUTS = {
    "AdditiveAttention": ("query", "keys", "mask"),
    "Encoder": ("source",),
    "FixedContextDecoder": ("inputs", "context"),
    "FixedContextDecoder.start": ("context",),
    "FixedContextDecoder.step": ("token", "state", "context"),
    "AttentionDecoder": ("inputs", "final", "keys", "mask"),
    "AttentionDecoder.start": ("final",),
    "AttentionDecoder.step": ("token", "state", "keys", "mask"),
}
LAST_AXIS = {"weights": "key", "logits": "id"}


def as_single(*tensors):
    """The same tensors, with floating-point ones in float32."""
    return [tensor.float() if tensor.is_floating_point() else tensor for tensor in tensors]


def as_views(*tensors):
    """The same tensors in other memory layouts: some transposed, the others sliced."""
    views = []
    for index, tensor in enumerate(tensors):
        layout = transposed if tensor.ndim > 1 and index % 2 == 0 else sliced
        views.append(torch.from_numpy(layout(tensor.numpy())))
    return views


def compare_results(result, drawn, inputs, situation, *, oracle, method=None):
    """The module, or its method, returned for these inputs what PyTorch gives."""
    name = name_of(drawn, method)
    expected = oracle.answer(name, drawn.parameters, inputs)
    results = [result] if len(expected) == 1 else unpack(result, len(expected), name)
    for what, actual, wanted in zip(RESULTS[name], results, expected, strict=True):
        middle = ("position" if what == "states" else "step",) if wanted.ndim == 3 else ()
        axes = ("sentence", *middle, LAST_AXIS.get(what, "feature"))
        axes = axes if len(axes) == wanted.ndim and name != "masked_softmax" else None
        assert_close(actual, wanted, f"{what} of {name} ({situation})", axes)


def name_of(drawn, method):
    return f"{drawn.kind}.{method}" if method else drawn.kind


def check_gradients(function, drawn, inputs, situation, *, oracle, rng, method=None):
    """With random upstream gradients, those of inputs and parameters are PyTorch's.

    function: the module, or its method; gradients of parameters are compared for modules only.
    """
    name = name_of(drawn, method)
    expected = oracle.answer(name, drawn.parameters, inputs)
    upstream = [draw.floats(rng, *tensor.shape, dtype=tensor.dtype) for tensor in expected]
    of_inputs, of_parameters = oracle.gradients(name, drawn.parameters, inputs, upstream)
    outputs, gradients, parameters = vjp(function, inputs, upstream)
    result = outputs if len(expected) > 1 else unpack(outputs, 1, name)[0]
    compare_results(result, drawn, inputs, situation, oracle=oracle, method=method)
    pairs = zip(gradients, of_inputs, strict=True)
    for parameter, (actual, right) in zip(INPUTS[name], pairs, strict=False):  # often without mask
        if right is not None:
            what = f"the gradient of {parameter} of {name} ({situation})"
            assert_close(actual, right, what=what)
    if method is None:
        for parameter, right in of_parameters.items():
            what = f"the gradient of {parameter} ({situation})"
            assert_close(parameters[parameter], right, what=what)


def check_initial_parameters(kind, module, sizes):
    """Names and shapes are those of the docstring, in float32, and there are no others."""
    draw.check_is_module(kind, module)
    for name, value in parameters_of(module).items():
        float32 = value.dtype == torch.float32
        check(float32, f"A parameter of {kind} isn't float32.", f"It is {name}.")
    zeros = {name: torch.zeros(s) for name, s in draw.parameter_shapes(kind, *sizes).items()}
    load_parameters(module, zeros)
    try:
        module.load_state_dict(zeros)
    except RuntimeError as error:
        names = f"The state_dict of {kind} has other names than the docstring gives."
        check(False, names, str(error))


def check_stays_apart(module, oracle, drawn, calls, *, method=None):
    """Inputs and weights don't change, and neither does a result in later calls. calls: two."""
    name, function = name_of(drawn, method), getattr(module, method) if method else module
    given = (*calls, calls[0])
    for inputs, result in zip(given, call_each(function, given), strict=True):
        situation = "several calls in a row"
        compare_results(result, drawn, inputs, situation, oracle=oracle, method=method)
    check_unchanged(name, function, *calls[0])
    if drawn.parameters:
        check_same_weights(module, drawn.parameters, name)


def compare_weights(result, drawn, inputs, situation, *, oracle):
    """The results are PyTorch's, and weights are exactly 0 where a mask is False."""
    compare_results(result, drawn, inputs, situation, oracle=oracle)
    weights, mask = result if drawn is SOFTMAX else result[-1], inputs[-1]
    if mask.dtype == torch.bool:
        hidden = ~mask.expand(weights.shape)
        sentence = "Where the mask is False, the weight must be exactly 0."
        check(not bool(weights[hidden].any()), sentence)


def check_softmax_vjp(softmax, inputs, situation, *, oracle, rng):
    """The gradient of the scores is PyTorch's, and 0 at masked positions."""
    scores, *mask = inputs
    upstream = [draw.floats(rng, *scores.shape, dtype=scores.dtype)]
    (wanted, *_), _ = oracle.gradients("masked_softmax", {}, inputs, upstream)
    (out,), gradients, _ = vjp(softmax, inputs, upstream)
    compare_results(out, SOFTMAX, inputs, situation, oracle=oracle)
    assert_close(gradients[0], wanted, what=f"the gradient of the scores ({situation})")
    if mask:
        hidden = ~mask[0].expand(scores.shape)
        sentence = "The gradient of a masked score must be exactly 0."
        check(not bool(gradients[0][hidden].any()), sentence)


def blinded(query, keys, mask):
    """The same inputs, with huge numbers in the masked keys."""
    return query, keys.masked_fill(~mask[..., None], UNSEEN), mask


def hide_row(mask, row):
    """The same mask, with one row fully masked."""
    return mask.index_fill(0, torch.tensor(row), False)


def bad_ids(ids, vocab_size):
    """Ids that must be rejected, each with a description. ids: valid ones."""
    large, negative = ids.clone(), ids.clone()
    large[-1], negative[0] = vocab_size, -1
    return (
        ("int32 ids", ids.int()),
        ("float64 ids", ids.double()),
        ("an id above the vocabulary", large),
        ("a negative id", negative),
        ("an empty batch", ids[:0]),
        ("one axis too many", ids[None]),
        ("a list instead of a tensor", ids.tolist()),
    )


def bad_sources(source, vocab_size):
    """Sources that must be rejected, each described. source: (n, t), n and t at least 2."""
    empty, gap = source.clone(), source.clone()
    empty[-1], gap[0, 0] = PAD, PAD
    return (
        *bad_ids(source, vocab_size),
        ("sources without a single id", source[:, :0]),
        ("a source of only padding", empty),
        ("a source that starts with padding", gap),
        ("padding between ids", torch.cat([source, 0 * source[:, :1], source[:, :1]], dim=1)),
    )


def bad_targets(target, vocab_size):
    """Targets that must be rejected, each described. target: (n, u), n and u at least 2."""
    wrong = target.clone()
    wrong[-1, 0] = EOS

    def last(*row):
        return torch.tensor([[BOS, draw.FIRST_WORD, EOS, PAD]] * (len(target) - 1) + [row])

    return (
        *bad_ids(target, vocab_size),
        ("fewer targets than sources", target[:-1]),
        ("a target that doesn't start with BOS", wrong),
        ("targets of only BOS", target[:, :1]),
        ("padding before EOS", last(BOS, PAD, draw.FIRST_WORD, EOS)),
        ("an id after EOS", last(BOS, draw.FIRST_WORD, EOS, draw.FIRST_WORD)),
        ("a second EOS", last(BOS, draw.FIRST_WORD, EOS, EOS)),
        ("no EOS at all", last(BOS, draw.FIRST_WORD, draw.FIRST_WORD, PAD)),
    )


def check_each_refused(function, front, bad, *more):
    """Each of the bad values, between the other arguments, raises ValueError."""
    for situation, value in bad:
        check_refused(situation, function, *front, value, *more)


def check_batches_refused(function, inputs):
    """Inputs for different numbers of sentences, empty ones, and lists raise ValueError.

    inputs: valid ones, for two or more sentences.
    """
    for index, tensor in enumerate(inputs):
        bad = [("a list instead of a tensor", tensor.tolist())]
        if len(inputs) > 1:
            bad += [("inputs for different numbers of sentences", tensor[:1])]
        if tensor.ndim == 3:
            bad += [("sentences without a single key", tensor[:, :0])]
        check_each_refused(function, inputs[:index], bad, *inputs[index + 1 :])
    check_refused("an empty batch", function, *(tensor[:0] for tensor in inputs))


def check_masks_refused(function, front, mask):
    """Masks of a wrong dtype or shape raise ValueError; this one doesn't. mask: (n, t), n != t."""
    check(function(*front, mask) is not None, "Nothing was returned.")
    for situation, bad in (
        ("a float64 mask", mask.double()),
        ("an integer mask", mask.long()),
        ("a mask with its axes swapped", mask.T),
        ("a mask with too many keys", torch.cat([mask, mask], dim=1)),
        ("a mask with too many axes", mask[None]),
    ):
        check_refused(situation, function, *front, bad)
