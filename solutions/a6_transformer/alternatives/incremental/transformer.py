"""A decoder that goes step by step: it never reads a prefix twice.

A decoder layer keeps what went into its self-attention so far, so a new token costs one position
and not all of them. Encoder and decoder layers are one class, with two or three sublayers in a row.
"""

import torch.nn.functional as F


class Layer(nn.Module):
    """Self-attention, cross-attention if there is a memory, and feed-forward."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float,
        norm: str,
        crosses: bool,
    ) -> None:
        super().__init__()
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.pre, self.rate, self.crosses = norm == "pre", dropout, crosses
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        if crosses:
            self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        for number in range(1, 4 if crosses else 3):
            setattr(self, f"norm{number}", LayerNorm(d_model))

    def enter(self, x: Tensor, norm: LayerNorm) -> Tensor:
        """The input of a sublayer."""
        return norm(x) if self.pre else x

    def leave(self, x: Tensor, new: Tensor, norm: LayerNorm) -> Tensor:
        """The residual stream after a sublayer."""
        total = x + F.dropout(new, self.rate, self.training)
        return total if self.pre else norm(total)

    def run(
        self,
        x: Tensor,
        past: Tensor | None,
        mask: Tensor | None,
        memory: Tensor | None,
        memory_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The output for new positions x, and all inputs of the self-attention so far."""
        entered = self.enter(x, self.norm1)
        seen = entered if past is None else torch.cat([past, entered], dim=1)
        x = self.leave(x, self.self_attention(entered, seen, seen, mask)[0], self.norm1)
        last = self.norm2
        if self.crosses:
            entered = self.enter(x, self.norm2)
            attended, _ = self.cross_attention(entered, memory, memory, memory_mask)
            x = self.leave(x, attended, self.norm2)
            last = self.norm3
        return self.leave(x, self.feed_forward(self.enter(x, last)), last), seen


class EncoderLayer(Layer):
    """A layer without a memory."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout, norm, crosses=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_vectors(x, self.d_model)
        return self.run(x, None, mask, None, None)[0]


class DecoderLayer(Layer):
    """A layer with a memory."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout, norm, crosses=True)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        return self.run(x, None, mask, memory, memory_mask)[0]


class Transformer(nn.Module):
    def embed(self, ids: Tensor, embedding: nn.Embedding, first: int = 0) -> Tensor:
        """The vectors of ids at the positions from `first` on."""
        length = first + ids.shape[1]
        if self.config.positions == "learned":
            positions = self.positions(length)
        else:
            positions = sinusoidal_encoding(length, self.config.d_model)
        x = self.config.d_model**0.5 * embedding(ids)
        return F.dropout(x + positions[first:].to(x.dtype), self.config.dropout, self.training)
