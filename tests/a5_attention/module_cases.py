"""How the tests of exercise 5.5 draw, compare and time multi-head attention."""

import math

import torch

from common.testing.checks import check_refused
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.timed_calls import carried, timed_vjps
from common.testing.remote.torch_modules import load_parameters, new_module, parameters_of
from common.testing.speed_ratio import Try, check_speed
from tests.a5_attention.cases import compare_outputs, draw_like

TIME_AXES = ("sequence", "time", "feature")
HEAD_AXES = ("sequence", "head", "time", "feature")
LAYERS = ("query", "key", "value", "out")
BAR = 2  # times PyTorch's time; the docstring says 1.5, the rest is for a busy machine
TRIES = 30  # one good try is enough; on a busy machine it may take a while
PATIENCE = 7  # seconds: slow code should fail before the time limit of a test
CALLS = 2  # timed together, so that a slow message between processes counts less


def draw_heads(rng, d_model, num_heads, bias=True, *, dtype=torch.float64):
    """Parameters by name, with biases that are far from 0; and the number of heads."""
    parameters = {}
    for name in LAYERS:
        weight = rng.normal(scale=1.3 / math.sqrt(d_model), size=(d_model, d_model))
        parameters[f"{name}.weight"] = torch.from_numpy(weight).to(dtype)
        if bias:
            values = rng.uniform(0.4, 1, size=d_model) * rng.choice([-1, 1], size=d_model)
            parameters[f"{name}.bias"] = torch.from_numpy(values).to(dtype)
    return parameters, num_heads


def one_plain_head(d_model):
    """One head whose layers are identity matrices, without biases: parameters, number of heads."""
    eye = torch.eye(d_model, dtype=torch.float64)
    return {f"{name}.weight": eye for name in LAYERS}, 1


def new_heads(code, parameters, num_heads):
    """The student's MultiHeadAttention with these parameters."""
    d_model, bias = len(parameters["out.weight"]), "out.bias" in parameters
    sizes = (d_model, num_heads) if bias else (d_model, num_heads, False)
    module = new_module(code, "MultiHeadAttention", *sizes)
    if parameters["out.weight"].dtype == torch.float64:
        module.double()
    load_parameters(module, parameters, what=named(bias))
    return module


def named(bias):
    """The name of the module in failures."""
    return "MultiHeadAttention" if bias else "MultiHeadAttention (bias=False)"


def draw_inputs(rng, sizes, d_model, dtype=torch.float64):
    """A batch of queries, one of keys and one of values. sizes: n, t_q and t_k."""
    n, t_q, t_k = sizes
    return [torch.from_numpy(rng.normal(size=(n, t, d_model))).to(dtype) for t in (t_q, t_k, t_k)]


def cut(merged, num_heads):
    """The features of each head, (n, num_heads, t, d_head), sliced one by one."""
    return torch.stack(merged.chunk(num_heads, dim=-1), dim=1)


def paste(split):
    """The same features concatenated, (n, t, d_model)."""
    return torch.cat(split.unbind(dim=1), dim=-1)


def compare_heads(result, oracle, heads, inputs, *, situation):
    """out and the weights of every head are PyTorch's; where a mask is False, weights are 0."""
    outputs = unpack(result, 2, "MultiHeadAttention")
    mask = inputs[3] if len(inputs) == 4 else torch.tensor(True)
    mask = mask[:, None] if mask.ndim == 3 else mask  # the same for every head
    compare_outputs(outputs, oracle.multi_head_attention(*heads, *inputs), situation, mask)


def draw_heads_upstream(rng, oracle, heads, inputs):
    """Random gradients of out and weights, and PyTorch's outputs and gradients for them."""
    outputs = oracle.multi_head_attention(*heads, *inputs)
    upstream = [draw_like(rng, output) for output in outputs]
    gradients = oracle.multi_head_attention_gradients(*heads, inputs[:3], upstream, *inputs[3:])
    return upstream, (outputs, *gradients)


