"""What the tests of assignment 6 share: modules with parameters by name, and comparisons."""

import itertools
import math
from typing import NamedTuple

import torch

from common.student_code.values import Handle
from common.testing.checks import check_unchanged, transposed
from common.testing.compare import assert_close, check, kind_of
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import (
    compare_gradients,
    load_parameters,
    parameters_of,
    vjp,
)

VECTOR_AXES = ("sequence", "position", "feature")
# Tighter than usual: positional encodings that were rounded to float32 are off by little.
FINE = 1e-10


class Block(NamedTuple):
    """A module as the oracle expects it: its class, its settings, and its parameters by name."""

    kind: str
    settings: dict
    parameters: dict

    def single(self):
        """The same in float32."""
        return self._replace(parameters={name: p.float() for name, p in self.parameters.items()})

    def changed(self, **parameters):
        """The same with other values for some parameters; dots are written as two underscores."""
        others = {name.replace("__", "."): value for name, value in parameters.items()}
        return self._replace(parameters=self.parameters | others)


def loaded(module, block):
    """The student's new module with the parameters of the block, in their dtype."""
    check_is_module(module, block.kind)
    if next(iter(block.parameters.values())).dtype == torch.float64:
        module.double()
    load_parameters(module, block.parameters)
    return module


def new_transformer(student, model, **more):
    """The student's Transformer with the parameters of the model; more: such as dropout."""
    config = student.transformer.TransformerConfig(**model.settings, **more)
    return loaded(student.transformer.Transformer(config), model)


def check_is_module(module, kind):
    check(
        isinstance(module, Handle),
        f"{kind} must be a subclass of nn.Module, but calling it gives {kind_of(module)}.",
    )


# The names and shapes of the docstrings.


def inside(prefix, shapes):
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def linear(name, rows, columns, *more):
    return {f"{name}.weight": (rows, columns, *more), f"{name}.bias": (rows,)}


def shapes_of(kind, settings):
    """The parameters of a module by name, with their shapes."""
    d = settings["d_model"]
    if kind == "LayerNorm":
        return {"weight": (d,), "bias": (d,)}
    if kind == "FeedForward":
        return linear("linear1", settings["d_ff"], d) | linear("linear2", d, settings["d_ff"])
    if kind == "FeedForwardConv":
        return linear("conv1", settings["d_ff"], d, 1) | linear("conv2", d, settings["d_ff"], 1)
    norm = shapes_of("LayerNorm", settings)
    if kind in ("EncoderLayer", "DecoderLayer"):
        attentions = ["self_attention", "cross_attention"][: 1 + (kind == "DecoderLayer")]
        shapes = inside("feed_forward", shapes_of("FeedForward", settings))
        for name, projection in itertools.product(attentions, ("query", "key", "value", "out")):
            shapes |= linear(f"{name}.{projection}", d, d)
        for index in range(1, len(attentions) + 2):
            shapes |= inside(f"norm{index}", norm)
        return shapes
    if kind in ("Encoder", "Decoder"):
        layer, shapes = shapes_of(f"{kind}Layer", settings), {}
        for index in range(settings["num_layers"]):
            shapes |= inside(f"layers.{index}", layer)
        return shapes | (inside("norm", norm) if settings.get("norm", "pre") == "pre" else {})
    return transformer_shapes(settings)


def transformer_shapes(settings):
    d, target = settings["d_model"], settings["target_vocab_size"]
    shapes = {"source_embedding.weight": (settings["source_vocab_size"], d)}
    if not settings.get("tied_embeddings"):
        shapes |= {"target_embedding.weight": (target, d), "output.weight": (target, d)}
    if settings.get("positions") == "learned":
        shapes["positions.weight"] = (settings["max_length"], d)
    for side in ("encoder", "decoder"):
        stack = settings | {"num_layers": settings[f"num_{side}_layers"]}
        shapes |= inside(side, shapes_of(side.capitalize(), stack))
    return shapes


