"""Assignment 3: recurrent networks, forward and backward through time, in NumPy.

Conventions of the whole file
    Sequences are arrays of shape (n, t, d): sequence, time, feature. States are (n, m).
    Vectors are rows, so a layer is x @ w + b with w of shape (inputs, outputs).
    mask is an array of bool of shape (n, t), or None: True means a real step, False means padding,
    which may stand anywhere. At a masked step the state is carried over unchanged, the gradient
    of the state passes through untouched, and x gets a gradient of zero. What x holds there
    (finite numbers) makes no difference.
    ids are arrays of integers from 0 to vocabulary - 1.
    float32 in gives float32 out, float64 in gives float64 out: the float arrays of a call have
    one type. Losses and norms are Python floats.
    No function changes its inputs, and none remembers anything between two calls.
    `cache` is whatever your backward pass needs from your forward pass. Tests only hand it back,
    sometimes more than once.
    `dsomething` is the gradient of the loss with respect to `something`, in its shape. A backward
    function gets those of the outputs and returns those of the inputs, in their order.
    Bad input raises ValueError: shapes that don't fit together, an axis of length 0, a mask that
    is not of bool, ids that are not integers or out of range. The given checks see to that; where
    a function has more to refuse, its docstring says so.

NumPy only: no PyTorch, no SciPy.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from common.training.training_progress import TrainingDisplay

Array = np.ndarray
LN2 = float(np.log(2))  # a bit is so many nats


def sigmoid(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Given: 1 / (1 + exp(-z)), written so that no z overflows."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def check_shapes(**arrays: tuple[Array | None, str]) -> None:
    """Given: check_shapes(x=(x, "n t d"), w=(w, "d 4m")) raises ValueError unless the shapes fit.

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


def check_mask(mask: Bool[Array, "n t"] | None) -> None:
    """Given: raise ValueError unless the mask is None or of bool."""
    if mask is not None and mask.dtype != np.bool_:
        raise ValueError(f"a mask is of bool, not of {mask.dtype}")


def check_ids(ids: Int[Array, "..."], vocabulary: float) -> None:
    """Given: raise ValueError unless the ids are integers from 0 to vocabulary - 1."""
    if not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"ids are integers, not {ids.dtype}")
    if ids.size and (ids.min() < 0 or ids.max() >= vocabulary):
        raise ValueError(f"ids lie between 0 and {vocabulary - 1}, got {ids.min()} to {ids.max()}")


def check_same_shapes(parameters: dict[str, Array], others: dict[str, Array]) -> None:
    """Given: raise ValueError unless both dicts have the same names, with arrays of one shape."""
    if parameters.keys() != others.keys():
        raise ValueError(f"the names differ: {sorted(parameters)} and {sorted(others)}")
    for name, array in parameters.items():
        if array.shape != others[name].shape:
            raise ValueError(f"{name} has two shapes: {array.shape} and {others[name].shape}")


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
    """A recurrent network over whole sequences, from the state h0.

    h[:, s] is the state after step s, so h[:, -1] is the last real state of every sequence
    (h0, if it has no real step).
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

    dh: how the loss depends on each h[:, s] directly. That it also depends on it through the later
    states is for you to add.
    Returns (dx, dh0, dw_xh, dw_hh, db_h).
    """
    raise NotImplementedError("rnn_backward: exercise 3.1 is yours to write")


# Exercise 3.2


