"""Random inputs and comparisons for the public and hidden tests of assignment 1."""

import numpy as np

from common.testing.compare import assert_close, unpack
from common.testing.remote.timed_calls import timed_calls
from common.testing.speed_ratio import Try, check_speed

IMAGE_AXES = ("image", "channel", "row", "column")
KERNEL_AXES = ("kernel", "channel", "row", "column")
COLUMN_AXES = ("image", "patch entry", "output pixel")
GRADIENT_AXES = {"dx": IMAGE_AXES, "dw": KERNEL_AXES, "db": ("kernel",)}


def draw_convolution(rng, x_shape, w_shape, dtype=np.float64):
    """Random images x, random kernels w, and biases b that are far from 0."""
    b = rng.uniform(1, 2, size=w_shape[0]) * rng.choice([-1, 1], size=w_shape[0])
    x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
    return x.astype(dtype), w.astype(dtype), b.astype(dtype)


def draw_positions(rng):
    """A kernel size, stride and padding, the size that they just fit, and how many positions."""
    count, kernel_size, stride, padding = map(int, rng.integers((9, 4, 3, 0), (99, 9, 9, 3)))
    size = kernel_size + (count - 1) * stride - 2 * padding
    return (size, kernel_size, stride, padding), count


def draw_bytes(rng, shape, dtype=np.int8):
    """Integers over the whole range of a small type, so that sums in that type overflow."""
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True)


def draw_whole(rng, shape):
    """Whole numbers as floats: sums are exact, and stored answers are small."""
    return rng.integers(-9, 10, size=shape).astype(np.float64)


def draw_distinct(rng, shape):
    """Numbers of both signs that differ by at least 1/4: no window has a near tie."""
    count = int(np.prod(shape))
    return (rng.permutation(count).reshape(shape) - count // 2) / 4 + 0.125


def in_words(sizes):
    """Stride and padding, as failure messages name them."""
    return ", ".join(f"{name} {size}" for name, size in sizes.items()) or "no stride or padding"


def draw_gradient(rng, out, dtype=None):
    """A random gradient in the shape of out, by default in its dtype."""
    return rng.normal(size=out.shape).astype(dtype or out.dtype)


def compare_gradients(gradients, expected, situation):
    """dx, dw and db are the expected ones."""
    for name, actual, wanted in zip(("dx", "dw", "db"), gradients, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=GRADIENT_AXES[name])


CALLS = 8  # timed together, so that one slow message between two processes matters little
BAR = 10
PARTS = 24  # of the loop, whose time is proportional to its rounds: one part gives its speed
TRIES = 6
PATIENCE = 4  # seconds for each of two passes: slow code fails before the test's time limit


def check_fast(student, rng, *, x_shape, w_shape):
    """The fast convolution is ten times as fast as a loop over outputs, forward and backward.

    The loop does one multiplication and sum of two patches for each output value, and nothing
    else. Each timed call gets inputs of its own, which arrive while the clock runs.

    One image, one channel and one kernel: with more of them, a loop over pixels that processes
    all images or kernels at once comes close to the limit, and its points would depend on luck.
    """
    out_shape = (1, 1, *(1 + np.subtract(x_shape[2:], w_shape[2:])))
    size = int(np.prod(out_shape))
    loop = [multiply_and_sum(count, w_shape[1:]) for count in (size, size // PARTS)]

    def draw():
        return [draw_whole(rng, shape) for shape in (x_shape, w_shape, w_shape[:1])]

    def forward():
        calls = [tuple(draw()) for _ in range(CALLS)]

        def verify(results, _):
            for (x, w, b), result in zip(calls, results, strict=True):
                (actual,) = unpack(result, 1, "conv2d_forward_fast")
                wanted = correlation(x, w) + b[:, None, None]
                assert_close(actual, wanted, what="out (while timed)", axes=IMAGE_AXES)

        return calls, 1, verify

    def backward():
        x, w, b = draw()
        _, cache = unpack(student.conv2d_forward_fast(x, w, b), 2, "conv2d_forward_fast")
        calls = [(draw_whole(rng, out_shape), cache) for _ in range(CALLS)]

        def verify(results, _):
            for (dout, _), result in zip(calls, results, strict=True):
                wanted = whole_convolution(dout, w), correlation(x, dout), dout.sum(axis=(0, 2, 3))
                compare_gradients(unpack(result, 3, "conv2d_backward_fast"), wanted, "while timed")

        return calls, 3, verify

    check_ten_times_as_fast(student, "conv2d_forward_fast", forward, loop)
    check_ten_times_as_fast(student, "conv2d_backward_fast", backward, loop)


def check_ten_times_as_fast(student, name, draw_calls, loop):
    """Time calls against as many loops, and compare their results.

    draw_calls: gives calls, how many items of a result are compared, and what compares them.
    loop: the whole loop, and a part of it.
    """
    function = getattr(student, name)
    whole, part = loop

    def prepare():
        calls, outputs, verify = draw_calls()
        return Try(lambda: timed_calls(function, calls, outputs), whole, verify)

    check_speed(
        prepare,
        bar=1 / BAR,
        runs=CALLS,
        cold=False,
        part=(part, PARTS),
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"{name} must be at least {BAR} times as fast as a Python loop over the outputs.",
        help="Loop over the entries of the kernel at most, never over images or pixels.",
    )


def correlation(x, w):
    """The convolution without padding of one image, by the convolution theorem."""
    spectrum = np.fft.rfft2(x) * np.fft.rfft2(w, x.shape[2:]).conj()
    whole, (height, width) = np.fft.irfft2(spectrum, x.shape[2:]), np.subtract(x.shape, w.shape)[2:]
    return whole[:, :, : height + 1, : width + 1]


def whole_convolution(dout, w):
    """The gradient of the image, by the convolution theorem."""
    shape = tuple(np.add(dout.shape, w.shape)[2:] - 1)
    return np.fft.irfft2(np.fft.rfft2(dout, shape) * np.fft.rfft2(w, shape), shape)


def multiply_and_sum(count, shape):
    """The baseline: `count` products of two arrays and their sums, in a Python loop."""
    patch, kernel = np.full(shape, 0.5), np.full(shape, 0.25)

    def run():
        for _ in range(count):
            np.sum(patch * kernel)

    return run
