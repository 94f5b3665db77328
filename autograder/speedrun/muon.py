"""Muon: momentum whose matrices are orthogonalized before each step."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter

# x -> A x + B x³ + C x⁵, applied five times, maps singular values from 0.003 to 1 to values between
# 0.68 and 1.14. Coefficients that end at exactly 1 need more iterations, and don't train better.
A, B, C = 3.4445, -4.7750, 2.0315
ITERATIONS = 5
EPSILON = 1e-7  # so that a gradient of zeros stays zeros


def orthogonalize(
    matrices: Float[Tensor, "count rows columns"],
) -> Float[Tensor, "count rows columns"]:
    """Approximately U Vᵀ for each matrix U S Vᵀ, by Newton-Schulz iterations: products only."""
    wide = matrices.mT if matrices.shape[-2] > matrices.shape[-1] else matrices
    x = wide / (torch.linalg.matrix_norm(wide, keepdim=True) + EPSILON)
    result = iterate_on_gram(x) if x.shape[-1] >= 2 * x.shape[-2] else iterate(x)
    return result if wide is matrices else result.mT


def iterate(x: Float[Tensor, "count rows columns"]) -> Float[Tensor, "count rows columns"]:
    """A x + B (x xᵀ) x + C (x xᵀ)² x, five times."""
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=B, alpha=C), x, beta=A)
    return x


def iterate_on_gram(x: Float[Tensor, "count rows columns"]) -> Float[Tensor, "count rows columns"]:
    """The same, for wide matrices in about half the time.

    An iteration multiplies x from the left by a polynomial of x xᵀ. All of these commute, so their
    product is computed on small square matrices and multiplied with x once, at the end.
    """
    gram = x @ x.mT  # (count, rows, rows)
    scaled_identity = A * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    product = factor = torch.baddbmm(gram, gram, gram, beta=B, alpha=C) + scaled_identity
    for _ in range(ITERATIONS - 1):
        gram = factor @ (factor @ gram)
        factor = torch.baddbmm(gram, gram, gram, beta=B, alpha=C) + scaled_identity
        product = factor @ product
    return product @ x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalized; for matrices inside a network, not for embeddings.

    The parameters of a group have one shape and are iterated as one batch. split: how many matrices
    each parameter holds, stacked by rows: 3 for queries, keys and values.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], lr: float, momentum: float, weight_decay: float
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "split": 1}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """One update of every group."""
        for group in self.param_groups:
            parameters: list[Parameter] = group["params"]
            shape = (len(parameters), *parameters[0].shape)
            gradients = torch.stack([parameter.grad for parameter in parameters])
            state = self.state[parameters[0]]
            if not state:
                state["momentum"] = torch.zeros_like(gradients)
            average = state["momentum"].lerp_(gradients, 1 - group["momentum"])
            lookahead = gradients.lerp_(average, group["momentum"])
            rows, columns = shape[1] // group["split"], shape[2]
            updates = orthogonalize(lookahead.view(-1, rows, columns)).reshape(shape)
            # A tall matrix makes its input longer, so its update may be larger by as much.
            rate = group["lr"] * max(1.0, rows / columns) ** 0.5
            for parameter, update in zip(parameters, updates, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)
