"""PyTorch's answers in float64, for NumPy arrays: what the tests of assignment 3 compare with."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

LN2 = float(np.log(2))


def rnn_step(x, h, w_xh, w_hh, b_h):
    """The state after one step of nn.RNN."""
    return rnn(x[:, None], h, w_xh, w_hh, b_h)[:, 0]


def rnn_step_gradients(x, h, w_xh, w_hh, b_h, dh_next):
    """dx, dh, dw_xh, dw_hh and db_h of one step."""
    dx, *others = rnn_gradients(x[:, None], h, w_xh, w_hh, b_h, dh_next[:, None])
    return dx[:, 0], *others


def rnn(x, h0, w_xh, w_hh, b_h, mask=None):
    """The states of nn.RNN after each step."""
    inputs = (x, h0, w_xh, w_hh, b_h)
    return _array(_rnn(*_tensors(inputs), mask), _float_type(*inputs))


def rnn_gradients(x, h0, w_xh, w_hh, b_h, dh, mask=None):
    """dx, dh0, dw_xh, dw_hh and db_h of nn.RNN over whole sequences."""
    inputs = (x, h0, w_xh, w_hh, b_h)
    leaves = _leaves(inputs)
    return _gradients([_rnn(*leaves, mask)], leaves, [dh], _float_type(*inputs))


def lstm_step(x, h, c, w_x, w_h, b):
    """h and c after one step of nn.LSTM."""
    states, c_last = lstm(x[:, None], h, c, w_x, w_h, b)
    return states[:, 0], c_last


def lstm_step_gradients(x, h, c, w_x, w_h, b, dh_next, dc_next):
    """dx, dh, dc, dw_x, dw_h and db of one step."""
    dx, *others = lstm_gradients(x[:, None], h, c, w_x, w_h, b, dh_next[:, None], dc_next)
    return dx[:, 0], *others


def lstm(x, h0, c0, w_x, w_h, b, mask=None):
    """The states h of nn.LSTM after each step, and the last c."""
    inputs = (x, h0, c0, w_x, w_h, b)
    return _arrays(_lstm(*_tensors(inputs), mask), _float_type(*inputs))


def lstm_gradients(x, h0, c0, w_x, w_h, b, dh, dc_last, mask=None):
    """dx, dh0, dc0, dw_x, dw_h and db of nn.LSTM over whole sequences."""
    inputs = (x, h0, c0, w_x, w_h, b)
    leaves = _leaves(inputs)
    outputs = _lstm(*leaves, mask)
    return _gradients(outputs, leaves, [dh, dc_last], _float_type(*inputs))


def lstm_while_timed(x, h0, c0, w_x, w_h, b, dh, dc_last, along):
    """Sums of h, the last c and all gradients over all axes but the first, with these weights."""
    inputs = (x, h0, c0, w_x, w_h, b)
    leaves = _leaves(inputs)
    outputs = _lstm(*leaves, None)
    gradients = _gradients(outputs, leaves, [dh, dc_last], np.float64)
    arrays = [*(_array(output, np.float64) for output in outputs), *gradients]
    pairs = zip(arrays, along, strict=True)
    sums = [array.reshape(len(array), -1) @ weights for array, weights in pairs]
    return tuple(array.astype(x.dtype) for array in sums)


def lstm_baseline(x, h0, c0, dh):
    """A function that runs nn.LSTM in float32 on one thread, forward and backward."""
    x, h0, c0, dh = (torch.from_numpy(array.astype(np.float32)) for array in (x, h0, c0, dh))
    module = nn.LSTM(x.shape[2], h0.shape[1], batch_first=True)
    x.requires_grad_()

    def run():
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        out, _ = module(x, (h0[None], c0[None]))
        torch.autograd.grad(out, [x, *module.parameters()], dh)
        torch.set_num_threads(threads)

    return run


def gru_step(x, h, w_x, w_h, b_x, b_h):
    """The state after one step of nn.GRU."""
    inputs = (x, h, w_x, w_h, b_x, b_h)
    return _array(_gru_step(*_tensors(inputs)), _float_type(*inputs))


def gru_step_gradients(x, h, w_x, w_h, b_x, b_h, dh_next):
    """dx, dh, dw_x, dw_h, db_x and db_h of one step of nn.GRU."""
    inputs = (x, h, w_x, w_h, b_x, b_h)
    leaves = _leaves(inputs)
    return _gradients([_gru_step(*leaves)], leaves, [dh_next], _float_type(*inputs))


def embedding(ids, table):
    """A row of the table for each id."""
    return _array(F.embedding(_integers(ids), _tensor(table)), table.dtype)


def embedding_gradient(ids, table, dout):
    """dtable, in the dtype of dout."""
    leaves = _leaves([table])
    return _gradients([F.embedding(_integers(ids), leaves[0])], leaves, [dout], dout.dtype)[0]


def cross_entropy(logits, targets, mask=None):
    """The mean loss over the unmasked positions, and dlogits."""
    leaves = _leaves([logits])
    loss = _cross_entropy(leaves[0], targets, mask)
    gradient = _array(torch.autograd.grad(loss, leaves)[0], logits.dtype)
    return np.asarray(loss.item()), gradient


def clip(max_norm, *gradients):
    """The norm, and the clipped gradients, each in its own dtype."""
    norm = nn.utils.get_total_norm(_tensors(gradients)).item()
    factor = min(1.0, max_norm / norm)
    return np.asarray(norm), *(_array(_tensor(g) * factor, g.dtype) for g in gradients)


def truncated_bptt(x, dh, h0, w_xh, w_hh, b_h, context_length):
    """h, dx, dw_xh, dw_hh and db_h if the initial state of each window is a constant."""
    inputs = (x, w_xh, w_hh, b_h)
    leaves = _leaves(inputs)
    state, windows = _tensor(h0), []
    for part in leaves[0].split(context_length, dim=1):
        windows.append(_rnn(part, state.detach(), *leaves[1:], None))
        state = windows[-1][:, -1]
    h = torch.cat(windows, dim=1)
    dtype = _float_type(*inputs)
    return _array(h, dtype), *_gradients([h], leaves, [dh], dtype)


def rnn_norms(x, h0, w_xh, w_hh, b_h):
    """The spectral norm of the Jacobian of the last state of nn.RNN by each state."""
    dtype = _float_type(x, h0, w_xh, w_hh, b_h)
    x, h0, *weights = _tensors((x, h0, w_xh, w_hh, b_h))
    states = torch.cat([h0[None], _rnn(x[None], h0[None], *weights, None)[0]])

    def last_from(step):
        def run(h):
            return _rnn(x[None, step:], h[None], *weights, None)[0, -1]

        return run

    return _jacobian_norms(last_from, states).astype(dtype)


def lstm_norms(x, h0, c0, w_x, w_h, b):
    """The same for nn.LSTM, with c_s held fixed."""
    dtype = _float_type(x, h0, c0, w_x, w_h, b)
    x, h0, c0, *weights = _tensors((x, h0, c0, w_x, w_h, b))
    states, cells = [h0], [c0]
    for row in x:
        h, c = _lstm(row[None, None], states[-1][None], cells[-1][None], *weights, None)
        states.append(h[0, 0])
        cells.append(c[0])

    def last_from(step):
        def run(h):
            return _lstm(x[None, step:], h[None], cells[step][None], *weights, None)[0][0, -1]

        return run

    return _jacobian_norms(last_from, states).astype(dtype)


def char_lm(ids, embedding, w_x, w_h, b, w_out, b_out, h=None, c=None):
    """The logits of CharLM, and h and c after the last id; None is a zero state."""
    parameters = (embedding, w_x, w_h, b, w_out, b_out)
    outputs = _char_lm(ids, _tensors(parameters), *_start(ids, w_h, h, c))
    return _arrays(outputs, _float_type(*parameters))


def char_lm_gradients(ids, targets, embedding, w_x, w_h, b, w_out, b_out, h=None, c=None):
    """The loss in nats, and its gradients by the parameters in the order of the arguments."""
    parameters = (embedding, w_x, w_h, b, w_out, b_out)
    leaves = _leaves(parameters)
    logits, _, _ = _char_lm(ids, leaves, *_start(ids, w_h, h, c))
    loss = _cross_entropy(logits, targets)
    gradients = torch.autograd.grad(loss, leaves)
    return np.asarray(loss.item()), *_arrays(gradients, _float_type(*parameters))


def char_lm_training(
    text,
    embedding,
    w_x,
    w_h,
    b,
    w_out,
    b_out,
    steps,
    batch_size,
    context_length,
    learning_rate,
    decay,
    max_norm,
):
    """Losses, norms and the parameters at the end, when torch.optim.Adam trains the model."""
    leaves = _leaves((embedding, w_x, w_h, b, w_out, b_out))
    optimizer = torch.optim.Adam(leaves, lr=learning_rate)
    count = (len(text) - 1) // (batch_size * context_length)
    losses, norms = [], []
    for step in range(1, steps + 1):
        window = (step - 1) % count
        starts = [(stream * count + window) * context_length for stream in range(batch_size)]
        ids = np.stack([text[start : start + context_length] for start in starts])
        targets = np.stack([text[start + 1 : start + 1 + context_length] for start in starts])
        if window == 0:
            state = _start(ids, w_h)
        logits, h, c = _char_lm(ids, leaves, *state)
        state = h.detach(), c.detach()
        loss = _cross_entropy(logits, targets)
        gradients = torch.autograd.grad(loss, leaves)
        norm = nn.utils.get_total_norm(gradients)
        # Not clip_grad_norm_, which adds 1e-6 to the norm.
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = gradient * min(1.0, max_norm / norm.item())
        optimizer.param_groups[0]["lr"] = learning_rate * decay ** (step - 1)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return np.array(losses), np.array(norms), *_arrays(leaves, np.float64)


def bits_per_character(ids, embedding, w_x, w_h, b, w_out, b_out):
    """The mean of -log2 p of every character but the first."""
    parameters = _tensors((embedding, w_x, w_h, b, w_out, b_out))
    logits, _, _ = _char_lm(ids[None, :-1], parameters, *_start(ids[None], w_h))
    return _cross_entropy(logits, ids[None, 1:]).item() / LN2


def most_likely(prompt, length, embedding, w_x, w_h, b, w_out, b_out):
    """The ids of greedy decoding, and the smallest margin between the two highest logits."""
    parameters = _tensors((embedding, w_x, w_h, b, w_out, b_out))
    logits, *state = _char_lm(prompt[None], parameters, *_start(prompt[None], w_h))
    ids, margins = [], []
    for _ in range(length):
        highest, indices = logits[0, -1].topk(2)
        ids.append(int(indices[0]))
        margins.append(float(highest[0] - highest[1]))
        logits, *state = _char_lm(np.array([ids[-1:]]), parameters, *state)
    return np.array(ids), np.asarray(min(margins))


def windows(ids, batch_size, context_length):
    """The inputs and targets of all windows, from PyTorch's views: (window, stream, step)."""
    text = torch.from_numpy(np.array(ids))
    pieces = [side.unfold(0, context_length, context_length) for side in (text[:-1], text[1:])]
    count = len(pieces[0]) // batch_size
    return tuple(
        side[: batch_size * count].unflatten(0, (batch_size, count)).transpose(0, 1).numpy()
        for side in pieces
    )


