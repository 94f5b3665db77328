"""Assignment 5's PyTorch part with a loop over heads, each on its slice of the features.

Heads are narrowed, stacked and concatenated. The softmax is written by hand: exponentials of the
allowed scores only, divided by their sum, or by 1 where there are none.
"""

import math
from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
from torch import Tensor, nn

Attention = Callable[..., tuple[Tensor, Tensor]]


class FixedDropout:
    """A dropout that isn't random. It keeps what `keep` says, and scales as dropout does."""

    def __init__(self, keep: Tensor, p: float) -> None:
        self.keep = keep  # True where a number survives
        self.p = p  # the rate, below 1: survivors are divided by 1 - p

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.keep / (1 - self.p)


def check_bool(mask: Tensor) -> None:
    """Raise ValueError unless a mask is of bool."""
    if not isinstance(mask, Tensor):
        raise ValueError(f"a mask is a tensor of bool, not a {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask is of bool, not of {mask.dtype}")


def check_mask(mask: Tensor | None, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the mask is None, or of bool and broadcasts to the shape."""
    if mask is None:
        return
    check_bool(mask)
    pairs = zip(mask.shape[::-1], shape[::-1], strict=False)
    if mask.ndim > len(shape) or any(a not in (1, b) for a, b in pairs):
        raise ValueError(f"a mask of {tuple(mask.shape)} doesn't fit weights of {tuple(shape)}")


def check_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    """Raise ValueError unless q, k and v fit together, and the mask to (..., t_q, t_k)."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)}"
    if min(q.ndim, k.ndim, v.ndim) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ValueError(f"{shapes} need two axes or more, and the same ones in front of those")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"{shapes} don't fit together")
    if q.numel() == 0 or k.numel() == 0 or v.numel() == 0:
        raise ValueError(f"{shapes} have an axis of length 0")
    check_mask(mask, (*q.shape[:-1], k.shape[-2]))


def check_heads(d_model: int, num_heads: int) -> None:
    """Raise ValueError unless d_model features can be shared out among the heads."""
    if num_heads < 1 or d_model < 1 or d_model % num_heads:
        raise ValueError(f"{d_model} features can't be shared out among {num_heads} heads")


