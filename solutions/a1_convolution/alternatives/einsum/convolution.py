"""Convolution and pooling by einsum over sliding windows: no loops, another order of summation.

Caches are dictionaries.
"""

from numpy.lib.stride_tricks import sliding_window_view


def pad(x: Array, padding: Size, value: float = 0) -> Array:
    """The images with a border of one value."""
    ph, pw = pair(padding)
    return np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=value)


def crop(padded: Array, padding: Size) -> Array:
    """The images without their border."""
    ph, pw = pair(padding)
    return padded[:, :, ph : padded.shape[2] - ph, pw : padded.shape[3] - pw]


def windows(padded: Array, kernel_size: Size, stride: Size) -> Array:
    """A view of every window: (n, c, out_h, out_w, kh, kw)."""
    (kh, kw), (sh, sw) = pair(kernel_size), pair(stride)
    conv_output_size(padded.shape[2], kh, sh)
    conv_output_size(padded.shape[3], kw, sw)
    return sliding_window_view(padded, (kh, kw), axis=(2, 3))[:, :, ::sh, ::sw]


def scatter(patches: Array, height: int, width: int, stride: Size) -> Array:
    """Add windows (n, c, out_h, out_w, kh, kw) up into images (n, c, height, width).

    Image row y is row p of window r if y = r * stride + p, and likewise for columns: two tables of
    zeros and ones, and einsum does the rest.
    """
    out_h, out_w, kh, kw = patches.shape[2:]
    sh, sw = pair(stride)
    rows = meeting(height, out_h, kh, sh).astype(patches.dtype)
    columns = meeting(width, out_w, kw, sw).astype(patches.dtype)
    # A matrix product for each axis; a single product would multiply every pixel by every window.
    tall = np.einsum("ncrspq,yrp->ncysq", patches, rows, optimize=True)
    return np.einsum("ncysq,xsq->ncyx", tall, columns, optimize=True)


def meeting(size: int, positions: int, kernel_size: int, stride: int) -> Array:
    """meeting[y, r, p] is 1 where pixel y is entry p of window r, and 0 elsewhere."""
    starts = stride * np.arange(positions)[:, None] + np.arange(kernel_size)
    return np.arange(size)[:, None, None] == starts


def conv_output_size(size: int, kernel_size: int, stride: int = 1, padding: int = 0) -> int:
    """The number of positions at which a kernel fits along one axis."""
    if min(size, kernel_size, stride) < 1 or padding < 0:
        raise ValueError("size, kernel_size and stride must be at least 1, and padding at least 0")
    starts = range(0, size + 2 * padding - kernel_size + 1, stride)
    if not starts:
        raise ValueError("the kernel doesn't fit into the padded input")
    return len(starts)


