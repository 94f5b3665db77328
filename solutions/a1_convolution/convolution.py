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
    # BEGIN SOLUTION
    if size < 1 or kernel_size < 1 or stride < 1 or padding < 0:
        raise ValueError(
            f"size, kernel_size and stride must be at least 1 and padding at least 0, "
            f"got {size}, {kernel_size}, {stride} and {padding}"
        )
    # The last index at which the kernel still fits.
    last_start = size + 2 * padding - kernel_size
    if last_start < 0:
        raise ValueError(
            f"kernel_size must be at most size + 2 * padding, "
            f"got {kernel_size} for size {size} and padding {padding}"
        )
    return last_start // stride + 1
    # END SOLUTION


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
    # BEGIN SOLUTION
    x, w, b = as_float(x), as_float(w), as_float(b)
    check_channels(x, w)
    n, _, height, width = x.shape
    c_out, _, kh, kw = w.shape
    (sh, sw), (ph, pw) = pair(stride), pair(padding)
    out_h = conv_output_size(height, kh, sh, ph)
    out_w = conv_output_size(width, kw, sw, pw)

    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))  # (n, c_in, h + 2*ph, w + 2*pw)
    out = np.empty((n, c_out, out_h, out_w), dtype=np.result_type(x, w, b))
    for i in range(n):
        for k in range(c_out):
            for r in range(out_h):
                for s in range(out_w):
                    top, left = r * sh, s * sw
                    patch = padded[i, :, top : top + kh, left : left + kw]  # (c_in, kh, kw)
                    out[i, k, r, s] = np.sum(patch * w[k]) + b[k]
    return out, (x, w, b, stride, padding)
    # END SOLUTION


# Exercise 1.3


