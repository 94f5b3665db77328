"""PyTorch's answers in float64: what the tests of assignment 5 compare with.

Answers are NumPy arrays or tensors, with the dtype of the first input.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

STEP = 1e-5  # of finite differences in float64: their error is about 1e-10


def softmax(x, axis=-1):
    """Softmax along an axis that holds at least one finite number."""
    return _like(torch.softmax(_tensor(x), axis), x)


def softmax_gradient(x, dout, axis=-1):
    """The gradient of softmax with respect to x."""
    x_leaf = _leaf(x)
    (dx,) = torch.autograd.grad(torch.softmax(x_leaf, axis), [x_leaf], _tensor(dout))
    return _like(dx, x)


def attention(q, k, v, mask=None, scale=None, dropout=None):
    """Out and weights. PyTorch, too, gives zeros where a row of the mask is all False.

    dropout: which weights to keep, and the dropout rate.
    """
    found = _attend(*map(_tensor, (q, k, v)), mask, scale, dropout)
    return tuple(_like(tensor, q) for tensor in found)


def attention_gradients(q, k, v, dout, dweights=None, mask=None, dropout=None):
    """dq, dk and dv for the gradients of out and, if given, of the weights."""
    leaves = [_leaf(x) for x in (q, k, v)]
    out, weights = _attend(*leaves, mask, None, dropout)
    upstream = torch.zeros_like(weights) if dweights is None else _tensor(dweights)
    gradients = torch.autograd.grad([out, weights], leaves, [_tensor(dout), upstream])
    return tuple(_like(_without_noise(gradient), q) for gradient in gradients)


def multi_head_attention(parameters, num_heads, query, key, value, mask=None):
    """Out and weights of nn.MultiheadAttention with these parameters."""
    named = {name: _tensor(p) for name, p in parameters.items()}
    found = _heads(named, num_heads, *map(_tensor, (query, key, value)), mask)
    return tuple(_like(tensor, query) for tensor in found)


def multi_head_attention_gradients(parameters, num_heads, inputs, cotangents, mask=None):
    """The gradients of query, key and value, and those of the parameters by name."""
    named = {name: _leaf(p) for name, p in parameters.items()}
    leaves = [_leaf(x) for x in inputs]
    found = _heads(named, num_heads, *leaves, mask)
    gradients = torch.autograd.grad(
        found,
        [*leaves, *named.values()],
        [_tensor(given) for given in cotangents],
        allow_unused=True,
        materialize_grads=True,
    )
    gradients = [_like(gradient, inputs[0]) for gradient in gradients]
    return gradients[:3], dict(zip(named, gradients[3:], strict=True))


def multi_head_attention_passes(parameters, num_heads):
    """A function that runs nn.MultiheadAttention forward and backward, in the inputs' dtype.

    For each pair of (query, key, value) and gradients of output and weights it gives the outputs
    and the gradients of inputs and parameters.
    """
    module = nn.MultiheadAttention(len(parameters["out.weight"]), num_heads, batch_first=True)
    module.load_state_dict(_pytorchs_names(parameters))

    def run(passes):
        results = []
        for inputs, cotangents in passes:
            leaves = [x.detach().requires_grad_() for x in inputs]
            found = module(*leaves, need_weights=True, average_attn_weights=False)
            sources = [*leaves, *module.parameters()]
            results.append((found, torch.autograd.grad(found, sources, cotangents)))
        return results

    return run


def saturation(scores):
    """The largest weight of each row, and the norm of the Jacobian by finite differences."""
    rows = _tensor(scores).reshape(-1, scores.shape[-1])
    weights = torch.softmax(rows, -1)
    norms = [_differences(lambda x: torch.softmax(x, -1), row).square().sum() for row in rows]
    results = weights.amax(-1), torch.stack(norms).sqrt()
    return tuple(_like(x.reshape(scores.shape[:-1]), scores) for x in results)


def influence(x, mask=None):
    """The norms of the Jacobians of self-attention, for each output and input."""
    return _influence(lambda s: _attend(s, s, s, mask)[0], x)


def influence_of_heads(parameters, num_heads, x, mask=None):
    """The same for nn.MultiheadAttention."""
    named = {name: _tensor(p) for name, p in parameters.items()}
    return _influence(lambda s: _heads(named, num_heads, s[None], s[None], s[None], mask)[0][0], x)


def causal_mask(n):
    """PyTorch's causal mask is 0 where a query may attend, and -inf elsewhere."""
    return nn.Transformer.generate_square_subsequent_mask(n) == 0


