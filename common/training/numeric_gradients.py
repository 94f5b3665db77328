"""Numeric gradients by finite differences."""

from collections.abc import Callable

import numpy as np


def numeric_gradient(
    function: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    dout: np.ndarray,
    step: float = 1e-5,
) -> np.ndarray:
    """The gradient of sum(function(x) * dout) with respect to every entry of x.

    Central differences in float64: each entry is moved up and down by a small step, and the change
    of the sum is divided by twice the step. `dout` is what your backward pass gets: draw it at
    random, since a gradient of ones hides many mistakes.
    """
    x = np.array(x, dtype=np.float64)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        value = x[index]
        x[index] = value + step
        above = function(x.copy())
        x[index] = value - step
        below = function(x.copy())
        x[index] = value
        gradient[index] = np.sum((above - below) * dout) / (2 * step)
    return gradient