def lstm_parameters(
    rng: np.random.Generator, d: int, m: int, forget_bias: float = 1.0, dtype: str = "float32"
) -> tuple[Float[Array, "d 4*m"], Float[Array, "m 4*m"], Float[Array, " 4*m"]]:
    """Fresh weights for an LSTM with d inputs and m cells.

    w_x and w_h: drawn evenly from -1 / sqrt(m) to 1 / sqrt(m). b: forget_bias for the forget gate,
    so that an untrained cell remembers, and 0 for the others.
    Returns (w_x, w_h, b), all of the given dtype. The gates lie as in lstm_step_forward.
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

    z = x @ w_x + h @ w_h + b holds four blocks of m columns, in this order:
        input gate i = sigmoid(z_i), forget gate f = sigmoid(z_f), output gate o = sigmoid(z_o),
        candidate g = tanh(z_g).
    c_next = f * c + i * g
    h_next = o * tanh(c_next)

    (PyTorch stores its blocks in the order i, f, g, o.)
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

    dh_next, dc_next: how the loss depends on the two outputs directly. That h_next depends on
    c_next is for you to add.
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
    """An LSTM over whole sequences, from the states h0 and c0. A mask holds for h and for c.

    h[:, s] is the state after step s; c_last is the cell state after the last step.
    lstm_forward and lstm_backward together take at most 4 times as long as PyTorch's nn.LSTM on
    one thread, at n = 32, t = 64, d = m = 128 in float32.
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

    dh: how the loss depends on each h[:, s] directly. dc_last: the same for c_last; zeros when the
    loss doesn't look at it.
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
    """One step of a GRU, in PyTorch's version: the reset gate acts after the matrix product.

    a = x @ w_x + b_x and u = h @ w_h + b_h hold three blocks of m columns, in this order:
        reset gate r = sigmoid(a_r + u_r), update gate z = sigmoid(a_z + u_z),
        candidate g = tanh(a_g + r * u_g). (PyTorch calls it n.)
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
    """The backward pass of embedding_forward. An id that occurs more than once gets the sum.

    Returns dtable, of the dtype of dout; rows of ids that don't occur are zero.
    """
    raise NotImplementedError("embedding_backward: exercise 3.4 is yours to write")


def temporal_cross_entropy(
    logits: Float[Array, "n t v"],
    targets: Int[Array, "n t"],
    mask: Bool[Array, "n t"] | None = None,
) -> tuple[float, Float[Array, "n t v"]]:
    """The mean of -log softmax(logits)[target] over all positions that are not masked, in nats.

    The mean is over positions, not over sequences first: every real position counts the same.
    Stable for logits of any finite size, 1e4 too. Targets at masked positions may be any integer,
    -1 too. If all positions are masked, the loss is 0.0 and dlogits is all zeros.
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
    """Shrink all gradients by one factor, so that their common norm is at most max_norm.

    norm: the square root of the sum of the squares of all entries of all arrays, before clipping,
    summed in float64. If it is above max_norm, all gradients are multiplied by max_norm / norm,
    else they stay as they are.
    Returns (a new dict of gradients, norm). Raises ValueError if max_norm is not above 0, and if
    the norm is not finite.
    """
    raise NotImplementedError("clip_by_global_norm: exercise 3.5 is yours to write")


def make_windows(
    ids: Int[Array, " length"], batch: int, window: int
) -> tuple[Int[Array, "count batch window"], Int[Array, "count batch window"]]:
    """Cut a long text into `batch` streams side by side, and these into windows of `window` ids.

    count = (length - 1) // (batch * window), and each stream is count * window ids long. Stream b
    begins at ids[b * count * window], and window k of it goes on where its window k - 1 ended, so
    that a state can be carried from window to window. What is left over at the end is not used.

    inputs[k, b]: the ids of window k of stream b. targets[k, b]: for each of them the id that
    follows it in the text.
    Returns (inputs, targets), of the dtype of ids. Raises ValueError if batch or window is below 1,
    and if the text is too short for one window.
    """
    check_shapes(ids=(ids, "length"))
    check_ids(ids, np.inf)
    if batch < 1 or window < 1 or len(ids) <= batch * window:
        raise ValueError(f"{len(ids)} ids make no {batch} streams with a window of {window}")
    raise NotImplementedError("make_windows: exercise 3.5 is yours to write")


