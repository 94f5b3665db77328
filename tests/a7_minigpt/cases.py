"""What the tests of assignment 7 share: modules with parameters by name, and how one is checked."""

import math
from dataclasses import dataclass, field

import torch

from common.student_code.values import Handle
from common.testing.checks import check_unchanged, sliced, transposed
from common.testing.compare import assert_close, check, kind_of
from common.testing.remote.operations import call_each
from common.testing.remote.torch_modules import (
    compare_gradients,
    load_parameters,
    parameters_of,
    vjp,
)

VECTOR_AXES = ("sequence", "position", "feature")
LOGIT_AXES = ("sequence", "position", "id")
SMALL = {"vocab_size": 7, "context_length": 6, "num_layers": 2, "num_heads": 2, "d_model": 8}
SMALL_BLOCK = SMALL | {"context_length": 16}  # no test of a block has more positions


@dataclass(frozen=True)
class Block:
    """A module: its class, the sizes of its GPTConfig, and its parameters by name."""

    kind: str
    settings: dict
    parameters: dict = field(repr=False)

    @property
    def dtype(self):
        return next(iter(self.parameters.values())).dtype

    def on(self, code, dropout=0.0):
        """A module of student code, model.py, with these parameters."""
        module = new_module(code, self.kind, dropout=dropout, **self.settings)
        if self.dtype == torch.float64:
            module.double()
        load_parameters(module, self.parameters)
        return module

    def changed(self, others):
        """The same with other values for some parameters."""
        return Block(self.kind, self.settings, self.parameters | others)


def new_module(code, kind, **settings):
    """A new module of student code, model.py."""
    module = getattr(code, kind)(code.GPTConfig(**settings))
    return check_object(module, f"what {kind} gives", "a module")


def check_object(value, what, kind):
    """An object that stays with the student's code, not a number, a list or None."""
    check(
        isinstance(value, Handle),
        f"{what[0].upper()}{what[1:]} must be {kind}, but it is {kind_of(value)}.",
        help="Is the return statement missing?" if value is None else "",
    )
    return value


# The names and shapes that the docstrings give.


def inside(prefix, shapes):
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def linear(name, rows, columns):
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def shapes_of(kind, settings):
    """The parameters of a module by name, with their shapes."""
    d = settings["d_model"]
    if kind == "CausalSelfAttention":
        return linear("qkv", 3 * d, d) | linear("out", d, d)
    if kind == "MLP":
        return linear("up", 4 * d, d) | linear("down", d, 4 * d)
    norm = {"weight": (d,), "bias": (d,)}
    if kind == "Block":
        attention, mlp = shapes_of("CausalSelfAttention", settings), shapes_of("MLP", settings)
        shapes = inside("norm1", norm) | inside("attention", attention)
        return shapes | inside("norm2", norm) | inside("mlp", mlp)
    shapes = {
        "token_embedding.weight": (settings["vocab_size"], d),
        "position_embedding.weight": (settings["context_length"], d),
    }
    for index in range(settings["num_layers"]):
        shapes |= inside(f"blocks.{index}", shapes_of("Block", settings))
    return shapes | inside("norm", norm)


def count_parameters(settings):
    """The number of parameters of a GPT."""
    return sum(math.prod(shape) for shape in shapes_of("GPT", settings).values())


