"""How the tests of exercise 5.5 check heads and a multi-head attention, and time it."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import call_each, fetch, hold, vjp_each_held
from common.testing.remote.torch_modules import load_parameters, new_module, parameters_of, vjp
from common.testing.speed_ratio import check_speed
from tests.a5_attention.cases import (
    check_exactly_zero,
    compare_outputs,
    draw_like,
)

TIME_AXES = ("sequence", "time", "feature")
LAYERS = ("query", "key", "value", "out")
BAR = 2  # of PyTorch's time; the docstring states 1.5, and a busy machine gets the rest
TRIES = 30  # one that is good is enough; on a busy machine it may take a while to come
PATIENCE = 7  # seconds: slow code should hear so before a test's time is up
CALLS = 2  # timed together, so that one slow message between two processes counts little


@dataclass(frozen=True)
class Heads:
    """A multi-head attention: its sizes, and its parameters by name."""

    d_model: int
    num_heads: int
    parameters: dict = field(repr=False)

    def on(self, student):
        """The student's module with these parameters."""
        biased = "out.bias" in self.parameters
        sizes = (self.d_model, self.num_heads) if biased else (self.d_model, self.num_heads, False)
        module = new_module(student.attention, "MultiHeadAttention", *sizes)
        if self.parameters["out.weight"].dtype == torch.float64:
            module.double()
        load_parameters(module, self.parameters, what=named(biased))
        return module


def named(bias):
    return "MultiHeadAttention" if bias else "MultiHeadAttention (bias=False)"


def draw_heads(rng, d_model, num_heads, bias=True, *, dtype=torch.float64):
    """Random weights, and biases that are far from 0."""
    parameters = {}
    for name in LAYERS:
        weight = rng.normal(scale=1.3 / math.sqrt(d_model), size=(d_model, d_model))
        parameters[f"{name}.weight"] = torch.from_numpy(weight).to(dtype)
        if bias:
            values = rng.uniform(0.4, 1, size=d_model) * rng.choice([-1, 1], size=d_model)
            parameters[f"{name}.bias"] = torch.from_numpy(values).to(dtype)
    return Heads(d_model, num_heads, parameters)


def parameter_shapes(d_model, bias=True):
    """The names and shapes that the docstring of MultiHeadAttention gives."""
    kinds = {"weight": (d_model, d_model)} | ({"bias": (d_model,)} if bias else {})
    return {f"{name}.{kind}": shape for name in LAYERS for kind, shape in kinds.items()}


def draw_inputs(rng, n, t_q, t_k, *, d_model, dtype=torch.float64):
    """A sequence of queries, one of keys and one of values."""
    return [torch.from_numpy(rng.normal(size=(n, t, d_model))).to(dtype) for t in (t_q, t_k, t_k)]


def cut(merged, num_heads):
    """The features of each head, (n, num_heads, t, d_head), cut out one by one."""
    d_head = merged.shape[-1] // num_heads
    parts = [merged[..., h * d_head : (h + 1) * d_head] for h in range(num_heads)]
    return torch.stack(parts, dim=1)


def paste(split):
    """The same features side by side, (n, t, d_model)."""
    return torch.cat([split[:, h] for h in range(split.shape[1])], dim=-1)


def check_split(student, rng, n, t, num_heads, d_head, view=np.asarray):
    """split_heads gives each head its features, and sends their gradients back to them."""
    split, axes = student.attention.split_heads, ("sequence", "head", "time", "feature")
    x = torch.from_numpy(view(rng.normal(size=(n, t, num_heads * d_head))))
    assert_close(split(x, num_heads), cut(x, num_heads), what="out of split_heads", axes=axes)
    upstream = draw_like(rng, (n, num_heads, t, d_head), x)
    _, gradients, _ = vjp(split, (x, num_heads), [upstream])
    assert_close(gradients[0], paste(upstream), what="the gradient of x", axes=TIME_AXES)
    check_unchanged("split_heads", split, x, num_heads)


