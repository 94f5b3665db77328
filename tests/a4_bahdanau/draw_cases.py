"""Random inputs for the tests of assignment 4: modules with random weights, and their inputs."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from common.data.numbers import BOS, EOS, PAD
from common.student_code.values import Handle
from common.testing.compare import TOLERANCES, check, kind_of
from common.testing.remote.torch_modules import load_parameters

FIRST_WORD = 1 + max(PAD, BOS, EOS)


def gru_shapes(x, h, front, end=""):
    """The names and shapes of the weights of a GRU."""
    shapes = {"weight_ih": (3 * h, x), "weight_hh": (3 * h, h), "bias_ih": (3 * h,)}
    shapes["bias_hh"] = (3 * h,)
    return {f"{front}{name}{end}": shape for name, shape in shapes.items()}


def parameter_shapes(kind, *sizes):
    """The names and shapes in the docstring of a module."""
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
        """The error allowed in Python floats that such a module returns."""
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
    """The student's class creates modules, not plain values."""
    sentence = f"{kind}(...) must create a module, got {kind_of(module)}."
    check(isinstance(module, Handle), sentence)


def module(rng, kind, *sizes, dtype=torch.float64):
    """Random weights, and biases far from 0."""
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
    """In every row at least two are True and one is False, for three or more keys.

    With a single True, the weight would be constant, and there would be no gradient to compare.
    """
    ranks = rng.uniform(size=shape).argsort(axis=-1)
    mask = (rng.uniform(size=shape) < 0.5) & (ranks > 0) | (ranks > shape[-1] - 3)
    return torch.from_numpy(mask)


def source(rng, lengths, vocab_size, t=None):
    """A batch of sources of these lengths, padded to t columns."""
    source = np.full((len(lengths), t or max(lengths)), PAD)
    for row, length in zip(source, lengths, strict=True):
        row[:length] = rng.integers(FIRST_WORD, vocab_size, size=length)
    return torch.from_numpy(source)


def target(rng, lengths, vocab_size, u=None):
    """A batch of targets with these numbers of words between BOS and EOS, in u columns."""
    target = np.full((len(lengths), u or max(lengths) + 2), PAD)
    for row, length in zip(target, lengths, strict=True):
        words = rng.integers(FIRST_WORD, vocab_size, size=length)
        row[: length + 2] = [BOS, *words, EOS]
    return torch.from_numpy(target)


def ids(rng, vocab_size, *shape):
    """Ids without PAD, since an embedding may give it no gradient."""
    return torch.from_numpy(rng.integers(BOS, vocab_size, size=shape))


def inputs(rng, vocab_size, n, u):
    """Decoder inputs for teacher forcing: BOS, then words."""
    words = rng.integers(FIRST_WORD, vocab_size, size=(n, u))
    words[:, 0] = BOS
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
