"""Assignment 7 by functions: modules hold parameters, F.* does the rest."""

import math
from functools import reduce

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


class GPTConfig:
    """Given: the sizes of a model."""

    def __init__(
        self,
        vocabulary: int,
        context: int = 64,
        layers: int = 4,
        heads: int = 4,
        width: int = 128,
        dropout: float = 0.0,
    ) -> None:
        """Raises ValueError for sizes below 1, a width that heads don't divide, a wrong rate."""
        sizes = {
            "vocabulary": vocabulary,
            "context": context,
            "layers": layers,
            "heads": heads,
            "width": width,
        }
        for name, size in sizes.items():
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")
        if width % heads:
            raise ValueError(f"a width of {width} can't be split evenly among {heads} heads")
        if not 0 <= dropout < 1:
            raise ValueError(f"a dropout rate is at least 0 and below 1, got {dropout}")
        self.vocabulary = vocabulary
        self.context = context
        self.layers = layers
        self.heads = heads
        self.width = width
        self.dropout = dropout

    @classmethod
    def for_device(cls, vocabulary: int, device: str) -> "GPTConfig":
        """The sizes that a device can train in minutes: small ones on a CPU, more on a GPU."""
        if torch.device(device).type == "cpu":
            return cls(vocabulary)
        return cls(vocabulary, context=256, layers=6, heads=6, width=384, dropout=0.2)


def check_vectors(x: Float[Tensor, "n t width"], width: int) -> None:
    """Given: raise ValueError unless x is a tensor of floats, (n, t, width)."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise ValueError("a tensor of floats is needed")
    if x.ndim != 3 or x.shape[2] != width:
        raise ValueError(f"vectors must be (n, t, {width}), got {tuple(x.shape)}")


def check_tokens(tokens: Int[Tensor, "n t"], vocabulary: int, room: int) -> None:
    """Given: raise ValueError unless tokens are ids of the vocabulary, (n, t), with t <= room."""
    if not isinstance(tokens, Tensor) or tokens.dtype != torch.int64:
        raise ValueError("tokens must be a tensor of int64")
    if tokens.ndim != 2 or tokens.numel() == 0:
        raise ValueError(f"tokens must be (n, t) with both at least 1, got {tuple(tokens.shape)}")
    if tokens.shape[1] > room:
        raise ValueError(f"{tokens.shape[1]} tokens, but there is room for {room} only")
    if tokens.min() < 0 or tokens.max() >= vocabulary:
        raise ValueError(f"ids lie between 0 and {vocabulary - 1}")


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """x with mean 0 and variance 1 over its features, then scaled and moved."""
    return F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, norm.eps)


# Exercise 7.3


class CausalSelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself, each place to itself and to those before it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def project(
        self, x: Float[Tensor, "n t width"]
    ) -> tuple[
        Float[Tensor, "n heads t size"],
        Float[Tensor, "n heads t size"],
        Float[Tensor, "n heads t size"],
    ]:
        """Queries, keys and values of every place, by head: (n, heads, t, width / heads) each."""
        weight = self.qkv.weight.unflatten(0, (3, self.config.heads, -1))
        bias = self.qkv.bias.unflatten(0, (3, self.config.heads, 1, -1))
        parts = torch.einsum("ntw,phsw->pnhts", x, weight) + bias[:, None]
        return parts[0], parts[1], parts[2]

    def attend(
        self,
        q: Float[Tensor, "n heads t_q size"],
        k: Float[Tensor, "n heads t_k size"],
        v: Float[Tensor, "n heads t_k size"],
    ) -> Float[Tensor, "n t_q width"]:
        """What the queries find among keys and values."""
        rate, training = self.config.dropout, self.training
        size, extra = q.shape[3], k.shape[2] - q.shape[2]
        scores = torch.einsum("nhqs,nhks->nhqk", q * size**-0.5, k)
        hidden = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(extra + 1)
        weights = F.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
        weights = F.dropout(weights, rate, training)
        found = torch.einsum("nhqk,nhks->nqhs", weights, v)
        return F.dropout(F.linear(found.flatten(2), self.out.weight, self.out.bias), rate, training)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.config.width)
        return self.attend(*self.project(x))


class MLP(nn.Module):
    """Two dense layers with a GELU between them, for each place by itself."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.config.width)
        hidden = F.gelu(F.linear(x, self.up.weight, self.up.bias))
        out = F.linear(hidden, self.down.weight, self.down.bias)
        return F.dropout(out, self.config.dropout, self.training)


class Block(nn.Module):
    """One layer: attention, then MLP, each with a norm before it and a shortcut around both."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.config.width)
        x = x + self.attention(normed(self.norm1, x))
        return x + self.mlp(normed(self.norm2, x))


# Exercise 7.4


class GPT(nn.Module):
    """The whole model: embeddings, blocks, a last norm, and scores for the next token."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        scales = {"out": (2 * config.layers) ** -0.5, "down": (2 * config.layers) ** -0.5}
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                *_, owner, kind = name.split(".")
                if parameter.ndim == 2:
                    parameter.normal_().mul_(0.02 * scales.get(owner, 1.0))
                elif kind == "bias":
                    parameter.fill_(0)

    def embed(self, tokens: Int[Tensor, "n t"], start: int = 0) -> Float[Tensor, "n t width"]:
        """The vectors of tokens that stand at the places start, start + 1, ..."""
        check_tokens(tokens, self.config.vocabulary, self.config.context - start)
        x = F.embedding(tokens, self.token_embedding.weight)
        x = x + self.position_embedding.weight.narrow(0, start, tokens.shape[1])
        return F.dropout(x, self.config.dropout, self.training)

    def scores(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t vocabulary"]:
        """The last norm, and a score for each token as the next one."""
        return torch.einsum("ntw,vw->ntv", normed(self.norm, x), self.token_embedding.weight)

    def forward(
        self, tokens: Int[Tensor, "n t"], targets: Int[Tensor, "n t"] | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], Float[Tensor, ""] | None]:
        """Scores (logits) for the token after each place, and the loss if targets are given."""
        if targets is not None:
            if targets.shape != tokens.shape:
                raise ValueError("each token has one target")
            check_tokens(targets, self.config.vocabulary, self.config.context)
        logits = self.scores(reduce(lambda x, block: block(x), self.blocks, self.embed(tokens)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.transpose(1, 2), targets)

    def num_parameters(self) -> int:
        """How many numbers the model learns. The tied output layer counts once."""
        return sum(map(torch.numel, self.parameters()))
