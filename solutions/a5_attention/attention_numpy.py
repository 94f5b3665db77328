"""Assignment 5, first part: softmax and attention, forward and backward, in NumPy.

Conventions of this file
    Sequences are arrays of shape (..., t, d): time and feature come last.
    q holds t_q queries, k holds t_k keys, and v holds one value for each key.
    mask is an array of bool, or None: True means "this query may look at this key".
    A query that may look at nothing has weights of zero and an output of zeros, never NaN.
    What k and v hold at a key that no query may look at (finite numbers) makes no difference.
    float32 in gives float32 out, float64 in gives float64 out: the float arrays of a call have
    one type.
    No function changes its inputs, and none remembers anything between two calls.
    `cache` is whatever your backward pass needs from your forward pass. Tests only hand it back,
    sometimes more than once.
    `dsomething` is the gradient of the loss with respect to `something`, in its shape and dtype.
    Bad input raises ValueError: shapes that don't fit together, an axis of length 0, a mask that
    is no array of bool or doesn't fit. The given checks see to that; attention_backward has to
    call one itself.

NumPy only: no PyTorch, no SciPy.
"""

import math

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


def check_axis(x: Float[Array, "..."], axis: int) -> None:
    """Given: raise ValueError unless x has that axis, and nothing in x has length 0."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"an array of shape {x.shape} has no axis {axis}")
    if x.size == 0:
        raise ValueError(f"an array of shape {x.shape} is empty")


def check_attention(
    q: Float[Array, "... t_q d_k"],
    k: Float[Array, "... t_k d_k"],
    v: Float[Array, "... t_k d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> None:
    """Given: raise ValueError unless the arrays fit together, and the mask to (..., t_q, t_k)."""
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


def check_gradient(dout: Float[Array, "..."], shape: tuple[int, ...]) -> None:
    """Given: raise ValueError unless dout has the shape, which is the one of out."""
    if dout.shape != shape:
        raise ValueError(f"dout has shape {dout.shape}, but out has {shape}")


# Exercise 5.1


def softmax(x: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """exp(x) / (the sum of exp(x) along the axis), for an array of any shape.

    Numbers as large as 1e4 or as small as -1e4 must not overflow: subtract the largest along the
    axis first. x may hold -inf: that entry gets exactly 0, and where all entries along the axis
    are -inf, all get 0 (there is nothing to share out). No warnings, either.
    """
    check_axis(x, axis)
    # BEGIN SOLUTION
    largest = x.max(axis=axis, keepdims=True)
    # -inf - -inf is NaN: where nothing is finite, there is nothing to subtract.
    shares = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    total = shares.sum(axis=axis, keepdims=True)
    return shares / np.where(total == 0, 1, total)
    # END SOLUTION


def softmax_backward(
    dout: Float[Array, "..."], out: Float[Array, "..."], axis: int = -1
) -> Float[Array, "..."]:
    """The backward pass of softmax, from what it returned: out = softmax(x, axis).

    dx[i] = the sum over j along the axis of dout[j] * (how out[j] moves with x[i])

    Needs no (t, t) matrix: work out the sum on paper first. Where out is all zeros along the axis,
    so is dx. Returns dx. Raises ValueError when dout and out differ in shape.
    """
    check_axis(out, axis)
    check_gradient(dout, out.shape)
    # BEGIN SOLUTION
    # The Jacobian is diag(out) - out out^T, so dx is out * dout minus out times one number.
    return out * (dout - (dout * out).sum(axis=axis, keepdims=True))
    # END SOLUTION


# Exercise 5.2


def attention_loops(
    q: Float[Array, "t_q d_k"], k: Float[Array, "t_k d_k"], v: Float[Array, "t_k d_v"]
) -> tuple[Float[Array, "t_q d_v"], Float[Array, "t_q t_k"]]:
    """Attention for one sequence without a mask, with a loop over queries and one over keys.

    scores[i, j] = q[i] . k[j] / sqrt(d_k)
    weights[i] = softmax(scores[i])
    out[i] = the sum over j of weights[i, j] * v[j]

    Returns (out, weights). Raises ValueError unless q, k and v have two axes each.
    """
    check_attention(q, k, v)
    if q.ndim != 2:
        raise ValueError(f"one sequence has two axes, but q has shape {q.shape}")
    # BEGIN SOLUTION
    t_q, d_k = q.shape
    t_k, d_v = v.shape
    scores = np.empty((t_q, t_k), dtype=q.dtype)
    weights = np.empty((t_q, t_k), dtype=q.dtype)
    out = np.empty((t_q, d_v), dtype=q.dtype)
    for i in range(t_q):
        for j in range(t_k):
            scores[i, j] = np.sum(q[i] * k[j]) / math.sqrt(d_k)
        weights[i] = softmax(scores[i])
        out[i] = weights[i] @ v  # the sum over j
    return out, weights
    # END SOLUTION


def attention_forward(
    q: Float[Array, "... t_q d_k"],
    k: Float[Array, "... t_k d_k"],
    v: Float[Array, "... t_k d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> tuple[Float[Array, "... t_q d_v"], Float[Array, "... t_q t_k"], object]:
    """The same with a mask, and for many sequences at once, without a loop over queries or keys.

    q, k, v: any number of axes in front, the same in all three; none is fine. They need no loop
        either, but one over them is accepted.
    mask: broadcasts to (..., t_q, t_k) by NumPy's rules, so (t_q, t_k) holds for all sequences.
        Where it is False, the weight is exactly 0; the others still sum to 1 over the keys. A query
        whose row is all False gets weights and an output of zeros.
    Returns (out, weights, cache).
    """
    check_attention(q, k, v, mask)
    # BEGIN SOLUTION
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., t_q, t_k)
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    # A copy for the cache: the weights that are returned belong to the caller, who may change them.
    return weights @ v, weights, (q, k, v, weights.copy())
    # END SOLUTION


def attention_backward(
    dout: Float[Array, "... t_q d_v"], cache: object
) -> tuple[Float[Array, "... t_q d_k"], Float[Array, "... t_k d_k"], Float[Array, "... t_k d_v"]]:
    """The backward pass of attention_forward, for a loss that looks at out alone.

    dout: of the shape of out; any other raises ValueError. NumPy would repeat a dout of one
        sequence for all of them without a word. Your cache knows the right shape: hand it to
        check_gradient.
    A query that may look at nothing gets a gradient of zeros, and gives none to any key or value.
    Returns (dq, dk, dv).
    """
    # BEGIN SOLUTION
    q, k, v, weights = cache
    check_gradient(dout, (*q.shape[:-1], v.shape[-1]))
    dweights = dout @ v.mT  # (..., t_q, t_k)
    dscores = softmax_backward(dweights, weights) / math.sqrt(q.shape[-1])
    # A masked weight is 0, and so is its gradient: the mask needs no line here.
    return dscores @ k, dscores.mT @ q, weights.mT @ dout
    # END SOLUTION
