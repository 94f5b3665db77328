"""Assignment 6 with a decoder that goes step by step: it never reads a prefix twice.

A decoder layer keeps what went into its self-attention so far, so a new token costs one place and
not all of them. Greedy and beam search use that; training reads whole targets, as usual. Encoder
and decoder layers are one class, with two or three sublayers in a row.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.functional import jacobian

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


def angle(place: int, feature: int, d_model: int) -> float:
    """How far the wave of a feature has turned at a place."""
    return place / 10000 ** ((feature - feature % 2) / d_model)


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """Entry by entry, in Python's own floats."""
    check_encoding(d_model, length)
    rows = [
        [
            math.cos(angle(place, feature, d_model))
            if feature % 2
            else math.sin(angle(place, feature, d_model))
            for feature in range(d_model)
        ]
        for place in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def shift_matrix(k: int, d_model: int) -> Tensor:
    """Column by column: where the two unit vectors of each pair go."""
    check_encoding(d_model)
    out = torch.zeros(d_model, d_model, dtype=torch.float64)
    for feature in range(0, d_model, 2):
        pair = slice(feature, feature + 2)
        # (1, 0) is the sine and cosine of a quarter turn, and (0, 1) that of no turn at all.
        turn = angle(k, feature, d_model)
        out[pair, feature] = torch.tensor([math.cos(turn), -math.sin(turn)], dtype=torch.float64)
        out[pair, feature + 1] = torch.tensor([math.sin(turn), math.cos(turn)], dtype=torch.float64)
    return out


class LearnedPositions(nn.Module):
    """A table of places."""

    def __init__(self, max_length: int, d_model: int) -> None:
        check_sizes(max_length, d_model)
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.weight)

    def forward(self, length: int) -> Tensor:
        if length not in range(1, self.weight.shape[0] + 1):
            raise ValueError(f"length {length} is not from 1 to {self.weight.shape[0]}")
        return self.weight.narrow(0, 0, length)


# Exercise 6.2


class LayerNorm(nn.Module):
    """Mean 0 and variance 1 for each vector, then weight and bias."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        check_sizes(d_model)
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        d = len(self.weight)
        if tuple(x.shape[-1:]) != (d,):
            raise ValueError(f"x must end with {d} features, got {tuple(x.shape)}")
        centred = x - x.sum(dim=-1, keepdim=True) / d
        squares = torch.einsum("...d,...d->...", centred, centred).unsqueeze(-1)
        scale = (squares / d + self.epsilon).pow(-0.5)
        return torch.addcmul(self.bias, centred * scale, self.weight)


class FeedForward(nn.Module):
    """linear1, relu, dropout, linear2."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.between = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        check_vectors(x, self.d_model)
        return self.linear2(self.between(self.linear1(x)))


class FeedForwardConv(nn.Module):
    """conv1, relu, conv2."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_sizes(d_model, d_ff)
        self.d_model = d_model
        self.conv1 = nn.Conv1d(d_model, d_ff, kernel_size=1)
        self.conv2 = nn.Conv1d(d_ff, d_model, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        check_vectors(x, self.d_model)
        x = x.permute(0, 2, 1)
        for conv in (lambda x: self.conv1(x).relu(), self.conv2):
            x = conv(x)
        return x.permute(0, 2, 1)


def from_linear(feed_forward: FeedForward) -> FeedForwardConv:
    """New parameters with an axis for the kernel."""
    first, second = feed_forward.linear1, feed_forward.linear2
    conv = FeedForwardConv(first.in_features, first.out_features)
    for new, old in ((conv.conv1, first), (conv.conv2, second)):
        new.weight = nn.Parameter(old.weight.detach().clone().unsqueeze(2))
        new.bias = nn.Parameter(old.bias.detach().clone())
    return conv


# Exercise 6.3


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
        """What a sublayer gets."""
        return norm(x) if self.pre else x

    def leave(self, x: Tensor, new: Tensor, norm: LayerNorm) -> Tensor:
        """What comes after a sublayer."""
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
        """The output for new places x, and what the self-attention has seen with them."""
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
        self.layers = nn.ModuleList(
            [EncoderLayer(d_model, num_heads, d_ff, dropout, norm) for _ in range(num_layers)]
        )
        if norm == "pre":
            self.norm = LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x) if hasattr(self, "norm") else x


# Exercise 6.4


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
        self.layers = nn.ModuleList(
            [DecoderLayer(d_model, num_heads, d_ff, dropout, norm) for _ in range(num_layers)]
        )
        if norm == "pre":
            self.norm = LayerNorm(d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.finish(x)

    def finish(self, x: Tensor) -> Tensor:
        """What comes after the last layer."""
        return self.norm(x) if hasattr(self, "norm") else x


# Exercise 6.5


def lengths_of(ids: Tensor) -> Tensor:
    """How many tokens each sequence has."""
    return torch.count_nonzero(ids, dim=1)


def make_masks(source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 1, s) and (n, t, t)."""
    check_padding(source)
    check_padding(target)
    length = target.shape[1]
    return (
        padding_mask(lengths_of(source), source.shape[1]),
        combine_masks(padding_mask(lengths_of(target), length), causal_mask(length)),
    )


