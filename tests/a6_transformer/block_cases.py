"""How the tests of exercises 6.1 to 6.4 check positions and the layers of a Transformer."""

import torch

from common.student_code.values import Handle
from common.testing.checks import check_normal, check_refused
from common.testing.compare import assert_close, check
from common.testing.remote.torch_modules import load_parameters, parameters_of, vjp
from tests.a6_transformer.cases import (
    check_is_module,
    compare,
    draw_block,
    draw_vectors,
    loaded,
)

POSITION_AXES = ("position", "feature")
NORMS = {'norm="post"': {"norm": "post"}, 'norm="pre"': {"norm": "pre"}, "norm not given": {}}

# Exercise 6.1


def compare_shifted(matrix, vectors, k, situation):
    """The matrix shifts the encodings of all these positions by k."""
    wanted = torch.zeros(vectors.shape[1], vectors.shape[1], dtype=torch.float64)
    check(matrix is not None, "shift_matrix returned None.", help="Is the return missing?")
    fits = isinstance(matrix, torch.Tensor) and matrix.shape == wanted.shape
    check(fits, "shift_matrix must return a matrix of (d_model, d_model).")
    check(matrix.dtype == wanted.dtype, "shift_matrix must return float64.")
    first, end = max(0, -k), len(vectors) - max(0, k)
    moved, expected = vectors[first:end] @ matrix.mT, vectors[first + k : end + k]
    assert_close(moved, expected, what=f"shift_matrix @ encoding ({situation})", axes=POSITION_AXES)


def check_first_positions(modules, shape):
    """The weight of a new module is drawn from the standard normal distribution, for each again."""
    drawn = []
    for module in modules:
        check_is_module(module, "LearnedPositions")
        values = parameters_of(module)
        load_parameters(module, {"weight": torch.zeros(shape)})
        check_normal(values["weight"], 1.0, "weight")
        drawn.append(values["weight"])
    check(not torch.equal(*drawn), "Two new modules must not have the same initial values.")


def check_positions(module, rng, weight, lengths):
    """It returns the first rows of weight, and only they get gradients; others are refused."""
    for length in lengths:
        upstream = draw_vectors(rng, length, weight.shape[1], dtype=weight.dtype)
        outputs, _, parameters = vjp(module, (length,), [upstream])
        assert_close(outputs[0], weight[:length], what="the vectors", axes=POSITION_AXES)
        check("weight" in parameters, "weight must be a trainable parameter.")
        gradient = torch.zeros_like(weight)
        gradient[:length] = upstream
        assert_close(parameters["weight"], gradient, "the gradient of weight", POSITION_AXES)
    for length in (0, -1, len(weight) + 1):
        check_refused("a length below 1 or above max_length", module, length)


# Exercise 6.2


def draw_equal(rng, *shape):
    """Vectors whose features are all the same. Integers: the mean of equal ones is exact."""
    return torch.from_numpy(rng.integers(-9, 9, size=(*shape[:-1], 1))).double().expand(*shape)


def check_norm_refuses(module, d_model):
    """Vectors of another size raise ValueError, also of a size that would broadcast."""
    check(module(torch.ones(2, 3, d_model).double()) is not None, "LayerNorm returned None.")
    for features in (d_model - 1, d_model + 1, 1):
        x = torch.ones(2, d_model, features, dtype=torch.float64)
        check_refused("vectors of another size", module, x)
    check_refused("a list", module, [[0.0] * d_model])


def check_feed_forward_refuses(new, block):
    """Vectors of another size, with other axes or in a list, and sizes below 1."""
    module, (d_model, d_ff) = loaded(new(**block.settings), block), block.settings.values()
    x = torch.ones(2, 3, d_model + 1, dtype=torch.float64)
    fitting = x[..., :d_model]
    check(module(fitting) is not None, f"{block.kind} returned None.")
    for features in (d_model + 1, d_model - 1):
        check_refused("vectors of another size", module, x[..., :features])
    check_refused("one sequence without a batch axis", module, fitting[0])
    check_refused("a list", module, fitting.tolist())
    for sizes in ((0, d_ff), (d_model, -1)):
        check_refused("a size below 1", new, *sizes)


def check_converted(conv, linear, block, *, x, expected):
    """The module that from_linear returns computes the same, with copies of the weights."""
    check(isinstance(conv, Handle), "from_linear must return a FeedForwardConv.")
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
    _, _, gradients = vjp(conv, (x,), [x])  # any gradient will do: only their presence is checked
    check(
        set(gradients) == set(copied), "The parameters of from_linear's module must be trainable."
    )
    zeros = {name: torch.zeros_like(values) for name, values in block.parameters.items()}
    load_parameters(linear, zeros)
    compare(conv(x), expected, "from_linear, after the weights of feed_forward changed")
    load_parameters(linear, block.parameters)
    load_parameters(conv, {name: torch.zeros_like(values) for name, values in copied.items()})
    linear.eval()
    compare(linear(x), expected, "feed_forward, after the weights of from_linear's module changed")


# Exercises 6.3 and 6.4


def check_layer_refuses(rng, kind, new_layer, new_stack):
    """Invalid masks, vectors, heads and norms raise ValueError; valid ones don't."""
    block = draw_block(rng, kind, d_model=6, num_heads=2, d_ff=5)
    module = loaded(new_layer(**block.settings), block)
    x, memory = draw_vectors(rng, 2, 4, 6), draw_vectors(rng, 2, 3, 6)
    has_memory = kind == "DecoderLayer"
    whole = (x, memory) if has_memory else (x,)
    mask, memory_mask = (torch.ones(4, keys, dtype=torch.bool) for keys in (4, 3))
    masks = (mask, memory_mask) if has_memory else (mask,)
    check(module(*whole, *masks) is not None, f"{kind} returned None.")
    for situation, arguments in (
        ("a float mask", (*whole, mask.double())),
        ("a mask with too few keys", (*whole, mask[:, :3])),
        ("a mask with four axes", (*whole, mask[None, None])),
        ("vectors of another size", (x[..., :5], *whole[1:])),
        ("a list", (x.tolist(), *whole[1:])),
    ):
        check_refused(situation, module, *arguments)
    if has_memory:
        check_refused("a memory_mask with too few keys", module, *whole, mask, memory_mask[:, :2])
        check_refused("memory of another batch size", module, x, memory[:1])
        check_refused("memory of another size", module, x, memory[..., :5])
    check_refused("heads that don't divide d_model", new_layer, 6, 4, 5)
    check_refused("an unknown norm", new_layer, 6, 2, 5, 0.0, "none")
    check_refused("a size below 1", new_layer, 6, 2, 0)
    for layers in (0, -1):
        check_refused("a stack without layers", new_stack, 6, 2, 5, layers)
