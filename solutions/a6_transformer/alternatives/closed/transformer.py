"""Assignment 6 with closed forms: waves as complex numbers, and backward passes by hand.

The norm and the loss are autograd functions with their own gradients. A layer writes down its
attention weights where a list is laid out for them. Beams of all sources go through the model
together.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assignments.a5_attention.attention import (
    MultiHeadAttention,
    causal_mask,
    combine_masks,
    padding_mask,
)
from common.training.training_progress import TrainingDisplay

PADDING, BEGIN, END = 0, 1, 2


def check_sizes(*sizes: int) -> None:
    """Raise ValueError for a size below 1."""
    if min(sizes) < 1:
        raise ValueError(f"all sizes must be at least 1, got {sizes}")


def check_floats(x: Tensor) -> None:
    """Raise ValueError unless x is a tensor of floats."""
    if not isinstance(x, Tensor):
        raise ValueError(f"a tensor is needed, not a {type(x).__name__}")
    if not x.is_floating_point():
        raise ValueError(f"a tensor of floats is needed, not of {x.dtype}")


def check_vectors(x: Tensor, d_model: int) -> None:
    """Raise ValueError unless x is a tensor of floats, (n, t, d_model)."""
    check_floats(x)
    if x.ndim != 3 or x.shape[2] != d_model:
        raise ValueError(f"vectors must be (n, t, {d_model}), got {tuple(x.shape)}")


def check_ids(ids: Tensor) -> None:
    """Raise ValueError unless ids is a tensor, (n, t), both at least 1, and of int64."""
    if not isinstance(ids, Tensor):
        raise ValueError(f"ids must be a tensor, not a {type(ids).__name__}")
    if ids.dtype != torch.int64:
        raise ValueError(f"ids are of int64, not of {ids.dtype}")
    if ids.ndim != 2 or ids.numel() == 0:
        raise ValueError(f"ids must be (n, t) with both at least 1, got {tuple(ids.shape)}")


def check_tokens(ids: Tensor, vocabulary: int) -> None:
    """Raise ValueError for ids of a wrong shape or type, or not in the vocabulary."""
    check_ids(ids)
    if ids.min() < 0 or ids.max() >= vocabulary:
        raise ValueError(f"ids lie between 0 and {vocabulary - 1}, got {ids.min()} to {ids.max()}")


def check_padding(ids: Tensor) -> None:
    """Raise ValueError for a sequence without a token, or with a token after padding."""
    check_ids(ids)
    real = ids != PADDING
    if not real[:, 0].all():
        raise ValueError("a sequence is empty, or has padding before its first token")
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("padding must come after all tokens of a sequence")


def check_norm(norm: str) -> None:
    """Raise ValueError unless norm is "post" or "pre"."""
    if norm not in ("post", "pre"):
        raise ValueError(f"norm must be 'post' or 'pre', got {norm!r}")


def check_encoding(d_model: int, length: int = 1) -> None:
    """Raise ValueError for an odd d_model, one below 2, or a length below 1."""
    if d_model < 2 or d_model % 2:
        raise ValueError(
            f"d_model must be even and at least 2 for sines and cosines, got {d_model}"
        )
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")


def check_layer(kind: str, n: int, d: int, k: int) -> None:
    """Raise ValueError for a kind of layer that isn't known, or sizes that are too small."""
    if kind not in ("recurrent", "convolution", "dilated", "attention"):
        raise ValueError(f"there is no kind {kind!r} of layer")
    if n < 1 or d < 1 or k < 2:
        raise ValueError(f"n and d must be at least 1 and k at least 2, got {n}, {d}, {k}")


class TransformerConfig:
    """The sizes of a Transformer. Raises ValueError for settings that make no sense."""

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


class Config:
    """How to train. Raises ValueError for settings that make no sense."""

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
    """`with Evaluation(model):` has no dropout and no gradients, and ends as it began."""

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


