"""Assignment 7, exercises 7.3 and 7.4: a decoder-only Transformer that predicts the next token.

Conventions
    - Shapes: tokens are ids, int64, (n, t): sequence, position. Vectors are (n, t, d_model).
    - Mask: always causal. Position p attends to the positions 0 ... p; there is no padding.
    - Names: a module has the parameters that its docstring lists, under the names that
      named_parameters() gives them, and no others. "norm1.*" stands for the weight and bias of an
      nn.LayerNorm of that name, "blocks.0.*" for the parameters of a Block.
    - Types: a module works in the dtype of its parameters, float32 or float64, and on their device.
    - Dropout acts in training mode only (module.train()); rate 0 means none.
    - Inputs: no function changes a tensor that it is given. Bad input raises ValueError.

You wrote attention yourself in assignment 5. Here F.scaled_dot_product_attention is allowed, and so
are nn.Linear, nn.Embedding, nn.LayerNorm, nn.GELU, nn.Dropout and F.cross_entropy. Whole layers
(nn.MultiheadAttention, nn.TransformerEncoderLayer, ...) are not.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class GPTConfig:
    """Given: the sizes of a model.

    vocab_size: how many ids there are.
    context_length: how many tokens the model can attend to, at most.
    d_model: the features of each position's vector. Each head has d_head = d_model / num_heads.
    """

    vocab_size: int
    context_length: int = 64
    num_layers: int = 4
    num_heads: int = 4
    d_model: int = 128
    dropout: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError for a wrong size or rate, or if num_heads doesn't divide d_model."""
        for name in ("vocab_size", "context_length", "num_layers", "num_heads", "d_model"):
            size = getattr(self, name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ValueError(f"{name} must be an integer of at least 1, got {size!r}")
        if self.d_model % self.num_heads:
            sizes = f"{self.d_model} and {self.num_heads}"
            raise ValueError(f"d_model must be a multiple of num_heads, got {sizes}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}")

    @classmethod
    def for_device(cls, vocab_size: int, device: str) -> "GPTConfig":
        """The sizes that a device can train in minutes: small ones on a CPU, larger on a GPU."""
        if torch.device(device).type == "cpu":
            return cls(vocab_size)
        return cls(
            vocab_size, context_length=256, num_layers=6, num_heads=6, d_model=384, dropout=0.2
        )


def check_vectors(x: Float[Tensor, "n t d_model"], d_model: int) -> None:
    """Given: raise ValueError unless x is a float tensor of shape (n, t, d_model)."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        found = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"vectors must be a float tensor, got {found}")
    if x.ndim != 3 or x.shape[2] != d_model:
        raise ValueError(f"vectors must be (n, t, {d_model}), got {tuple(x.shape)}")


def check_tokens(tokens: Int[Tensor, "n t"], vocab_size: int, room: int) -> None:
    """Given: raise ValueError unless tokens are ids below vocab_size, (n, t), with t <= room."""
    if not isinstance(tokens, Tensor) or tokens.dtype != torch.int64:
        found = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
        raise ValueError(f"tokens must be an int64 tensor, got {found}")
    if tokens.ndim != 2 or tokens.numel() == 0:
        raise ValueError(f"tokens must be (n, t) with both at least 1, got {tuple(tokens.shape)}")
    if tokens.shape[1] > room:
        raise ValueError(f"there is room for {room} tokens, got {tokens.shape[1]}")
    if tokens.min() < 0 or tokens.max() >= vocab_size:
        raise ValueError(
            f"ids must be from 0 to {vocab_size - 1}, got {tokens.min()} to {tokens.max()}"
        )


# Exercise 7.3


class CausalSelfAttention(nn.Module):
    """Causal multi-head self-attention: each position attends to itself and to those before it.

    Parameters: qkv.weight (3 * d_model, d_model), qkv.bias (3 * d_model,): one linear layer for
    queries, keys and values. Its first d_model outputs are the queries, the next the keys, the last
    the values. Of each, the first d_head = d_model / num_heads features belong to head 0, the next
    to head 1, and so on. out.weight (d_model, d_model), out.bias (d_model,): the output projection,
    after the heads. Scores are divided by sqrt(d_head). In training mode dropout is applied to the
    attention weights and to what forward returns.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.num_heads = config.num_heads
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.out = nn.Linear(config.d_model, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        # END SOLUTION

    def project(
        self, x: Float[Tensor, "n t d_model"]
    ) -> tuple[
        Float[Tensor, "n num_heads t d_head"],
        Float[Tensor, "n num_heads t d_head"],
        Float[Tensor, "n num_heads t d_head"],
    ]:
        """Queries, keys and values of every position, by head: (n, num_heads, t, d_head) each.

        Exercise 7.8 caches the keys and values, so this is a method of its own.
        """
        # BEGIN SOLUTION
        n, t, _ = x.shape
        qkv = self.qkv(x).view(n, t, 3, self.num_heads, -1)  # (n, t, 3, num_heads, d_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (n, num_heads, t, d_head)
        return q, k, v
        # END SOLUTION

    def attend(
        self,
        q: Float[Tensor, "n num_heads t_q d_head"],
        k: Float[Tensor, "n num_heads t_k d_head"],
        v: Float[Tensor, "n num_heads t_k d_head"],
    ) -> Float[Tensor, "n t_q d_model"]:
        """Softmax attention in each head, the heads side by side, then the output projection.

        There may be more keys than queries: then the queries are those of the last t_q positions,
        and query i attends to the keys 0 ... t_k - t_q + i. With as many queries as keys this is
        the usual triangle; a single query attends to all keys.
        """
        # BEGIN SOLUTION
        t_q, t_k = q.shape[2], k.shape[2]
        rate = self.dropout.p if self.training else 0.0  # the function doesn't know the mode
        # PyTorch's is_causal aligns the triangle to the upper left: right only if t_q = t_k.
        causal = t_q == t_k
        mask = None
        if 1 < t_q < t_k:
            mask = torch.ones(t_q, t_k, dtype=torch.bool, device=q.device).tril(t_k - t_q)
        y = F.scaled_dot_product_attention(q, k, v, mask, rate, is_causal=causal)
        y = y.transpose(1, 2).flatten(2)  # (n, t_q, d_model)
        return self.dropout(self.out(y))
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        # BEGIN SOLUTION
        check_vectors(x, self.out.in_features)
        return self.attend(*self.project(x))
        # END SOLUTION


class MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each position on its own.

    The hidden layer has 4 * d_model features. GELU is the exact one, x * P(Z <= x) for a standard
    normal Z, which is F.gelu's default. Dropout is applied to the result.

    Parameters: up.weight (4 * d_model, d_model), up.bias (4 * d_model,),
    down.weight (d_model, 4 * d_model), down.bias (d_model,).
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.up = nn.Linear(config.d_model, 4 * config.d_model)
        self.down = nn.Linear(4 * config.d_model, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        # BEGIN SOLUTION
        check_vectors(x, self.up.in_features)
        return self.dropout(self.down(F.gelu(self.up(x))))
        # END SOLUTION


class Block(nn.Module):
    """One pre-norm layer: attention, then the MLP, each with a residual connection around it.

    x = x + attention(norm1(x)), then x = x + mlp(norm2(x)). Norms are nn.LayerNorm with its
    default settings.

    Parameters: norm1.*, attention.*, norm2.*, mlp.*
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        # BEGIN SOLUTION
        self.norm1 = nn.LayerNorm(config.d_model)
        self.attention = CausalSelfAttention(config)
        self.norm2 = nn.LayerNorm(config.d_model)
        self.mlp = MLP(config)
        # END SOLUTION

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        # BEGIN SOLUTION
        check_vectors(x, self.norm1.weight.shape[0])
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))
        # END SOLUTION


# Exercise 7.4


class GPT(nn.Module):
    """The whole model: embeddings, blocks, a final norm, and logits for the next token.

    The vector of a token is its row of the token embedding plus the row of its position, with
    dropout. The logits of the next token are the dot products of the final norm's output with the
    rows of the token embedding: the output layer is tied to it and adds no parameters.

    Initialization: weights of linear layers and of both embeddings are drawn from a normal
    distribution with mean 0 and standard deviation 0.02; the output projections of the residual
    branches, attention.out.weight and mlp.down.weight, with 0.02 / sqrt(2 * num_layers). Biases
    are 0, and norms start as nn.LayerNorm does. So the logits are small at first, all tokens are
    about equally likely, and the loss is near ln(vocab_size).

    Parameters: token_embedding.weight (vocab_size, d_model), position_embedding.weight
    (context_length, d_model), blocks.0.* ... blocks.(num_layers - 1).*, norm.*

    model.config is the GPTConfig that the model was made with.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        # BEGIN SOLUTION
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embedding = nn.Embedding(config.context_length, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model)
        for name, parameter in self.named_parameters():
            if name.endswith(("attention.out.weight", "mlp.down.weight")):
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * config.num_layers))
            elif parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        # END SOLUTION

    def embed(self, tokens: Int[Tensor, "n t"], start: int = 0) -> Float[Tensor, "n t d_model"]:
        """The vectors of tokens at the positions start, start + 1, ...

        start is 0 or more. Raises ValueError (check_tokens) for ids that are out of range, and for
        positions past the context: there is room for context_length - start tokens.
        """
        # BEGIN SOLUTION
        check_tokens(tokens, self.config.vocab_size, self.config.context_length - start)
        positions = self.position_embedding.weight[start : start + tokens.shape[1]]  # (t, d_model)
        return self.dropout(self.token_embedding(tokens) + positions)
        # END SOLUTION

    def logits(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t vocab_size"]:
        """The final norm, and the tied output layer."""
        # BEGIN SOLUTION
        return F.linear(self.norm(x), self.token_embedding.weight)  # (n, t, vocab_size)
        # END SOLUTION

    def forward(
        self, tokens: Int[Tensor, "n t"], targets: Int[Tensor, "n t"] | None = None
    ) -> tuple[Float[Tensor, "n t vocab_size"], Float[Tensor, ""] | None]:
        """The logits for the token after each position, and the loss if targets are given.

        The loss is the mean cross-entropy over all positions of all sequences, a tensor without
        axes. Without targets it is None. Raises ValueError for tokens as embed does, and for
        targets that have another shape or ids that are out of range.
        """
        # BEGIN SOLUTION
        x = self.embed(tokens)  # (n, t, d_model)
        if targets is not None and targets.shape != tokens.shape:
            shape = tuple(targets.shape)
            raise ValueError(f"targets must be {tuple(tokens.shape)}, as tokens are, got {shape}")
        for block in self.blocks:
            x = block(x)
        logits = self.logits(x)  # (n, t, vocab_size)
        if targets is None:
            return logits, None
        check_tokens(targets, self.config.vocab_size, self.config.context_length)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        # END SOLUTION

    def num_parameters(self) -> int:
        """The number of parameters. The tied output layer counts once."""
        # BEGIN SOLUTION
        return sum(parameter.numel() for parameter in self.parameters())
        # END SOLUTION
