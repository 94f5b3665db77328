"""Assignment 1: convolution and pooling, forward and backward, in NumPy.

Conventions of the whole file
    Images are arrays of shape (n, c, h, w): image, channel, row, column.
    Kernels are arrays of shape (c_out, c_in, kh, kw).
    `kernel`, `stride` and `padding` of 2-d functions are an int, or a pair (vertical, horizontal).
    Padding p adds p zeros on each of the two sides of an axis.
    "Convolution" slides the kernel without flipping it, as every deep-learning library does.
    float32 in gives float32 out: the float arrays of a call have one type. Integer inputs count
    as float64; only im2col, col2im and max pooling keep the type they get.
    No function changes its inputs, and none remembers anything between two calls.
    `cache` is whatever your backward pass needs from your forward pass. Tests only hand it back,
    sometimes more than once.
    Bad sizes raise ValueError: a kernel or a stride below 1, a padding below 0,
    a kernel that doesn't fit into the padded input, c_in of x and w that differ.

NumPy only: no PyTorch, no SciPy, no np.convolve, no np.correlate.
"""

import numpy as np
from jaxtyping import Float, Num

Array = np.ndarray
Size = int | tuple[int, int]


def pair(size: Size) -> tuple[int, int]:
    """Given: turn 3 into (3, 3), and leave (3, 2) as it is."""
    if isinstance(size, int | np.integer):
        return int(size), int(size)
    vertical, horizontal = size
    return int(vertical), int(horizontal)


def as_float(x: Num[Array, "..."]) -> Float[Array, "..."]:
    """Given: float32 and float64 stay as they are, integers and booleans become float64."""
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def check_channels(x: Num[Array, "n c_in h w"], w: Num[Array, "c_out c_in kh kw"]) -> None:
    """Given: raise ValueError when images and kernels disagree about the number of channels."""
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"x has {x.shape[1]} channels, but the kernels have {w.shape[1]}")


