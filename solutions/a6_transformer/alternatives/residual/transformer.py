"""Assignment 6 with one class for the way around a sublayer, tables as buffers, and plain lists.

A layer is a list of sublayers, each a function of x; Around puts shortcut, norm and dropout around
it, and has no parameters. Masks come from the ids themselves. Shared embeddings have no output
layer of their own. Beams are Python lists of tuples.
"""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assignments.a5_attention.attention import MultiHeadAttention, causal_mask
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


def frequencies(d_model: int) -> Tensor:
    """How fast each wave turns, (d_model / 2,)."""
    check_encoding(d_model)
    exponents = torch.linspace(0, 1, d_model // 2 + 1, dtype=torch.float64)[:-1]
    return torch.exp(-math.log(10000) * exponents)


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """sin and cos in turn, (length, d_model), float64."""
    check_encoding(d_model, length)
    angles = torch.outer(torch.arange(length).double(), frequencies(d_model))
    out = torch.empty(length, d_model, dtype=torch.float64)
    out[:, 0::2] = angles.sin()
    out[:, 1::2] = angles.cos()
    return out


def shift_matrix(k: int, d_model: int) -> Tensor:
    """A matrix of 2 x 2 rotations."""
    blocks = []
    for frequency in frequencies(d_model).tolist():
        sine, cosine = math.sin(k * frequency), math.cos(k * frequency)
        blocks.append(torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64))
    return torch.block_diag(*blocks)


class LearnedPositions(nn.Embedding):
    """An embedding of places."""

    def __init__(self, max_length: int, d_model: int) -> None:
        check_sizes(max_length, d_model)
        super().__init__(max_length, d_model)

    def forward(self, length: int) -> Tensor:
        if length < 1 or length > self.num_embeddings:
            raise ValueError(f"places go up to {self.num_embeddings}, got {length}")
        return super().forward(torch.arange(length))


# Exercise 6.2


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + epsilon) * weight + bias."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        check_sizes(d_model)
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        if x.ndim == 0 or x.shape[-1] != len(self.weight):
            raise ValueError(f"the last axis must be {len(self.weight)}, got {tuple(x.shape)}")
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


class FeedForward(nn.Module):
    """linear1, relu, dropout, linear2."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.rate = dropout

    def forward(self, x: Tensor) -> Tensor:
        check_vectors(x, self.d_model)
        hidden = self.linear1(x).clamp(min=0)
        return self.linear2(F.dropout(hidden, self.rate, self.training))


class FeedForwardConv(nn.Module):
    """conv1, relu, conv2."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        self.conv1 = nn.Conv1d(d_model, d_ff, 1)
        self.conv2 = nn.Conv1d(d_ff, d_model, 1)

    def forward(self, x: Tensor) -> Tensor:
        check_vectors(x, self.d_model)
        return self.conv2(self.conv1(x.mT).relu()).mT


def from_linear(feed_forward: FeedForward) -> FeedForwardConv:
    """The same weights, with an axis for the kernel."""
    state = {
        name.replace("linear", "conv"): value.unsqueeze(-1) if value.ndim == 2 else value
        for name, value in feed_forward.state_dict().items()
    }
    d_ff, d_model, _ = state["conv1.weight"].shape
    conv = FeedForwardConv(d_model, d_ff).to(state["conv1.weight"].dtype)
    conv.load_state_dict(state)
    return conv


# Exercise 6.3


