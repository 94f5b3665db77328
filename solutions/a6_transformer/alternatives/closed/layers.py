"""Closed forms: waves as complex numbers, and the backward pass of the norm by hand.

Layers are run by PyTorch's operators, and what they cost follows from their shapes.
"""

import numpy as np


def frequencies(d_model: int) -> np.ndarray:
    """The frequency of each wave, in radians per position, (d_model / 2,)."""
    check_encoding(d_model)
    return np.power(10000.0, -np.arange(d_model // 2) / (d_model / 2))


def sinusoidal_encoding(length: int, d_model: int) -> Tensor:
    """Real and imaginary parts of exp(i * angle), the imaginary part first."""
    check_encoding(d_model, length)
    waves = np.exp(1j * np.multiply.outer(np.arange(length), frequencies(d_model)))
    return torch.from_numpy(np.stack([waves.imag, waves.real], axis=-1).reshape(length, d_model))


def shift_matrix(k: int, d_model: int) -> Tensor:
    """cos on the diagonal, sin above and -sin below it, alternating with zeros."""
    waves = np.exp(1j * k * frequencies(d_model))
    between = np.zeros(d_model - 1)
    between[::2] = waves.imag
    matrix = np.diag(np.repeat(waves.real, 2)) + np.diag(between, 1) - np.diag(between, -1)
    return torch.from_numpy(matrix)


class Normalize(torch.autograd.Function):
    """(x - mean) / sqrt(variance + epsilon) over the last axis, with its backward pass."""

    @staticmethod
    def forward(context: object, x: Tensor, eps: float) -> Tensor:
        centered = x - x.mean(dim=-1, keepdim=True)
        scale = torch.rsqrt(centered.square().mean(dim=-1, keepdim=True) + eps)
        normalized = centered * scale
        context.save_for_backward(normalized, scale)
        return normalized

    @staticmethod
    def backward(context: object, dout: Tensor) -> tuple[Tensor, None]:
        normalized, scale = context.saved_tensors
        # Remove from the gradient what would change the mean or the norm of the vector.
        along = (dout * normalized).mean(dim=-1, keepdim=True)
        return scale * (dout - dout.mean(dim=-1, keepdim=True) - normalized * along), None


class LayerNorm(nn.Module):
    """Normalize, then weight and bias."""

    def forward(self, x: Tensor) -> Tensor:
        check_floats(x)
        if x.ndim < 1 or x.shape[-1] != self.weight.shape[0]:
            raise ValueError(f"{tuple(x.shape)} doesn't end with {self.weight.shape[0]}")
        return Normalize.apply(x, self.eps) * self.weight + self.bias


def complexity(kind: str, n: int, d: int, k: int = 3) -> dict[str, int]:
    """Exact integers."""
    check_layer(kind, n, d, k)
    convolution = k * n * d**2
    answers = {
        "recurrent": lambda: (2 * n * d**2, n, n),
        "attention": lambda: (2 * d * n**2, 2, 2),
        "convolution": lambda: (convolution, 1, max(1, -((1 - n) // (k - 1)))),
        "dilated": lambda: (convolution, 1, max(1, digits(n - 1, k))),
    }
    names = ("multiplications", "sequential_steps", "path_length")
    return dict(zip(names, answers[kind](), strict=True))


def digits(number: int, base: int) -> int:
    """How many digits a number has: the offset to the first position, one digit per layer."""
    count = 0
    while number:
        number //= base
        count += 1
    return count


def run_layer(
    kind: str, x: Tensor, weights: tuple[Tensor, ...] = (), dilation: int = 1
) -> tuple[Tensor, int, int]:
    """One layer, by PyTorch's operators; the counts follow from the shapes."""
    check_floats(x)
    n, d = x.shape
    if dilation < 1:
        raise ValueError(f"dilation can't be {dilation}")
    if kind == "recurrent":
        w_x, w_h = weights
        out = [x.new_zeros(d)]
        for row in x:
            out.append(torch.tanh(row @ w_x + out[-1] @ w_h))
        return torch.stack(out[1:]), n * (w_x.numel() + w_h.numel()), n
    if kind == "convolution":
        (w,) = weights
        padded = F.pad(x.T, ((len(w) - 1) * dilation, 0))
        out = F.conv1d(padded[None], w.flip(0).permute(2, 1, 0), dilation=dilation)
        return out[0].T, n * w.numel(), 1
    if kind == "attention":
        scores = torch.einsum("id,jd->ij", x, x) / math.sqrt(d)
        out = torch.einsum("ij,jd->id", torch.softmax(scores, dim=1), x)
        return out, 2 * scores.numel() * d, 2
    raise ValueError(f"unknown kind {kind!r}")