def conv2d_backward(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The backward pass of conv2d_forward. Plain loops over the output values are enough.

    dout: the gradient of the loss with respect to out.
    Returns (dx, dw, db): the gradients with respect to x, w and b, with their shapes.
    """
    # BEGIN SOLUTION
    x, w, b, stride, padding = cache
    n, _, height, width = x.shape
    c_out, _, kh, kw = w.shape
    (sh, sw), (ph, pw) = pair(stride), pair(padding)
    out_h, out_w = dout.shape[2:]

    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    dpadded = np.zeros_like(padded)  # (n, c_in, h + 2*ph, w + 2*pw)
    dw = np.zeros_like(w)
    db = np.zeros_like(b)
    for i in range(n):
        for k in range(c_out):
            for r in range(out_h):
                for s in range(out_w):
                    rows = slice(r * sh, r * sh + kh)
                    columns = slice(s * sw, s * sw + kw)
                    # out[i, k, r, s] = sum(patch * w[k]) + b[k]: each factor's gradient is the
                    # other factor, times the gradient of this output value.
                    grad = dout[i, k, r, s]
                    dpadded[i, :, rows, columns] += grad * w[k]
                    dw[k] += grad * padded[i, :, rows, columns]
                    db[k] += grad
    dx = dpadded[:, :, ph : ph + height, pw : pw + width]
    return dx, dw, db
    # END SOLUTION


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
    # BEGIN SOLUTION
    (kh, kw), (sh, sw), (ph, pw), (out_h, out_w) = pooling_sizes(x, kernel_size, stride, padding)
    n, c, _, width = x.shape
    out = np.empty((n, c, out_h, out_w), dtype=x.dtype)
    winners = np.empty((n, c, out_h, out_w), dtype=np.intp)  # indices into the flattened image
    for r in range(out_h):
        for s in range(out_w):
            # Clip the window to the image instead of padding it: padding can't be the maximum.
            top, left = max(r * sh - ph, 0), max(s * sw - pw, 0)
            window = x[:, :, top : r * sh - ph + kh, left : s * sw - pw + kw]
            flat = window.reshape(n, c, -1)
            # argmax takes the first of equal values, and the window is flattened row by row.
            row, column = np.divmod(flat.argmax(axis=2), window.shape[3])
            winners[:, :, r, s] = (top + row) * width + left + column
            out[:, :, r, s] = flat.max(axis=2)
    return out, (x.shape, winners)
    # END SOLUTION


def max_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of max_pool2d_forward: each window's gradient goes to its largest value.

    If several values of a window are the largest, the first in row-major order (top row first,
    then left to right) gets the whole gradient. Where windows overlap, gradients add up.
    Returns dx, with the dtype of dout.
    """
    # BEGIN SOLUTION
    (n, c, height, width), winners = cache
    dx = np.zeros((n, c, height * width), dtype=dout.dtype)
    images, channels = np.ogrid[:n, :c]
    for r in range(dout.shape[2]):
        for s in range(dout.shape[3]):
            dx[images, channels, winners[:, :, r, s]] += dout[:, :, r, s]
    return dx.reshape(n, c, height, width)
    # END SOLUTION


# Exercise 1.5


def avg_pool2d_forward(
    x: Num[Array, "n c h w"], kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Float[Array, "n c out_h out_w"], object]:
    """The mean of each window, separately for each image and channel.

    stride and padding: as in max_pool2d_forward, but the padding zeros are part of the mean. A
        window that extends beyond the edge is still divided by kh * kw.
    Returns (out, cache).
    """
    # BEGIN SOLUTION
    x = as_float(x)
    (kh, kw), (sh, sw), (ph, pw), (out_h, out_w) = pooling_sizes(x, kernel_size, stride, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    out = np.empty((*x.shape[:2], out_h, out_w), dtype=x.dtype)
    for r in range(out_h):
        for s in range(out_w):
            window = padded[:, :, r * sh : r * sh + kh, s * sw : s * sw + kw]
            out[:, :, r, s] = window.mean(axis=(2, 3))
    return out, (x.shape, kernel_size, stride, padding)
    # END SOLUTION


def avg_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of avg_pool2d_forward: each window splits its gradient equally.

    Returns dx, with the dtype of dout.
    """
    # BEGIN SOLUTION
    (n, c, height, width), kernel_size, stride, padding = cache
    kh, kw = pair(kernel_size)
    sh, sw = pair(kernel_size if stride is None else stride)
    ph, pw = pair(padding)

    share = dout / (kh * kw)
    dpadded = np.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=dout.dtype)
    for r in range(dout.shape[2]):
        for s in range(dout.shape[3]):
            window = dpadded[:, :, r * sh : r * sh + kh, s * sw : s * sw + kw]
            window += share[:, :, r, s, None, None]  # a view: this adds to dpadded
    return dpadded[:, :, ph : ph + height, pw : pw + width]
    # END SOLUTION


# Exercise 1.6


def im2col(
    x: Num[Array, "n c h w"], kernel_size: Size, stride: Size = 1, padding: Size = 0
) -> Num[Array, "n c*kh*kw out_h*out_w"]:
    """Copy every patch under the kernel into a column, without a loop over pixels.

    cols[i, :, r * out_w + s] is the patch of image i under output pixel (r, s), flattened in the
    order channel, row, column. You may loop over the kh * kw entries of the kernel.
    The dtype is that of x.
    """
    # BEGIN SOLUTION
    n, c, height, width = x.shape
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel_size), pair(stride), pair(padding)
    out_h = conv_output_size(height, kh, sh, ph)
    out_w = conv_output_size(width, kw, sw, pw)
    if ph or pw:
        x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))

    cols = np.empty((n, c, kh, kw, out_h, out_w), dtype=x.dtype)
    for p in range(kh):
        for q in range(kw):
            # Entry (p, q) of all patches at once is a strided slice of the image.
            cols[:, :, p, q] = x[:, :, p : p + sh * out_h : sh, q : q + sw * out_w : sw]
    return cols.reshape(n, c * kh * kw, out_h * out_w)
    # END SOLUTION


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
    # BEGIN SOLUTION
    n, c, height, width = x_shape
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel_size), pair(stride), pair(padding)
    out_h = conv_output_size(height, kh, sh, ph)
    out_w = conv_output_size(width, kw, sw, pw)

    patches = cols.reshape(n, c, kh, kw, out_h, out_w)
    padded = np.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=cols.dtype)
    for p in range(kh):
        for q in range(kw):
            padded[:, :, p : p + sh * out_h : sh, q : q + sw * out_w : sw] += patches[:, :, p, q]
    return padded[:, :, ph : ph + height, pw : pw + width]
    # END SOLUTION


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
    # BEGIN SOLUTION
    x, w, b = as_float(x), as_float(w), as_float(b)
    check_channels(x, w)
    n, _, height, width = x.shape
    c_out, _, kh, kw = w.shape
    (sh, sw), (ph, pw) = pair(stride), pair(padding)
    out_h = conv_output_size(height, kh, sh, ph)
    out_w = conv_output_size(width, kw, sw, pw)

    cols = im2col(x, (kh, kw), stride, padding)  # (n, c_in*kh*kw, out_h*out_w)
    out = w.reshape(c_out, -1) @ cols  # (n, c_out, out_h*out_w)
    out = out + b[:, None]
    return out.reshape(n, c_out, out_h, out_w), (x.shape, w, b, cols, stride, padding)
    # END SOLUTION


def conv2d_backward_fast(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The same as conv2d_backward, with matrix products and col2im.

    cache: that of conv2d_forward_fast.
    """
    # BEGIN SOLUTION
    x_shape, w, b, cols, stride, padding = cache
    n, c_out = dout.shape[:2]
    dflat = dout.reshape(n, c_out, -1)  # (n, c_out, out_h*out_w)

    db = dflat.sum(axis=(0, 2)).astype(b.dtype, copy=False)
    dw = (dflat @ cols.transpose(0, 2, 1)).sum(axis=0).reshape(w.shape)
    dcols = w.reshape(c_out, -1).T @ dflat  # (n, c_in*kh*kw, out_h*out_w)
    return col2im(dcols, x_shape, w.shape[2:], stride, padding), dw, db
    # END SOLUTION


# Exercise 1.7


def conv_parameters(c_in: int, c_out: int, kernel_size: Size, bias: bool = True) -> int:
    """The number of parameters of a convolution layer with c_out kernels."""
    # BEGIN SOLUTION
    kh, kw = pair(kernel_size)
    return c_out * (c_in * kh * kw + int(bias))
    # END SOLUTION


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """The number of parameters of a linear layer from n_in inputs to n_out outputs."""
    # BEGIN SOLUTION
    return n_out * (n_in + int(bias))
    # END SOLUTION
