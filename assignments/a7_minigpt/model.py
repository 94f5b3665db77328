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
        raise NotImplementedError("CausalSelfAttention.__init__: exercise 7.3 is yours to write")

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
        raise NotImplementedError("CausalSelfAttention.project: exercise 7.3 is yours to write")

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
        raise NotImplementedError("CausalSelfAttention.attend: exercise 7.3 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        raise NotImplementedError("CausalSelfAttention.forward: exercise 7.3 is yours to write")


class MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each position on its own.

    The hidden layer has 4 * d_model features. GELU is the exact one, x * P(Z <= x) for a standard
    normal Z, which is F.gelu's default. Dropout is applied to the result.

    Parameters: up.weight (4 * d_model, d_model), up.bias (4 * d_model,),
    down.weight (d_model, 4 * d_model), down.bias (d_model,).
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        raise NotImplementedError("MLP.__init__: exercise 7.3 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        raise NotImplementedError("MLP.forward: exercise 7.3 is yours to write")


class Block(nn.Module):
    """One pre-norm layer: attention, then the MLP, each with a residual connection around it.

    x = x + attention(norm1(x)), then x = x + mlp(norm2(x)). Norms are nn.LayerNorm with its
    default settings.

    Parameters: norm1.*, attention.*, norm2.*, mlp.*
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        raise NotImplementedError("Block.__init__: exercise 7.3 is yours to write")

    def forward(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t d_model"]:
        """Raises ValueError unless x is (n, t, d_model)."""
        raise NotImplementedError("Block.forward: exercise 7.3 is yours to write")


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
        raise NotImplementedError("GPT.__init__: exercise 7.4 is yours to write")

    def embed(self, tokens: Int[Tensor, "n t"], start: int = 0) -> Float[Tensor, "n t d_model"]:
        """The vectors of tokens at the positions start, start + 1, ...

        start is 0 or more. Raises ValueError (check_tokens) for ids that are out of range, and for
        positions past the context: there is room for context_length - start tokens.
        """
        raise NotImplementedError("GPT.embed: exercise 7.4 is yours to write")

    def logits(self, x: Float[Tensor, "n t d_model"]) -> Float[Tensor, "n t vocab_size"]:
        """The final norm, and the tied output layer."""
        raise NotImplementedError("GPT.logits: exercise 7.4 is yours to write")

    def forward(
        self, tokens: Int[Tensor, "n t"], targets: Int[Tensor, "n t"] | None = None
    ) -> tuple[Float[Tensor, "n t vocab_size"], Float[Tensor, ""] | None]:
        """The logits for the token after each position, and the loss if targets are given.

        The loss is the mean cross-entropy over all positions of all sequences, a tensor without
        axes. Without targets it is None. Raises ValueError for tokens as embed does, and for
        targets that have another shape or ids that are out of range.
        """
        raise NotImplementedError("GPT.forward: exercise 7.4 is yours to write")

    def num_parameters(self) -> int:
        """The number of parameters. The tied output layer counts once."""
        raise NotImplementedError("GPT.num_parameters: exercise 7.4 is yours to write")
