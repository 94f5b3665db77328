"""One sequence at a time: a loop over the leading axes.

The softmax works row by row, a query gets an array of only those keys that it may attend to, and
the cache is a list of objects, one for each sequence.
"""


def softmax(x: Array, axis: int = -1) -> Array:
    """Works on the last axis, one row at a time, and swaps the axis back."""
    check_axis(x, axis)
    swapped = np.swapaxes(x, axis, -1)
    rows = swapped.reshape(-1, x.shape[axis])
    out = np.zeros_like(rows)
    for row, weights in zip(rows, out, strict=True):
        real = row > -np.inf
        if real.any():
            weights[real] = np.exp(row[real] - row[real].max())
            weights /= weights.sum()
    return np.swapaxes(out.reshape(swapped.shape), axis, -1)


class OneSequence:
    """Attention for q (t_q, d_k), k (t_k, d_k) and v (t_k, d_v), kept for the backward pass."""

    def __init__(self, q: Array, k: Array, v: Array, mask: Array) -> None:
        self.scale = q.shape[1] ** -0.5
        self.q, self.k, self.v = q, k, v
        self.weights = np.zeros((len(q), len(k)), dtype=q.dtype)
        for i, allowed in enumerate(mask):
            # A query gets only the keys that it may attend to; with none, its weights stay 0.
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
