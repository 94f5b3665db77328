"""Assignment 6: the Transformer, from positions to beam search, in PyTorch.

Conventions of the whole file
    Sequences of vectors are tensors of shape (n, t, d): sequence, place, feature.
    Tokens are ids, int64 tensors of shape (n, t). Each row is a sequence of at least one token,
    with padding (id 0) after it where others are longer, and nowhere else.
    A source is its tokens alone. A target begins with BEGIN (id 1) and ends with END (id 2).
    Masks are of bool, True means "may be attended to", in the shapes of assignment 5: (t_q, t_k),
    (n, t_q, t_k) or (n, 1, t_k). None means that everything may be attended to. A mask of another
    shape or type is refused by assignment 5's MultiHeadAttention, with ValueError.
    A module has the parameters that its docstring lists, under these names, as named_parameters()
    gives them, and no others. Buffers are up to you. "self_attention.*" stands for the eight
    parameters of a MultiHeadAttention of that name, "norm1.*" for the two of a LayerNorm.
    First values are those that PyTorch's own layers draw, where the docstring names no others.
    A module works in the dtype of its parameters, float32 or float64 (after module.double()).
    Dropout acts in training mode only (module.train()); rate 0 means none.
    No function changes a tensor that it is given. Only train changes something: its model.
    Bad input raises ValueError. Where a check is given, it stands in the stub already: of sizes
    below 1, of vectors that are not (n, t, d_model), of ids, and of lists where tensors belong.
    What else is to be refused, the docstring says.

The attention of assignment 5 is the only one: nn.MultiheadAttention, nn.Transformer and their kin
are not allowed, nor is nn.LayerNorm.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assignments.a5_attention.attention import (
    MultiHeadAttention,
    causal_mask,
    combine_masks,
    padding_mask,
)
from common.training.training_progress import TrainingDisplay

PADDING, BEGIN, END = 0, 1, 2  # ids, as in common/data/numbers.py


def check_sizes(*sizes: int) -> None:
    """Given: raise ValueError for a size below 1."""
    if min(sizes) < 1:
        raise ValueError(f"all sizes must be at least 1, got {sizes}")


def check_floats(x: Float[Tensor, "..."]) -> None:
    """Given: raise ValueError unless x is a tensor of floats."""
    if not isinstance(x, Tensor):
        raise ValueError(f"a tensor is needed, not a {type(x).__name__}")
    if not x.is_floating_point():
        raise ValueError(f"a tensor of floats is needed, not of {x.dtype}")


def check_vectors(x: Float[Tensor, "n t d_model"], d_model: int) -> None:
    """Given: raise ValueError unless x is a tensor of floats, (n, t, d_model)."""
    check_floats(x)
    if x.ndim != 3 or x.shape[2] != d_model:
        raise ValueError(f"vectors must be (n, t, {d_model}), got {tuple(x.shape)}")


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


# Exercise 6.1


def check_encoding(d_model: int, length: int = 1) -> None:
    """Given: raise ValueError for an odd d_model, one below 2, or a length below 1."""
    if d_model < 2 or d_model % 2:
        raise ValueError(
            f"d_model must be even and at least 2 for sines and cosines, got {d_model}"
        )
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")


def sinusoidal_encoding(length: int, d_model: int) -> Float[Tensor, "length d_model"]:
    """A vector for each place 0 ... length - 1: d_model / 2 waves, from fast to slow.

    out[p, 2 * i] = sin(p * w_i) and out[p, 2 * i + 1] = cos(p * w_i), with the frequency
    w_i = 10000 ** (-2 * i / d_model), for i = 0 ... d_model / 2 - 1.

    Returns float64, computed in float64: the angles of far places lose digits in float32.
    """
    check_encoding(d_model, length)
    raise NotImplementedError("sinusoidal_encoding: exercise 6.1 is yours to write")


def shift_matrix(k: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """The matrix that moves an encoding k places on, whatever the place it starts from.

    Encodings are column vectors here: out @ encoding[p] = encoding[p + k] for every p, where
    encoding = sinusoidal_encoding(length, d_model). k may be negative or 0.
    Returns float64.
    """
    check_encoding(d_model)
    raise NotImplementedError("shift_matrix: exercise 6.1 is yours to write")


class LearnedPositions(nn.Module):
    """A vector for each place that is learned like any weight: the other way to tell places apart.

    Parameters: weight (max_length, d_model), drawn from the standard normal distribution.
    """

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        check_sizes(max_length, d_model)
        raise NotImplementedError("LearnedPositions.__init__: exercise 6.1 is yours to write")

    def forward(self, length: int) -> Float[Tensor, "length d_model"]:
        """The vectors of the places 0 ... length - 1.

        Raises ValueError for a length below 1 or above max_length: nothing is known about places
        that were never learned.
        """
        raise NotImplementedError("LearnedPositions.forward: exercise 6.1 is yours to write")


# Exercise 6.2


class LayerNorm(nn.Module):
    """Bring each vector to mean 0 and variance 1, then scale and shift each of its features.

    out = (x - mean) / sqrt(variance + epsilon) * weight + bias

    The mean and the variance are those of one vector, over the last axis; any axes may come before
    it. The variance is the mean of the squared differences: it divides by d_model, not by
    d_model - 1. Take the differences before you square: the mean of the squares minus the square of
    the mean loses all its digits when the vector lies far from 0.

    Parameters: weight (d_model,), ones at first; bias (d_model,), zeros at first.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        check_sizes(d_model)
        self.epsilon = epsilon
        raise NotImplementedError("LayerNorm.__init__: exercise 6.2 is yours to write")

    def forward(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... d_model"]:
        """Raises ValueError if the last axis of x is not d_model long."""
        check_floats(x)
        raise NotImplementedError("LayerNorm.forward: exercise 6.2 is yours to write")


class FeedForward(nn.Module):
    """Two dense layers on each vector by itself: linear2(dropout(relu(linear1(x)))).

    linear1 and linear2 are nn.Linear layers with bias.

    Parameters: linear1.weight (d_ff, d_model), linear1.bias (d_ff,),
        linear2.weight (d_model, d_ff), linear2.bias (d_model,).
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        raise NotImplementedError("FeedForward.__init__: exercise 6.2 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError for vectors of another length than d_model."""
        check_vectors(x, self.d_model)
        raise NotImplementedError("FeedForward.forward: exercise 6.2 is yours to write")


class FeedForwardConv(nn.Module):
    """The same, seen as two convolutions along the sequence with kernels of size 1.

    conv1 and conv2 are nn.Conv1d layers with bias, with a relu between them and without dropout.
    nn.Conv1d wants (n, features, t), so the axes change places on the way in and on the way out.

    Parameters: conv1.weight (d_ff, d_model, 1), conv1.bias (d_ff,),
        conv2.weight (d_model, d_ff, 1), conv2.bias (d_model,).
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        raise NotImplementedError("FeedForwardConv.__init__: exercise 6.2 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError for vectors of another length than d_model."""
        check_vectors(x, self.d_model)
        raise NotImplementedError("FeedForwardConv.forward: exercise 6.2 is yours to write")


def from_linear(feed_forward: FeedForward) -> FeedForwardConv:
    """A new FeedForwardConv that computes what feed_forward computes (without its dropout).

    It has copies of the weights, in their dtype: changing one module doesn't change the other.
    """
    raise NotImplementedError("from_linear: exercise 6.2 is yours to write")


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
        raise NotImplementedError("EncoderLayer.__init__: exercise 6.3 is yours to write")

    def forward(
        self, x: Float[Tensor, "n t d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "n t d_model"]:
        check_vectors(x, self.d_model)
        raise NotImplementedError("EncoderLayer.forward: exercise 6.3 is yours to write")


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
        raise NotImplementedError("Encoder.__init__: exercise 6.3 is yours to write")

    def forward(
        self, x: Float[Tensor, "n t d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "n t d_model"]:
        raise NotImplementedError("Encoder.forward: exercise 6.3 is yours to write")


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
        raise NotImplementedError("DecoderLayer.__init__: exercise 6.4 is yours to write")

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
    raise NotImplementedError("make_masks: exercise 6.5 is yours to write")


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
        raise NotImplementedError("Transformer.__init__: exercise 6.5 is yours to write")

    def embed(
        self, ids: Int[Tensor, "n t"], embedding: nn.Embedding
    ) -> Float[Tensor, "n t d_model"]:
        """The vectors that go into the first layer. Tests use encode, decode and forward only.

        Raises ValueError when the ids are more than max_length places long and places are learned.
        """
        raise NotImplementedError("Transformer.embed: exercise 6.5 is yours to write")

    def encode(
        self, source: Int[Tensor, "n s"], source_mask: Bool[Tensor, "n 1 s"] | None = None
    ) -> Float[Tensor, "n s d_model"]:
        """The encoder's output, for the decoder to attend to: memory."""
        check_tokens(source, self.config.source_vocabulary)
        check_padding(source)
        raise NotImplementedError("Transformer.encode: exercise 6.5 is yours to write")

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
        raise NotImplementedError("Transformer.decode: exercise 6.5 is yours to write")

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
        raise NotImplementedError("Transformer.forward: exercise 6.5 is yours to write")


# Exercise 6.6


def label_smoothing_loss(
    logits: Float[Tensor, "n t v"], targets: Int[Tensor, "n t"], smoothing: float = 0.1
) -> Float[Tensor, ""]:
    """Cross-entropy against targets that are not quite sure: the mean over all real places.

    At each place the right id gets 1 - smoothing, and then all v ids, the right one and padding
    included, get smoothing / v more. The loss of a place is -(the sum over ids of what the id gets
    times the log-softmax of its logit), in nats.

    Places where the target is PADDING don't count, in the sum and in the number that it is divided
    by. The mean is over places, not over sequences first. If all are padding, the loss is 0 and so
    is its gradient. Stable for logits of any finite size, 1e4 too.

    Returns a tensor without axes. F.log_softmax is allowed, F.cross_entropy is not.
    Raises ValueError if smoothing is not at least 0 and below 1.
    """
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    raise NotImplementedError("label_smoothing_loss: exercise 6.6 is yours to write")


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """The learning rate of a step: up in a straight line for `warmup` steps, then down.

    d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), for step 1, 2, ...

    Returns a Python float. Raises ValueError if step, d_model or warmup is below 1.
    """
    raise NotImplementedError("noam_rate: exercise 6.6 is yours to write")


# Exercise 6.7


class Config:
    """Given: how to train. Raises ValueError for settings that make no sense."""

    def __init__(
        self,
        steps: int = 450,
        batch_size: int = 32,
        warmup: int = 100,
        factor: float = 0.5,
        smoothing: float = 0.1,
        max_norm: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Each setting has a value that works.

        steps: weight updates in all.
        factor: the learning rate is noam_rate times this.
        max_norm: gradients are clipped to this norm, all parameters taken together.
        seed: the same seed gives the same run, another seed gives other batches.
        """
        if steps < 1 or batch_size < 1 or warmup < 1 or factor <= 0 or max_norm <= 0:
            raise ValueError(
                "steps, batch_size and warmup must be at least 1, factor and max_norm above 0, "
                f"got {steps}, {batch_size}, {warmup}, {factor}, {max_norm}"
            )
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")
        self.steps = steps
        self.batch_size = batch_size
        self.warmup = warmup
        self.factor = float(factor)
        self.smoothing = float(smoothing)
        self.max_norm = float(max_norm)
        self.seed = seed


class Evaluation:
    """Given: `with Evaluation(model):` has no dropout and no gradients, and ends as it began."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.no_grad = torch.no_grad()

    def __enter__(self) -> None:
        self.was_training = self.model.training
        self.model.eval()
        self.no_grad.__enter__()

    def __exit__(self, *error: object) -> None:
        self.no_grad.__exit__(*error)
        self.model.train(self.was_training)


def trim(ids: Int[Tensor, "n t"]) -> Int[Tensor, "n shorter"]:
    """Given: the ids without the columns at the end that hold nothing but padding."""
    return ids[:, : int((ids != PADDING).sum(dim=1).max())]


def words_of(ids: list[int]) -> list[int]:
    """Given: a sequence up to its END, without BEGIN, END and padding."""
    end = ids.index(END) if END in ids else len(ids)
    return [token for token in ids[:end] if token not in (PADDING, BEGIN)]


def exact_match(decoded: list[list[int]], target: Int[Tensor, "n t"]) -> float:
    """Given: the share of sequences that are right from the first token to the last.

    Raises ValueError if there are none, or not as many of them as targets.
    """
    check_ids(target)
    if len(decoded) != len(target):
        raise ValueError(f"there are {len(decoded)} sequences and {len(target)} targets")
    right = [words == words_of(row) for words, row in zip(decoded, target.tolist(), strict=True)]
    return sum(right) / len(right)


def train(
    model: Transformer, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"], config: Config
) -> dict[str, list[float]]:
    """Fit a model to pairs of sources and targets, by teacher forcing.

    A batch is config.batch_size pairs (or all, if there are fewer), trimmed: in a new random order
    in each pass over the pairs, each pair once in a pass. What is left over at the end of a pass is
    not used. Of its targets, all but the last column go into the model, and all but the first are
    what label_smoothing_loss compares the logits with: every place is asked for the next token.

    Each step clips the gradients (nn.utils.clip_grad_norm_) and updates the weights by
    torch.optim.Adam with betas (0.9, 0.98), epsilon 1e-9 and the learning rate
    config.factor * noam_rate(step, d_model, config.warmup), for step 1 ... config.steps.

    Seeds PyTorch with config.seed first (torch.manual_seed), so that the same model, pairs and
    config give the same run. Trains in training mode, and leaves the model in evaluation mode
    (model.eval()).

    Shows its progress: `with TrainingDisplay(config.steps, title="Transformer") as display`, then
    `display.step(loss=...)` after each step.

    Returns history, a dict of lists with one float per step: "loss", that of the batch before the
    weights changed, and "learning_rate".
    A new model with one encoder layer and one decoder layer that is trained on the train part of
    the number words (common/data/numbers.py) with Config(steps=250, warmup=40, factor=0.35), all
    other settings of TransformerConfig and Config as they are given, gets at least 90 of 100
    numbers right that it has never seen, with greedy_decode.
    Raises ValueError when source and target differ in number, and as soon as a loss is not finite:
    the message then says "step N", with N the number of that step, from 1 on.
    """
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    raise NotImplementedError("train: exercise 6.7 is yours to write")


def next_log_probabilities(
    model: Transformer,
    prefix: Int[Tensor, "n t"],
    memory: Float[Tensor, "n s d_model"],
    source: Int[Tensor, "n s"],
) -> Float[Tensor, "n v"]:
    """The log-softmax of the logits after the last column of prefix.

    No sequence goes on with PADDING or BEGIN: afterwards, these two get -inf. The others keep their
    log-probabilities; they are not made to sum to 1 again.
    memory: what the encoder made of source, with the mask of make_masks.
    """
    raise NotImplementedError("next_log_probabilities: exercise 6.7 is yours to write")


def check_length(model: Transformer, max_length: int) -> None:
    """Given: raise ValueError unless a model can write max_length tokens.

    The last of them is chosen after max_length places: BEGIN, and one less than max_length tokens.
    So a model with learned places can write as many tokens as it has places.
    """
    places = model.config.max_length
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}, and must be at least 1")
    if model.config.positions == "learned" and max_length > places:
        raise ValueError(f"max_length is {max_length}, but only {places} places are learned")


def greedy_decode(
    model: Transformer, source: Int[Tensor, "n s"], max_length: int = 32
) -> list[list[int]]:
    """Translate: from BEGIN on, always take the likeliest next token (the lowest id on a tie).

    A sequence ends with END, or when it has max_length tokens.
    Returns a list of ids for each source, without BEGIN, END and padding. How a source is decoded
    doesn't depend on the others. Works in evaluation mode and leaves the model as it was
    (Evaluation).
    Raises ValueError, before anything is written, if max_length is below 1, or above
    model.config.max_length where places are learned (check_length).
    """
    check_padding(source)
    check_length(model, max_length)
    raise NotImplementedError("greedy_decode: exercise 6.7 is yours to write")


def beam_search(
    model: Transformer, source: Int[Tensor, "1 s"], max_length: int, width: int, alpha: float
) -> list[int]:
    """Translate one source by following several hypotheses at once.

    A hypothesis is a sequence of ids from BEGIN on, and its log-probability is the sum of those of
    its tokens, END included (next_log_probabilities). At first there is one: BEGIN alone.
    Each step goes from every live hypothesis to all that have one more token, and of these keeps
    the `width` with the highest log-probability. Those that end with END are set aside as finished,
    the others are live. The search stops when none is live, or after max_length steps; it may stop
    earlier where that changes no answer.

    The answer is the hypothesis with the highest log-probability / length**alpha, among all that
    are finished and those that are still live at the end. Its length is the number of its tokens,
    END included, BEGIN not. On a tie either may win.

    So width 1 is greedy_decode, and a width that holds everything finds the best of all sequences.
    Returns the ids of the answer, without BEGIN and END. beam_decode calls this, in evaluation
    mode, and has checked the numbers; source has no padding. Tests use beam_decode only.
    """
    raise NotImplementedError("beam_search: exercise 6.7 is yours to write")


def beam_decode(
    model: Transformer,
    source: Int[Tensor, "n s"],
    max_length: int = 32,
    width: int = 4,
    alpha: float = 0.6,
) -> list[list[int]]:
    """Given: what beam_search finds for each source, as greedy_decode returns it.

    Leaves the model as it was.
    Raises ValueError as greedy_decode does, and if width is below 1, or alpha is below 0 or not
    finite.
    """
    check_padding(source)
    check_length(model, max_length)
    if width < 1 or not 0 <= alpha < math.inf:
        raise ValueError(f"no search with width {width} and alpha {alpha}")
    with Evaluation(model):
        return [beam_search(model, trim(row[None]), max_length, width, alpha) for row in source]


def attention_maps(
    model: Transformer, source: Int[Tensor, "n s"], target: Int[Tensor, "n t"]
) -> dict[str, Float[Tensor, "layers n heads t_q t_k"]]:
    """Who looks at whom, in every layer and head, when the model reads source and target.

    target: decoder inputs, which begin with BEGIN.
    Returns, without gradients, the attention weights of

        "encoder" (encoder_layers, n, heads, s, s)    the self-attention of the encoder
        "decoder" (decoder_layers, n, heads, t, t)    the self-attention of the decoder
        "cross"   (decoder_layers, n, heads, t, s)    the decoder's attention to the encoder

    The first layer comes first. Works in evaluation mode and leaves the model as it was. A forward
    hook on a module sees what it returns (register_forward_hook); remove it when you are done.
    """
    raise NotImplementedError("attention_maps: exercise 6.7 is yours to write")


# Exercise 6.8


class CountedProducts:
    """Given: does matrix products, and counts what they cost."""

    def __init__(self) -> None:
        self.multiplications = 0  # of numbers
        self.steps = 0  # that had to wait for one another

    def together(self, *pairs: tuple[Tensor, Tensor]) -> list[Tensor]:
        """a @ b for each pair (a, b) of matrices, all at the same time: one step.

        So none of them may need the result of another.
        """
        self.steps += 1
        self.multiplications += sum(a.numel() * b.shape[1] for a, b in pairs)
        return [a @ b for a, b in pairs]


def check_layer(kind: str, n: int, d: int, k: int) -> None:
    """Given: raise ValueError for a kind of layer that isn't known, or sizes that are too small."""
    if kind not in ("recurrent", "convolution", "dilated", "attention"):
        raise ValueError(f"there is no kind {kind!r} of layer")
    if n < 1 or d < 1 or k < 2:
        raise ValueError(f"n and d must be at least 1 and k at least 2, got {n}, {d}, {k}")


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """What a layer costs that turns n vectors of d features into n others, by formula.

    kind: "recurrent", "convolution", "dilated" or "attention", as described in run_layer. k is the
        size of the kernel of a convolution. The other kinds don't use it, but a k below 2 is
        refused for them too.

    Returns a dict of three ints:
        "multiplications": of numbers, in all matrix products of one layer.
        "sequential_steps": how many products of one layer must wait for one another.
        "path_length": how many steps lie between the first vector that goes in and the last one
            that comes out. Layers are stacked until that output depends on that input (at least one
            layer); path_length is the number of layers times sequential_steps. In a stack of kind
            "convolution" every layer has dilation 1. In a stack of kind "dilated", which are
            convolutions too, the layers have the dilations 1, k, k**2, ...
    All are exact, also for large sizes: no floats.
    """
    check_layer(kind, n, d, k)
    raise NotImplementedError("complexity: exercise 6.8 is yours to write")


def run_layer(
    kind: str, x: Float[Tensor, "n d"], weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Float[Tensor, "n d"], int, int]:
    """Run one small layer on one sequence, with all its matrix products in CountedProducts.

    "recurrent", weights (w_x, w_h), both (d, d): out[p] = tanh(x[p] @ w_x + out[p - 1] @ w_h).
        Before the first there is a vector of zeros, and its product is done like the others. The
        two products of a place are done together.
    "convolution", weights (w,), w (k, d, d): out[p] = the sum over j = 0 ... k - 1 of
        x[p - j * dilation] @ w[j]. Before the first there are zeros, and their products are done
        like the others. All products are done together.
    "attention", no weights: out = softmax(x @ x.T / sqrt(d)) @ x, softmax over the last axis. The
        second product needs the first.

    Returns (out, multiplications, steps), the last two as counted by CountedProducts.
    Raises ValueError for another kind, and, whatever the kind, for a dilation below 1. Gradients
    flow through.
    """
    check_floats(x)
    raise NotImplementedError("run_layer: exercise 6.8 is yours to write")


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """The same dict as complexity, but measured: on runs of run_layer with random numbers.

    "multiplications" and "sequential_steps" are the counts of one layer. For "path_length", layers
    are stacked one by one until the gradient of the last output with respect to the first input is
    not all zeros. So run_layer runs at least once for each layer of the stack: tests count that.
    """
    check_layer(kind, n, d, k)
    raise NotImplementedError("measure: exercise 6.8 is yours to write")