class Transformer(nn.Module):
    """Encoder and decoder, with embeddings and an output layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        c, spread = config, config.d_model**-0.5
        self.source_embedding = nn.Embedding.from_pretrained(
            torch.randn(c.source_vocabulary, c.d_model) * spread, freeze=False
        )
        self.target_embedding = nn.Embedding.from_pretrained(
            torch.randn(c.target_vocabulary, c.d_model) * spread, freeze=False
        )
        if c.positions == "learned":
            self.positions = LearnedPositions(c.max_length, c.d_model)
        self.encoder = Encoder(c.d_model, c.num_heads, c.d_ff, c.encoder_layers, c.dropout, c.norm)
        self.decoder = Decoder(c.d_model, c.num_heads, c.d_ff, c.decoder_layers, c.dropout, c.norm)
        self.output = nn.Linear(c.d_model, c.target_vocabulary, bias=False)
        self.output.weight = nn.Parameter(torch.randn(c.target_vocabulary, c.d_model) * spread)
        if c.shared:
            self.target_embedding = self.source_embedding
            self.output.weight = self.source_embedding.weight

    def embed(self, ids: Tensor, embedding: nn.Embedding, first: int = 0) -> Tensor:
        """The vectors of ids that stand at the places from `first` on."""
        length = first + ids.shape[1]
        if self.config.positions == "learned":
            places = self.positions(length)
        else:
            places = sinusoidal_encoding(length, self.config.d_model)
        x = self.config.d_model**0.5 * embedding(ids)
        return F.dropout(x + places[first:].to(x.dtype), self.config.dropout, self.training)

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
        masks = make_masks(source, target)
        return self.decode(target, self.encode(source, masks[0]), masks[1], masks[0])


# Exercise 6.6


def label_smoothing_loss(logits: Tensor, targets: Tensor, smoothing: float = 0.1) -> Tensor:
    """log(sum(exp)) minus the logits' mean under the smoothed targets."""
    check_floats(logits)
    check_ids(targets)
    if logits.ndim != 3 or targets.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and targets {tuple(targets.shape)} differ")
    check_tokens(targets, logits.shape[2])
    if smoothing < 0 or not smoothing < 1:
        raise ValueError(f"smoothing must lie from 0 to 1 (without 1), got {smoothing}")
    total = logits.sum() * 0  # so that a batch of padding alone has a gradient too
    real = targets.ne(PADDING)
    if real.any():
        rows = logits[real] - logits[real].amax(dim=1, keepdim=True).detach()
        right = rows[torch.arange(len(rows)), targets[real]]
        expected = torch.lerp(right, rows.mean(dim=1), smoothing)
        total = (rows.logsumexp(dim=1) - expected).mean()
    return total


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """A line up to step = warmup, then 1 / sqrt(step)."""
    for number in (step, d_model, warmup):
        if number < 1:
            raise ValueError(f"{number} is below 1")
    if step < warmup:
        return step / math.sqrt(d_model * warmup**3)
    return 1 / math.sqrt(d_model * step)


# Exercise 6.7


