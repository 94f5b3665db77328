"""Assignment 3 with objects: a cache is an instance of a class that knows its own backward pass.

Weights are cut into one matrix for each gate. At each step only the rows that are real are worked
on. The embedding is a product with a one-hot matrix, and sampling adds Gumbel noise to the scores.
"""

from dataclasses import dataclass

import numpy as np

from common.training.training_progress import TrainingDisplay

Array = np.ndarray
State = tuple[Array, Array]
LN2 = float(np.log(2))


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z)), written so that no z overflows."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def check_shapes(**arrays: tuple[Array | None, str]) -> None:
    """check_shapes(x=(x, "n t d"), w=(w, "d 4m")) raises ValueError unless the shapes fit.

    Axes with the same letter have the same length, at least 1. None stands for "not there".
    """
    lengths: dict[str, int] = {}
    for name, (array, axes) in arrays.items():
        if array is None:
            continue
        letters = axes.split()
        if array.ndim != len(letters):
            raise ValueError(f"{name} has shape {array.shape}, but its axes are ({axes})")
        for axis, length in zip(letters, array.shape, strict=True):
            times, letter = (int(axis[0]), axis[1:]) if axis[0].isdigit() else (1, axis)
            expected = times * lengths.setdefault(letter, length // times)
            if length != expected or length == 0:
                raise ValueError(f"{name} has shape {array.shape}: its axis {axis} doesn't fit")


def check_mask(mask: Array | None) -> None:
    """Raise ValueError unless the mask is None or of bool."""
    if mask is not None and mask.dtype != np.bool_:
        raise ValueError(f"a mask is of bool, not of {mask.dtype}")


def check_same_shapes(parameters: dict[str, Array], others: dict[str, Array]) -> None:
    """Raise ValueError unless both dicts have the same names, with arrays of one shape."""
    if parameters.keys() != others.keys():
        raise ValueError(f"the names differ: {sorted(parameters)} and {sorted(others)}")
    for name, array in parameters.items():
        if array.shape != others[name].shape:
            raise ValueError(f"{name} has two shapes: {array.shape} and {others[name].shape}")


def check_ids(ids: Array, vocabulary: float) -> None:
    """Raise ValueError unless the ids are integers from 0 to vocabulary - 1."""
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids are integers, not {ids.dtype}")
    if ids.size and (ids.min() < 0 or ids.max() >= vocabulary):
        raise ValueError(f"ids lie between 0 and {vocabulary - 1}, got {ids.min()} to {ids.max()}")


def one_hot(ids: Array, size: int, dtype: np.dtype) -> Array:
    """(k,) ids as (k, size) rows with a single 1."""
    rows = np.zeros((len(ids), size), dtype=dtype)
    rows[np.arange(len(ids)), ids] = 1
    return rows


def split_gates(array: Array, count: int) -> Array:
    """(..., count*m) as (count, ..., m)."""
    return np.stack(np.split(array, count, axis=-1))


def join_gates(gates: Array) -> Array:
    """(count, ..., m) as (..., count*m)."""
    return np.concatenate(list(gates), axis=-1)


def all_real(x: Array, mask: Array | None) -> Array:
    """The mask; without one, every step is real."""
    return np.ones(x.shape[:2], dtype=bool) if mask is None else mask


# Exercise 3.1


@dataclass(frozen=True)
class RnnStep:
    """One step, and what its backward pass needs."""

    x: Array
    h: Array
    w_xh: Array
    w_hh: Array
    h_next: Array

    def backward(self, dh_next: Array) -> tuple[Array, Array, Array, Array, Array]:
        """(dx, dh, dw_xh, dw_hh, db_h)."""
        dz = (1 - self.h_next) * (1 + self.h_next) * dh_next
        return dz @ self.w_xh.T, dz @ self.w_hh.T, self.x.T @ dz, self.h.T @ dz, dz.sum(axis=0)


def rnn_step_forward(
    x: Array, h: Array, w_xh: Array, w_hh: Array, b_h: Array
) -> tuple[Array, object]:
    """(h_next, RnnStep)."""
    check_shapes(x=(x, "n d"), h=(h, "n m"), w_xh=(w_xh, "d m"), w_hh=(w_hh, "m m"), b_h=(b_h, "m"))
    h_next = np.tanh(np.hstack([x, h]) @ np.vstack([w_xh, w_hh]) + b_h)
    return h_next, RnnStep(x, h, w_xh, w_hh, h_next)


def rnn_step_backward(dh_next: Array, cache: object) -> tuple[Array, Array, Array, Array, Array]:
    """(dx, dh, dw_xh, dw_hh, db_h)."""
    return cache.backward(dh_next)


class RnnRun:
    """A recurrent network on its way through sequences."""

    def __init__(self, x: Array, h0: Array, weights: tuple[Array, ...], mask: Array | None) -> None:
        self.x, self.h0 = x, h0
        self.w_xh, self.w_hh, self.b_h = weights
        self.mask = all_real(x, mask)
        self.h = np.empty((*x.shape[:2], len(self.b_h)), dtype=x.dtype)
        for s in range(x.shape[1]):
            self.h[:, s] = self.before(s)
            real = np.flatnonzero(self.mask[:, s])
            z = x[real, s] @ self.w_xh + self.before(s)[real] @ self.w_hh + self.b_h
            self.h[real, s] = np.tanh(z)

    def before(self, s: int) -> Array:
        """The state that step s starts from."""
        return self.h[:, s - 1] if s else self.h0

    def backward(self, dh: Array, window: int) -> tuple[Array, Array, Array, Array, Array]:
        """(dx, dh0, dw_xh, dw_hh, db_h); no gradient crosses from one window to the one before."""
        dx = np.zeros_like(self.x)
        dw_xh, dw_hh = np.zeros_like(self.w_xh), np.zeros_like(self.w_hh)
        db_h, dstate = np.zeros_like(self.b_h), np.zeros_like(self.h0)
        for s in reversed(range(dh.shape[1])):
            dstate += dh[:, s]
            real = np.flatnonzero(self.mask[:, s])
            dz = dstate[real] * (1 - self.h[real, s] ** 2)
            dx[real, s] = dz @ self.w_xh.T
            dw_xh += self.x[real, s].T @ dz
            dw_hh += self.before(s)[real].T @ dz
            db_h += dz.sum(axis=0)
            dstate[real] = dz @ self.w_hh.T
            if s and s % window == 0:
                dstate[...] = 0
        return dx, dstate, dw_xh, dw_hh, db_h


def rnn_forward(
    x: Array, h0: Array, w_xh: Array, w_hh: Array, b_h: Array, mask: Array | None = None
) -> tuple[Array, object]:
    """(h, RnnRun)."""
    check_shapes(
        x=(x, "n t d"),
        h0=(h0, "n m"),
        w_xh=(w_xh, "d m"),
        w_hh=(w_hh, "m m"),
        b_h=(b_h, "m"),
        mask=(mask, "n t"),
    )
    check_mask(mask)
    run = RnnRun(x, h0, (w_xh, w_hh, b_h), mask)
    return run.h.copy(), run


def rnn_backward(dh: Array, cache: object) -> tuple[Array, Array, Array, Array, Array]:
    """(dx, dh0, dw_xh, dw_hh, db_h)."""
    return cache.backward(dh, window=dh.shape[1])


# Exercise 3.2


def lstm_parameters(
    rng: np.random.Generator, d: int, m: int, forget_bias: float = 1.0, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """Gate by gate."""
    scale = m**-0.5
    w_x = np.hstack([rng.uniform(-scale, scale, size=(d, m)) for _ in range(4)])
    w_h = np.hstack([rng.uniform(-scale, scale, size=(m, m)) for _ in range(4)])
    b = np.repeat([0, forget_bias, 0, 0], m)
    return w_x.astype(dtype), w_h.astype(dtype), b.astype(dtype)


class LstmCell:
    """The weights of an LSTM, one matrix for each gate."""

    def __init__(self, w_x: Array, w_h: Array, b: Array) -> None:
        self.w_x, self.w_h, self.b = (split_gates(array, 4) for array in (w_x, w_h, b))

    def step(self, x: Array, h: Array, c: Array) -> "LstmStep":
        """Everything about one step."""
        z = x @ self.w_x + h @ self.w_h + self.b[:, None]  # (4, n, m)
        i, f, o = sigmoid(z[:3])
        return LstmStep(self, x, h, c, i, f, o, np.tanh(z[3]))


class LstmStep:
    """One step of an LSTM: the gates, what came in and what goes out."""

    def __init__(self, cell: LstmCell, x: Array, h: Array, c: Array, *gates: Array) -> None:
        self.cell, self.x, self.h, self.c = cell, x, h, c
        self.i, self.f, self.o, self.g = gates
        self.c_next = self.f * c + self.i * self.g
        self.tanh_c = np.tanh(self.c_next)
        self.h_next = self.o * self.tanh_c

    def slopes(self, dh_next: Array, dc_next: Array) -> tuple[Array, Array]:
        """The gradients of the four sums that go into the gates (4, n, m), and of c."""
        i, f, o, g = self.i, self.f, self.o, self.g
        dc = dc_next + dh_next * (o - self.h_next * self.tanh_c)
        dz = [dc * g * i * (1 - i), dc * self.c * f * (1 - f)]
        dz += [dh_next * self.h_next * (1 - o), dc * i * (1 - g) * (1 + g)]
        return np.stack(dz), dc * f

    def backward(self, dh_next: Array, dc_next: Array) -> tuple[Array, ...]:
        """(dx, dh, dc, dw_x, dw_h, db)."""
        dz, dc = self.slopes(dh_next, dc_next)
        dx = (dz @ self.cell.w_x.transpose(0, 2, 1)).sum(axis=0)
        dh = (dz @ self.cell.w_h.transpose(0, 2, 1)).sum(axis=0)
        weights = self.x.T @ dz, self.h.T @ dz, dz.sum(axis=1)
        return dx, dh, dc, *(join_gates(array) for array in weights)


def lstm_step_forward(
    x: Array, h: Array, c: Array, w_x: Array, w_h: Array, b: Array
) -> tuple[Array, Array, object]:
    """(h_next, c_next, LstmStep)."""
    check_shapes(
        x=(x, "n d"),
        h=(h, "n m"),
        c=(c, "n m"),
        w_x=(w_x, "d 4m"),
        w_h=(w_h, "m 4m"),
        b=(b, "4m"),
    )
    step = LstmCell(w_x, w_h, b).step(x, h, c)
    return step.h_next, step.c_next, step


def lstm_step_backward(
    dh_next: Array, dc_next: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """(dx, dh, dc, dw_x, dw_h, db)."""
    return cache.backward(dh_next, dc_next)


class LstmRun:
    """An LSTM on its way through sequences: a list of steps, each with its real rows."""

    def __init__(
        self, x: Array, h0: Array, c0: Array, weights: tuple[Array, ...], mask: Array | None
    ) -> None:
        self.x, self.cell, self.steps = x, LstmCell(*weights), []
        self.real = [np.flatnonzero(column) for column in all_real(x, mask).T]
        self.h = np.empty((*x.shape[:2], h0.shape[1]), dtype=x.dtype)
        h, self.c = h0.copy(), c0.copy()
        for s, real in enumerate(self.real):
            step = self.cell.step(x[real, s], h[real], self.c[real])
            h[real], self.c[real] = step.h_next, step.c_next
            self.h[:, s] = h
            self.steps.append(step)

    def backward(self, dh: Array, dc_last: Array) -> tuple[Array, ...]:
        """(dx, dh0, dc0, dw_x, dw_h, db)."""
        dx, dstate, dcell = np.zeros_like(self.x), np.zeros_like(dc_last), dc_last.copy()
        totals = [np.zeros_like(w) for w in (self.cell.w_x, self.cell.w_h, self.cell.b)]
        w_x_back, w_h_back = (join_gates(w).T for w in (self.cell.w_x, self.cell.w_h))
        for s in reversed(range(len(self.steps))):
            step, real = self.steps[s], self.real[s]
            dstate += dh[:, s]
            dz, dcell[real] = step.slopes(dstate[real], dcell[real])
            for total, part in zip(
                totals, (step.x.T @ dz, step.h.T @ dz, dz.sum(axis=1)), strict=True
            ):
                total += part
            joined = join_gates(dz)
            dx[real, s] = joined @ w_x_back
            dstate[real] = joined @ w_h_back
        return dx, dstate, dcell, *(join_gates(total) for total in totals)


def lstm_forward(
    x: Array, h0: Array, c0: Array, w_x: Array, w_h: Array, b: Array, mask: Array | None = None
) -> tuple[Array, Array, object]:
    """(h, c_last, LstmRun)."""
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
    run = LstmRun(x, h0, c0, (w_x, w_h, b), mask)
    return run.h, run.c, run


def lstm_backward(
    dh: Array, dc_last: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """(dx, dh0, dc0, dw_x, dw_h, db)."""
    return cache.backward(dh, dc_last)


# Exercise 3.3


@dataclass(frozen=True)
class GruStep:
    """One step of a GRU; u is what the state alone gives to the candidate."""

    x: Array
    h: Array
    w_x: Array
    w_h: Array
    r: Array
    z: Array
    g: Array
    u: Array

    def backward(self, dh_next: Array) -> tuple[Array, ...]:
        """(dx, dh, dw_x, dw_h, db_x, db_h)."""
        dg = dh_next * (1 - self.z) * (1 - self.g**2)
        dr = dg * self.u * self.r * (1 - self.r)
        dz = dh_next * (self.h - self.g) * self.z * (1 - self.z)
        inner, outer = np.stack([dr, dz, dg]), np.stack([dr, dz, dg * self.r])  # (3, n, m)
        dx = (inner @ self.w_x.transpose(0, 2, 1)).sum(axis=0)
        dh = (outer @ self.w_h.transpose(0, 2, 1)).sum(axis=0) + dh_next * self.z
        weights = self.x.T @ inner, self.h.T @ outer, inner.sum(axis=1), outer.sum(axis=1)
        return dx, dh, *(join_gates(array) for array in weights)


def gru_step_forward(
    x: Array, h: Array, w_x: Array, w_h: Array, b_x: Array, b_h: Array
) -> tuple[Array, object]:
    """(h_next, GruStep)."""
    check_shapes(
        x=(x, "n d"),
        h=(h, "n m"),
        w_x=(w_x, "d 3m"),
        w_h=(w_h, "m 3m"),
        b_x=(b_x, "3m"),
        b_h=(b_h, "3m"),
    )
    w_x, w_h, b_x, b_h = (split_gates(array, 3) for array in (w_x, w_h, b_x, b_h))
    a = x @ w_x + b_x[:, None]  # (3, n, m)
    u = h @ w_h + b_h[:, None]
    r, z = sigmoid(a[:2] + u[:2])
    g = np.tanh(a[2] + r * u[2])
    return z * h + (1 - z) * g, GruStep(x, h, w_x, w_h, r, z, g, u[2])


def gru_step_backward(
    dh_next: Array, cache: object
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """(dx, dh, dw_x, dw_h, db_x, db_h)."""
    return cache.backward(dh_next)


# Exercise 3.4


@dataclass(frozen=True)
class Lookup:
    """Which rows of a table were read."""

    ids: Array
    rows: int

    def backward(self, dout: Array) -> Array:
        """The gradient of the table."""
        flat = dout.reshape(-1, dout.shape[-1])
        return one_hot(self.ids.ravel(), self.rows, dout.dtype).T @ flat


def embedding_forward(ids: Array, table: Array) -> tuple[Array, object]:
    """(out, Lookup)."""
    check_shapes(ids=(ids, "n t"), table=(table, "v e"))
    check_ids(ids, len(table))
    return table[ids.ravel()].reshape(*ids.shape, -1), Lookup(ids, len(table))


def embedding_backward(dout: Array, cache: object) -> Array:
    """The gradient of the table."""
    return cache.backward(dout)


def temporal_cross_entropy(
    logits: Array, targets: Array, mask: Array | None = None
) -> tuple[float, Array]:
    """Softmax minus one-hot, with a weight for each position: 1 / count or 0."""
    check_shapes(logits=(logits, "n t v"), targets=(targets, "n t"), mask=(mask, "n t"))
    check_mask(mask)
    mask = np.ones(targets.shape, dtype=bool) if mask is None else mask
    check_ids(targets[mask], logits.shape[2])
    real = mask.ravel()
    weight = (real / max(real.sum(), 1)).astype(logits.dtype)
    flat = logits.reshape(real.size, -1)
    wanted = one_hot(np.where(real, targets.ravel(), 0), flat.shape[1], flat.dtype)
    shifted = flat - flat.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    sums = powers.sum(axis=1)
    losses = np.log(sums) - np.sum(shifted * wanted, axis=1)
    dflat = (powers / sums[:, None] - wanted) * weight[:, None]
    return float(losses @ weight), dflat.reshape(logits.shape)


# Exercise 3.5


def clip_by_global_norm(
    gradients: dict[str, Array], max_norm: float
) -> tuple[dict[str, Array], float]:
    """All gradients in one long vector."""
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}")
    vector = np.concatenate([array.ravel().astype(np.float64) for array in gradients.values()])
    norm = float(np.sqrt(vector @ vector))
    if not np.isfinite(norm):
        raise ValueError(f"the norm of the gradients is {norm}")
    vector *= min(1.0, max_norm / max(norm, 1e-300))
    ends = np.cumsum([array.size for array in gradients.values()])[:-1]
    parts = np.split(vector, ends)
    clipped = {
        name: part.reshape(array.shape).astype(array.dtype)
        for (name, array), part in zip(gradients.items(), parts, strict=True)
    }
    return clipped, norm


def make_windows(ids: Array, batch: int, window: int) -> tuple[Array, Array]:
    """By the index that each entry has in the text."""
    if ids.ndim != 1 or batch < 1 or window < 1 or len(ids) <= batch * window:
        raise ValueError(f"{ids.shape} ids make no {batch} streams with a window of {window}")
    check_ids(ids, np.inf)
    count = (len(ids) - 1) // (batch * window)
    k, b, s = np.ogrid[:count, :batch, :window]
    places = (b * count + k) * window + s
    return ids[places], ids[places + 1]


def truncated_bptt(
    x: Array, dh: Array, h0: Array, w_xh: Array, w_hh: Array, b_h: Array, window: int
) -> tuple[Array, Array, Array, Array, Array]:
    """One run forward, and a walk back that forgets at each border."""
    if window < 1:
        raise ValueError(f"a window has at least 1 step, got {window}")
    h, run = rnn_forward(x, h0, w_xh, w_hh, b_h)
    check_shapes(dh=(dh, "n t m"), h=(h, "n t m"))
    dx, _, *weights = run.backward(dh, window)
    return h, dx, *weights


# Exercise 3.6


def gradient_norms_through_time(
    cell: str, x: Array, state: tuple[Array, ...], weights: tuple[Array, ...]
) -> Array:
    """A batch of equal sequences, one for each row of the Jacobian."""
    if (cell, len(state), len(weights)) not in (("rnn", 1, 3), ("lstm", 2, 3)):
        raise ValueError(f"no cell {cell!r} with {len(state)} states and {len(weights)} weights")
    check_shapes(x=(x, "t d"), **{f"state {k}": (part, "m") for k, part in enumerate(state)})
    steps = {
        ("rnn", 1): (rnn_step_forward, rnn_step_backward),
        ("lstm", 2): (lstm_step_forward, lstm_step_backward),
    }
    if (cell, len(state)) not in steps:
        raise ValueError(f"no cell {cell!r} with {len(state)} states")
    forward, backward = steps[cell, len(state)]
    m = len(state[0])
    batch = tuple(np.repeat(part[None], m, axis=0) for part in state)
    caches = []
    for row in np.repeat(x[:, None], m, axis=1):
        *batch, cache = forward(row, *batch, *weights)
        caches.append(cache)
    gradients = (np.eye(m, dtype=x.dtype), np.zeros((m, m), dtype=x.dtype))[: len(state)]
    norms = np.ones(len(x) + 1, dtype=x.dtype)
    for s in reversed(range(len(x))):
        gradients = backward(*gradients, caches[s])[1 : 1 + len(state)]
        norms[s] = np.linalg.norm(gradients[0], ord=2)
    return norms


# Exercise 3.7


class CharLM:
    """Embedding, LSTM, dense layer."""

    def __init__(
        self,
        rng: np.random.Generator,
        vocabulary: int,
        embedding: int,
        hidden: int,
        dtype: str = "float32",
    ) -> None:
        self.parameters = dict.fromkeys(("embedding", "w_x", "w_h", "b", "w_out", "b_out"))
        p, scale = self.parameters, hidden**-0.5
        p["b_out"] = np.zeros(vocabulary, dtype=dtype)
        p["w_out"] = rng.uniform(-scale, scale, size=(hidden, vocabulary)).astype(dtype)
        p["w_x"], p["w_h"], p["b"] = lstm_parameters(rng, embedding, hidden, dtype=dtype)
        p["embedding"] = rng.normal(0, 1, size=(vocabulary, embedding)).astype(dtype)

    def read(self, ids: Array, state: State | None) -> tuple[Array, State, Lookup, LstmRun]:
        """The hidden states, the state after the last id, and what was done."""
        p = self.parameters
        zeros = np.zeros((len(ids), p["w_h"].shape[0]), dtype=p["w_h"].dtype)
        h0, c0 = (zeros, zeros) if state is None else state
        vectors, lookup = embedding_forward(ids, p["embedding"])
        h, c, run = lstm_forward(vectors, h0, c0, p["w_x"], p["w_h"], p["b"])
        return h, (h[:, -1].copy(), c), lookup, run

    def forward(self, ids: Array, state: State | None = None) -> tuple[Array, State]:
        """(logits, state)."""
        h, after, _, _ = self.read(ids, state)
        return h @ self.parameters["w_out"] + self.parameters["b_out"], after

    def loss_and_gradients(
        self, ids: Array, targets: Array, state: State | None = None
    ) -> tuple[float, dict[str, Array], State]:
        """(loss, gradients, state)."""
        h, after, lookup, run = self.read(ids, state)
        w_out = self.parameters["w_out"]
        loss, dlogits = temporal_cross_entropy(h @ w_out + self.parameters["b_out"], targets)
        nothing = np.zeros_like(after[1])
        dvectors, _, _, dw_x, dw_h, db = run.backward(dlogits @ w_out.T, nothing)
        gradients = {
            "embedding": lookup.backward(dvectors),
            "w_x": dw_x,
            "w_h": dw_h,
            "b": db,
            "w_out": (h.transpose(0, 2, 1) @ dlogits).sum(axis=0),
            "b_out": dlogits.sum(axis=(0, 1)),
        }
        return loss, gradients, after


class Config:
    """How to train. Build it with keywords: Config(steps=100, learning_rate=0.01)."""

    def __init__(
        self,
        steps: int = 800,
        batch: int = 32,
        window: int = 32,
        learning_rate: float = 0.02,
        decay: float = 0.9975,
        max_norm: float = 1.0,
    ) -> None:
        if steps < 0 or batch < 1 or window < 1:
            raise ValueError(f"{steps} steps of {batch} streams and windows of {window} can't be")
        if not (learning_rate > 0 and 0 < decay <= 1 and max_norm > 0):
            raise ValueError(
                f"learning_rate ({learning_rate}) and max_norm ({max_norm}) must be above 0, "
                f"decay ({decay}) above 0 and at most 1"
            )
        self.steps = steps  # weight updates in all, those before a resumed run included
        self.batch = batch  # streams side by side
        self.window = window  # characters of each stream in one step
        self.learning_rate = learning_rate  # of step 0
        self.decay = decay  # step k has the learning rate learning_rate * decay**k
        self.max_norm = max_norm  # gradients are clipped to this


def adam(
    parameters: dict[str, Array],
    gradients: dict[str, Array],
    state: dict | None,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[dict[str, Array], dict]:
    """One step of Adam. Returns (new parameters, new state); the first state is None."""
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


class Trainer:
    """A run of training that can be left and taken up again."""

    def __init__(self, model: CharLM, ids: Array, config: Config) -> None:
        self.model, self.config = model, config
        self.inputs, self.targets = make_windows(ids, config.batch, config.window)
        self.done, self.carried, self.moments = 0, None, None

    def load(self, state: list) -> None:
        """Take up a run where it was left."""
        self.done, self.carried, self.moments, parameters = state
        check_same_shapes(self.model.parameters, parameters)
        self.model.parameters = {name: array.copy() for name, array in parameters.items()}

    def save(self) -> list:
        """All that the run needs to go on."""
        parameters = {name: array.copy() for name, array in self.model.parameters.items()}
        return [self.done, self.carried, self.moments, parameters]

    def step(self) -> dict[str, float]:
        """One window, one update; what history says of it."""
        k = self.done % len(self.inputs)
        if k == 0:
            self.carried = self.blank()
        loss, gradients, self.carried = self.model.loss_and_gradients(
            self.inputs[k], self.targets[k], self.carried
        )
        if not np.isfinite(loss):
            raise ValueError(f"the loss of step {self.done} is {loss}")
        clipped, norm = clip_by_global_norm(gradients, self.config.max_norm)
        rate = self.config.learning_rate * self.config.decay**self.done
        self.model.parameters, self.moments = adam(
            self.model.parameters, clipped, self.moments, rate
        )
        self.done += 1
        return {"loss": loss, "bits": loss / LN2, "norm": norm, "learning_rate": rate}

    def blank(self) -> State:
        """Every stream at its beginning."""
        w_h = self.model.parameters["w_h"]
        shape = self.config.batch, len(w_h)
        return np.zeros(shape, dtype=w_h.dtype), np.zeros(shape, dtype=w_h.dtype)


def train(model: CharLM, text_ids: Array, config: Config, state: object = None) -> dict:
    """The state is a list."""
    trainer = Trainer(model, text_ids, config)
    if state is not None:
        trainer.load(state)
    rows = []
    with TrainingDisplay(max(config.steps - trainer.done, 0), title="character model") as display:
        while trainer.done < config.steps:
            rows.append(trainer.step())
            display.step(loss=rows[-1]["loss"], bits=rows[-1]["bits"])
    history = {
        name: [row[name] for row in rows] for name in ("loss", "bits", "norm", "learning_rate")
    }
    return {**history, "state": trainer.save()}


def bits_per_character(model: CharLM, ids: Array) -> float:
    """In pieces of 300, in base 2 from the start."""
    if ids.ndim != 1 or len(ids) < 2:
        raise ValueError(f"a text is one axis of 2 or more ids, not {ids.shape}")
    bits, state = [], None
    for start in range(0, len(ids) - 1, 300):
        now, following = ids[start : start + 300], ids[start + 1 : start + 301]
        logits, state = model.forward(now[None, : len(following)], state)
        scores = logits[0].astype(np.float64) / LN2  # (k, v)
        check_ids(following, scores.shape[1])
        scores -= scores.max(axis=1, keepdims=True)
        bits.extend(np.log2(np.exp2(scores).sum(axis=1)) - scores[range(len(scores)), following])
    return float(np.mean(bits))


def sample(
    model: CharLM, prime: Array, length: int, temperature: float, rng: np.random.Generator
) -> Array:
    """The largest of score / temperature + Gumbel noise is a draw from the softmax."""
    check_shapes(prime=(prime, "p"))
    if length < 0 or not 0 <= temperature < np.inf:
        raise ValueError(f"bad length {length} or temperature {temperature}")
    check_ids(prime, len(model.parameters["embedding"]))
    ids, state = list(prime), None
    unread = prime
    for _ in range(length):
        logits, state = model.forward(unread[None], state)
        scores = logits[0, -1].astype(np.float64)
        if temperature > 0:
            scores = scores / temperature + rng.gumbel(size=len(scores))
        unread = np.array([np.argmax(scores)])
        ids.append(unread[0])
    return np.array(ids[len(prime) :], dtype=np.int64)
