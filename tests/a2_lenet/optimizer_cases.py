"""How the tests of exercise 2.4 check the steps of an optimizer."""

import numpy as np

from common.testing.checks import check_refused
from common.testing.compare import unpack
from common.testing.remote.operations import call_each
from tests.a2_lenet.cases import (
    check_named,
    check_names,
    plain_copy,
)

SHAPES = {"conv.w": (2, 1, 3, 2), "dense.w": (4, 3), "dense.b": (5,)}
OPTIMIZERS = ("sgd_momentum", "adam")


def draw_arrays(rng, shapes, dtype="float64"):
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def draw_steps(rng, shapes, count, dtype="float64"):
    """The gradients of several steps, some of them much smaller than others."""
    steps = [draw_arrays(rng, shapes, dtype) for _ in range(count)]
    for gradients in steps:
        for array in gradients.values():
            array.flat[0] *= 1e-3
    return steps


def check_steps(
    student, oracle, rng, name, *, rates, asked, settings, shapes=SHAPES, dtype="float64"
):
    """Several steps of an optimizer give PyTorch's parameters, after each of them.

    asked: the settings that are handed in; settings: all of them, in the oracle's order.
    """
    parameters = draw_arrays(rng, shapes, dtype)
    steps = draw_steps(rng, shapes, len(rates), dtype)
    ask = {"sgd_momentum": "sgd_steps", "adam": "adam_steps"}[name]
    expected = {
        key: getattr(oracle, ask)(array, np.stack([step[key] for step in steps]), rates, *settings)
        for key, array in parameters.items()
    }
    state = None
    for number, (gradients, rate) in enumerate(zip(steps, rates, strict=True)):
        result = getattr(student, name)(parameters, gradients, state, rate, **asked)
        parameters, state = unpack(result, 2, name)
        wanted = {key: array[number] for key, array in expected.items()}
        # Finer than usual in float32: steps are small beside the parameters.
        tolerance = 2e-5 if dtype == "float32" else None
        check_named(parameters, wanted, f"parameters after step {number + 1}", tolerance)


def check_steps_have_no_side_effects(student, rng, name, shapes=SHAPES):
    """A step changes nothing that it was given, and what it returns is new.

    What a step returned is the student's own object when it is handed back in: so a step that
    writes into it is seen, because the next step from the same place ends elsewhere.
    """
    step = getattr(student, name)
    first, second = (draw_arrays(rng, shapes) for _ in range(2))
    parameters, state = unpack(step(first, second, None, 0.1), 2, name)
    gradients, _ = unpack(step(second, first, None, 0.2), 2, name)
    calls = [(parameters, gradients, state, 0.3), (parameters, first, state, 0.1)]
    results = call_each(step, [calls[0], calls[1], calls[0]])
    results = [unpack(result, 2, name) for result in results]
    check_names(results[0][0], shapes, "parameters")
    check_named(
        results[2][0], results[0][0], "parameters of a step that is repeated", tolerance=0.0
    )
    copied = plain_copy(state, "The state of an optimizer")
    by_value = dict(parameters), dict(gradients), copied, 0.3
    alone, alone_state = unpack(step(*by_value), 2, name)
    check_named(alone, results[0][0], "parameters of a step from a copied state", tolerance=0.0)
    # One step more, from the states of both: they must be the same too.
    after, _ = unpack(step(first, second, results[0][1], 0.2), 2, name)
    alone, _ = unpack(step(first, second, alone_state, 0.2), 2, name)
    check_named(alone, after, "parameters of the step after that", tolerance=0.0)


def check_steps_refuse(student, rng, name, shapes=SHAPES):
    """Gradients with other names or shapes are refused."""
    step = getattr(student, name)
    parameters, gradients = draw_arrays(rng, shapes), draw_arrays(rng, shapes)
    key = next(reversed(shapes))
    missing = {other: array for other, array in gradients.items() if other != key}
    for situation, given in (
        ("a gradient that is missing", missing),
        ("a gradient of no parameter", gradients | {"more.w": gradients[key]}),
        ("a gradient under another name", missing | {"other.b": gradients[key]}),
        ("a gradient of another shape", gradients | {key: gradients[key][:1]}),
    ):
        check_refused(situation, step, parameters, given, None, 0.1)
    unpack(step(parameters, gradients, None, 0.1), 2, name)
