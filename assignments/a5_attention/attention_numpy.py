"""Assignment 5, part 1: softmax and attention in NumPy, forward and backward.

Conventions of this file:
    - Shapes: sequences are arrays of shape (..., t, d), time and feature last. q holds t_q queries,
      k holds t_k keys, and v holds one value for each key.
    - Masks: a boolean array or None. True means "this query may attend to this key".
    - Fully masked queries: a query that may attend to no key gets weights and an output of zeros,
      never NaN.
    - Hidden keys: a key that no query may attend to changes nothing, whatever numbers its rows of k
      and v hold, from -1e12 to 1e12. (Near the dtype's maximum, products would overflow.)
    - Dtypes: float32 in gives float32 out, float64 in gives float64 out. The float arrays of a call
      have one dtype.
    - No side effects: no function changes its inputs or keeps state between calls.
    - Caches: `cache` holds whatever your backward pass needs from your forward pass. Tests only
      pass it back, sometimes more than once: a backward pass doesn't change it. It may hold q, k
      and v themselves, but none of the arrays that are returned, nor views of them.
    - Gradients: `dsomething` is the gradient of the loss with respect to `something`, with its
      shape and dtype.
    - Errors: bad input raises ValueError: shapes that don't fit, an axis of length 0, a mask that
      is not a boolean array or doesn't broadcast. The given checks raise it; in attention_backward
      you call check_gradient yourself.
    - Libraries: NumPy only, no PyTorch, no SciPy.
"""

import math

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray


def check_axis(x: Float[Array, "..."], axis: int) -> None:
    """Given: raise ValueError unless x has that axis, and no axis of length 0."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis must be an axis of x, got {axis} for shape {x.shape}")
    if x.size == 0:
        raise ValueError(f"x must not be empty, got shape {x.shape}")


def check_attention(
    q: Float[Array, "... t_q d_k"],
    k: Float[Array, "... t_k d_k"],
    v: Float[Array, "... t_k d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> None:
    """Given: raise ValueError unless q, k and v fit together, and the mask to (..., t_q, t_k)."""
    shapes = f"q {q.shape}, k {k.shape}, v {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(f"q, k and v must have two axes or more and equal leading axes: {shapes}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"q and k must have the same d_k, k and v the same t_k: {shapes}")
    if q.size == 0 or k.size == 0 or v.size == 0:
        raise ValueError(f"no axis may have length 0: {shapes}")
    if mask is None:
        return
    if not isinstance(mask, np.ndarray):
        raise ValueError(f"mask must be a boolean array, got {type(mask).__name__}")
    if mask.dtype != np.bool_:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    weights_shape = (*q.shape[:-1], k.shape[-2])
    pairs = zip(mask.shape[::-1], weights_shape[::-1], strict=False)
    if mask.ndim > len(weights_shape) or any(a not in (1, b) for a, b in pairs):
        raise ValueError(f"mask must broadcast to the weights {weights_shape}, got {mask.shape}")


def check_gradient(dout: Float[Array, "..."], shape: tuple[int, ...]) -> None:
    """Given: raise ValueError unless dout has this shape, the shape of out."""
    if dout.shape != shape:
        raise ValueError(f"dout must have the shape of out, {shape}, got {dout.shape}")


# Exercise 5.1


def softmax(x: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """exp(x) / (the sum of exp(x) along the axis), for an array of any shape.

    Numbers as large as 1e4 or as small as -1e4 must not overflow: subtract the maximum along the
    axis first. x may hold -inf: such an entry gets exactly 0, and where all entries along the axis
    are -inf, all get 0. NumPy must not warn, either.
    """
    check_axis(x, axis)
    raise NotImplementedError("softmax: exercise 5.1 is yours to write")


def softmax_backward(
    dout: Float[Array, "..."], out: Float[Array, "..."], axis: int = -1
) -> Float[Array, "..."]:
    """The backward pass of softmax, from its output: out = softmax(x, axis).

    dx[i] = the sum over j along the axis of dout[j] * (the derivative of out[j] by x[i])

    Needs no (t, t) matrix: work out the sum on paper first. Where out is all zeros along the axis,
    so is dx. Returns dx. Raises ValueError if dout and out differ in shape.
    """
    check_axis(out, axis)
    check_gradient(dout, out.shape)
    raise NotImplementedError("softmax_backward: exercise 5.1 is yours to write")


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
        raise ValueError(f"q must be (t_q, d_k), got shape {q.shape}")
    raise NotImplementedError("attention_loops: exercise 5.2 is yours to write")


def attention_forward(
    q: Float[Array, "... t_q d_k"],
    k: Float[Array, "... t_k d_k"],
    v: Float[Array, "... t_k d_v"],
    mask: Bool[Array, "..."] | None = None,
) -> tuple[Float[Array, "... t_q d_v"], Float[Array, "... t_q t_k"], object]:
    """The same with a mask, for many sequences at once, without a loop over queries or keys.

    q, k, v: any number of leading axes, the same in all three; none is fine. They need no loop
        either, but one over them is accepted.
    mask: broadcasts to (..., t_q, t_k) by NumPy's rules, so (t_q, t_k) holds for all sequences.
        Where it is False, the weight is exactly 0; the others still sum to 1 over the keys. A query
        whose row is all False gets weights and an output of zeros.
    Returns (out, weights, cache).
    """
    check_attention(q, k, v, mask)
    raise NotImplementedError("attention_forward: exercise 5.2 is yours to write")


def attention_backward(
    dout: Float[Array, "... t_q d_v"], cache: object
) -> tuple[Float[Array, "... t_q d_k"], Float[Array, "... t_k d_k"], Float[Array, "... t_k d_v"]]:
    """The backward pass of attention_forward, for a loss that depends on out alone.

    dout: has the shape of out; any other raises ValueError. NumPy would silently broadcast a dout
        of one sequence to all of them. Your cache knows the right shape: pass it to check_gradient.
    A fully masked query gets a gradient of zeros, and contributes none to any key or value.
    Returns (dq, dk, dv).
    """
    raise NotImplementedError("attention_backward: exercise 5.2 is yours to write")
