"""One head at a time: a loop over heads, each on its slice of the features.

The softmax is written by hand: exponentials of the allowed scores only, divided by their sum, or by
1 where there are none. The variance is the unbiased one.
"""


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the last axis of the scores that a mask allows."""
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf)
    # The shift doesn't change the result, so no gradient has to flow through it.
    top = scores.detach().amax(dim=-1, keepdim=True).nan_to_num(neginf=0.0)
    exps = (scores - top).exp()
    total = exps.sum(dim=-1, keepdim=True)
    return exps / total.masked_fill(total == 0, 1.0)


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


class MultiHeadAttention(nn.Module):
    """One attention at a time."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Each head is a slice of the three projections; a mask fits it unchanged."""
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
    """In chunks, with the unbiased variance; the scale is applied to the variance."""
    if d_k < 1 or samples < 2:
        raise ValueError(f"d_k must be at least 1 and samples at least 2, got {d_k} and {samples}")
    scores = np.empty(samples)
    for start in range(0, samples, 1000):
        chunk = scores[start : start + 1000]
        q, k = rng.normal(size=(2, len(chunk), d_k))
        chunk[:] = (q * k).sum(axis=1)
    variance = float(scores.var(ddof=1))
    return variance / d_k if scaled else variance


def saturation(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The Jacobian by autograd, row by row."""
    if scores.ndim < 1 or scores.numel() == 0:
        raise ValueError(f"scores must have an axis and not be empty, got {tuple(scores.shape)}")
    largest, norms = [], []
    for row in scores.reshape(-1, scores.shape[-1]):
        largest.append(masked_softmax(row, None).max())
        jacobian = torch.autograd.functional.jacobian(lambda r: masked_softmax(r, None), row)
        norms.append(jacobian.square().sum().sqrt())
    shape = scores.shape[:-1]
    return torch.stack(largest).reshape(shape), torch.stack(norms).reshape(shape)


def influence(attention: Attention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """All entries of the output at once: a batch of copies, each with its own gradient."""
    if x.ndim != 2:
        raise ValueError(f"x must be (t, d), got {tuple(x.shape)}")
    t, d = x.shape
    copies = x.detach().repeat(t * d, 1, 1).requires_grad_()  # (t*d, t, d)
    out, _ = attention(copies, copies, copies, mask)
    one_hot = torch.eye(t * d, dtype=x.dtype).view(t * d, t, d)
    (gradient,) = torch.autograd.grad(out, copies, one_hot)
    return gradient.view(t, d, t, d).square().sum(dim=(1, 3)).sqrt()