def check_sequences(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, d_model: int
) -> None:
    """Raise ValueError unless the inputs of a MultiHeadAttention fit together."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor):
            raise ValueError(f"{name} must be a tensor, not a {type(x).__name__}")
        if x.ndim != 3 or x.shape[2] != d_model or x.numel() == 0:
            raise ValueError(f"{name} must be (n, t, {d_model}), got {tuple(x.shape)}")
    if key.shape != value.shape or len(query) != len(key):
        shapes = ", ".join(str(tuple(x.shape)) for x in (query, key, value))
        raise ValueError(f"query, key and value don't fit together: {shapes}")
    check_mask(mask, (len(query), query.shape[1], key.shape[1]))
    if mask is not None and mask.ndim not in (2, 3):
        raise ValueError(f"a mask is (t_q, t_k) or (n, t_q, t_k), not {tuple(mask.shape)}")


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the last axis, of the scores that a mask allows."""
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    # The shift changes nothing but the rounding, so no gradient has to go through it.
    top = scores.detach().amax(dim=-1, keepdim=True).nan_to_num(neginf=0.0)
    shares = (scores - top).exp()
    total = shares.sum(dim=-1, keepdim=True)
    return shares / total.masked_fill(total == 0, 1.0)


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Queries and keys are both divided by the fourth root of d_k."""
    check_attention(q, k, v, mask)
    root = q.shape[-1] ** 0.25
    weights = masked_softmax(torch.matmul(q / root, (k / root).transpose(-1, -2)), mask)
    dropped = weights
    if dropout is not None:
        dropped = dropout(weights)
    return torch.matmul(dropped, v), weights


def causal_mask(n: int) -> Tensor:
    """All but what lies above the diagonal."""
    if n < 1:
        raise ValueError(f"a sequence has at least 1 position, got {n}")
    return ~torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)


def padding_mask(lengths: Tensor, n: int) -> Tensor:
    """One sequence at a time."""
    if not isinstance(lengths, Tensor):
        raise ValueError(f"lengths must be a tensor, not a {type(lengths).__name__}")
    if lengths.ndim != 1 or len(lengths) == 0 or lengths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"lengths must be (batch,) integers, got {tuple(lengths.shape)}")
    if n < 1 or lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"lengths must lie from 0 to {n}, and {n} be at least 1")
    mask = torch.zeros(len(lengths), 1, n, dtype=torch.bool)
    for row, length in zip(mask, lengths.tolist(), strict=True):
        row[:, :length] = True
    return mask


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """One after the other, with logical_and."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        check_bool(mask)
    try:
        torch.broadcast_shapes(*(mask.shape for mask in given))
    except RuntimeError as error:
        raise ValueError("the masks don't broadcast together") from error
    return reduce(torch.logical_and, given) if given else None


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Chunks of the features, stacked."""
    if x.ndim != 3 or x.numel() == 0:
        raise ValueError(f"x must be (n, t, d_model), none of them 0, got {tuple(x.shape)}")
    check_heads(x.shape[2], num_heads)
    return torch.stack(x.chunk(num_heads, dim=2), dim=1)


def merge_heads(x: Tensor) -> Tensor:
    """The heads, side by side."""
    if x.ndim != 4 or x.numel() == 0:
        shape = tuple(x.shape)
        raise ValueError(f"x must be (n, num_heads, t, d_head), none of them 0, got {shape}")
    return torch.cat(x.unbind(dim=1), dim=2)


class MultiHeadAttention(nn.Module):
    """One attention after the other."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.d_model = d_model
        self.num_heads = num_heads
        for name in ("query", "key", "value", "out"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=bias))

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Each head is a slice of the three projections; a mask fits it as it is."""
        check_sequences(query, key, value, mask, self.d_model)
        chunks = (
            projected.chunk(self.num_heads, dim=-1)
            for projected in (self.query(query), self.key(key), self.value(value))
        )
        heads = zip(*chunks, strict=True)
        results = [scaled_dot_product_attention(q, k, v, mask) for q, k, v in heads]
        outs, weights = zip(*results, strict=True)
        return self.out(torch.cat(outs, dim=-1)), torch.stack(weights, dim=1)


def score_variance(
    d_k: int, scaled: bool, rng: np.random.Generator, samples: int = 10_000
) -> float:
    """In portions, with the unbiased variance; the scale is applied to the variance."""
    if d_k < 1 or samples < 2:
        raise ValueError(f"d_k must be at least 1 and samples at least 2, got {d_k} and {samples}")
    scores = np.empty(samples)
    for start in range(0, samples, 1000):
        portion = scores[start : start + 1000]
        q, k = rng.normal(size=(2, len(portion), d_k))
        portion[:] = (q * k).sum(axis=1)
    variance = float(scores.var(ddof=1))
    return variance / d_k if scaled else variance


def saturation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The Jacobian by autograd, row by row."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores need at least one axis and one entry, got {tuple(scores.shape)}")
    peaks, slopes = [], []
    for row in scores.reshape(-1, scores.shape[-1]):
        peaks.append(masked_softmax(row, None).max())
        jacobian = torch.autograd.functional.jacobian(lambda r: masked_softmax(r, None), row)
        slopes.append(jacobian.square().sum().sqrt())
    shape = scores.shape[:-1]
    return torch.stack(peaks).reshape(shape), torch.stack(slopes).reshape(shape)


def permutation_gap(
    attention: Attention, x: Tensor, order: Tensor, mask: Tensor | None = None
) -> float:
    """Position by position."""
    if x.ndim != 3:
        raise ValueError(f"x must be (n, t, d), got {tuple(x.shape)}")
    positions = torch.arange(x.shape[1])
    if order.dtype != torch.int64 or not torch.equal(order.sort().values, positions):
        raise ValueError(f"order must hold each of 0 .. {x.shape[1] - 1} once, as int64")
    moved = torch.stack([x[:, place] for place in order.tolist()], dim=1)
    with torch.no_grad():
        new, _ = attention(moved, moved, moved, mask)
        old, _ = attention(x, x, x, mask)
    return max(
        float((new[:, i] - old[:, place]).abs().max()) for i, place in enumerate(order.tolist())
    )


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """All numbers of the output at once: a batch of copies, each with a gradient of its own."""
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")
    t, d = x.shape
    copies = x.detach().repeat(t * d, 1, 1).requires_grad_()  # (t*d, t, d)
    out, _ = attention(copies, copies, copies, mask)
    one_hot = torch.eye(t * d, dtype=x.dtype).view(t * d, t, d)
    (gradient,) = torch.autograd.grad(out, copies, one_hot)
    return gradient.view(t, d, t, d).square().sum(dim=(1, 3)).sqrt()


def soft_lookup(
    query: Tensor, keys: Tensor, values: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Temperature 0 is a softmax of equals, with the others masked."""
    if query.ndim != 1 or keys.ndim != 2:
        raise ValueError(f"query {tuple(query.shape)} and keys {tuple(keys.shape)} make no table")
    check_attention(query[None], keys, values, None)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    scores = torch.mv(keys, query)
    if temperature > 0:
        weights = masked_softmax(scores / temperature, None)
    else:
        weights = masked_softmax(torch.zeros_like(scores), scores == scores.max())
    return (weights[:, None] * values).sum(dim=0), weights