def trim(ids: Tensor) -> Tensor:
    """The ids without the columns at the end that hold nothing but padding."""
    return ids[:, : int((ids != PADDING).sum(dim=1).max())]


def words_of(ids: list[int]) -> list[int]:
    """A sequence up to its END, without BEGIN, END and padding."""
    end = ids.index(END) if END in ids else len(ids)
    return [token for token in ids[:end] if token not in (PADDING, BEGIN)]


def exact_match(decoded: list[list[int]], target: Tensor) -> float:
    """The share of sequences that are right from the first token to the last."""
    check_ids(target)
    if len(decoded) != len(target):
        raise ValueError(f"there are {len(decoded)} sequences and {len(target)} targets")
    right = [words == words_of(row) for words, row in zip(decoded, target.tolist(), strict=True)]
    return sum(right) / len(right)


class CountedProducts:
    """Does matrix products, and counts what they cost."""

    def __init__(self) -> None:
        self.multiplications = 0
        self.steps = 0

    def together(self, *pairs: tuple[Tensor, Tensor]) -> list[Tensor]:
        """a @ b for each pair (a, b) of matrices, all at the same time: one step."""
        self.steps += 1
        self.multiplications += sum(a.numel() * b.shape[1] for a, b in pairs)
        return [a @ b for a, b in pairs]


# Exercise 6.1


