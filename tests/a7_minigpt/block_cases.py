"""How the tests of exercise 7.3 check attention, MLP and block, and where their dropout acts."""

import math

import torch
import torch.nn.functional as F

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check, kind_of, unpack
from common.testing.dropout import check_levels, check_tensor
from common.testing.remote.torch_modules import compare_gradients, load_parameters, vjp
from tests.a7_minigpt.cases import (
    VECTOR_AXES,
    compare,
    draw_block,
    draw_vectors,
    expected_output,
    first_of,
    new_module,
    shapes_of,
    silent_block,
    view_of,
)

GELU_OF_1 = 0.5 * (1 + math.erf(math.sqrt(0.5)))


def check_names(student, kind, settings):
    """The module has the parameters of the docstring, and no others."""
    module, shapes = new_module(student, kind, **settings), shapes_of(kind, settings)
    load_parameters(module, {name: torch.zeros(shape) for name, shape in shapes.items()})


def check_project(student, rng, n, t, *, dtype=torch.float64, **settings):
    """Queries, keys and values by head: side by side again, they are what the dense layer gives."""
    block = draw_block(rng, "CausalSelfAttention", dtype, **settings)
    module, x = block.on(student), draw_vectors(rng, n, t, settings["width"], dtype=dtype)
    heads, width = block.settings["heads"], block.settings["width"]
    weight, bias = block.parameters["qkv.weight"], block.parameters["qkv.bias"]
    wanted = F.linear(x.double(), weight.double(), bias.double()).to(dtype).split(width, dim=2)
    for given, situation in ((x, ""), (view_of(x), ", a view")):
        found = unpack(module.project(given), 3, "project")
        for name, actual, right in zip(("queries", "keys", "values"), found, wanted, strict=True):
            what = f"the {name} ({n}, {t}{situation})"
            check_heads(actual, (n, heads, t, width // heads), what)
            assert_close(torch.cat(actual.unbind(1), dim=2), right, what, VECTOR_AXES)
    check_unchanged("project", module.project, x)


def check_heads(actual, shape, what):
    check(
        isinstance(actual, torch.Tensor) and actual.shape == shape,
        f"{what[0].upper()}{what[1:]} must be a tensor of (n, heads, t, width / heads).",
        f"It is {kind_of(actual)}; {shape} is right.",
    )


def check_attend(student, oracle, rng, n, *, queries, keys, dtype=torch.float64, **settings):
    """What so many queries find among the keys, and the gradients of all three."""
    block = draw_block(rng, "CausalSelfAttention", dtype, **settings)
    heads = block.settings["heads"]
    shapes = [(n, heads, t, block.settings["width"] // heads) for t in (queries, keys, keys)]
    inputs = [draw_vectors(rng, *shape, dtype=dtype) for shape in shapes]
    kind, situation = "CausalSelfAttention.attend", f"{queries} queries, {keys} keys"
    expected = oracle.output(kind, block.settings, block.parameters, inputs)
    upstream = draw_vectors(rng, *expected.shape, dtype=dtype)
    wanted, _ = oracle.gradients(kind, block.settings, block.parameters, inputs, upstream)
    module = block.on(student)
    outputs, gradients, _ = vjp(module.attend, inputs, [upstream])
    compare(first_of(outputs), expected, situation)
    names = ("q", "k", "v")
    compare_gradients(
        dict(zip(names, gradients, strict=True)), dict(zip(names, wanted, strict=True)), situation
    )
    views = [view_of(value) for value in inputs]
    compare(module.attend(*views), expected, f"{situation}, views")
    check_unchanged("attend", module.attend, *inputs)


def check_refuses(student, rng, kind):
    """Vectors of another length, with other axes, of ints or in a list."""
    block = draw_block(rng, kind)
    module, width = block.on(student), block.settings["width"]
    x = draw_vectors(rng, 2, 3, width + 1)
    fitting = x[..., :width]
    check(module(fitting) is not None, f"{kind} returned None.")
    for features in (width + 1, width - 1, 1):
        check_refused("vectors of another length", module, x[..., :features])
    check_refused("one sequence without its first axis", module, fitting[0])
    check_refused("whole numbers", module, fitting.long())
    check_refused("a list", module, fitting.tolist())


def check_dropout_of_attention(student, rng, width, p, *, n):
    """Dropout falls on the weights, and on what comes out.

    One place, one feature for each head, and values of 1: the weight is 1, or dropped.
    """
    block, one = silent_block("CausalSelfAttention", width=width, heads=width), torch.ones(width)
    bias = torch.from_numpy(rng.uniform(0.4, 1, size=width))
    values = torch.cat([torch.zeros(2 * width), one]).double()
    block = block.changed(qkv__bias=values, out__weight=torch.eye(width).double(), out__bias=bias)
    out = block.on(student, dropout=p)(draw_vectors(rng, n, 1, width))
    check_tensor(out, (n, 1, width))
    levels = [
        (0 * bias, p),
        (bias / (1 - p), p * (1 - p)),
        ((bias + 1 / (1 - p)) / (1 - p), (1 - p) ** 2),
    ]
    check_levels(out, levels, "the weights of attention and what comes out of it")


def loud_mlp(rng, width):
    """What makes an MLP give this vector everywhere, by a single hidden feature for each number."""
    weight = torch.zeros(width, 4 * width, dtype=torch.float64)
    weight[range(width), range(3 * width, 4 * width)] = 1
    bias = torch.from_numpy(rng.uniform(0.4, 1, size=width))
    ones = torch.ones(4 * width, dtype=torch.float64)
    changes = {"up__bias": ones, "down__weight": weight, "down__bias": bias}
    return changes, bias + GELU_OF_1


def check_dropout_of_mlp(student, rng, width, p, *, shape):
    """Dropout falls on the result, and on nothing before it."""
    changes, constant = loud_mlp(rng, width)
    block = silent_block("MLP", width=width).changed(**changes)
    out = block.on(student, dropout=p)(draw_vectors(rng, *shape, width))
    check_tensor(out, (*shape, width))
    check_levels(out, [(0 * constant, p), (constant / (1 - p), 1 - p)], "what the MLP gives")


def check_dropout_of_block(student, rng, part, width, *, p, shape):
    """A block hands its dropout on to its parts, and what runs past them is never dropped."""
    block = silent_block("Block", width=width)
    if part == "mlp":
        changes, constant = loud_mlp(rng, width)
        block = block.changed(**{f"mlp__{name}": value for name, value in changes.items()})
    else:
        constant = torch.from_numpy(rng.uniform(0.4, 1, size=width))
        block = block.changed(attention__out__bias=constant)
    x = draw_vectors(rng, *shape, width)
    out = block.on(student, dropout=p)(x)
    check_tensor(out, x.shape)
    levels = [(0 * constant, p), (constant / (1 - p), 1 - p)]
    check_levels(out - x, levels, f"what the {part} of a block gives")


def check_large(student, oracle, rng, kind, *, scale):
    """Large numbers don't overflow: softmax and GELU stay finite."""
    block = draw_block(rng, kind)
    x = scale * draw_vectors(rng, 2, 4, block.settings["width"])
    compare(block.on(student)(x), expected_output(oracle, block, (x,)), f"x near {scale:g}")