def check_merged(student, rng, n, t, num_heads, d_head, view=np.asarray):
    """merge_heads lays features side by side, and sends their gradients back to their heads."""
    merge = student.attention.merge_heads
    x = torch.from_numpy(view(rng.normal(size=(n, num_heads, t, d_head))))
    assert_close(merge(x), paste(x), what="out of merge_heads", axes=TIME_AXES)
    upstream = draw_like(rng, (n, t, num_heads * d_head), x)
    _, gradients, _ = vjp(merge, (x,), [upstream])
    assert_close(gradients[0], cut(upstream, num_heads), what="the gradient of the heads")
    check_unchanged("merge_heads", merge, x)


def check_heads(student, oracle, heads, inputs, *, situation, mask=None):
    """Out and the weights of every head are those of nn.MultiheadAttention."""
    module = heads.on(student)
    expected = oracle.multi_head_attention(heads.parameters, heads.num_heads, *inputs, mask)
    arguments = inputs if mask is None else (*inputs, mask)
    results = unpack(module(*arguments), 2, "MultiHeadAttention")
    compare_outputs(results, expected, situation)
    heads_mask = torch.tensor(True) if mask is None else mask if mask.ndim == 2 else mask[:, None]
    check_exactly_zero(results[1], heads_mask)


def check_one_head(student, oracle, rng, n, *, t, d_model, mask=None):
    """One head whose layers change nothing gives the out of scaled_dot_product_attention.

    The layers are unit matrices, without biases.
    """
    eye = torch.eye(d_model, dtype=torch.float64)
    module = Heads(d_model, 1, {f"{name}.weight": eye for name in LAYERS}).on(student)
    x = draw_like(rng, (n, t, d_model), eye)
    arguments = (x, x, x) if mask is None else (x, x, x, mask)
    expected, _ = oracle.attention(*arguments)
    attention = student.attention.scaled_dot_product_attention
    for function, name in ((module, "one head"), (attention, "scaled_dot_product_attention")):
        out, _ = unpack(function(*arguments), 2, name)
        assert_close(out, expected, what=f"out (one head is attention, {name})", axes=TIME_AXES)


def check_heads_gradients(student, oracle, rng, heads, *, inputs, situation, mask=None):
    """The gradients of all inputs and parameters are those of nn.MultiheadAttention."""
    module, settings = heads.on(student), (heads.parameters, heads.num_heads)
    expected = oracle.multi_head_attention(*settings, *inputs, mask)
    upstream = [draw_like(rng, tensor.shape, tensor) for tensor in expected]
    wanted, wanted_parameters = oracle.multi_head_attention_gradients(
        *settings, inputs, upstream, mask
    )
    arguments = inputs if mask is None else (*inputs, mask)
    outputs, gradients, parameters = vjp(module, arguments, upstream)
    compare_outputs(unpack(outputs, 2, "MultiHeadAttention"), expected, situation)
    for name, actual, right in zip(("query", "key", "value"), gradients[:3], wanted, strict=True):
        assert_close(actual, right, what=f"the gradient of {name} ({situation})", axes=TIME_AXES)
    for name, right in wanted_parameters.items():
        # The keys' bias moves all scores of a query alike: its gradient is nothing but rounding.
        right = torch.zeros_like(right) if name == "key.bias" else right
        assert_close(parameters[name], right, what=f"the gradient of {name} ({situation})")


def check_first_parameters(student, d_model, num_heads, bias):
    """Names and shapes are the docstring's, first values nn.Linear's, and there is nothing else.

    nn.Linear draws evenly between -1 / sqrt(d_model) and 1 / sqrt(d_model). The standard deviation
    of d_model squared such numbers, d_model 32 or more, is off by 15 percent only at 10 standard
    errors or more.
    """
    module = new_module(student.attention, "MultiHeadAttention", d_model, num_heads, bias)
    first = parameters_of(module)
    zeros = {name: torch.zeros(shape) for name, shape in parameter_shapes(d_model, bias).items()}
    load_parameters(module, zeros, what=named(bias))
    try:
        module.load_state_dict(zeros)
    except RuntimeError as error:
        names = "The state_dict of MultiHeadAttention has other names than the docstring gives."
        check(False, names, str(error))
    bound = 1 / math.sqrt(d_model)
    for name, values in first.items():
        check(
            bool((values.abs() <= bound * (1 + 1e-6)).all()) and bool((values != 0).any()),
            f"The first values of {name} are not those that nn.Linear draws.",
        )
        if name.endswith("weight"):
            ratio = float(values.std()) / (bound / math.sqrt(3))
            check(
                abs(ratio - 1) < 0.15,
                f"The first values of {name} are not spread as those that nn.Linear draws.",
                f"Their standard deviation is {ratio:.2f} times as large.",
            )


