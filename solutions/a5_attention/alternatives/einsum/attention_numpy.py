"""Einsum: every sum names its axes, and the order of summation differs.

Axes: q query, k key, d feature of queries and keys, e feature of values. The softmax uses
the logarithm of the sum, its backward pass the whole Jacobian. The cache is a dictionary.
"""


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x - log(the sum of exp(x))): a weight is the exponential of a difference."""
    check_axis(x, axis)
    shifted = x - np.nan_to_num(x.max(axis=axis, keepdims=True), neginf=0.0)
    with np.errstate(divide="ignore"):  # log(0) is intended
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
    """The sums of weights and of weighted values are accumulated in the loop over keys."""
    check_attention(q, k, v)
    if q.ndim != 2:
        raise ValueError(f"q must be (t_q, d_k), got shape {q.shape}")
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
    """A mask is added to the scores, as 0 or -inf."""
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
