"""Assignment 6, exercises 6.3 to 6.5: encoder, decoder and the whole Transformer.

The conventions at the top of layers.py hold here too.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assignments.a5_attention.attention import (
    MultiHeadAttention,
    causal_mask,
    combine_masks,
    padding_mask,
)
from assignments.a6_transformer.layers import (
    FeedForward,
    LayerNorm,
    LearnedPositions,
    check_encoding,
    check_sizes,
    check_vectors,
    sinusoidal_encoding,
)

PAD, BOS, EOS = 0, 1, 2  # ids: padding, beginning and end of a sequence (common/data/numbers.py)


def check_ids(ids: Int[Tensor, "n t"]) -> None:
    """Given: raise ValueError unless ids is an int64 tensor (n, t) with both at least 1."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids must be a tensor, got {type(ids).__name__}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids must be {torch.int64}, got {ids.dtype}")
    if ids.ndim != 2 or ids.numel() == 0:
        raise ValueError(f"ids must be (n, t) with both at least 1, got {tuple(ids.shape)}")


def check_tokens(ids: Int[Tensor, "n t"], vocab_size: int) -> None:
    """Given: raise ValueError for ids of a wrong shape or dtype, or outside the vocabulary."""
    check_ids(ids)
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise ValueError(f"ids must be from 0 to {vocab_size - 1}, got {ids.min()} to {ids.max()}")


def check_padding(ids: Int[Tensor, "n t"]) -> None:
    """Given: raise ValueError for a sequence without a token, or with a token after padding."""
    check_ids(ids)
    real = ids != PAD
    if not real[:, 0].all():
        raise ValueError("every sequence must start with a token, got padding first")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("padding must come after all tokens of a sequence")


def check_norm(norm: str) -> None:
    """Given: raise ValueError unless norm is "post" or "pre"."""
    if norm not in ("post", "pre"):
        raise ValueError(f"norm must be 'post' or 'pre', got {norm!r}")


def trim(ids: Int[Tensor, "n t"]) -> Int[Tensor, "n shorter"]:
    """Given: the ids without the columns at the end that hold only padding."""
    return ids[:, : int((ids != PAD).sum(dim=1).max())]


# Exercise 6.3


