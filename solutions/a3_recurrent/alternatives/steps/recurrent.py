"""Step by step: every loop over time calls the step functions and accumulates gradients.

The loss is computed from the unmasked positions only, Jacobians are made row by row, and sampling
inverts the cumulative distribution. Training changes the weights in place.
"""


def rnn_step_forward(
    x: Array, h: Array, w_xh: Array, w_hh: Array, b_h: Array
) -> tuple[Array, object]:
    """One step; the cache holds the derivative of tanh instead of its value."""
    check_shapes(x=(x, "n d"), h=(h, "n m"), w_xh=(w_xh, "d m"), w_hh=(w_hh, "m m"), b_h=(b_h, "m"))
    h_next = np.tanh(b_h + h @ w_hh + x @ w_xh)
    return h_next, {"x": x, "h": h, "w_xh": w_xh, "w_hh": w_hh, "slope": 1 - h_next * h_next}


def rnn_step_backward(dh_next: Array, cache: object) -> tuple[Array, Array, Array, Array, Array]:
    """(dx, dh, dw_xh, dw_hh, db_h)."""
    dz = dh_next * cache["slope"]
    dx = (cache["w_xh"] @ dz.T).T
    dh = (cache["w_hh"] @ dz.T).T
    return dx, dh, (dz.T @ cache["x"]).T, (dz.T @ cache["h"]).T, np.ones(len(dz), dz.dtype) @ dz


def rnn_forward(
    x: Array, h0: Array, w_xh: Array, w_hh: Array, b_h: Array, mask: Array | None = None
) -> tuple[Array, object]:
    """All steps, one call each; a masked row keeps its old state."""
    check_shapes(
        x=(x, "n t d"),
        h0=(h0, "n m"),
        w_xh=(w_xh, "d m"),
        w_hh=(w_hh, "m m"),
        b_h=(b_h, "m"),
        mask=(mask, "n t"),
    )
    check_mask(mask)
    states, caches = [h0], []
    for s in range(x.shape[1]):
        new, cache = rnn_step_forward(x[:, s], states[-1], w_xh, w_hh, b_h)
        states.append(new if mask is None else np.where(mask[:, s : s + 1], new, states[-1]))
        caches.append(cache)
    return np.stack(states[1:], axis=1), (caches, mask)


def rnn_backward(dh: Array, cache: object) -> tuple[Array, Array, Array, Array, Array]:
    """All steps backwards; at a masked row the whole gradient bypasses the step."""
    caches, mask = cache
    dxs, dstate, totals = [], 0, None
    for s in reversed(range(len(caches))):
        dstate = dh[:, s] + dstate
        through = dstate if mask is None else np.where(mask[:, s : s + 1], dstate, 0)
        dx, dbefore, *weights = rnn_step_backward(through, caches[s])
        dxs.insert(0, dx)
        totals = (
            weights if totals is None else [a + b for a, b in zip(totals, weights, strict=True)]
        )
        dstate = dbefore + (dstate - through)
    return np.stack(dxs, axis=1), dstate, *totals


