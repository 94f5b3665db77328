"""Assignment 1: convolution and pooling, forward and backward, in NumPy.

Conventions:

- Shapes: images are (n, c, h, w): image, channel, row, column. Kernels are (c_out, c_in, kh, kw).
- Convolution: the kernel slides over the image without being flipped, as in PyTorch.
- Sizes: in 2-d functions, `kernel_size`, `stride` and `padding` are an int or a pair
  (vertical, horizontal). Padding p adds p zeros on both sides of an axis.
- Types: float32 in gives float32 out; the float arrays passed in one call share one dtype. Integer
  arrays are converted to float64, except in im2col, col2im and max pooling, which keep the dtype.
- Inputs may be views, such as slices and transposes of other arrays.
- State: no function changes its inputs or remembers anything between calls. `cache` is whatever
  your backward pass needs from your forward pass; it may hold the inputs themselves. Tests only
  pass it on, sometimes twice.
- Errors: ValueError for a kernel size or stride below 1, a padding below 0, a kernel that doesn't
  fit into the padded input, and different c_in in x and w.

NumPy only. Tests refuse PyTorch, SciPy, np.convolve and np.correlate; the handout says in which
exercises.
"""

import numpy as np
from jaxtyping import Float, Num

Array = np.ndarray
Size = int | tuple[int, int]


def pair(size: Size) -> tuple[int, int]:
    """Given: turn 3 into (3, 3), and keep (3, 2)."""
    if isinstance(size, int | np.integer):
        return int(size), int(size)
    vertical, horizontal = size
    return int(vertical), int(horizontal)


def as_float(x: Num[Array, "..."]) -> Float[Array, "..."]:
    """Given: keep float32 and float64, convert integers and booleans to float64."""
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def check_channels(x: Num[Array, "n c_in h w"], w: Num[Array, "c_out c_in kh kw"]) -> None:
    """Given: raise ValueError if images and kernels have different numbers of channels."""
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"x and w must have the same c_in, got {x.shape[1]} and {w.shape[1]}")