def _rnn(x, h0, w_xh, w_hh, b_h, mask):
    """nn.RNN's states; it skips masked steps, where the previous state is repeated."""
    module = nn.RNN(*w_xh.shape, batch_first=True)
    weights = _module_weights(w_xh, w_hh, b_h, torch.zeros_like(b_h))

    def run(x, h):
        return functional_call(module, weights, (x, h[None]))[0]

    if mask is None:  # all steps are real
        return run(x, h0)
    sequences = [
        _spread(run(real[None], h[None])[0] if len(real) else h[None][:0], h, keep)
        for real, h, keep in _real_steps(x, h0, mask)
    ]
    return torch.stack(sequences)


def _lstm(x, h0, c0, w_x, w_h, b, mask):
    """nn.LSTM's states and its last c; it skips masked steps."""
    module = nn.LSTM(w_x.shape[0], w_h.shape[0], batch_first=True)
    weights = _module_weights(*(_in_pytorchs_order(array) for array in (w_x, w_h, b)))

    def run(x, h, c):
        out, (_, c_last) = functional_call(module, weights, (x, (h[None], c[None])))
        return out, c_last[0]

    if mask is None:  # all steps are real
        return run(x, h0, c0)
    sequences, cells = [], []
    for (real, h, keep), c in zip(_real_steps(x, h0, mask), c0, strict=True):
        states, c_last = h[None][:0], c
        if len(real):
            out, last = run(real[None], h[None], c[None])
            states, c_last = out[0], last[0]
        sequences.append(_spread(states, h, keep))
        cells.append(c_last)
    return torch.stack(sequences), torch.stack(cells)


