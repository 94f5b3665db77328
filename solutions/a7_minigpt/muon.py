"""Muon: momentum whose matrices are made orthogonal before each step."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Parameter

# x -> A x + B x³ + C x⁵, applied five times, takes every singular value from about 0.003 to 1 into
# the range from 0.68 to 1.14. A faster way to exactly 1 isn't known, and near 1 is good enough.
A, B, C = 3.4445, -4.7750, 2.0315
ITERATIONS = 5
TINY = 1e-7  # so that a gradient of zeros stays zeros


def orthogonalise(
    matrices: Float[Tensor, "count rows columns"],
) -> Float[Tensor, "count rows columns"]:
    """Each U S Vᵀ as nearly U Vᵀ, by Newton-Schulz iterations: products of matrices alone.

    An iteration multiplies x from the left by a polynomial of x xᵀ. All these commute, so that the
    product of the polynomials is gathered in small squares and meets x once, at the end.
    """
    wide = matrices.mT if matrices.shape[-2] > matrices.shape[-1] else matrices
    x = wide / (torch.linalg.matrix_norm(wide, keepdim=True) + TINY)
    gram = x @ x.mT  # (count, n, n), n the smaller side
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype)
    product = identity
    for iteration in range(ITERATIONS):
        factor = torch.baddbmm(gram, gram, gram, beta=B, alpha=C) + A * identity
        product = factor @ product if iteration else factor
        if iteration < ITERATIONS - 1:
            gram = factor @ (factor @ gram)
    result = product @ x
    return result if wide is matrices else result.mT


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised; for matrices inside a network, not for embeddings.

    The parameters of a group have one shape and go through the iterations as one batch. split says
    of how many matrices, one below the other, each parameter consists: 3 for queries, keys, values.
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
            ahead = gradients.lerp_(average, group["momentum"])
            rows, columns = shape[1] // group["split"], shape[2]
            updates = orthogonalise(ahead.view(-1, rows, columns)).reshape(shape)
            # A tall matrix lengthens what it is given: its update may be larger by as much.
            rate = group["lr"] * max(1.0, rows / columns) ** 0.5
            for parameter, update in zip(parameters, updates, strict=True):
                parameter.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)