def draw_block(rng, kind, dtype=torch.float64, **settings):
    """Random weights, and biases and norm weights that are far from 0 and from 1."""
    parameters = {}
    for name, shape in shapes_of(kind, settings).items():
        if len(shape) == 1:
            values = rng.uniform(0.4, 0.9, size=shape) * rng.choice([-1, 1], size=shape)
        elif name == "positions.weight":
            values = rng.normal(size=shape)
        else:
            values = rng.normal(scale=1.3 / math.sqrt(shape[1]), size=shape)
        if ".query." in name or ".key." in name:
            values = values / 2  # attention weights near 0 and 1 would have almost no gradient
        parameters[name] = torch.from_numpy(values).to(dtype)
    return Block(kind, settings, parameters)


def silent_block(kind, **settings):
    """Parameters of zero, norm weights of one: sublayers add nothing to the residual stream."""
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
    order = rng.uniform(size=shape).argsort(axis=-1)
    return torch.from_numpy((rng.uniform(size=shape) < 0.5) & (order > 0) | (order > shape[-1] - 3))


def compare(out, expected, situation, tolerance=None):
    """A module's output is PyTorch's."""
    axes = VECTOR_AXES if expected.ndim == 3 else None
    assert_close(out, expected, f"out ({situation})", axes, tolerance=tolerance)


def check_gradients(module, oracle, block, inputs, *, rng, situation, tolerance=None):
    """The output, and the gradients of all inputs and parameters under a random one, too."""
    expected = oracle.output(*block, inputs)
    upstream = draw_vectors(rng, *expected.shape, dtype=expected.dtype)
    wanted, wanted_parameters = oracle.gradients(*block, inputs, upstream)
    outputs, gradients, parameters = vjp(module, inputs, [upstream])
    compare(outputs[0], expected, situation, tolerance)
    pairs = {}
    for name, actual, right in zip(("x", "memory"), gradients, wanted, strict=False):
        if right is not None:
            pairs[name] = actual, right
    compare_gradients(parameters, wanted_parameters, situation, tolerance=tolerance, more=pairs)


def check_evaluation(module, oracle, block, inputs):
    """In evaluation mode, dropout does nothing."""
    module.eval()
    compare(module(*inputs), oracle.output(*block, inputs), "evaluation mode")


def check_calls_stay_apart(module, oracle, block, calls):
    """Inputs don't change, and the first result survives the second call."""
    calls = [*calls, calls[0]]
    for inputs, out in zip(calls, call_each(module, calls), strict=True):
        compare(out, oracle.output(*block, inputs), "several calls in a row")
    check_unchanged(block.kind, module, *calls[0])


def check_parameters(module, kind, settings):
    """A new module has the parameters of the docstring; initial values are those of PyTorch."""
    check_is_module(module, kind)
    first, shapes = parameters_of(module), shapes_of(kind, settings)
    load_parameters(module, {name: torch.zeros(shape) for name, shape in shapes.items()})
    for name in shapes:
        values = first[name]
        owner = f".{name}".split(".")[-2]
        if owner.startswith("norm") or kind == "LayerNorm":
            start = (torch.ones if name.endswith("weight") else torch.zeros)(shapes[name])
            assert_close(values, start, what=f"the initial values of {name}")
        elif "embedding" not in owner and owner not in ("output", "positions"):
            columns = shapes[name.replace(".bias", ".weight")][1]
            check_even(values, 1 / math.sqrt(columns), name)
    return first


def check_even(values, bound, name):
    """The values are uniform on [-bound, bound], as in nn.Linear."""
    check(
        bool((values.abs() <= bound * (1 + 1e-6)).all()) and bool(values.any()),
        f"The initial values of {name} must be those of PyTorch's own layers.",
    )
    # Of 300 or more, the spread is off by more than 20 % with a probability below 1e-9.
    ratio = float(values.std()) / (bound / math.sqrt(3)) if values.numel() >= 300 else 1.0
    check(
        abs(ratio - 1) < 0.2,
        f"The initial values of {name} must have the spread of PyTorch's own layers.",
        f"Their standard deviation is {ratio:.2f} times as large.",
    )
