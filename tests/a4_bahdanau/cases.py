"""What the tests of assignment 4 share: modules with drawn weights, random inputs, comparisons."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from common.data.numbers import BEGIN, END, PADDING
from common.student_code.values import Handle
from common.testing.checks import check_refused, check_unchanged, sliced, transposed
from common.testing.compare import TOLERANCES, assert_close, check, kind_of, unpack
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import (
    check_same_weights,
    load_parameters,
    parameters_of,
    vjp,
)

FIRST_WORD = 1 + max(PADDING, BEGIN, END)
SINGLE = torch.float32
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
LAST_AXIS = {"weights": "key", "logits": "id"}


def gru_shapes(x, h, front, end=""):
    """The names and shapes of the weights of a GRU."""
    shapes = {"weight_ih": (3 * h, x), "weight_hh": (3 * h, h), "bias_ih": (3 * h,)}
    shapes["bias_hh"] = (3 * h,)
    return {f"{front}{name}{end}": shape for name, shape in shapes.items()}


def parameter_shapes(kind, *sizes):
    """The names and shapes that the docstring of a module gives."""
    if kind == "AdditiveAttention":
        q, k, h = sizes
        return {"query.weight": (h, q), "key.weight": (h, k), "score.weight": (1, h)}
    if kind == "Encoder":
        v, e, h = sizes
        both = gru_shapes(e, h, "gru.", "_l0") | gru_shapes(e, h, "gru.", "_l0_reverse")
        return {"embedding.weight": (v, e)} | both
    if kind == "FixedContextDecoder":
        v, e, c, h = sizes
        shapes = {"embedding.weight": (v, e), "initial.weight": (h, c), "initial.bias": (h,)}
        shapes |= gru_shapes(e + c, h, "cell.")
        return shapes | {"output.weight": (v, h + c), "output.bias": (v,)}
    if kind == "AttentionDecoder":
        v, e, c, h, a = sizes
        parts = {
            "": parameter_shapes("FixedContextDecoder", v, e, c, h),
            "attention.": parameter_shapes("AdditiveAttention", h, c, a),
        }
    else:
        source, target, e, h, attention = sizes
        decoder = ("AttentionDecoder", h) if attention else ("FixedContextDecoder",)
        parts = {
            "encoder.": parameter_shapes("Encoder", source, e, h),
            "decoder.": parameter_shapes(decoder[0], target, e, 2 * h, h, *decoder[1:]),
        }
    return {f"{part}{name}": shape for part in parts for name, shape in parts[part].items()}


@dataclass(frozen=True)
class Drawn:
    """A module: the name of its class, its sizes, and its parameters by name."""

    kind: str
    sizes: tuple
    parameters: dict

    @property
    def dtype(self):
        return next(iter(self.parameters.values())).dtype

    @property
    def tolerance(self):
        """The error allowed in what such a module gives as Python's floats."""
        return TOLERANCES[str(self.dtype).removeprefix("torch.")]

    def build(self, module_class):
        """A module of the student's class, with these sizes and parameters."""
        module = module_class(*self.sizes)
        check_is_module(self.kind, module)
        if self.dtype == torch.float64:
            module.double()
        load_parameters(module, self.parameters)
        return module


SOFTMAX = Drawn("masked_softmax", (), {})  # a function, which has no parameters


def check_is_module(kind, module):
    """The student's class gives objects, not plain values."""
    sentence = f"{kind} must be a class of modules, but it gives {kind_of(module)}."
    check(isinstance(module, Handle), sentence)


def draw_module(rng, kind, *sizes, dtype=torch.float64):
    """Random weights, and biases that are far from 0."""
    parameters = {}
    for name, shape in parameter_shapes(kind, *sizes).items():
        if len(shape) == 1:
            values = rng.uniform(0.4, 1, size=shape) * rng.choice([-1, 1], size=shape)
        elif name.endswith("embedding.weight"):
            values = rng.normal(size=shape)
        else:
            values = rng.normal(scale=1.5 / math.sqrt(shape[1]), size=shape)
        parameters[name] = torch.from_numpy(values).to(dtype)
    return Drawn(kind, sizes, parameters)


