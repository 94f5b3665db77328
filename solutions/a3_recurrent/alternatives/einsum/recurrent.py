"""Einsum: every sum names its axes, and sums in another order.

Axes: n sequence, t time, d input, m old state, k new state, q gate, v vocabulary, e embedding.
The gates have an axis of their own, and masks are numbers. Spectral norms come from eigenvalues of
products of Jacobians, and sampling adds Gumbel noise to the logits. Caches are lists.
"""


def contract(axes: str, *arrays: Array) -> Array:
    """An einsum, by matrix products where that is faster."""
    return np.einsum(axes, *arrays, optimize=True)


def gates_of(array: Array, count: int) -> Array:
    """(..., count*m) as a view (..., count, m)."""
    return array.reshape(*array.shape[:-1], count, -1)


def rnn_step_forward(
    x: Array, h: Array, w_xh: Array, w_hh: Array, b_h: Array
) -> tuple[Array, object]:
    """tanh of three terms."""
    check_shapes(x=(x, "n d"), h=(h, "n m"), w_xh=(w_xh, "d m"), w_hh=(w_hh, "m m"), b_h=(b_h, "m"))
    h_next = np.tanh(contract("nd,dk->nk", x, w_xh) + contract("nm,mk->nk", h, w_hh) + b_h)
    return h_next, [x, h, w_xh, w_hh, h_next.copy()]


def rnn_step_backward(dh_next: Array, cache: object) -> tuple[Array, Array, Array, Array, Array]:
    """(dx, dh, dw_xh, dw_hh, db_h)."""
    x, h, w_xh, w_hh, h_next = cache
    dz = dh_next - dh_next * h_next**2
    dx, dh = contract("nk,dk->nd", dz, w_xh), contract("nk,mk->nm", dz, w_hh)
    return dx, dh, contract("nd,nk->dk", x, dz), contract("nm,nk->mk", h, dz), dz.sum(axis=0)


def rnn_forward(
    x: Array, h0: Array, w_xh: Array, w_hh: Array, b_h: Array, mask: Array | None = None
) -> tuple[Array, object]:
    """The mask as numbers: new * mask + old * (1 - mask)."""
    check_shapes(
        x=(x, "n t d"),
        h0=(h0, "n m"),
        w_xh=(w_xh, "d m"),
        w_hh=(w_hh, "m m"),
        b_h=(b_h, "m"),
        mask=(mask, "n t"),
    )
    check_mask(mask)
    n, t, _ = x.shape
    keep = np.ones((n, t, 1), x.dtype) if mask is None else mask[:, :, None].astype(x.dtype)
    z = contract("ntd,dk->ntk", x, w_xh) + b_h
    states = np.empty((n, t + 1, len(b_h)), dtype=x.dtype)  # the first is h0
    states[:, 0] = h0
    for s in range(t):
        new = np.tanh(z[:, s] + states[:, s] @ w_hh)
        states[:, s + 1] = keep[:, s] * new + (1 - keep[:, s]) * states[:, s]
    return states[:, 1:].copy(), [x, w_xh, w_hh, keep, states]


def rnn_backward(dh: Array, cache: object) -> tuple[Array, Array, Array, Array, Array]:
    """A backward loop for dz, then one contraction for each input."""
    x, w_xh, w_hh, keep, states = cache
    dz = np.zeros_like(dh)
    dstate = np.zeros_like(states[:, 0])
    for s in range(dh.shape[1] - 1, -1, -1):
        dstate = dstate + dh[:, s]
        dz[:, s] = keep[:, s] * dstate * (1 - states[:, s + 1] ** 2)
        dstate = (1 - keep[:, s]) * dstate + contract("nk,mk->nm", dz[:, s], w_hh)
    dx = contract("ntk,dk->ntd", dz, w_xh)
    dw_xh = contract("ntd,ntk->dk", x, dz)
    dw_hh = contract("ntm,ntk->mk", states[:, :-1], dz)
    return dx, dstate, dw_xh, dw_hh, contract("ntk->k", dz)


