"""Stand-in for the lab of assignment 6: positions by complex numbers and a matrix exponential."""

import torch
from torch import Tensor


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """A vector for each position: real and imaginary parts of d_model / 2 rotating numbers."""
    rotations = torch.polar(
        torch.ones(1).double(), torch.outer(torch.arange(length), frequencies(d_model))
    )
    return torch.view_as_real(rotations).flip(-1).reshape(length, d_model)


def shift_matrix(k: int, d_model: int) -> Tensor:
    """Rotates each pair: the exponential of a matrix with the frequencies above the diagonal."""
    above = torch.stack([k * frequencies(d_model), torch.zeros(d_model // 2)], dim=1).flatten()[:-1]
    generator = torch.diag(above, 1)
    return torch.linalg.matrix_exp(generator - generator.T)


def frequencies(d_model: int) -> Tensor:
    """By how much each pair rotates from one position to the next."""
    return torch.logspace(0, -4 + 8 / d_model, d_model // 2, dtype=torch.float64)