def _gru_step(x, h, w_x, w_h, b_x, b_h):
    module = nn.GRU(w_x.shape[0], w_h.shape[0], batch_first=True)
    weights = _module_weights(w_x, w_h, b_x, b_h)
    return functional_call(module, weights, (x[:, None], h[None]))[0][:, 0]


def _char_lm(ids, parameters, h, c):
    embedding, w_x, w_h, b, w_out, b_out = parameters
    states, c_last = _lstm(F.embedding(_integers(ids), embedding), h, c, w_x, w_h, b, None)
    return F.linear(states, w_out.T, b_out), states[:, -1], c_last


def _start(ids, w_h, h=None, c=None):
    zeros = np.zeros((len(ids), len(w_h)))
    return _tensors((zeros if h is None else h, zeros if c is None else c))


def _cross_entropy(logits, targets, mask=None):
    targets = _integers(targets if mask is None else np.where(mask, targets, -100))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def _jacobian_norms(last_from, states):
    """The spectral norm of each Jacobian; the last state's own is the identity."""
    jacobian = torch.autograd.functional.jacobian
    norms = [
        torch.linalg.matrix_norm(jacobian(last_from(step), h), ord=2).item()
        for step, h in enumerate(states[:-1])
    ]
    return np.array([*norms, 1.0])