def draw_floats(rng, *shape, dtype=torch.float64):
    return torch.from_numpy(rng.normal(size=shape)).to(dtype)


def draw_mask(rng, *shape):
    """In every row at least two are True and one is False, for three keys or more.

    With a single True, weights would not move, and there would be no gradient to compare.
    """
    places = rng.uniform(size=shape).argsort(axis=-1)
    mask = (rng.uniform(size=shape) < 0.5) & (places > 0) | (places > shape[-1] - 3)
    return torch.from_numpy(mask)


def draw_source(rng, lengths, vocabulary, t=None):
    """A batch of sources of these lengths with padding after them, in t columns."""
    source = np.full((len(lengths), t or max(lengths)), PADDING)
    for row, length in zip(source, lengths, strict=True):
        row[:length] = rng.integers(FIRST_WORD, vocabulary, size=length)
    return torch.from_numpy(source)


def draw_target(rng, lengths, vocabulary, u=None):
    """A batch of targets with so many words each, between BEGIN and END; u columns."""
    target = np.full((len(lengths), u or max(lengths) + 2), PADDING)
    for row, length in zip(target, lengths, strict=True):
        words = rng.integers(FIRST_WORD, vocabulary, size=length)
        row[: length + 2] = [BEGIN, *words, END]
    return torch.from_numpy(target)


def draw_ids(rng, vocabulary, *shape):
    """Ids without PADDING: an embedding may well give it no gradient."""
    return torch.from_numpy(rng.integers(BEGIN, vocabulary, size=shape))


def draw_inputs(rng, vocabulary, n, u):
    """What the decoder reads with teacher forcing: BEGIN, then words."""
    words = rng.integers(FIRST_WORD, vocabulary, size=(n, u))
    words[:, 0] = BEGIN
    return torch.from_numpy(words)


def as_single(*tensors):
    """The same tensors, those of floats in float32."""
    return [tensor.float() if tensor.is_floating_point() else tensor for tensor in tensors]


def as_views(*tensors):
    """The same tensors in other memory layouts: some are transposed, the others are slices."""
    views = []
    for place, tensor in enumerate(tensors):
        layout = transposed if tensor.ndim > 1 and place % 2 == 0 else sliced
        views.append(torch.from_numpy(layout(tensor.numpy())))
    return views


def compare_results(result, drawn, inputs, situation, *, oracle, method=None):
    """What the module, or its method, returned for these inputs is what PyTorch gives."""
    name = name_of(drawn, method)
    expected = oracle.answer(name, drawn.parameters, inputs)
    results = [result] if len(expected) == 1 else unpack(result, len(expected), name)
    for what, actual, wanted in zip(RESULTS[name], results, expected, strict=True):
        middle = ("place" if what == "states" else "step",) if wanted.ndim == 3 else ()
        axes = ("sentence", *middle, LAST_AXIS.get(what, "feature"))
        axes = axes if len(axes) == wanted.ndim and name != "masked_softmax" else None
        assert_close(actual, wanted, f"{what} of {name} ({situation})", axes)


def name_of(drawn, method):
    return f"{drawn.kind}.{method}" if method else drawn.kind


def check_gradients(function, drawn, inputs, situation, *, oracle, rng, method=None):
    """Under random gradients of all results, those of inputs and parameters are PyTorch's.

    function: the module, or its method; gradients of parameters are compared for modules only.
    """
    name = name_of(drawn, method)
    expected = oracle.answer(name, drawn.parameters, inputs)
    upstream = [draw_floats(rng, *tensor.shape, dtype=tensor.dtype) for tensor in expected]
    of_inputs, of_parameters = oracle.gradients(name, drawn.parameters, inputs, upstream)
    outputs, gradients, parameters = vjp(function, inputs, upstream)
    result = outputs if len(expected) > 1 else unpack(outputs, 1, name)[0]
    compare_results(result, drawn, inputs, situation, oracle=oracle, method=method)
    for place, (actual, right) in enumerate(zip(gradients, of_inputs, strict=True)):
        if right is not None:
            what = f"the gradient of input {place + 1} of {name} ({situation})"
            assert_close(actual, right, what=what)
    if method is None:
        for parameter, right in of_parameters.items():
            what = f"the gradient of {parameter} ({situation})"
            assert_close(parameters[parameter], right, what=what)


