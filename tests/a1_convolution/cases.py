"""What the public and the hidden tests of assignment 1 share: how one case is checked."""

from dataclasses import dataclass, field

import numpy as np

from common.testing.calls import Item
from common.testing.compare import assert_close, assert_equal, unpack
from common.testing.remote.operations import call_each_held, fetch, hold_each
from common.testing.speed_ratio import check_speed

IMAGE_AXES = ("image", "channel", "row", "column")
KERNEL_AXES = ("kernel", "channel", "row", "column")
COLUMN_AXES = ("image", "patch entry", "output pixel")
GRADIENT_AXES = {"dx": IMAGE_AXES, "dw": KERNEL_AXES, "db": ("kernel",)}


@dataclass(frozen=True)
class Convolution:
    """The inputs of one convolution; sizes are the keyword arguments, none for the defaults."""

    x: np.ndarray
    w: np.ndarray
    b: np.ndarray
    sizes: dict = field(default_factory=dict)

    @property
    def inputs(self):
        return self.x, self.w, self.b


@dataclass(frozen=True)
class Pooling:
    """The inputs of one pooling; sizes are the keyword arguments beside the kernel."""

    x: np.ndarray
    kernel: int | tuple[int, int]
    sizes: dict = field(default_factory=dict)


def draw_convolution(rng, x_shape, w_shape, dtype=np.float64, **sizes):
    """A convolution of random images with random kernels and biases that are far from 0."""
    b = rng.uniform(1, 2, size=w_shape[0]) * rng.choice([-1, 1], size=w_shape[0])
    x, w = rng.normal(size=x_shape), rng.normal(size=w_shape)
    return Convolution(x.astype(dtype), w.astype(dtype), b.astype(dtype), sizes)


def draw_bytes(rng, shape, dtype=np.int8):
    """Integers over the whole range of a small type, so that sums in that type overflow."""
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True)


def draw_whole(rng, shape):
    """Whole numbers as floats: sums are exact, and stored answers are small."""
    return rng.integers(-9, 10, size=shape).astype(np.float64)