class Around(nn.Module):
    """A shortcut around a sublayer, with dropout, and with the norm where it belongs."""

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
    """Self-attention and feed-forward."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.around = Around(norm, dropout)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        check_vectors(x, self.d_model)
        x = self.around(x, self.norm1, lambda x: self.self_attention(x, x, x, mask)[0])
        return self.around(x, self.norm2, self.feed_forward)


class Encoder(nn.Module):
    """Layers, and a last norm if they are of the kind "pre"."""

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
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(EncoderLayer(d_model, num_heads, d_ff, dropout, norm))
        self.norm = LayerNorm(d_model) if norm == "pre" else None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.norm is None else self.norm(x)


# Exercise 6.4


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, norm: str = "pre"
    ) -> None:
        super().__init__()
        check_sizes(d_model, num_heads, d_ff)
        self.d_model = d_model
        self.around = Around(norm, dropout)
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
        x = self.around(x, self.norm1, lambda x: self.self_attention(x, x, x, mask)[0])
        x = self.around(
            x, self.norm2, lambda x: self.cross_attention(x, memory, memory, memory_mask)[0]
        )
        return self.around(x, self.norm3, self.feed_forward)


class Decoder(nn.Module):
    """Layers, and a last norm if they are of the kind "pre"."""

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
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(DecoderLayer(d_model, num_heads, d_ff, dropout, norm))
        self.norm = LayerNorm(d_model) if norm == "pre" else None

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return x if self.norm is None else self.norm(x)


# Exercise 6.5


def make_masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 1, s) and (n, t, t), from the ids themselves."""
    check_padding(source)
    check_padding(target)
    source_mask = source.ne(PADDING).unsqueeze(1)
    target_mask = causal_mask(target.shape[1]) & target.ne(PADDING).unsqueeze(1)
    return source_mask, target_mask


class Transformer(nn.Module):
    """Encoder and decoder, with embeddings and an output layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = new_embedding(config.source_vocabulary, config.d_model)
        if config.shared:
            # As plain attributes: a matrix that is used three times is registered once.
            self.vectors = [self.source_embedding] * 2
        else:
            self.target_embedding = new_embedding(config.target_vocabulary, config.d_model)
            self.output = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
            nn.init.normal_(self.output.weight, std=1 / math.sqrt(config.d_model))
            self.vectors = [self.source_embedding, self.target_embedding]
        sizes = (config.d_model, config.num_heads, config.d_ff)
        if config.positions == "learned":
            self.positions = LearnedPositions(config.max_length, config.d_model)
        else:
            table = sinusoidal_encoding(config.max_length, config.d_model)
            self.register_buffer("table", table, persistent=False)
        self.encoder = Encoder(*sizes, config.encoder_layers, config.dropout, config.norm)
        self.decoder = Decoder(*sizes, config.decoder_layers, config.dropout, config.norm)

    def places(self, length: int, like: Tensor) -> Tensor:
        """The vectors of the first places, in the dtype of another tensor."""
        if self.config.positions == "learned":
            return self.positions(length)
        if length > len(self.table):
            self.table = sinusoidal_encoding(2 * length, self.config.d_model)
        return self.table[:length].to(like.dtype)

    def embed(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        x = embedding(ids).mul(self.config.d_model**0.5)
        x = x + self.places(ids.shape[1], x)
        return F.dropout(x, self.config.dropout, self.training)

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        check_tokens(source, self.config.source_vocabulary)
        check_padding(source)
        return self.encoder(self.embed(source, self.vectors[0]), source_mask)

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        target_mask: Tensor | None = None,
        source_mask: Tensor | None = None,
    ) -> Tensor:
        check_tokens(target, self.config.target_vocabulary)
        check_padding(target)
        x = self.decoder(self.embed(target, self.vectors[1]), memory, target_mask, source_mask)
        weight = self.source_embedding.weight if self.config.shared else self.output.weight
        return F.linear(x, weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        check_ids(source)
        check_ids(target)
        if len(source) != len(target):
            raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
        source_mask, target_mask = make_masks(source, target)
        return self.decode(target, self.encode(source, source_mask), target_mask, source_mask)


def new_embedding(vocabulary: int, d_model: int) -> nn.Embedding:
    """An embedding whose vectors have about length 1."""
    embedding = nn.Embedding(vocabulary, d_model)
    nn.init.normal_(embedding.weight, std=1 / math.sqrt(d_model))
    return embedding


# Exercise 6.6


def label_smoothing_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """The cross-entropy against the smoothed distribution, written out."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    vocabulary = logits.shape[2]
    check_tokens(targets, vocabulary)
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing is {smoothing}")
    wanted = torch.full_like(logits, smoothing / vocabulary)
    wanted.scatter_add_(
        2, targets.unsqueeze(2), torch.full_like(logits[..., :1], 1 - smoothing).detach()
    )
    losses = -(wanted * torch.log_softmax(logits, dim=2)).sum(dim=2)  # (n, t)
    real = targets.ne(PADDING)
    return torch.where(real, losses, 0.0).sum() / max(int(real.sum()), 1)


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """Up for warmup steps, then down."""
    if step < 1 or d_model < 1 or warmup < 1:
        raise ValueError(f"step, d_model and warmup are {step}, {d_model}, {warmup}")
    rise, fall = step / warmup**1.5, 1 / math.sqrt(step)
    return min(rise, fall) / math.sqrt(d_model)