def conv2d_forward(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """Convolve every image with every kernel."""
    x, w, b = as_float(x), as_float(w), as_float(b)
    check_channels(x, w)
    padded = pad(x, padding)
    seen = windows(padded, w.shape[2:], stride)
    out = np.einsum("ncrspq,kcpq->nkrs", seen, w, optimize=True) + b[:, None, None]
    return out, {"padded": padded, "w": w, "b": b, "stride": stride, "padding": padding}


def conv2d_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The backward pass of conv2d_forward."""
    padded, w, stride = cache["padded"], cache["w"], cache["stride"]
    seen = windows(padded, w.shape[2:], stride)
    dw = np.einsum("ncrspq,nkrs->kcpq", seen, dout, optimize=True)
    db = np.einsum("nkrs->k", dout).astype(cache["b"].dtype)
    # dx is a convolution too: of dout, spread out by the stride, with the flipped kernels.
    n, c_out, out_h, out_w = dout.shape
    (kh, kw), (sh, sw) = w.shape[2:], pair(stride)
    height, width = padded.shape[2:]
    spread = np.zeros((n, c_out, height + kh - 1, width + kw - 1), dtype=dout.dtype)
    spread[:, :, kh - 1 :: sh, kw - 1 :: sw][:, :, :out_h, :out_w] = dout
    seen = windows(spread, (kh, kw), 1)
    dpadded = np.einsum("nkyxpq,kcpq->ncyx", seen, w[:, :, ::-1, ::-1], optimize=True)
    return crop(dpadded, cache["padding"]), dw, db


def max_pool2d_forward(
    x: Array, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """The largest value in each window."""
    kernel_size, stride, padding, _ = pooling_sizes(x, kernel_size, stride, padding)
    lowest = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min
    padded = pad(x, padding, lowest)
    seen = windows(padded, kernel_size, stride)
    real = windows(pad(np.ones_like(x, dtype=bool), padding, False), kernel_size, stride)
    out = seen.max(axis=(4, 5))
    # The first real pixel that is as large as the largest, row by row.
    hits = (seen == out[..., None, None]) & real
    first = hits.reshape(*out.shape, -1).argmax(axis=-1)
    return out, {
        "first": first,
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "size": padded.shape[2:],
    }


def max_pool2d_backward(dout: Array, cache: object) -> Array:
    """The backward pass of max_pool2d_forward."""
    kh, kw = pair(cache["kernel_size"])
    entries = np.arange(kh * kw).reshape(kh, kw)
    won = (cache["first"][..., None, None] == entries).astype(dout.dtype)
    dpatches = np.einsum("ncrs,ncrspq->ncrspq", dout, won)
    return crop(scatter(dpatches, *cache["size"], cache["stride"]), cache["padding"])


def avg_pool2d_forward(
    x: Array, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """The mean of each window; padding counts."""
    x = as_float(x)
    kernel_size, stride, padding, _ = pooling_sizes(x, kernel_size, stride, padding)
    kh, kw = kernel_size
    padded = pad(x, padding)
    out = np.einsum("ncrspq->ncrs", windows(padded, kernel_size, stride)) / (kh * kw)
    return out, {
        "kernel_size": kernel_size,
        "stride": stride,
        "padding": padding,
        "size": padded.shape[2:],
    }


def avg_pool2d_backward(dout: Array, cache: object) -> Array:
    """The backward pass of avg_pool2d_forward."""
    kh, kw = pair(cache["kernel_size"])
    weights = np.full((kh, kw), 1 / (kh * kw), dtype=dout.dtype)
    dpatches = np.einsum("ncrs,pq->ncrspq", dout, weights)
    return crop(scatter(dpatches, *cache["size"], cache["stride"]), cache["padding"])


def im2col(x: Array, kernel_size: Size, stride: Size = 1, padding: Size = 0) -> Array:
    """Every patch as a column."""
    seen = windows(pad(x, padding), kernel_size, stride)
    n, c, out_h, out_w, kh, kw = seen.shape
    return np.einsum("ncrspq->ncpqrs", seen).reshape(n, c * kh * kw, out_h * out_w)


def col2im(
    cols: Array,
    x_shape: tuple[int, int, int, int],
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
) -> Array:
    """Add every column back to the pixels it came from."""
    n, c, height, width = x_shape
    (kh, kw), (ph, pw) = pair(kernel_size), pair(padding)
    out_h, out_w = (
        conv_output_size(*sizes)
        for sizes in zip((height, width), (kh, kw), pair(stride), (ph, pw), strict=True)
    )
    patches = np.einsum("ncpqrs->ncrspq", cols.reshape(n, c, kh, kw, out_h, out_w))
    return crop(scatter(patches, height + 2 * ph, width + 2 * pw, stride), padding)


def conv2d_forward_fast(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """The same as conv2d_forward, which has no loop to begin with."""
    return conv2d_forward(x, w, b, stride, padding)


def conv2d_backward_fast(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The same as conv2d_backward, which has no loop to begin with."""
    return conv2d_backward(dout, cache)
