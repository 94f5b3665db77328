"""Assignment 5's NumPy part that lets 0 / 0 happen, and takes the NaN away afterwards.

The axes in front are flattened to one, and the backward pass keeps the scores and works the weights
out again.
"""

import math

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
    """-inf - -inf is NaN, and so is its row."""
    check_axis(x, axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return np.nan_to_num(shares / np.sum(shares, axis=axis, keepdims=True), nan=0.0)


def softmax_backward(dout: Array, out: Array, axis: int = -1) -> Array:
    """out times what dout is above its mean, weighted by out."""
    check_axis(out, axis)
    check_gradient(dout, out.shape)
    mean = np.sum(out * dout, axis=axis, keepdims=True)
    return np.multiply(out, np.subtract(dout, mean))


def attention_loops(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    """Number by number."""
    check_attention(q, k, v)
    if q.ndim != 2:
        raise ValueError(f"one sequence has two axes, but q has shape {q.shape}")
    scores = np.zeros((q.shape[0], k.shape[0]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            scores[i, j] = np.dot(q[i], k[j])
    weights = softmax(scores / math.sqrt(q.shape[1]), axis=1)
    out = np.zeros((q.shape[0], v.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        for j in range(k.shape[0]):
            out[i] += weights[i, j] * v[j]
    return out, weights


def flat(x: Array) -> Array:
    """(..., t, d) as (n, t, d)."""
    return x.reshape(-1, *x.shape[-2:])


def attention_forward(
    q: Array, k: Array, v: Array, mask: Array | None = None
) -> tuple[Array, Array, object]:
    """Batched matrix products of three axes."""
    check_attention(q, k, v, mask)
    shape = (*q.shape[:-1], k.shape[-2])
    scores = np.matmul(flat(q), flat(k).transpose(0, 2, 1)) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores[~flat(np.broadcast_to(mask, shape))] = -np.inf
    weights = softmax(scores, axis=2)
    out = np.matmul(weights, flat(v))
    return out.reshape(*shape[:-1], -1), weights.reshape(shape), (q, k, v, scores)


def attention_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """(dq, dk, dv)."""
    q, k, v, scores = cache
    check_gradient(dout, (*q.shape[:-1], v.shape[-1]))
    weights = softmax(scores, axis=2)
    dscores = softmax_backward(np.matmul(flat(dout), flat(v).transpose(0, 2, 1)), weights, axis=2)
    dscores /= math.sqrt(q.shape[-1])
    dq = np.matmul(dscores, flat(k)).reshape(q.shape)
    dk = np.matmul(dscores.transpose(0, 2, 1), flat(q)).reshape(k.shape)
    return dq, dk, np.matmul(weights.transpose(0, 2, 1), flat(dout)).reshape(v.shape)