def check_initial_parameters(kind, module, sizes):
    """Names and shapes are the docstring's, in float32, and there is nothing else."""
    check_is_module(kind, module)
    for name, value in parameters_of(module).items():
        check(value.dtype == torch.float32, f"The parameter {name} of {kind} must be of float32.")
    zeros = {name: torch.zeros(s) for name, s in parameter_shapes(kind, *sizes).items()}
    load_parameters(module, zeros)
    try:
        module.load_state_dict(zeros)
    except RuntimeError as error:
        names = f"The state_dict of {kind} has other names than the docstring gives."
        check(False, names, str(error))


def check_stays_apart(module, oracle, drawn, calls, *, method=None):
    """Inputs and weights stay as they are, and a result survives further calls. calls: two."""
    name, function = name_of(drawn, method), getattr(module, method) if method else module
    given = (*calls, calls[0])
    for inputs, result in zip(given, call_each(function, given), strict=True):
        situation = "several calls in a row"
        compare_results(result, drawn, inputs, situation, oracle=oracle, method=method)
    check_unchanged(name, function, *calls[0])
    if drawn.parameters:
        check_same_weights(module, drawn.parameters, name)


def bad_ids(ids, vocabulary):
    """Ids that must be refused, with words for each. ids: right ones."""
    large, negative = ids.clone(), ids.clone()
    large[-1], negative[0] = vocabulary, -1
    return (
        ("ids of int32", ids.int()),
        ("ids of floats", ids.double()),
        ("an id above the vocabulary", large),
        ("a negative id", negative),
        ("an empty batch", ids[:0]),
        ("another number of axes", ids[None]),
        ("a list in place of a tensor", ids.tolist()),
    )


def bad_sources(source, vocabulary):
    """Sources that must be refused, with words for each. source: (n, t), n and t at least 2."""
    empty, gap = source.clone(), source.clone()
    empty[-1], gap[0, 0] = PADDING, PADDING
    return (
        *bad_ids(source, vocabulary),
        ("sources without a single id", source[:, :0]),
        ("a source of nothing but padding", empty),
        ("a source that begins with padding", gap),
        ("padding between ids", torch.cat([source, 0 * source[:, :1], source[:, :1]], dim=1)),
    )


def bad_targets(target, vocabulary):
    """Targets that must be refused, with words for each. target: (n, u), n and u at least 2."""
    wrong = target.clone()
    wrong[-1, 0] = END

    def last(*row):
        return torch.tensor([[BEGIN, FIRST_WORD, END, PADDING]] * (len(target) - 1) + [row])

    return (
        *bad_ids(target, vocabulary),
        ("fewer targets than sources", target[:-1]),
        ("a target that doesn't begin with BEGIN", wrong),
        ("targets of BEGIN alone", target[:, :1]),
        ("padding before END", last(BEGIN, PADDING, FIRST_WORD, END)),
        ("an id after END", last(BEGIN, FIRST_WORD, END, FIRST_WORD)),
        ("a second END", last(BEGIN, FIRST_WORD, END, END)),
        ("no END at all", last(BEGIN, FIRST_WORD, FIRST_WORD, PADDING)),
    )


def check_each_refused(function, front, bad, *more):
    """Each of the bad values, between the other arguments, raises ValueError."""
    for situation, value in bad:
        check_refused(situation, function, *front, value, *more)


def check_batches_refused(function, inputs):
    """Inputs for different numbers of sentences, empty ones, and lists raise ValueError.

    inputs: right ones, for two sentences or more.
    """
    for place, tensor in enumerate(inputs):
        bad = [("a list in place of a tensor", tensor.tolist())]
        if len(inputs) > 1:
            bad += [("inputs for different numbers of sentences", tensor[:1])]
        if tensor.ndim == 3:
            bad += [("sentences without a single key", tensor[:, :0])]
        check_each_refused(function, inputs[:place], bad, *inputs[place + 1 :])
    check_refused("an empty batch", function, *(tensor[:0] for tensor in inputs))
