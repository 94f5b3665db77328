"""Stand-in for the lab of assignment 6: a Transformer on PyTorch's own layers.

It is written on PyTorch's own layers, which the exercises don't allow.
"""

import math
from functools import reduce

import torch
from torch import Tensor, nn

from common.labs.standins.a6_transformer.layers import sinusoidal_encoding


class WatchedAttention(nn.MultiheadAttention):
    """PyTorch's attention, which keeps the weights of its heads, initialized like nn.Linear."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model, num_heads, batch_first=True)
        for weight in self.parameters():
            nn.init.uniform_(weight, -(d_model**-0.5), d_model**-0.5)

    def forward(self, *inputs: Tensor, **options: object) -> tuple[Tensor, Tensor]:
        """As nn.MultiheadAttention, with weights (n, heads, t_q, t_k)."""
        wanted = {"need_weights": True, "average_attn_weights": False}
        out, self.weights = super().forward(*inputs, **(options | wanted))
        return out, self.weights


class EncoderLayer(nn.TransformerEncoderLayer):
    """PyTorch's layer. Masks have True for "may be attended to"; here they are (t, t)."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__(
            d_model, num_heads, d_ff, dropout, batch_first=True, norm_first=norm == "pre"
        )
        self.self_attn = WatchedAttention(d_model, num_heads)

    def forward(self, vectors: Tensor, allowed: Tensor | None = None) -> Tensor:
        """The output."""
        return super().forward(vectors, None if allowed is None else ~allowed)


class Encoder(nn.Module):
    """Layers one after the other, and with "pre" a norm at the end."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        dropout: float = 0.0,
        norm: str = "pre",
    ) -> None:
        super().__init__()
        sizes = d_model, num_heads, d_ff, dropout, norm
        layers = [EncoderLayer(*sizes) for _ in range(num_layers)]
        self.add_module("layers", nn.ModuleList(layers))
        self.norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()

    def forward(self, vectors: Tensor, allowed: Tensor | None = None) -> Tensor:
        """The output."""
        return self.norm(reduce(lambda out, layer: layer(out, allowed), self.layers, vectors))


class TransformerConfig:
    """The sizes of a Transformer: those that the lab sets."""

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        d_model: int = 64,
        num_heads: int = 4,
        d_ff: int = 128,
        num_encoder_layers: int = 2,
        num_decoder_layers: int = 2,
    ) -> None:
        self.source_vocab_size = source_vocab_size
        self.target_vocab_size = target_vocab_size
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_ff = d_ff
        self.num_encoder_layers = num_encoder_layers
        self.num_decoder_layers = num_decoder_layers


class Transformer(nn.Module):
    """Pre-norm, sinusoidal positions, no dropout, and sources without padding."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        d_model, heads, d_ff = config.d_model, config.num_heads, config.d_ff
        vocab_sizes = config.source_vocab_size, config.target_vocab_size
        self.rows = nn.ModuleList([nn.Embedding(size, d_model) for size in vocab_sizes])
        self.encoder = Encoder(d_model, heads, d_ff, config.num_encoder_layers)
        layer = nn.TransformerDecoderLayer(
            d_model, heads, d_ff, 0.0, batch_first=True, norm_first=True
        )
        last_norm = nn.LayerNorm(d_model)
        self.decoder = nn.TransformerDecoder(layer, config.num_decoder_layers, last_norm)
        for one in self.decoder.layers:
            one.self_attn = WatchedAttention(d_model, heads)
            one.multihead_attn = WatchedAttention(d_model, heads)
            for linear in (one.linear1, one.linear2):  # nn.TransformerDecoder copies one layer
                linear.reset_parameters()
        self.last = nn.Linear(d_model, vocab_sizes[1], bias=False)
        for layer in (*self.rows, self.last):
            nn.init.normal_(layer.weight, 0.0, 1 / math.sqrt(d_model))

    def forward(self, *both: Tensor) -> Tensor:
        """Logits for the token after each position of the target. both: source and target."""
        x, y = (
            math.sqrt(self.config.d_model) * rows(ids)
            + sinusoidal_encoding(ids.shape[1], self.config.d_model).to(rows.weight)
            for ids, rows in zip(both, self.rows, strict=True)
        )
        later = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).triu(1)
        return self.last(self.decoder(y, self.encoder(x), tgt_mask=later))
