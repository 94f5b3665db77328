"""Assignment 7, written plainly: attention, bend and loss by their formulas."""

import math

import torch
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
        self.config = config
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.weights_dropout = nn.Dropout(config.dropout)
        self.out_dropout = nn.Dropout(config.dropout)

    def project(
        self, x: Float[Tensor, "n t width"]
    ) -> tuple[
        Float[Tensor, "n heads t size"],
        Float[Tensor, "n heads t size"],
        Float[Tensor, "n heads t size"],
    ]:
        """Queries, keys and values of every place, by head: (n, heads, t, width / heads) each."""
        size = self.config.width // self.config.heads
        heads = []
        for part in self.qkv(x).split(self.config.width, dim=2):
            heads.append(part.view(x.shape[0], x.shape[1], self.config.heads, size).transpose(1, 2))
        return heads[0], heads[1], heads[2]

    def attend(
        self,
        q: Float[Tensor, "n heads t_q size"],
        k: Float[Tensor, "n heads t_k size"],
        v: Float[Tensor, "n heads t_k size"],
    ) -> Float[Tensor, "n t_q width"]:
        """What the queries find among keys and values."""
        n, heads, t_q, size = q.shape
        t_k = k.shape[2]
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(size)
        query = torch.arange(t_k - t_q, t_k, device=q.device)
        key = torch.arange(t_k, device=q.device)
        scores = scores.masked_fill(key[None, :] > query[:, None], float("-inf"))
        weights = self.weights_dropout(torch.softmax(scores, dim=-1))
        found = torch.matmul(weights, v)  # (n, heads, t_q, size)
        merged = found.permute(0, 2, 1, 3).reshape(n, t_q, heads * size)
        return self.out_dropout(self.out(merged))

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.config.width)
        q, k, v = self.project(x)
        return self.attend(q, k, v)


class MLP(nn.Module):
    """Two dense layers with a GELU between them, for each place by itself."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.width = config.width
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.width)
        x = self.up(x)
        x = x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        x = self.down(x)
        return self.dropout(x)


class Block(nn.Module):
    """One layer: attention, then MLP, each with a norm before it and a shortcut around both."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.width = config.width
        self.attention = CausalSelfAttention(config)
        self.mlp = MLP(config)
        self.norm1 = nn.LayerNorm(config.width)
        self.norm2 = nn.LayerNorm(config.width)

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        check_vectors(x, self.width)
        middle = self.attention(self.norm1(x)) + x
        return self.mlp(self.norm2(middle)) + middle


# Exercise 7.4


class GPT(nn.Module):
    """The whole model: embeddings, blocks, a last norm, and scores for the next token."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.embedding_dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList()
        for _ in range(config.layers):
            self.blocks.append(Block(config))
        self.norm = nn.LayerNorm(config.width)
        for module in self.modules():
            if isinstance(module, nn.Embedding | nn.Linear):
                module.weight.data = 0.02 * torch.randn(module.weight.shape)
            if isinstance(module, nn.Linear):
                module.bias.data = torch.zeros(module.bias.shape)
        for block in self.blocks:
            block.attention.out.weight.data /= (2 * config.layers) ** 0.5
            block.mlp.down.weight.data /= (2 * config.layers) ** 0.5

    def embed(self, tokens: Int[Tensor, "n t"], start: int = 0) -> Float[Tensor, "n t width"]:
        """The vectors of tokens that stand at the places start, start + 1, ..."""
        check_tokens(tokens, self.config.vocabulary, self.config.context - start)
        places = self.position_embedding.weight[start : start + tokens.shape[1]]
        return self.embedding_dropout(self.token_embedding.weight[tokens] + places)

    def scores(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t vocabulary"]:
        """The last norm, and a score for each token as the next one."""
        return torch.matmul(self.norm(x), self.token_embedding.weight.transpose(0, 1))

    def forward(
        self, tokens: Int[Tensor, "n t"], targets: Int[Tensor, "n t"] | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], Float[Tensor, ""] | None]:
        """Scores (logits) for the token after each place, and the loss if targets are given."""
        x = self.embed(tokens)
        if targets is not None:
            check_tokens(targets, self.config.vocabulary, self.config.context)
            if targets.shape != tokens.shape:
                raise ValueError("targets and tokens differ in shape")
        for block in self.blocks:
            x = block(x)
        logits = self.scores(x)
        loss = None
        if targets is not None:
            log_p = torch.log_softmax(
                logits.float() if logits.dtype.itemsize < 4 else logits, dim=-1
            )
            loss = -torch.gather(log_p, 2, targets[:, :, None]).mean()
        return logits, loss

    def num_parameters(self) -> int:
        """How many numbers the model learns. The tied output layer counts once."""
        count = 0
        for parameter in self.parameters():
            count += math.prod(parameter.shape)
        return count