def draw_distinct(rng, shape):
    """Numbers of both signs that all differ by at least 1/4: no window has a near tie."""
    count = int(np.prod(shape))
    return (rng.permutation(count).reshape(shape) - count // 2) / 4 + 0.125


def in_words(sizes):
    """Stride and padding as a failure names them."""
    return ", ".join(f"{name} {size}" for name, size in sizes.items()) or "no stride or padding"


def check_count(calls, name, arguments, expected, what, **named):
    """The function counts right."""
    calls.add(name, arguments, named, then=lambda result: assert_equal(result, expected, what=what))


def check_array(calls, name, arguments, sizes, expected, what, axes, final=False):
    """The function returns the expected array."""

    def compare(result):
        assert_close(result, expected, what=what, axes=axes)

    calls.add(name, arguments, sizes, then=compare, final=final)


def check_convolution(calls, oracle, case, situation, fast=False):
    """The output of one convolution is PyTorch's."""
    forward, _ = convolution_names(fast)
    expected = oracle.conv2d(*case.inputs, **case.sizes)
    check_output(calls, forward, case.inputs, case.sizes, expected, f"out ({situation})")


def check_output(calls, forward, arguments, sizes, expected, what, final=False):
    """The output of one forward pass is the expected one. Its turn comes back."""

    def compare(result):
        out, _ = result
        assert_close(out, expected, what=what, axes=IMAGE_AXES)

    return calls.add(forward, arguments, sizes, then=compare, count=2, sent=1, final=final)


def cache_of(calls, forward, arguments, sizes=None):
    """The cache of one forward pass, to be handed to a backward pass among the same calls."""
    return Item(calls.add(forward, arguments, sizes, count=2, sent=0), 1)


def check_convolution_gradients(
    calls, oracle, rng, case, situation, fast=False, only=("dx", "dw", "db"), view=None
):
    """The gradients of one convolution, or some of them, are PyTorch's under a random dout."""
    forward, backward = convolution_names(fast)
    dout = draw_gradient(rng, oracle.conv2d(*case.inputs, **case.sizes))
    expected = oracle.conv2d_gradients(*case.inputs, dout, **case.sizes)
    cache = cache_of(calls, forward, case.inputs, case.sizes)
    dout = dout if view is None else view(dout)
    check_gradients(calls, backward, (dout, cache), expected, situation, only)


def check_gradients(
    calls, backward, arguments, expected, situation, only=("dx", "dw", "db"), final=False
):
    """The gradients of one backward pass, or some of them, are the expected ones."""

    def compare(gradients):
        compare_gradients(gradients, expected, situation, only)

    calls.add(backward, arguments, then=compare, count=3, final=final)


def compare_gradients(gradients, expected, situation, only=("dx", "dw", "db")):
    for name, actual, wanted in zip(("dx", "dw", "db"), gradients, expected, strict=True):
        if name in only:
            assert_close(actual, wanted, what=f"{name} ({situation})", axes=GRADIENT_AXES[name])


def convolution_names(fast):
    ending = "_fast" if fast else ""
    return f"conv2d_forward{ending}", f"conv2d_backward{ending}"


def draw_gradient(rng, out, dtype=None):
    """A random gradient in the shape of out, and in its type unless another is named."""
    return rng.normal(size=out.shape).astype(dtype or out.dtype)


def check_pooling(calls, oracle, kind, case, situation):
    """The output of one pooling ("max" or "avg") is PyTorch's."""
    expected = getattr(oracle, f"{kind}_pool2d")(case.x, case.kernel, **case.sizes)
    arguments = (case.x, case.kernel)
    check_output(
        calls, f"{kind}_pool2d_forward", arguments, case.sizes, expected, f"out ({situation})"
    )


def check_pooling_gradient(calls, oracle, rng, kind, case, situation, dtype=None, view=None):
    """dx of one pooling ("max" or "avg") is PyTorch's under a random dout."""
    out = getattr(oracle, f"{kind}_pool2d")(case.x, case.kernel, **case.sizes)
    dout = draw_gradient(rng, out, dtype)
    expected = getattr(oracle, f"{kind}_pool2d_gradient")(case.x, dout, case.kernel, **case.sizes)
    dout = dout if view is None else view(dout)
    check_pooling_backward(calls, kind, case, dout, expected, f"dx ({situation})")


def check_pooling_backward(calls, kind, case, dout, expected, what):
    """dx is the expected one, after the student's own forward pass."""
    arguments = (case.x, case.kernel)
    cache = cache_of(calls, f"{kind}_pool2d_forward", arguments, case.sizes)
    check_array(
        calls, f"{kind}_pool2d_backward", (dout, cache), {}, expected, what, axes=IMAGE_AXES
    )


def check_convolutions_stay_apart(calls, oracle, first, second, sizes, fast=False):
    """Three forward calls in a row don't disturb each other's outputs."""
    forward, _ = convolution_names(fast)
    for case in (first, second, first):
        arguments = (*case.inputs, *sizes)
        expected = oracle.conv2d(*arguments)
        what = "out (several calls in a row)"
        check_output(calls, forward, arguments, {}, expected, what, final=True)


def check_convolution_caches_stay_apart(calls, oracle, rng, first, second, sizes, fast=False):
    """Two forward calls, then three backward calls that use the first cache twice."""
    forward, backward = convolution_names(fast)
    inputs = [(*case.inputs, *sizes) for case in (first, second)]
    douts = [draw_gradient(rng, oracle.conv2d(*arguments)) for arguments in inputs]
    caches = [cache_of(calls, forward, arguments) for arguments in inputs]
    for i in (0, 1, 0):
        expected = oracle.conv2d_gradients(*inputs[i][:3], douts[i], *sizes)
        arguments, situation = (douts[i], caches[i]), "several calls in a row"
        check_gradients(calls, backward, arguments, expected, situation, final=True)


def check_poolings_stay_apart(calls, oracle, rng, kind, xs, sizes):
    """All forward calls, then all backward calls, the first of them once more at the end."""
    forward, backward = f"{kind}_pool2d_forward", f"{kind}_pool2d_backward"
    outs = [getattr(oracle, f"{kind}_pool2d")(x, *sizes) for x in xs]
    douts = [draw_gradient(rng, out) for out in outs]
    results = []

    def compare_outputs(result):
        results.append(result)  # all are there, and pairs, before any is compared
        if len(results) == len(xs):
            for (out, _), wanted in zip(results, outs, strict=True):
                assert_close(out, wanted, what="out (several calls in a row)", axes=IMAGE_AXES)

    turns = [
        calls.add(forward, (x, *sizes), then=compare_outputs, count=2, sent=1, final=True)
        for x in xs
    ]
    for i in (*range(len(xs)), 0):
        expected = getattr(oracle, f"{kind}_pool2d_gradient")(xs[i], douts[i], *sizes)
        arguments, what = (douts[i], Item(turns[i], 1)), "dx (several calls in a row)"
        check_array(calls, backward, arguments, {}, expected, what, IMAGE_AXES, final=True)


CALLS = 8  # timed together, so that one slow message between two processes counts little
BAR = 10
PARTS = 24  # of the loop, whose time grows in proportion to its rounds: one part tells its pace
TRIES = 6
PATIENCE = 4  # seconds for each of two passes: slow code should hear so before its time is up


def check_fast(student, oracle, rng, x_shape, w_shape, **sizes):
    """The fast convolution beats a loop over the output values tenfold, forward and backward.

    The loop does one multiplication and sum of two patches for each output value, and nothing
    else. Each timed call gets the same input times another factor, so that an answer remembered
    from an earlier call is wrong; convolution being linear, the right answers are known.

    One image, one channel and one kernel: with more of them, a loop over pixels that does all
    images or kernels at once comes close to the bar, and its points would be a matter of luck.
    """
    x, w, b = (draw_whole(rng, shape) for shape in (x_shape, w_shape, w_shape[:1]))
    out = oracle.conv2d(x, w, b, **sizes)
    dout = draw_whole(rng, out.shape)
    expected = oracle.conv2d_gradients(x, w, b, dout, **sizes)
    bias = b[:, None, None]
    factors = np.arange(2, 2 + CALLS) / 8  # exact in binary
    loop = [multiply_and_sum(count, w.shape[1:]) for count in (out.size, out.size // PARTS)]

    calls = [(held, w, b) for held in hold_each(student, [factor * x for factor in factors])]
    results = timed_results(student, "conv2d_forward_fast", 1, calls, loop, sizes)
    for factor, result in zip(factors, results, strict=True):
        actual, _ = unpack(result, 2, "conv2d_forward_fast")
        wanted = factor * (out - bias) + bias
        assert_close(actual, wanted, what="out (while timed)", axes=IMAGE_AXES)

    _, cache = unpack(student.conv2d_forward_fast(x, w, b, **sizes), 2, "conv2d_forward_fast")
    douts = hold_each(student, [factor * dout for factor in factors])
    calls = [(held, cache) for held in douts]
    results = timed_results(student, "conv2d_backward_fast", 3, calls, loop, {})
    for factor, result in zip(factors, results, strict=True):
        wanted = [factor * gradient for gradient in expected]
        compare_gradients(unpack(result, 3, "conv2d_backward_fast"), wanted, "while timed")


def timed_results(student, name, outputs, calls, loop, sizes):
    """Time the calls against as many loops; what they returned, if they were fast enough.

    loop: the whole of it, and a part.
    outputs: how many items of a result are to be there when the clock stops.
    """
    function = getattr(student, name)
    whole, part = loop
    held, _ = check_speed(
        lambda: (lambda: call_each_held(function, calls, outputs, **sizes), whole),
        bar=1 / BAR,
        runs=len(calls),
        cold=False,
        part=(part, PARTS),
        tries=TRIES,
        patience=PATIENCE,
        sentence=f"{name} should be at least {BAR} times as fast as a Python loop over the "
        "outputs.",
        help="Loop over the kernel's positions at most, never over images or pixels.",
    )
    return fetch(held)


def multiply_and_sum(count, shape):
    """The baseline: count times one product of two arrays and its sum, in a Python loop."""
    patch, kernel = np.full(shape, 0.5), np.full(shape, 0.25)

    def run():
        for _ in range(count):
            np.sum(patch * kernel)

    return run
