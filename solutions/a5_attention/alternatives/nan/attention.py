"""Assignment 5's PyTorch part that lets 0 / 0 happen, and takes the NaN away afterwards.

masked_fill with -inf, softmax, nan_to_num. On the way back masked_fill drops the NaN again. The
heads become part of the batch, as batched matrix products of three axes.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
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
    """A row of nothing but -inf is NaN after the softmax, and 0 after nan_to_num."""
    check_attention(q, k, v, mask)
    d_k = q.size(-1)
    scores = q.matmul(k.transpose(-2, -1)).div(math.sqrt(d_k))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    if mask is not None:
        weights = torch.nan_to_num(weights, nan=0.0)
    return (weights if dropout is None else dropout(weights)).matmul(v), weights


def causal_mask(n: int) -> Tensor:
    """A lower triangle of numbers that are equal to 1."""
    if n < 1:
        raise ValueError(f"a sequence has at least 1 position, got {n}")
    return torch.tril(torch.ones(n, n)) == 1


def padding_mask(lengths: Tensor, n: int) -> Tensor:
    """Positions of the whole batch, compared."""
    if not isinstance(lengths, Tensor):
        raise ValueError(f"lengths must be a tensor, not a {type(lengths).__name__}")
    if lengths.ndim != 1 or len(lengths) == 0 or lengths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"lengths must be (batch,) integers, got {tuple(lengths.shape)}")
    if n < 1 or lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"lengths must lie from 0 to {n}, and {n} be at least 1")
    positions = torch.arange(n).repeat(lengths.size(0), 1)
    return torch.lt(positions, lengths.unsqueeze(1)).unsqueeze(1)


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """A product of zeros and ones."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        check_bool(mask)
    try:
        torch.broadcast_shapes(*(mask.shape for mask in given))
    except RuntimeError as error:
        raise ValueError("the masks don't broadcast together") from error
    return math.prod(mask.int() for mask in given).bool() if given else None


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """A view, permuted and laid out anew."""
    if x.ndim != 3 or x.numel() == 0:
        raise ValueError(f"x must be (n, t, d_model), none of them 0, got {tuple(x.shape)}")
    check_heads(x.shape[2], num_heads)
    n, t, _ = x.size()
    return x.contiguous().view(n, t, num_heads, -1).permute(0, 2, 1, 3).contiguous()


def merge_heads(x: Tensor) -> Tensor:
    """The way back."""
    if x.ndim != 4 or x.numel() == 0:
        shape = tuple(x.shape)
        raise ValueError(f"x must be (n, num_heads, t, d_head), none of them 0, got {shape}")
    n, _, t, _ = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(n, t, -1)


class MultiHeadAttention(nn.Module):
    """The heads of all sequences stand in one axis."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.d_model = d_model
        self.num_heads = num_heads
        # The order doesn't matter: layers are known by their names.
        self.out = nn.Linear(d_model, d_model, bias)
        self.value = nn.Linear(d_model, d_model, bias)
        self.key = nn.Linear(d_model, d_model, bias)
        self.query = nn.Linear(d_model, d_model, bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(n * num_heads, t, d_head) for attention, and back."""
        check_sequences(query, key, value, mask, self.d_model)
        n, t_q, _ = query.size()
        q, k, v = (
            split_heads(layer(x), self.num_heads).flatten(0, 1)
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        if mask is not None and mask.dim() == 3:
            # Repeated for each head of a sequence, before the next sequence comes.
            mask = mask.expand(n, -1, -1).repeat_interleave(self.num_heads, dim=0)
        heads, weights = scaled_dot_product_attention(q, k, v, mask)
        merged = merge_heads(heads.view(n, self.num_heads, t_q, -1))
        return self.out(merged), weights.view(n, self.num_heads, t_q, -1)


def score_variance(
    d_k: int, scaled: bool, rng: np.random.Generator, samples: int = 10_000
) -> float:
    """Pair by pair."""
    if d_k < 1 or samples < 2:
        raise ValueError(f"d_k must be at least 1 and samples at least 2, got {d_k} and {samples}")
    scale = 1 / math.sqrt(d_k) if scaled else 1.0
    scores = [scale * (rng.standard_normal(d_k) @ rng.standard_normal(d_k)) for _ in range(samples)]
    mean = sum(scores) / samples
    return float(sum((score - mean) ** 2 for score in scores) / samples)


def saturation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The Jacobian's entries in the diagonal and off it."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores need at least one axis and one entry, got {tuple(scores.shape)}")
    weights = F.softmax(scores, dim=-1)
    identity = torch.eye(scores.size(-1), dtype=scores.dtype)
    jacobian = weights.unsqueeze(-1) * (identity - weights.unsqueeze(-2))
    return weights.max(dim=-1)[0], jacobian.pow(2).sum(dim=(-2, -1)).pow(0.5)


def permutation_gap(
    attention: Attention, x: Tensor, order: Tensor, mask: Tensor | None = None
) -> float:
    """Reordering as a product with a permutation matrix."""
    if x.ndim != 3:
        raise ValueError(f"x must be (n, t, d), got {tuple(x.shape)}")
    positions = torch.arange(x.shape[1])
    if order.dtype != torch.int64 or not torch.equal(order.sort().values, positions):
        raise ValueError(f"order must hold each of 0 .. {x.shape[1] - 1} once, as int64")
    matrix = F.one_hot(order, x.size(1)).to(x.dtype)
    moved = matrix @ x
    difference = attention(moved, moved, moved, mask)[0] - matrix @ attention(x, x, x, mask)[0]
    return torch.linalg.vector_norm(difference, ord=math.inf).item()


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The Jacobian by torch.func."""
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")

    def attend(sequence: Tensor) -> Tensor:
        batch = sequence.unsqueeze(0)
        return attention(batch, batch, batch, mask)[0].squeeze(0)

    jacobian = torch.func.jacrev(attend)(x.detach()).detach()
    return torch.linalg.matrix_norm(jacobian.transpose(1, 2))


def soft_lookup(
    query: Tensor, keys: Tensor, values: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """The hard look-up is a mean over the best keys."""
    if query.ndim != 1 or keys.ndim != 2:
        raise ValueError(f"query {tuple(query.shape)} and keys {tuple(keys.shape)} make no table")
    check_attention(query[None], keys, values, None)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    scores = (keys * query).sum(dim=-1)
    if temperature == 0:
        best = torch.nonzero(scores == scores.max()).flatten()
        weights = torch.zeros_like(scores)
        weights[best] = 1 / len(best)
        return values[best].mean(dim=0), weights
    weights = F.softmax(scores / temperature, dim=-1)
    return (weights.unsqueeze(0) @ values).squeeze(0), weights
