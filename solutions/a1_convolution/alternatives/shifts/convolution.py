"""Assignment 1 by shifted images: one strided slice for each kernel position, and sums of them."""

from collections.abc import Iterator

import numpy as np

Array = np.ndarray
Size = int | tuple[int, int]


def pair(size: Size) -> tuple[int, int]:
    """Turn 3 into (3, 3), and leave (3, 2) as it is."""
    if isinstance(size, int | np.integer):
        return int(size), int(size)
    vertical, horizontal = size
    return int(vertical), int(horizontal)


def as_float(x: Array) -> Array:
    """float32 and float64 stay as they are, integers and booleans become float64."""
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def border(x: Array, padding: Size) -> Array:
    """The images with zeros around them."""
    n, c, height, width = x.shape
    ph, pw = pair(padding)
    padded = np.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=x.dtype)
    inside(padded, padding)[...] = x
    return padded


def inside(padded: Array, padding: Size) -> Array:
    """A view of padded images without what lies around them."""
    ph, pw = pair(padding)
    return padded[:, :, ph : padded.shape[2] - ph, pw : padded.shape[3] - pw]


def output_sizes(
    shape: tuple[int, ...], kernel: Size, stride: Size, padding: Size
) -> tuple[int, int]:
    """Height and width of the output for images of that shape, not yet padded."""
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel), pair(stride), pair(padding)
    return conv_output_size(shape[2], kh, sh, ph), conv_output_size(shape[3], kw, sw, pw)


def pooling_setup(
    x: Array, kernel: Size, stride: Size | None, padding: Size
) -> tuple[Size, tuple[int, int]]:
    """The stride that counts and the output's size; too much padding is a ValueError."""
    stride = kernel if stride is None else stride
    for k, p in zip(pair(kernel), pair(padding), strict=True):
        if p > k // 2:
            raise ValueError("the padding is more than half of the kernel")
    return stride, output_sizes(x.shape, kernel, stride, padding)


def shifts(
    padded: Array, kernel: Size, stride: Size, places: tuple[int, int]
) -> Iterator[tuple[int, int, Array]]:
    """For each kernel position (p, q), row by row: p, q and a view of the pixels that it meets."""
    (kh, kw), (sh, sw), (out_h, out_w) = pair(kernel), pair(stride), places
    for p in range(kh):
        for q in range(kw):
            rows = slice(p, p + sh * (out_h - 1) + 1, sh)
            columns = slice(q, q + sw * (out_w - 1) + 1, sw)
            yield p, q, padded[:, :, rows, columns]


def conv_output_size(size: int, kernel: int, stride: int = 1, padding: int = 0) -> int:
    """How many places a kernel has along one axis."""
    last = size + 2 * padding - kernel
    if size <= 0 or kernel <= 0 or stride <= 0 or padding < 0 or last < 0:
        raise ValueError(f"no place for a kernel of {kernel} in {size} (stride {stride})")
    return (last + stride) // stride


