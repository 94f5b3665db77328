"""Random inputs and comparisons for the public and hidden tests of assignment 1."""

import numpy as np

from common.testing.compare import assert_close, unpack
from common.testing.remote.operations import call_each_held, fetch, hold_each
from common.testing.speed_ratio import check_speed

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


def compare_images(results, expected, what):
    """The images returned by several calls are the expected ones."""
    for actual, wanted in zip(results, expected, strict=True):
        assert_close(actual, wanted, what=what, axes=IMAGE_AXES)


def compare_gradients(gradients, expected, situation):
    """dx, dw and db are the expected ones."""
    for name, actual, wanted in zip(("dx", "dw", "db"), gradients, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})", axes=GRADIENT_AXES[name])


CALLS = 8  # timed together, so that one slow message between two processes matters little
BAR = 10
PARTS = 24  # of the loop, whose time is proportional to its rounds: one part gives its speed
TRIES = 6
PATIENCE = 4  # seconds for each of two passes: slow code fails before the test's time limit


def check_fast(student, oracle, rng, *, x_shape, w_shape):
    """The fast convolution is ten times as fast as a loop over outputs, forward and backward.

    The loop does one multiplication and sum of two patches for each output value, and nothing
    else. Each timed call gets the same input times another factor, so that a result cached from
    an earlier call is wrong. Since convolution is linear, the right results are known.

    One image, one channel and one kernel: with more of them, a loop over pixels that processes
    all images or kernels at once comes close to the limit, and its points would depend on luck.
    """
    x, w, b = (draw_whole(rng, shape) for shape in (x_shape, w_shape, w_shape[:1]))
    out = oracle.conv2d(x, w, b)
    dout = draw_whole(rng, out.shape)
    expected = oracle.conv2d_gradients(x, w, b, dout)
    bias = b[:, None, None]
    factors = np.arange(2, 2 + CALLS) / 8  # exact in binary
    loop = [multiply_and_sum(count, w.shape[1:]) for count in (out.size, out.size // PARTS)]

    calls = [(held, w, b) for held in hold_each(student, [factor * x for factor in factors])]
    results = timed_results(student, "conv2d_forward_fast", calls, loop, outputs=1)
    for factor, result in zip(factors, results, strict=True):
        actual, _ = unpack(result, 2, "conv2d_forward_fast")
        wanted = factor * (out - bias) + bias
        assert_close(actual, wanted, what="out (while timed)", axes=IMAGE_AXES)

    _, cache = unpack(student.conv2d_forward_fast(x, w, b), 2, "conv2d_forward_fast")
    douts = hold_each(student, [factor * dout for factor in factors])
    calls = [(held, cache) for held in douts]
    results = timed_results(student, "conv2d_backward_fast", calls, loop, outputs=3)
    for factor, result in zip(factors, results, strict=True):
        wanted = [factor * gradient for gradient in expected]
        compare_gradients(unpack(result, 3, "conv2d_backward_fast"), wanted, "while timed")


def timed_results(student, name, calls, loop, *, outputs):
    """Time the calls against as many loops; return their results if they were fast enough.

    loop: the whole loop, and a part of it.
    outputs: how many items of a result must exist when the clock stops.
    """
    function = getattr(student, name)
    whole, part = loop
    held, _ = check_speed(
        lambda: (lambda: call_each_held(function, calls, outputs), whole),
        bar=1 / BAR,
        runs=len(calls),
        cold=False,
        part=(part, PARTS),
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"{name} must be at least {BAR} times as fast as a Python loop over the outputs.",
        help="Loop over the entries of the kernel at most, never over images or pixels.",
    )
    return fetch(held)


def multiply_and_sum(count, shape):
    """The baseline: `count` products of two arrays and their sums, in a Python loop."""
    patch, kernel = np.full(shape, 0.5), np.full(shape, 0.25)

    def run():
        for _ in range(count):
            np.sum(patch * kernel)

    return run
