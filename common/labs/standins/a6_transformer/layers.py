"""Stand-in for the lab of assignment 6: positions by complex numbers and a matrix exponential."""

import torch
from torch import Tensor


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """A vector for each place: real and imaginary parts of d_model / 2 turning numbers."""
    turns = torch.polar(torch.ones(1).double(), torch.outer(torch.arange(length), speeds(d_model)))
    return torch.view_as_real(turns).flip(-1).reshape(length, d_model)


def shift_matrix(k: int, d_model: int) -> Tensor:
    """Turns each pair: the exponential of a matrix that has its speed above the diagonal."""
    above = torch.stack([k * speeds(d_model), torch.zeros(d_model // 2)], dim=1).flatten()[:-1]
    turning = torch.diag(above, 1)
    return torch.linalg.matrix_exp(turning - turning.T)


def speeds(d_model: int) -> Tensor:
    """By how much each pair turns from a place to the next."""
    return torch.logspace(0, -4 + 8 / d_model, d_model // 2, dtype=torch.float64)