def conv2d_forward(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """A sum over the kernel's positions: shifted images, their channels mixed by w[:, :, p, q]."""
    x, w, b = as_float(x), as_float(w), as_float(b)
    if x.shape[1] != w.shape[1]:
        raise ValueError("x and w have different numbers of input channels")
    kernel = w.shape[2:]
    out_h, out_w = output_sizes(x.shape, kernel, stride, padding)
    padded = border(x, padding)

    out = np.zeros((len(w), len(x), out_h, out_w), dtype=np.result_type(x, w, b))
    for p, q, image in shifts(padded, kernel, stride, (out_h, out_w)):
        out += np.tensordot(w[:, :, p, q], image, axes=(1, 1))  # (c_out, n, out_h, out_w)
    out += b[:, None, None, None]
    return out.swapaxes(0, 1), [padded, w, b, stride, padding]


def conv2d_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The same shifts: each kernel position gives one slice of dw and one layer of dx."""
    padded, w, b, stride, padding = cache
    dpadded, dw = np.zeros_like(padded), np.zeros_like(w)
    positions = shifts(padded, w.shape[2:], stride, dout.shape[2:])
    targets = shifts(dpadded, w.shape[2:], stride, dout.shape[2:])
    for (p, q, image), (_, _, target) in zip(positions, targets, strict=True):
        dw[:, :, p, q] = np.tensordot(dout, image, axes=((0, 2, 3), (0, 2, 3)))
        target += np.tensordot(w[:, :, p, q], dout, axes=(0, 1)).swapaxes(0, 1)
    return inside(dpadded, padding), dw, dout.sum(axis=(0, 2, 3), dtype=b.dtype)


def max_pool2d_forward(
    x: Array, kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """A running maximum over the kernel's positions; the first to reach it is remembered."""
    stride, places = pooling_setup(x, kernel, stride, padding)
    padded, real = border(x, padding), border(np.ones(x.shape, dtype=bool), padding)
    out = np.zeros((*x.shape[:2], *places), dtype=x.dtype)
    winner = np.full(out.shape, -1)  # -1: no real pixel met yet
    masks = shifts(real, kernel, stride, places)
    _, kw = pair(kernel)
    for (p, q, image), (_, _, mask) in zip(
        shifts(padded, kernel, stride, places), masks, strict=True
    ):
        better = mask & ((winner < 0) | (image > out))
        out[better] = image[better]
        winner[better] = p * kw + q
    return out, (winner, padded.shape, kernel, stride, padding)


def max_pool2d_backward(dout: Array, cache: object) -> Array:
    """Each kernel position takes the gradients of the windows that it won."""
    winner, shape, kernel, stride, padding = cache
    dpadded = np.zeros(shape, dtype=dout.dtype)
    _, kw = pair(kernel)
    for p, q, target in shifts(dpadded, kernel, stride, dout.shape[2:]):
        target += np.where(winner == p * kw + q, dout, 0)
    return inside(dpadded, padding)


def avg_pool2d_forward(
    x: Array, kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """The sum of the shifted images, divided by how many there are."""
    stride, places = pooling_setup(x, kernel, stride, padding)
    padded = border(as_float(x), padding)
    images = [image for _, _, image in shifts(padded, kernel, stride, places)]
    return sum(images) / len(images), (padded.shape, kernel, stride, padding)


def avg_pool2d_backward(dout: Array, cache: object) -> Array:
    """Each kernel position gets the same share."""
    shape, kernel, stride, padding = cache
    dpadded = np.zeros(shape, dtype=dout.dtype)
    kh, kw = pair(kernel)
    for _, _, target in shifts(dpadded, kernel, stride, dout.shape[2:]):
        target += dout
    return inside(dpadded, padding) / (kh * kw)


def im2col(x: Array, kernel: Size, stride: Size = 1, padding: Size = 0) -> Array:
    """The shifted images, stacked: each is one row of the columns of its channel."""
    places = output_sizes(x.shape, kernel, stride, padding)
    images = [image for _, _, image in shifts(border(x, padding), kernel, stride, places)]
    return np.stack(images, axis=2).reshape(len(x), -1, places[0] * places[1])


def col2im(
    cols: Array,
    x_shape: tuple[int, int, int, int],
    kernel: Size,
    stride: Size = 1,
    padding: Size = 0,
) -> Array:
    """Add every column back to the pixels it came from."""
    n, c, height, width = x_shape
    (kh, kw), (ph, pw) = pair(kernel), pair(padding)
    places = output_sizes(x_shape, kernel, stride, padding)
    rows = cols.reshape(n, c, kh, kw, *places)
    padded = np.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=cols.dtype)
    for p, q, target in shifts(padded, kernel, stride, places):
        target += rows[:, :, p, q]
    return inside(padded, padding)


def conv2d_forward_fast(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """The same as conv2d_forward, which loops over kernel positions only."""
    return conv2d_forward(x, w, b, stride, padding)


def conv2d_backward_fast(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The same as conv2d_backward, which loops over kernel positions only."""
    return conv2d_backward(dout, cache)


def conv_parameters(c_in: int, c_out: int, kernel: Size, bias: bool = True) -> int:
    """The number of learned numbers in a convolution layer."""
    kh, kw = pair(kernel)
    weights = kh * kw * c_in * c_out
    return weights + c_out if bias else weights


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """A dense layer is a convolution over a single pixel."""
    return conv_parameters(n_in, n_out, 1, bias)
