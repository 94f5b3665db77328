"""Assignment 7, exercises 7.3 and 7.4: a decoder-only Transformer that predicts the next token.

Conventions
    Tokens are ids, int64 tensors of shape (n, t): sequence, place. Vectors are (n, t, width).
    There is no padding and no mask to hand in: place p looks at the places 0 ... p, always.
    A module has the parameters that its docstring lists, under these names, as named_parameters()
    gives them, and no others. "norm1.*" stands for the weight and bias of an nn.LayerNorm of that
    name, "blocks.0.*" for the parameters of a Block.
    A module works in the dtype of its parameters, float32 or float64 (after module.double()), and
    on the device that they are on.
    Dropout acts in training mode only (module.train()); rate 0 means none.
    No function changes a tensor that it is given. Bad input raises ValueError.

You wrote attention by hand in assignment 5. Here F.scaled_dot_product_attention may do it, and so
may nn.Linear, nn.Embedding, nn.LayerNorm, nn.GELU, nn.Dropout and F.cross_entropy. Whole layers
(nn.MultiheadAttention, nn.TransformerEncoderLayer and their kin) are not allowed.
"""

import math

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
        """Raises ValueError for sizes below 1, a width that heads don't divide, a wrong rate.

        vocabulary: how many ids there are.
        context: how many tokens the model can look at, at most.
        """
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
    """Multi-head attention of a sequence to itself, each place to itself and to those before it.

    Parameters: qkv.weight (3 * width, width), qkv.bias (3 * width,): one dense layer for queries,
    keys and values. Its first width outputs are the queries, the next the keys, the last the
    values. Of each, the first width / heads features belong to head 0, and so on.
    out.weight (width, width), out.bias (width,): the dense layer after the heads.
    Scores are divided by the root of width / heads. In training mode dropout falls on the weights
    of attention, and on what forward returns.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        # END SOLUTION

    def project(
        self, x: Float[Tensor, "n t width"]
    ) -> tuple[
        Float[Tensor, "n heads t size"],
        Float[Tensor, "n heads t size"],
        Float[Tensor, "n heads t size"],
    ]:
        """Queries, keys and values of every place, by head: (n, heads, t, width / heads) each.

        Exercise 7.8 keeps the keys and values, so they get a method of their own.
        """
        # BEGIN SOLUTION
        n, t, _ = x.shape
        parts = self.qkv(x).view(n, t, 3, self.heads, -1)  # (n, t, 3, heads, size)
        q, k, v = parts.permute(2, 0, 3, 1, 4)  # each (n, heads, t, size)
        return q, k, v
        # END SOLUTION

    def attend(
        self,
        q: Float[Tensor, "n heads t_q size"],
        k: Float[Tensor, "n heads t_k size"],
        v: Float[Tensor, "n heads t_k size"],
    ) -> Float[Tensor, "n t_q width"]:
        """What the queries find among keys and values: softmax, heads side by side, the layer out.

        There may be more keys than queries: the queries are then those of the last t_q places.
        Query i looks at the keys 0 ... t_k - t_q + i. With as many of both this is the usual
        triangle; a single query looks at all keys.
        """
        # BEGIN SOLUTION
        t_q, t_k = q.shape[2], k.shape[2]
        rate = self.dropout.p if self.training else 0.0
        # PyTorch's is_causal puts the triangle in the upper left corner: right only if t_q = t_k.
        mask = None
        if 1 < t_q < t_k:
            mask = torch.ones(t_q, t_k, dtype=torch.bool, device=q.device).tril(t_k - t_q)
        causal = t_q == t_k
        heads = F.scaled_dot_product_attention(q, k, v, mask, rate, is_causal=causal)
        merged = heads.transpose(1, 2).flatten(2)  # (n, t_q, width)
        return self.dropout(self.out(merged))
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        # BEGIN SOLUTION
        check_vectors(x, self.out.in_features)
        return self.attend(*self.project(x))
        # END SOLUTION


class MLP(nn.Module):
    """Two dense layers with a GELU between them, for each place by itself.

    The inner layer has 4 * width features. GELU is the exact one, x * P(Z <= x) for a standard
    normal Z: what F.gelu gives by itself. Dropout falls on the result.

    Parameters: up.weight (4 * width, width), up.bias (4 * width,),
    down.weight (width, 4 * width), down.bias (width,).
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        # BEGIN SOLUTION
        check_vectors(x, self.up.in_features)
        return self.dropout(self.down(F.gelu(self.up(x))))
        # END SOLUTION