def lstm_parameters(
    rng: np.random.Generator, d: int, m: int, forget_bias: float = 1.0, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """The bias first, then the weights, from uniform numbers between 0 and 1."""
    b = np.concatenate([np.zeros(m), np.full(m, forget_bias), np.zeros(2 * m)])
    w_h, w_x = ((2 * rng.random((rows, 4 * m)) - 1) / m**0.5 for rows in (m, d))
    return w_x.astype(dtype), w_h.astype(dtype), b.astype(dtype)


def lstm_forward(
    x: Array, h0: Array, c0: Array, w_x: Array, w_h: Array, b: Array, mask: Array | None = None
) -> tuple[Array, Array, object]:
    """All steps, one call each."""
    check_shapes(x=(x, "n t d"), h0=(h0, "n m"), c0=(c0, "n m"), mask=(mask, "n t"))
    check_mask(mask)
    h, c, states, caches = h0, c0, [], []
    for s in range(x.shape[1]):
        h_new, c_new, cache = lstm_step_forward(x[:, s], h, c, w_x, w_h, b)
        if mask is not None:
            real = mask[:, s : s + 1]
            h_new, c_new = np.where(real, h_new, h), np.where(real, c_new, c)
        h, c = h_new, c_new
        states.append(h)
        caches.append(cache)
    return np.stack(states, axis=1), c, (caches, mask)


def lstm_backward(
    dh: Array, dc_last: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """All steps backwards, accumulating the gradients of the weights."""
    caches, mask = cache
    dx, dw_x, dw_h, db = [], 0, 0, 0
    dstate, dcell = np.zeros_like(dc_last), dc_last
    for s in reversed(range(len(caches))):
        dstate = dstate + dh[:, s]
        real = None if mask is None else mask[:, s : s + 1]
        dh_in, dc_in = (dstate, dcell) if real is None else (dstate * real, dcell * real)
        dx_s, dh_before, dc_before, dw_x_s, dw_h_s, db_s = lstm_step_backward(
            dh_in, dc_in, caches[s]
        )
        if real is not None:
            dh_before, dc_before = dh_before + dstate * ~real, dc_before + dcell * ~real
        dstate, dcell = dh_before, dc_before
        dx.append(dx_s)
        dw_x, dw_h, db = dw_x + dw_x_s, dw_h + dw_h_s, db + db_s
    return np.stack(dx[::-1], axis=1), dstate, dcell, dw_x, dw_h, db


def embedding_forward(ids: Array, table: Array) -> tuple[Array, object]:
    """np.take copies the rows."""
    check_shapes(ids=(ids, "n t"), table=(table, "v e"))
    check_ids(ids, len(table))
    return np.take(table, ids, axis=0), {"ids": ids.copy(), "rows": len(table)}


def embedding_backward(dout: Array, cache: object) -> Array:
    """Position by position."""
    dtable = np.zeros((cache["rows"], dout.shape[2]), dtype=dout.dtype)
    for row, gradient in zip(cache["ids"].ravel(), dout.reshape(-1, dout.shape[2]), strict=True):
        dtable[row] += gradient
    return dtable


def temporal_cross_entropy(
    logits: Array, targets: Array, mask: Array | None = None
) -> tuple[float, Array]:
    """From a list of the unmasked positions."""
    check_shapes(logits=(logits, "n t v"), targets=(targets, "n t"), mask=(mask, "n t"))
    check_mask(mask)
    mask = np.ones(targets.shape, dtype=bool) if mask is None else mask
    check_ids(targets[mask], logits.shape[2])
    dlogits = np.zeros_like(logits)
    if not mask.any():
        return 0.0, dlogits
    real, labels = logits[mask], targets[mask]  # (k, v), (k,)
    rows = np.arange(len(real))
    real = real - real.max(axis=1, keepdims=True)
    sums = np.exp(real).sum(axis=1)
    loss = float(np.mean(np.log(sums) - real[rows, labels]))
    p = np.exp(real) / sums[:, None]
    p[rows, labels] -= 1
    dlogits[mask] = p / len(real)
    return loss, dlogits


def clip_by_global_norm(
    gradients: dict[str, Array], max_norm: float
) -> tuple[dict[str, Array], float]:
    """The norm of the norms."""
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}")
    norms = [np.linalg.norm(array.astype(np.float64).ravel()) for array in gradients.values()]
    norm = float(np.linalg.norm(norms))
    if not np.isfinite(norm):
        raise ValueError("a gradient is not finite")
    if norm <= max_norm:
        return {name: array.copy() for name, array in gradients.items()}, norm
    scale = max_norm / norm
    return {name: (scale * array).astype(array.dtype) for name, array in gradients.items()}, norm


def truncated_bptt(
    x: Array, dh: Array, h0: Array, w_xh: Array, w_hh: Array, b_h: Array, context_length: int
) -> tuple[Array, Array, Array, Array, Array]:
    """All steps forward first; backwards, the state's gradient is zeroed at each window's start."""
    check_shapes(x=(x, "n t d"), dh=(dh, "n t m"), h0=(h0, "n m"))
    if context_length < 1:
        raise ValueError(f"context_length must be at least 1, got {context_length}")
    h, (caches, _) = rnn_forward(x, h0, w_xh, w_hh, b_h)
    dx = np.empty_like(x)
    totals = [np.zeros_like(w_xh), np.zeros_like(w_hh), np.zeros_like(b_h)]
    dstate = np.zeros_like(h0)
    for s in reversed(range(x.shape[1])):
        dx[:, s], dstate, *weights = rnn_step_backward(dh[:, s] + dstate, caches[s])
        for total, part in zip(totals, weights, strict=True):
            total += part
        if s % context_length == 0:
            dstate = np.zeros_like(h0)
    return h, dx, *totals


def gradient_norms_through_time(
    cell: str, x: Array, state: tuple[Array, ...], weights: tuple[Array, ...]
) -> Array:
    """One sequence forward, then one backward pass for each entry of the last state."""
    if (cell, len(state), len(weights)) not in (("rnn", 1, 3), ("lstm", 2, 3)):
        raise ValueError(f"bad cell {cell!r} with {len(state)} states, {len(weights)} weights")
    check_shapes(x=(x, "t d"), **{f"state {k}": (part, "m") for k, part in enumerate(state)})
    if cell == "rnn":
        forward, backward = rnn_step_forward, rnn_step_backward
    else:
        forward, backward = lstm_step_forward, lstm_step_backward
    now, caches = [part[None] for part in state], []
    for row in x:
        *now, cache = forward(row[None], *now, *weights)
        caches.append(cache)
    m = len(state[0])
    jacobians = np.zeros((len(x) + 1, m, m), dtype=x.dtype)
    for k in range(m):
        gradients = [np.zeros_like(part)[None] for part in state]
        gradients[0][0, k] = 1
        jacobians[-1, k] = gradients[0]
        for s in reversed(range(len(x))):
            gradients = backward(*gradients, caches[s])[1 : 1 + len(state)]
            jacobians[s, k] = gradients[0]
    return np.linalg.svd(jacobians, compute_uv=False).max(axis=1)


def train(model: CharLM, text_ids: Array, config: TrainConfig, state: object = None) -> dict:
    """The weights are changed in place; everything to resume from is in one dict."""
    inputs, targets = make_windows(text_ids, config.batch_size, config.context_length)
    now = {"step": 0, "streams": None, "adam": None} if state is None else dict(state)
    check_same_shapes(model.parameters, now.get("weights", model.parameters))
    for name, array in now.pop("weights", {}).items():
        model.parameters[name][...] = array
    history = {"loss": [], "bits": [], "norm": [], "learning_rate": []}
    with TrainingDisplay(max(config.steps - now["step"], 0), title="language model") as display:
        while now["step"] < config.steps:
            k = now["step"] % len(inputs)
            carried = now["streams"] if k else None
            loss, gradients, now["streams"] = model.loss_and_gradients(
                inputs[k], targets[k], carried
            )
            if not np.isfinite(loss):
                raise ValueError(f"step {now['step'] + 1}: the loss is {loss}")
            gradients, norm = clip_by_global_norm(gradients, config.max_norm)
            rate = config.learning_rate * config.decay ** now["step"]
            new, now["adam"] = adam(model.parameters, gradients, now["adam"], rate)
            for name, array in model.parameters.items():
                array[...] = new[name]
            now["step"] += 1
            entries = {"loss": loss, "bits": loss / LN2, "norm": norm, "learning_rate": rate}
            for name, entry in entries.items():
                history[name].append(entry)
            display.step(loss=loss, bits=loss / LN2)
    weights = {name: array.copy() for name, array in model.parameters.items()}
    return history | {"state": now | {"weights": weights}}


def bits_per_character(model: CharLM, ids: Array) -> float:
    """The whole text at once, in float64 from the logits on."""
    if ids.ndim != 1 or len(ids) < 2:
        raise ValueError(f"ids must have one axis of 2 or more ids, got shape {ids.shape}")
    logits, _ = model.forward(ids[None, :-1])
    loss, _ = temporal_cross_entropy(logits.astype(np.float64), ids[None, 1:])
    return loss / LN2


def sample(
    model: CharLM, prompt: Array, length: int, temperature: float, rng: np.random.Generator
) -> Array:
    """Inverse transform: the first id whose cumulative probability exceeds a random number."""
    if prompt.ndim != 1 or len(prompt) == 0 or length < 0 or not 0 <= temperature < np.inf:
        raise ValueError(f"bad prompt {prompt.shape}, length {length} or temperature {temperature}")
    check_ids(prompt, len(model.parameters["embedding"]))
    ids = []
    logits, state = model.forward(prompt[None])
    while len(ids) < length:
        last = logits[0, -1].astype(np.float64)
        last -= last.max()
        if temperature == 0:
            new = int(np.flatnonzero(last == 0)[0])
        else:
            sums = np.cumsum(np.exp(last / temperature))
            new = int(np.searchsorted(sums, sums[-1] * rng.random(), side="right"))
        ids.append(new)
        logits, state = model.forward(np.array([[new]]), state)
    return np.array(ids, dtype=np.int64)
