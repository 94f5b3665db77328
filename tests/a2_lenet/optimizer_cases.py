"""Draws and checks the steps of an optimizer, for exercise 2.4."""

import numpy as np

from common.testing.compare import unpack
from tests.a2_lenet.cases import check_named, check_names, plain_copy

SHAPES = {"conv.w": (2, 1, 3, 2), "linear.w": (4, 3), "linear.b": (5,)}


def draw_arrays(rng, shapes, dtype="float64"):
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def draw_steps(rng, answer, rates, settings, *, shapes=SHAPES, dtype="float64"):
    """Parameters, and the gradients, the rate and the oracle's new parameters of each step."""
    parameters = draw_arrays(rng, shapes, dtype)
    gradients = [draw_arrays(rng, shapes, dtype) for _ in rates]
    for arrays in gradients:
        for array in arrays.values():
            array.flat[0] *= 1e-3  # much smaller than the others
    after = {
        name: answer(array, np.stack([arrays[name] for arrays in gradients]), rates, *settings)
        for name, array in parameters.items()
    }
    expected = [{name: array[step] for name, array in after.items()} for step in range(len(rates))]
    return parameters, list(zip(gradients, rates, expected, strict=True))


def compare_step(parameters, expected, count):
    """The parameters after `count` steps are the expected ones."""
    # Stricter than usual in float32: steps are small compared with the parameters.
    single = any(array.dtype == np.float32 for array in expected.values())
    check_named(parameters, expected, f"parameters after step {count}", 2e-5 if single else None)


def check_steps_can_be_repeated(step, name, rng, shapes=SHAPES):
    """A state can be copied: a step from it and a step from its copy are equal."""
    first, second = (draw_arrays(rng, shapes) for _ in range(2))
    parameters, state = unpack(step(first, second, None, 0.1), 2, name)
    gradients, _ = unpack(step(second, first, None, 0.2), 2, name)
    expected, expected_state = unpack(step(parameters, gradients, state, 0.3), 2, name)
    check_names(expected, shapes, "parameters")
    copied = plain_copy(state, "The state of an optimizer")
    alone, alone_state = unpack(step(dict(parameters), dict(gradients), copied, 0.3), 2, name)
    check_named(alone, expected, "parameters of a step from a copied state", tolerance=0.0)
    # One more step, from both states: its results must be equal too.
    after, _ = unpack(step(first, second, expected_state, 0.2), 2, name)
    alone, _ = unpack(step(first, second, alone_state, 0.2), 2, name)
    check_named(alone, after, "parameters of the step after that", tolerance=0.0)


def wrong_gradients(gradients):
    """Gradients with other names or shapes, and what is wrong with them."""
    name, last = list(gradients.items())[-1]
    missing = {other: array for other, array in gradients.items() if other != name}
    return (
        ("a gradient that is missing", missing),
        ("a gradient without a parameter", gradients | {"more.w": last}),
        ("a gradient under another name", missing | {"other.b": last}),
        ("a gradient of another shape", gradients | {name: last[:1]}),
    )
