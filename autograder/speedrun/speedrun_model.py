"""The speedrun's model: a small GPT in which every improvement is a switch."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

EPSILON = 1e-6
ROTARY_BASE = 1000.0  # the slowest pair rotates by one radian in a thousand positions
DEVIATION = 0.02  # of the baseline's initial weights


@dataclass(frozen=True)
class Shape:
    """The sizes of a model."""

    vocab_size: int
    context_length: int = 64
    num_layers: int = 4
    num_heads: int = 4
    d_model: int = 128


@dataclass(frozen=True)
class Switches:
    """What differs from nanoGPT's model, in which all are off."""

    rotary: bool = False
    rms_norm: bool = False
    qk_norm: bool = False
    squared_relu: bool = False
    zero_init: bool = False
    untied: bool = False
    earlier: int = 0  # how many characters before the current one the embedding includes


class RMSNormFunction(torch.autograd.Function):
    """x / sqrt(mean(x²) + epsilon), in fewer passes over memory than PyTorch's own on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        inverse = length.square_().div_(x.shape[-1]).add_(EPSILON).rsqrt_()
        y = x * inverse
        ctx.save_for_backward(y, inverse)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        y, inverse = ctx.saved_tensors
        along = (grad * y).mean(dim=-1, keepdim=True)
        return torch.addcmul(grad, y, along, value=-1).mul_(inverse)


class SquaredReLUFunction(torch.autograd.Function):
    """max(x, 0)², with the derivative 2 max(x, 0)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        positive = x.relu()
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        return (grad * positive).mul_(2)


def rms_norm(x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
    """Each vector, scaled to a root mean square of 1."""
    return RMSNormFunction.apply(x)


def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0)²"""
    return SquaredReLUFunction.apply(x)


def rotary_phases(context_length: int, d_head: int) -> Complex[Tensor, "context 1 pairs"]:
    """exp(i t f) for each position t and pair frequency f, from 1 down to 1 / ROTARY_BASE."""
    frequencies = ROTARY_BASE ** -torch.linspace(0, 1, d_head // 2)
    angles = torch.outer(torch.arange(context_length, dtype=torch.float32), frequencies)
    return torch.polar(torch.ones_like(angles), angles)[:, None, :]


def rotate(
    x: Float[Tensor, "batch time num_heads d_head"], phases: Complex[Tensor, "context 1 pairs"]
) -> Float[Tensor, "batch time num_heads d_head"]:
    """Rotate every two neighbors of the last axis by the angle of their position."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * phases[: x.shape[1]]).flatten(-2)


class RMSNorm(nn.Module):
    """RMS norm without a gain, since the matrix after it can scale too."""

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x)


def new_norm(shape: Shape, on: Switches) -> nn.Module:
    """The norm before attention, before the MLP and before the head."""
    return RMSNorm() if on.rms_norm else nn.LayerNorm(shape.d_model, bias=False)


class Attention(nn.Module):
    """Causal self-attention; one matrix for queries, keys and values."""

    def __init__(self, shape: Shape, on: Switches) -> None:
        super().__init__()
        self.num_heads, self.qk_norm = shape.num_heads, on.qk_norm
        self.qkv = nn.Linear(shape.d_model, 3 * shape.d_model, bias=False)
        self.out = nn.Linear(shape.d_model, shape.d_model, bias=False)

    def forward(self, x: Tensor, phases: Tensor | None) -> Tensor:
        qkv = self.qkv(x).unflatten(-1, (3 * self.num_heads, -1))  # (B, T, 3 num_heads, d_head)
        qk, v = qkv.split((2 * self.num_heads, self.num_heads), dim=2)
        if self.qk_norm:
            qk = rms_norm(qk)
        if phases is not None:
            qk = rotate(qk, phases)
        q, k = qk.transpose(1, 2).chunk(2, dim=1)  # (B, num_heads, T, d_head)
        y = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Two matrices with an activation between them, applied to each position on its own."""

    def __init__(self, shape: Shape, on: Switches) -> None:
        super().__init__()
        self.up = nn.Linear(shape.d_model, 4 * shape.d_model, bias=False)
        self.down = nn.Linear(4 * shape.d_model, shape.d_model, bias=False)
        self.activation = squared_relu if on.squared_relu else F.gelu

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    """Attention and MLP, each on the normalized residual stream and added to it."""

    def __init__(self, shape: Shape, on: Switches) -> None:
        super().__init__()
        self.norm1, self.attention = new_norm(shape, on), Attention(shape, on)
        self.norm2, self.mlp = new_norm(shape, on), MLP(shape, on)

    def forward(self, x: Tensor, phases: Tensor | None) -> Tensor:
        x = x + self.attention(self.norm1(x), phases)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Characters in, logits for the next character out."""

    def __init__(self, shape: Shape, on: Switches) -> None:
        super().__init__()
        self.shape, self.on = shape, on
        tables = 1 + on.earlier
        self.embedding = nn.Embedding(tables * shape.vocab_size, shape.d_model)
        if on.rotary:
            phases = rotary_phases(shape.context_length, shape.d_model // shape.num_heads)
            self.register_buffer("phases", phases, persistent=False)
        else:
            self.positions = nn.Embedding(shape.context_length, shape.d_model)
        self.blocks = nn.ModuleList(Block(shape, on) for _ in range(shape.num_layers))
        self.norm = new_norm(shape, on)
        self.head = nn.Linear(shape.d_model, shape.vocab_size, bias=False) if on.untied else None
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        """Small random numbers; with zero_init, the blocks add nothing at first."""
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=DEVIATION)
        self.embedding.weight[self.shape.vocab_size :] = 0
        for block in self.blocks:
            for projection in (block.attention.out, block.mlp.down):
                projection.weight.mul_((2 * self.shape.num_layers) ** -0.5)
            if self.on.zero_init:
                block.attention.out.weight.zero_()
                block.mlp.down.weight.zero_()
                block.attention.qkv.weight.normal_(std=self.shape.d_model**-0.5)
                block.mlp.up.weight.normal_(std=self.shape.d_model**-0.5)
        if self.head is not None:
            self.head.weight.zero_()

    def num_parameters(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def embed(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time d_model"]:
        """The sum of a vector for each character and for those just before it."""
        vocab_size = self.shape.vocab_size
        x = self.embedding(tokens)  # (B, T, C)
        for lag in range(1, min(self.on.earlier + 1, tokens.shape[1])):
            before = self.embedding(tokens[:, :-lag] + lag * vocab_size)
            x[:, lag:] += before  # the first positions have nothing before them
        if not self.on.rotary:
            x = x + self.positions.weight[: tokens.shape[1]]
        return rms_norm(x) if self.on.rms_norm else x

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocab_size"]:
        x = self.embed(tokens)
        phases = self.phases if self.on.rotary else None
        for block in self.blocks:
            x = block(x, phases)
        weight = self.embedding.weight if self.head is None else self.head.weight
        return F.linear(self.norm(x), weight[: self.shape.vocab_size])
