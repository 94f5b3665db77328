"""Assignment 5's NumPy part by einsum: each sum is written out by its axes.

Axes: q query, k key, d feature of queries and keys, e feature of values. The softmax goes by the
logarithm of the sum, and its backward pass by the whole Jacobian.
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
    """exp(x - log(the sum of exp(x))): a share is the exponential of a difference."""
    check_axis(x, axis)
    shifted = x - np.nan_to_num(x.max(axis=axis, keepdims=True), neginf=0.0)
    with np.errstate(divide="ignore"):  # the logarithm of 0 is meant
        log_total = np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return np.exp(shifted - np.nan_to_num(log_total, neginf=0.0))


def softmax_backward(dout: Array, out: Array, axis: int = -1) -> Array:
    """dout times the Jacobian, which is diag(out) - out out^T."""
    check_axis(out, axis)
    check_gradient(dout, out.shape)
    dlast, last = np.moveaxis(dout, axis, -1), np.moveaxis(out, axis, -1)
    identity = np.eye(last.shape[-1], dtype=out.dtype)
    jacobian = np.einsum("...i,ij->...ij", last, identity)
    jacobian = jacobian - np.einsum("...i,...j->...ij", last, last)
    return np.moveaxis(np.einsum("...i,...ij->...j", dlast, jacobian), -1, axis)


def attention_loops(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    """The sums of shares and of shared values run along with the loop over keys."""
    check_attention(q, k, v)
    if q.ndim != 2:
        raise ValueError(f"one sequence has two axes, but q has shape {q.shape}")
    out = np.zeros((len(q), v.shape[1]), dtype=q.dtype)
    weights = np.zeros((len(q), len(k)), dtype=q.dtype)
    for i, query in enumerate(q):
        scores = [np.einsum("d,d->", query, key) / q.shape[1] ** 0.5 for key in k]
        total = 0
        for j, score in enumerate(scores):
            weights[i, j] = np.exp(score - max(scores))
            total += weights[i, j]
            out[i] += weights[i, j] * v[j]
        weights[i] /= total
        out[i] /= total
    return out, weights


def attention_forward(
    q: Array, k: Array, v: Array, mask: Array | None = None
) -> tuple[Array, Array, object]:
    """A mask is added to the scores, 0 or -inf."""
    check_attention(q, k, v, mask)
    scores = np.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5
    if mask is not None:
        penalty = np.zeros(mask.shape, dtype=q.dtype)
        penalty[~mask] = -np.inf
        scores = scores + penalty
    weights = softmax(scores)
    out = np.einsum("...qk,...ke->...qe", weights, v)
    return out, weights, {"q": q, "k": k, "v": v, "weights": weights}


def attention_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """(dq, dk, dv)."""
    q, k, v, weights = (cache[name] for name in ("q", "k", "v", "weights"))
    check_gradient(dout, (*q.shape[:-1], v.shape[-1]))
    dweights = np.einsum("...qe,...ke->...qk", dout, v)
    dscores = softmax_backward(dweights, weights)
    scale = q.shape[-1] ** -0.5
    dq = scale * np.einsum("...qk,...kd->...qd", dscores, k)
    dk = scale * np.einsum("...qk,...qd->...kd", dscores, q)
    return dq, dk, np.einsum("...qk,...qe->...ke", weights, dout)