def train(model: Transformer, source: Tensor, target: Tensor, config: Config) -> dict:
    """Teacher forcing, pass by pass, until there are enough steps."""
    check_padding(source)
    check_padding(target)
    if len(source) != len(target):
        raise ValueError(f"there are {len(source)} sources and {len(target)} targets")
    torch.manual_seed(config.seed)
    model.train()
    shuffle = torch.Generator().manual_seed(config.seed)
    pairs = torch.utils.data.TensorDataset(source, target)
    loader = torch.utils.data.DataLoader(
        pairs,
        batch_size=min(config.batch_size, len(source)),
        shuffle=True,
        drop_last=True,
        generator=shuffle,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    losses: list[float] = []
    rates: list[float] = []
    with TrainingDisplay(config.steps, title="Transformer") as display:
        while len(losses) < config.steps:
            for sources, targets in loader:
                if len(losses) == config.steps:
                    break
                step = len(losses) + 1
                rates.append(config.factor * noam_rate(step, model.config.d_model, config.warmup))
                optimizer.param_groups[0]["lr"] = rates[-1]
                losses.append(one_step(model, optimizer, trim(sources), trim(targets), config))
                if not math.isfinite(losses[-1]):
                    raise ValueError(f"the loss is {losses[-1]} at step {step}")
                display.step(loss=losses[-1])
    model.eval()
    return {"loss": losses, "learning_rate": rates}


def one_step(
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    source: Tensor,
    target: Tensor,
    config: Config,
) -> float:
    """The loss of a batch; the weights are changed if it is finite."""
    loss = label_smoothing_loss(model(source, target[:, :-1]), target[:, 1:], config.smoothing)
    if torch.isfinite(loss):
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_norm)
        optimizer.step()
    return loss.item()


def without_special(logits: Tensor) -> Tensor:
    """The log-softmax of logits, with -inf for PADDING and BEGIN."""
    special = torch.arange(logits.shape[1]) < END
    return torch.log_softmax(logits, dim=1).masked_fill(special, -math.inf)


