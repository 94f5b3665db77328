"""What the tests of assignment 6 share: modules with parameters by name, and how one is checked."""

import math
from dataclasses import dataclass, field

import torch

from common.testing.checks import check_unchanged, transposed
from common.testing.compare import assert_close, check
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import (
    compare_gradients,
    load_parameters,
    new_module,
    parameters_of,
    vjp,
)

VECTOR_AXES = ("sequence", "place", "feature")
PARTS = ("query", "key", "value", "out")
# Finer than usual: places that were rounded to float32 on the way are off by little.
FINE = 1e-10


@dataclass(frozen=True)
class Block:
    """A module: its class, what it is made with, and its parameters by name."""

    kind: str
    settings: dict
    parameters: dict = field(repr=False)

    @property
    def dtype(self):
        return next(iter(self.parameters.values())).dtype

    def on(self, student, **more):
        """The student's module with these parameters; more: settings that change no result."""
        if self.kind == "Transformer":
            config = student.TransformerConfig(**self.settings | more)
            module = new_module(student, self.kind, config)
        else:
            module = new_module(student, self.kind, **self.settings | more)
        if self.dtype == torch.float64:
            module.double()
        load_parameters(module, self.parameters)
        return module

    def single(self):
        """The same in float32."""
        values = {name: value.float() for name, value in self.parameters.items()}
        return Block(self.kind, self.settings, values)

    def changed(self, **parameters):
        """The same with other values for some parameters; dots are written as two underscores."""
        others = {name.replace("__", "."): value for name, value in parameters.items()}
        return Block(self.kind, self.settings, self.parameters | others)


# The names and shapes that the docstrings give.


def inside(prefix, shapes):
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def dense(name, rows, columns, *more):
    return {f"{name}.weight": (rows, columns, *more), f"{name}.bias": (rows,)}


def shapes_of(kind, settings):
    """The parameters of a module by name, with their shapes."""
    d = settings["d_model"]
    if kind == "LayerNorm":
        return {"weight": (d,), "bias": (d,)}
    if kind == "MultiHeadAttention":
        return {k: v for name in PARTS for k, v in dense(name, d, d).items()}
    if kind == "FeedForward":
        return dense("linear1", settings["d_ff"], d) | dense("linear2", d, settings["d_ff"])
    if kind == "FeedForwardConv":
        return dense("conv1", settings["d_ff"], d, 1) | dense("conv2", d, settings["d_ff"], 1)
    if kind in ("EncoderLayer", "DecoderLayer"):
        return layer_shapes(settings, crossing=kind == "DecoderLayer")
    if kind in ("Encoder", "Decoder"):
        layer, shapes = shapes_of(f"{kind}Layer", settings), {}
        for index in range(settings["num_layers"]):
            shapes |= inside(f"layers.{index}", layer)
        last = settings.get("norm", "pre") == "pre"
        return shapes | (inside("norm", shapes_of("LayerNorm", settings)) if last else {})
    return transformer_shapes(settings)


def layer_shapes(settings, crossing):
    attentions = ["self_attention"] + ["cross_attention"] * crossing
    shapes = inside("feed_forward", shapes_of("FeedForward", settings))
    for name in attentions:
        shapes |= inside(name, shapes_of("MultiHeadAttention", settings))
    for index in range(1, len(attentions) + 2):
        shapes |= inside(f"norm{index}", shapes_of("LayerNorm", settings))
    return shapes


def transformer_shapes(settings):
    d, target = settings["d_model"], settings["target_vocabulary"]
    shapes = {"source_embedding.weight": (settings["source_vocabulary"], d)}
    if not settings.get("shared"):
        shapes |= {"target_embedding.weight": (target, d), "output.weight": (target, d)}
    if settings.get("positions") == "learned":
        shapes["positions.weight"] = (settings["max_length"], d)
    for side in ("encoder", "decoder"):
        stack = settings | {"num_layers": settings[f"{side}_layers"]}
        shapes |= inside(side, shapes_of(side.capitalize(), stack))
    return shapes


def draw_block(rng, kind, dtype=torch.float64, **settings):
    """Random weights, and biases and gains that are far from 0 and from 1."""
    parameters = {}
    for name, shape in shapes_of(kind, settings).items():
        if len(shape) == 1:
            values = rng.uniform(0.4, 0.9, size=shape) * rng.choice([-1, 1], size=shape)
        elif name == "positions.weight":
            values = rng.normal(size=shape)
        else:
            values = rng.normal(scale=1.3 / math.sqrt(shape[1]), size=shape)
        if ".query." in name or ".key." in name:
            values = values / 2  # weights near 0 and 1 would have next to no gradient
        parameters[name] = torch.from_numpy(values).to(dtype)
    return Block(kind, settings, parameters)


