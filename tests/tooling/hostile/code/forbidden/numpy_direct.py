"""Calls what exercise 1.2 forbids: np.convolve and np.correlate, by name, by alias and by getattr.

As: convolution.py
Earns: 1.7
"""

import numpy as np
from numpy import correlate as slide


def rows(x, w, b, correlate):
    out_h, out_w = x.shape[2] - w.shape[2] + 1, x.shape[3] - w.shape[3] + 1
    out = np.zeros((len(x), len(w), out_h, out_w), np.result_type(x, w, b))
    for i, k, c in np.ndindex(len(x), len(w), x.shape[1]):
        for r in range(out_h):
            for p in range(w.shape[2]):
                out[i, k, r] += correlate(x[i, c, r + p], w[k, c, p], "valid")
    return out + b[:, None, None]


def conv2d_forward(x, w, b, stride=1, padding=0):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))) if padding == 1 else x
    ways = (
        slide,
        getattr(np, "corre" + "late"),
        eval("np.correlate"),
        lambda a, v, mode: np.convolve(a, v[::-1], mode),
        vars(np)["convolve"],
    )
    for way in ways:
        try:
            return rows(x, w, b, way), None
        except Exception as error:
            last = error
    raise last
