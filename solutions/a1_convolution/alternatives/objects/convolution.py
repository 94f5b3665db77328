"""Assignment 1 with objects: caches are instances of classes, and a Grid knows where windows lie.

The loops go over output pixels and treat all images, channels and kernels at once. The fast
functions gather patches by index arrays into one matrix for the whole batch, a patch to a row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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


class Grid:
    """Where the windows lie on images of one shape."""

    def __init__(self, x_shape: tuple[int, ...], kernel: Size, stride: Size, padding: Size) -> None:
        self.n, self.c, self.height, self.width = x_shape
        self.kh, self.kw = pair(kernel)
        self.sh, self.sw = pair(stride)
        self.ph, self.pw = pair(padding)
        self.out_h = conv_output_size(self.height, self.kh, self.sh, self.ph)
        self.out_w = conv_output_size(self.width, self.kw, self.sw, self.pw)

    @property
    def area(self) -> int:
        """The number of pixels in a window."""
        return self.kh * self.kw

    def padded(self, x: Array) -> Array:
        """The images with zeros around them."""
        return np.pad(x, ((0, 0), (0, 0), (self.ph, self.ph), (self.pw, self.pw)))

    def canvas(self, dtype: np.dtype) -> Array:
        """Padded images of zeros."""
        height, width = self.height + 2 * self.ph, self.width + 2 * self.pw
        return np.zeros((self.n, self.c, height, width), dtype=dtype)

    def cropped(self, padded: Array) -> Array:
        """The images without what lies around them."""
        rows = slice(self.ph, self.ph + self.height)
        return padded[:, :, rows, self.pw : self.pw + self.width]

    def windows(self) -> Iterator[tuple[tuple, tuple]]:
        """The index of each output pixel, and that of its window in the padded images."""
        for r in range(self.out_h):
            for s in range(self.out_w):
                rows = slice(r * self.sh, r * self.sh + self.kh)
                columns = slice(s * self.sw, s * self.sw + self.kw)
                yield np.s_[:, :, r, s], np.s_[:, :, rows, columns]

    def rows_and_columns(self) -> tuple[Array, Array]:
        """The padded row and column of each window's pixels: (out_h, 1, kh, 1), (out_w, 1, kw)."""
        rows = self.sh * np.arange(self.out_h)[:, None] + np.arange(self.kh)
        columns = self.sw * np.arange(self.out_w)[:, None] + np.arange(self.kw)
        return rows[:, None, :, None], columns[:, None, :]

    def gather(self, x: Array) -> Array:
        """Every window of every image: (n, c, out_h, out_w, kh, kw)."""
        rows, columns = self.rows_and_columns()
        return self.padded(x)[:, :, rows, columns]

    def scatter(self, patches: Array) -> Array:
        """Add windows (n, c, out_h, out_w, kh, kw) back to the images, without their padding."""
        canvas = self.canvas(patches.dtype)
        for p in range(self.kh):
            for q in range(self.kw):
                rows = slice(p, p + self.sh * self.out_h, self.sh)
                columns = slice(q, q + self.sw * self.out_w, self.sw)
                canvas[:, :, rows, columns] += patches[..., p, q]
        return self.cropped(canvas)


class PoolingGrid(Grid):
    """Windows of a pooling: the stride may be left out, and padding is at most half the kernel."""

    def __init__(
        self, x_shape: tuple[int, ...], kernel: Size, stride: Size | None, padding: Size
    ) -> None:
        super().__init__(x_shape, kernel, kernel if stride is None else stride, padding)
        if 2 * self.ph > self.kh or 2 * self.pw > self.kw:
            raise ValueError("the padding is more than half of the kernel")


@dataclass(frozen=True)
class ConvolutionCache:
    """What the backward pass of a convolution by loops needs."""

    grid: Grid
    padded: Array
    w: Array
    b: Array


@dataclass(frozen=True)
class FastCache:
    """What the backward pass of the fast convolution needs; patches hold a patch in each row."""

    grid: Grid
    patches: Array  # (n*out_h*out_w, c_in*kh*kw)
    w: Array
    b: Array


class PoolingCache:
    """What the backward pass of a pooling needs."""

    def __init__(self, grid: PoolingGrid, winners: Array | None = None) -> None:
        self.grid = grid
        self.winners = winners  # (n, c, out_h, out_w), places within each window


def convolution_grid(x: Array, w: Array, stride: Size, padding: Size) -> Grid:
    """The grid of a convolution; images and kernels must agree about c_in."""
    if x.shape[1] != w.shape[1]:
        raise ValueError(f"{x.shape[1]} channels in x, but {w.shape[1]} in w")
    return Grid(x.shape, w.shape[2:], stride, padding)


def conv_output_size(size: int, kernel: int, stride: int = 1, padding: int = 0) -> int:
    """How many places a kernel has along one axis."""
    for length in (size, kernel, stride):
        if length < 1:
            raise ValueError("size, kernel and stride must be at least 1")
    if padding < 0:
        raise ValueError("padding must not be negative")
    steps, _ = divmod(size + 2 * padding - kernel, stride)
    if steps < 0:
        raise ValueError("the kernel is longer than the padded input")
    return 1 + steps