# Exercise 6.7


def endless_batches(n: int, size: int) -> Iterator[Tensor]:
    """Batches of numbers below n, pass after pass."""
    while True:
        order = torch.randperm(n)
        for start in range(0, n - size + 1, size):
            yield order[start : start + size]


def train(model: Transformer, source: Tensor, target: Tensor, config: Config) -> dict:
    """Teacher forcing with Adam; a scheduler sets the learning rate."""
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    torch.manual_seed(config.seed)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.factor, betas=(0.9, 0.98), eps=1e-9, foreach=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: noam_rate(step + 1, model.config.d_model, config.warmup)
    )
    history: dict[str, list[float]] = {"loss": [], "learning_rate": []}
    batches = endless_batches(len(source), min(config.batch_size, len(source)))
    model.train()
    with TrainingDisplay(config.steps, title="Transformer") as display:
        for step, batch in zip(range(config.steps), batches, strict=False):
            rows = trim(target[batch])
            logits = model(trim(source[batch]), rows[:, :-1])
            loss = label_smoothing_loss(logits, rows[:, 1:], config.smoothing)
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} at step {step + 1}")
            history["loss"].append(loss.item())
            history["learning_rate"].append(float(schedule.get_last_lr()[0]))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            display.step(loss=history["loss"][-1])
    model.eval()
    return history


def next_log_probabilities(
    model: Transformer, prefix: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The log-softmax after the last column, without PADDING and BEGIN."""
    source_mask, target_mask = make_masks(source, prefix)
    logits = model.decode(prefix, memory, target_mask, source_mask)
    log_p = torch.log_softmax(logits[:, -1], dim=1)
    forbidden = torch.tensor([[-math.inf, -math.inf]], dtype=log_p.dtype).expand(len(log_p), 2)
    return torch.cat([forbidden, log_p[:, 2:]], dim=1)


def check_length(model: Transformer, max_length: int) -> None:
    """Raise ValueError unless a model can write max_length tokens."""
    places = model.config.max_length
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}, and must be at least 1")
    if model.config.positions == "learned" and max_length > places:
        raise ValueError(f"max_length is {max_length}, but only {places} places are learned")


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """The source that is not done yet shrinks as its sequences end."""
    check_padding(source)
    check_length(model, max_length)
    answers: list[list[int]] = [[] for _ in source]
    with Evaluation(model):
        rows = torch.arange(len(source))
        memory = model.encode(source, source.ne(PADDING)[:, None])
        prefix = torch.full((len(source), 1), BEGIN)
        for _ in range(max_length):
            token = next_log_probabilities(model, prefix, memory[rows], source[rows]).argmax(1)
            going = token != END
            rows = rows[going]
            prefix = torch.cat([prefix, token[:, None]], dim=1)[going]
            for row, new in zip(rows.tolist(), token[going].tolist(), strict=True):
                answers[row].append(new)
            if len(rows) == 0:
                break
    return answers


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """Hypotheses are tuples (log-probability, ids)."""
    memory = model.encode(source)
    live: list[tuple[float, list[int]]] = [(0.0, [BEGIN])]
    finished: list[tuple[float, list[int]]] = []
    while live and len(live[0][1]) <= max_length:
        n = len(live)
        prefix = torch.tensor([ids for _, ids in live])
        log_p = next_log_probabilities(
            model, prefix, memory.repeat(n, 1, 1), source.repeat(n, 1)
        ).tolist()
        longer = [
            (score + log_p[row][token], [*ids, token])
            for row, (score, ids) in enumerate(live)
            for token in range(END, len(log_p[row]))
        ]
        longer.sort(key=lambda hypothesis: -hypothesis[0])
        finished += [hypothesis for hypothesis in longer[:width] if hypothesis[1][-1] == END]
        live = [hypothesis for hypothesis in longer[:width] if hypothesis[1][-1] != END]
    best = max(finished + live, key=lambda pair: pair[0] / (len(pair[1]) - 1) ** alpha)
    return words_of(best[1])


def beam_decode(
    model: Transformer,
    source: Tensor,
    max_length: int = 32,
    width: int = 4,
    alpha: float = 0.6,
) -> list[list[int]]:
    """What beam_search finds for each source."""
    check_padding(source)
    check_length(model, max_length)
    if width < 1 or not 0 <= alpha < math.inf:
        raise ValueError(f"no search with width {width} and alpha {alpha}")
    with Evaluation(model):
        return [beam_search(model, trim(row[None]), max_length, width, alpha) for row in source]


def attention_maps(model: Transformer, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Walk through the layers, and ask each attention once more."""
    source_mask, target_mask = make_masks(source, target)
    maps: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}

    def entering(norm: LayerNorm, x: Tensor) -> Tensor:
        return norm(x) if model.config.norm == "pre" else x

    with Evaluation(model):
        x = model.embed(source, model.vectors[0])
        for layer in model.encoder.layers:
            q = entering(layer.norm1, x)
            maps["encoder"].append(layer.self_attention(q, q, q, source_mask)[1])
            x = layer(x, source_mask)
        memory = model.encode(source, source_mask)
        x = model.embed(target, model.vectors[1])
        for layer in model.decoder.layers:
            q = entering(layer.norm1, x)
            attended, weights = layer.self_attention(q, q, q, target_mask)
            maps["decoder"].append(weights)
            between = x + attended
            between = layer.norm1(between) if model.config.norm == "post" else between
            q = entering(layer.norm2, between)
            maps["cross"].append(layer.cross_attention(q, memory, memory, source_mask)[1])
            x = layer(x, memory, target_mask, source_mask)
    return {name: torch.stack(weights) for name, weights in maps.items()}