def truncated_bptt(
    x: Float[Array, "n t d"],
    dh: Float[Array, "n t m"],
    h0: Float[Array, "n m"],
    w_xh: Float[Array, "d m"],
    w_hh: Float[Array, "m m"],
    b_h: Float[Array, " m"],
    window: int,
) -> tuple[
    Float[Array, "n t m"],
    Float[Array, "n t d"],
    Float[Array, "d m"],
    Float[Array, "m m"],
    Float[Array, " m"],
]:
    """Truncated backpropagation through time, for the network of 3.1.

    The sequence is treated in windows of `window` steps from the left; the last may be shorter.
    The state goes on from window to window, so h is what rnn_forward gives for the whole sequence.
    The gradient doesn't: the state that a window starts from counts as a constant. The gradients
    of the weights are summed over the windows.

    dh: how the loss depends on each h[:, s] directly.
    Returns (h, dx, dw_xh, dw_hh, db_h). Raises ValueError if window is below 1.
    """
    check_shapes(
        x=(x, "n t d"),
        dh=(dh, "n t m"),
        h0=(h0, "n m"),
        w_xh=(w_xh, "d m"),
        w_hh=(w_hh, "m m"),
        b_h=(b_h, "m"),
    )
    if window < 1:
        raise ValueError(f"a window has at least 1 step, got {window}")
    raise NotImplementedError("truncated_bptt: exercise 3.5 is yours to write")


# Exercise 3.6


def gradient_norms_through_time(
    cell: str, x: Float[Array, "t d"], state: tuple[Array, ...], weights: tuple[Array, ...]
) -> Float[Array, " t+1"]:
    """How strongly the last hidden state of one sequence depends on every hidden state before it.

    cell: "rnn" with state (h0,) and weights (w_xh, w_hh, b_h), or "lstm" with state (h0, c0) and
        weights (w_x, w_h, b). h0 and c0 have shape (m,). Anything else is a ValueError.
    h_s is the hidden state after s steps, so that h_0 = h0 and h_t is the last. J_s is the (m, m)
    Jacobian of h_t with respect to h_s: how h_t moves when h_s alone is moved (for the LSTM, c_s
    is held fixed) and all later steps follow.

    Returns norms with norms[s] = the spectral norm of J_s, its largest singular value, for
    s = 0 .. t. norms[t] is 1: J_t is the identity.

    Use the step functions of 3.1 and 3.2. A step backward turns row k of dh_next into row k of dh,
    so m copies of the sequence as a batch carry all m rows of the Jacobian at once.
    """
    if (cell, len(state), len(weights)) not in (("rnn", 1, 3), ("lstm", 2, 3)):
        raise ValueError(f"no cell {cell!r} with {len(state)} states and {len(weights)} weights")
    check_shapes(x=(x, "t d"), **{f"state {k}": (part, "m") for k, part in enumerate(state)})
    raise NotImplementedError("gradient_norms_through_time: exercise 3.6 is yours to write")


# Exercise 3.7

State = tuple[Float[Array, "n m"], Float[Array, "n m"]]


