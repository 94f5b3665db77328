"""Einsum: every sum names its axes, and the order of summation differs.

Axes: n sequence, h head, q query, k key, d feature of queries and keys, e feature of values. Masks
go into the scores and the weights with torch.where.
"""


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """A fully masked row gets scores of 0, so that its softmax is finite, and then weights of 0."""
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


class MultiHeadAttention(nn.Module):
    """The attention is written out again, with an axis for the heads."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries, keys and values keep the axes (n, t, h, d): einsum handles the heads."""
        check_sequences(query, key, value, mask, self.d_model)
        q = self.query(query).unflatten(2, (self.num_heads, -1))
        k = self.key(key).unflatten(2, (self.num_heads, -1))
        v = self.value(value).unflatten(2, (self.num_heads, -1))
        scores = torch.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            mask = mask.expand(len(query), query.shape[1], key.shape[1])[:, None]
            weights = scores.masked_fill(~mask, -1e30).softmax(dim=-1) * mask
        heads = torch.einsum("nhqk,nkhe->nqhe", weights, v)
        return self.out(heads.flatten(2)), weights


def saturation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The squares of the Jacobian's entries, summed on paper."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores must have an axis and not be empty, got {tuple(scores.shape)}")
    p = scores.softmax(dim=-1)
    squares = p.square().sum(dim=-1)
    total = squares - 2 * p.pow(3).sum(dim=-1) + squares.square()
    return p.max(dim=-1).values, total.clamp(min=0).sqrt()


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """One backward pass for each entry of the output."""
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
    """Differences to the best score: at temperature 0, all but the best become -inf."""
    if query.ndim != 1 or keys.ndim != 2:
        shapes = f"{tuple(query.shape)} and {tuple(keys.shape)}"
        raise ValueError(f"query must be (d,) and keys (t, d), got {shapes}")
    check_attention(query[None], keys, values, None)
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature must be at least 0 and finite, got {temperature}")
    scores = torch.einsum("td,d->t", keys, query)
    behind = scores.max() - scores
    # At temperature 0, 0 / 0 would be NaN: the best keep exp(0) = 1.
    exps = torch.where(behind == 0, 1.0, torch.exp(-behind / temperature))
    weights = exps / exps.sum()
    return torch.einsum("t,te->e", weights, values), weights
