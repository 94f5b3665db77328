"""Assignment 5, part 2: masks, multi-head attention and its properties, in PyTorch.

Conventions of this file:
    - Shapes: sequences are tensors of shape (n, t, d): sequence, time, feature.
      In causal_mask and padding_mask, though, the argument n is the length t.
    - Masks: a boolean tensor or None. True means "this query may attend to this key", everywhere.
      (In PyTorch's nn.MultiheadAttention True means "may not".)
    - Fully masked queries: a query that may attend to no key gets weights of zero and an output of
      zeros from attention, never NaN; its gradient is zero too, never NaN.
    - Hidden keys: a key that no query may attend to changes nothing, whatever numbers its key and
      value hold, from -1e12 to 1e12. (Near the dtype's maximum, products would overflow.)
    - Dtypes: outputs have the dtype of the inputs, float32 or float64. The float tensors of a call
      have one dtype.
    - No side effects: no function changes its inputs or keeps state between calls.
    - Randomness: only the initial weights of MultiHeadAttention, which nn.Linear draws, and
      score_variance, which draws from the generator that is passed to it.
    - Errors: bad input raises ValueError: shapes that don't fit, an axis of length 0, a mask that
      is not a boolean tensor or doesn't broadcast. The given checks raise it; docstrings name what
      else a function refuses.
    - Allowed: torch.softmax, since you have written your own; handle fully masked rows yourself.
      Not allowed: F.scaled_dot_product_attention, nn.MultiheadAttention,
      F.multi_head_attention_forward, flex_attention, torch.onnx.ops.attention.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

# attention(query, key, value, mask) returns (out, weights): a function or a module.
Attention = Callable[..., tuple[Tensor, Tensor]]


class FixedDropout:
    """Given: dropout with a fixed pattern instead of a random one, scaled as nn.Dropout scales."""

    def __init__(self, keep: Bool[Tensor, "..."], p: float) -> None:
        self.keep = keep  # True where an entry is kept
        self.p = p  # the dropout rate, below 1: what is kept is divided by 1 - p

    def __call__(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return x * self.keep / (1 - self.p)


def check_bool(mask: Tensor) -> None:
    """Given: raise ValueError unless a mask is a boolean tensor."""
    if not isinstance(mask, Tensor):
        raise ValueError(f"mask must be a boolean tensor, got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")


def check_mask(mask: Tensor | None, shape: tuple[int, ...]) -> None:
    """Given: raise ValueError unless the mask is None, or boolean and broadcasts to the shape."""
    if mask is None:
        return
    check_bool(mask)
    pairs = zip(mask.shape[::-1], shape[::-1], strict=False)
    if mask.ndim > len(shape) or any(a not in (1, b) for a, b in pairs):
        got = tuple(mask.shape)
        raise ValueError(f"mask must broadcast to the weights {tuple(shape)}, got {got}")


def check_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    """Given: raise ValueError unless q, k and v fit together, and the mask to (..., t_q, t_k)."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if min(q.ndim, k.ndim, v.ndim) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(f"q, k and v must have two axes or more and equal leading axes: {shapes}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"q and k must have the same d_k, k and v the same t_k: {shapes}")
    if q.numel() == 0 or k.numel() == 0 or v.numel() == 0:
        raise ValueError(f"no axis may have length 0: {shapes}")
    check_mask(mask, (*q.shape[:-1], k.shape[-2]))


def check_heads(d_model: int, num_heads: int) -> None:
    """Given: raise ValueError unless num_heads is at least 1 and divides d_model."""
    if num_heads < 1 or d_model < 1 or d_model % num_heads:
        raise ValueError(f"num_heads must divide d_model, got {num_heads} and {d_model}")