def check_heads_stay_apart(student, oracle, heads, first, *, second, mask):
    """Inputs stay as they are, and a result survives further calls."""
    module, cases = heads.on(student), (first, second, first)
    results = call_each(module, [(*inputs, mask) for inputs in cases])
    for inputs, result in zip(cases, results, strict=True):
        expected = oracle.multi_head_attention(heads.parameters, heads.num_heads, *inputs, mask)
        result = unpack(result, 2, "MultiHeadAttention")
        compare_outputs(result, expected, "several calls in a row")
    check_unchanged("MultiHeadAttention", module, *first, mask)


def check_heads_refuse(student, heads, inputs):
    """Inputs and masks that don't fit raise ValueError; these inputs don't. Their sizes differ."""
    module = heads.on(student)
    query, key, value = inputs
    n, t_q, t_k = len(query), query.shape[1], key.shape[1]
    fitting = torch.ones(t_q, t_k, dtype=torch.bool)
    unpack(module(*inputs, fitting), 2, "MultiHeadAttention")
    for situation, args in (
        ("a query with another number of features", (query[..., :-1], key, value)),
        ("another number of values than keys", (query, key, value[:, :-1])),
        ("another number of sequences in query than in key", (query[:-1], key, value)),
        ("a query of two axes", (query[0], key, value)),
        ("no keys", (query, key[:, :0], value[:, :0])),
        ("a query that is a list", (query.tolist(), key, value)),
        ("a mask that is a list", (*inputs, fitting.tolist())),
        ("a mask of floats", (*inputs, fitting.to(query.dtype))),
        ("a mask with the axes swapped", (*inputs, fitting.T)),
        ("a mask of one axis", (*inputs, fitting[0])),
        ("a mask of four axes", (*inputs, fitting.expand(n, 1, t_q, t_k))),
    ):
        check_refused(situation, module, *args)


def check_heads_speed(student, oracle, rng):
    """Forward and backward together are fast enough, and what was timed was really computed.

    Each timed pass gets other inputs, so that an answer remembered from an earlier one is wrong.
    They run beside the student's code, since sending tensors takes as long as computing with them.
    """
    heads = draw_heads(rng, 128, 4, dtype=torch.float32)
    module, settings = heads.on(student), (heads.parameters, heads.num_heads)
    shapes = ((64, 24, 128), (64, 4, 24, 24))
    upstream = [torch.from_numpy(rng.normal(size=shape)).float() for shape in shapes]
    held = hold(student, upstream)

    def prepare():
        inputs = [
            draw_inputs(rng, 64, 24, 24, d_model=128, dtype=torch.float32) for _ in range(CALLS)
        ]
        calls = [(hold(student, given), held) for given in inputs]
        baseline = oracle.multi_head_attention_passes(*settings, inputs, upstream)
        return lambda: (inputs, vjp_each_held(module, calls)), baseline

    (inputs, results), _ = check_speed(
        prepare,
        bar=BAR,
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"MultiHeadAttention takes more than {BAR} times as long as PyTorch's own.",
        help="Do all sequences and heads in one matrix product, without a loop.",
    )
    for given, (outputs, gradients, _) in zip(inputs, fetch(results), strict=True):
        check_timed(oracle, settings, given, upstream, outputs=outputs, gradients=gradients)


def check_timed(oracle, settings, inputs, upstream, *, outputs, gradients):
    """Outputs and gradients of a timed pass are right for its first two sequences."""
    few, upstream = [x[:2] for x in inputs], [x[:2] for x in upstream]
    results = [x[:2] for x in unpack(outputs, 2, "MultiHeadAttention")]
    compare_outputs(results, oracle.multi_head_attention(*settings, *few), "while timed")
    expected, _ = oracle.multi_head_attention_gradients(*settings, few, upstream)
    for name, actual, wanted in zip(("query", "key", "value"), gradients, expected, strict=True):
        assert_close(actual[:2], wanted, what=f"the gradient of {name} (while timed)")