def silent_block(kind, **settings):
    """Parameters of zero and gains of one: nothing is added to what runs past the parts."""
    parameters = {}
    for name, shape in shapes_of(kind, settings).items():
        *_, owner, kind_of_values = f".{name}".split(".")
        gain = kind_of_values == "weight" and (owner.startswith("norm") or kind == "LayerNorm")
        parameters[name] = (torch.ones if gain else torch.zeros)(shape, dtype=torch.float64)
    return Block(kind, settings, parameters)


def draw_vectors(rng, *shape, dtype=torch.float64):
    return torch.from_numpy(rng.normal(size=shape)).to(dtype)


def view_of(values):
    """The same numbers, laid out in memory from the last axis to the first."""
    return torch.from_numpy(transposed(values.numpy()))


def draw_mask(rng, *shape):
    """Every row has at least two True and one False, for three keys or more."""
    places = rng.uniform(size=shape).argsort(axis=-1)
    return torch.from_numpy(
        (rng.uniform(size=shape) < 0.5) & (places > 0) | (places > shape[-1] - 3)
    )


def check_output(student, oracle, block, inputs, *, situation, tolerance=None, **more):
    """What the module makes of its inputs is PyTorch's."""
    out = block.on(student, **more)(*inputs)
    compare(out, expected_output(oracle, block, inputs), situation, tolerance)


def expected_output(oracle, block, inputs):
    return oracle.output(block.kind, block.settings, block.parameters, inputs)


def compare(out, expected, situation, tolerance=None):
    axes = VECTOR_AXES if expected.ndim == 3 else None
    assert_close(out, expected, f"out ({situation})", axes, tolerance)


def check_gradients(student, oracle, rng, block, *, inputs, situation, tolerance=None):
    """The output, and the gradients of all inputs and parameters under a random one, too."""
    expected = expected_output(oracle, block, inputs)
    upstream = draw_vectors(rng, *expected.shape, dtype=block.dtype)
    wanted, wanted_parameters = oracle.gradients(
        block.kind, block.settings, block.parameters, inputs, upstream
    )
    outputs, gradients, parameters = vjp(block.on(student), inputs, [upstream])
    compare(outputs[0], expected, situation, tolerance)
    pairs = {}
    for name, actual, right in zip(("x", "memory"), gradients, wanted, strict=False):
        if right is not None:
            pairs[name] = actual, right
    compare_gradients(parameters, wanted_parameters, situation, tolerance, pairs)


def check_calls_stay_apart(student, oracle, block, first, *, second):
    """Inputs stay as they are, and a result survives further calls."""
    module, cases = block.on(student), (first, second, first)
    for inputs, out in zip(cases, call_each(module, cases), strict=True):
        compare(out, expected_output(oracle, block, inputs), "several calls in a row")
    check_unchanged(block.kind, module, *first)


def check_parameters(student, kind, settings):
    """The module has the parameters of the docstring and no others; their first values are right.

    Those of a LayerNorm are ones and zeros, the others those of nn.Linear and nn.Conv1d.
    """
    made = student.TransformerConfig(**settings) if kind == "Transformer" else None
    module = new_module(student, kind, made) if made else new_module(student, kind, **settings)
    first, shapes = parameters_of(module), shapes_of(kind, settings)
    load_parameters(module, {name: torch.zeros(shape) for name, shape in shapes.items()})
    for name, values in first.items():
        owner = f".{name}".split(".")[-2]
        if owner.startswith("norm") or kind == "LayerNorm":
            start = (torch.ones if name.endswith("weight") else torch.zeros)(shapes[name])
            assert_close(values, start, what=f"the first values of {name}")
        elif "embedding" not in owner and owner not in ("output", "positions"):
            columns = shapes[name.replace(".bias", ".weight")][1]
            check_even(values, 1 / math.sqrt(columns), name)
    return first


def check_even(values, bound, name):
    """The values are drawn evenly from -bound to bound, as nn.Linear does it.

    The spread of few numbers tells little: only those of 300 or more are asked for theirs, which
    is off by more than 20 percent with a chance below 1e-9.
    """
    check(
        bool((values.abs() <= bound * (1 + 1e-6)).all()) and bool(values.any()),
        f"The first values of {name} are not those that PyTorch's own layers draw.",
    )
    ratio = float(values.std()) / (bound / math.sqrt(3)) if values.numel() >= 300 else 1.0
    check(
        abs(ratio - 1) < 0.2,
        f"The first values of {name} are not spread as PyTorch's own layers spread them.",
        f"Their standard deviation is {ratio:.2f} times as large.",
    )
