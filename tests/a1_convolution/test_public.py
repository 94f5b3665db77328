"""The public tests of assignment 1: convolution and pooling in NumPy."""

import math

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_number, check_sizes
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_refused, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
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
    draw_positions,
    draw_whole,
    in_words,
)
from tests.a1_convolution.lab_cases import check_flat, check_step


@weight(1)
@number("1.1")
def test_conv_output_size_counts_the_kernel_positions(student, rng):
    """Kernels that reach the far edge exactly, with and without padding on both sides."""
    for sizes, expected in (
        ((7, 3), 5),
        ((5, 1), 5),
        ((1, 1), 1),
        ((6, 6), 1),
        ((9, 3, 2), 4),
        ((28, 5, 1, 2), 28),
        ((3, 5, 1, 1), 1),
        ((8, 3, 3, 2), 4),
        ((np.int64(7), np.int64(3), np.int64(2), np.int64(1)), 4),
        draw_positions(rng),
    ):
        assert_equal(student.conv_output_size(*sizes), expected, what=f"the size for {sizes}")
    result = student.conv_output_size(size=10, kernel_size=4, padding=1)
    assert_equal(result, 9, what="the size for the default stride")


@weight(1)
@number("1.1")
def test_conv_output_size_ignores_what_is_left_over_at_the_far_edge(student, rng):
    """With stride above 1, a position that extends beyond the far edge doesn't count."""
    (size, *others), count = draw_positions(rng)
    for sizes, expected in (
        ((8, 3, 2), 3),
        ((10, 3, 4), 2),
        ((5, 2, 7), 1),
        ((28, 5, 2, 2), 14),
        ((6, 4, 5, 1), 1),
        ((size + 2, *others), count),
    ):
        assert_equal(student.conv_output_size(*sizes), expected, what=f"the size for {sizes}")


@weight(1)
@number("1.1")
def test_conv_output_size_refuses_sizes_that_make_no_sense(student):
    """Sizes, kernel sizes and strides below 1, padding below 0, too long kernels: ValueError."""
    for situation, sizes in (
        ("a size of 0", (0, 1, 1, 1)),
        ("a kernel size of 0", (5, 0)),
        ("a negative kernel size", (5, -1)),
        ("a stride of 0", (5, 2, 0)),
        ("a negative stride", (5, 2, -1)),
        ("a negative padding", (5, 2, 1, -1)),
        ("a kernel longer than the input", (4, 5)),
        ("a kernel longer than the padded input", (4, 7, 1, 1)),
        ("a kernel longer than the padded input, with a stride", (4, 7, 3, 1)),
    ):
        check_refused(situation, student.conv_output_size, *sizes)
    result = student.conv_output_size(4, 6, 1, 1)
    assert_equal(result, 1, what="the size for a kernel that just fits")


@weight(2)
@number("1.2")
def test_conv2d_forward_shifts_the_image_when_the_kernel_holds_a_single_one(student, rng):
    """A kernel with a single 1 at row p, column q gives the image from (p, q): no flipping."""
    x, b = rng.normal(size=(2, 3, 5, 7)), np.array([0.5, -1.5, 2.0, 1.0])
    w = np.zeros((4, 3, 2, 4))
    entries = ((0, 0, 0), (1, 0, 3), (2, 1, 0), (1, 1, 2))
    expected = np.zeros((2, 4, 4, 4))
    for k, (c, p, q) in enumerate(entries):
        w[k, c, p, q] = 1
        expected[:, k] = x[:, c, p : p + 4, q : q + 4] + b[k]
    out, _ = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
    assert_close(out, expected, what="out", axes=IMAGE_AXES)


