"""Assignment 3: recurrent networks, forward and backward through time, in NumPy.

Conventions of this file:

- Shapes: sequences are (n, t, d): batch, time step, feature. Hidden states are (n, m). Vectors are
  rows: a linear layer is x @ w + b, with w of shape (inputs, outputs). Time steps count from 0.
- mask: a boolean array (n, t), or None. True is a real step, False is padding, which may be
  anywhere. At a masked step the state is carried over unchanged, its gradient passes through
  unchanged, and x gets a zero gradient. The (finite) values of x there make no difference.
- ids: integer arrays, from 0 to vocab_size - 1.
- dtype: all float arrays of a call are float32, or all are float64. Results have the same dtype.
  Losses and norms are Python floats.
- No side effects: no function changes its inputs or remembers anything between calls.
- cache: whatever the backward pass needs from the forward pass. Tests only pass it on, sometimes
  twice: a backward pass doesn't change it. It may hold the inputs themselves, but none of the
  arrays that are returned, nor views of them.
- Gradients: dx is the gradient of the loss with respect to x, in the shape of x. A backward
  function takes the gradients of the outputs and returns those of the inputs, in their order.
- Bad input raises ValueError: mismatched shapes, empty axes, masks that aren't boolean, ids that
  aren't integers or are out of range. The given checks handle this, and functions without a given
  check need none. Only what a docstring names beyond them is for you to check.
- NumPy only: no PyTorch, no SciPy.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from common.training.training_progress import TrainingDisplay

Array = np.ndarray
LN2 = float(np.log(2))  # nats per bit


def sigmoid(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Given: 1 / (1 + exp(-z)), in a form that never overflows."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def check_shapes(**arrays: tuple[Array | None, str]) -> None:
    """Given: check_shapes(x=(x, "n t d"), w=(w, "d 4m")) raises ValueError unless the shapes fit.

    Axes with the same letter must have the same length, at least 1. Arrays that are None are
    skipped.
    """
    lengths: dict[str, int] = {}
    for name, (array, axes) in arrays.items():
        if array is None:
            continue
        letters = axes.split()
        if array.ndim != len(letters):
            raise ValueError(f"{name} must have the axes ({axes}), got shape {array.shape}")
        for axis, length in zip(letters, array.shape, strict=True):
            times, letter = (int(axis[0]), axis[1:]) if axis[0].isdigit() else (1, axis)
            expected = times * lengths.setdefault(letter, length // times)
            if length == 0:
                raise ValueError(f"axis {axis} of {name} must not be empty, got {array.shape}")
            if length != expected:
                raise ValueError(
                    f"axis {axis} of {name} must have length {expected}, got shape {array.shape}"
                )


def check_mask(mask: Bool[Array, "n t"] | None) -> None:
    """Given: raise ValueError unless the mask is None or boolean."""
    if mask is not None and mask.dtype != np.bool_:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")


def check_ids(ids: Int[Array, "..."], vocab_size: float) -> None:
    """Given: raise ValueError unless the ids are integers from 0 to vocab_size - 1."""
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids must be integers, got {ids.dtype}")
    if ids.size and (ids.min() < 0 or ids.max() >= vocab_size):
        raise ValueError(
            f"ids must be between 0 and {vocab_size - 1}, got {ids.min()} to {ids.max()}"
        )


def check_same_shapes(parameters: dict[str, Array], others: dict[str, Array]) -> None:
    """Given: raise ValueError unless both dicts have the same names and the same shapes."""
    if parameters.keys() != others.keys():
        raise ValueError(f"names must be {sorted(parameters)}, got {sorted(others)}")
    for name, array in parameters.items():
        if array.shape != others[name].shape:
            raise ValueError(f"{name} must have shape {array.shape}, got {others[name].shape}")


# Exercise 3.1


def rnn_step_forward(
    x: Float[Array, "n d"],
    h: Float[Array, "n m"],
    w_xh: Float[Array, "d m"],
    w_hh: Float[Array, "m m"],
    b_h: Float[Array, " m"],
) -> tuple[Float[Array, "n m"], object]:
    """One step of a recurrent network: h_next = tanh(x @ w_xh + h @ w_hh + b_h).

    Returns (h_next, cache).
    """
    check_shapes(x=(x, "n d"), h=(h, "n m"), w_xh=(w_xh, "d m"), w_hh=(w_hh, "m m"), b_h=(b_h, "m"))
    # BEGIN SOLUTION
    h_next = np.tanh(x @ w_xh + h @ w_hh + b_h)  # (n, m)
    # The cache gets a copy: the caller may change the array that we return.
    return h_next, (x, h, w_xh, w_hh, h_next.copy())
    # END SOLUTION


def rnn_step_backward(
    dh_next: Float[Array, "n m"], cache: object
) -> tuple[
    Float[Array, "n d"],
    Float[Array, "n m"],
    Float[Array, "d m"],
    Float[Array, "m m"],
    Float[Array, " m"],
]:
    """The backward pass of rnn_step_forward. Returns (dx, dh, dw_xh, dw_hh, db_h)."""
    # BEGIN SOLUTION
    x, h, w_xh, w_hh, h_next = cache
    dz = dh_next * (1 - h_next**2)  # (n, m), tanh' = 1 - tanh^2
    return dz @ w_xh.T, dz @ w_hh.T, x.T @ dz, h.T @ dz, dz.sum(axis=0)
    # END SOLUTION


def rnn_forward(
    x: Float[Array, "n t d"],
    h0: Float[Array, "n m"],
    w_xh: Float[Array, "d m"],
    w_hh: Float[Array, "m m"],
    b_h: Float[Array, " m"],
    mask: Bool[Array, "n t"] | None = None,
) -> tuple[Float[Array, "n t m"], object]:
    """A recurrent network over whole sequences, starting from the hidden state h0.

    h[:, s] is the hidden state after time step s, so h[:, -1] is the last real state of each
    sequence (h0 if it has no real step).
    Returns (h, cache).
    """
    check_shapes(
        x=(x, "n t d"),
        h0=(h0, "n m"),
        w_xh=(w_xh, "d m"),
        w_hh=(w_hh, "m m"),
        b_h=(b_h, "m"),
        mask=(mask, "n t"),
    )
    check_mask(mask)
    # BEGIN SOLUTION
    n, t, _ = x.shape
    # The input projection doesn't depend on the state: one matrix product for all steps.
    z = x @ w_xh + b_h  # (n, t, m)
    h = np.empty((n, t, len(b_h)), dtype=x.dtype)
    h_prev = h0
    for s in range(t):
        h_next = np.tanh(z[:, s] + h_prev @ w_hh)  # (n, m)
        if mask is not None:
            h_next = np.where(mask[:, s, None], h_next, h_prev)
        h[:, s] = h_prev = h_next
    return h, (x, h0, w_xh, w_hh, mask, h.copy())
    # END SOLUTION


def rnn_backward(
    dh: Float[Array, "n t m"], cache: object
) -> tuple[
    Float[Array, "n t d"],
    Float[Array, "n m"],
    Float[Array, "d m"],
    Float[Array, "m m"],
    Float[Array, " m"],
]:
    """The backward pass of rnn_forward: backpropagation through time.

    dh: the direct gradient of the loss with respect to each h[:, s]. The part that flows back
    through later states is for you to add.
    Returns (dx, dh0, dw_xh, dw_hh, db_h).
    """
    # BEGIN SOLUTION
    x, h0, w_xh, w_hh, mask, h = cache
    n, t, m = h.shape
    h_prev = np.concatenate([h0[:, None], h[:, :-1]], axis=1)  # (n, t, m), the state before
    dz = np.empty_like(h)
    dstate = np.zeros_like(h0)  # (n, m), what flows back from later steps
    for s in reversed(range(t)):
        dstate = dstate + dh[:, s]
        dz[:, s] = dstate * (1 - h[:, s] ** 2)
        if mask is None:
            dstate = dz[:, s] @ w_hh.T
        else:
            real = mask[:, s, None]
            dz[:, s] *= real
            dstate = dz[:, s] @ w_hh.T + dstate * ~real
    # The weights are shared by all steps, so their gradients are sums over time: one product each.
    dz_flat = dz.reshape(n * t, m)
    dw_xh = x.reshape(n * t, -1).T @ dz_flat
    dw_hh = h_prev.reshape(n * t, m).T @ dz_flat
    return dz @ w_xh.T, dstate, dw_xh, dw_hh, dz_flat.sum(axis=0)
    # END SOLUTION


# Exercise 3.2


def lstm_parameters(
    rng: np.random.Generator, d: int, m: int, forget_bias: float = 1.0, dtype: str = "float32"
) -> tuple[Float[Array, "d 4*m"], Float[Array, "m 4*m"], Float[Array, " 4*m"]]:
    """Initialize an LSTM with d inputs and m cells.

    w_x and w_h: uniform on [-1 / sqrt(m), 1 / sqrt(m)], drawn from rng in any order. b: forget_bias
    for the forget gate, so that an untrained cell remembers, and 0 for the other blocks.
    Returns (w_x, w_h, b), all of the given dtype, with the blocks in lstm_step_forward's order.
    """
    # BEGIN SOLUTION
    bound = 1 / np.sqrt(m)
    w_x = rng.uniform(-bound, bound, size=(d, 4 * m)).astype(dtype)
    w_h = rng.uniform(-bound, bound, size=(m, 4 * m)).astype(dtype)
    b = np.zeros(4 * m, dtype=dtype)
    b[m : 2 * m] = forget_bias
    return w_x, w_h, b
    # END SOLUTION


def lstm_step_forward(
    x: Float[Array, "n d"],
    h: Float[Array, "n m"],
    c: Float[Array, "n m"],
    w_x: Float[Array, "d 4*m"],
    w_h: Float[Array, "m 4*m"],
    b: Float[Array, " 4*m"],
) -> tuple[Float[Array, "n m"], Float[Array, "n m"], object]:
    """One step of an LSTM.

    z = x @ w_x + h @ w_h + b has four blocks of m columns, in this order:
        input gate i = sigmoid(z_i), forget gate f = sigmoid(z_f), output gate o = sigmoid(z_o),
        candidate g = tanh(z_g).
    c_next = f * c + i * g
    h_next = o * tanh(c_next)

    (PyTorch's order is i, f, g, o.)
    Returns (h_next, c_next, cache).
    """
    check_shapes(
        x=(x, "n d"),
        h=(h, "n m"),
        c=(c, "n m"),
        w_x=(w_x, "d 4m"),
        w_h=(w_h, "m 4m"),
        b=(b, "4m"),
    )
    # BEGIN SOLUTION
    m = h.shape[1]
    z = x @ w_x + h @ w_h + b  # (n, 4*m)
    i, f, o = np.split(sigmoid(z[:, : 3 * m]), 3, axis=1)
    g = np.tanh(z[:, 3 * m :])
    c_next = f * c + i * g  # (n, m)
    tanh_c = np.tanh(c_next)
    return o * tanh_c, c_next, (x, h, c, w_x, w_h, i, f, o, g, tanh_c)
    # END SOLUTION


def lstm_step_backward(
    dh_next: Float[Array, "n m"], dc_next: Float[Array, "n m"], cache: object
) -> tuple[
    Float[Array, "n d"],
    Float[Array, "n m"],
    Float[Array, "n m"],
    Float[Array, "d 4*m"],
    Float[Array, "m 4*m"],
    Float[Array, " 4*m"],
]:
    """The backward pass of lstm_step_forward.

    dh_next, dc_next: the direct gradients of the two outputs. The part that reaches c_next through
    h_next is for you to add.
    Returns (dx, dh, dc, dw_x, dw_h, db).
    """
    # BEGIN SOLUTION
    x, h, c, w_x, w_h, i, f, o, g, tanh_c = cache
    dc_next = dc_next + dh_next * o * (1 - tanh_c**2)  # both paths to the loss
    dz = np.concatenate(
        [
            dc_next * g * i * (1 - i),
            dc_next * c * f * (1 - f),
            dh_next * tanh_c * o * (1 - o),
            dc_next * i * (1 - g**2),
        ],
        axis=1,
    )  # (n, 4*m)
    return dz @ w_x.T, dz @ w_h.T, dc_next * f, x.T @ dz, h.T @ dz, dz.sum(axis=0)
    # END SOLUTION


def lstm_forward(
    x: Float[Array, "n t d"],
    h0: Float[Array, "n m"],
    c0: Float[Array, "n m"],
    w_x: Float[Array, "d 4*m"],
    w_h: Float[Array, "m 4*m"],
    b: Float[Array, " 4*m"],
    mask: Bool[Array, "n t"] | None = None,
) -> tuple[Float[Array, "n t m"], Float[Array, "n m"], object]:
    """An LSTM over whole sequences, starting from h0 and c0. The mask applies to both h and c.

    h[:, s] is the hidden state after time step s; c_last is the cell state after the last step.
    Speed: lstm_forward and lstm_backward together take at most 4 times as long as PyTorch's nn.LSTM
    on one thread, at n = 32, t = 64, d = m = 128 in float32. (The hidden test allows 5 times.)
    Returns (h, c_last, cache).
    """
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
    # BEGIN SOLUTION
    n, t, d = x.shape
    m = h0.shape[1]
    # Time first, so that each step is contiguous in memory.
    x_flat = x.transpose(1, 0, 2).reshape(t * n, d)
    gates = (x_flat @ w_x + b).reshape(t, n, 4 * m)  # overwritten with i, f, o, g step by step
    h, c = np.empty((2, t + 1, n, m), dtype=x.dtype)  # index s is the state before step s
    h[0], c[0] = h0, c0
    tanh_c = np.empty((t, n, m), dtype=x.dtype)
    for s in range(t):
        z = gates[s]
        z += h[s] @ w_h
        z[:, : 3 * m] = sigmoid(z[:, : 3 * m])  # one call: this is why g comes last
        z[:, 3 * m :] = np.tanh(z[:, 3 * m :])
        i, f, o, g = (z[:, k * m : (k + 1) * m] for k in range(4))
        c[s + 1] = f * c[s] + i * g
        tanh_c[s] = np.tanh(c[s + 1])
        h[s + 1] = o * tanh_c[s]
        if mask is not None:
            padding = ~mask[:, s]
            h[s + 1][padding] = h[s][padding]
            c[s + 1][padding] = c[s][padding]
    cache = x_flat, h, c, gates, tanh_c, w_x, w_h, mask
    return h[1:].transpose(1, 0, 2).copy(), c[-1].copy(), cache
    # END SOLUTION


def lstm_backward(
    dh: Float[Array, "n t m"], dc_last: Float[Array, "n m"], cache: object
) -> tuple[
    Float[Array, "n t d"],
    Float[Array, "n m"],
    Float[Array, "n m"],
    Float[Array, "d 4*m"],
    Float[Array, "m 4*m"],
    Float[Array, " 4*m"],
]:
    """The backward pass of lstm_forward.

    dh: the direct gradient of the loss with respect to each h[:, s]. dc_last: the same for c_last;
    zeros if the loss doesn't depend on it directly.
    Returns (dx, dh0, dc0, dw_x, dw_h, db).
    """
    # BEGIN SOLUTION
    x_flat, h, c, gates, tanh_c, w_x, w_h, mask = cache
    t, n, m = tanh_c.shape
    dz = np.empty_like(gates)  # (t, n, 4*m)
    dstate, dcell = np.zeros_like(dc_last), dc_last
    for s in reversed(range(t)):
        i, f, o, g = (gates[s, :, k * m : (k + 1) * m] for k in range(4))
        dstate = dstate + dh[:, s]
        dnew = dcell + dstate * o * (1 - tanh_c[s] ** 2)
        dz[s, :, :m] = dnew * g * i * (1 - i)
        dz[s, :, m : 2 * m] = dnew * c[s] * f * (1 - f)
        dz[s, :, 2 * m : 3 * m] = dstate * tanh_c[s] * o * (1 - o)
        dz[s, :, 3 * m :] = dnew * i * (1 - g**2)
        if mask is None:
            dstate, dcell = dz[s] @ w_h.T, dnew * f
        else:
            real = mask[:, s, None]
            dz[s] *= real
            dstate = dz[s] @ w_h.T + dstate * ~real
            dcell = np.where(real, dnew * f, dcell)
    dz = dz.reshape(t * n, 4 * m)
    dx = (dz @ w_x.T).reshape(t, n, -1).transpose(1, 0, 2)  # (n, t, d)
    dw_x = x_flat.T @ dz
    dw_h = h[:-1].reshape(t * n, m).T @ dz
    return dx, dstate, dcell, dw_x, dw_h, dz.sum(axis=0)
    # END SOLUTION


# Exercise 3.3


def gru_step_forward(
    x: Float[Array, "n d"],
    h: Float[Array, "n m"],
    w_x: Float[Array, "d 3*m"],
    w_h: Float[Array, "m 3*m"],
    b_x: Float[Array, " 3*m"],
    b_h: Float[Array, " 3*m"],
) -> tuple[Float[Array, "n m"], object]:
    """One step of a GRU, as in PyTorch: the reset gate is applied after the matrix product.

    a = x @ w_x + b_x and u = h @ w_h + b_h have three blocks of m columns, in this order:
        reset gate r = sigmoid(a_r + u_r), update gate z = sigmoid(a_z + u_z),
        candidate g = tanh(a_g + r * u_g), which PyTorch calls n.
    h_next = (1 - z) * g + z * h

    Returns (h_next, cache).
    """
    check_shapes(
        x=(x, "n d"),
        h=(h, "n m"),
        w_x=(w_x, "d 3m"),
        w_h=(w_h, "m 3m"),
        b_x=(b_x, "3m"),
        b_h=(b_h, "3m"),
    )
    # BEGIN SOLUTION
    a_r, a_z, a_g = np.split(x @ w_x + b_x, 3, axis=1)  # (n, m) each
    u_r, u_z, u_g = np.split(h @ w_h + b_h, 3, axis=1)
    r, z = sigmoid(a_r + u_r), sigmoid(a_z + u_z)
    g = np.tanh(a_g + r * u_g)
    h_next = (1 - z) * g + z * h
    return h_next, (x, h, w_x, w_h, r, z, g, u_g)
    # END SOLUTION


def gru_step_backward(
    dh_next: Float[Array, "n m"], cache: object
) -> tuple[
    Float[Array, "n d"],
    Float[Array, "n m"],
    Float[Array, "d 3*m"],
    Float[Array, "m 3*m"],
    Float[Array, " 3*m"],
    Float[Array, " 3*m"],
]:
    """The backward pass of gru_step_forward. Returns (dx, dh, dw_x, dw_h, db_x, db_h)."""
    # BEGIN SOLUTION
    x, h, w_x, w_h, r, z, g, u_g = cache
    da_g = dh_next * (1 - z) * (1 - g**2)
    da_z = dh_next * (h - g) * z * (1 - z)
    da_r = da_g * u_g * r * (1 - r)
    # a and u have the same gradient, except in the candidate, where u_g is multiplied by r.
    da = np.concatenate([da_r, da_z, da_g], axis=1)  # (n, 3*m)
    du = np.concatenate([da_r, da_z, da_g * r], axis=1)
    dh = dh_next * z + du @ w_h.T
    return da @ w_x.T, dh, x.T @ da, h.T @ du, da.sum(axis=0), du.sum(axis=0)
    # END SOLUTION


# Exercise 3.4


def embedding_forward(
    ids: Int[Array, "n t"], table: Float[Array, "v e"]
) -> tuple[Float[Array, "n t e"], object]:
    """Look up a vector for each id: out[i, s] = table[ids[i, s]]. Returns (out, cache)."""
    check_shapes(ids=(ids, "n t"), table=(table, "v e"))
    check_ids(ids, len(table))
    # BEGIN SOLUTION
    return table[ids], (ids, table.shape)
    # END SOLUTION


def embedding_backward(dout: Float[Array, "n t e"], cache: object) -> Float[Array, "v e"]:
    """The backward pass of embedding_forward: a repeated id gets the sum of its gradients.

    Returns dtable, in the dtype of dout; rows of ids that don't occur are zero.
    """
    # BEGIN SOLUTION
    ids, shape = cache
    dtable = np.zeros(shape, dtype=dout.dtype)
    np.add.at(dtable, ids, dout)  # dtable[ids] += dout would count repeated ids once
    return dtable
    # END SOLUTION


def temporal_cross_entropy(
    logits: Float[Array, "n t v"],
    targets: Int[Array, "n t"],
    mask: Bool[Array, "n t"] | None = None,
) -> tuple[float, Float[Array, "n t v"]]:
    """The mean of -log softmax(logits)[target] over all unmasked positions, in nats.

    Every unmasked position has the same weight, whatever the length of its sequence. Stable for
    logits of any finite size, such as 1e4. Targets at masked positions may be any integer, such as
    -1. If all positions are masked, the loss is 0.0 and dlogits is all zeros.
    Returns (loss, dlogits); dlogits is zero at masked positions.
    """
    check_shapes(logits=(logits, "n t v"), targets=(targets, "n t"), mask=(mask, "n t"))
    check_mask(mask)
    mask = np.ones(targets.shape, dtype=bool) if mask is None else mask
    check_ids(targets[mask], logits.shape[2])
    # BEGIN SOLUTION
    count = max(int(mask.sum()), 1)
    targets = np.where(mask, targets, 0)[:, :, None]  # (n, t, 1)
    shifted = logits - logits.max(axis=2, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=2, keepdims=True))  # (n, t, v)
    picked = np.take_along_axis(log_p, targets, axis=2)[:, :, 0]  # (n, t)
    loss = -float(picked[mask].sum()) / count

    dlogits = np.exp(log_p)
    np.put_along_axis(dlogits, targets, np.take_along_axis(dlogits, targets, axis=2) - 1, axis=2)
    dlogits *= mask[:, :, None] / dlogits.dtype.type(count)
    return loss, dlogits
    # END SOLUTION


# Exercise 3.5


def clip_by_global_norm(
    gradients: dict[str, Float[Array, "..."]], max_norm: float
) -> tuple[dict[str, Float[Array, "..."]], float]:
    """Scale all gradients by one factor, so that their global norm is at most max_norm.

    norm: the square root of the sum of squares of all entries of all arrays, before clipping,
    summed in float64. If it is above max_norm, all gradients are multiplied by max_norm / norm;
    otherwise they are unchanged.
    Returns (a new dict of gradients, norm). Raises ValueError unless max_norm is above 0 and the
    norm is finite. (In float64, squares of entries above 1e154 overflow: that norm isn't finite.)
    """
    # BEGIN SOLUTION
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}")
    squares = [np.sum(np.square(gradient, dtype=np.float64)) for gradient in gradients.values()]
    norm = float(np.sqrt(np.sum(squares)))
    if not np.isfinite(norm):
        raise ValueError(f"the norm of the gradients must be finite, got {norm}")
    scale = max_norm / norm if norm > max_norm else 1.0
    return {name: gradient * float(scale) for name, gradient in gradients.items()}, norm
    # END SOLUTION


def make_windows(
    ids: Int[Array, " length"], batch_size: int, context_length: int
) -> tuple[
    Int[Array, "count batch_size context_length"], Int[Array, "count batch_size context_length"]
]:
    """Split a long text into batch_size parallel streams, and each into windows.

    A window has context_length ids. There are count = (length - 1) // (batch_size * context_length)
    windows, so each stream has count * context_length ids. Stream b starts at
    ids[b * count * context_length], and its window k starts where its window k - 1 ends, so that a
    state can be carried from window to window. Ids left over at the end are dropped.

    inputs[k, b]: the ids of window k of stream b. targets[k, b]: the next id of each of them.
    Returns (inputs, targets), in the dtype of ids. Raises ValueError if batch_size or
    context_length is below 1, or if the text is too short for one window.
    """
    check_shapes(ids=(ids, "length"))
    check_ids(ids, np.inf)
    if batch_size < 1 or context_length < 1:
        raise ValueError(
            f"batch_size and context_length must be at least 1, got {batch_size}, {context_length}"
        )
    if len(ids) <= batch_size * context_length:
        raise ValueError(
            f"ids must have more than batch_size * context_length = {batch_size * context_length} "
            f"entries, got {len(ids)}"
        )
    # BEGIN SOLUTION
    count = (len(ids) - 1) // (batch_size * context_length)
    used = batch_size * count * context_length
    shape = (batch_size, count, context_length)
    inputs = ids[:used].reshape(shape).transpose(1, 0, 2)  # (count, batch_size, context_length)
    targets = ids[1 : used + 1].reshape(shape).transpose(1, 0, 2)
    return inputs.copy(), targets.copy()
    # END SOLUTION


def truncated_bptt(
    x: Float[Array, "n t d"],
    dh: Float[Array, "n t m"],
    h0: Float[Array, "n m"],
    w_xh: Float[Array, "d m"],
    w_hh: Float[Array, "m m"],
    b_h: Float[Array, " m"],
    context_length: int,
) -> tuple[
    Float[Array, "n t m"],
    Float[Array, "n t d"],
    Float[Array, "d m"],
    Float[Array, "m m"],
    Float[Array, " m"],
]:
    """Truncated backpropagation through time, for the network of 3.1.

    The sequence is split into windows of context_length steps; the last may be shorter. The hidden
    state is carried from window to window, so h equals rnn_forward's for the whole sequence. The
    gradient is not: a window's initial state counts as a constant. The gradients of the weights are
    summed over the windows.

    dh: the direct gradient of the loss with respect to each h[:, s].
    Returns (h, dx, dw_xh, dw_hh, db_h). Raises ValueError if context_length is below 1.
    """
    check_shapes(
        x=(x, "n t d"),
        dh=(dh, "n t m"),
        h0=(h0, "n m"),
        w_xh=(w_xh, "d m"),
        w_hh=(w_hh, "m m"),
        b_h=(b_h, "m"),
    )
    if context_length < 1:
        raise ValueError(f"context_length must be at least 1, got {context_length}")
    # BEGIN SOLUTION
    h, dx = np.empty_like(dh), np.empty_like(x)
    dw_xh, dw_hh, db_h = np.zeros_like(w_xh), np.zeros_like(w_hh), np.zeros_like(b_h)
    state = h0
    for start in range(0, x.shape[1], context_length):
        steps = slice(start, start + context_length)
        h[:, steps], cache = rnn_forward(x[:, steps], state, w_xh, w_hh, b_h)
        state = h[:, steps][:, -1]
        # The gradient of the window's initial state is dropped: that is the truncation.
        dx[:, steps], _, *dweights = rnn_backward(dh[:, steps], cache)
        dw_xh, dw_hh, db_h = dw_xh + dweights[0], dw_hh + dweights[1], db_h + dweights[2]
    return h, dx, dw_xh, dw_hh, db_h
    # END SOLUTION


# Exercise 3.6


def gradient_norms_through_time(
    cell: str, x: Float[Array, "t d"], state: tuple[Array, ...], weights: tuple[Array, ...]
) -> Float[Array, " t+1"]:
    """How strongly the last hidden state of one sequence depends on each earlier one.

    cell: "rnn" with state (h0,) and weights (w_xh, w_hh, b_h), or "lstm" with state (h0, c0) and
        weights (w_x, w_h, b). h0 and c0 have shape (m,). Anything else raises ValueError.
    h_s is the hidden state after s steps, so h_0 = h0, and h_t is the last. J_s is the (m, m)
    Jacobian of h_t with respect to h_s, through all later steps. For the LSTM, c_s itself is held
    fixed, but the later cell states depend on h_s.

    Returns norms of shape (t + 1,): norms[s] is the spectral norm of J_s, its largest singular
    value. norms[t] is 1, because J_t is the identity.

    Use the step functions of 3.1 and 3.2. A backward step turns row k of dh_next into row k of dh,
    so a batch of m copies of the sequence carries all m rows of the Jacobian at once.
    """
    if (cell, len(state), len(weights)) not in (("rnn", 1, 3), ("lstm", 2, 3)):
        raise ValueError(
            f"expected cell 'rnn' with 1 state and 3 weights, or 'lstm' with 2 and 3, "
            f"got {cell!r} with {len(state)} and {len(weights)}"
        )
    check_shapes(x=(x, "t d"), **{f"state {k}": (part, "m") for k, part in enumerate(state)})
    # BEGIN SOLUTION
    m = len(state[0])
    step_forward = rnn_step_forward if cell == "rnn" else lstm_step_forward
    step_backward = rnn_step_backward if cell == "rnn" else lstm_step_backward

    states = [np.tile(part, (m, 1)) for part in state]  # (m, m): a batch of m copies
    caches = []
    for x_s in x:
        *states, cache = step_forward(np.tile(x_s, (m, 1)), *states, *weights)
        caches.append(cache)

    jacobian = np.eye(m, dtype=x.dtype)
    dstates = [jacobian, *(np.zeros_like(part) for part in states[1:])]  # for h_t, and c_t
    norms = [np.linalg.norm(jacobian, 2)]
    for cache in reversed(caches):
        _, *gradients = step_backward(*dstates, cache)
        dstates = gradients[: len(state)]
        norms.append(np.linalg.norm(dstates[0], 2))
    return np.array(norms[::-1], dtype=x.dtype)
    # END SOLUTION


# Exercise 3.7

State = tuple[Float[Array, "n m"], Float[Array, "n m"]]


class CharLM:
    """A character-level language model: embedding, LSTM, and a linear layer to the logits.

    model.parameters is a dict with these names:
        "embedding" (vocab_size, embedding_size): standard normal
        "w_x" (embedding_size, 4 * hidden_size), "w_h" (hidden_size, 4 * hidden_size),
            "b" (4 * hidden_size,): from lstm_parameters with its default forget bias
        "w_out" (hidden_size, vocab_size): uniform on [-1 / sqrt(hidden_size),
            1 / sqrt(hidden_size)]
        "b_out" (vocab_size,): zeros
    All have the given dtype; the order of the draws is free. Every method reads model.parameters
    when it is called, so a change there, in place or not, takes effect at once; the model keeps
    nothing else that changes.

    A state is a tuple (h, c) of arrays (n, hidden_size). None stands for zeros.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        vocab_size: int,
        embedding_size: int,
        hidden_size: int,
        dtype: str = "float32",
    ) -> None:
        # BEGIN SOLUTION
        bound = 1 / np.sqrt(hidden_size)
        w_x, w_h, b = lstm_parameters(rng, embedding_size, hidden_size, dtype=dtype)
        self.parameters = {
            "embedding": rng.normal(size=(vocab_size, embedding_size)).astype(dtype),
            "w_x": w_x,
            "w_h": w_h,
            "b": b,
            "w_out": rng.uniform(-bound, bound, size=(hidden_size, vocab_size)).astype(dtype),
            "b_out": np.zeros(vocab_size, dtype=dtype),
        }
        # END SOLUTION

    def zero_state(self, n: int) -> State:
        """Given: the state before the first character, zeros."""
        w_out = self.parameters["w_out"]
        zeros = np.zeros((n, w_out.shape[0]), dtype=w_out.dtype)
        return zeros, zeros.copy()

    def forward(
        self, ids: Int[Array, "n t"], state: State | None = None
    ) -> tuple[Float[Array, "n t v"], State]:
        """Read ids, starting from a state. Returns (logits, the state after the last id).

        logits[i, s] are those of the id after ids[i, s]; they depend on ids[i, :s + 1] and state.
        """
        # BEGIN SOLUTION
        p = self.parameters
        x, _ = embedding_forward(ids, p["embedding"])  # (n, t, e)
        h0, c0 = self.zero_state(len(ids)) if state is None else state
        h, c_last, _ = lstm_forward(x, h0, c0, p["w_x"], p["w_h"], p["b"])  # (n, t, m)
        return h @ p["w_out"] + p["b_out"], (h[:, -1], c_last)
        # END SOLUTION

    def loss_and_gradients(
        self, ids: Int[Array, "n t"], targets: Int[Array, "n t"], state: State | None = None
    ) -> tuple[float, dict[str, Array], State]:
        """The mean cross-entropy of the targets, in nats, and its gradients.

        The initial state counts as a constant: no gradient flows into the previous window.
        Returns (loss, gradients with the names and shapes of the parameters, the state after the
        last id).
        """
        # BEGIN SOLUTION
        p = self.parameters
        x, embedding_cache = embedding_forward(ids, p["embedding"])  # (n, t, e)
        h0, c0 = self.zero_state(len(ids)) if state is None else state
        h, c_last, lstm_cache = lstm_forward(x, h0, c0, p["w_x"], p["w_h"], p["b"])  # (n, t, m)
        logits = h @ p["w_out"] + p["b_out"]  # (n, t, v)
        loss, dlogits = temporal_cross_entropy(logits, targets)

        h_flat = h.reshape(-1, h.shape[2])  # (n * t, m)
        dlogits_flat = dlogits.reshape(-1, logits.shape[2])  # (n * t, v)
        dh = dlogits @ p["w_out"].T  # (n, t, m)
        dx, _, _, dw_x, dw_h, db = lstm_backward(dh, np.zeros_like(c_last), lstm_cache)
        gradients = {
            "embedding": embedding_backward(dx, embedding_cache),
            "w_x": dw_x,
            "w_h": dw_h,
            "b": db,
            "w_out": h_flat.T @ dlogits_flat,
            "b_out": dlogits_flat.sum(axis=0),
        }
        return loss, gradients, (h[:, -1], c_last)
        # END SOLUTION


@dataclass(frozen=True)
class TrainConfig:
    """Given: how to train. Build it with keywords: TrainConfig(steps=100, learning_rate=0.01)."""

    steps: int = 800  # updates in total, including those before a resumed run
    batch_size: int = 32  # parallel streams
    context_length: int = 32  # characters of each stream in one step
    learning_rate: float = 0.02  # of step 1
    decay: float = 0.9975  # step t has the learning rate learning_rate * decay ** (t - 1)
    max_norm: float = 1.0  # the gradients' global norm is clipped to this

    def __post_init__(self) -> None:
        """Raise ValueError if a setting is invalid."""
        for name, least in (("steps", 0), ("batch_size", 1), ("context_length", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        for name in ("learning_rate", "decay", "max_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.decay > 1:
            raise ValueError(f"decay must be at most 1, got {self.decay}")


def adam(
    parameters: dict[str, Array],
    gradients: dict[str, Array],
    state: dict | None,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[dict[str, Array], dict]:
    """Given: one step of Adam. Returns (new parameters, new state); the initial state is None."""
    if state is None:
        zeros = {name: np.zeros_like(array) for name, array in parameters.items()}
        state = {"step": 0, "mean": zeros, "square": zeros}
    step = state["step"] + 1
    mean, square, updated = {}, {}, {}
    for name, gradient in gradients.items():
        mean[name] = beta1 * state["mean"][name] + (1 - beta1) * gradient
        square[name] = beta2 * state["square"][name] + (1 - beta2) * gradient**2
        size = np.sqrt(square[name] / (1 - beta2**step)) + epsilon
        updated[name] = parameters[name] - learning_rate / (1 - beta1**step) * mean[name] / size
    return updated, {"step": step, "mean": mean, "square": square}


def train(
    model: CharLM, text_ids: Int[Array, " length"], config: TrainConfig, state: object = None
) -> dict:
    """Train a model on a text by truncated backpropagation through time.

    Step t = 1, 2, ..., config.steps reads window (t - 1) % count of make_windows(text_ids,
    config.batch_size, config.context_length). It starts from the streams' state after the previous
    step, or from zeros at window 0 of each pass over the text. Its gradients are clipped to
    config.max_norm, and adam applies them to model.parameters, with the learning rate
    config.learning_rate * config.decay ** (t - 1).

    Shows its progress with TrainingDisplay:
        with TrainingDisplay(steps_of_this_call, title="...") as display:
            display.step(loss=loss, bits=bits)  # once per step

    Returns history, a dict of lists with one entry for each step of this call:
        "loss": the loss of the step's window before the update, in nats
        "bits": the same in bits per character
        "norm": the norm of the gradients before clipping
        "learning_rate"
    and with "state": plain data (dicts, lists and tuples of arrays, numbers, strings and None) that
    resumes training when passed as `state`: copies of all that the next step needs, the weights
    included. Given a state, train first loads its weights into model.parameters. So a new model of
    the same sizes, with the same text and the same config with a larger `steps`, gives exactly the
    numbers of an uninterrupted run. Neither using a state nor further training changes it. If the
    state has done config.steps or more, train takes no step, and the lists are empty.

    Raises ValueError, naming the step t, if the loss is not finite; and if the weights in the state
    don't fit the model (check_same_shapes). The other arrays of the state need no check.
    """
    # BEGIN SOLUTION
    inputs, targets = make_windows(text_ids, config.batch_size, config.context_length)
    done, hidden, optimizer = 0, None, None
    if state is not None:
        check_same_shapes(model.parameters, state["parameters"])
        done, hidden, optimizer = state["step"], state["hidden"], state["optimizer"]
        model.parameters.update({name: a.copy() for name, a in state["parameters"].items()})
    steps = range(done + 1, config.steps + 1)
    history = {"loss": [], "bits": [], "norm": [], "learning_rate": []}
    with TrainingDisplay(len(steps), title="language model") as display:
        for step in steps:
            window = (step - 1) % len(inputs)
            if window == 0:  # a new pass: every stream is back at its start
                hidden = None
            loss, gradients, hidden = model.loss_and_gradients(
                inputs[window], targets[window], hidden
            )
            if not np.isfinite(loss):
                raise ValueError(f"the loss must be finite, got {loss} at step {step}")
            gradients, norm = clip_by_global_norm(gradients, config.max_norm)
            learning_rate = config.learning_rate * config.decay ** (step - 1)
            updated, optimizer = adam(model.parameters, gradients, optimizer, learning_rate)
            model.parameters.update(updated)

            history["loss"].append(loss)
            history["bits"].append(loss / LN2)
            history["norm"].append(norm)
            history["learning_rate"].append(learning_rate)
            display.step(loss=loss, bits=loss / LN2)
    history["state"] = {
        "step": done + len(steps),
        "hidden": hidden,
        "optimizer": optimizer,
        "parameters": {name: array.copy() for name, array in model.parameters.items()},
    }
    return history
    # END SOLUTION


def bits_per_character(model: CharLM, ids: Int[Array, " length"]) -> float:
    """The cross-entropy of a text in bits per character; 2**bits is the perplexity.

    The mean of -log2 p(ids[k + 1] | ids[0], ..., ids[k]) for k = 0 .. length - 2. The model reads
    the text as one stream, from the zero state.
    Raises ValueError if there are fewer than 2 ids.
    """
    if ids.ndim != 1 or len(ids) < 2:
        raise ValueError(f"ids must have one axis of 2 or more ids, got shape {ids.shape}")
    # BEGIN SOLUTION
    nats, state = 0.0, None
    for start in range(0, len(ids) - 1, 1000):  # in pieces, so that any text fits in memory
        piece = ids[None, start : start + 1001]  # (1, at most 1001)
        logits, state = model.forward(piece[:, :-1], state)
        loss, _ = temporal_cross_entropy(logits, piece[:, 1:])
        nats += loss * logits.shape[1]
    return nats / (len(ids) - 1) / LN2
    # END SOLUTION


def sample(
    model: CharLM,
    prompt: Int[Array, " p"],
    length: int,
    temperature: float,
    rng: np.random.Generator,
) -> Int[Array, " length"]:
    """Sample a continuation: read the prompt from the zero state, then draw `length` new ids.

    Each new id is drawn from softmax(logits / temperature), and read before the next is drawn.
    Temperature 0 is greedy: it takes the id with the highest logit, the lowest id on a tie, and
    doesn't use rng. Every temperature above 0 works, even 1e-6.
    Returns the new ids, int64, without the prompt. Raises ValueError if the prompt is empty,
    length is below 0, or temperature is below 0 or not finite.
    """
    check_shapes(prompt=(prompt, "p"))
    check_ids(prompt, len(model.parameters["embedding"]))
    if length < 0:
        raise ValueError(f"length must be at least 0, got {length}")
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    # BEGIN SOLUTION
    ids = np.empty(length, dtype=np.int64)
    unread, state = prompt, None
    for k in range(length):
        logits, state = model.forward(unread[None], state)
        last = logits[0, -1].astype(np.float64)  # (v,)
        if temperature == 0:
            ids[k] = last.argmax()
        else:
            # Subtract the largest logit first: the division may make them huge.
            p = np.exp((last - last.max()) / temperature)
            ids[k] = rng.choice(len(p), p=p / p.sum())
        unread = ids[k : k + 1]
    return ids
    # END SOLUTION
