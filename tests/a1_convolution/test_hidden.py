"""The hidden tests of assignment 1: the public tests' properties, on other shapes and inputs."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_choice, check_number
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_refused, sliced, transposed
from common.testing.compare import assert_close, assert_equal, unpack
from tests.a1_convolution.battery_cases import CASES
from tests.a1_convolution.cases import (
    COLUMN_AXES,
    IMAGE_AXES,
    KERNEL_AXES,
    check_fast,
    compare_gradients,
    draw_bytes,
    draw_convolution,
    draw_distinct,
    draw_gradient,
    draw_whole,
)
from tests.a1_convolution.lab_cases import (
    check_flat,
    check_rows,
    check_step,
    most_vertical_digit,
)


@weight(1)
@number("1.1")
def test_conv_output_size_is_right_for_any_sizes(student, rng):
    """For any sizes, the result is the number of positions at which the kernel fits."""
    for _ in range(60):
        size, stride, padding = (
            int(rng.integers(low, high)) for low, high in ((1, 40), (1, 7), (0, 5))
        )
        padded = size + 2 * padding
        kernel_size = int(rng.integers(1, padded + 1))
        # The kernel starts at every stride-th pixel from which it still fits.
        positions = len(range(0, padded - kernel_size + 1, stride))
        result = student.conv_output_size(size, kernel_size, stride, padding)
        assert_equal(result, positions, what="the output size")


@weight(1)
@number("1.1")
def test_conv_output_size_refuses_any_sizes_out_of_range(student, rng):
    """Sizes, kernel sizes and strides below 1, padding below 0, too long kernels: ValueError."""
    size, padding, below = (int(rng.integers(low, low + 9)) for low in (6, 1, 1))
    for situation, sizes in (
        ("a size below 1", (0, 1, 1, padding)),
        ("a kernel size below 1", (size, 0, 1, padding)),
        ("a stride below 1", (size, 3, 0, padding)),
        ("a size below 1", (1 - below, 1, 1, below)),
        ("a kernel size below 1", (size, 1 - below, 1, 0)),
        ("a stride below 1", (size, 3, 1 - below, padding)),
        ("a padding below 0", (size + 2 * below, 2, 1, -below)),
        ("a kernel that doesn't fit", (size, size + 1, 2, 0)),
        ("a kernel that doesn't fit", (size, size + 2 * padding + below, 1, padding)),
    ):
        check_refused(situation, student.conv_output_size, *sizes)
    result = student.conv_output_size(size, size + 2 * padding, 1, padding)
    assert_equal(result, 1, what="the output size for a kernel that just fits")


@weight(2)
@number("1.2")
def test_conv2d_forward_is_right_for_other_images_and_kernels(student, rng, oracle):
    """Without stride or padding, the output is PyTorch's on other shapes."""
    for x_shape, w_shape in (((3, 2, 7, 5), (5, 2, 2, 4)), ((2, 4, 5, 8), (3, 4, 4, 1))):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        out, _ = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
        expected = oracle.conv2d(x, w, b)
        assert_close(out, expected, what="out (no stride, no padding)", axes=IMAGE_AXES)