def lstm_step_forward(
    x: Array, h: Array, c: Array, w_x: Array, w_h: Array, b: Array
) -> tuple[Array, Array, object]:
    """The gates have an axis of their own."""
    check_shapes(
        x=(x, "n d"),
        h=(h, "n m"),
        c=(c, "n m"),
        w_x=(w_x, "d 4m"),
        w_h=(w_h, "m 4m"),
        b=(b, "4m"),
    )
    x_and_h = np.concatenate([x, h], axis=1)
    z = gates_of(x_and_h @ np.concatenate([w_x, w_h]) + b, 4)  # (n, 4, m)
    gates = np.concatenate([sigmoid(z[:, :3]), np.tanh(z[:, 3:])], axis=1)
    c_next = gates[:, 1] * c + gates[:, 0] * gates[:, 3]
    return gates[:, 2] * np.tanh(c_next), c_next, [x, h, c, w_x, w_h, gates, np.tanh(c_next)]


def lstm_step_backward(
    dh_next: Array, dc_next: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """(dx, dh, dc, dw_x, dw_h, db)."""
    x, h, c, w_x, w_h, gates, tanh_c = cache
    dz, dc = gate_slopes(dh_next, dc_next, c, gates, tanh_c)
    dx = contract("nqk,dqk->nd", dz, gates_of(w_x, 4))
    dh = contract("nqk,mqk->nm", dz, gates_of(w_h, 4))
    dw_x = contract("nd,nqk->dqk", x, dz).reshape(w_x.shape)
    dw_h = contract("nm,nqk->mqk", h, dz).reshape(w_h.shape)
    return dx, dh, dc, dw_x, dw_h, contract("nqk->qk", dz).ravel()


def gate_slopes(
    dh_next: Array, dc_next: Array, c: Array, gates: Array, tanh_c: Array
) -> tuple[Array, Array]:
    """The gradients of the gates before their activations (n, 4, m), and of the previous cell."""
    i, f, o, g = gates.transpose(1, 0, 2)
    dc = dc_next + o * (1 - tanh_c**2) * dh_next
    dgates = np.stack([dc * g, dc * c, dh_next * tanh_c, dc * i], axis=1)
    slopes = gates * (1 - gates)
    slopes[:, 3] = 1 - g**2
    return dgates * slopes, dc * f


def lstm_forward(
    x: Array, h0: Array, c0: Array, w_x: Array, w_h: Array, b: Array, mask: Array | None = None
) -> tuple[Array, Array, object]:
    """The mask as numbers, as in rnn_forward."""
    check_shapes(
        x=(x, "n t d"),
        h0=(h0, "n m"),
        c0=(c0, "n m"),
        w_x=(w_x, "d 4m"),
        w_h=(w_h, "m 4m"),
        b=(b, "4m"),
        mask=(mask, "n t"),
    )
    check_mask(mask)
    n, t, _ = x.shape
    m = h0.shape[1]
    keep = np.ones((n, t, 1), x.dtype) if mask is None else mask[:, :, None].astype(x.dtype)
    z = contract("ntd,dk->tnk", x, w_x) + b
    gates = np.empty((t, n, 4, m), dtype=x.dtype)
    h, c = np.empty((t + 1, n, m), dtype=x.dtype), np.empty((t + 1, n, m), dtype=x.dtype)
    tanh_c = np.empty((t, n, m), dtype=x.dtype)
    h[0], c[0] = h0, c0
    for s in range(t):
        sums = gates_of(z[s] + h[s] @ w_h, 4)
        gates[s, :, :3], gates[s, :, 3] = sigmoid(sums[:, :3]), np.tanh(sums[:, 3])
        i, f, o, g = gates[s].transpose(1, 0, 2)
        new = f * c[s] + i * g
        tanh_c[s] = np.tanh(new)
        c[s + 1] = keep[:, s] * new + (1 - keep[:, s]) * c[s]
        h[s + 1] = keep[:, s] * o * tanh_c[s] + (1 - keep[:, s]) * h[s]
    return np.moveaxis(h[1:], 0, 1).copy(), c[t].copy(), [x, h, c, w_x, w_h, gates, tanh_c, keep]


def lstm_backward(
    dh: Array, dc_last: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """A backward loop for dz, then one contraction for each input."""
    x, h, c, w_x, w_h, gates, tanh_c, keep = cache
    dz = np.empty_like(gates)
    dstate, dcell = np.zeros_like(dc_last), dc_last
    for s in range(len(gates) - 1, -1, -1):
        dstate = dstate + dh[:, s]
        real, padding = keep[:, s], 1 - keep[:, s]
        dz[s], dc = gate_slopes(real * dstate, real * dcell, c[s], gates[s], tanh_c[s])
        dstate = padding * dstate + dz[s].reshape(len(dc), -1) @ w_h.T
        dcell = padding * dcell + dc
    dx = contract("tnqk,dqk->ntd", dz, gates_of(w_x, 4))
    dw_x = contract("ntd,tnqk->dqk", x, dz).reshape(w_x.shape)
    dw_h = contract("tnm,tnqk->mqk", h[:-1], dz).reshape(w_h.shape)
    return dx, dstate, dcell, dw_x, dw_h, contract("tnqk->qk", dz).ravel()


def gru_step_forward(
    x: Array, h: Array, w_x: Array, w_h: Array, b_x: Array, b_h: Array
) -> tuple[Array, object]:
    """The gates have an axis of their own."""
    check_shapes(
        x=(x, "n d"),
        h=(h, "n m"),
        w_x=(w_x, "d 3m"),
        w_h=(w_h, "m 3m"),
        b_x=(b_x, "3m"),
        b_h=(b_h, "3m"),
    )
    a = contract("nd,dqk->qnk", x, gates_of(w_x, 3)) + gates_of(b_x, 3)[:, None]
    u = contract("nm,mqk->qnk", h, gates_of(w_h, 3)) + gates_of(b_h, 3)[:, None]
    r, z = sigmoid(a[0] + u[0]), sigmoid(a[1] + u[1])
    g = np.tanh(a[2] + r * u[2])
    return (1 - z) * g + z * h, [x, h, w_x, w_h, r, z, g, u[2]]


def gru_step_backward(
    dh_next: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """(dx, dh, dw_x, dw_h, db_x, db_h)."""
    x, h, w_x, w_h, r, z, g, u_g = cache
    dg = (1 - z) * (1 - g**2) * dh_next
    da = np.stack([dg * u_g * r * (1 - r), (h - g) * z * (1 - z) * dh_next, dg], axis=1)
    du = da.copy()  # (n, 3, m)
    du[:, 2] *= r
    dx = contract("nqk,dqk->nd", da, gates_of(w_x, 3))
    dh = contract("nqk,mqk->nm", du, gates_of(w_h, 3)) + z * dh_next
    dw_x = contract("nd,nqk->dqk", x, da).reshape(w_x.shape)
    dw_h = contract("nm,nqk->mqk", h, du).reshape(w_h.shape)
    return dx, dh, dw_x, dw_h, da.sum(axis=0).ravel(), du.sum(axis=0).ravel()


def embedding_forward(ids: Array, table: Array) -> tuple[Array, object]:
    """One-hot vectors times the table."""
    check_shapes(ids=(ids, "n t"), table=(table, "v e"))
    check_ids(ids, len(table))
    chosen = (ids[:, :, None] == np.arange(len(table))).astype(table.dtype)
    return contract("ntv,ve->nte", chosen, table), [chosen]


def embedding_backward(dout: Array, cache: object) -> Array:
    """The transposed one-hot vectors times the gradient."""
    return contract("ntv,nte->ve", cache[0], dout)


def temporal_cross_entropy(
    logits: Array, targets: Array, mask: Array | None = None
) -> tuple[float, Array]:
    """With logaddexp, which is stable by itself."""
    check_shapes(logits=(logits, "n t v"), targets=(targets, "n t"), mask=(mask, "n t"))
    check_mask(mask)
    mask = np.ones(targets.shape, dtype=bool) if mask is None else mask
    check_ids(targets[mask], logits.shape[2])
    if not mask.any():
        return 0.0, np.zeros(logits.shape, dtype=logits.dtype)
    keep = mask.astype(logits.dtype) / logits.dtype.type(mask.sum())
    # A target out of range has no 1 in its row.
    wanted = (targets[:, :, None] == np.arange(logits.shape[2])).astype(logits.dtype)
    log_p = logits - np.logaddexp.reduce(logits, axis=2)[:, :, None]
    loss = -contract("nt,ntv,ntv->", keep, wanted, log_p)
    return float(loss), contract("nt,ntv->ntv", keep, np.exp(log_p) - wanted)


def truncated_bptt(
    x: Array, dh: Array, h0: Array, w_xh: Array, w_hh: Array, b_h: Array, context_length: int
) -> tuple[Array, Array, Array, Array, Array]:
    """The first window, then a recursive call for the rest."""
    if context_length < 1:
        raise ValueError(f"context_length must be at least 1, got {context_length}")
    check_shapes(x=(x, "n t d"), dh=(dh, "n t m"))
    first, rest = slice(context_length), slice(context_length, None)
    h, cache = rnn_forward(x[:, first], h0, w_xh, w_hh, b_h)
    dx, _, *weights = rnn_backward(dh[:, first], cache)
    if x.shape[1] <= context_length:
        return h, dx, *weights
    h_rest, dx_rest, *weights_rest = truncated_bptt(
        x[:, rest], dh[:, rest], h[:, -1], w_xh, w_hh, b_h, context_length
    )
    sums = (a + b for a, b in zip(weights, weights_rest, strict=True))
    return np.concatenate([h, h_rest], axis=1), np.concatenate([dx, dx_rest], axis=1), *sums


def gradient_norms_through_time(
    cell: str, x: Array, state: tuple[Array, ...], weights: tuple[Array, ...]
) -> Array:
    """The Jacobian of each step, and their products."""
    if (cell, len(state), len(weights)) not in (("rnn", 1, 3), ("lstm", 2, 3)):
        raise ValueError(f"bad cell {cell!r} with {len(state)} states, {len(weights)} weights")
    check_shapes(x=(x, "t d"), **{f"state {k}": (part, "m") for k, part in enumerate(state)})
    if cell == "rnn":
        forward, backward = rnn_step_forward, rnn_step_backward
    else:
        forward, backward = lstm_step_forward, lstm_step_backward
    m, size = len(state[0]), len(state) * len(state[0])
    # One row for each entry of the state: h and c concatenated.
    seeds = np.split(np.eye(size, dtype=x.dtype), len(state), axis=1)
    now = [np.broadcast_to(part, (size, m)) for part in state]
    jacobians = []
    for row in x:
        *now, cache = forward(np.broadcast_to(row, (size, len(row))), *now, *weights)
        _, *gradients = backward(*seeds, cache)
        jacobians.append(np.concatenate(gradients[: len(state)], axis=1))  # (size, size)
    product = np.eye(size, dtype=x.dtype)
    norms = [1.0]
    for jacobian in jacobians[::-1]:
        product = product @ jacobian
        norms.append(spectral_norm(product[:m, :m]))
    return np.array(norms[::-1], dtype=x.dtype)


def spectral_norm(matrix: Array) -> float:
    """The square root of the largest eigenvalue of the matrix times its transpose."""
    wide = matrix.astype(np.float64)
    return float(np.sqrt(max(np.linalg.eigvalsh(wide @ wide.T)[-1], 0)))


def sample(
    model: CharLM, prompt: Array, length: int, temperature: float, rng: np.random.Generator
) -> Array:
    """The argmax of logit / temperature + Gumbel noise is a draw from the softmax."""
    check_shapes(prompt=(prompt, "p"))
    if length < 0 or not 0 <= temperature < np.inf:
        raise ValueError(f"bad length {length} or temperature {temperature}")
    check_ids(prompt, len(model.parameters["embedding"]))
    ids, state = list(prompt), None
    unread = prompt
    for _ in range(length):
        logits, state = model.forward(unread[None], state)
        noisy = logits[0, -1].astype(np.float64)
        if temperature > 0:
            noisy = noisy / temperature + rng.gumbel(size=len(noisy))
        unread = np.array([np.argmax(noisy)])
        ids.append(unread[0])
    return np.array(ids[len(prompt) :], dtype=np.int64)