class Block(nn.Module):
    """One layer: attention, then MLP, each with a norm before it and a shortcut around both.

    x = x + attention(norm1(x)), then x = x + mlp(norm2(x)). Norms are nn.LayerNorm as they come.

    Parameters: norm1.*, attention.*, norm2.*, mlp.*
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t width"]:
        """Raises ValueError unless x is (n, t, width)."""
        # BEGIN SOLUTION
        check_vectors(x, self.norm1.weight.shape[0])
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
        # END SOLUTION


# Exercise 7.4


class GPT(nn.Module):
    """The whole model: embeddings, blocks, a last norm, and scores for the next token.

    The vector of a token is its row of the token embedding plus the row of its place, with dropout.
    The scores of the next token are the dot products of the last norm's output with the rows of the
    token embedding: the output layer is tied to it, and is no parameter of its own.

    First values: weights of dense layers and of both embeddings are drawn from a normal
    distribution with mean 0 and standard deviation 0.02; those of the layers that end a shortcut's
    branch, attention.out.weight and mlp.down.weight, with 0.02 / sqrt(2 * layers). Biases are 0,
    norms start as nn.LayerNorm does. So the scores are small at first, all tokens are about equally
    likely, and the loss is near ln(vocabulary).

    Parameters: token_embedding.weight (vocabulary, width), position_embedding.weight (context,
    width), blocks.0.* ... blocks.(layers - 1).*, norm.*

    model.config is the GPTConfig that it was made with.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        # BEGIN SOLUTION
        self.token_embedding = nn.Embedding(config.vocabulary, config.width)
        self.position_embedding = nn.Embedding(config.context, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        for name, parameter in self.named_parameters():
            if name.endswith(("attention.out.weight", "mlp.down.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * config.layers))
            elif parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        # END SOLUTION

    def embed(self, tokens: Int[Tensor, "n t"], start: int = 0) -> Float[Tensor, "n t width"]:
        """The vectors of tokens that stand at the places start, start + 1, ...

        start is 0 or more. Raises ValueError (check_tokens) for ids that are out of range, and for
        places past the context: only context - start tokens have room.
        """
        # BEGIN SOLUTION
        check_tokens(tokens, self.config.vocabulary, self.config.context - start)
        places = self.position_embedding.weight[start : start + tokens.shape[1]]  # (t, width)
        return self.dropout(self.token_embedding(tokens) + places)
        # END SOLUTION

    def scores(self, x: Float[Tensor, "n t width"]) -> Float[Tensor, "n t vocabulary"]:
        """The last norm, and a score for each token as the next one."""
        # BEGIN SOLUTION
        return F.linear(self.norm(x), self.token_embedding.weight)  # (n, t, vocabulary)
        # END SOLUTION

    def forward(
        self, tokens: Int[Tensor, "n t"], targets: Int[Tensor, "n t"] | None = None
    ) -> tuple[Float[Tensor, "n t vocabulary"], Float[Tensor, ""] | None]:
        """Scores (logits) for the token after each place, and the loss if targets are given.

        The loss is the mean cross-entropy over all places of all sequences, a tensor without axes.
        Without targets it is None. Raises ValueError for tokens as embed does, and for targets of
        another shape or with ids that are out of range.
        """
        # BEGIN SOLUTION
        x = self.embed(tokens)
        if targets is not None and targets.shape != tokens.shape:
            raise ValueError(f"targets {tuple(targets.shape)} for tokens {tuple(tokens.shape)}")
        for block in self.blocks:
            x = block(x)
        logits = self.scores(x)
        if targets is None:
            return logits, None
        check_tokens(targets, self.config.vocabulary, self.config.context)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        # END SOLUTION

    def num_parameters(self) -> int:
        """How many numbers the model learns. The tied output layer counts once."""
        # BEGIN SOLUTION
        return sum(parameter.numel() for parameter in self.parameters())
        # END SOLUTION