def pooling_sizes(
    x: Num[Array, "n c h w"], kernel_size: Size, stride: Size | None, padding: Size
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Given: kernel size, stride, padding and output size as pairs.

    Raises ValueError for a padding above half the kernel size, and for sizes that your
    conv_output_size refuses.
    """
    kernel_size, padding = pair(kernel_size), pair(padding)
    stride = kernel_size if stride is None else pair(stride)
    for k, p in zip(kernel_size, padding, strict=True):
        if p > k // 2:
            raise ValueError(f"padding must be at most half the kernel size {k}, got {p}")
    out_h, out_w = (
        conv_output_size(*sizes)
        for sizes in zip(x.shape[2:], kernel_size, stride, padding, strict=True)
    )
    return kernel_size, stride, padding, (out_h, out_w)


# Exercise 1.1


def conv_output_size(size: int, kernel_size: int, stride: int = 1, padding: int = 0) -> int:
    """The number of positions at which a kernel fits along one axis.

    All arguments are lengths along that axis. With a stride above 1, the kernel may not reach the
    far edge: the pixels left over are ignored.

    Raises ValueError if size, kernel_size or stride is below 1, if padding is below 0, or if the
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
    """Convolve every image with every kernel. Plain loops over the output values are enough.

    out[i, k, r, s] = b[k] + sum over c, p, q of
        w[k, c, p, q] * padded_x[i, c, r * stride_h + p, s * stride_w + q]

    Returns (out, cache).
    """
    raise NotImplementedError("conv2d_forward: exercise 1.2 is yours to write")


# Exercise 1.3


def conv2d_backward(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The backward pass of conv2d_forward. Plain loops over the output values are enough.

    dout: the gradient of the loss with respect to out.
    Returns (dx, dw, db): the gradients with respect to x, w and b, with their shapes.
    """
    raise NotImplementedError("conv2d_backward: exercise 1.3 is yours to write")


# Exercise 1.4


def max_pool2d_forward(
    x: Num[Array, "n c h w"], kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Num[Array, "n c out_h out_w"], object]:
    """The largest value in each window, separately for each image and channel.

    stride: None means that the stride is kernel_size, so that windows don't overlap.
    padding: at most half of kernel_size (ValueError otherwise), so that every window contains a
        pixel. A padding value is never the maximum, not even among negative numbers.
    Returns (out, cache); out has the dtype of x.
    """
    raise NotImplementedError("max_pool2d_forward: exercise 1.4 is yours to write")


def max_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of max_pool2d_forward: each window's gradient goes to its largest value.

    If several values of a window are the largest, the first in row-major order (top row first,
    then left to right) gets the whole gradient. Where windows overlap, gradients add up.
    Returns dx, with the dtype of dout.
    """
    raise NotImplementedError("max_pool2d_backward: exercise 1.4 is yours to write")


# Exercise 1.5


def avg_pool2d_forward(
    x: Num[Array, "n c h w"], kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Float[Array, "n c out_h out_w"], object]:
    """The mean of each window, separately for each image and channel.

    stride and padding: as in max_pool2d_forward, but the padding zeros are part of the mean. A
        window that extends beyond the edge is still divided by kh * kw.
    Returns (out, cache).
    """
    raise NotImplementedError("avg_pool2d_forward: exercise 1.5 is yours to write")


def avg_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of avg_pool2d_forward: each window splits its gradient equally.

    Returns dx, with the dtype of dout.
    """
    raise NotImplementedError("avg_pool2d_backward: exercise 1.5 is yours to write")


# Exercise 1.6


def im2col(
    x: Num[Array, "n c h w"], kernel_size: Size, stride: Size = 1, padding: Size = 0
) -> Num[Array, "n c*kh*kw out_h*out_w"]:
    """Copy every patch under the kernel into a column, without a loop over pixels.

    cols[i, :, r * out_w + s] is the patch of image i under output pixel (r, s), flattened in the
    order channel, row, column. You may loop over the kh * kw entries of the kernel.
    The dtype is that of x.
    """
    raise NotImplementedError("im2col: exercise 1.6 is yours to write")


def col2im(
    cols: Num[Array, "n c*kh*kw out_h*out_w"],
    x_shape: tuple[int, int, int, int],
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
) -> Num[Array, "n c h w"]:
    """Add every column back to the pixels it came from: the backward pass of im2col.

    x_shape: the shape (n, c, h, w) of the images, without padding.
    A pixel that lies in several patches gets the sum. The dtype is that of cols.
    """
    raise NotImplementedError("col2im: exercise 1.6 is yours to write")


def conv2d_forward_fast(
    x: Num[Array, "n c_in h w"],
    w: Num[Array, "c_out c_in kh kw"],
    b: Num[Array, " c_out"],
    stride: Size = 1,
    padding: Size = 0,
) -> tuple[Float[Array, "n c_out out_h out_w"], object]:
    """The same as conv2d_forward, as a matrix product with the columns of im2col.

    Must be at least 10 times as fast as a Python loop with one np.sum(patch * kernel) per output
    value, on one image of 1 x 81 x 91 with one kernel of 2 x 3. The same holds for
    conv2d_backward_fast.
    """
    raise NotImplementedError("conv2d_forward_fast: exercise 1.6 is yours to write")


def conv2d_backward_fast(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The same as conv2d_backward, with matrix products and col2im.

    cache: that of conv2d_forward_fast.
    """
    raise NotImplementedError("conv2d_backward_fast: exercise 1.6 is yours to write")


# Exercise 1.7


def conv_parameters(c_in: int, c_out: int, kernel_size: Size, bias: bool = True) -> int:
    """The number of parameters of a convolution layer with c_out kernels."""
    raise NotImplementedError("conv_parameters: exercise 1.7 is yours to write")


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """The number of parameters of a linear layer from n_in inputs to n_out outputs."""
    raise NotImplementedError("linear_parameters: exercise 1.7 is yours to write")
