"""What the tests of assignment 4 draw: modules with random weights, and inputs for them."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from common.data.numbers import BEGIN, END, PADDING
from common.student_code.values import Handle
from common.testing.compare import TOLERANCES, check, kind_of
from common.testing.remote.torch_modules import load_parameters

FIRST_WORD = 1 + max(PADDING, BEGIN, END)


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


def check_is_module(kind, module):
    """The student's class gives objects, not plain values."""
    sentence = f"{kind} must be a class of modules, but it gives {kind_of(module)}."
    check(isinstance(module, Handle), sentence)


def module(rng, kind, *sizes, dtype=torch.float64):
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


def floats(rng, *shape, dtype=torch.float64):
    return torch.from_numpy(rng.normal(size=shape)).to(dtype)


def mask(rng, *shape):
    """In every row at least two are True and one is False, for three keys or more.

    With a single True, weights would not move, and there would be no gradient to compare.
    """
    places = rng.uniform(size=shape).argsort(axis=-1)
    mask = (rng.uniform(size=shape) < 0.5) & (places > 0) | (places > shape[-1] - 3)
    return torch.from_numpy(mask)


def source(rng, lengths, vocabulary, t=None):
    """A batch of sources of these lengths with padding after them, in t columns."""
    source = np.full((len(lengths), t or max(lengths)), PADDING)
    for row, length in zip(source, lengths, strict=True):
        row[:length] = rng.integers(FIRST_WORD, vocabulary, size=length)
    return torch.from_numpy(source)


def target(rng, lengths, vocabulary, u=None):
    """A batch of targets with so many words each, between BEGIN and END; u columns."""
    target = np.full((len(lengths), u or max(lengths) + 2), PADDING)
    for row, length in zip(target, lengths, strict=True):
        words = rng.integers(FIRST_WORD, vocabulary, size=length)
        row[: length + 2] = [BEGIN, *words, END]
    return torch.from_numpy(target)


def ids(rng, vocabulary, *shape):
    """Ids without PADDING: an embedding may well give it no gradient."""
    return torch.from_numpy(rng.integers(BEGIN, vocabulary, size=shape))


def inputs(rng, vocabulary, n, u):
    """What the decoder reads with teacher forcing: BEGIN, then words."""
    words = rng.integers(FIRST_WORD, vocabulary, size=(n, u))
    words[:, 0] = BEGIN
    return torch.from_numpy(words)


def step(rng, n, t, sizes, *, mask=None):
    """Tokens, states and keys for one step of an AttentionDecoder of these sizes."""
    v, _, c, h, _ = sizes
    drawn = (ids(rng, v, n), floats(rng, n, h), floats(rng, n, t, c))
    return drawn if mask is None else (*drawn, mask)


def whole(rng, n, u, t, *, sizes, mask=None):
    """Ids, final and keys for u steps of an AttentionDecoder of these sizes."""
    v, _, c, _, _ = sizes
    drawn = (inputs(rng, v, n, u), floats(rng, n, c), floats(rng, n, t, c))
    return drawn if mask is None else (*drawn, mask)


def translator(rng, attention, sizes=(7, 5, 4, 3), dtype=torch.float64):
    """A model with clear preferences."""
    drawn = module(rng, "Seq2Seq", *sizes, attention, dtype=dtype)
    drawn.parameters["decoder.output.weight"].mul_(2)
    return drawn
