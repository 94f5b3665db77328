"""Checks of the lab of assignment 1: a hand-made kernel, and the digit with the vertical edges.

The kernel is applied to pictures in which all rows, or all columns, are equal: then only the sums
of its columns, or of its rows, matter.
"""

import numpy as np

from common.data import load_mnist
from common.testing.compare import check

DIFFERENCE = np.array([[-1.0, 0.0, 1.0]])  # which the lab gives
SMALL = 1e-6


def check_flat(kernel, brightness):
    """On a flat area the response is 0."""
    response = brightness * kernel.sum()
    check(
        abs(response) < SMALL,
        "q1_kernel must respond with 0 on a flat area.",
        f"all pixels are {brightness:g}, and the response is {response:g}",
        value=kernel,
    )


def check_step(kernel, dark, bright):
    """Where dark turns to bright, the response is positive, and nowhere negative."""
    columns = kernel.sum(axis=0)
    responses = [
        columns @ np.where(np.arange(3) < column, dark, bright)  # dark on the left
        for column in (1, 2)
    ]
    check(
        min(responses) > -SMALL and max(responses) > SMALL,
        "q1_kernel must respond positively where it gets brighter from left to right.",
        f"from {dark:g} to {bright:g}, the responses are {responses[1]:g} and {responses[0]:g}",
        value=kernel,
    )


def check_rows(kernel, brightness):
    """Where rows differ and columns don't, the response is 0."""
    check(
        abs(kernel.sum(axis=1) @ brightness) < SMALL,
        "q1_kernel must respond with 0 where brightness changes only from top to bottom.",
        value=kernel,
    )


def most_vertical_digit(oracle):
    """The lab's digit with the largest ratio of vertical to horizontal edges."""
    digits = load_mnist().test_images[:10].astype(float)
    vertical, horizontal = (
        np.abs(oracle.conv2d(digits, kernel[None, None], np.zeros(1))).mean(axis=(1, 2, 3))
        for kernel in (DIFFERENCE, DIFFERENCE.T)
    )
    return int(np.argmax(vertical / horizontal))