class CharLM:
    """A character model: embedding, LSTM, and a dense layer that scores the next character.

    model.parameters is a dict with these names:
        "embedding" (vocabulary, embedding), drawn from the standard normal distribution
        "w_x" (embedding, 4 * hidden), "w_h" (hidden, 4 * hidden), "b" (4 * hidden,): as from
            lstm_parameters with its usual forget bias
        "w_out" (hidden, vocabulary), drawn evenly from -1 / sqrt(hidden) to 1 / sqrt(hidden)
        "b_out" (vocabulary,), zeros
    All have the given dtype. Every method uses what is in model.parameters when it is called, so
    that a change there, in place or not, shows at once; the model keeps nothing else that changes.

    A state is a tuple (h, c) of arrays (n, hidden). None stands for zeros.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        vocabulary: int,
        embedding: int,
        hidden: int,
        dtype: str = "float32",
    ) -> None:
        raise NotImplementedError("CharLM.__init__: exercise 3.7 is yours to write")

    def start(self, n: int) -> State:
        """Given: the state before the first character, zeros."""
        hidden = self.parameters["w_out"].shape[0]
        zeros = np.zeros((n, hidden), dtype=self.parameters["w_out"].dtype)
        return zeros, zeros.copy()

    def forward(
        self, ids: Int[Array, "n t"], state: State | None = None
    ) -> tuple[Float[Array, "n t v"], State]:
        """Read ids from a state. Returns (logits, the state after the last id).

        logits[i, s] scores what may follow ids[i, s]; it depends on ids[i, :s + 1] and the state.
        """
        raise NotImplementedError("CharLM.forward: exercise 3.7 is yours to write")

    def loss_and_gradients(
        self, ids: Int[Array, "n t"], targets: Int[Array, "n t"], state: State | None = None
    ) -> tuple[float, dict[str, Array], State]:
        """The mean cross-entropy of the targets, in nats, and its gradients.

        The state that comes in is a constant: no gradient flows into the window before.
        Returns (loss, gradients with the names and shapes of the parameters, the state after the
        last id).
        """
        raise NotImplementedError("CharLM.loss_and_gradients: exercise 3.7 is yours to write")


class Config:
    """Given: how to train. Build it with keywords: Config(steps=100, learning_rate=0.01).

    Raises ValueError for settings that make no sense, such as a negative number of steps.
    """

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
    """Given: one step of Adam. Returns (new parameters, new state); the first state is None."""
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
    model: CharLM, text_ids: Int[Array, " length"], config: Config, state: object = None
) -> dict:
    """Train a model on a text by truncated backpropagation through time.

    Step k = 0, 1, ... reads window k % count of make_windows(text_ids, config.batch,
    config.window). It starts from the state in which the step before left the streams; at window 0
    of each pass over the text it starts from zeros. Its gradients are clipped to config.max_norm,
    and adam applies them, with the learning rate config.learning_rate * config.decay**k, to
    model.parameters. The last step is k = config.steps - 1.

    Shows its progress with TrainingDisplay:
        with TrainingDisplay(number_of_steps, title="...") as display:
            display.step(loss=loss, bits=bits)  # once in each step

    Returns history, a dict with one entry for each step of this call in each of these lists:
        "loss": the loss of the step's window before the update, in nats
        "bits": the same in bits per character
        "norm": the norm of the gradients before clipping
        "learning_rate"
    and with "state": plain data (dicts, lists and tuples of arrays, numbers, strings and None) that
    train takes as `state` to go on after the last step. With a fresh model of the same sizes, the
    same text and the same config but for a larger `steps`, it then gives exactly the numbers of a
    run that was never interrupted. A state is not changed by being used, nor by further training.

    Raises ValueError when the loss is not finite, naming the step k, which counts from 0. Raises it
    too when the arrays of the state don't fit the model (check_same_shapes).
    """
    raise NotImplementedError("train: exercise 3.7 is yours to write")


def bits_per_character(model: CharLM, ids: Int[Array, " length"]) -> float:
    """How many bits the model needs for each character of a text but the first.

    The mean of -log2 p(ids[k + 1] | ids[0], ..., ids[k]) for k = 0 .. length - 2, from the zero
    state, the text read as one stream from its first character to its last but one.
    Raises ValueError if there are fewer than 2 ids.
    """
    if ids.ndim != 1 or len(ids) < 2:
        raise ValueError(f"a text is one axis of 2 or more ids, not {ids.shape}")
    raise NotImplementedError("bits_per_character: exercise 3.7 is yours to write")


def sample(
    model: CharLM,
    prime: Int[Array, " p"],
    length: int,
    temperature: float,
    rng: np.random.Generator,
) -> Int[Array, " length"]:
    """Let the model write: read the ids of `prime` from the zero state, then draw `length` more.

    Each new id is drawn from softmax(logits / temperature) and read before the next is drawn.
    Temperature 0 takes the id with the highest logit, the lowest such id on a tie; rng is then not
    used. Any temperature above 0 works, 1e-6 too.
    Returns the new ids, int64, without those of prime. Raises ValueError if prime is empty, if
    length is below 0, and if temperature is below 0 or not finite.
    """
    check_shapes(prime=(prime, "p"))
    check_ids(prime, len(model.parameters["embedding"]))
    if length < 0:
        raise ValueError(f"length must be at least 0, got {length}")
    if not 0 <= temperature < np.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    raise NotImplementedError("sample: exercise 3.7 is yours to write")
