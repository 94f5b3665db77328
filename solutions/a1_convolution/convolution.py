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
    # BEGIN SOLUTION
    if size < 1 or kernel < 1 or stride < 1 or padding < 0:
        raise ValueError(
            f"size, kernel and stride must be at least 1 and padding at least 0, "
            f"got size={size}, kernel={kernel}, stride={stride}, padding={padding}"
        )
    room = size + 2 * padding - kernel
    if room < 0:
        raise ValueError(f"a kernel of {kernel} doesn't fit into {size} with padding {padding}")
    return room // stride + 1
    # END SOLUTION


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
    # BEGIN SOLUTION
    x, w, b = as_float(x), as_float(w), as_float(b)
    check_channels(x, w)
    n, _, height, width = x.shape
    c_out, _, kh, kw = w.shape
    (sh, sw), (ph, pw) = pair(stride), pair(padding)
    out_h = conv_output_size(height, kh, sh, ph)
    out_w = conv_output_size(width, kw, sw, pw)

    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    out = np.empty((n, c_out, out_h, out_w), dtype=np.result_type(x, w, b))
    for i in range(n):
        for k in range(c_out):
            for r in range(out_h):
                for s in range(out_w):
                    top, left = r * sh, s * sw
                    patch = padded[i, :, top : top + kh, left : left + kw]
                    out[i, k, r, s] = np.sum(patch * w[k]) + b[k]
    return out, (x, w, b, stride, padding)
    # END SOLUTION


# Exercise 1.3


def conv2d_backward(
    dout: Float[Array, "n c_out out_h out_w"], cache: object
) -> tuple[Float[Array, "n c_in h w"], Float[Array, "c_out c_in kh kw"], Float[Array, " c_out"]]:
    """The backward pass of conv2d_forward, by loops.

    dout: the gradient of the loss with respect to out.
    Returns (dx, dw, db), the gradients with respect to x, w and b, in their shapes.
    """
    # BEGIN SOLUTION
    x, w, b, stride, padding = cache
    n, _, height, width = x.shape
    c_out, _, kh, kw = w.shape
    (sh, sw), (ph, pw) = pair(stride), pair(padding)
    out_h, out_w = dout.shape[2:]

    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    dpadded = np.zeros_like(padded)
    dw = np.zeros_like(w)
    db = np.zeros_like(b)
    for i in range(n):
        for k in range(c_out):
            for r in range(out_h):
                for s in range(out_w):
                    rows = slice(r * sh, r * sh + kh)
                    columns = slice(s * sw, s * sw + kw)
                    # One output value: its gradient flows to all that went into it.
                    slope = dout[i, k, r, s]
                    dpadded[i, :, rows, columns] += slope * w[k]
                    dw[k] += slope * padded[i, :, rows, columns]
                    db[k] += slope
    dx = dpadded[:, :, ph : ph + height, pw : pw + width]
    return dx, dw, db
    # END SOLUTION


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
    # BEGIN SOLUTION
    (kh, kw), (sh, sw), (ph, pw), (out_h, out_w) = pooling_sizes(x, kernel, stride, padding)
    n, c, _, width = x.shape
    out = np.empty((n, c, out_h, out_w), dtype=x.dtype)
    winners = np.empty((n, c, out_h, out_w), dtype=np.intp)
    for r in range(out_h):
        for s in range(out_w):
            # The part of the window that lies on the image: padding can't win if it isn't there.
            top, left = max(r * sh - ph, 0), max(s * sw - pw, 0)
            window = x[:, :, top : r * sh - ph + kh, left : s * sw - pw + kw]
            flat = window.reshape(n, c, -1)
            # argmax takes the first of equals, and the window is laid out row by row.
            row, column = np.divmod(flat.argmax(axis=2), window.shape[3])
            winners[:, :, r, s] = (top + row) * width + left + column
            out[:, :, r, s] = flat.max(axis=2)
    return out, (x.shape, winners)
    # END SOLUTION


