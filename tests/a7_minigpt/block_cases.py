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
    """Queries, keys and values by head, which side by side are the layer's output."""
    (n, t, d_model), num_heads = x.shape, block.settings["num_heads"]
    weight, bias = (block.parameters[f"qkv.{name}"].double() for name in ("weight", "bias"))
    wanted = F.linear(x.double(), weight, bias).to(x.dtype).split(d_model, dim=2)
    shape = n, num_heads, t, d_model // num_heads
    for given, situation in ((x, ""), (view_of(x), ", a view")):
        found = unpack(project(given), 3, "project")
        for name, actual, right in zip(("queries", "keys", "values"), found, wanted, strict=True):
            what = f"the {name} ({n}, {t}{situation})"
            check(
                isinstance(actual, torch.Tensor) and actual.shape == shape,
                f"{what[0].upper()}{what[1:]} must be a tensor of shape (n, num_heads, t, d_head).",
                f"expected shape {shape}, got {kind_of(actual)}",
            )
            assert_close(torch.cat(actual.unbind(1), dim=2), right, what, VECTOR_AXES)
    check_unchanged("project", project, x)


def check_attend(attend, drawn, situation):
    """The output of attention, and the gradients of queries, keys and values."""
    inputs, upstream, (expected, wanted, _) = drawn
    outputs, gradients, _ = vjp(attend, inputs, [upstream])
    compare(first_of(outputs), expected, situation)
    named = [dict(zip("qkv", values, strict=True)) for values in (gradients, wanted)]
    compare_gradients(*named, situation)
    compare(attend(*map(view_of, inputs)), expected, f"{situation}, views")
    check_unchanged("attend", attend, *inputs)


def check_vectors_refused(module, kind, x):
    """Vectors of another size, with other axes, of ints or in a list. x has one feature more."""
    d_model = x.shape[2] - 1
    fitting = x[..., :d_model]
    check(module(fitting) is not None, f"{kind} returned None.")
    for features in (d_model + 1, d_model - 1, 1):
        check_refused("vectors of another size", module, x[..., :features])
    check_refused("one sequence without its first axis", module, fitting[0])
    check_refused("integers", module, fitting.long())
    check_refused("a list", module, fitting.tolist())


def draw_for_dropout(rng, part, d_model, p):
    """A module with the same output at every position, its values after dropout, and its name.

    part: CausalSelfAttention, MLP, or one of the two within a block: Block.attention, Block.mlp.
    """
    kind, _, inner = part.partition(".")
    block, prefix = silent_block(kind, d_model=d_model), f"{inner}." if inner else ""
    bias = torch.from_numpy(rng.uniform(0.4, 1, size=d_model))
    what = f"the output of a block's {inner}"
    if kind == "CausalSelfAttention":
        # One position, one feature for each head, and values of 1: the weight is 1, or dropped.
        block = silent_block(kind, d_model=d_model, num_heads=d_model)
        values = torch.cat([torch.zeros(2 * d_model), torch.ones(d_model)]).double()
        changes = {"qkv.bias": values, "out.weight": torch.eye(d_model).double(), "out.bias": bias}
        twice = (bias + 1 / (1 - p)) / (1 - p)
        levels = [(0 * bias, p), (bias / (1 - p), p * (1 - p)), (twice, (1 - p) ** 2)]
        return block.changed(changes), levels, "the attention weights and the output of attention"
    if inner == "attention":
        changes, constant = {"attention.out.bias": bias}, bias
    else:  # a single hidden feature of the MLP for each number
        weight = torch.zeros(d_model, 4 * d_model, dtype=torch.float64)
        weight[range(d_model), range(3 * d_model, 4 * d_model)] = 1
        ones = torch.ones(4 * d_model, dtype=torch.float64)
        parameters = {"up.bias": ones, "down.weight": weight, "down.bias": bias}
        changes = {prefix + name: value for name, value in parameters.items()}
        constant = bias + GELU_OF_1
    levels = [(0 * constant, p), (constant / (1 - p), 1 - p)]
    return block.changed(changes), levels, what if inner else "the output of the MLP"