# Exercise 6.8


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Exact integers."""
    check_layer(kind, n, d, k)
    products = {"recurrent": 2 * n * d**2, "attention": 2 * n**2 * d}.get(kind, k * n * d**2)
    steps = {"recurrent": n, "attention": 2}.get(kind, 1)
    layers = 1
    if kind == "convolution":
        layers = max(1, (n - 1 + k - 2) // (k - 1))
    if kind == "dilated":
        while k**layers < n:
            layers += 1
    return {
        "multiplications": products,
        "sequential_steps": steps,
        "path_length": layers * steps,
    }


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, with its products counted."""
    check_floats(x)
    products = CountedProducts()
    if dilation < 1:
        raise ValueError(f"dilation is {dilation}")
    if kind == "recurrent":
        outs = [torch.zeros_like(x[:1])]
        for p in range(len(x)):
            pair = products.together((x[p : p + 1], weights[0]), (outs[-1], weights[1]))
            outs.append(torch.tanh(pair[0] + pair[1]))
        out = torch.cat(outs[1:])
    elif kind == "convolution":
        n = len(x)
        taps = [F.pad(x, (0, 0, j * dilation, 0))[:n] for j in range(len(weights[0]))]
        out = torch.stack(products.together(*zip(taps, weights[0], strict=True))).sum(dim=0)
    elif kind == "attention":
        scores = products.together((x, x.T))[0]
        shares = F.softmax(scores * x.shape[1] ** -0.5, dim=1)
        out = products.together((shares, x))[0]
    else:
        raise ValueError(f"no kind {kind!r}")
    return out, products.multiplications, products.steps


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Counted on one layer; stacked anew with one layer more until the gradient arrives."""
    check_layer(kind, n, d, k)
    count = {"recurrent": 2, "attention": 0}.get(kind, k)
    drawn = torch.randn(count, d, d, dtype=torch.float64) / math.sqrt(d)
    weights = tuple(drawn) if kind == "recurrent" else (drawn,)
    name = "convolution" if kind == "dilated" else kind
    layers = 0
    while True:
        layers += 1
        x = torch.randn(n, d, dtype=torch.float64, requires_grad=True)
        out = x
        for layer in range(layers):
            dilation = k**layer if kind == "dilated" else 1
            out, multiplications, steps = run_layer(name, out, weights, dilation)
        out[-1].sum().backward()
        if torch.count_nonzero(x.grad[0]) > 0:
            return {
                "multiplications": multiplications,
                "sequential_steps": steps,
                "path_length": layers * steps,
            }