def compare_heads_passes(found, expected, situation):
    """Outputs and gradients are right. found: from vjp; expected: from draw_heads_upstream."""
    compare_outputs(unpack(found[0], 2, "MultiHeadAttention"), expected[0], situation)
    for name, actual, right in zip(LAYERS[:3], found[1][:3], expected[1], strict=True):
        assert_close(actual, right, what=f"the gradient of {name} ({situation})", axes=TIME_AXES)
    for name, right in expected[2].items():
        # The keys' bias shifts all scores of a query equally: its gradient is only rounding.
        right = torch.zeros_like(right) if name == "key.bias" else right
        assert_close(found[2][name], right, what=f"the gradient of {name} ({situation})")


def check_initial_parameters(module, d_model, bias):
    """Names and shapes are the docstring's, initial values nn.Linear's; there are no others."""
    initial = parameters_of(module)
    shapes = {"weight": (d_model, d_model)} | ({"bias": (d_model,)} if bias else {})
    zeros = {f"{name}.{kind}": torch.zeros(shapes[kind]) for name in LAYERS for kind in shapes}
    load_parameters(module, zeros, what=named(bias))
    try:
        module.load_state_dict(zeros)
    except RuntimeError as error:
        names = "The names in the state_dict of MultiHeadAttention aren't those of the docstring."
        check(False, names, str(error))
    bound = 1 / math.sqrt(d_model)  # nn.Linear draws uniformly from -bound to bound
    for name in zeros:
        values = initial[name]
        check(
            bool((values.abs() <= bound * (1 + 1e-6)).all()) and bool((values != 0).any()),
            f"The initial values of {name} are not those of nn.Linear.",
        )
        if name.endswith("weight"):
            ratio = float(values.std()) / (bound / math.sqrt(3))
            # 15 percent are 10 standard errors or more, for a d_model of 32 or more.
            check(
                abs(ratio - 1) < 0.15,
                f"The initial values of {name} have a different spread than those of nn.Linear.",
                f"Their standard deviation is {ratio:.2f} times as large.",
            )


def check_heads_refuse(module, query, key, value):
    """Bad inputs and masks raise ValueError; the given inputs, whose sizes differ, don't."""
    inputs = query, key, value
    n, t_q, t_k = len(query), query.shape[1], key.shape[1]
    fitting = torch.ones(t_q, t_k, dtype=torch.bool)
    unpack(module(*inputs, fitting), 2, "MultiHeadAttention")
    for situation, args in (
        ("a query with the wrong number of features", (query[..., :-1], key, value)),
        ("a different number of values than keys", (query, key, value[:, :-1])),
        ("a different number of sequences in query than in key", (query[:-1], key, value)),
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
    """Forward and backward together are fast enough, and the timed results are right.

    Each pass gets new inputs, and they cross between two processes while the clock runs, as the
    results do. The baseline's are copied just as often.
    """
    heads = draw_heads(rng, 128, 4, dtype=torch.float32)
    module = new_heads(student.attention, *heads)
    pytorchs = oracle.multi_head_attention_passes(*heads)

    def prepare():
        passes = [draw_pass(rng) for _ in range(CALLS)]

        def baseline():
            return carried(student, pytorchs(carried(student, passes)))

        def verify(results, _):
            for (inputs, upstream), result in zip(passes, results, strict=True):
                compare_timed_pass(result, oracle, heads, inputs=inputs, upstream=upstream)

        return Try(lambda: timed_vjps(module, passes), baseline, verify)

    check_speed(
        prepare,
        bar=BAR,
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"MultiHeadAttention takes more than {BAR} times as long as PyTorch's.",
        help="Compute all sequences and heads in one matrix product, without a loop.",
    )


def draw_pass(rng):
    """Query, key and value, and gradients of the output and of the weights."""
    shapes = ((64, 24, 128), (64, 4, 24, 24))
    upstream = [torch.from_numpy(rng.normal(size=shape)).float() for shape in shapes]
    return draw_inputs(rng, (64, 24, 24), 128, torch.float32), upstream


def compare_timed_pass(result, oracle, heads, *, inputs, upstream):
    """All outputs and gradients of a timed pass, but the rounding that is the keys' bias's."""
    outputs = oracle.multi_head_attention(*heads, *inputs)
    of_inputs, named = oracle.multi_head_attention_gradients(*heads, inputs, upstream)
    named = {name: right for name, right in named.items() if name != "key.bias"}
    compare_heads_passes(result, (outputs, of_inputs, named), "while timed")
