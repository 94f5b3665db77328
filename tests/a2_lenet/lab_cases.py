"""What the lab of assignment 2 asks: a confusion matrix, and the picture of a linear network.

The lab trains in float64, from first weights and in an order that are fixed, so that what is
measured there is the same for all: tolerances leave room for another machine's rounding.
"""

import numpy as np

from common.data import load_mnist
from common.labs.answer_checks import array_answer
from common.testing.compare import check

EACH = 100  # test images of each digit
LEARNED = 2000  # training images that the lab uses
SMALL = 1e-6


def check_confusion(lab, errors, spread):
    """Rows are labels, and about that many images are wrong."""
    counts = array_answer(lab, "q7_confusion", (10, 10))
    total = counts.sum()
    check(
        bool((counts >= 0).all()) and total == 10 * EACH,
        "q7_confusion doesn't count each test image once.",
        f"its sum is {total:g}",
        value=counts,
    )
    check(
        bool((counts.sum(axis=1) == EACH).all()),
        "A row of q7_confusion doesn't hold the images of one digit.",
        f"there are {EACH} of each, but the rows add up to {counts.sum(axis=1)}",
        value=counts,
    )
    wrong = total - np.trace(counts)
    check(
        abs(wrong - errors) <= spread,
        "q7_confusion has another number of mistakes than the LeNet makes.",
        f"{wrong:g} images lie off the diagonal",
        value=counts,
    )


def check_picture(lab):
    """The weights of digit 0 lie where their pixels were: as if no pixel had been moved."""
    picture = array_answer(lab, "q9_picture", (28, 28))
    right = linear_weights()[:, 0].reshape(28, 28)
    same = np.allclose(np.sort(picture, axis=None), np.sort(right, axis=None), atol=SMALL)
    check(same, "q9_picture doesn't hold the weights of digit 0.", value=picture)
    check(
        np.allclose(picture, right, atol=SMALL),
        "q9_picture has the right weights at wrong places.",
        f"{np.isclose(picture, right, atol=SMALL).sum()} of {right.size} are at their place",
        value=picture,
    )


def linear_weights(steps=50, rate=0.5):
    """What the lab's linear network learns from ordinary pixels, (784, 10)."""
    mnist = load_mnist()
    x = mnist.train_images[:LEARNED].reshape(LEARNED, -1).astype(float)
    right = np.eye(10)[mnist.train_labels[:LEARNED]]
    w, b = np.zeros((x.shape[1], 10)), np.zeros(10)
    for _ in range(steps):
        scores = np.exp(x @ w + b)
        error = (scores / scores.sum(axis=1, keepdims=True) - right) / LEARNED
        w, b = w - rate * x.T @ error, b - rate * error.sum(axis=0)
    return w
