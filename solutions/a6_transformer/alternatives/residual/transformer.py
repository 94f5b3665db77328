"""One class for the residual connection around a sublayer, and tables as buffers.

Residual puts residual connection, norm and dropout around a function of x, and has no parameters.
Masks come from the ids themselves. Tied embeddings have no output layer of their own.
"""

from collections.abc import Callable

import torch.nn.functional as F


class Residual(nn.Module):
    """A residual connection around a sublayer, with dropout, and the norm before or after."""

    def __init__(self, norm: str, dropout: float) -> None:
        super().__init__()
        check_norm(norm)
        self.kind = norm
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, norm: LayerNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.kind == "post":
            return norm(x + self.dropout(sublayer(x)))
        return x + self.dropout(sublayer(norm(x)))


class EncoderLayer(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.residual = Residual(norm, dropout)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_vectors(x, self.d_model)
        x = self.residual(x, self.norm1, lambda x: self.self_attention(x, x, x, mask)[0])
        return self.residual(x, self.norm2, self.feed_forward)


class DecoderLayer(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.residual = Residual(norm, dropout)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        x = self.residual(x, self.norm1, lambda x: self.self_attention(x, x, x, mask)[0])
        x = self.residual(
            x, self.norm2, lambda x: self.cross_attention(x, memory, memory, memory_mask)[0]
        )
        return self.residual(x, self.norm3, self.feed_forward)


def make_masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 1, s) and (n, t, t), from the ids themselves."""
    check_padding(source)
    check_padding(target)
    source_mask = source.ne(PAD).unsqueeze(1)
    target_mask = causal_mask(target.shape[1]) & target.ne(PAD).unsqueeze(1)
    return source_mask, target_mask


class Transformer(nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = new_embedding(config.source_vocab_size, config.d_model)
        if config.tied_embeddings:
            # As plain attributes: a matrix with three uses is registered once.
            self.vectors = [self.source_embedding] * 2
        else:
            self.target_embedding = new_embedding(config.target_vocab_size, config.d_model)
            self.output = nn.Linear(config.d_model, config.target_vocab_size, bias=False)
            nn.init.normal_(self.output.weight, std=1 / math.sqrt(config.d_model))
            self.vectors = [self.source_embedding, self.target_embedding]
        sizes = (config.d_model, config.num_heads, config.d_ff)
        if config.positions == "learned":
            self.positions = LearnedPositions(config.max_length, config.d_model)
        else:
            table = sinusoidal_encoding(config.max_length, config.d_model)
            self.register_buffer("table", table, persistent=False)
        self.encoder = Encoder(*sizes, config.num_encoder_layers, config.dropout, config.norm)
        self.decoder = Decoder(*sizes, config.num_decoder_layers, config.dropout, config.norm)

    def encodings(self, length: int, like: Tensor) -> Tensor:
        """The encodings of the first positions, in the dtype of another tensor."""
        if self.config.positions == "learned":
            return self.positions(length)
        if length > len(self.table):
            self.table = sinusoidal_encoding(2 * length, self.config.d_model)
        return self.table[:length].to(like.dtype)

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        x = embedding(ids).mul(self.config.d_model**0.5)
        x = x + self.encodings(ids.shape[1], x)
        return F.dropout(x, self.config.dropout, self.training)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        check_tokens(source, self.config.source_vocab_size)
        check_padding(source)
        return self.encoder(self.embed(source, self.vectors[0]), source_mask)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        check_tokens(target, self.config.target_vocab_size)
        check_padding(target)
        x = self.decoder(self.embed(target, self.vectors[1]), memory, target_mask, source_mask)
        weight = self.source_embedding.weight if self.config.tied_embeddings else self.output.weight
        return F.linear(x, weight)


def new_embedding(vocab_size: int, d_model: int) -> nn.Embedding:
    """An embedding whose vectors have a norm of about 1."""
    embedding = nn.Embedding(vocab_size, d_model)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(d_model))
    return embedding