class EncoderLayer(nn.Module):
    """Two sublayers, self-attention and feed-forward, each with a residual connection and a norm.

    norm="post", as in the original paper:  x = norm1(x + dropout(attention(x)))
                                            x = norm2(x + dropout(feed_forward(x)))
    norm="pre", which trains more easily:   x = x + dropout(attention(norm1(x)))
                                            x = x + dropout(feed_forward(norm2(x)))

    In the attention, queries, keys and values are the same vectors. feed_forward gets the dropout
    rate too. The attention weights have no dropout.

    Parameters: self_attention.*, feed_forward.*, norm1.*, norm2.* (a MultiHeadAttention with bias,
        a FeedForward, two LayerNorms).
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        raise NotImplementedError("EncoderLayer.__init__: exercise 6.3 is yours to write")

    def forward(
        self, x: Float[Tensor, "n t d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "n t d_model"]:
        check_vectors(x, self.d_model)
        raise NotImplementedError("EncoderLayer.forward: exercise 6.3 is yours to write")


class Encoder(nn.Module):
    """num_layers encoder layers, one after the other. All get the same mask.

    With norm="pre" the residual stream is never normalized on its way, so one more LayerNorm
    follows the last layer, called norm. With norm="post" there is none.
    (nn.Transformer has that last norm with either setting.)

    Parameters: layers.0.*, layers.1.*, ... and, with norm="pre", norm.*
    """

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
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff, num_layers)
        raise NotImplementedError("Encoder.__init__: exercise 6.3 is yours to write")

    def forward(
        self, x: Float[Tensor, "n t d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "n t d_model"]:
        raise NotImplementedError("Encoder.forward: exercise 6.3 is yours to write")


# Exercise 6.4


class DecoderLayer(nn.Module):
    """Three sublayers: self-attention, cross-attention and feed-forward, each as in EncoderLayer.

    They have norm1, norm2 and norm3, in this order. In cross_attention the queries come from the
    decoder; keys and values are `memory`, the encoder's output. No norm of this layer is applied
    to memory.

    Parameters: self_attention.*, cross_attention.*, feed_forward.*, norm1.*, norm2.*, norm3.*
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        raise NotImplementedError("DecoderLayer.__init__: exercise 6.4 is yours to write")

    def forward(
        self,
        x: Float[Tensor, "n t d_model"],
        memory: Float[Tensor, "n s d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "n t d_model"]:
        """mask is for the self-attention, memory_mask for the cross-attention.

        The layer adds no mask of its own: causality is up to the caller's `mask`.
        """
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        raise NotImplementedError("DecoderLayer.forward: exercise 6.4 is yours to write")


class Decoder(nn.Module):
    """num_layers decoder layers, one after the other. All get the same memory and masks.

    As in Encoder, norm="pre" has one more LayerNorm at the end, called norm.

    Parameters: layers.0.*, layers.1.*, ... and, with norm="pre", norm.*
    """

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
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff, num_layers)
        raise NotImplementedError("Decoder.__init__: exercise 6.4 is yours to write")

    def forward(
        self,
        x: Float[Tensor, "n t d_model"],
        memory: Float[Tensor, "n s d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "n t d_model"]:
        raise NotImplementedError("Decoder.forward: exercise 6.4 is yours to write")


# Exercise 6.5


@dataclass(frozen=True)
class TransformerConfig:
    """Given: the sizes of a Transformer. Raises ValueError for invalid settings."""

    source_vocab_size: int  # number of ids, the three special ones included
    target_vocab_size: int
    d_model: int = 64
    num_heads: int = 4
    d_ff: int = 128
    num_encoder_layers: int = 2
    num_decoder_layers: int = 2
    dropout: float = 0.0
    norm: str = "pre"  # or "post"
    positions: str = "sinusoidal"  # or "learned", for positions below max_length
    max_length: int = 64  # of learned positions; sinusoidal ones have no limit
    tied_embeddings: bool = False  # one matrix for both embeddings and the output layer

    def __post_init__(self) -> None:
        check_norm(self.norm)
        vocab_sizes = self.source_vocab_size, self.target_vocab_size
        if min(vocab_sizes) < 4:
            raise ValueError(
                "a vocabulary needs PAD, BOS, EOS and at least one more token: "
                f"its size must be at least 4, got {vocab_sizes}"
            )
        check_sizes(self.d_model, self.num_heads, self.d_ff, self.max_length)
        check_sizes(self.num_encoder_layers, self.num_decoder_layers)
        if self.d_model % self.num_heads:
            raise ValueError(
                f"num_heads must divide d_model, got {self.num_heads} and {self.d_model}"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if self.positions not in ("sinusoidal", "learned"):
            raise ValueError(f"positions must be 'sinusoidal' or 'learned', got {self.positions!r}")
        if self.positions == "sinusoidal":
            check_encoding(self.d_model)
        if self.tied_embeddings and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                f"tied embeddings need one vocabulary size for both sides, got {vocab_sizes}"
            )


def make_masks(
    source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
) -> tuple[Bool[Tensor, "n 1 s"], Bool[Tensor, "n t t"]]:
    """The masks for a batch of sources and decoder inputs: (source_mask, target_mask).

    source_mask (n, 1, s): no query attends to the padding of a source.
    target_mask (n, t, t): a position attends to itself and to earlier ones, except where these are
    padding. So a padded position attends to the tokens before it, and not to itself.
    """
    check_padding(source)
    check_padding(target)
    raise NotImplementedError("make_masks: exercise 6.5 is yours to write")


class Transformer(nn.Module):
    """Encoder and decoder, with embeddings before them and an output layer after them.

    The vector of a token is its row of the embedding times sqrt(d_model), plus the positional
    encoding of its position; then dropout. Positions count from 0 on both sides. With
    positions="sinusoidal" the encodings come from sinusoidal_encoding, cast to the dtype of the
    model; with "learned" from one LearnedPositions for both sides. The output layer has no bias:
    logits = x @ output.weight.T
    After model.double() the encodings must be exact to float64. A table that was rounded to float32
    before, such as a buffer made with .float(), is not.

    Padding has a row in the embedding like any token: masks hide it, not zeros.

    Parameters:
        source_embedding.weight (source_vocab_size, d_model)    an nn.Embedding
        target_embedding.weight (target_vocab_size, d_model)    an nn.Embedding
        positions.weight (max_length, d_model)                  with positions="learned" only
        encoder.*, decoder.*                                    of 6.3 and 6.4
        output.weight (target_vocab_size, d_model)              an nn.Linear without bias
    With tied_embeddings=True one matrix serves as all three: named_parameters() lists it once, as
    source_embedding.weight (so assign that module to self before the others).

    Initialization: embeddings and output from a normal distribution with mean 0 and standard
    deviation 1 / sqrt(d_model), all else as the modules do it.

    model.config is the TransformerConfig.

    A training step should take at most 1.5 times as long as one of nn.Transformer with the same
    sizes, on one thread: d_model 128, 4 heads, d_ff 512, 3 + 3 layers, batches of 64 with 24
    tokens. The test allows 2 times.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        raise NotImplementedError("Transformer.__init__: exercise 6.5 is yours to write")

    def embed(
        self, ids: Int[Tensor, "n t"], embedding: nn.Embedding
    ) -> Float[Tensor, "n t d_model"]:
        """The input of the first layer. Tests use encode, decode and forward only.

        Raises ValueError for sequences longer than max_length if positions are learned.
        """
        raise NotImplementedError("Transformer.embed: exercise 6.5 is yours to write")

    def encode(
        self, source: Int[Tensor, "n s"], source_mask: Bool[Tensor, "n 1 s"] | None = None
    ) -> Float[Tensor, "n s d_model"]:
        """The encoder's output, which the decoder attends to: memory.

        A source_mask of None means no mask, even where the source has padding.
        """
        check_tokens(source, self.config.source_vocab_size)
        check_padding(source)
        raise NotImplementedError("Transformer.encode: exercise 6.5 is yours to write")

    def decode(
        self,
        target: Int[Tensor, "n t"],
        memory: Float[Tensor, "n s d_model"],
        target_mask: Bool[Tensor, "n t t"] | None = None,
        source_mask: Bool[Tensor, "n 1 s"] | None = None,
    ) -> Float[Tensor, "n t v"]:
        """The logits: out[i, p] has one for every id that may follow target[i, p]."""
        check_tokens(target, self.config.target_vocab_size)
        check_padding(target)
        raise NotImplementedError("Transformer.decode: exercise 6.5 is yours to write")

    def forward(
        self, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
    ) -> Float[Tensor, "n t v"]:
        """The logits for decoder inputs that start with BOS, with the masks of make_masks.

        Raises ValueError when source and target differ in number.
        """
        check_ids(source)
        check_ids(target)
        if len(source) != len(target):
            raise ValueError(
                f"source and target must have the same n, got {len(source)} and {len(target)}"
            )
        raise NotImplementedError("Transformer.forward: exercise 6.5 is yours to write")
