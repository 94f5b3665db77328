"""Stand-in for the lab of assignment 1: conv2d_forward on np.correlate.

It is written on np.correlate, which the exercises don't allow.
"""

import numpy as np

Size = int | tuple[int, int]


def conv2d_forward(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Size = 1, padding: Size = 0
) -> tuple[np.ndarray, None]:
    """Every image with every kernel: all rows of pixels in one line, with each row of weights."""
    (down, across), (above, beside) = (
        (size, size) if isinstance(size, int) else size for size in (stride, padding)
    )
    x = np.pad(x, ((0, 0), (0, 0), (above, above), (beside, beside)))
    tall, wide = (x.shape[axis] - w.shape[axis] + 1 for axis in (2, 3))
    out = np.zeros((len(x), len(w), tall, wide)) + b.reshape(1, -1, 1, 1)
    for channel, kernel, p in np.ndindex(x.shape[1], len(w), w.shape[2]):
        rows, weights = x[:, channel, p : p + tall], w[kernel, channel, p]
        line = np.correlate(rows.ravel(), weights, "full")[len(weights) - 1 :]
        # Where weights lie on the end of one row and the beginning of the next, it means nothing.
        out[:, kernel] += line.reshape(rows.shape)[..., :wide]
    return out[:, :, ::down, ::across], None
