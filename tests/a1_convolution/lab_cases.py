"""What the lab of assignment 1 asks of a hand-made kernel, and which digit is the most upright.

A kernel meets pictures in which all rows, or all columns, are alike: then only the sums of its
columns, or of its rows, count.
"""

import numpy as np

from common.data import load_mnist
from common.testing.compare import check

DIFFERENCE = np.array([[-1.0, 0.0, 1.0]])  # which the lab gives
SMALL = 1e-6


def check_flat(kernel, brightness):
    """On a flat area the answer is 0."""
    answer = brightness * kernel.sum()
    check(
        abs(answer) < SMALL,
        "q1_kernel doesn't answer with 0 on a flat area.",
        f"all pixels are {brightness:g}, and the answer is {answer:g}",
        value=kernel,
    )


def check_step(kernel, dark, bright):
    """Where dark turns to bright, the answer is positive, and nowhere negative."""
    columns = kernel.sum(axis=0)
    answers = [
        columns @ np.where(np.arange(3) < place, dark, bright)  # dark on the left
        for place in (1, 2)
    ]
    check(
        min(answers) > -SMALL and max(answers) > SMALL,
        "q1_kernel isn't positive where it gets brighter from left to right.",
        f"from {dark:g} to {bright:g}, the answers are {answers[1]:g} and {answers[0]:g}",
        value=kernel,
    )


def check_rows(kernel, brightness):
    """Where rows differ and columns don't, the answer is 0."""
    check(
        abs(kernel.sum(axis=1) @ brightness) < SMALL,
        "q1_kernel doesn't answer with 0 where brightness changes from top to bottom only.",
        value=kernel,
    )


def most_upright_digit(oracle):
    """The one of the lab's ten digits with the largest ratio of upright to level edges."""
    digits = load_mnist().test_images[:10].astype(float)
    upright, level = (
        np.abs(oracle.conv2d(digits, kernel[None, None], np.zeros(1))).mean(axis=(1, 2, 3))
        for kernel in (DIFFERENCE, DIFFERENCE.T)
    )
    return int(np.argmax(upright / level))
