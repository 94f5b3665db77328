"""Stand-in for assignment 1 when later ones are graded, on PyTorch's operators."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

# All that student code may call where this runs in a process of its own.
__all__ = [
    "avg_pool2d_backward",
    "avg_pool2d_forward",
    "col2im",
    "conv2d_backward",
    "conv2d_backward_fast",
    "conv2d_forward",
    "conv2d_forward_fast",
    "conv_output_size",
    "conv_parameters",
    "im2col",
    "linear_parameters",
    "max_pool2d_backward",
    "max_pool2d_forward",
]

Size = int | tuple[int, int]
ATEN = torch.ops.aten


def conv_output_size(size: int, kernel_size: int, stride: int = 1, padding: int = 0) -> int:
    """The number of positions at which a kernel fits along one axis."""
    if size < 1 or kernel_size < 1 or stride < 1 or padding < 0 or kernel_size > size + 2 * padding:
        raise ValueError(
            f"kernel_size {kernel_size}, stride {stride} and padding {padding} "
            f"don't fit a size of {size}"
        )
    return (size + 2 * padding - kernel_size) // stride + 1


def conv2d_forward(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, stride: Size = 1, padding: Size = 0
) -> tuple[np.ndarray, Any]:
    """The convolution of images (n, c_in, h, w) with kernels (c_out, c_in, kh, kw)."""
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"x and w must have the same c_in, got {x.shape[1]} and {w.shape[1]}")
    sizes = window_sizes(x.shape, w.shape[2:], stride, padding)[1:]
    dtype = float_type(x, w, b)
    inputs = [tensor(array, dtype) for array in (x, w, b)]
    return F.conv2d(*inputs, *sizes).numpy(), (*inputs[:2], sizes)


def conv2d_backward(dout: np.ndarray, cache: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of x, w and b."""
    x, w, (stride, padding) = cache
    gradients = ATEN.convolution_backward(
        tensor(dout, x.dtype),
        x,
        w,
        [len(w)],
        stride,
        padding,
        dilation=[1, 1],
        transposed=False,
        output_padding=[0, 0],
        groups=1,
        output_mask=[True, True, True],
    )
    dx, dw, db = (gradient.numpy() for gradient in gradients)
    return dx, dw, db


conv2d_forward_fast, conv2d_backward_fast = conv2d_forward, conv2d_backward


def max_pool2d_forward(
    x: np.ndarray, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[np.ndarray, Any]:
    """The largest value in each window."""
    sizes = pooling_sizes(x.shape, kernel_size, stride, padding)
    given = tensor(x, float_type(x))
    out, winners = ATEN.max_pool2d_with_indices(given, *sizes)
    return out.numpy().astype(x.dtype), (given, sizes, winners)


def max_pool2d_backward(dout: np.ndarray, cache: Any) -> np.ndarray:
    """The gradient of x: each window's gradient goes to its first largest value."""
    x, sizes, winners = cache
    given = tensor(dout, float_type(dout))
    x = x.to(given.dtype)
    no_dilation = [1, 1]
    dx = ATEN.max_pool2d_with_indices_backward(given, x, *sizes, no_dilation, False, winners)
    return dx.numpy()


def avg_pool2d_forward(
    x: np.ndarray, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[np.ndarray, Any]:
    """The mean of each window, padding included."""
    sizes = pooling_sizes(x.shape, kernel_size, stride, padding)
    return ATEN.avg_pool2d(tensor(x, float_type(x)), *sizes).numpy(), (x.shape, sizes)


def avg_pool2d_backward(dout: np.ndarray, cache: Any) -> np.ndarray:
    """The gradient of x: each window splits its gradient equally."""
    shape, sizes = cache
    given = tensor(dout, float_type(dout))
    x = torch.zeros(shape, dtype=given.dtype)
    return ATEN.avg_pool2d_backward(given, x, *sizes, False, True, None).numpy()


def im2col(x: np.ndarray, kernel_size: Size, stride: Size = 1, padding: Size = 0) -> np.ndarray:
    """Every patch as a column: (n, c*kh*kw, out_h*out_w)."""
    kernel_size, stride, padding = window_sizes(x.shape, kernel_size, stride, padding)
    columns = F.unfold(tensor(x, torch.float64), kernel_size, padding=padding, stride=stride)
    return columns.numpy().astype(x.dtype)


def col2im(
    cols: np.ndarray,
    x_shape: tuple[int, int, int, int],
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
) -> np.ndarray:
    """Every column added back to its pixels."""
    kernel_size, stride, padding = window_sizes(x_shape, kernel_size, stride, padding)
    size = [int(length) for length in x_shape[2:]]
    x = F.fold(tensor(cols, torch.float64), size, kernel_size, padding=padding, stride=stride)
    return x.numpy().astype(cols.dtype)


def conv_parameters(c_in: int, c_out: int, kernel_size: Size, bias: bool = True) -> int:
    """The number of parameters of a convolution."""
    kh, kw = pair(kernel_size)
    return c_out * (c_in * kh * kw + bool(bias))


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """The number of parameters of a linear layer."""
    return n_out * (n_in + bool(bias))


def pair(size: Size) -> tuple[int, int]:
    """A size along both axes."""
    if np.ndim(size) == 0:
        return int(size), int(size)  # type: ignore[arg-type]
    vertical, horizontal = size  # type: ignore[misc]
    return int(vertical), int(horizontal)


def window_sizes(
    shape: tuple[int, ...], kernel_size: Size, stride: Size, padding: Size
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Kernel size, stride and padding as pairs; ValueError if they don't fit the images."""
    sizes = pair(kernel_size), pair(stride), pair(padding)
    for axis in (0, 1):
        conv_output_size(shape[2 + axis], *(size[axis] for size in sizes))
    return sizes


def pooling_sizes(
    shape: tuple[int, ...], kernel_size: Size, stride: Size | None, padding: Size
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """The same for pooling, where padding is at most half the kernel size."""
    sizes = window_sizes(shape, kernel_size, kernel_size if stride is None else stride, padding)
    for size, margin in zip(sizes[0], sizes[2], strict=True):
        if margin > size // 2:
            raise ValueError(f"padding must be at most half the kernel size {size}, got {margin}")
    return sizes


def float_type(*arrays: np.ndarray) -> torch.dtype:
    """float32 if all arrays are; integers count as float64."""
    return torch.float32 if all(a.dtype == np.float32 for a in arrays) else torch.float64


def tensor(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """An array as a tensor that doesn't share its memory."""
    return torch.from_numpy(np.array(array, order="C")).to(dtype)