def check_sequences(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, d_model: int
) -> None:
    """Given: raise ValueError unless the inputs of a MultiHeadAttention are tensors that fit."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor):
            raise ValueError(f"{name} must be a tensor, got {type(x).__name__}")
        if x.ndim != 3 or x.shape[2] != d_model or x.numel() == 0:
            raise ValueError(f"{name} must be (n, t, {d_model}), got {tuple(x.shape)}")
    if key.shape != value.shape or len(query) != len(key):
        shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        raise ValueError(
            f"query, key and value must have the same n, key and value the same t: {shapes}"
        )
    check_mask(mask, (len(query), query.shape[1], key.shape[1]))
    if mask is not None and mask.ndim not in (2, 3):
        raise ValueError(f"mask must be (t_q, t_k) or (n, t_q, t_k), got {tuple(mask.shape)}")


# Exercise 5.3


def scaled_dot_product_attention(
    q: Float[Tensor, "... t_q d_k"],
    k: Float[Tensor, "... t_k d_k"],
    v: Float[Tensor, "... t_k d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Float[Tensor, "... t_q d_v"], Float[Tensor, "... t_q t_k"]]:
    """softmax(q k^T / sqrt(d_k)) v, for any number of leading axes.

    q, k, v: the leading axes are the same in all three; none is fine.
    mask: broadcasts to (..., t_q, t_k) by the usual rules, so (t_q, t_k) holds for all sequences.
        Where it is False, the weight is exactly 0; the others still sum to 1 over the keys. A query
        whose row is all False gets weights and an output of zeros, and a gradient of zeros.
    dropout: a function, such as an nn.Dropout, that is applied to the weights before they are
        multiplied by v, and returns a new tensor. None means no dropout.
    Returns (out, weights), with the weights from before dropout, which still sum to 1. Gradients
    flow through both.
    """
    check_attention(q, k, v, mask)
    # BEGIN SOLUTION
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (..., t_q, t_k)
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        # With -inf, a fully masked row would become NaN. With the lowest finite number it comes out
        # of the softmax with uniform weights, and the second fill sets those to 0.
        lowest = torch.finfo(scores.dtype).min
        weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
        weights = weights.masked_fill(~mask, 0)
    used = weights if dropout is None else dropout(weights)
    return used @ v, weights  # (..., t_q, d_v)
    # END SOLUTION


# Exercise 5.4


def causal_mask(n: int) -> Bool[Tensor, "n n"]:
    """Position i may attend to itself and to earlier positions: mask[i, j] is True where j <= i.

    Raises ValueError if n is below 1.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    # BEGIN SOLUTION
    return torch.ones(n, n, dtype=torch.bool).tril()
    # END SOLUTION


def padding_mask(lengths: Int[Tensor, " batch"], n: int) -> Bool[Tensor, "batch 1 n"]:
    """No query may attend to padding: mask[b, 0, j] is True where j < lengths[b].

    lengths: how many of the n positions of each sequence are real; these come first. int32 or
        int64, from 0 to n. A length of 0 gives a row that is all False.
    The axis of length 1 is that of the queries: all of them may attend to the same keys.
    Raises ValueError if n is below 1, and unless lengths is a tensor of such integers with one
    axis, not empty.
    """
    if not isinstance(lengths, Tensor):
        raise ValueError(f"lengths must be a tensor, got {type(lengths).__name__}")
    if lengths.ndim != 1 or len(lengths) == 0 or lengths.dtype not in (torch.int32, torch.int64):
        shape = tuple(lengths.shape)
        raise ValueError(f"lengths must be (batch,) integers, got {shape}, {lengths.dtype}")
    if n < 1 or lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"n must be at least 1 and lengths from 0 to n, got n {n} and {lengths}")
    # BEGIN SOLUTION
    positions = torch.arange(n, device=lengths.device)  # (n,)
    return (positions < lengths[:, None]).unsqueeze(1)  # (batch, 1, n)
    # END SOLUTION


def combine_masks(*masks: Bool[Tensor, "..."] | None) -> Bool[Tensor, "..."] | None:
    """The logical and of all masks: True where each is True, with the usual broadcasting.

    So a causal (n, n) and a padding (batch, 1, n) make (batch, n, n). None allows everything and
    is skipped; with nothing but None, or without any mask, the result is None. A single mask may be
    returned as it is.
    Raises ValueError for masks that are not boolean tensors, or don't broadcast together.
    """
    for mask in masks:
        if mask is not None:
            check_bool(mask)
    try:
        torch.broadcast_shapes(*(mask.shape for mask in masks if mask is not None))
    except RuntimeError as error:
        raise ValueError(f"the masks must broadcast together: {error}") from error
    # BEGIN SOLUTION
    combined = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined & mask
    return combined
    # END SOLUTION


# Exercise 5.5


