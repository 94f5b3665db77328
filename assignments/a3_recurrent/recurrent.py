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
    raise NotImplementedError("rnn_step_forward: exercise 3.1 is yours to write")


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
    raise NotImplementedError("rnn_step_backward: exercise 3.1 is yours to write")


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
    raise NotImplementedError("rnn_forward: exercise 3.1 is yours to write")


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
    raise NotImplementedError("rnn_backward: exercise 3.1 is yours to write")


# Exercise 3.2


def lstm_parameters(
    rng: np.random.Generator, d: int, m: int, forget_bias: float = 1.0, dtype: str = "float32"
) -> tuple[Float[Array, "d 4*m"], Float[Array, "m 4*m"], Float[Array, " 4*m"]]:
    """Initialize an LSTM with d inputs and m cells.

    w_x and w_h: uniform on [-1 / sqrt(m), 1 / sqrt(m)], drawn from rng in any order. b: forget_bias
    for the forget gate, so that an untrained cell remembers, and 0 for the other blocks.
    Returns (w_x, w_h, b), all of the given dtype, with the blocks in lstm_step_forward's order.
    """
    raise NotImplementedError("lstm_parameters: exercise 3.2 is yours to write")


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
    raise NotImplementedError("lstm_step_forward: exercise 3.2 is yours to write")


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
    raise NotImplementedError("lstm_step_backward: exercise 3.2 is yours to write")


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
    raise NotImplementedError("lstm_forward: exercise 3.2 is yours to write")


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
    raise NotImplementedError("lstm_backward: exercise 3.2 is yours to write")


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
    raise NotImplementedError("gru_step_forward: exercise 3.3 is yours to write")


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
    raise NotImplementedError("gru_step_backward: exercise 3.3 is yours to write")


# Exercise 3.4


def embedding_forward(
    ids: Int[Array, "n t"], table: Float[Array, "v e"]
) -> tuple[Float[Array, "n t e"], object]:
    """Look up a vector for each id: out[i, s] = table[ids[i, s]]. Returns (out, cache)."""
    check_shapes(ids=(ids, "n t"), table=(table, "v e"))
    check_ids(ids, len(table))
    raise NotImplementedError("embedding_forward: exercise 3.4 is yours to write")


def embedding_backward(dout: Float[Array, "n t e"], cache: object) -> Float[Array, "v e"]:
    """The backward pass of embedding_forward: a repeated id gets the sum of its gradients.

    Returns dtable, in the dtype of dout; rows of ids that don't occur are zero.
    """
    raise NotImplementedError("embedding_backward: exercise 3.4 is yours to write")


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
    raise NotImplementedError("temporal_cross_entropy: exercise 3.4 is yours to write")


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
    raise NotImplementedError("clip_by_global_norm: exercise 3.5 is yours to write")


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
    raise NotImplementedError("make_windows: exercise 3.5 is yours to write")


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
    raise NotImplementedError("truncated_bptt: exercise 3.5 is yours to write")


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
    raise NotImplementedError("gradient_norms_through_time: exercise 3.6 is yours to write")


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
        raise NotImplementedError("CharLM.__init__: exercise 3.7 is yours to write")

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
        raise NotImplementedError("CharLM.forward: exercise 3.7 is yours to write")

    def loss_and_gradients(
        self, ids: Int[Array, "n t"], targets: Int[Array, "n t"], state: State | None = None
    ) -> tuple[float, dict[str, Array], State]:
        """The mean cross-entropy of the targets, in nats, and its gradients.

        The initial state counts as a constant: no gradient flows into the previous window.
        Returns (loss, gradients with the names and shapes of the parameters, the state after the
        last id).
        """
        raise NotImplementedError("CharLM.loss_and_gradients: exercise 3.7 is yours to write")


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
    raise NotImplementedError("train: exercise 3.7 is yours to write")


def bits_per_character(model: CharLM, ids: Int[Array, " length"]) -> float:
    """The cross-entropy of a text in bits per character; 2**bits is the perplexity.

    The mean of -log2 p(ids[k + 1] | ids[0], ..., ids[k]) for k = 0 .. length - 2. The model reads
    the text as one stream, from the zero state.
    Raises ValueError if there are fewer than 2 ids.
    """
    if ids.ndim != 1 or len(ids) < 2:
        raise ValueError(f"ids must have one axis of 2 or more ids, got shape {ids.shape}")
    raise NotImplementedError("bits_per_character: exercise 3.7 is yours to write")


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
    raise NotImplementedError("sample: exercise 3.7 is yours to write")