@weight(2)
@number("1.2")
def test_conv2d_forward_sums_over_channels_and_adds_one_bias_for_each_kernel(student, rng, oracle):
    """Several images, channels and kernels, without stride or padding, give PyTorch's output."""
    x, w, b = draw_convolution(rng, (2, 3, 6, 7), (4, 3, 3, 2))
    out, _ = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
    expected = oracle.conv2d(x, w, b)
    assert_close(out, expected, what="out (default stride and padding)", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_moves_the_kernel_by_the_stride(student, rng, oracle):
    """Unequal vertical and horizontal strides give PyTorch's output."""
    x, w, b = draw_convolution(rng, (2, 3, 7, 8), (4, 3, 3, 2))
    out, _ = unpack(student.conv2d_forward(x, w, b, stride=(2, 3)), 2, "conv2d_forward")
    expected = oracle.conv2d(x, w, b, stride=(2, 3))
    assert_close(out, expected, what="out (stride (2, 3))", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_pads_with_zeros_on_all_four_sides(student, rng, oracle):
    """Unequal vertical and horizontal paddings, also with a stride, give PyTorch's output."""
    for x_shape, w_shape, sizes in (
        ((2, 3, 5, 6), (4, 3, 2, 3), {"padding": (2, 1)}),
        ((2, 2, 4, 6), (3, 2, 2, 3), {"stride": (3, 1), "padding": (2, 3)}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        out, _ = unpack(student.conv2d_forward(x, w, b, **sizes), 2, "conv2d_forward")
        expected = oracle.conv2d(x, w, b, **sizes)
        assert_close(out, expected, what=f"out ({in_words(sizes)})", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_takes_whole_numbers_and_ignores_what_is_left_over(student, rng, oracle):
    """An int (also NumPy's) applies to both axes; pixels beyond the last position are ignored."""
    for sizes in (
        {"stride": 2, "padding": 1},
        {"stride": np.int64(3), "padding": (np.int64(2), np.int64(0))},
    ):
        x, w, b = draw_convolution(rng, (2, 2, 7, 6), (3, 2, 2, 3))
        out, _ = unpack(student.conv2d_forward(x, w, b, **sizes), 2, "conv2d_forward")
        expected = oracle.conv2d(x, w, b, **sizes)
        assert_close(out, expected, what=f"out ({in_words(sizes)})", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_is_right_for_sizes_of_one_and_for_views(student, rng, oracle):
    """One image, one channel, one pixel, a kernel as large as the image, and views of arrays."""
    for situation, x_shape, w_shape, padding in (
        ("one of everything", (1, 1, 1, 1), (1, 1, 1, 1), 0),
        ("a kernel of one pixel", (2, 3, 4, 5), (2, 3, 1, 1), 0),
        ("a kernel as large as the image", (1, 2, 4, 3), (3, 2, 4, 3), 0),
        ("a kernel as large as the padded image", (2, 1, 1, 3), (1, 1, 3, 7), (1, 2)),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        out, _ = unpack(student.conv2d_forward(x, w, b, padding=padding), 2, "conv2d_forward")
        expected = oracle.conv2d(x, w, b, padding=padding)
        assert_close(out, expected, what=f"out ({situation})", axes=IMAGE_AXES)
    for view in (sliced, transposed):
        x, w, b = map(view, draw_convolution(rng, (2, 3, 5, 4), (4, 3, 2, 3)))
        out, _ = unpack(student.conv2d_forward(x, w, b, padding=1), 2, "conv2d_forward")
        expected = oracle.conv2d(x, w, b, padding=1)
        assert_close(out, expected, what="out (views)", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_keeps_float32_and_counts_integers_as_float64(student, rng, oracle):
    """float32 in gives float32 out; integers are neither rounded nor do they overflow."""
    floats = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 3, 2), np.float32)
    _, w, b = draw_convolution(rng, (2, 2, 4, 5), (3, 2, 2, 3))
    images = draw_bytes(rng, (2, 2, 4, 5))
    integers = [draw_bytes(rng, shape) for shape in ((2, 2, 4, 5), (3, 2, 2, 3), (3,))]
    for situation, inputs, sizes in (
        ("float32", floats, {"padding": 1}),
        ("images of integers", (images, w, b), {}),
        ("integers only", integers, {}),
    ):
        out, _ = unpack(student.conv2d_forward(*inputs, **sizes), 2, "conv2d_forward")
        expected = oracle.conv2d(*inputs, **sizes)
        assert_close(out, expected, what=f"out ({situation})", axes=IMAGE_AXES)


@weight(1)
@number("1.2")
def test_conv2d_forward_leaves_its_inputs_and_everything_else_alone(student, rng):
    """Inputs, earlier results and the process stay as they are; nothing is remembered."""
    check_promises(student, rng, CASES["1.2"])


@weight(1)
@number("1.2")
def test_conv2d_forward_refuses_kernels_with_another_number_of_channels(student, rng):
    """Images and kernels with different c_in raise ValueError."""
    for images, kernels in ((3, 4), (3, 2), (3, 1), (1, 3)):
        x, w, b = draw_convolution(rng, (2, images, 5, 6), (4, kernels, 3, 2))
        situation = f"c_in of {images} in x and of {kernels} in w"
        check_refused(situation, student.conv2d_forward, x, w, b)
    x, w, b = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 3, 2))
    unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")


@weight(1)
@number("1.3")
def test_conv2d_backward_sums_dout_into_db(student, rng):
    """db is the sum of dout over images, rows and columns: one number for each kernel."""
    x, w, b = draw_convolution(rng, (3, 2, 5, 6), (4, 2, 2, 3))
    dout = rng.normal(size=(3, 4, 4, 4))
    _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
    _, _, db = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
    assert_close(db, dout.sum(axis=(0, 2, 3)), what="db", axes=("kernel",))


@weight(2)
@number("1.3")
def test_conv2d_backward_gives_the_gradient_of_the_kernels(student, rng, oracle):
    """dw, without stride or padding, is PyTorch's: a sum over images and output pixels."""
    x, w, b = draw_convolution(rng, (3, 2, 5, 7), (4, 2, 3, 2))
    dout = draw_gradient(rng, oracle.conv2d(x, w, b))
    _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
    _, dw, _ = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
    _, expected, _ = oracle.conv2d_gradients(x, w, b, dout)
    assert_close(dw, expected, what="dw (no stride, no padding)", axes=KERNEL_AXES)


@weight(2)
@number("1.3")
def test_conv2d_backward_gives_the_gradient_of_the_images(student, rng, oracle):
    """dx, without stride or padding, is PyTorch's: a sum over kernels and output pixels."""
    x, w, b = draw_convolution(rng, (2, 3, 6, 5), (4, 3, 2, 3))
    dout = draw_gradient(rng, oracle.conv2d(x, w, b))
    _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
    dx, _, _ = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
    expected, _, _ = oracle.conv2d_gradients(x, w, b, dout)
    assert_close(dx, expected, what="dx (no stride, no padding)", axes=IMAGE_AXES)


@weight(1)
@number("1.3")
def test_conv2d_backward_follows_the_stride(student, rng, oracle):
    """dx, dw and db with unequal strides are PyTorch's, also where pixels are skipped."""
    for x_shape, stride in (((2, 3, 7, 5), (2, 1)), ((2, 3, 6, 10), (1, 4))):
        x, w, b = draw_convolution(rng, x_shape, (4, 3, 3, 2))
        dout = draw_gradient(rng, oracle.conv2d(x, w, b, stride=stride))
        _, cache = unpack(student.conv2d_forward(x, w, b, stride=stride), 2, "conv2d_forward")
        gradients = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
        expected = oracle.conv2d_gradients(x, w, b, dout, stride=stride)
        compare_gradients(gradients, expected, f"stride {stride}")


@weight(2)
@number("1.3")
def test_conv2d_backward_cuts_the_padding_off(student, rng, oracle):
    """dx, dw and db with unequal paddings are PyTorch's, and dx has the shape of x."""
    for padding in ((2, 1), (0, 3)):
        x, w, b = draw_convolution(rng, (2, 3, 5, 4), (4, 3, 2, 3))
        dout = draw_gradient(rng, oracle.conv2d(x, w, b, padding=padding))
        _, cache = unpack(student.conv2d_forward(x, w, b, padding=padding), 2, "conv2d_forward")
        gradients = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
        expected = oracle.conv2d_gradients(x, w, b, dout, padding=padding)
        compare_gradients(gradients, expected, f"padding {padding}")


@weight(1)
@number("1.3")
def test_conv2d_backward_is_right_for_leftover_pixels_and_sizes_of_one(student, rng, oracle):
    """Pixels beyond the last position get zeros; sizes of 1 and views are handled."""
    for situation, x_shape, w_shape, sizes in (
        ("leftover pixels", (2, 2, 7, 6), (3, 2, 2, 3), {"stride": (3, 2), "padding": (2, 1)}),
        ("a kernel of one pixel", (1, 2, 5, 6), (1, 2, 1, 1), {"stride": 2}),
        ("a kernel as large as the image", (2, 1, 4, 3), (3, 1, 4, 3), {}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        dout = draw_gradient(rng, oracle.conv2d(x, w, b, **sizes))
        _, cache = unpack(student.conv2d_forward(x, w, b, **sizes), 2, "conv2d_forward")
        gradients = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
        compare_gradients(gradients, oracle.conv2d_gradients(x, w, b, dout, **sizes), situation)
    for view in (sliced, transposed):
        x, w, b = map(view, draw_convolution(rng, (2, 3, 5, 4), (4, 3, 2, 3)))
        dout = draw_gradient(rng, oracle.conv2d(x, w, b))
        _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
        gradients = unpack(student.conv2d_backward(view(dout), cache), 3, "conv2d_backward")
        compare_gradients(gradients, oracle.conv2d_gradients(x, w, b, dout), "views")


@weight(1)
@number("1.3")
def test_conv2d_backward_keeps_float32_and_does_not_round_for_integer_inputs(student, rng, oracle):
    """Gradients are float32 for float32 inputs, and float64 for integer images and kernels."""
    x, w, b = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 3, 2), np.float32)
    dout = draw_gradient(rng, oracle.conv2d(x, w, b, padding=1))
    _, cache = unpack(student.conv2d_forward(x, w, b, padding=1), 2, "conv2d_forward")
    gradients = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
    compare_gradients(gradients, oracle.conv2d_gradients(x, w, b, dout, padding=1), "float32")
    shapes = ((2, 2, 4, 5), (3, 2, 2, 3), (3,))
    x, w, b = (draw_whole(rng, shape).astype(np.int64) for shape in shapes)
    dout = draw_gradient(rng, oracle.conv2d(x, w, b))
    _, cache = unpack(student.conv2d_forward(x, w, b), 2, "conv2d_forward")
    gradients = unpack(student.conv2d_backward(dout, cache), 3, "conv2d_backward")
    compare_gradients(gradients, oracle.conv2d_gradients(x, w, b, dout), "integers")


@weight(1)
@number("1.3")
def test_conv2d_backward_uses_its_own_cache_and_leaves_everything_else_alone(student, rng):
    """Each pass uses the cache that it gets, and changes nothing but its own result."""
    check_promises(student, rng, CASES["1.3"])


@weight(2)
@number("1.4")
def test_max_pool2d_forward_takes_the_largest_value_of_each_window(student, rng, oracle):
    """Without a stride, windows lie side by side, separately for each image and channel."""
    for x_shape, kernel_size in (((2, 3, 6, 8), 2), ((2, 3, 4, 9), (2, 3)), ((1, 1, 3, 2), (3, 2))):
        x = draw_distinct(rng, x_shape)
        out, _ = unpack(student.max_pool2d_forward(x, kernel_size), 2, "max_pool2d_forward")
        expected = oracle.max_pool2d(x, kernel_size)
        assert_close(out, expected, what=f"out (kernel size {kernel_size})", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_forward_follows_stride_and_padding(student, rng, oracle):
    """Windows that overlap, leave gaps or leave pixels over give PyTorch's output."""
    for kernel_size, sizes in (
        ((3, 2), {"stride": (1, 2)}),
        (2, {"stride": np.int64(3)}),
        ((2, 3), {"stride": (2, 1), "padding": (1, 0)}),
        ((3, 4), {"stride": 2, "padding": (0, 2)}),
    ):
        x = draw_distinct(rng, (2, 3, 8, 7))
        result = student.max_pool2d_forward(x, kernel_size, **sizes)
        out, _ = unpack(result, 2, "max_pool2d_forward")
        expected = oracle.max_pool2d(x, kernel_size, **sizes)
        what = f"out (kernel size {kernel_size}, {in_words(sizes)})"
        assert_close(out, expected, what=what, axes=IMAGE_AXES)
    x = sliced(draw_distinct(rng, (2, 3, 4, 6)))
    out, _ = unpack(student.max_pool2d_forward(x, 2), 2, "max_pool2d_forward")
    assert_close(out, oracle.max_pool2d(x, 2), what="out (a view)", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_forward_never_lets_padding_win(student, rng, oracle):
    """Padding loses against negative numbers; above half the kernel size it is a ValueError."""
    x = -1 - rng.uniform(size=(2, 2, 5, 6))
    for kernel_size, padding in ((3, 1), ((2, 3), (1, 0))):
        result = student.max_pool2d_forward(x, kernel_size, stride=1, padding=padding)
        out, _ = unpack(result, 2, "max_pool2d_forward")
        expected = oracle.max_pool2d(x, kernel_size, stride=1, padding=padding)
        what = f"out (kernel size {kernel_size}, padding {padding})"
        assert_close(out, expected, what=what, axes=IMAGE_AXES)
    for kernel_size, padding in ((3, 2), ((3, 5), (2, 0)), ((5, 3), (0, 2))):
        situation = f"kernel size {kernel_size} with padding {padding}"
        check_refused(situation, student.max_pool2d_forward, x, kernel_size, 1, padding)


@weight(1)
@number("1.4")
def test_max_pool2d_backward_sends_the_gradient_to_the_largest_value(student, rng, oracle):
    """With windows side by side, each gradient goes to its window's largest value."""
    for x_shape, kernel_size in (((2, 3, 6, 8), 2), ((2, 3, 4, 9), (2, 3)), ((1, 1, 3, 2), (3, 2))):
        x = draw_distinct(rng, x_shape)
        dout = draw_gradient(rng, oracle.max_pool2d(x, kernel_size))
        _, cache = unpack(student.max_pool2d_forward(x, kernel_size), 2, "max_pool2d_forward")
        dx = student.max_pool2d_backward(dout, cache)
        expected = oracle.max_pool2d_gradient(x, dout, kernel_size)
        assert_close(dx, expected, what=f"dx (kernel size {kernel_size})", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_backward_adds_up_where_windows_overlap(student, rng, oracle):
    """A pixel that is the largest of several windows gets the sum, with padding and stride too."""
    for kernel_size, sizes in (
        (3, {"stride": 1}),
        ((3, 2), {"stride": (2, 1), "padding": (1, 1)}),
        ((2, 3), {"stride": (3, 2), "padding": (0, 1)}),
    ):
        x = draw_distinct(rng, (2, 3, 7, 6))
        x[:, :, 3, 2] += 1000  # the largest of every window that contains it
        dout = draw_gradient(rng, oracle.max_pool2d(x, kernel_size, **sizes))
        result = student.max_pool2d_forward(x, kernel_size, **sizes)
        _, cache = unpack(result, 2, "max_pool2d_forward")
        dx = student.max_pool2d_backward(transposed(dout), cache)
        expected = oracle.max_pool2d_gradient(x, dout, kernel_size, **sizes)
        what = f"dx (kernel size {kernel_size}, {in_words(sizes)})"
        assert_close(dx, expected, what=what, axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_backward_gives_a_tie_to_the_first_in_row_major_order(student, rng):
    """Of several largest values, the first one, row by row, gets the whole gradient."""
    x = np.array([[1.0, 5, 0, 0, 7, 7], [5, 1, 0, 0, 7, 7], [2, 1, 3, 4, 1, 2], [2, 2, 4, 4, 2, 1]])
    winners = ((0, 1), (0, 2), (0, 4), (2, 0), (2, 3), (2, 5))
    dout = rng.normal(size=(1, 1, 2, 3))
    expected = np.zeros((1, 1, 4, 6))
    for (row, column), gradient in zip(winners, dout.flat, strict=True):
        expected[0, 0, row, column] = gradient
    _, cache = unpack(student.max_pool2d_forward(x[None, None], 2), 2, "max_pool2d_forward")
    dx = student.max_pool2d_backward(dout, cache)
    assert_close(dx, expected, what="dx (windows side by side)", axes=IMAGE_AXES)

    x = np.full((2, 3, 4, 6), -2.5)
    dout = rng.normal(size=(2, 3, 3, 4))
    expected = np.zeros((2, 3, 4, 6))
    expected[:, :, :3, :4] = dout
    _, cache = unpack(student.max_pool2d_forward(x, (2, 3), stride=1), 2, "max_pool2d_forward")
    dx = student.max_pool2d_backward(dout, cache)
    assert_close(dx, expected, what="dx (equal pixels, overlapping windows)", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_keeps_the_type_of_x_forward_and_of_dout_backward(student, rng, oracle):
    """out has the dtype of x, also for integers, and dx has the dtype of dout."""
    sizes = {"stride": 1, "padding": 1}
    floats = draw_distinct(rng, (2, 2, 4, 5)).astype(np.float32)
    integers = rng.permutation(40).reshape(2, 2, 5, 2) - 50
    for situation, x, kernel_size in (("float32", floats, (2, 3)), ("integers", integers, (3, 2))):
        result = student.max_pool2d_forward(x, kernel_size, **sizes)
        out, _ = unpack(result, 2, "max_pool2d_forward")
        expected = oracle.max_pool2d(x, kernel_size, **sizes)
        assert_close(out, expected, what=f"out ({situation})", axes=IMAGE_AXES)
    for situation, x, kernel_size, dtype in (
        ("float32", floats, (2, 3), np.float32),
        ("integer x, float64 dout", integers, (3, 2), np.float64),
        ("integer x, float32 dout", integers, (3, 2), np.float32),
    ):
        dout = draw_gradient(rng, oracle.max_pool2d(x, kernel_size, **sizes), dtype)
        result = student.max_pool2d_forward(x, kernel_size, **sizes)
        _, cache = unpack(result, 2, "max_pool2d_forward")
        dx = student.max_pool2d_backward(dout, cache)
        expected = oracle.max_pool2d_gradient(x, dout, kernel_size, **sizes)
        assert_close(dx, expected, what=f"dx ({situation})", axes=IMAGE_AXES)


@weight(1)
@number("1.4")
def test_max_pool2d_leaves_its_inputs_and_everything_else_alone(student, rng):
    """Inputs, earlier results and the process stay as they are; nothing is remembered."""
    check_promises(student, rng, CASES["1.4"])


@weight(1)
@number("1.5")
def test_avg_pool2d_forward_takes_the_mean_of_each_window(student, rng, oracle):
    """Windows side by side, overlapping, with gaps or leftovers, give PyTorch's output."""
    for kernel_size, sizes in (
        ((2, 3), {}),
        (2, {"stride": np.int64(1)}),
        ((4, 3), {"stride": (1, 2)}),
        ((2, 1), {"stride": (3, 4)}),
        ((3, 2), {"stride": (2, 3)}),
    ):
        x = transposed(rng.normal(size=(2, 3, 8, 9)))
        result = student.avg_pool2d_forward(x, kernel_size, **sizes)
        out, _ = unpack(result, 2, "avg_pool2d_forward")
        expected = oracle.avg_pool2d(x, kernel_size, **sizes)
        what = f"out (kernel size {kernel_size}, {in_words(sizes)})"
        assert_close(out, expected, what=what, axes=IMAGE_AXES)


@weight(1)
@number("1.5")
def test_avg_pool2d_forward_counts_padding_as_zeros(student, rng, oracle):
    """Windows beyond the edge are divided by kh * kw; padding above half is a ValueError."""
    nines = np.full((2, 1, 3, 4), 9.0)
    result = student.avg_pool2d_forward(nines, 3, stride=1, padding=1)
    out, _ = unpack(result, 2, "avg_pool2d_forward")
    expected = np.tile(np.outer([2.0, 3, 2], [2, 3, 3, 2]), (2, 1, 1, 1))
    assert_close(out, expected, what="out (an image of nines)", axes=IMAGE_AXES)
    x, sizes = rng.normal(size=(2, 3, 5, 6)), {"stride": (1, 2), "padding": (2, 0)}
    out, _ = unpack(student.avg_pool2d_forward(x, (4, 2), **sizes), 2, "avg_pool2d_forward")
    expected = oracle.avg_pool2d(x, (4, 2), **sizes)
    assert_close(out, expected, what="out (padding (2, 0))", axes=IMAGE_AXES)
    for kernel_size, padding in ((3, 2), ((3, 5), (2, 0)), ((5, 3), (0, 2))):
        situation = f"kernel size {kernel_size} with padding {padding}"
        check_refused(situation, student.avg_pool2d_forward, x, kernel_size, 1, padding)


@weight(1)
@number("1.5")
def test_avg_pool2d_backward_shares_the_gradient_equally(student, rng, oracle):
    """With windows side by side, each pixel gets its window's gradient divided by kh * kw."""
    for x_shape, kernel_size in (((2, 3, 6, 8), 2), ((2, 3, 4, 9), (2, 3)), ((1, 1, 3, 2), (3, 2))):
        x = rng.normal(size=x_shape)
        dout = draw_gradient(rng, oracle.avg_pool2d(x, kernel_size))
        _, cache = unpack(student.avg_pool2d_forward(x, kernel_size), 2, "avg_pool2d_forward")
        dx = student.avg_pool2d_backward(dout, cache)
        expected = oracle.avg_pool2d_gradient(x, dout, kernel_size)
        assert_close(dx, expected, what=f"dx (kernel size {kernel_size})", axes=IMAGE_AXES)


@weight(1)
@number("1.5")
def test_avg_pool2d_backward_adds_up_where_windows_overlap(student, rng, oracle):
    """Overlapping windows, padding, gaps and leftover pixels give PyTorch's gradient."""
    for kernel_size, sizes in (
        (3, {"stride": 1}),
        ((3, 2), {"stride": (2, 1), "padding": (1, 1)}),
        ((2, 3), {"stride": (3, 2), "padding": (0, 1)}),
    ):
        x = rng.normal(size=(2, 3, 7, 6))
        dout = draw_gradient(rng, oracle.avg_pool2d(x, kernel_size, **sizes))
        result = student.avg_pool2d_forward(x, kernel_size, **sizes)
        _, cache = unpack(result, 2, "avg_pool2d_forward")
        dx = student.avg_pool2d_backward(sliced(dout), cache)
        expected = oracle.avg_pool2d_gradient(x, dout, kernel_size, **sizes)
        what = f"dx (kernel size {kernel_size}, {in_words(sizes)})"
        assert_close(dx, expected, what=what, axes=IMAGE_AXES)


@weight(1)
@number("1.5")
def test_avg_pool2d_keeps_float32_and_counts_integers_as_float64(student, rng, oracle):
    """float32 in gives float32 out, means of integers aren't rounded, dx has dout's dtype."""
    floats = rng.normal(size=(2, 2, 4, 6)).astype(np.float32), (2, 3), {"stride": 1}
    integers = draw_bytes(rng, (2, 2, 5, 4)), (3, 2), {"stride": 1, "padding": 1}
    for situation, (x, kernel_size, sizes) in (("float32", floats), ("integers", integers)):
        result = student.avg_pool2d_forward(x, kernel_size, **sizes)
        out, _ = unpack(result, 2, "avg_pool2d_forward")
        expected = oracle.avg_pool2d(x, kernel_size, **sizes)
        assert_close(out, expected, what=f"out ({situation})", axes=IMAGE_AXES)
    for situation, (x, kernel_size, sizes), dtype in (
        ("float32", floats, np.float32),
        ("integer x, float64 dout", integers, np.float64),
        ("integer x, float32 dout", integers, np.float32),
    ):
        dout = draw_gradient(rng, oracle.avg_pool2d(x, kernel_size, **sizes), dtype)
        result = student.avg_pool2d_forward(x, kernel_size, **sizes)
        _, cache = unpack(result, 2, "avg_pool2d_forward")
        dx = student.avg_pool2d_backward(dout, cache)
        expected = oracle.avg_pool2d_gradient(x, dout, kernel_size, **sizes)
        assert_close(dx, expected, what=f"dx ({situation})", axes=IMAGE_AXES)


@weight(1)
@number("1.5")
def test_avg_pool2d_leaves_its_inputs_and_everything_else_alone(student, rng):
    """Inputs, earlier results and the process stay as they are; nothing is remembered."""
    check_promises(student, rng, CASES["1.5"])


@weight(2)
@number("1.6")
def test_im2col_lays_every_patch_out_as_a_column(student, rng, oracle):
    """Entries in the order channel, row, column; patches row by row; the dtype is kept."""
    cols = student.im2col(np.arange(12).reshape(1, 2, 2, 3), 2)
    expected = np.array([[[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [9, 10], [10, 11]]])
    assert_close(cols, expected, what="cols (an image of 0 to 11)", axes=COLUMN_AXES)
    for dtype, kernel_size, sizes in (
        (np.float64, (3, 2), {}),
        (np.float32, (2, 3), {"stride": (2, 1), "padding": (1, 2)}),
        (np.int64, (1, 4), {"stride": np.int64(1), "padding": 1}),
        (np.float64, (2, 3), {"padding": (2, 0)}),
        (np.float64, (3, 1), {"padding": (0, 1)}),
    ):
        x = draw_whole(rng, (2, 3, 4, 5)).astype(dtype)
        cols = student.im2col(transposed(x), kernel_size, **sizes)
        expected = oracle.im2col(x, kernel_size, **sizes)
        what = f"cols (kernel size {kernel_size}, {in_words(sizes)})"
        assert_close(cols, expected, what=what, axes=COLUMN_AXES)


@weight(2)
@number("1.6")
def test_col2im_adds_every_column_back_to_its_pixels(student, rng, oracle):
    """Pixels in several patches get the sum, the padding is cropped, the dtype is kept."""
    x = student.col2im(np.ones((2, 12, 6)), (2, 3, 3, 4), 2)
    expected = np.tile(np.outer([1.0, 2, 1], [1, 2, 2, 1]), (2, 3, 1, 1))
    assert_close(x, expected, what="the image of columns of ones", axes=IMAGE_AXES)
    for dtype, kernel_size, count, sizes in (
        (np.float64, (3, 2), 8, {}),
        (np.float32, (2, 3), 21, {"stride": (2, 1), "padding": (1, 2)}),
        (np.int64, (1, 4), 24, {"stride": np.int64(1), "padding": 1}),
    ):
        cols = draw_whole(rng, (2, 3 * kernel_size[0] * kernel_size[1], count)).astype(dtype)
        x = student.col2im(sliced(cols), (2, 3, 4, 5), kernel_size, **sizes)
        expected = oracle.col2im(cols, (2, 3, 4, 5), kernel_size, **sizes)
        what = f"x (kernel size {kernel_size}, {in_words(sizes)})"
        assert_close(x, expected, what=what, axes=IMAGE_AXES)


@weight(1)
@number("1.6")
def test_col2im_is_the_backward_pass_of_im2col(student, rng):
    """The sum of im2col(x) * y equals the sum of x * col2im(y), for any x and y."""
    # Whole numbers: both sums are exact, in any order.
    x, y = draw_whole(rng, (2, 3, 5, 6)), draw_whole(rng, (2, 18, 12))
    sizes = {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 1)}
    cols, image = student.im2col(x, **sizes), student.col2im(y, x.shape, **sizes)
    for name, result, like in (("im2col", cols, y), ("col2im", image, x)):
        right = isinstance(result, np.ndarray) and result.shape == like.shape
        check(right, f"{name} must return an array of the right shape.", f"expected {like.shape}")
        check(np.any(result), f"{name} returned only zeros.")
    sums = np.stack([(cols * y).sum(axis=(1, 2)), (x * image).sum(axis=(1, 2, 3))])
    check(
        np.array_equal(*sums),
        "The sum of im2col(x) * y is not the sum of x * col2im(y).",
        f"They are {sums[0]} and {sums[1]}, one entry for each image.",
        value=sums,
    )


@weight(1)
@number("1.6")
def test_conv2d_forward_fast_is_a_convolution(student, rng, oracle):
    """out is PyTorch's for strides, paddings, sizes of 1 and views; a wrong c_in: ValueError."""
    for x_shape, w_shape, sizes in (
        ((2, 3, 6, 7), (4, 3, 3, 2), {}),
        ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": (2, 3)}),
        ((2, 2, 4, 6), (3, 2, 2, 3), {"stride": (3, 1), "padding": (2, 3)}),
        ((1, 1, 4, 3), (1, 1, 4, 3), {"stride": np.int64(2)}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        result = student.conv2d_forward_fast(transposed(x), sliced(w), b, **sizes)
        out, _ = unpack(result, 2, "conv2d_forward_fast")
        expected = oracle.conv2d(x, w, b, **sizes)
        assert_close(out, expected, what=f"out ({in_words(sizes)})", axes=IMAGE_AXES)
    for channels in (1, 2, 4):
        x, w, b = draw_convolution(rng, (2, 3, 5, 6), (4, channels, 3, 2))
        situation = "a c_in that differs between x and w"
        check_refused(situation, student.conv2d_forward_fast, x, w, b)


@weight(1)
@number("1.6")
def test_conv2d_backward_fast_gives_the_gradients_of_a_convolution(student, rng, oracle):
    """dx, dw and db with strides, paddings and sizes of 1 are PyTorch's."""
    for x_shape, w_shape, sizes in (
        ((2, 3, 6, 7), (4, 3, 3, 2), {}),
        ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": (2, 3)}),
        ((2, 2, 4, 6), (3, 2, 2, 3), {"stride": (3, 1), "padding": (2, 3)}),
        ((1, 1, 4, 3), (1, 1, 4, 3), {}),
    ):
        x, w, b = draw_convolution(rng, x_shape, w_shape)
        dout = draw_gradient(rng, oracle.conv2d(x, w, b, **sizes))
        _, cache = unpack(student.conv2d_forward_fast(x, w, b, **sizes), 2, "conv2d_forward_fast")
        result = student.conv2d_backward_fast(transposed(dout), cache)
        gradients = unpack(result, 3, "conv2d_backward_fast")
        expected = oracle.conv2d_gradients(x, w, b, dout, **sizes)
        compare_gradients(gradients, expected, in_words(sizes))


@weight(1)
@number("1.6")
def test_fast_convolution_is_right_for_leftover_pixels_float32_and_integers(student, rng, oracle):
    """Leftover pixels get zeros; float32 is kept; integers are converted to float64."""
    for dtype, sizes in (
        (np.float64, {"stride": (3, 2), "padding": (2, 1)}),
        (np.float32, {"padding": 1}),
        (np.int8, {}),
    ):
        x, w, b = draw_convolution(rng, (2, 2, 7, 6), (3, 2, 2, 3), dtype)
        if dtype is np.int8:
            x, w, b = (draw_bytes(rng, array.shape) for array in (x, w, b))
        situation = f"{np.dtype(dtype)}, {in_words(sizes)}"
        out, _ = unpack(student.conv2d_forward_fast(x, w, b, **sizes), 2, "conv2d_forward_fast")
        expected = oracle.conv2d(x, w, b, **sizes)
        assert_close(out, expected, what=f"out ({situation})", axes=IMAGE_AXES)
        dout = draw_gradient(rng, expected)
        _, cache = unpack(student.conv2d_forward_fast(x, w, b, **sizes), 2, "conv2d_forward_fast")
        gradients = unpack(student.conv2d_backward_fast(dout, cache), 3, "conv2d_backward_fast")
        compare_gradients(gradients, oracle.conv2d_gradients(x, w, b, dout, **sizes), situation)


@weight(1)
@number("1.6")
def test_fast_convolution_leaves_its_inputs_and_everything_else_alone(student, rng):
    """Inputs, earlier results and the process stay as they are; nothing is remembered."""
    check_promises(student, rng, CASES["1.6"])


@weight(2)
@number("1.6")
@tags("timing")
def test_fast_convolution_is_ten_times_as_fast_as_a_loop(student, rng):
    """One image of 1 x 81 x 91, one kernel of 2 x 3: 10 times as fast, forward and backward."""
    check_fast(student, rng, x_shape=(1, 1, 81, 91), w_shape=(1, 1, 2, 3))


@weight(1)
@number("1.7")
def test_conv_parameters_counts_weights_and_biases(student, rng):
    """c_out kernels of c_in * kh * kw weights, and one bias each unless bias is False."""
    c_in, c_out, height, width = map(int, rng.integers(3, 99, size=4))
    for arguments, expected in (
        ((1, 16, 5), 416),
        ((16, 32, 5), 12_832),
        ((3, 8, (2, 7)), 344),
        ((3, 8, (2, 7), False), 336),
        ((1, 1, 1), 2),
        ((2, 5, np.int64(3)), 95),
        ((c_in, c_out, (height, width)), c_out * (c_in * height * width + 1)),
    ):
        count = student.conv_parameters(*arguments)
        assert_equal(count, expected, what=f"conv_parameters{arguments}")
    count = student.conv_parameters(c_in=4, c_out=6, kernel_size=3, bias=False)
    assert_equal(count, 216, what="conv_parameters(c_in=4, c_out=6, kernel_size=3, bias=False)")


@weight(1)
@number("1.7")
def test_linear_parameters_counts_weights_and_biases(student, rng):
    """n_in * n_out weights, and one bias for each output unless bias is False."""
    n_in, n_out = map(int, rng.integers(30, 999, size=2))
    for arguments, expected in (
        ((512, 64), 32_832),
        ((64, 10), 650),
        ((64, 10, False), 640),
        ((1, 1), 2),
        ((784, 24 * 24 * 16), 7_234_560),
        ((n_in, n_out), (n_in + 1) * n_out),
    ):
        count = student.linear_parameters(*arguments)
        assert_equal(count, expected, what=f"linear_parameters{arguments}")
    count = student.linear_parameters(n_in=7, n_out=3, bias=False)
    assert_equal(count, 21, what="linear_parameters(n_in=7, n_out=3, bias=False)")


@weight(2)
@number("1.8")
def test_q1_the_kernel_responds_to_vertical_edges_and_not_to_flat_areas(lab):
    """Lab, question 1: 0 on flat areas, positive where it gets brighter from left to right."""
    kernel = array_answer(lab, "q1_kernel", (3, 3))
    for brightness in (0.25, 1.0):
        check_flat(kernel, brightness)
    check_step(kernel, 0.25, 0.75)


@weight(1)
@number("1.8")
def test_q2_the_weights_of_a_kernel_that_ignores_brightness_add_up_to_the_right_number(lab):
    """Lab, question 2: the sum of the weights that makes a kernel ignore brightness."""
    check_number(lab, "q2_sum", 0)


@weight(1)
@number("1.8")
def test_q4_a_mean_reduces_noise(lab):
    """Lab, question 4: the noise after a mean over 5 x 5 pixels, divided by that before it."""
    check_number(lab, "q4_factor", 1 / math.sqrt(5 * 5), tolerance=0.02)


@weight(2)
@number("1.9")
def test_q7_the_map_of_the_photograph_has_the_right_size(lab):
    """Lab, question 7: rows and columns of a map with stride (2, 3) and padding (2, 0)."""
    expected = [
        len(range(0, size + 2 * padding - kernel_size + 1, stride))
        for size, kernel_size, stride, padding in ((96, 5, 2, 2), (128, 3, 3, 0))
    ]
    check_sizes(lab, "q7_shape", expected)


@weight(2)
@number("1.9")
def test_q8_padding_darkens_the_corner(lab):
    """Lab, question 8: the mean of a white picture in its corner, with padding 1."""
    check_number(lab, "q8_corner", 4 / 9, tolerance=1e-3)
