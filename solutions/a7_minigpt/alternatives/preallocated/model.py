"""Assignment 7 on whole arrays: three dense layers from one weight, a mask by comparison."""

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


# Exercise 7.3


class CausalSelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself, each place to itself and to those before it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.heads, self.rate = config.heads, config.dropout
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
        pairs = zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
        parts = (F.linear(x, weight, bias) for weight, bias in pairs)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        return q, k, v

    def attend(
        self,
        q: Float[Tensor, "n heads t_q size"],
        k: Float[Tensor, "n heads t_k size"],
        v: Float[Tensor, "n heads t_k size"],
    ) -> Float[Tensor, "n t_q width"]:
        """What the queries find among keys and values."""
        t_q, t_k = q.shape[2], k.shape[2]
        places = torch.arange(t_k, device=q.device)
        seen = places <= places[t_k - t_q :, None]  # (t_q, t_k)
        rate = self.rate * self.training
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=rate)
        out = self.out(found.movedim(1, 2).flatten(2))
        return F.dropout(out, self.rate, self.training)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.out.out_features)
        q, k, v = self.project(x)
        return self.attend(q, k, v)


class MLP(nn.Module):
    """Two dense layers with a GELU between them, for each place by itself."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width = config.width
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.bend, self.drop = nn.GELU(), nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.down.out_features)
        return self.drop(self.down(self.bend(self.up(x))))


class Block(nn.Module):
    """One layer: attention, then MLP, each with a norm before it and a shortcut around both."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.attention, self.mlp = CausalSelfAttention(config), MLP(config)
        self.norm1, self.norm2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.norm1.normalized_shape[0])
        for norm, branch in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            x = branch(norm(x)).add(x)
        return x


# Exercise 7.4


def start_small(module: nn.Module) -> None:
    """First values of a dense layer or an embedding."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, 0.0, 0.02)
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.bias, 0.0)


class GPT(nn.Module):
    """The whole model: embeddings, blocks, a last norm, and scores for the next token."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.norm = nn.LayerNorm(config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.layers)))
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.drop = nn.Dropout(config.dropout)
        self.apply(start_small)
        ends = [end for block in self.blocks for end in (block.attention.out, block.mlp.down)]
        with torch.no_grad():
            for end in ends:
                end.weight.mul_(len(ends) ** -0.5)

    def embed(self, tokens: Int[Tensor, "n t"], start: int = 0) -> Float[Tensor, "n t width"]:
        """The vectors of tokens that stand at the places start, start + 1, ..."""
        check_tokens(tokens, self.config.vocabulary, self.config.context - start)
        places = torch.arange(self.config.context, device=tokens.device)
        places = places.narrow(0, start, tokens.shape[1]).expand_as(tokens)
        return self.drop(self.position_embedding(places) + self.token_embedding(tokens))

    def scores(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t vocabulary"]:
        """The last norm, and a score for each token as the next one."""
        return self.norm(x) @ self.token_embedding.weight.T

    def forward(
        self, tokens: Int[Tensor, "n t"], targets: Int[Tensor, "n t"] | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], Float[Tensor, ""] | None]:
        """Scores (logits) for the token after each place, and the loss if targets are given."""
        vectors = self.embed(tokens)
        if targets is not None:
            check_tokens(targets, self.config.vocabulary, tokens.shape[1])
            if targets.shape != tokens.shape:
                raise ValueError(f"targets are {tuple(targets.shape)}, not {tuple(tokens.shape)}")
        logits = self.scores(self.blocks(vectors))
        if targets is None:
            return logits, None
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))  # under autocast too
        right = wide.take_along_dim(targets[:, :, None], dim=2).squeeze(2)
        return logits, (wide.logsumexp(dim=2) - right).mean()

    def num_parameters(self) -> int:
        """How many numbers the model learns. The tied output layer counts once."""
        return nn.utils.parameters_to_vector(self.parameters()).numel()
