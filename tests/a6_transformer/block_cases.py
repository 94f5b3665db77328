"""How the tests of exercises 6.2 to 6.4 check the parts of a Transformer."""

import torch

from common.student_code.values import Handle
from common.testing.checks import check_refused
from common.testing.compare import assert_close, check
from common.testing.remote.torch_modules import (
    check_same_weights,
    load_parameters,
    parameters_of,
    vjp,
)
from tests.a6_transformer.cases import (
    check_gradients,
    compare,
    draw_block,
    draw_vectors,
    expected_output,
)

# Exercise 6.2


def check_alike(student, oracle, rng, d_model, *, shape):
    """Vectors whose features are all the same: only the bias is left, and gradients stay finite."""
    block = draw_block(rng, "LayerNorm", d_model=d_model)
    # Whole numbers: the mean of equal ones is exact.
    x = torch.from_numpy(rng.integers(-9, 9, size=(*shape, 1))).double().expand(*shape, d_model)
    out = block.on(student)(x)
    bias = block.parameters["bias"].expand(*shape, d_model)
    assert_close(out, bias, what="out (all features of a vector are the same)")
    if d_model > 1:  # a vector of one feature moves nothing: its gradient is nothing but rounding
        check_gradients(
            student,
            oracle,
            rng,
            block,
            inputs=(x,),
            situation="all features of a vector are the same",
        )


def check_norm_refuses(student, rng, d_model):
    """Vectors of another length raise ValueError, also of a length that would broadcast."""
    module = draw_block(rng, "LayerNorm", d_model=d_model).on(student)
    check(module(torch.ones(2, 3, d_model).double()) is not None, "LayerNorm returned None.")
    for features in (d_model - 1, d_model + 1, 1):
        x = torch.ones(2, d_model, features, dtype=torch.float64)
        check_refused("vectors of another length", module, x)
    check_refused("a list", module, [[0.0] * d_model])


def check_feed_forward_refuses(student, rng, kind, d_model, *, d_ff):
    """Vectors of another length, with other axes or in a list, and sizes below 1."""
    module = draw_block(rng, kind, d_model=d_model, d_ff=d_ff).on(student)
    x = torch.ones(2, 3, d_model + 1, dtype=torch.float64)
    fitting = x[..., :d_model]
    check(module(fitting) is not None, f"{kind} returned None.")
    for features in (d_model + 1, d_model - 1):
        check_refused("vectors of another length", module, x[..., :features])
    check_refused("one sequence without its first axis", module, fitting[0])
    check_refused("a list", module, fitting.tolist())
    for sizes in ((0, d_ff), (d_model, -1)):
        check_refused("a size below 1", getattr(student, kind), *sizes)


def check_from_linear(student, oracle, rng, d_model, *, d_ff, dtype=torch.float64):
    """The new module computes the same, has its own copies of the weights, and no dropout."""
    block = draw_block(rng, "FeedForward", dtype, d_model=d_model, d_ff=d_ff)
    # In training mode and with dropout, which is to be left out.
    linear = block.on(student, dropout=0.5)
    conv = student.from_linear(linear)
    check(isinstance(conv, Handle), "from_linear must return a FeedForwardConv.")
    x = draw_vectors(rng, 2, 3, d_model, dtype=dtype)
    expected = expected_output(oracle, block, (x,))
    compare(conv(x), expected, "from_linear")
    names = {"linear1": "conv1", "linear2": "conv2"}
    copied = {}
    for name, values in block.parameters.items():
        layer, kind = name.split(".")
        copied[f"{names[layer]}.{kind}"] = values[..., None] if kind == "weight" else values
    found = parameters_of(conv)
    for name, values in copied.items():
        check(name in found, f"from_linear's module has no parameter called {name}.")
        assert_close(found[name], values, what=f"{name} of from_linear's module")
    _, _, gradients = vjp(conv, (x,), [x])  # any gradient will do: they are only asked to be there
    check(set(gradients) == set(copied), "The parameters of from_linear's module must learn.")
    zeros = {name: torch.zeros_like(values) for name, values in block.parameters.items()}
    load_parameters(linear, zeros)
    compare(conv(x), expected, "from_linear, and then other weights in feed_forward")
    load_parameters(linear, block.parameters)
    load_parameters(conv, {name: torch.zeros_like(values) for name, values in copied.items()})
    linear.eval()
    compare(linear(x), expected, "feed_forward, after the weights of from_linear's module changed")
    student.from_linear(linear)
    check_same_weights(linear, block.parameters, "from_linear")


# Exercises 6.3 and 6.4


def check_layer_refuses(student, rng, kind):
    """Masks, vectors, heads and norms that don't fit raise ValueError; those that fit don't."""
    block = draw_block(rng, kind, d_model=6, num_heads=2, d_ff=5)
    module, x, memory = block.on(student), draw_vectors(rng, 2, 4, 6), draw_vectors(rng, 2, 3, 6)
    crossing = kind == "DecoderLayer"
    whole = (x, memory) if crossing else (x,)
    mask, memory_mask = (torch.ones(4, keys, dtype=torch.bool) for keys in (4, 3))
    masks = (mask, memory_mask) if crossing else (mask,)
    check(module(*whole, *masks) is not None, f"{kind} returned None.")
    for situation, arguments in (
        ("a mask of floats", (*whole, mask.double())),
        ("a mask for other keys", (*whole, mask[:, :3])),
        ("a mask of four axes", (*whole, mask[None, None])),
        ("vectors of another length", (x[..., :5], *whole[1:])),
        ("a list", (x.tolist(), *whole[1:])),
    ):
        check_refused(situation, module, *arguments)
    if crossing:
        check_refused("a mask for other memory", module, *whole, mask, memory_mask[:, :2])
        check_refused("memory for another number of sequences", module, x, memory[:1])
        check_refused("memory of another length", module, x, memory[..., :5])
    new = getattr(student, kind)
    check_refused("heads that don't divide d_model", new, 6, 4, 5)
    check_refused("a norm that isn't known", new, 6, 2, 5, 0.0, "none")
    check_refused("a size below 1", new, 6, 2, 0)
    stack = getattr(student, kind.removesuffix("Layer"))
    for layers in (0, -1):
        check_refused("a stack without layers", stack, 6, 2, 5, layers)


def check_evaluation(student, oracle, rng, kind, *, settings, inputs):
    """In evaluation mode, dropout does nothing."""
    block = draw_block(rng, kind, **settings)
    module = block.on(student, dropout=0.5)
    module.eval()
    compare(module(*inputs), expected_output(oracle, block, inputs), "evaluation mode")


def check_norm_order(student, oracle, rng, kind, *, inputs, sizes):
    """Outputs and gradients are PyTorch's for both norms, and "pre" is what comes by itself."""
    for norm in ("post", "pre", None):
        settings = sizes if norm is None else sizes | {"norm": norm}
        block = draw_block(rng, kind, **settings)
        situation = "norm not given" if norm is None else f'norm="{norm}"'
        check_gradients(student, oracle, rng, block, inputs=inputs, situation=situation)
