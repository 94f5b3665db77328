"""How the tests of exercise 6.8 check what layers cost."""

import torch

from common.testing.checks import check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import calls_during
from common.testing.remote.torch_modules import vjp
from tests.a6_transformer.cases import draw_vectors

COUNTS = ("multiplications", "sequential_steps", "path_length")


def check_costs(costs, expected, what):
    """A dict with the three counts, as ints. expected: the three in their order."""
    check(
        isinstance(costs, dict) and set(costs) == set(COUNTS),
        f"{what} must return a dict of multiplications, sequential_steps and path_length.",
    )
    for name, wanted in zip(COUNTS, expected, strict=True):
        assert_equal(costs[name], wanted, what=f'{what}\'s "{name}"')


def check_complexity(student, kind, sizes, expected):
    costs = student.complexity(kind, *sizes)
    check_costs(costs, expected, f"complexity of a layer of kind {kind}")


def check_measure(student, kind, sizes, expected):
    """The right numbers, and layers that were really run for them."""
    costs = student.measure(kind, *sizes)
    check_costs(costs, expected, f"measure of a layer of kind {kind}")
    layers = expected[2] // expected[1]
    runs = calls_during(student.measure, "run_layer", kind, *sizes)
    check(
        runs >= layers,
        "measure must get its numbers from runs of run_layer, one for each layer of the stack.",
        f"It takes {layers} layers of kind {kind}, and run_layer ran {runs} times.",
    )


def draw_weights(rng, kind, d, k, *, dtype=torch.float64):
    """The weights of a small layer under their names."""
    shapes = {
        "recurrent": {"w_x": (d, d), "w_h": (d, d)},
        "convolution": {"w": (k, d, d)},
        "attention": {},
    }[kind]
    return {
        name: draw_vectors(rng, *shape, dtype=dtype) / (2 * d) ** 0.5
        for name, shape in shapes.items()
    }


def check_layer(student, oracle, rng, kind, *, n, d, counts, k=3, dilation=1, dtype=torch.float64):
    """What comes out is PyTorch's, gradients flow to x, and the two counts are the right ones."""
    x = draw_vectors(rng, d, n, dtype=dtype).T  # a view
    weights = draw_weights(rng, kind, d, k, dtype=dtype)
    arguments = (kind, x, tuple(weights.values()), dilation)
    settings, upstream = {"dilation": dilation}, draw_vectors(rng, n, d, dtype=dtype)
    expected = oracle.output(kind, settings, weights, (x,))
    outputs, gradients, _ = vjp(student.run_layer, arguments, [upstream, None, None])
    out, multiplications, steps = unpack(outputs, 3, "run_layer")
    axes, situation = ("place", "feature"), f"a layer of kind {kind}"
    assert_close(out, expected, what=f"out ({situation})", axes=axes)
    (wanted,), _ = oracle.gradients(kind, settings, weights, (x,), upstream)
    assert_close(gradients[1], wanted, what=f"the gradient of x ({situation})", axes=axes)
    assert_equal(multiplications, counts[0], what=f"the multiplications ({situation})")
    assert_equal(steps, counts[1], what=f"the steps ({situation})")
    check_unchanged("run_layer", student.run_layer, *arguments)


def check_layer_refuses(student, rng):
    """Other kinds and dilations below 1 raise ValueError; the call beside them doesn't."""
    x, weights = draw_vectors(rng, 4, 3), tuple(draw_weights(rng, "convolution", 3, 2).values())
    run = student.run_layer
    unpack(run("convolution", x, weights, 1), 3, "run_layer")
    check_refused("a kind that isn't known", run, "dense", x)
    check_refused("dilated, which isn't a layer but a stack", run, "dilated", x, weights)
    layers = {"convolution": weights, "recurrent": (weights[0][0],) * 2, "attention": ()}
    for kind, given in layers.items():
        unpack(run(kind, x, given, 2), 3, "run_layer")
        for dilation in (0, -1):
            check_refused(f"a dilation below 1 ({kind})", run, kind, x, given, dilation)
    check_refused("a list", run, "attention", x.tolist())


def check_costs_refuse(student, function):
    """Kinds and sizes that make no sense raise ValueError; the call beside them doesn't."""
    check(function("convolution", 1, 1, 2) is not None, "Nothing was returned.")
    for situation, arguments in (
        ("a kind that isn't known", ("dense", 4, 3)),
        ("no vectors", ("attention", 0, 3)),
        ("no features", ("recurrent", 4, 0)),
        ("a kernel of 1", ("convolution", 4, 3, 1)),
        ("a kernel of 1, where none is used", ("attention", 4, 3, 1)),
    ):
        check_refused(situation, function, *arguments)
