"""Let 0 / 0 happen, and remove the NaN afterwards.

masked_fill with -inf, softmax, nan_to_num. In the backward pass masked_fill drops the NaN again.
The heads become part of the batch, for batched matrix products of three axes.
"""

import torch.nn.functional as F


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


class MultiHeadAttention(nn.Module):
    """The heads of all sequences share one axis."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        check_heads(d_model, num_heads)
        self.d_model = d_model
        self.num_heads = num_heads
        # The order doesn't matter: layers are found by their names.
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
            # Repeated for each head of a sequence, then for the next sequence.
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
    """The Jacobian as weights * (identity - weights)."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores must have an axis and not be empty, got {tuple(scores.shape)}")
    weights = F.softmax(scores, dim=-1)
    identity = torch.eye(scores.size(-1), dtype=scores.dtype)
    jacobian = weights.unsqueeze(-1) * (identity - weights.unsqueeze(-2))
    return weights.max(dim=-1)[0], jacobian.pow(2).sum(dim=(-2, -1)).pow(0.5)


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The Jacobian by torch.func."""
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")

    def attend(sequence: Tensor) -> Tensor:
        batch = sequence.unsqueeze(0)
        return attention(batch, batch, batch, mask)[0].squeeze(0)

    jacobian = torch.func.jacrev(attend)(x.detach()).detach()
    return torch.linalg.matrix_norm(jacobian.transpose(1, 2))
