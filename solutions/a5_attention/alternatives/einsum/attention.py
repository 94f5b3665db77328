"""Assignment 5's PyTorch part by einsum: each sum is written out by its axes.

Axes: n sequence, h head, q query, k key, d feature of queries and keys, e feature of values. Masks
are made of comparisons, and a mask is put into the scores and into the weights with torch.where.
"""

import math
from collections.abc import Callable

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


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """A row without keys gets scores of 0, so that its softmax is a number; then weights of 0."""
    check_attention(q, k, v, mask)
    scores = torch.einsum("...qd,...kd->...qk", q * q.shape[-1] ** -0.5, k)
    if mask is not None:
        empty = ~mask.any(dim=-1, keepdim=True)
        scores = torch.where(mask, scores, torch.where(empty, 0.0, -math.inf).to(scores.dtype))
    weights = scores.softmax(-1)
    if mask is not None:
        weights = torch.where(empty, torch.zeros_like(weights), weights)
    used = dropout(weights) if dropout else weights
    return torch.einsum("...qk,...ke->...qe", used, v), weights


def causal_mask(n: int) -> Tensor:
    """Positions of keys that are not after those of queries."""
    if n < 1:
        raise ValueError(f"a sequence has at least 1 position, got {n}")
    positions = torch.arange(n)
    return positions[None, :] <= positions[:, None]


def padding_mask(lengths: Tensor, n: int) -> Tensor:
    """A running count that is not above the length."""
    if not isinstance(lengths, Tensor):
        raise ValueError(f"lengths must be a tensor, not a {type(lengths).__name__}")
    if lengths.ndim != 1 or len(lengths) == 0 or lengths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"lengths must be (batch,) integers, got {tuple(lengths.shape)}")
    if n < 1 or lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"lengths must lie from 0 to {n}, and {n} be at least 1")
    counts = torch.ones(len(lengths), 1, n, dtype=torch.int64).cumsum(dim=2)
    return counts <= lengths.view(-1, 1, 1)


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Everything, less what each mask forbids."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        check_bool(mask)
    try:
        shape = torch.broadcast_shapes(*(mask.shape for mask in given))
    except RuntimeError as error:
        raise ValueError("the masks don't broadcast together") from error
    if not given:
        return None
    allowed = torch.ones(shape, dtype=torch.bool)
    for mask in given:
        allowed &= mask
    return allowed


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Unflatten, then permute."""
    if x.ndim != 3 or x.numel() == 0:
        raise ValueError(f"x must be (n, t, d_model), none of them 0, got {tuple(x.shape)}")
    check_heads(x.shape[2], num_heads)
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3)


def merge_heads(x: Tensor) -> Tensor:
    """Permute, then flatten."""
    if x.ndim != 4 or x.numel() == 0:
        shape = tuple(x.shape)
        raise ValueError(f"x must be (n, num_heads, t, d_head), none of them 0, got {shape}")
    return torch.einsum("nhtd->nthd", x).flatten(-2)


class MultiHeadAttention(nn.Module):
    """The attention is written out once more, with an axis for the heads."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.heads = num_heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(d_model, d_model, bias) for _ in range(4)
        )

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries, keys and values keep the axes (n, t, h, d): einsum finds the heads."""
        check_sequences(query, key, value, mask, self.out.in_features)
        q = self.query(query).unflatten(2, (self.heads, -1))
        k = self.key(key).unflatten(2, (self.heads, -1))
        v = self.value(value).unflatten(2, (self.heads, -1))
        scores = torch.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            mask = mask.expand(len(query), query.shape[1], key.shape[1])[:, None]
            weights = scores.masked_fill(~mask, -1e30).softmax(dim=-1) * mask
        heads = torch.einsum("nhqk,nkhe->nqhe", weights, v)
        return self.out(heads.flatten(2)), weights


def score_variance(
    d_k: int, scaled: bool, rng: np.random.Generator, samples: int = 10_000
) -> float:
    """The mean of the squares, query and key drawn side by side; the scale goes into the query."""
    if d_k < 1 or samples < 2:
        raise ValueError(f"d_k must be at least 1 and samples at least 2, got {d_k} and {samples}")
    pairs = rng.normal(size=(samples, 2, d_k))
    query = pairs[:, 0] / np.sqrt(d_k) if scaled else pairs[:, 0]
    scores = np.einsum("sd,sd->s", query, pairs[:, 1])
    return float(np.mean(scores**2))


def saturation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The squares of the Jacobian's entries, summed on paper."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores need at least one axis and one entry, got {tuple(scores.shape)}")
    p = scores.softmax(dim=-1)
    squares = p.square().sum(dim=-1)
    total = squares - 2 * p.pow(3).sum(dim=-1) + squares.square()
    return p.max(dim=-1).values, total.clamp(min=0).sqrt()


def permutation_gap(
    attention: Attention, x: Tensor, order: Tensor, mask: Tensor | None = None
) -> float:
    """The reordered output is put back in place, and then compared."""
    if x.ndim != 3:
        raise ValueError(f"x must be (n, t, d), got {tuple(x.shape)}")
    positions = torch.arange(x.shape[1])
    if order.dtype != torch.int64 or not torch.equal(order.sort().values, positions):
        raise ValueError(f"order must hold each of 0 .. {x.shape[1] - 1} once, as int64")
    moved = x[:, order]
    out = attention(moved, moved, moved, mask)[0]
    back = out[:, order.argsort()]
    return float((back - attention(x, x, x, mask)[0]).detach().abs().amax())


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """One backward pass for each number of the output."""
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")
    x = x.detach().clone().requires_grad_()
    out = attention(x[None], x[None], x[None], mask)[0][0]
    rows = [
        sum(torch.autograd.grad(y, x, retain_graph=True)[0].square().sum(dim=1) for y in row)
        for row in out
    ]
    return torch.stack(rows).sqrt()


def soft_lookup(
    query: Tensor, keys: Tensor, values: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Scores count from the best: at temperature 0, all but the best are at -inf."""
    if query.ndim != 1 or keys.ndim != 2:
        raise ValueError(f"query {tuple(query.shape)} and keys {tuple(keys.shape)} make no table")
    check_attention(query[None], keys, values, None)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    scores = torch.einsum("td,d->t", keys, query)
    behind = scores.max() - scores
    # 0 / 0 is NaN: the best stay at 0 whatever the temperature.
    shares = torch.where(behind == 0, 1.0, torch.exp(-behind / temperature))
    weights = shares / shares.sum()
    return torch.einsum("t,te->e", weights, values), weights
