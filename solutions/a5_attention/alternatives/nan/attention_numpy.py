"""Let 0 / 0 happen, and remove the NaN afterwards.

The leading axes are flattened to one, and the backward pass computes the weights again from cached
scores.
"""


def softmax(x: Array, axis: int = -1) -> Array:
    """-inf - -inf is NaN, and so is its row."""
    check_axis(x, axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        exps = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return np.nan_to_num(exps / np.sum(exps, axis=axis, keepdims=True), nan=0.0)


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