def conv2d_forward(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """Convolve every image with every kernel, by a loop over output pixels."""
    x, w, b = as_float(x), as_float(w), as_float(b)
    grid = convolution_grid(x, w, stride, padding)
    padded = grid.padded(x)
    out = np.empty((len(x), len(w), grid.out_h, grid.out_w), dtype=np.result_type(x, w, b))
    for pixel, window in grid.windows():
        out[pixel] = np.tensordot(padded[window], w, axes=((1, 2, 3), (1, 2, 3))) + b
    return out, ConvolutionCache(grid, padded, w, b)


def conv2d_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The backward pass of conv2d_forward, over the same output pixels."""
    dpadded, dw, db = (np.zeros_like(array) for array in (cache.padded, cache.w, cache.b))
    for pixel, window in cache.grid.windows():
        slopes = dout[pixel]  # (n, c_out)
        dpadded[window] += np.tensordot(slopes, cache.w, axes=1)
        dw += np.tensordot(slopes.T, cache.padded[window], axes=1)
        db += slopes.sum(axis=0)
    return cache.grid.cropped(dpadded), dw, db


def max_pool2d_forward(
    x: Array, kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """The largest value in each window, found among the real pixels."""
    grid = PoolingGrid(x.shape, kernel, stride, padding)
    padded = grid.padded(x)
    real = grid.padded(np.ones((1, 1, *x.shape[2:]), dtype=bool))
    out = np.empty((*x.shape[:2], grid.out_h, grid.out_w), dtype=x.dtype)
    winners = np.empty(out.shape, dtype=int)
    for pixel, window in grid.windows():
        flat = padded[window].reshape(*x.shape[:2], grid.area)
        candidates = np.flatnonzero(real[window])
        best = candidates[flat[:, :, candidates].argmax(axis=2)]
        winners[pixel] = best
        out[pixel] = np.take_along_axis(flat, best[:, :, None], axis=2)[:, :, 0]
    return out, PoolingCache(grid, winners)


def max_pool2d_backward(dout: Array, cache: object) -> Array:
    """The backward pass of max_pool2d_forward."""
    grid = cache.grid
    dpadded = grid.canvas(dout.dtype)
    places = np.arange(grid.area).reshape(grid.kh, grid.kw)
    for pixel, window in grid.windows():
        won = cache.winners[pixel][:, :, None, None] == places
        dpadded[window] += won * dout[pixel][:, :, None, None]
    return grid.cropped(dpadded)


def avg_pool2d_forward(
    x: Array, kernel: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """The mean of each window; padding counts."""
    x = as_float(x)
    grid = PoolingGrid(x.shape, kernel, stride, padding)
    return grid.gather(x).sum(axis=(4, 5)) / grid.area, PoolingCache(grid)


def avg_pool2d_backward(dout: Array, cache: object) -> Array:
    """The backward pass of avg_pool2d_forward."""
    grid = cache.grid
    share = (dout / grid.area)[..., None, None]
    return grid.scatter(np.broadcast_to(share, (*dout.shape, grid.kh, grid.kw)))


def im2col(x: Array, kernel: Size, stride: Size = 1, padding: Size = 0) -> Array:
    """Every patch as a column."""
    grid = Grid(x.shape, kernel, stride, padding)
    patches = grid.gather(x).transpose(0, 1, 4, 5, 2, 3)  # (n, c, kh, kw, out_h, out_w)
    return patches.reshape(grid.n, grid.c * grid.area, grid.out_h * grid.out_w)


def col2im(
    cols: Array,
    x_shape: tuple[int, int, int, int],
    kernel: Size,
    stride: Size = 1,
    padding: Size = 0,
) -> Array:
    """Add every column back to the pixels it came from."""
    grid = Grid(x_shape, kernel, stride, padding)
    patches = cols.reshape(grid.n, grid.c, grid.kh, grid.kw, grid.out_h, grid.out_w)
    return grid.scatter(patches.transpose(0, 1, 4, 5, 2, 3))


def conv2d_forward_fast(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """The same as conv2d_forward, as one matrix product over the patches of all images."""
    x, w, b = as_float(x), as_float(w), as_float(b)
    grid = convolution_grid(x, w, stride, padding)
    gathered = grid.gather(x).transpose(0, 2, 3, 1, 4, 5)  # (n, out_h, out_w, c_in, kh, kw)
    patches = gathered.reshape(-1, grid.c * grid.area)
    out = patches @ w.reshape(len(w), -1).T + b  # (n*out_h*out_w, c_out)
    out = out.reshape(grid.n, grid.out_h, grid.out_w, len(w)).transpose(0, 3, 1, 2)
    return out, FastCache(grid, patches, w, b)


def conv2d_backward_fast(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The same as conv2d_backward, by matrix products."""
    grid, w = cache.grid, cache.w
    slopes = dout.transpose(0, 2, 3, 1).reshape(-1, len(w))  # (n*out_h*out_w, c_out)
    dw = (slopes.T @ cache.patches).reshape(w.shape)
    db = slopes.sum(axis=0).astype(cache.b.dtype)
    dpatches = slopes @ w.reshape(len(w), -1)  # (n*out_h*out_w, c_in*kh*kw)
    dpatches = dpatches.reshape(grid.n, grid.out_h, grid.out_w, grid.c, grid.kh, grid.kw)
    return grid.scatter(dpatches.transpose(0, 3, 1, 2, 4, 5)), dw, db


def conv_parameters(c_in: int, c_out: int, kernel: Size, bias: bool = True) -> int:
    """The number of learned numbers in a convolution layer."""
    kh, kw = pair(kernel)
    inputs = c_in * kh * kw + 1 if bias else c_in * kh * kw
    return inputs * c_out


def linear_parameters(n_in: int, n_out: int, bias: bool = True) -> int:
    """The number of learned numbers in a dense layer."""
    inputs = n_in + 1 if bias else n_in
    return inputs * n_out
