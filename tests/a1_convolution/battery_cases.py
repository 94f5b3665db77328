"""With what the battery calls the functions of assignment 1, by exercise."""

import numpy as np

from common.testing.battery.battery_case import Case
from tests.a1_convolution.cases import draw_convolution, draw_distinct

NUMBERS = "numbers in, a number out: nothing can be written into"
EXEMPT = dict.fromkeys(("conv_output_size", "conv_parameters", "linear_parameters"), NUMBERS)
SHAPES = (2, 2, 5, 4), (3, 2, 3, 2)


def draw_images(student, rng):
    """x, w and b."""
    return draw_convolution(rng, *SHAPES)


def convolution_cases(forward, backward):
    """The cases of a forward pass, without and with padding, and of its backward pass."""

    def draw_pass(student, rng):
        _, cache = getattr(student, forward)(*draw_images(student, rng))
        return rng.normal(size=(2, 3, 3, 3)), cache

    forwards = [
        Case(forward, "x w b", draw_images, settings={"padding": padding}, returns=1)
        for padding in (0, 1)
    ]
    return forwards, [Case(backward, "dout cache", draw_pass)]


def pooling_cases(forward, backward):
    """The cases of a pooling, and of its backward pass."""

    def draw_pass(student, rng):
        _, cache = getattr(student, forward)(draw_distinct(rng, (2, 2, 5, 6)), 3, 1, 1)
        return rng.normal(size=(2, 2, 5, 6)), cache

    def draw(student, rng):
        return draw_distinct(rng, (2, 2, 5, 6)), 2

    forwards = [
        Case(forward, "x kernel_size", draw, settings={"stride": 1, "padding": p}, returns=1)
        for p in (0, 1)
    ]
    return [*forwards, Case(backward, "dout cache", draw_pass)]


FORWARD, BACKWARD = convolution_cases("conv2d_forward", "conv2d_backward")
FAST_FORWARD, FAST_BACKWARD = convolution_cases("conv2d_forward_fast", "conv2d_backward_fast")
CASES = {
    "1.2": FORWARD,
    "1.3": BACKWARD,
    "1.4": pooling_cases("max_pool2d_forward", "max_pool2d_backward"),
    "1.5": pooling_cases("avg_pool2d_forward", "avg_pool2d_backward"),
    "1.6": [
        *(
            Case(
                "im2col",
                "x kernel_size",
                lambda student, rng: (rng.normal(size=SHAPES[0]), (3, 2)),
                settings={"padding": padding},
            )
            for padding in (0, 1)
        ),
        Case(
            "im2col",
            "x kernel_size",
            lambda student, rng: (rng.normal(size=SHAPES[0]), 1),
        ),
        Case(
            "col2im",
            "cols x_shape kernel_size",
            lambda student, rng: (rng.normal(size=(2, 12, 9)), SHAPES[0], (3, 2)),
        ),
        Case(
            "col2im",
            "cols x_shape kernel_size",
            lambda student, rng: (rng.normal(size=(2, 2, 20)), SHAPES[0], np.int64(1)),
        ),
        *FAST_FORWARD,
        *FAST_BACKWARD,
    ],
}
