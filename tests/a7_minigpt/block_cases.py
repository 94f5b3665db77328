"""How the tests of exercise 7.3 check attention, MLP and block, and where their dropout acts."""

import math

import torch
import torch.nn.functional as F

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.remote.torch_modules import compare_gradients, load_parameters, vjp
from tests.a7_minigpt.cases import (
    VECTOR_AXES,
    compare,
    first_of,
    new_module,
    shapes_of,
    silent_block,
    view_of,
)

GELU_OF_1 = 0.5 * (1 + math.erf(math.sqrt(0.5)))


def check_names(code, kind, settings):
    """A new module has the parameters of the docstring, and no others."""
    module, shapes = new_module(code, kind, **settings), shapes_of(kind, settings)
    load_parameters(module, {name: torch.zeros(shape) for name, shape in shapes.items()})


def check_project(project, block, x):
    """Queries, keys and values by head, which side by side are what the layer gives."""
    (n, t, width), heads = x.shape, block.settings["heads"]
    weight, bias = (block.parameters[f"qkv.{name}"].double() for name in ("weight", "bias"))
    wanted = F.linear(x.double(), weight, bias).to(x.dtype).split(width, dim=2)
    shape = n, heads, t, width // heads
    for given, situation in ((x, ""), (view_of(x), ", a view")):
        found = unpack(project(given), 3, "project")
        for name, actual, right in zip(("queries", "keys", "values"), found, wanted, strict=True):
            what = f"the {name} ({n}, {t}{situation})"
            check(
                isinstance(actual, torch.Tensor) and actual.shape == shape,
                f"{what[0].upper()}{what[1:]} must be a tensor of (n, heads, t, width / heads).",
                f"It is {kind_of(actual)}; {shape} is right.",
            )
            assert_close(torch.cat(actual.unbind(1), dim=2), right, what, VECTOR_AXES)
    check_unchanged("project", project, x)


def check_attend(attend, drawn, situation):
    """What the queries find among the keys, and the gradients of all three."""
    inputs, upstream, (expected, wanted, _) = drawn
    outputs, gradients, _ = vjp(attend, inputs, [upstream])
    compare(first_of(outputs), expected, situation)
    named = [dict(zip("qkv", values, strict=True)) for values in (gradients, wanted)]
    compare_gradients(*named, situation)
    compare(attend(*map(view_of, inputs)), expected, f"{situation}, views")
    check_unchanged("attend", attend, *inputs)


def check_vectors_refused(module, kind, x):
    """Vectors of another length, with other axes, of ints or in a list. x is one feature longer."""
    width = x.shape[2] - 1
    fitting = x[..., :width]
    check(module(fitting) is not None, f"{kind} returned None.")
    for features in (width + 1, width - 1, 1):
        check_refused("vectors of another length", module, x[..., :features])
    check_refused("one sequence without its first axis", module, fitting[0])
    check_refused("whole numbers", module, fitting.long())
    check_refused("a list", module, fitting.tolist())


def draw_for_dropout(rng, part, width, p):
    """A module that gives one vector everywhere, the levels that dropout makes of it, and its name.

    part: CausalSelfAttention, MLP, or one of the two within a block: Block.attention, Block.mlp.
    """
    kind, _, inner = part.partition(".")
    block, prefix = silent_block(kind, width=width), f"{inner}." if inner else ""
    bias = torch.from_numpy(rng.uniform(0.4, 1, size=width))
    what = f"what the {inner} of a block gives"
    if kind == "CausalSelfAttention":
        # One place, one feature for each head, and values of 1: the weight is 1, or dropped.
        block = silent_block(kind, width=width, heads=width)
        values = torch.cat([torch.zeros(2 * width), torch.ones(width)]).double()
        changes = {"qkv.bias": values, "out.weight": torch.eye(width).double(), "out.bias": bias}
        twice = (bias + 1 / (1 - p)) / (1 - p)
        levels = [(0 * bias, p), (bias / (1 - p), p * (1 - p)), (twice, (1 - p) ** 2)]
        return block.changed(changes), levels, "the weights of attention and what comes out of it"
    if inner == "attention":
        changes, constant = {"attention.out.bias": bias}, bias
    else:  # a single hidden feature of the MLP for each number
        weight = torch.zeros(width, 4 * width, dtype=torch.float64)
        weight[range(width), range(3 * width, 4 * width)] = 1
        ones = torch.ones(4 * width, dtype=torch.float64)
        parameters = {"up.bias": ones, "down.weight": weight, "down.bias": bias}
        changes = {prefix + name: value for name, value in parameters.items()}
        constant = bias + GELU_OF_1
    levels = [(0 * constant, p), (constant / (1 - p), 1 - p)]
    return block.changed(changes), levels, what if inner else "what the MLP gives"
