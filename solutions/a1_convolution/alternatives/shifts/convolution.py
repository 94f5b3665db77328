"""Convolution and pooling by sums of shifted images: loops over kernel positions, not over pixels.

Caches are instances of a class.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """Where a kernel's windows lie on images of one shape."""

    shape: tuple[int, int, int, int]
    kernel_size: Size
    stride: Size
    padding: Size

    @property
    def out_size(self) -> tuple[int, int]:
        """Height and width of the output."""
        sizes = pair(self.kernel_size), pair(self.stride), pair(self.padding)
        out_h, out_w = (
            conv_output_size(*axis) for axis in zip(self.shape[2:], *sizes, strict=True)
        )
        return out_h, out_w

    def canvas(self, dtype: np.dtype) -> Array:
        """Padded images of zeros."""
        n, c, height, width = self.shape
        ph, pw = pair(self.padding)
        return np.zeros((n, c, height + 2 * ph, width + 2 * pw), dtype=dtype)

    def inside(self, padded: Array) -> Array:
        """A view of padded images without their border."""
        ph, pw = pair(self.padding)
        return padded[:, :, ph : padded.shape[2] - ph, pw : padded.shape[3] - pw]

    def padded(self, x: Array) -> Array:
        """The images with zeros around them."""
        canvas = self.canvas(x.dtype)
        self.inside(canvas)[...] = x
        return canvas

    def shifts(self, padded: Array) -> Iterator[tuple[int, int, Array]]:
        """For each kernel position, row by row: p, q and a view of the pixels under it."""
        (kh, kw), (sh, sw) = pair(self.kernel_size), pair(self.stride)
        out_h, out_w = self.out_size
        for p in range(kh):
            for q in range(kw):
                rows = slice(p, p + sh * (out_h - 1) + 1, sh)
                columns = slice(q, q + sw * (out_w - 1) + 1, sw)
                yield p, q, padded[:, :, rows, columns]


@dataclass(frozen=True)
class Convolved:
    """What the backward pass of a convolution needs."""

    grid: Grid
    padded: Array
    w: Array
    b: Array


def pooling_grid(x: Array, kernel_size: Size, stride: Size | None, padding: Size) -> Grid:
    """The windows of a pooling."""
    kernel_size, stride, padding, _ = pooling_sizes(x, kernel_size, stride, padding)
    return Grid(x.shape, kernel_size, stride, padding)


def conv2d_forward(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """A sum over the kernel's positions: shifted images, their channels mixed by w[:, :, p, q]."""
    x, w, b = as_float(x), as_float(w), as_float(b)
    check_channels(x, w)
    grid = Grid(x.shape, w.shape[2:], stride, padding)
    out = np.zeros((len(w), len(x), *grid.out_size), dtype=np.result_type(x, w, b))
    padded = grid.padded(x)
    for p, q, image in grid.shifts(padded):
        out += np.tensordot(w[:, :, p, q], image, axes=(1, 1))  # (c_out, n, out_h, out_w)
    out += b[:, None, None, None]
    return out.swapaxes(0, 1), Convolved(grid, padded, w, b)


def conv2d_backward(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The same shifts: each kernel position gives one slice of dw and one layer of dx."""
    grid, padded, w = cache.grid, cache.padded, cache.w
    dpadded, dw = np.zeros_like(padded), np.zeros_like(w)
    for (p, q, image), (_, _, target) in zip(
        grid.shifts(padded), grid.shifts(dpadded), strict=True
    ):
        dw[:, :, p, q] = np.tensordot(dout, image, axes=((0, 2, 3), (0, 2, 3)))
        target += np.tensordot(w[:, :, p, q], dout, axes=(0, 1)).swapaxes(0, 1)
    return grid.inside(dpadded), dw, dout.sum(axis=(0, 2, 3), dtype=cache.b.dtype)


def max_pool2d_forward(
    x: Array, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """A running maximum over the kernel's positions; the first entry to reach it is stored."""
    grid = pooling_grid(x, kernel_size, stride, padding)
    images, masks = grid.padded(x), grid.padded(np.ones(x.shape, dtype=bool))
    out = np.zeros((*x.shape[:2], *grid.out_size), dtype=x.dtype)
    winner = np.full((*out.shape, 2), -1)  # -1: no pixel seen yet
    for (p, q, image), (_, _, real) in zip(grid.shifts(images), grid.shifts(masks), strict=True):
        better = real & ((winner[..., 0] < 0) | (image > out))
        out[better] = image[better]
        winner[better] = p, q
    return out, (grid, winner)


def max_pool2d_backward(dout: Array, cache: object) -> Array:
    """Each kernel position gets the gradients of the windows in which it has the largest value."""
    grid, winner = cache
    dpadded = grid.canvas(dout.dtype)
    for p, q, target in grid.shifts(dpadded):
        target += np.where((winner == (p, q)).all(axis=-1), dout, 0)
    return grid.inside(dpadded)


def avg_pool2d_forward(
    x: Array, kernel_size: Size, stride: Size | None = None, padding: Size = 0
) -> tuple[Array, object]:
    """The sum of the shifted images, divided by how many there are."""
    grid = pooling_grid(x, kernel_size, stride, padding)
    images = [image for _, _, image in grid.shifts(grid.padded(as_float(x)))]
    return sum(images) / len(images), grid


def avg_pool2d_backward(dout: Array, cache: object) -> Array:
    """Each kernel position gets the same share."""
    dpadded = cache.canvas(dout.dtype)
    kh, kw = cache.kernel_size
    for _, _, target in cache.shifts(dpadded):
        target += dout
    return cache.inside(dpadded) / (kh * kw)


def im2col(x: Array, kernel_size: Size, stride: Size = 1, padding: Size = 0) -> Array:
    """The shifted images, stacked: each is one row of the columns of its channel."""
    grid = Grid(x.shape, kernel_size, stride, padding)
    images = [image for _, _, image in grid.shifts(grid.padded(x))]
    return np.stack(images, axis=2).reshape(len(x), -1, images[0][0, 0].size)


def conv2d_forward_fast(
    x: Array, w: Array, b: Array, stride: Size = 1, padding: Size = 0
) -> tuple[Array, object]:
    """The same as conv2d_forward, which loops over kernel positions only."""
    return conv2d_forward(x, w, b, stride, padding)


def conv2d_backward_fast(dout: Array, cache: object) -> tuple[Array, Array, Array]:
    """The same as conv2d_backward, which loops over kernel positions only."""
    return conv2d_backward(dout, cache)