def _module_weights(w_x, w_h, b_x, b_h=None):
    """Weights under PyTorch's names and in its layout, (outputs, inputs)."""
    return {
        "weight_ih_l0": w_x.T,
        "weight_hh_l0": w_h.T,
        "bias_ih_l0": b_x,
        "bias_hh_l0": torch.zeros_like(b_x) if b_h is None else b_h,
    }


def _in_pytorchs_order(array):
    """The blocks i, f, o, g along the last axis as i, f, g, o."""
    i, f, o, g = array.chunk(4, dim=-1)
    return torch.cat([i, f, g, o], dim=-1)


def _real_steps(x, h0, mask):
    """For each sequence: its unmasked steps, its initial state, and its mask."""
    for sequence, h, keep in zip(x, h0, mask, strict=True):
        yield sequence[torch.from_numpy(np.flatnonzero(keep))], h, keep


def _spread(states, h, keep):
    """The states at all steps, from those after real steps: masked steps repeat the last one."""
    return torch.cat([h[None], states])[torch.from_numpy(np.cumsum(keep))]


def _tensor(array):
    # torch takes no views with negative strides, and nothing else can change a copy.
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def _tensors(arrays):
    return [_tensor(array) for array in arrays]


def _leaves(arrays):
    return [_tensor(array).requires_grad_() for array in arrays]


def _integers(array):
    return torch.from_numpy(np.array(array, dtype=np.int64, order="C"))


def _array(tensor, dtype):
    return tensor.detach().numpy().astype(dtype)


def _arrays(tensors, dtype):
    return tuple(_array(tensor, dtype) for tensor in tensors)


def _gradients(outputs, leaves, cotangents, dtype):
    # If every step is masked, nothing depends on the weights: their gradient is zero.
    gradients = torch.autograd.grad(
        list(outputs), leaves, _tensors(cotangents), allow_unused=True, materialize_grads=True
    )
    return _arrays(gradients, dtype)


def _float_type(*arrays):
    """float32 if all arrays are float32."""
    return np.dtype(np.float32 if all(a.dtype == np.float32 for a in arrays) else np.float64)
