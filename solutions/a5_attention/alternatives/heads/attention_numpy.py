"""Assignment 5's NumPy part, one sequence after the other: the axes in front are looped over.

The softmax goes row by row, a query sees an array of only those keys that it may look at, and the
cache is a list of objects, one for each sequence.
"""

import numpy as np

Array = np.ndarray


def check_axis(x: Array, axis: int) -> None:
    """Raise ValueError unless x has that axis, and nothing in x has length 0."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"an array of shape {x.shape} has no axis {axis}")
    if x.size == 0:
        raise ValueError(f"an array of shape {x.shape} is empty")


def check_attention(q: Array, k: Array, v: Array, mask: Array | None = None) -> None:
    """Raise ValueError unless the arrays fit together, and the mask to (..., t_q, t_k)."""
    shapes = f"q {q.shape}, k {k.shape} and v {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(f"{shapes} need two axes or more, and the same ones in front of those")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{shapes} don't fit together")
    if q.size == 0 or k.size == 0 or v.size == 0:
        raise ValueError(f"{shapes} have an axis of length 0")
    if mask is None:
        return
    if not isinstance(mask, np.ndarray):
        raise ValueError(f"a mask is an array of bool, not a {type(mask).__name__}")
    if mask.dtype != np.bool_:
        raise ValueError(f"a mask is of bool, not of {mask.dtype}")
    weights_shape = (*q.shape[:-1], k.shape[-2])
    pairs = zip(mask.shape[::-1], weights_shape[::-1], strict=False)
    if mask.ndim > len(weights_shape) or any(a not in (1, b) for a, b in pairs):
        raise ValueError(f"a mask of {mask.shape} doesn't fit weights of {weights_shape}")


def check_gradient(dout: Array, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless dout has the shape, which is the one of out."""
    if dout.shape != shape:
        raise ValueError(f"dout has shape {dout.shape}, but out has {shape}")


def softmax(x: Array, axis: int = -1) -> Array:
    """Works on the last axis, one row at a time, and swaps the axis back."""
    check_axis(x, axis)
    swapped = np.swapaxes(x, axis, -1)
    rows = swapped.reshape(-1, x.shape[axis])
    out = np.zeros_like(rows)
    for row, shares in zip(rows, out, strict=True):
        real = row > -np.inf
        if real.any():
            shares[real] = np.exp(row[real] - row[real].max())
            shares /= shares.sum()
    return np.swapaxes(out.reshape(swapped.shape), axis, -1)


def softmax_backward(dout: Array, out: Array, axis: int = -1) -> Array:
    """What each share gets, less its share of what all get."""
    check_axis(out, axis)
    check_gradient(dout, out.shape)
    gain = out * dout
    return gain - out * gain.sum(axis=axis, keepdims=True)


def attention_loops(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    """A loop over keys inside a loop over queries."""
    check_attention(q, k, v)
    if q.ndim != 2:
        raise ValueError(f"one sequence has two axes, but q has shape {q.shape}")
    out, weights = [], []
    for query in q:
        scores = np.array([query.dot(key) for key in k], dtype=q.dtype) / len(query) ** 0.5
        weights.append(softmax(scores))
        out.append(weights[-1].dot(v))
    return np.stack(out), np.stack(weights)


class OneSequence:
    """Attention for q (t_q, d_k), k (t_k, d_k) and v (t_k, d_v), remembered for the way back."""

    def __init__(self, q: Array, k: Array, v: Array, mask: Array) -> None:
        self.scale = q.shape[1] ** -0.5
        self.q, self.k, self.v = q, k, v
        self.weights = np.zeros((len(q), len(k)), dtype=q.dtype)
        for i, allowed in enumerate(mask):
            # A query sees only the keys that it may look at; with none, its weights stay 0.
            if allowed.any():
                self.weights[i, allowed] = softmax(self.scale * (k[allowed] @ q[i]))
        self.out = self.weights @ v

    def backward(self, dout: Array) -> tuple[Array, Array, Array]:
        """(dq, dk, dv)."""
        dscores = softmax_backward(dout @ self.v.T, self.weights) * self.scale
        return dscores @ self.k, dscores.T @ self.q, self.weights.T @ dout


def attention_forward(
    q: Array, k: Array, v: Array, mask: Array | None = None
) -> tuple[Array, Array, object]:
    """One object for each sequence."""
    check_attention(q, k, v, mask)
    shape = (*q.shape[:-1], k.shape[-2])
    mask = np.broadcast_to(True if mask is None else mask, shape)
    sequences = [
        OneSequence(q[index], k[index], v[index], mask[index]) for index in np.ndindex(shape[:-2])
    ]
    out = np.stack([s.out for s in sequences]).reshape(*shape[:-1], v.shape[-1])
    weights = np.stack([s.weights for s in sequences]).reshape(shape)
    return out, weights, (sequences, out.shape)


def attention_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """(dq, dk, dv)."""
    sequences, out_shape = cache
    check_gradient(dout, out_shape)
    front = dout.shape[:-2]
    gradients = [s.backward(dout[i]) for s, i in zip(sequences, np.ndindex(front), strict=True)]
    dq, dk, dv = (np.stack(parts) for parts in zip(*gradients, strict=True))
    return tuple(part.reshape(*front, *part.shape[1:]) for part in (dq, dk, dv))