def draw_block(rng, kind, dtype=torch.float64, **settings):
    """Random weights, and biases and gains that are far from 0 and from 1."""
    settings, parameters = (SMALL if kind == "GPT" else SMALL_BLOCK) | settings, {}
    for name, shape in shapes_of(kind, settings).items():
        if len(shape) == 1:
            values = rng.uniform(0.4, 0.9, size=shape) * rng.choice([-1, 1], size=shape)
        else:
            values = rng.normal(scale=1.3 / math.sqrt(shape[1]), size=shape)
        if "qkv" in name:  # weights near 0 and 1 would have almost no gradient
            values[: 2 * shape[0] // 3] /= 2
        parameters[name] = torch.from_numpy(values).to(dtype)
    return Block(kind, settings, parameters)


def draw_model(rng, dtype=torch.float64, **settings):
    return draw_block(rng, "GPT", dtype, **settings)


def silent_block(kind, **settings):
    """Parameters of zero and gains of one: nothing is added to the residual stream."""
    settings, parameters = (SMALL if kind == "GPT" else SMALL_BLOCK) | settings, {}
    for name, shape in shapes_of(kind, settings).items():
        *_, owner, kind_of_values = f".{name}".split(".")
        gain = kind_of_values == "weight" and owner.startswith("norm")
        parameters[name] = (torch.ones if gain else torch.zeros)(shape, dtype=torch.float64)
    return Block(kind, settings, parameters)


def draw_vectors(rng, *shape, dtype=torch.float64):
    return torch.from_numpy(rng.normal(size=shape)).to(dtype)


def draw_tokens(rng, vocab_size, *shape):
    return torch.from_numpy(rng.integers(vocab_size, size=shape))


def draw_batch(rng, vocab_size, *shape):
    """Tokens and targets."""
    return tuple(draw_tokens(rng, vocab_size, *shape) for _ in range(2))


def view_of(values):
    """The same numbers, laid out in memory from the last axis to the first."""
    return torch.from_numpy(transposed(values.numpy()))


def spread_out(values):
    """The same numbers, with gaps between them in memory."""
    return torch.from_numpy(sliced(values.numpy()))


def first_of(result):
    """The first of several values, or the value itself."""
    return next(iter(result), None) if isinstance(result, tuple | list) else result


def check_ids(values, shape, vocab_size, what):
    """Ids of a vocabulary, as int64, in a tensor of that shape."""
    check(
        isinstance(values, torch.Tensor)
        and values.dtype == torch.int64
        and values.shape == shape
        and bool(((values >= 0) & (values < vocab_size)).all()),
        f"{what} must be a tensor of ids, int64, in the right shape.",
    )
    return values


def expected_output(oracle, block, *inputs, part=""):
    """What PyTorch's layers give. part: a method instead of the whole, such as ".logits"."""
    return oracle.output(block.kind + part, block.settings, block.parameters, inputs)


def compare(out, expected, situation):
    axes = VECTOR_AXES if expected.ndim == 3 else None
    assert_close(out, expected, f"out ({situation})", axes)


def draw_vjp(rng, oracle, block, *inputs, part=""):
    """The inputs, a gradient for the output, and what is right: the output, and all gradients."""
    expected = expected_output(oracle, block, *inputs, part=part)
    upstream = draw_vectors(rng, *expected.shape, dtype=block.dtype)
    gradients = oracle.gradients(
        block.kind + part, block.settings, block.parameters, inputs, upstream
    )
    return inputs, upstream, (expected, *gradients)


def check_gradients(module, drawn, situation):
    """The output, and the gradients of the input, if it is of floats, and of all parameters."""
    inputs, upstream, (expected, wanted, wanted_parameters) = drawn
    outputs, gradients, parameters = vjp(module, inputs, [upstream])
    compare(first_of(outputs), expected, situation)
    more = {} if wanted[0] is None else {"x": (gradients[0], wanted[0])}
    compare_gradients(parameters, wanted_parameters, situation, more=more)


def check_calls_stay_apart(module, oracle, block, inputs):
    """Inputs stay as they are, and a result survives further calls."""
    first, second = inputs
    cases = [(first,), (second,), (first,)]
    for (x,), out in zip(cases, call_each(module, cases), strict=True):
        out = first_of(out) if block.kind == "GPT" else out
        compare(out, expected_output(oracle, block, x), "several calls in a row")
    check_unchanged(block.kind, module, first)


def check_evaluation(module, kind, x, expected):
    """In evaluation mode, dropout does nothing; in training mode it does something."""

    def run():
        out = module(x)
        return first_of(out) if kind == "GPT" else out

    module.eval()
    compare(run(), expected, "evaluation mode")
    module.train()
    out = run()
    same = isinstance(out, torch.Tensor) and out.shape == expected.shape
    check(
        same and float((out - expected).abs().max()) > 1e-6,
        f"In training mode, dropout must change what {kind} gives.",
    )
    module.eval()
    compare(run(), expected, "evaluation mode, after training mode")


def other_weights(module, parameters):
    """The names of the parameters that are not bit for bit these."""
    found = parameters_of(module)
    return [str(name) for name, value in parameters.items() if not torch.equal(found[name], value)]


def named_weights(found, settings):
    """The weights of a GPT under the names that its parameters must have."""
    names = shapes_of("GPT", settings)
    missing = [name for name in names if name not in found]
    check(not missing, f"The model has no parameter {', '.join(missing[:1])}.")
    return {name: found[name] for name in names}


def check_same_weights(module, parameters, what):
    """The module still has the weights that it was given."""
    for name in other_weights(module, parameters):
        check(False, f"{what} must not change the weights, but {name} differs afterwards.")
