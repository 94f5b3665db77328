"""How the tests of exercise 6.8 check the cost of layers."""

import numpy as np
import torch

from common.student_code.values import JudgeFunction
from common.testing.checks import check_refused
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import with_substitute
from tests.a6_transformer.cases import draw_vectors

COUNTS = ("multiplications", "sequential_steps", "path_length")


def compare_costs(costs, expected, function, kind):
    """A dict with the three counts, as ints. expected: the three in their order."""
    what = f"{function} of a layer of kind {kind}"
    check(
        isinstance(costs, dict) and set(costs) == set(COUNTS),
        f"{what} must return a dict of multiplications, sequential_steps and path_length.",
    )
    for name, wanted in zip(COUNTS, expected, strict=True):
        assert_equal(costs[name], wanted, what=f'{what}\'s "{name}"')


def check_measure(measure, rng, kind, sizes, *, expected):
    """measure gives the three counts, and has them from runs of run_layer, one for each layer.

    In a second call run_layer is another function: each output depends on a few inputs, and it says
    other counts. No formula knows them.
    """
    compare_costs(measure(kind, *sizes), expected, "measure", kind)
    n, (reach, multiplications, steps) = sizes[0], rng.integers((1, 10**6, 2), (4, 10**7, 9))
    band = np.tri(n) - np.tri(n, k=-1 - reach)
    given = [
        torch.from_numpy(band * rng.uniform(0.5, 1.5, (n, n))),
        int(multiplications),
        int(steps),
    ]
    layer = JudgeFunction(lambda: given)
    costs = with_substitute(measure, "run_layer", layer, kind, *sizes)
    layers = max(1, -(-(n - 1) // int(reach)))
    wanted = dict(zip(COUNTS, (*given[1:], layers * int(steps)), strict=True))
    check(
        layer.calls >= layers and isinstance(costs, dict) and costs == wanted,
        "measure must get its numbers from runs of run_layer, one for each layer of the stack.",
        f"With another run_layer, it took {layers} layers of kind {kind}; run_layer ran "
        f"{layer.calls} times, and measure returned {costs}.",
    )


WEIGHTS = {"recurrent": ("w_x", "w_h"), "convolution": ("w",), "attention": ()}


def draw_layer(rng, kind, n, d, *, k=3, dilation=1, dtype=torch.float64):
    """Arguments of run_layer for n vectors of d features, and a gradient of its output."""
    x = draw_vectors(rng, d, n, dtype=dtype).T  # a view
    shape = (k, d, d) if kind == "convolution" else (d, d)
    weights = [draw_vectors(rng, *shape, dtype=dtype) / (2 * d) ** 0.5 for _ in WEIGHTS[kind]]
    return (kind, x, tuple(weights), dilation), draw_vectors(rng, n, d, dtype=dtype)


def compare_layer(result, oracle, inputs, upstream, *, counts):
    """The output of run_layer is PyTorch's, with its gradient of x, and the counts are right."""
    kind, x, weights, dilation = inputs
    layer = kind, {"dilation": dilation}, dict(zip(WEIGHTS[kind], weights, strict=True)), (x,)
    outputs, gradients, _ = result
    out, multiplications, steps = unpack(outputs, 3, "run_layer")
    axes, situation = ("position", "feature"), f"a layer of kind {kind}"
    assert_close(out, oracle.output(*layer), what=f"out ({situation})", axes=axes)
    (gradient,), _ = oracle.gradients(*layer, upstream)
    assert_close(gradients[1], gradient, what=f"the gradient of x ({situation})", axes=axes)
    assert_equal(multiplications, counts[0], what=f"the multiplications ({situation})")
    assert_equal(steps, counts[1], what=f"the sequential steps ({situation})")


def check_run_layer_refuses(run_layer, rng):
    """Unknown kinds and dilations below 1 raise ValueError; a valid call doesn't."""
    x, w = draw_vectors(rng, 4, 3), draw_vectors(rng, 2, 3, 3) / 6**0.5
    unpack(run_layer("convolution", x, (w,), 1), 3, "run_layer")
    check_refused("an unknown kind", run_layer, "dense", x)
    check_refused("dilated, which is a stack and not a layer", run_layer, "dilated", x, (w,))
    for kind, weights in (("convolution", (w,)), ("recurrent", (w[0],) * 2), ("attention", ())):
        unpack(run_layer(kind, x, weights, 2), 3, "run_layer")
        for dilation in (0, -1):
            check_refused(f"a dilation below 1 ({kind})", run_layer, kind, x, weights, dilation)
    check_refused("a list", run_layer, "attention", x.tolist())


def check_costs_refuse(function):
    """Invalid kinds and sizes raise ValueError; a valid call doesn't."""
    check(function("convolution", 1, 1, 2) is not None, f"{function._label} returned None.")
    for situation, arguments in (
        ("an unknown kind", ("dense", 4, 3)),
        ("no vectors", ("attention", 0, 3)),
        ("no features", ("recurrent", 4, 0)),
        ("k = 1", ("convolution", 4, 3, 1)),
        ("k = 1, where k is not used", ("attention", 4, 3, 1)),
    ):
        check_refused(situation, function, *arguments)
