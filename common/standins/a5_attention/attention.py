"""Stand-in for assignment 5 when later ones are graded, on a softmax of PyTorch's.

It runs in the process of student code, and uses nothing that is forbidden there: PyTorch's own
attention is removed from that process.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

Attention = Callable[..., tuple[Tensor, Tensor]]


class FixedDropout:
    """Dropout with a fixed pattern: it keeps what `keep` allows, and divides by 1 - p."""

    def __init__(self, keep: Tensor, p: float) -> None:
        self.keep = keep
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.keep / (1 - self.p)


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(d_k)) v, and the weights before dropout."""
    check_attention(q, k, v, mask)
    weights = attention_weights(q, k, mask)
    return torch.matmul(weights if dropout is None else dropout(weights), v), weights


def causal_mask(n: int) -> Tensor:
    """(n, n), True where a query may attend: to itself and to earlier positions."""
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    return torch.ones(n, n, dtype=torch.bool).tril()


def padding_mask(lengths: Tensor, n: int) -> Tensor:
    """(batch, 1, n), True where a position is real."""
    if not isinstance(lengths, Tensor):
        raise ValueError(f"lengths must be a tensor, got {type(lengths).__name__}")
    if lengths.ndim != 1 or len(lengths) == 0 or lengths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"lengths must be (batch,) integers, got {tuple(lengths.shape)}")
    if n < 1 or lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"n must be at least 1 and lengths from 0 to n, got n {n} and {lengths}")
    return torch.arange(n, device=lengths.device).expand(1, 1, n) < lengths[:, None, None]


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """The logical and of all masks; None allows everything."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        check_bool(mask)
    if not given:
        return None
    try:
        return torch.stack(torch.broadcast_tensors(*given)).all(dim=0)
    except RuntimeError as error:
        raise ValueError(f"the masks must broadcast together: {error}") from error


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(n, t, d_model) as (n, num_heads, t, d_head)."""
    if x.ndim != 3 or x.numel() == 0:
        raise ValueError(f"x must be (n, t, d_model) and not empty, got {tuple(x.shape)}")
    check_heads(x.shape[2], num_heads)
    return x.unflatten(2, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(n, num_heads, t, d_head) as (n, t, d_model)."""
    if x.ndim != 4 or x.numel() == 0:
        shape = tuple(x.shape)
        raise ValueError(f"x must be (n, num_heads, t, d_head) and not empty, got {shape}")
    return x.transpose(1, 2).flatten(2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention with the layers query, key, value and out."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.d_model = d_model
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key = nn.Linear(d_model, d_model, bias=bias)
        self.value = nn.Linear(d_model, d_model, bias=bias)
        self.out = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """(out, weights), the weights as (n, num_heads, t_q, t_k)."""
        check_sequences(query, key, value, mask, self.d_model)
        q, k, v = (
            split_heads(layer(x), self.num_heads)
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]  # the same for every head
        weights = attention_weights(q, k, mask)
        return self.out(merge_heads(torch.matmul(weights, v))), weights


def score_variance(
    d_k: int, scaled: bool, rng: np.random.Generator, samples: int = 10_000
) -> float:
    """The measured variance of q . k, for standard normal queries and keys."""
    if d_k < 1 or samples < 2:
        raise ValueError(f"d_k must be at least 1 and samples at least 2, got {d_k} and {samples}")
    q, k = torch.from_numpy(rng.standard_normal((2, samples, d_k)))
    scores = torch.linalg.vecdot(q, k)
    return torch.var(scores).item() / (d_k if scaled else 1)


def saturation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The largest weight of each row's softmax, and the Frobenius norm of its Jacobian."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores must have an axis and not be empty, got {tuple(scores.shape)}")
    rows = scores.reshape(-1, scores.shape[-1])
    jacobians = torch.func.vmap(torch.func.jacrev(softmax_of_row))(rows)
    largest = F.softmax(scores, dim=-1).amax(dim=-1)
    return largest, torch.linalg.matrix_norm(jacobians).reshape(largest.shape)


def softmax_of_row(row: Tensor) -> Tensor:
    """The softmax of one row of scores."""
    return F.softmax(row, dim=0)


def permutation_gap(
    attention: Attention, x: Tensor, order: Tensor, mask: Tensor | None = None
) -> float:
    """The largest difference between attending to a reordered sequence and reordering after."""
    if x.ndim != 3:
        raise ValueError(f"x must be (n, t, d), got {tuple(x.shape)}")
    positions = torch.arange(x.shape[1])
    if order.dtype != torch.int64 or not torch.equal(order.sort().values, positions):
        raise ValueError(f"order must hold each of 0 .. {x.shape[1] - 1} once, as int64")
    y = x.index_select(1, order)
    expected = attention(x, x, x, mask)[0].index_select(1, order)
    return torch.dist(attention(y, y, y, mask)[0], expected, p=math.inf).item()


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The norm of the Jacobian of each output with respect to each input."""
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")

    def out_of(x: Tensor) -> Tensor:
        return attention(x[None], x[None], x[None], mask)[0][0]

    jacobian = torch.autograd.functional.jacobian(out_of, x)  # (t, d, t, d)
    return torch.linalg.vector_norm(jacobian, dim=(1, 3))


def soft_lookup(
    query: Tensor, keys: Tensor, values: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """The values, weighted by the softmax of keys . query / temperature; 0 is the hard lookup."""
    if query.ndim != 1 or keys.ndim != 2:
        shapes = f"{tuple(query.shape)} and {tuple(keys.shape)}"
        raise ValueError(f"query must be (d,) and keys (t, d), got {shapes}")
    check_attention(query[None], keys, values, None)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    scores = torch.mv(keys, query)
    if temperature == 0:
        # Every score but the best becomes -inf, and ties split the weight.
        scores = scores.masked_fill(scores < scores.max(), -math.inf)
    weights = F.softmax(scores / (temperature or 1), dim=0)
    return torch.mv(values.mT, weights), weights


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """The weights of the keys for each query; zeros where a query may attend to none."""
    scores = torch.matmul(q, k.mT).div(math.sqrt(q.shape[-1]))
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    return torch._safe_softmax(scores, dim=-1)


def check_bool(mask: Tensor) -> None:
    """A ValueError unless a mask is boolean."""
    if not isinstance(mask, Tensor):
        raise ValueError(f"mask must be a boolean tensor, got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")


def check_mask(mask: Tensor | None, shape: tuple[int, ...]) -> None:
    """A ValueError unless the mask is None, or boolean and broadcasts to the shape."""
    if mask is None:
        return
    check_bool(mask)
    try:
        mask.expand(shape)
    except RuntimeError as error:
        got = tuple(mask.shape)
        message = f"mask must broadcast to the weights {tuple(shape)}, got {got}"
        raise ValueError(message) from error


def check_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    """A ValueError unless q, k and v fit together, and the mask to the weights."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if min(q.ndim, k.ndim, v.ndim) < 2 or 0 in (q.numel(), k.numel(), v.numel()):
        raise ValueError(f"q, k and v must have two axes or more, none of length 0: {shapes}")
    *front, t_q, d_k = q.shape
    t_k = k.shape[-2]
    if k.shape != (*front, t_k, d_k) or v.shape[:-1] != (*front, t_k):
        raise ValueError(f"q, k and v must fit together: {shapes}")
    check_mask(mask, (*front, t_q, t_k))


def check_heads(d_model: int, num_heads: int) -> None:
    """A ValueError unless num_heads is at least 1 and divides d_model."""
    if num_heads < 1 or d_model < 1 or d_model % num_heads:
        raise ValueError(f"num_heads must divide d_model, got {num_heads} and {d_model}")


def check_sequences(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, d_model: int
) -> None:
    """A ValueError unless the inputs of a MultiHeadAttention fit together."""
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