def _attend(q, k, v, mask=None, scale=None, dropout=None):
    """Out and weights. With an identity matrix as values, the output is the weights."""
    mask = None if mask is None else torch.asarray(mask, copy=True)
    identity = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)
    found = [
        F.scaled_dot_product_attention(q, k, values, attn_mask=mask, scale=scale)
        for values in (v, identity)
    ]
    if dropout is not None:
        keep, p = dropout
        found[0] = torch.einsum("...ij,...jd->...id", found[1] * keep / (1 - p), v)
    return found


def _heads(parameters, num_heads, query, key, value, mask=None):
    """Out and weights, one sequence at a time, without fully masked queries.

    nn.MultiheadAttention gives NaN for those. Its mask is True where a query may not attend.
    """
    n, t_q, d_model = query.shape
    t_k, bias = key.shape[1], "out.bias" in parameters
    module = nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True).double()
    named = _pytorchs_names(parameters)
    mask = torch.ones(t_q, t_k, dtype=torch.bool) if mask is None else mask
    outs, weights = [], []
    for i, allowed in enumerate(mask.expand(n, t_q, t_k)):
        rows = allowed.any(dim=1).nonzero()[:, 0]  # the queries that are not fully masked
        out = query.new_zeros(t_q, d_model) + (parameters["out.bias"] if bias else 0)
        weight = query.new_zeros(num_heads, t_q, t_k)
        if len(rows):
            inputs = (query[i, rows][None], key[i][None], value[i][None])
            options = {"attn_mask": ~allowed[rows], "average_attn_weights": False}
            found = torch.func.functional_call(module, named, inputs, options)
            out = out.index_copy(0, rows, found[0][0])
            weight = weight.index_copy(1, rows, found[1][0])
        outs.append(out)
        weights.append(weight)
    return torch.stack(outs), torch.stack(weights)


def _pytorchs_names(parameters):
    """The parameters under their names in nn.MultiheadAttention."""
    named = {}
    for kind in ("weight", "bias"):
        if f"out.{kind}" in parameters:
            parts = [parameters[f"{name}.{kind}"] for name in ("query", "key", "value")]
            named |= {
                f"in_proj_{kind}": torch.cat(parts),
                f"out_proj.{kind}": parameters[f"out.{kind}"],
            }
    return named


def _influence(attend, x):
    t, d = x.shape
    jacobian = _differences(lambda flat: attend(flat.reshape(t, d)).flatten(), _tensor(x).flatten())
    return _like(jacobian.reshape(t, d, t, d).square().sum(dim=(1, 3)).sqrt(), x)


def _differences(function, x):
    """The Jacobian of a function of a vector, by central differences."""
    moves = STEP * torch.eye(len(x), dtype=x.dtype)
    columns = [(function(x + move) - function(x - move)) / (2 * STEP) for move in moves]
    return torch.stack(columns, dim=1)


def _without_noise(gradient):
    """Zeros instead of rounding errors: with a single key, the weights are constant."""
    return gradient if gradient.abs().max() > 1e-12 else torch.zeros_like(gradient)


def _tensor(value):
    return torch.asarray(value, dtype=torch.float64, copy=True)


def _leaf(value):
    return _tensor(value).requires_grad_()


def _like(tensor, example):
    """The answer as an array or a tensor, with the dtype of the example."""
    if isinstance(example, np.ndarray):
        return tensor.detach().numpy().astype(example.dtype)
    return tensor.detach().to(example.dtype)