def turns(d_model: int) -> np.ndarray:
    """The angle by which each wave turns from one place to the next, (d_model / 2,)."""
    check_encoding(d_model)
    return np.power(10000.0, -np.arange(d_model // 2) / (d_model / 2))


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """Real and imaginary parts of exp(i * angle), the imaginary part first."""
    check_encoding(d_model, length)
    waves = np.exp(1j * np.multiply.outer(np.arange(length), turns(d_model)))
    return torch.from_numpy(np.stack([waves.imag, waves.real], axis=-1).reshape(length, d_model))


def shift_matrix(k: int, d_model: int) -> Tensor:
    """cos on the diagonal, sin above and -sin below it, in turn with zeros."""
    waves = np.exp(1j * k * turns(d_model))
    between = np.zeros(d_model - 1)
    between[::2] = waves.imag
    matrix = np.diag(np.repeat(waves.real, 2)) + np.diag(between, 1) - np.diag(between, -1)
    return torch.from_numpy(matrix)


class LearnedPositions(nn.Module):
    """A table of places."""

    def __init__(self, max_length: int, d_model: int) -> None:
        check_sizes(max_length, d_model)
        super().__init__()
        self.max_length = max_length
        self.register_parameter("weight", nn.Parameter(torch.randn(max_length, d_model)))

    def forward(self, length: int) -> Tensor:
        if length < 1 or self.max_length < length:
            raise ValueError(f"there are {self.max_length} places, not {length}")
        return F.embedding(torch.arange(length), self.weight)


# Exercise 6.2


class Normalize(torch.autograd.Function):
    """(x - mean) / sqrt(variance + epsilon) over the last axis, with its backward pass."""

    @staticmethod
    def forward(context: object, x: Tensor, epsilon: float) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        scale = torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + epsilon)
        normed = centred * scale
        context.save_for_backward(normed, scale)
        return normed

    @staticmethod
    def backward(context: object, dout: Tensor) -> tuple[Tensor, None]:
        normed, scale = context.saved_tensors
        # What would change the mean or the length of the vector is taken out of the gradient.
        along = (dout * normed).mean(dim=-1, keepdim=True)
        return scale * (dout - dout.mean(dim=-1, keepdim=True) - normed * along), None


class LayerNorm(nn.Module):
    """Normalize, then weight and bias."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        check_sizes(d_model)
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        if x.ndim < 1 or x.shape[-1] != self.weight.shape[0]:
            raise ValueError(f"{tuple(x.shape)} doesn't end with {self.weight.shape[0]}")
        return Normalize.apply(x, self.epsilon) * self.weight + self.bias


class FeedForward(nn.Module):
    """linear1, relu, dropout, linear2."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        check_vectors(x, self.d_model)
        # Each vector by itself: all vectors of the batch may as well lie in one matrix.
        rows = x.reshape(-1, x.shape[-1])
        hidden = self.dropout(torch.relu(self.linear1(rows)))
        return self.linear2(hidden).reshape(x.shape)


class FeedForwardConv(nn.Module):
    """conv1, relu, conv2."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        self.conv1 = nn.Conv1d(d_model, d_ff, (1,))
        self.conv2 = nn.Conv1d(d_ff, d_model, (1,))

    def forward(self, x: Tensor) -> Tensor:
        check_vectors(x, self.d_model)
        hidden = torch.relu(self.conv1(torch.movedim(x, 2, 1)))
        return torch.movedim(self.conv2(hidden), 1, 2)


def from_linear(feed_forward: FeedForward) -> FeedForwardConv:
    """The same numbers in the same order: a kernel of size 1 is a matrix."""
    old = dict(feed_forward.named_parameters())
    d_ff, d_model = old["linear1.weight"].shape
    conv = FeedForwardConv(d_model, d_ff)
    conv.to(old["linear1.weight"].dtype)
    for name, parameter in conv.named_parameters():
        parameter.data = old[name.replace("conv", "linear")].data.clone().view_as(parameter)
    return conv


# Exercise 6.3


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_norm(norm)
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.norm = norm
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.notes: list[Tensor] | None = None  # where the weights are written down

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        out, weights = self.self_attention(x, x, x, mask)
        if self.notes is not None:
            self.notes.append(weights)
        return self.dropout(out)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_vectors(x, self.d_model)
        if self.norm == "post":
            x = self.norm1(x + self.attend(x, mask))
            return self.norm2(x + self.dropout(self.feed_forward(x)))
        x = x + self.attend(self.norm1(x), mask)
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class Encoder(nn.Module):
    """Encoder layers, and a norm after them with norm="pre"."""

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
        layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm) for _ in range(num_layers)]
        self.layers = nn.Sequential(*layers)
        self.last = []
        if norm == "pre":
            self.norm = LayerNorm(d_model)
            self.last = [self.norm]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        for norm in self.last:
            x = norm(x)
        return x


# Exercise 6.4


class DecoderLayer(EncoderLayer):
    """An encoder layer with a cross-attention in the middle."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__(d_model, num_heads, d_ff, dropout, norm)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm3 = LayerNorm(d_model)
        self.cross_notes: list[Tensor] | None = None

    def cross(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        out, weights = self.cross_attention(x, memory, memory, mask)
        if self.cross_notes is not None:
            self.cross_notes.append(weights)
        return self.dropout(out)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        check_vectors(x, self.d_model)
        check_vectors(memory, self.d_model)
        if self.norm == "post":
            x = self.norm1(x + self.attend(x, mask))
            x = self.norm2(x + self.cross(x, memory, memory_mask))
            return self.norm3(x + self.dropout(self.feed_forward(x)))
        x = x + self.attend(self.norm1(x), mask)
        x = x + self.cross(self.norm2(x), memory, memory_mask)
        return x + self.dropout(self.feed_forward(self.norm3(x)))


class Decoder(nn.Module):
    """Decoder layers, and a norm after them with norm="pre"."""

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
        layers = [DecoderLayer(d_model, num_heads, d_ff, dropout, norm) for _ in range(num_layers)]
        self.layers = nn.Sequential(*layers)
        self.last = []
        if norm == "pre":
            self.norm = LayerNorm(d_model)
            self.last = [self.norm]

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        for norm in self.last:
            x = norm(x)
        return x


# Exercise 6.5


def make_masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 1, s) and (n, t, t)."""
    check_padding(source)
    check_padding(target)
    (n, s), t = source.shape, target.shape[1]
    source_mask = padding_mask(source.sign().sum(dim=1), s)
    target_mask = combine_masks(causal_mask(t), padding_mask(target.sign().sum(dim=1), t))
    return source_mask, target_mask.expand(n, t, t)


class Transformer(nn.Module):
    """Encoder and decoder, with embeddings and an output layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.scale = math.sqrt(config.d_model)
        self.source_embedding = nn.Embedding(config.source_vocabulary, config.d_model)
        self.target_embedding = self.source_embedding
        if not config.shared:
            self.target_embedding = nn.Embedding(config.target_vocabulary, config.d_model)
        sizes = {"d_model": config.d_model, "num_heads": config.num_heads, "d_ff": config.d_ff}
        style = {"dropout": config.dropout, "norm": config.norm}
        self.positions = None
        if config.positions == "learned":
            self.positions = LearnedPositions(config.max_length, config.d_model)
        self.encoder = Encoder(num_layers=config.encoder_layers, **sizes, **style)
        self.decoder = Decoder(num_layers=config.decoder_layers, **sizes, **style)
        self.output = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
        if config.shared:
            self.output.weight = self.source_embedding.weight
        self.dropout = nn.Dropout(config.dropout)
        with torch.no_grad():
            for layer in (self.source_embedding, self.target_embedding, self.output):
                layer.weight.normal_().div_(self.scale)

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        length = ids.shape[1]
        if self.positions is None:
            places = sinusoidal_encoding(length, self.config.d_model)
        else:
            places = self.positions(length)
        places = places.to(embedding.weight.dtype)
        return self.dropout(torch.add(places, embedding(ids), alpha=self.scale))

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        check_tokens(source, self.config.source_vocabulary)
        check_padding(source)
        return self.encoder(self.embed(source, self.source_embedding), source_mask)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        check_tokens(target, self.config.target_vocabulary)
        check_padding(target)
        x = self.embed(target, self.target_embedding)
        return self.output(self.decoder(x, memory, target_mask, source_mask))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        check_ids(source)
        check_ids(target)
        if len(source) != len(target):
            raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
        source_mask, target_mask = make_masks(source, target)
        memory = self.encode(source, source_mask)
        return self.decode(target, memory, target_mask, source_mask)


# Exercise 6.6


class SmoothedCrossEntropy(torch.autograd.Function):
    """The sum over rows; the gradient is what the model believes minus what it should believe."""

    @staticmethod
    def forward(context: object, rows: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        log_p = torch.log_softmax(rows, dim=1)
        wanted = F.one_hot(targets, rows.shape[1]).to(rows.dtype) * (1 - smoothing)
        wanted += smoothing / rows.shape[1]
        context.save_for_backward(log_p.exp() - wanted)
        return -torch.einsum("ij,ij->", log_p, wanted)

    @staticmethod
    def backward(context: object, dout: Tensor) -> tuple[Tensor, None, None]:
        (difference,) = context.saved_tensors
        return dout * difference, None, None


def label_smoothing_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """The mean over real places."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    if not (smoothing >= 0 and smoothing < 1):
        raise ValueError(f"smoothing can't be {smoothing}")
    real = targets.flatten().nonzero()[:, 0]
    rows = logits.flatten(0, 1).index_select(0, real)
    total = SmoothedCrossEntropy.apply(rows, targets.flatten()[real], float(smoothing))
    return total / max(len(real), 1)


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """Both branches meet at step = warmup."""
    if step < 1 or d_model < 1 or warmup < 1:
        raise ValueError(f"no rate for step {step}, d_model {d_model} and warmup {warmup}")
    peak = 1 / math.sqrt(d_model * warmup)
    return peak * min(step / warmup, math.sqrt(warmup / step))


# Exercise 6.7


def train(model: Transformer, source: Tensor, target: Tensor, config: Config) -> dict:
    """All batches are drawn up beforehand."""
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    torch.manual_seed(config.seed)
    rng = np.random.default_rng(config.seed)
    size = min(config.batch_size, len(source))
    plan: list[np.ndarray] = []
    while len(plan) < config.steps:
        order = rng.permutation(len(source))[: len(source) // size * size]
        plan.extend(order.reshape(-1, size))
    rates = [
        config.factor * noam_rate(step, model.config.d_model, config.warmup)
        for step in range(1, config.steps + 1)
    ]
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    model.train()
    with TrainingDisplay(config.steps, title="Transformer") as display:
        for rate, rows in zip(rates, plan, strict=False):
            batch = torch.from_numpy(rows)
            wanted = trim(target.index_select(0, batch))
            model.zero_grad()
            logits = model(trim(source.index_select(0, batch)), wanted[:, :-1])
            loss = label_smoothing_loss(logits, wanted[:, 1:], config.smoothing)
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                raise ValueError(f"step {len(losses)} has the loss {losses[-1]}")
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            display.step(loss=losses[-1])
    model.eval()
    return {"loss": losses, "learning_rate": rates}


def next_log_probabilities(
    model: Transformer, prefix: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The log-softmax after the last column, plus 0 or -inf."""
    source_mask, target_mask = make_masks(source, prefix)
    logits = model.decode(prefix, memory, target_mask, source_mask).select(1, -1)
    allowed = torch.zeros(logits.shape[1], dtype=logits.dtype)
    allowed[[PADDING, BEGIN]] = -torch.inf
    return logits - logits.logsumexp(dim=1, keepdim=True) + allowed


def check_length(model: Transformer, max_length: int) -> None:
    """Raise ValueError unless a model can write max_length tokens."""
    places = model.config.max_length
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}, and must be at least 1")
    if model.config.positions == "learned" and max_length > places:
        raise ValueError(f"max_length is {max_length}, but only {places} places are learned")


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """All columns are there from the start, and are filled from the left."""
    check_padding(source)
    check_length(model, max_length)
    ids = torch.full((len(source), max_length + 1), PADDING)
    ids[:, 0] = BEGIN
    going = torch.ones(len(source), dtype=torch.bool)
    with Evaluation(model):
        source_mask, _ = make_masks(source, ids[:, :1])
        memory = model.encode(source, source_mask)
        for place in range(1, max_length + 1):
            log_p = next_log_probabilities(model, ids[:, :place], memory, source)
            ids[going, place] = log_p[going].argmax(dim=1)
            going = going & (ids[:, place] != END)
            if not going.any():
                break
    return [words_of(row) for row in ids.tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """One source is a batch of one."""
    return search_together(model, source, max_length, width, alpha)[0]


def search_together(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[list[int]]:
    """The beams of all sources go through the model as one batch; each keeps to its own."""
    memory = model.encode(source, make_masks(source, source)[0])
    beams: list[list[tuple[float, list[int]]]] = [[(0.0, [BEGIN])] for _ in source]
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in source]
    for length in range(1, max_length + 1):
        owners = [row for row, beam in enumerate(beams) for _ in beam]
        if not owners:
            break
        prefix = torch.tensor([ids for beam in beams for _, ids in beam])
        log_p = next_log_probabilities(model, prefix, memory[owners], source[owners])
        first = 0
        for row, beam in enumerate(beams):
            if not beam:
                continue
            scores = torch.tensor([score for score, _ in beam], dtype=torch.float64)
            totals = scores[:, None] + log_p[first : first + len(beam)]
            first += len(beam)
            top, places = totals[:, END:].flatten().sort(descending=True)
            choices = totals.shape[1] - END
            longer = [
                (score, [*beam[place // choices][1], END + place % choices])
                for score, place in zip(top[:width].tolist(), places[:width].tolist(), strict=True)
            ]
            beams[row] = [pair for pair in longer if pair[1][-1] != END and length < max_length]
            finished[row] += [
                (score / length**alpha, ids)
                for score, ids in longer
                if ids[-1] == END or length == max_length
            ]
    return [words_of(max(pairs)[1]) for pairs in finished]


def beam_decode(
    model: Transformer,
    source: Tensor,
    max_length: int = 32,
    width: int = 4,
    alpha: float = 0.6,
) -> list[list[int]]:
    """What the search finds for each source."""
    check_padding(source)
    check_length(model, max_length)
    if width < 1 or not 0 <= alpha < math.inf:
        raise ValueError(f"no search with width {width} and alpha {alpha}")
    with Evaluation(model):
        return search_together(model, trim(source), max_length, width, alpha)


def attention_maps(model: Transformer, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Lay out lists for the layers to write in, and take them away again."""
    maps: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}
    for layer in model.encoder.layers:
        layer.notes = maps["encoder"]
    for layer in model.decoder.layers:
        layer.notes, layer.cross_notes = maps["decoder"], maps["cross"]
    try:
        with Evaluation(model):
            model(source, target)
    finally:
        for layer in (*model.encoder.layers, *model.decoder.layers):
            layer.notes = None
        for layer in model.decoder.layers:
            layer.cross_notes = None
    return {kind: torch.stack(weights) for kind, weights in maps.items()}


# Exercise 6.8


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Exact integers."""
    check_layer(kind, n, d, k)
    convolution = k * n * d**2
    answers = {
        "recurrent": lambda: (2 * n * d**2, n, n),
        "attention": lambda: (2 * d * n**2, 2, 2),
        "convolution": lambda: (convolution, 1, max(1, -((1 - n) // (k - 1)))),
        "dilated": lambda: (convolution, 1, max(1, digits(n - 1, k))),
    }
    names = ("multiplications", "sequential_steps", "path_length")
    return dict(zip(names, answers[kind](), strict=True))


def digits(number: int, base: int) -> int:
    """How many digits a number has: the offset to the first place, one digit for each layer."""
    count = 0
    while number:
        number //= base
        count += 1
    return count


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, by operators of PyTorch where there is one; the counts follow from its shapes."""
    check_floats(x)
    n, d = x.shape
    if dilation < 1:
        raise ValueError(f"dilation can't be {dilation}")
    if kind == "recurrent":
        w_x, w_h = weights
        out = [x.new_zeros(d)]
        for row in x:
            out.append(torch.tanh(row @ w_x + out[-1] @ w_h))
        return torch.stack(out[1:]), n * (w_x.numel() + w_h.numel()), n
    if kind == "convolution":
        (w,) = weights
        padded = F.pad(x.T, ((len(w) - 1) * dilation, 0))
        out = F.conv1d(padded[None], w.flip(0).permute(2, 1, 0), dilation=dilation)
        return out[0].T, n * w.numel(), 1
    if kind == "attention":
        scores = torch.einsum("id,jd->ij", x, x) / math.sqrt(d)
        out = torch.einsum("ij,jd->id", torch.softmax(scores, dim=1), x)
        return out, 2 * scores.numel() * d, 2
    raise ValueError(f"there is no kind {kind!r}")


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Counted on one layer; stacked until the gradient arrives."""
    check_layer(kind, n, d, k)
    numbers = np.random.default_rng(0)
    name = "convolution" if kind == "dilated" else kind
    shapes = {"recurrent": 2 * [(d, d)], "convolution": [(k, d, d)], "attention": []}[name]
    weights = tuple(torch.from_numpy(numbers.normal(size=shape) / math.sqrt(d)) for shape in shapes)
    x = torch.from_numpy(numbers.normal(size=(n, d))).requires_grad_()
    out, layers = x, 0
    costs: set[tuple[int, int]] = set()
    while layers == 0 or not torch.autograd.grad(out[-1].sum(), x, retain_graph=True)[0][0].any():
        out, *cost = run_layer(name, out, weights, k**layers if kind == "dilated" else 1)
        costs.add(tuple(cost))
        layers += 1
    ((multiplications, steps),) = costs  # every layer of a stack costs the same
    return {
        "multiplications": multiplications,
        "sequential_steps": steps,
        "path_length": layers * steps,
    }