def split_heads(
    x: Float[Tensor, "n t d_model"], num_heads: int
) -> Float[Tensor, "n num_heads t d_head"]:
    """Split the features into heads of d_head = d_model / num_heads features each.

    Head h gets features h * d_head to (h + 1) * d_head - 1 of every position.
    Raises ValueError unless x has three axes, none of length 0, and num_heads divides d_model.
    """
    if x.ndim != 3 or x.numel() == 0:
        raise ValueError(f"x must be (n, t, d_model) and not empty, got {tuple(x.shape)}")
    check_heads(x.shape[2], num_heads)
    # BEGIN SOLUTION
    n, t, d_model = x.shape
    heads = x.reshape(n, t, num_heads, d_model // num_heads)  # (n, t, num_heads, d_head)
    return heads.transpose(1, 2)  # (n, num_heads, t, d_head)
    # END SOLUTION


def merge_heads(x: Float[Tensor, "n num_heads t d_head"]) -> Float[Tensor, "n t d_model"]:
    """Concatenate the features of the heads: merge_heads(split_heads(x, h)) is x.

    Raises ValueError unless x has four axes, none of length 0.
    """
    if x.ndim != 4 or x.numel() == 0:
        shape = tuple(x.shape)
        raise ValueError(f"x must be (n, num_heads, t, d_head) and not empty, got {shape}")
    # BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)  # (n, t, num_heads, d_head) -> (n, t, d_model)
    # END SOLUTION


class MultiHeadAttention(nn.Module):
    """num_heads attentions in parallel, each on its own projections of the inputs.

    Four nn.Linear(d_model, d_model, bias=bias) layers, called query, key, value and out. The first
    three project the inputs to queries, keys and values; these are split into heads (split_heads),
    each head attends on its own with scale 1 / sqrt(d_head), the heads are merged (merge_heads),
    and out projects the result.

    Parameters, as the state_dict names them (without the biases if bias is False):
        query.weight, key.weight, value.weight, out.weight: (d_model, d_model)
        query.bias, key.bias, value.bias, out.bias: (d_model,)
    There are no others, and no buffers. The initialization is that of nn.Linear.
    With the same weights it equals nn.MultiheadAttention(d_model, num_heads, bias=bias,
    batch_first=True), except for fully masked queries, where PyTorch's gives NaN. PyTorch's
    in_proj_weight is query.weight, key.weight and value.weight, stacked in this order
    (in_proj_bias likewise), and its out_proj is out.

    Raises ValueError unless num_heads is at least 1 and divides d_model.
    """

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.d_model = d_model
        self.num_heads = num_heads
        # BEGIN SOLUTION
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.out = nn.Linear(d_model, d_model, bias=bias)
        # END SOLUTION

    def forward(
        self,
        query: Float[Tensor, "n t_q d_model"],
        key: Float[Tensor, "n t_k d_model"],
        value: Float[Tensor, "n t_k d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "n t_q d_model"], Float[Tensor, "n num_heads t_q t_k"]]:
        """Self-attention if all three are one sequence; cross-attention if query is another.

        mask: (t_q, t_k) for all sequences, or (n, t_q, t_k); an axis of length 1 is broadcast, as
            in padding_mask. It holds for every head.
        A fully masked query gets zeros from every head, so its out is out.bias.
        Forward and backward together take at most 1.5 times as long as nn.MultiheadAttention
        (need_weights=True) on one thread, at d_model = 128, 4 heads, n = 64, t = 24 in float32.
        (The test allows 2 times.)
        Returns (out, weights), with the weights of each head. Gradients flow through both.
        Raises ValueError also for a query, key or value that is not a tensor.
        """
        check_sequences(query, key, value, mask, self.d_model)
        # BEGIN SOLUTION
        q = split_heads(self.query(query), self.num_heads)  # (n, num_heads, t_q, d_head)
        k = split_heads(self.key(key), self.num_heads)  # (n, num_heads, t_k, d_head)
        v = split_heads(self.value(value), self.num_heads)  # (n, num_heads, t_k, d_head)
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(1)  # (n, 1, t_q, t_k): the same for every head
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        return self.out(merge_heads(heads)), weights  # (n, t_q, d_model)
        # END SOLUTION


# Exercise 5.6


def score_variance(
    d_k: int, scaled: bool, rng: np.random.Generator, samples: int = 10_000
) -> float:
    """Measure the variance of q . k for random queries and keys: why divide by sqrt(d_k)?

    Draws `samples` independent pairs, a new query and a new key for each, of d_k independent
    standard normal numbers. A score is q . k, divided by sqrt(d_k) if scaled.
    Returns the variance of the scores as a Python float. Take their mean as 0, its expected value,
    or subtract the sample mean: both are fine. Work in float64.

    The fourth moment of the scores is 3 * (1 + 2 / d_k) times their variance squared, so the
    relative standard error of the result is sqrt((2 + 6 / d_k) / samples): below 3 percent with
    10,000 samples.
    Raises ValueError if d_k is below 1 or samples below 2.
    """
    if d_k < 1 or samples < 2:
        raise ValueError(f"d_k must be at least 1 and samples at least 2, got {d_k} and {samples}")
    # BEGIN SOLUTION
    q = rng.standard_normal((samples, d_k))
    k = rng.standard_normal((samples, d_k))
    scores = np.sum(q * k, axis=1)  # (samples,)
    if scaled:
        scores = scores / math.sqrt(d_k)
    return float(np.var(scores))
    # END SOLUTION


def saturation(
    scores: Float[Tensor, "... t"],
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """How peaked a softmax is, and how much gradient it passes.

    For each row of scores, with weights = softmax(row):
        largest = the largest weight
        norm = the Frobenius norm of the (t, t) Jacobian of the weights with respect to the row: the
            square root of the sum of the squares of all its entries

    Equal scores give largest 1 / t and norm sqrt(t - 1) / t. As one score grows beyond the others,
    largest goes to 1 and norm to 0: the softmax is saturated and passes no gradient.
    scores: finite. No gradient needs to flow through the results.
    norm must never be NaN. Near saturation, a formula that subtracts nearly equal numbers can come
    out slightly below 0: clamp it at 0 before the square root. A sum of squares is never below 0.
    Returns (largest, norm), with the shape of scores without its last axis. Raises ValueError if
    scores have no axis or are empty.
    """
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores must have an axis and not be empty, got {tuple(scores.shape)}")
    # BEGIN SOLUTION
    weights = torch.softmax(scores, dim=-1)  # (..., t)
    outer = weights[..., :, None] * weights[..., None, :]  # (..., t, t)
    jacobian = torch.diag_embed(weights) - outer  # (..., t, t)
    return weights.amax(dim=-1), torch.linalg.matrix_norm(jacobian)  # the Frobenius norm
    # END SOLUTION


# Exercise 5.7


def permutation_gap(
    attention: Attention,
    x: Float[Tensor, "n t d"],
    order: Int[Tensor, " t"],
    mask: Bool[Tensor, "..."] | None = None,
) -> float:
    """How far self-attention is from permutation-equivariant: not at all without a mask.

    attention: scaled_dot_product_attention, a MultiHeadAttention, or anything else that is called
        like them: attention(x, x, x, mask) returns (out, weights).
    order: a permutation of 0 .. t - 1. x[:, order] is the reordered sequence.
    mask: used unchanged both times. It is not reordered.

    Returns the largest absolute difference between the output for the reordered sequence and the
    reordered output for x, as a Python float. Without a mask it is 0 up to rounding.
    Raises ValueError unless x has three axes and order holds each of 0 .. t - 1 once, as int64.
    """
    if x.ndim != 3:
        raise ValueError(f"x must be (n, t, d), got {tuple(x.shape)}")
    positions = torch.arange(x.shape[1])
    if order.dtype != torch.int64 or not torch.equal(order.sort().values, positions):
        raise ValueError(f"order must hold each of 0 .. {x.shape[1] - 1} once, as int64")
    # BEGIN SOLUTION
    reordered = x[:, order]
    moved, _ = attention(reordered, reordered, reordered, mask)
    out, _ = attention(x, x, x, mask)
    return (moved - out[:, order]).abs().max().item()
    # END SOLUTION


def influence(
    attention: Attention, x: Float[Tensor, "t d"], mask: Bool[Tensor, "t t"] | None = None
) -> Float[Tensor, "t t"]:
    """How strongly each output of self-attention depends on each input: is it really causal?

    attention: as in permutation_gap; it is called with sequences (1, t, d).
    x: one sequence, used as query, key and value.

    Returns a tensor with [i, j] = the Frobenius norm of the (d, d) Jacobian of out[i] with respect
    to x[j]: the square root of the sum of the squares of all its entries. The result has no graph,
    and the .grad of x and of all parameters stays as it was. With a causal mask, the entries above
    the diagonal are exactly 0.
    Raises ValueError unless x has two axes.
    """
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")
    # BEGIN SOLUTION
    jacobian = torch.autograd.functional.jacobian(
        lambda x: attention(x[None], x[None], x[None], mask)[0][0], x
    )  # (t, d, t, d)
    return torch.linalg.vector_norm(jacobian, dim=(1, 3))
    # END SOLUTION


def soft_lookup(
    query: Float[Tensor, " d"],
    keys: Float[Tensor, "t d"],
    values: Float[Tensor, "t d_v"],
    temperature: float,
) -> tuple[Float[Tensor, " d_v"], Float[Tensor, " t"]]:
    """A differentiable lookup in a table of keys and values.

    weights = softmax((keys . query) / temperature); there is no other scale.
    value = the sum over j of weights[j] * values[j]

    Temperature sqrt(d) is the attention of 5.3. Temperature 0 is the hard lookup, the limit of the
    soft one: all weight is on the key with the largest score keys . query; keys whose computed
    scores tie exactly for the largest split the weight equally. (Rounding can separate equal keys.
    Where tests expect a tie, all products and sums are exact.)
    Small temperatures work too, down to 1e-12.
    Returns (value, weights). Raises ValueError for shapes that don't fit together, and if
    temperature is below 0 or not finite.
    """
    if query.ndim != 1 or keys.ndim != 2:
        shapes = f"{tuple(query.shape)} and {tuple(keys.shape)}"
        raise ValueError(f"query must be (d,) and keys (t, d), got {shapes}")
    check_attention(query[None], keys, values, None)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    # BEGIN SOLUTION
    scores = keys @ query  # (t,)
    if temperature == 0:
        best = (scores == scores.max()).to(scores.dtype)
        weights = best / best.sum()
    else:
        weights = torch.softmax(scores / temperature, dim=0)
    return weights @ values, weights
    # END SOLUTION
