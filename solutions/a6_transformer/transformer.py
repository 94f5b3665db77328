"""Assignment 6, exercises 6.3 to 6.5: encoder, decoder and the whole Transformer.

The conventions at the top of layers.py hold here too.
"""

import math

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

PADDING, BEGIN, END = 0, 1, 2  # ids, as in common/data/numbers.py


def check_ids(ids: Int[Tensor, "n t"]) -> None:
    """Given: raise ValueError unless ids is a tensor, (n, t), both at least 1, and of int64."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids must be a tensor, not a {type(ids).__name__}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids are of int64, not of {ids.dtype}")
    if ids.ndim != 2 or ids.numel() == 0:
        raise ValueError(f"ids must be (n, t) with both at least 1, got {tuple(ids.shape)}")


def check_tokens(ids: Int[Tensor, "n t"], vocabulary: int) -> None:
    """Given: raise ValueError for ids of a wrong shape or type, or not in the vocabulary."""
    check_ids(ids)
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids lie between 0 and {vocabulary - 1}, got {ids.min()} to {ids.max()}")


def check_padding(ids: Int[Tensor, "n t"]) -> None:
    """Given: raise ValueError for a sequence without a token, or with a token after padding."""
    check_ids(ids)
    real = ids != PADDING
    if not real[:, 0].all():
        raise ValueError("a sequence is empty, or has padding before its first token")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("padding must come after all tokens of a sequence")


def check_norm(norm: str) -> None:
    """Given: raise ValueError unless norm is "post" or "pre"."""
    if norm not in ("post", "pre"):
        raise ValueError(f"norm must be 'post' or 'pre', got {norm!r}")


# Exercise 6.3


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with a shortcut around it and a norm.

    norm="post", as first published:  x = norm1(x + dropout(attention of x))
                                      x = norm2(x + dropout(feed_forward(x)))
    norm="pre", easier to train:      x = x + dropout(attention of norm1(x))
                                      x = x + dropout(feed_forward(norm2(x)))

    In the attention, queries, keys and values are the same vectors. feed_forward has the dropout
    too. The attention weights have none.

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
        # BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.is_pre = norm == "pre"
        # END SOLUTION

    def forward(
        self, x: Float[Tensor, "n t d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "n t d_model"]:
        check_vectors(x, self.d_model)
        # BEGIN SOLUTION
        if self.is_pre:
            normed = self.norm1(x)
            x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
        return self.norm2(x + self.dropout(self.feed_forward(x)))
        # END SOLUTION


class Encoder(nn.Module):
    """num_layers encoder layers, one after the other. All get the same mask.

    With norm="pre" the sum that runs past all layers has never been normed, so there is one more
    LayerNorm after the last layer, called norm. With norm="post" there is none.
    (nn.Transformer puts a norm at the end with either setting.)

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
        # BEGIN SOLUTION
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff, dropout, norm) for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model) if norm == "pre" else nn.Identity()
        # END SOLUTION

    def forward(
        self, x: Float[Tensor, "n t d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "n t d_model"]:
        # BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
        # END SOLUTION


# Exercise 6.4


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder's output, feed-forward: each as in EncoderLayer.

    The three parts have norm1, norm2 and norm3, in this order. In cross_attention the queries come
    from the decoder, and keys and values are `memory`, the encoder's output. memory itself is never
    normed here.

    Parameters: self_attention.*, cross_attention.*, feed_forward.*, norm1.*, norm2.*, norm3.*
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        # BEGIN SOLUTION
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.norm3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.is_pre = norm == "pre"
        # END SOLUTION

    def forward(
        self,
        x: Float[Tensor, "n t d_model"],
        memory: Float[Tensor, "n s d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "n t d_model"]:
        """mask is for the self-attention, memory_mask for the cross-attention.

        The layer adds no mask of its own: that no place sees a later one is up to `mask`.
        """
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        # BEGIN SOLUTION
        if self.is_pre:
            normed = self.norm1(x)
            x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])
            normed = self.norm2(x)
            x = x + self.dropout(self.cross_attention(normed, memory, memory, memory_mask)[0])
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        x = self.norm1(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
        x = self.norm2(x + self.dropout(self.cross_attention(x, memory, memory, memory_mask)[0]))
        return self.norm3(x + self.dropout(self.feed_forward(x)))
        # END SOLUTION


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
        # BEGIN SOLUTION
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, num_heads, d_ff, dropout, norm) for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model) if norm == "pre" else nn.Identity()
        # END SOLUTION

    def forward(
        self,
        x: Float[Tensor, "n t d_model"],
        memory: Float[Tensor, "n s d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "n t d_model"]:
        # BEGIN SOLUTION
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)
        # END SOLUTION


# Exercise 6.5


class TransformerConfig:
    """Given: the sizes of a Transformer. Raises ValueError for settings that make no sense."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d_model: int = 64,
        num_heads: int = 4,
        d_ff: int = 128,
        encoder_layers: int = 2,
        decoder_layers: int = 2,
        dropout: float = 0.0,
        norm: str = "pre",
        positions: str = "sinusoidal",
        max_length: int = 64,
        shared: bool = False,
    ) -> None:
        """Each setting but the vocabularies has a value that works.

        source_vocabulary, target_vocabulary: how many ids there are, the three special ones
            included; at least 4.
        positions: "sinusoidal", or "learned" for places up to max_length.
        shared: one matrix for both embeddings and the output layer; the vocabularies must then be
            one vocabulary.
        """
        check_norm(norm)
        if min(source_vocabulary, target_vocabulary) <= END + 1:
            raise ValueError("a vocabulary has padding, begin, end and at least one more token")
        if min(d_model, num_heads, d_ff, encoder_layers, decoder_layers, max_length) < 1:
            raise ValueError("all sizes must be at least 1")
        if d_model % num_heads:
            raise ValueError(f"{d_model} features can't be shared out among {num_heads} heads")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
        if positions not in ("sinusoidal", "learned"):
            raise ValueError(f"positions must be 'sinusoidal' or 'learned', got {positions!r}")
        if positions == "sinusoidal":
            check_encoding(d_model)
        if shared and source_vocabulary != target_vocabulary:
            raise ValueError(f"{source_vocabulary} and {target_vocabulary} ids can't share vectors")
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_ff = d_ff
        self.encoder_layers = encoder_layers
        self.decoder_layers = decoder_layers
        self.dropout = dropout
        self.norm = norm
        self.positions = positions
        self.max_length = max_length
        self.shared = shared


def make_masks(
    source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
) -> tuple[Bool[Tensor, "n 1 s"], Bool[Tensor, "n t t"]]:
    """The masks for a batch of sources and decoder inputs: (source_mask, target_mask).

    source_mask (n, 1, s): no one attends to the padding of a source.
    target_mask (n, t, t): a place attends to itself and to earlier ones, but not to padding.
    """
    check_padding(source)
    check_padding(target)
    # BEGIN SOLUTION
    source_mask = padding_mask((source != PADDING).sum(dim=1), source.shape[1])  # (n, 1, s)
    target_padding = padding_mask((target != PADDING).sum(dim=1), target.shape[1])  # (n, 1, t)
    return source_mask, combine_masks(causal_mask(target.shape[1]), target_padding)
    # END SOLUTION


def trim(ids: Int[Tensor, "n t"]) -> Int[Tensor, "n shorter"]:
    """Given: the ids without the columns at the end that hold nothing but padding."""
    return ids[:, : int((ids != PADDING).sum(dim=1).max())]


class Transformer(nn.Module):
    """Encoder and decoder, with embeddings before them and an output layer after them.

    The vector of a token is its row of the embedding times sqrt(d_model), plus the vector of its
    place; then dropout. Places count from 0 on both sides. With positions="sinusoidal" their
    vectors come from sinusoidal_encoding, cast to the dtype of the model; with "learned" from one
    LearnedPositions for both sides. The output layer has no bias: logits = x @ output.weight.T
    After model.double() the places are exact to float64: a table of them that was rounded to
    float32 before, such as a buffer made with .float(), is wrong then.

    Padding has a row in the embedding like any token: masks keep it out, not zeros.

    Parameters:
        source_embedding.weight (source_vocabulary, d_model)    an nn.Embedding
        target_embedding.weight (target_vocabulary, d_model)    an nn.Embedding
        positions.weight (max_length, d_model)                  with positions="learned" only
        encoder.*, decoder.*                                    of 6.3 and 6.4
        output.weight (target_vocabulary, d_model)              an nn.Linear without bias
    With shared=True there is one matrix for all three: named_parameters() lists it once, as
    source_embedding.weight (so make that module first).

    First weights: embeddings and output from a normal distribution with mean 0 and standard
    deviation 1 / sqrt(d_model), all others as their modules draw them.

    model.config is the TransformerConfig.

    A training step takes at most 1.5 times as long as one of nn.Transformer with the same sizes, on
    one thread: d_model 128, 4 heads, d_ff 512, 3 + 3 layers, batches of 64 with 24 tokens.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        # BEGIN SOLUTION
        d_model = config.d_model
        sizes = d_model, config.num_heads, config.d_ff
        self.source_embedding = nn.Embedding(config.source_vocabulary, d_model)
        self.target_embedding = nn.Embedding(config.target_vocabulary, d_model)
        if config.positions == "learned":
            self.positions = LearnedPositions(config.max_length, d_model)
        self.encoder = Encoder(*sizes, config.encoder_layers, config.dropout, config.norm)
        self.decoder = Decoder(*sizes, config.decoder_layers, config.dropout, config.norm)
        self.output = nn.Linear(d_model, config.target_vocabulary, bias=False)
        self.dropout = nn.Dropout(config.dropout)
        for layer in (self.source_embedding, self.target_embedding, self.output):
            nn.init.normal_(layer.weight, std=d_model**-0.5)
        if config.shared:
            self.target_embedding.weight = self.source_embedding.weight
            self.output.weight = self.source_embedding.weight
        # END SOLUTION

    def embed(
        self, ids: Int[Tensor, "n t"], embedding: nn.Embedding
    ) -> Float[Tensor, "n t d_model"]:
        """The vectors that go into the first layer. Tests use encode, decode and forward only.

        Raises ValueError when the ids are more than max_length places long and places are learned.
        """
        # BEGIN SOLUTION
        length, d_model = ids.shape[1], self.config.d_model
        x = embedding(ids) * math.sqrt(d_model)  # (n, t, d_model)
        if self.config.positions == "learned":
            return self.dropout(x + self.positions(length))
        return self.dropout(x + sinusoidal_encoding(length, d_model).to(x))
        # END SOLUTION

    def encode(
        self, source: Int[Tensor, "n s"], source_mask: Bool[Tensor, "n 1 s"] | None = None
    ) -> Float[Tensor, "n s d_model"]:
        """The encoder's output, for the decoder to attend to: memory."""
        check_tokens(source, self.config.source_vocabulary)
        check_padding(source)
        # BEGIN SOLUTION
        return self.encoder(self.embed(source, self.source_embedding), source_mask)
        # END SOLUTION

    def decode(
        self,
        target: Int[Tensor, "n t"],
        memory: Float[Tensor, "n s d_model"],
        target_mask: Bool[Tensor, "n t t"] | None = None,
        source_mask: Bool[Tensor, "n 1 s"] | None = None,
    ) -> Float[Tensor, "n t v"]:
        """The logits: out[i, p] scores every id as the one that follows target[i, p]."""
        check_tokens(target, self.config.target_vocabulary)
        check_padding(target)
        # BEGIN SOLUTION
        x = self.embed(target, self.target_embedding)  # (n, t, d_model)
        return self.output(self.decoder(x, memory, target_mask, source_mask))  # (n, t, v)
        # END SOLUTION

    def forward(
        self, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
    ) -> Float[Tensor, "n t v"]:
        """The logits for decoder inputs that begin with BEGIN, with the masks of make_masks.

        Raises ValueError when source and target differ in number.
        """
        check_ids(source)
        check_ids(target)
        if len(source) != len(target):
            raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
        # BEGIN SOLUTION
        source_mask, target_mask = make_masks(source, target)
        memory = self.encode(source, source_mask)  # (n, s, d_model)
        return self.decode(target, memory, target_mask, source_mask)
        # END SOLUTION