def max_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of max_pool2d_forward: each window's gradient goes to its largest value.

    On a tie within a window, the first in row-major order (top row first, then left to right)
    gets the gradient, all of it. Where windows overlap, gradients add up.
    Returns dx; it has the dtype of dout.
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
    x: Num[Array, "n c h w"], kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Float[Array, "n c out_h out_w"], object]:
    """The mean of each window, for each image and channel on its own.

    stride and padding as in max_pool2d_forward, but padding counts: a window that hangs over the
    edge is still divided by kh * kw.
    Returns (out, cache).
    """
    # BEGIN SOLUTION
    x = as_float(x)
    (kh, kw), (sh, sw), (ph, pw), (out_h, out_w) = pooling_sizes(x, kernel, stride, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    out = np.empty((*x.shape[:2], out_h, out_w), dtype=x.dtype)
    for r in range(out_h):
        for s in range(out_w):
            window = padded[:, :, r * sh : r * sh + kh, s * sw : s * sw + kw]
            out[:, :, r, s] = window.mean(axis=(2, 3))
    return out, (x.shape, kernel, stride, padding)
    # END SOLUTION


def avg_pool2d_backward(
    dout: Float[Array, "n c out_h out_w"], cache: object
) -> Float[Array, "n c h w"]:
    """The backward pass of avg_pool2d_forward: each window shares its gradient out equally.

    Returns dx; it has the dtype of dout.
    """
    # BEGIN SOLUTION
    (n, c, height, width), kernel, stride, padding = cache
    kh, kw = pair(kernel)
    sh, sw = pair(kernel if stride is None else stride)
    ph, pw = pair(padding)

    share = dout / (kh * kw)
    dpadded = np.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=dout.dtype)
    for r in range(dout.shape[2]):
        for s in range(dout.shape[3]):
            dpadded[:, :, r * sh : r * sh + kh, s * sw : s * sw + kw] += share[
                :, :, r, s, None, None
            ]
    return dpadded[:, :, ph : ph + height, pw : pw + width]
    # END SOLUTION


# Exercise 1.6


def im2col(
    x: Num[Array, "n c h w"], kernel: Size, stride: Size = 1, padding: Size = 0
) -> Num[Array, "n c*kh*kw out_h*out_w"]:
    """Lay out every patch that a kernel will see as a column, without a loop over pixels.

    cols[i, :, r * out_w + s] is the patch of image i under output pixel (r, s), flattened in the
    order channel, row, column. A loop over the kh * kw kernel positions is fine.
    The dtype is that of x.
    """
    # BEGIN SOLUTION
    n, c, height, width = x.shape
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel), pair(stride), pair(padding)
    out_h = conv_output_size(height, kh, sh, ph)
    out_w = conv_output_size(width, kw, sw, pw)
    if ph or pw:
        x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))

    cols = np.empty((n, c, kh, kw, out_h, out_w), dtype=x.dtype)
    for p in range(kh):
        for q in range(kw):
            # The pixel at (p, q) of all patches at once: a strided slice of the image.
            cols[:, :, p, q] = x[:, :, p : p + sh * out_h : sh, q : q + sw * out_w : sw]
    return cols.reshape(n, c * kh * kw, out_h * out_w)
    # END SOLUTION


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
    # BEGIN SOLUTION
    n, c, height, width = x_shape
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel), pair(stride), pair(padding)
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
    """The same as conv2d_forward, as one matrix product over im2col's columns.

    At least 10 times faster than a Python loop that does one multiply-and-sum for each output
    value, on one image of 1 x 81 x 91 with one kernel of 2 x 3. So is conv2d_backward_fast.
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
    """The same as conv2d_backward, by matrix products and col2im; cache: conv2d_forward_fast's."""
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


def conv_parameters(c_in: int, c_out: int, kernel: Size, bias: bool = True) -> int:
    """The number of learned numbers in a convolution layer with c_out kernels."""
    # BEGIN SOLUTION
    kh, kw = pair(kernel)
    return c_out * (c_in * kh * kw + int(bias))
    # END SOLUTION


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """The number of learned numbers in a dense layer from n_in inputs to n_out outputs."""
    # BEGIN SOLUTION
    return n_out * (n_in + int(bias))
    # END SOLUTION