def next_log_probabilities(
    model: Transformer, prefix: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """What may come after the last column, from a whole prefix."""
    masks = make_masks(source, prefix)
    return without_special(model.decode(prefix, memory, masks[1], masks[0])[:, -1])


class Reader:
    """Reads targets token by token, and keeps for each layer what its self-attention has seen."""

    def __init__(self, model: Transformer, source: Tensor) -> None:
        self.model = model
        self.mask = padding_mask(lengths_of(source), source.shape[1])
        self.memory = model.encode(source, self.mask)
        self.pasts: list[Tensor | None] = [None] * len(model.decoder.layers)
        self.place = 0

    def read(self, tokens: Tensor) -> Tensor:
        """The log-probabilities (n, v) after one more token (n,) each."""
        x = self.model.embed(tokens[:, None], self.model.target_embedding, self.place)
        self.place += 1
        for number, layer in enumerate(self.model.decoder.layers):
            x, self.pasts[number] = layer.run(x, self.pasts[number], None, self.memory, self.mask)
        return without_special(self.model.output(self.model.decoder.finish(x))[:, -1])

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows, in this order."""
        self.memory, self.mask = self.memory[rows], self.mask[rows]
        self.pasts = [past[rows] for past in self.pasts]


def check_length(model: Transformer, max_length: int) -> None:
    """Raise ValueError unless a model can write max_length tokens."""
    places = model.config.max_length
    if max_length < 1:
        raise ValueError(f"max_length is {max_length}, and must be at least 1")
    if model.config.positions == "learned" and max_length > places:
        raise ValueError(f"max_length is {max_length}, but only {places} places are learned")


def greedy_decode(model: Transformer, source: Tensor, max_length: int = 32) -> list[list[int]]:
    """One token for each sequence at a time; those that have ended read on, unheard."""
    check_padding(source)
    check_length(model, max_length)
    with Evaluation(model):
        reader = Reader(model, source)
        token = torch.full((len(source),), BEGIN)
        columns: list[Tensor] = []
        ended = torch.zeros(len(source), dtype=torch.bool)
        while len(columns) < max_length and not ended.all():
            token = reader.read(token).argmax(dim=1)
            columns.append(token)
            ended |= token == END
    return [words_of(row) for row in torch.stack(columns, dim=1).tolist()]


def beam_search(
    model: Transformer, source: Tensor, max_length: int, width: int, alpha: float
) -> list[int]:
    """The reader is cut down to the live hypotheses after each step."""
    reader = Reader(model, source)
    live = torch.full((1, 1), BEGIN)
    scores = torch.zeros(1, 1, dtype=torch.float64)
    best_rank, best_ids = -math.inf, []
    for length in range(1, max_length + 1):
        totals = scores + reader.read(live[:, -1])  # (live, v)
        possible = int(torch.isfinite(totals).sum())
        top, places = totals.flatten().topk(min(width, possible))
        parents = torch.div(places, totals.shape[1], rounding_mode="floor")
        tokens = places.remainder(totals.shape[1])
        longer = torch.cat([live[parents], tokens[:, None]], dim=1)
        over = tokens.eq(END) if length < max_length else torch.ones_like(tokens, dtype=torch.bool)
        for score, ids in zip(top[over].tolist(), longer[over].tolist(), strict=True):
            rank = score / math.pow(length, alpha)
            if rank > best_rank:
                best_rank, best_ids = rank, ids
        if over.all():
            break
        live, scores = longer[~over], top[~over, None]
        reader.keep(parents[~over])
    return words_of(best_ids)


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
    """Hooks on every attention, in the order in which the model calls them."""
    maps: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}
    hooks = []
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            kind = "cross" if name.endswith("cross_attention") else name.partition(".")[0]
            hooks.append(
                module.register_forward_hook(
                    lambda _module, _inputs, outputs, kind=kind: maps[kind].append(outputs[1])
                )
            )
    try:
        with Evaluation(model):
            model(source, target)
    finally:
        for hook in hooks:
            hook.remove()
    return {kind: torch.stack(weights) for kind, weights in maps.items()}


# Exercise 6.8


def reach(layers: int, k: int) -> int:
    """How many places back the last output of a stack of dilated convolutions sees."""
    return sum((k - 1) * k**layer for layer in range(layers))


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Exact integers."""
    check_layer(kind, n, d, k)
    if kind in ("recurrent", "attention"):
        steps = n if kind == "recurrent" else 2
        cost = 2 * n * d * (d if kind == "recurrent" else n)
        return {"multiplications": cost, "sequential_steps": steps, "path_length": steps}
    if kind == "convolution":
        layers = max(1, (n - 2) // (k - 1) + 1)
    else:
        layers = 1
        while reach(layers, k) < n - 1:
            layers += 1
    return {"multiplications": n * k * d * d, "sequential_steps": 1, "path_length": layers}


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, with its products counted."""
    check_floats(x)
    if dilation < 1:
        raise ValueError(f"dilation must be at least 1, got {dilation}")
    products = CountedProducts()
    n, d = x.shape
    if kind == "recurrent":
        out = x.new_zeros(0, d)
        state = x.new_zeros(1, d)
        for place in range(n):
            state = sum(products.together((x[[place]], weights[0]), (state, weights[1]))).tanh()
            out = torch.cat([out, state])
    elif kind == "convolution":
        (w,) = weights
        wide = torch.cat([x.new_zeros(len(w) * dilation, d), x])
        # One product of a wide matrix with a tall one: the k windows side by side.
        windows = [wide[len(w) * dilation - j * dilation :][:n] for j in range(len(w))]
        (out,) = products.together((torch.cat(windows, dim=1), w.reshape(-1, d)))
    elif kind == "attention":
        scores = products.together((x / math.sqrt(d), x.T))
        out = products.together((scores[0].softmax(dim=1), x))[0]
    else:
        raise ValueError(f"unknown kind {kind!r}")
    return out, products.multiplications, products.steps


def measure(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Counted on one layer; the whole Jacobian of the last output shows when a stack is enough."""
    check_layer(kind, n, d, k)
    numbers = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=numbers, dtype=torch.float64)

    weights = {"recurrent": (draw(d, d), draw(d, d)), "attention": ()}.get(kind, (draw(k, d, d),))
    scaled = tuple(w / d**0.5 for w in weights)
    x = draw(n, d)

    def last(layers: int, first: Tensor) -> Tensor:
        out = torch.cat([first[None], x[1:]])
        for layer in range(layers):
            dilation = k**layer if kind == "dilated" else 1
            name = kind.replace("dilated", "convolution")
            out, _, _ = run_layer(name, out, scaled, dilation)
        return out[-1]

    _, multiplications, steps = run_layer(kind.replace("dilated", "convolution"), x, scaled)
    layers = 1
    while not jacobian(partial(last, layers), x[0]).any():
        layers += 1
    return {
        "multiplications": multiplications,
        "sequential_steps": steps,
        "path_length": steps * layers,
    }