@weight(2)
@number("1.2")
def test_conv2d_forward_is_right_for_other_strides_and_paddings(student, rng, oracle):
    """With strides and paddings, as pairs and as single numbers, the output is PyTorch's."""
    for x_shape, w_shape, sizes in (
        ((2, 3, 10, 6), (4, 3, 4, 2), {"stride": (3, 2)}),
        ((3, 2, 4, 7), (2, 2, 3, 5), {"padding": (1, 4)}),
        ((2, 3, 6, 9), (4, 3, 4, 3), {"stride": (2, 5), "padding": (3, 2)}),
        ((2, 1, 8, 5), (3, 1, 4, 1), {"stride": 2, "padding": np.int64(2)}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        out, _ = unpack(student.conv2d_forward(x, w, b, **sizes), 2, "conv2d_forward")
        expected = oracle.conv2d(x, w, b, **sizes)
        assert_close(out, expected, what="out (stride or padding or both)", axes=IMAGE_AXES)


@weight(2)
@number("1.2")
def test_conv2d_forward_is_right_for_other_types_sizes_of_one_and_views(student, rng, oracle):
    """float32, integers, sizes of 1, leftover pixels and views, on other shapes."""
    floats = draw_convolution(rng, (3, 2, 6, 4), (2, 2, 2, 3), np.float32)
    integers = [draw_bytes(rng, shape, np.int16) for shape in ((3, 2, 5, 4), (2, 2, 3, 2), (2,))]
    _, w, b = draw_convolution(rng, (1, 3, 5, 5), (2, 3, 2, 4))
    images = draw_bytes(rng, (1, 3, 5, 5), np.uint8), w, b
    ones = draw_convolution(rng, (1, 1, 1, 6), (1, 1, 1, 6))
    x, w, b = draw_convolution(rng, (2, 3, 8, 9), (2, 3, 3, 2))
    for situation, inputs, sizes in (
        ("float32", floats, {"stride": (2, 1)}),
        ("integers", integers, {}),
        ("images of integers", images, {}),
        ("sizes of one", ones, {}),
        ("leftover pixels", (x, w, b), {"stride": (3, 4), "padding": (0, 1)}),
        ("views", (transposed(x), sliced(w), sliced(b)), {"stride": (1, 7)}),
    ):
        out, _ = unpack(student.conv2d_forward(*inputs, **sizes), 2, "conv2d_forward")
        expected = oracle.conv2d(*inputs, **sizes)
        assert_close(out, expected, what=f"out ({situation})", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_has_no_side_effects(student, rng):
    """Everything stays as it is, and different numbers of channels raise ValueError."""
    check_promises(student, rng, CASES["1.2"])
    for images, kernels in ((4, 1), (1, 5), (3, 4)):
        x, w, b = draw_convolution(rng, (1, images, 4, 6), (2, kernels, 2, 3))
        check_refused("a c_in that differs between x and w", student.conv2d_forward, x, w, b)


@weight(2)
@number("1.3")
def test_conv2d_backward_is_right_for_other_kernels(student, rng, oracle):
    """dw and db, without stride or padding, are PyTorch's on other shapes."""
    for x_shape, w_shape in (((4, 2, 7, 5), (3, 2, 2, 4)), ((2, 4, 5, 6), (3, 4, 4, 1))):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        dout = draw_gradient(rng, oracle.conv2d(x, w, b))
        _, expected_dw, expected_db = oracle.conv2d_gradients(x, w, b, dout)
        _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
        _, dw, db = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
        assert_close(dw, expected_dw, what="dw (no stride, no padding)", axes=KERNEL_AXES)
        assert_close(db, expected_db, what="db (no stride, no padding)", axes=("kernel",))


@weight(2)
@number("1.3")
def test_conv2d_backward_is_right_for_other_images(student, rng, oracle):
    """dx, without stride or padding, is PyTorch's on other shapes."""
    for x_shape, w_shape in (((3, 2, 4, 7), (5, 2, 3, 2)), ((2, 4, 6, 5), (3, 4, 1, 4))):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        dout = draw_gradient(rng, oracle.conv2d(x, w, b))
        expected, _, _ = oracle.conv2d_gradients(x, w, b, dout)
        _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
        dx, _, _ = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
        assert_close(dx, expected, what="dx (no stride, no padding)", axes=IMAGE_AXES)


@weight(2)
@number("1.3")
def test_conv2d_backward_is_right_for_other_strides_and_paddings(student, rng, oracle):
    """dx, dw and db with strides and paddings are PyTorch's on other shapes."""
    for x_shape, w_shape, sizes in (
        ((2, 3, 10, 6), (4, 3, 4, 2), {"stride": (3, 2)}),
        ((3, 2, 4, 6), (2, 2, 3, 5), {"padding": (1, 4)}),
        ((2, 3, 6, 9), (4, 3, 4, 3), {"stride": (2, 5), "padding": (3, 2)}),
        ((2, 1, 8, 5), (3, 1, 4, 1), {"stride": 2, "padding": 2}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        dout = draw_gradient(rng, oracle.conv2d(x, w, b, **sizes))
        _, cache = unpack(student.conv2d_forward(x, w, b, **sizes), 2, "conv2d_forward")
        gradients = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
        expected = oracle.conv2d_gradients(x, w, b, dout, **sizes)
        compare_gradients(gradients, expected, "stride or padding or both")


@weight(1)
@number("1.3")
def test_conv2d_backward_is_right_for_other_types_sizes_of_one_and_views(student, rng, oracle):
    """float32, integers, sizes of 1, leftover pixels and views, on other shapes."""

    def check_backward(inputs, situation, view=np.asarray, **sizes):
        dout = draw_gradient(rng, oracle.conv2d(*inputs, **sizes))
        _, cache = unpack(student.conv2d_forward(*inputs, **sizes), 2, "conv2d_forward")
        gradients = unpack(student.conv2d_backward(view(dout), cache), 3, "conv2d_backward")
        compare_gradients(gradients, oracle.conv2d_gradients(*inputs, dout, **sizes), situation)

    floats = draw_convolution(rng, (3, 2, 6, 4), (2, 2, 2, 3), np.float32)
    check_backward(floats, "float32", stride=(2, 1))
    shapes = ((3, 2, 5, 4), (2, 2, 3, 2), (2,))
    integers = [draw_whole(rng, shape).astype(np.int32) for shape in shapes]
    check_backward(integers, "integers")
    check_backward(draw_convolution(rng, (1, 1, 1, 6), (1, 1, 1, 6)), "sizes of one")
    x, w, b = draw_convolution(rng, (2, 3, 8, 9), (2, 3, 3, 2))
    check_backward((x, w, b), "leftover pixels", stride=(3, 4), padding=(0, 1))
    check_backward((transposed(x), sliced(w), sliced(b)), "views", sliced, stride=(1, 7))


@weight(1)
@number("1.3")
def test_conv2d_backward_has_no_side_effects(student, rng):
    """Each pass uses the cache that it gets, and changes nothing but its own result."""
    check_promises(student, rng, CASES["1.3"])


@weight(1)
@number("1.4")
def test_max_pool2d_forward_is_right_for_other_windows(student, rng, oracle):
    """Strides, paddings, negative numbers and views, on other shapes."""
    for x_shape, kernel_size, sizes in (
        ((3, 2, 6, 10), (3, 5), {}),
        ((2, 3, 9, 8), (3, 2), {"stride": (2, 3)}),
        ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
        ((2, 1, 7, 8), 3, {"stride": 2, "padding": np.int64(1)}),
    ):
        images = draw_distinct(rng, x_shape)
        for x in (images, images - 1000, transposed(images)):
            result = student.max_pool2d_forward(x, kernel_size, **sizes)
            out, _ = unpack(result, 2, "max_pool2d_forward")
            expected = oracle.max_pool2d(x, kernel_size, **sizes)
            assert_close(out, expected, what="out (other windows)", axes=IMAGE_AXES)
    for kernel_size, padding in (((5, 3), (3, 1)), ((3, 5), (1, 3))):
        situation = "a padding above half the kernel size"
        check_refused(situation, student.max_pool2d_forward, images, kernel_size, 1, padding)


@weight(2)
@number("1.4")
def test_max_pool2d_backward_is_right_for_other_windows(student, rng, oracle):
    """Windows side by side, overlapping and with gaps, with and without padding."""
    for x_shape, kernel_size, sizes in (
        ((3, 2, 6, 10), (3, 5), {}),
        ((2, 3, 9, 8), (3, 2), {"stride": (1, 3)}),
        ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
        ((2, 1, 7, 8), 3, {"stride": 2, "padding": 1}),
    ):
        images = draw_distinct(rng, x_shape) - 2000
        images[:, :, 3, 3] += 1000  # the largest of every window that contains it
        for view in (sliced, transposed):
            x = view(images)
            dout = draw_gradient(rng, oracle.max_pool2d(x, kernel_size, **sizes))
            result = student.max_pool2d_forward(x, kernel_size, **sizes)
            _, cache = unpack(result, 2, "max_pool2d_forward")
            dx = student.max_pool2d_backward(view(dout), cache)
            expected = oracle.max_pool2d_gradient(x, dout, kernel_size, **sizes)
            assert_close(dx, expected, what="dx (other windows)", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_backward_is_right_for_other_ties(student, rng):
    """Of several largest values, the first in row-major order gets the whole gradient."""
    n, c, out_h, out_w, kh, kw = 2, 3, 2, 4, 3, 2
    windows = rng.normal(size=(n, c, out_h, out_w, kh * kw))
    expected = np.zeros_like(windows)
    dout = rng.normal(size=(n, c, out_h, out_w))
    for index in np.ndindex(dout.shape):
        tied = rng.choice(kh * kw, size=3, replace=False)
        windows[index][tied] = 9.0
        expected[index][tied.min()] = dout[index]
    x, expected = (
        a.reshape(n, c, out_h, out_w, kh, kw)
        .transpose(0, 1, 2, 4, 3, 5)
        .reshape(n, c, out_h * kh, out_w * kw)
        for a in (windows, expected)
    )
    _, cache = unpack(student.max_pool2d_forward(x, (kh, kw)), 2, "max_pool2d_forward")
    dx = student.max_pool2d_backward(dout, cache)
    assert_close(dx, expected, what="dx (windows side by side)", axes=IMAGE_AXES)

    # If all pixels are equal, the first pixel of a window that is not padding gets the gradient.
    x = np.full((2, 2, 5, 4), -0.5)
    dout = rng.normal(size=(2, 2, 6, 5))
    expected = np.zeros((2, 2, 5, 4))
    for row, column in np.ndindex(6, 5):
        expected[:, :, max(row - 1, 0), max(column - 1, 0)] += dout[:, :, row, column]
    result = student.max_pool2d_forward(x, 2, stride=1, padding=1)
    _, cache = unpack(result, 2, "max_pool2d_forward")
    dx = student.max_pool2d_backward(dout, cache)
    assert_close(dx, expected, what="dx (equal pixels, overlapping windows)", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """out has the dtype of x, dx has that of dout, and everything else stays as it is."""
    sizes = {"stride": (2, 1), "padding": (1, 0)}
    images = draw_distinct(rng, (2, 3, 6, 5)) * 4 - 500
    for dtype in (np.float32, np.int16):
        x = images.astype(dtype)
        out, _ = unpack(student.max_pool2d_forward(x, (2, 3), **sizes), 2, "max_pool2d_forward")
        expected = oracle.max_pool2d(x, (2, 3), **sizes)
        assert_close(out, expected, what="out (another type)", axes=IMAGE_AXES)
        dout = draw_gradient(rng, expected, np.float32)
        _, cache = unpack(student.max_pool2d_forward(x, (2, 3), **sizes), 2, "max_pool2d_forward")
        dx = student.max_pool2d_backward(dout, cache)
        expected = oracle.max_pool2d_gradient(x, dout, (2, 3), **sizes)
        assert_close(dx, expected, what="dx (another type)", axes=IMAGE_AXES)
    check_promises(student, rng, CASES["1.4"])


@weight(1)
@number("1.5")
def test_avg_pool2d_forward_is_right_for_other_windows(student, rng, oracle):
    """Strides, paddings, views, float32 and integers, on other shapes."""
    for x_shape, kernel_size, sizes in (
        ((3, 2, 6, 10), (3, 5), {}),
        ((2, 3, 9, 8), (3, 2), {"stride": (2, 3)}),
        ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
        ((2, 1, 7, 8), 3, {"stride": 2, "padding": np.int64(1)}),
    ):
        images = rng.normal(size=x_shape)
        integers = draw_bytes(rng, x_shape, np.uint8)
        for x in (sliced(images), images.astype(np.float32), integers):
            result = student.avg_pool2d_forward(x, kernel_size, **sizes)
            out, _ = unpack(result, 2, "avg_pool2d_forward")
            expected = oracle.avg_pool2d(x, kernel_size, **sizes)
            assert_close(out, expected, what="out (other windows)", axes=IMAGE_AXES)
    for kernel_size, padding in (((5, 3), (3, 1)), ((3, 5), (1, 3))):
        situation = "a padding above half the kernel size"
        check_refused(situation, student.avg_pool2d_forward, images, kernel_size, 1, padding)


@weight(2)
@number("1.5")
def test_avg_pool2d_backward_is_right_for_other_windows(student, rng, oracle):
    """Overlaps, gaps, paddings and types on other shapes; everything else stays as it is."""
    for x_shape, kernel_size, sizes in (
        ((3, 2, 6, 10), (3, 5), {}),
        ((2, 3, 9, 8), (3, 2), {"stride": (1, 3)}),
        ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
        ((2, 1, 7, 8), 3, {"stride": 2, "padding": 1}),
    ):
        images = rng.normal(size=x_shape)
        for x, dtype in ((images, np.float64), (draw_bytes(rng, x_shape), np.float32)):
            dout = draw_gradient(rng, oracle.avg_pool2d(x, kernel_size, **sizes), dtype)
            result = student.avg_pool2d_forward(x, kernel_size, **sizes)
            _, cache = unpack(result, 2, "avg_pool2d_forward")
            dx = student.avg_pool2d_backward(transposed(dout), cache)
            expected = oracle.avg_pool2d_gradient(x, dout, kernel_size, **sizes)
            assert_close(dx, expected, what="dx (other windows)", axes=IMAGE_AXES)
    check_promises(student, rng, CASES["1.5"])


@weight(1)
@number("1.6")
def test_im2col_and_col2im_are_right_for_other_shapes(student, rng, oracle):
    """Columns and images are PyTorch's for other strides, paddings, types and leftovers."""
    for dtype, x_shape, kernel_size, sizes in (
        (np.float64, (3, 2, 5, 7), (2, 4), {}),
        (np.float32, (2, 3, 8, 4), (4, 3), {"stride": (2, 1), "padding": (0, 2)}),
        (np.int16, (1, 2, 7, 9), (3, 2), {"stride": (3, 4), "padding": 1}),
    ):
        images = draw_whole(rng, x_shape).astype(dtype)
        cols = student.im2col(sliced(images), kernel_size, **sizes)
        expected = oracle.im2col(images, kernel_size, **sizes)
        assert_close(cols, expected, what="cols", axes=COLUMN_AXES)
        columns = draw_whole(rng, expected.shape).astype(dtype)
        x = student.col2im(transposed(columns), x_shape, kernel_size, **sizes)
        expected = oracle.col2im(columns, x_shape, kernel_size, **sizes)
        assert_close(x, expected, what="x", axes=IMAGE_AXES)


@weight(2)
@number("1.6")
def test_conv2d_forward_fast_is_right_for_other_shapes(student, rng, oracle):
    """Strides, paddings, float32, integers and views."""
    for x_shape, w_shape, dtype, sizes in (
        ((3, 2, 7, 5), (5, 2, 2, 4), np.float64, {}),
        ((2, 3, 10, 6), (4, 3, 4, 2), np.float32, {"stride": (3, 2)}),
        ((2, 3, 6, 9), (4, 3, 4, 3), np.float64, {"stride": (2, 5), "padding": (3, 2)}),
        ((2, 1, 8, 5), (3, 1, 4, 1), np.float64, {"stride": 2, "padding": np.int64(2)}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape, dtype)
        result = student.conv2d_forward_fast(sliced(x), transposed(w), b, **sizes)
        out, _ = unpack(result, 2, "conv2d_forward_fast")
        expected = oracle.conv2d(x, w, b, **sizes)
        assert_close(out, expected, what="out (other shapes)", axes=IMAGE_AXES)
    x, w, b = (draw_bytes(rng, shape, np.int16) for shape in ((3, 2, 5, 4), (2, 2, 3, 2), (2,)))
    out, _ = unpack(student.conv2d_forward_fast(x, w, b), 2, "conv2d_forward_fast")
    assert_close(out, oracle.conv2d(x, w, b), what="out (integers)", axes=IMAGE_AXES)


@weight(1)
@number("1.6")
def test_conv2d_backward_fast_is_right_for_other_shapes(student, rng, oracle):
    """Strides, paddings, float32, integers and views; everything else stays as it is."""
    for x_shape, w_shape, dtype, sizes in (
        ((3, 2, 7, 5), (5, 2, 2, 4), np.float64, {}),
        ((2, 3, 10, 6), (4, 3, 4, 2), np.float32, {"stride": (3, 2)}),
        ((2, 3, 6, 9), (4, 3, 4, 3), np.float64, {"stride": (2, 5), "padding": (3, 2)}),
        ((2, 1, 8, 5), (3, 1, 4, 1), np.float64, {"stride": 2, "padding": 2}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape, dtype)
        dout = draw_gradient(rng, oracle.conv2d(x, w, b, **sizes))
        _, cache = unpack(student.conv2d_forward_fast(x, w, b, **sizes), 2, "conv2d_forward_fast")
        result = student.conv2d_backward_fast(sliced(dout), cache)
        gradients = unpack(result, 3, "conv2d_backward_fast")
        expected = oracle.conv2d_gradients(x, w, b, dout, **sizes)
        compare_gradients(gradients, expected, "other shapes")
    x, w, b = (draw_bytes(rng, shape, np.int16) for shape in ((3, 2, 5, 4), (2, 2, 3, 2), (2,)))
    dout = draw_gradient(rng, oracle.conv2d(x, w, b))
    _, cache = unpack(student.conv2d_forward_fast(x, w, b), 2, "conv2d_forward_fast")
    gradients = unpack(student.conv2d_backward_fast(dout, cache), 3, "conv2d_backward_fast")
    compare_gradients(gradients, oracle.conv2d_gradients(x, w, b, dout), "integers")
    check_promises(student, rng, CASES["1.6"])


@weight(2)
@number("1.6")
@tags("timing")
def test_fast_convolution_is_ten_times_as_fast_as_a_loop_on_other_shapes(student, rng):
    """Another image and kernel of about that size: 10 times as fast, forward and backward."""
    check_fast(student, rng, x_shape=(1, 1, 71, 102), w_shape=(1, 1, 3, 2))


@weight(1)
@number("1.7")
def test_parameters_are_counted_right_for_any_layer(student, rng):
    """Weights and biases of convolutions and linear layers of any size."""
    convolutions, layers = [], []
    for _ in range(20):
        c_in, c_out, kh, kw = (int(size) for size in rng.integers(1, 30, size=4))
        for bias in (True, False):
            flag = () if bias else (False,)
            for kernel_size, area in (((kh, kw), kh * kw), (kh, kh * kh)):
                expected = c_in * area * c_out + bias * c_out
                convolutions.append(((c_in, c_out, kernel_size, *flag), expected))
            layers.append(((c_in, c_out, *flag), c_in * c_out + bias * c_out))
    for arguments, expected in convolutions:
        count = student.conv_parameters(*arguments)
        assert_equal(count, expected, what="the number of a convolution's parameters")
    for arguments, expected in layers:
        count = student.linear_parameters(*arguments)
        assert_equal(count, expected, what="the number of a linear layer's parameters")


@weight(2)
@number("1.8")
def test_q1_the_kernel_ignores_changes_from_top_to_bottom(lab, rng):
    """Lab, question 1: 0 where rows differ and columns don't; opposite signs at opposite edges."""
    kernel = array_answer(lab, "q1_kernel", (3, 3))
    check_flat(kernel, rng.uniform(0.1, 1))
    for _ in range(3):
        check_rows(kernel, rng.uniform(0, 1, size=3))
        low = rng.uniform(0, 0.4)
        check_step(kernel, low, low + rng.uniform(0.1, 0.5))


@weight(1)
@number("1.8")
def test_q3_the_digit_with_the_most_vertical_edges_is_found(lab, oracle):
    """Lab, question 3: the digit with the largest ratio of vertical to horizontal edges."""
    check_number(lab, "q3_digit", most_vertical_digit(oracle))


@weight(1)
@number("1.8")
def test_q5_three_kernels_make_one_of_the_right_size(lab):
    """Lab, question 5: the width of one kernel that does the work of three."""
    check_number(lab, "q5_size", 1 + 3 * (3 - 1))


@weight(1)
@number("1.9")
def test_q9_what_a_shift_does_with_stride_two(lab):
    """Lab, question 9: how a map with stride 2 changes if the picture is shifted by one pixel."""
    check_choice(lab, "q9_shift", "c", ("a", "b", "c", "d"))


@weight(2)
@number("1.9")
def test_q10_the_receptive_field_has_the_right_size(lab):
    """Lab, question 10: the width of the receptive field of a pixel of the second map."""
    check_number(lab, "q10_field", 3 + 3 * (3 - 1))