def pooling_sizes(
    x: Num[Array, "n c h w"], kernel: Size, stride: Size | None, padding: Size
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Given: kernel, stride, padding and output size as pairs; too much padding is a ValueError."""
    kernel, padding = pair(kernel), pair(padding)
    stride = kernel if stride is None else pair(stride)
    for k, p in zip(kernel, padding, strict=True):
        if p > k // 2:
            raise ValueError(f"padding {p} is more than half of the pooling kernel {k}")
    out_h, out_w = (
        conv_output_size(*sizes) for sizes in zip(x.shape[2:], kernel, stride, padding, strict=True)
    )
    return kernel, stride, padding, (out_h, out_w)


# Exercise 1.1


def conv_output_size(size: int, kernel: int, stride: int = 1, padding: int = 0) -> int:
    """How many places a kernel has along one axis.

    size, kernel, stride, padding: the lengths along that axis. With stride above 1 the kernel may
    not reach the far edge: what is left over is ignored.

    Raises ValueError when size, kernel or stride is below 1, when padding is below 0, and when the
    kernel is longer than the padded input.
    """
    raise NotImplementedError("conv_output_size: exercise 1.1 is yours to write")


# Exercise 1.2


def conv2d_forward(
    x: Num[Array, "n c_in h w"],
    w: Num[Array, "c_out c_in kh kw"],
    b: Num[Array, " c_out"],
    stride: Size = 1,
    padding: Size = 0,
) -> tuple[Float[Array, "n c_out out_h out_w"], object]:
    """Convolve every image with every kernel, by loops.

    out[i, k, r, s] = b[k] + the sum over c, p, q of
        w[k, c, p, q] * padded_x[i, c, r * stride_h + p, s * stride_w + q]

    Returns (out, cache).
    """
    raise NotImplementedError("conv2d_forward: exercise 1.2 is yours to write")


# Exercise 1.3


def conv2d_backward(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The backward pass of conv2d_forward, by loops.

    dout: the gradient of the loss with respect to out.
    Returns (dx, dw, db), the gradients with respect to x, w and b, in their shapes.
    """
    raise NotImplementedError("conv2d_backward: exercise 1.3 is yours to write")


# Exercise 1.4


def max_pool2d_forward(
    x: Num[Array, "n c h w"], kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Num[Array, "n c out_h out_w"], object]:
    """The largest value in each window, for each image and channel on its own.

    stride: None means the stride equals the kernel, so that windows don't overlap.
    padding: at most half the kernel (ValueError otherwise), so that each window holds a real pixel.
        Padding never wins, not even against negative numbers.
    Returns (out, cache); out has the dtype of x.
    """
    raise NotImplementedError("max_pool2d_forward: exercise 1.4 is yours to write")


def max_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of max_pool2d_forward: each window's gradient goes to its largest value.

    On a tie within a window, the first in row-major order (top row first, then left to right)
    gets the gradient, all of it. Where windows overlap, gradients add up.
    Returns dx; it has the dtype of dout.
    """
    raise NotImplementedError("max_pool2d_backward: exercise 1.4 is yours to write")


# Exercise 1.5


def avg_pool2d_forward(
    x: Num[Array, "n c h w"], kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Float[Array, "n c out_h out_w"], object]:
    """The mean of each window, for each image and channel on its own.

    stride and padding as in max_pool2d_forward, but padding counts: a window that hangs over the
    edge is still divided by kh * kw.
    Returns (out, cache).
    """
    raise NotImplementedError("avg_pool2d_forward: exercise 1.5 is yours to write")


def avg_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of avg_pool2d_forward: each window shares its gradient out equally.

    Returns dx; it has the dtype of dout.
    """
    raise NotImplementedError("avg_pool2d_backward: exercise 1.5 is yours to write")


# Exercise 1.6


def im2col(
    x: Num[Array, "n c h w"], kernel: Size, stride: Size = 1, padding: Size = 0
) -> Num[Array, "n c*kh*kw out_h*out_w"]:
    """Lay out every patch that a kernel will see as a column, without a loop over pixels.

    cols[i, :, r * out_w + s] is the patch of image i under output pixel (r, s), flattened in the
    order channel, row, column. A loop over the kh * kw kernel positions is fine.
    The dtype is that of x.
    """
    raise NotImplementedError("im2col: exercise 1.6 is yours to write")


def col2im(
    cols: Num[Array, "n c*kh*kw out_h*out_w"],
    x_shape: tuple[int, int, int, int],
    kernel: Size,
    stride: Size = 1,
    padding: Size = 0,
) -> Num[Array, "n c h w"]:
    """Add every column back to the pixels it came from: the backward pass of im2col.

    x_shape: the (n, c, h, w) of the image, without padding. A pixel that lies in several patches
    gets the sum. The dtype is that of cols.
    """
    raise NotImplementedError("col2im: exercise 1.6 is yours to write")


def conv2d_forward_fast(
    x: Num[Array, "n c_in h w"],
    w: Num[Array, "c_out c_in kh kw"],
    b: Num[Array, " c_out"],
    stride: Size = 1,
    padding: Size = 0,
) -> tuple[Float[Array, "n c_out out_h out_w"], object]:
    """The same as conv2d_forward, as one matrix product over im2col's columns.

    At least 10 times faster than a Python loop that does one multiply-and-sum for each output
    value, on one image of 1 x 81 x 91 with one kernel of 2 x 3. So is conv2d_backward_fast.
    """
    raise NotImplementedError("conv2d_forward_fast: exercise 1.6 is yours to write")


def conv2d_backward_fast(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The same as conv2d_backward, by matrix products and col2im; cache: conv2d_forward_fast's."""
    raise NotImplementedError("conv2d_backward_fast: exercise 1.6 is yours to write")


# Exercise 1.7


def conv_parameters(c_in: int, c_out: int, kernel: Size, bias: bool = True) -> int:
    """The number of learned numbers in a convolution layer with c_out kernels."""
    raise NotImplementedError("conv_parameters: exercise 1.7 is yours to write")


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """The number of learned numbers in a dense layer from n_in inputs to n_out outputs."""
    raise NotImplementedError("linear_parameters: exercise 1.7 is yours to write")
