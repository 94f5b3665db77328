"""The public tests of assignment 1: convolution and pooling in NumPy."""

import math

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_number, check_sizes
from common.testing.calls import Calls
from common.testing.checks import sliced, transposed
from common.testing.compare import assert_close, check
from tests.a1_convolution.cases import (
    COLUMN_AXES,
    IMAGE_AXES,
    Convolution,
    Pooling,
    cache_of,
    check_array,
    check_convolution,
    check_convolution_caches_stay_apart,
    check_convolution_gradients,
    check_convolutions_stay_apart,
    check_count,
    check_fast,
    check_output,
    check_pooling,
    check_pooling_backward,
    check_pooling_gradient,
    check_poolings_stay_apart,
    draw_bytes,
    draw_convolution,
    draw_distinct,
    draw_whole,
    in_words,
)
from tests.a1_convolution.lab_cases import check_flat, check_step


@weight(1)
@number("1.1")
def test_conv_output_size_counts_the_places_of_the_kernel(student):
    """Kernels that reach the far edge exactly, with and without padding on both sides."""
    with Calls(student) as calls:
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
        ):
            check_count(calls, "conv_output_size", sizes, expected, f"the size for {sizes}")
        sizes, what = {"size": 10, "kernel": 4, "padding": 1}, "the size for stride left out"
        check_count(calls, "conv_output_size", (), 9, what, **sizes)


@weight(1)
@number("1.1")
def test_conv_output_size_ignores_what_is_left_over_at_the_far_edge(student):
    """With stride above 1, a kernel that would hang over the far edge has no place there."""
    with Calls(student) as calls:
        for sizes, expected in (
            ((8, 3, 2), 3),
            ((10, 3, 4), 2),
            ((5, 2, 7), 1),
            ((28, 5, 2, 2), 14),
            ((6, 4, 5, 1), 1),
        ):
            check_count(calls, "conv_output_size", sizes, expected, f"the size for {sizes}")


@weight(1)
@number("1.1")
def test_conv_output_size_refuses_sizes_that_make_no_sense(student):
    """Sizes, kernels and strides below 1, negative padding and too long kernels: ValueError."""
    with Calls(student) as calls:
        for situation, sizes in (
            ("a size of 0", (0, 1, 1, 1)),
            ("a kernel of 0", (5, 0)),
            ("a negative kernel", (5, -1)),
            ("a stride of 0", (5, 2, 0)),
            ("a negative stride", (5, 2, -1)),
            ("a negative padding", (5, 2, 1, -1)),
            ("a kernel longer than the input", (4, 5)),
            ("a kernel longer than the padded input", (4, 7, 1, 1)),
            ("a kernel longer than the padded input, with a stride", (4, 7, 3, 1)),
        ):
            calls.refused(situation, "conv_output_size", *sizes)
        what = "the size for a kernel that just fits"
        check_count(calls, "conv_output_size", (4, 6, 1, 1), 1, what)


@weight(2)
@number("1.2")
def test_conv2d_forward_shifts_the_image_when_the_kernel_holds_a_single_one(student, rng):
    """A kernel with one 1 at row p and column q gives the image from there on: nothing flips."""
    x, b = rng.normal(size=(2, 3, 5, 7)), np.array([0.5, -1.5, 2.0, 1.0])
    w = np.zeros((4, 3, 2, 4))
    places = ((0, 0, 0), (1, 0, 3), (2, 1, 0), (1, 1, 2))
    expected = np.zeros((2, 4, 4, 4))
    for k, (c, p, q) in enumerate(places):
        w[k, c, p, q] = 1
        expected[:, k] = x[:, c, p : p + 4, q : q + 4] + b[k]
    with Calls(student) as calls:
        check_output(calls, "conv2d_forward", (x, w, b), {}, expected, "out")


@weight(2)
@number("1.2")
def test_conv2d_forward_sums_over_channels_and_adds_one_bias_for_each_kernel(student, rng, oracle):
    """Several images, channels and kernels, without stride or padding, give PyTorch's output."""
    case = draw_convolution(rng, (2, 3, 6, 7), (4, 3, 3, 2))
    with Calls(student) as calls:
        check_convolution(calls, oracle, case, "stride and padding left out")


@weight(1)
@number("1.2")
def test_conv2d_forward_moves_the_kernel_by_the_stride(student, rng, oracle):
    """Unequal vertical and horizontal strides give PyTorch's output."""
    case = draw_convolution(rng, (2, 3, 7, 8), (4, 3, 3, 2), stride=(2, 3))
    with Calls(student) as calls:
        check_convolution(calls, oracle, case, "stride (2, 3)")


@weight(1)
@number("1.2")
def test_conv2d_forward_pads_with_zeros_on_all_four_sides(student, rng, oracle):
    """Unequal vertical and horizontal paddings, also with a stride, give PyTorch's output."""
    case = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 2, 3), padding=(2, 1))
    with Calls(student) as calls:
        check_convolution(calls, oracle, case, "padding (2, 1)")
        case = draw_convolution(rng, (2, 2, 4, 6), (3, 2, 2, 3), stride=(3, 1), padding=(2, 3))
        check_convolution(calls, oracle, case, "stride (3, 1), padding (2, 3)")


@weight(1)
@number("1.2")
def test_conv2d_forward_takes_whole_numbers_and_ignores_what_is_left_over(student, rng, oracle):
    """An int, also one of NumPy's, counts for both axes; pixels out of the stride's reach don't."""
    with Calls(student) as calls:
        for sizes in (
            {"stride": 2, "padding": 1},
            {"stride": np.int64(3), "padding": (np.int64(2), np.int64(0))},
        ):
            case = draw_convolution(rng, (2, 2, 7, 6), (3, 2, 2, 3), **sizes)
            check_convolution(calls, oracle, case, in_words(sizes))


@weight(1)
@number("1.2")
def test_conv2d_forward_is_right_for_sizes_of_one_and_for_views(student, rng, oracle):
    """One image, one channel, one pixel, a kernel as big as the image, and views into arrays."""
    with Calls(student) as calls:
        for situation, x_shape, w_shape, padding in (
            ("one of everything", (1, 1, 1, 1), (1, 1, 1, 1), 0),
            ("a kernel of one pixel", (2, 3, 4, 5), (2, 3, 1, 1), 0),
            ("a kernel as big as the image", (1, 2, 4, 3), (3, 2, 4, 3), 0),
            ("a kernel as big as the padded image", (2, 1, 1, 3), (1, 1, 3, 7), (1, 2)),
        ):
            case = draw_convolution(rng, x_shape, w_shape, padding=padding)
            check_convolution(calls, oracle, case, situation)
        for view in (sliced, transposed):
            case = draw_convolution(rng, (2, 3, 5, 4), (4, 3, 2, 3), padding=1)
            case = Convolution(view(case.x), view(case.w), view(case.b), case.sizes)
            check_convolution(calls, oracle, case, "views")


@weight(1)
@number("1.2")
def test_conv2d_forward_keeps_float32_and_counts_integers_as_float64(student, rng, oracle):
    """float32 in gives float32 out, and integers are neither rounded nor do they overflow."""
    case = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 3, 2), np.float32, padding=1)
    with Calls(student) as calls:
        check_convolution(calls, oracle, case, "float32")
        case = draw_convolution(rng, (2, 2, 4, 5), (3, 2, 2, 3))
        case = Convolution(draw_bytes(rng, case.x.shape), case.w, case.b)
        check_convolution(calls, oracle, case, "images of integers")
        inputs = (draw_bytes(rng, shape) for shape in ((2, 2, 4, 5), (3, 2, 2, 3), (3,)))
        check_convolution(calls, oracle, Convolution(*inputs), "integers only")


@weight(1)
@number("1.2")
def test_conv2d_forward_leaves_inputs_alone_and_calls_do_not_disturb_each_other(
    student, rng, oracle
):
    """x, w and b are as before, and an output stays right after further calls."""
    first, second = (draw_convolution(rng, (2, 2, 5, 4), (3, 2, 3, 2)) for _ in range(2))
    with Calls(student) as calls:
        check_convolutions_stay_apart(calls, oracle, first, second, (1, 1))
        for padding in (0, 1):
            calls.unchanged("conv2d_forward", first.x, first.w, first.b, 1, padding)


@weight(1)
@number("1.2")
def test_conv2d_forward_refuses_kernels_with_another_number_of_channels(student, rng):
    """Images and kernels that disagree about c_in raise ValueError."""
    with Calls(student) as calls:
        for images, kernels in ((3, 4), (3, 2), (3, 1), (1, 3)):
            case = draw_convolution(rng, (2, images, 5, 6), (4, kernels, 3, 2))
            situation = f"c_in of {images} in x and of {kernels} in w"
            calls.refused(situation, "conv2d_forward", *case.inputs, sent=1)
        case = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 3, 2))
        calls.add("conv2d_forward", case.inputs, count=2, sent=1)


@weight(1)
@number("1.3")
def test_conv2d_backward_sums_dout_into_db(student, rng):
    """db is the sum of dout over images, rows and columns: one number for each kernel."""
    case = draw_convolution(rng, (3, 2, 5, 6), (4, 2, 2, 3))
    dout = rng.normal(size=(3, 4, 4, 4))
    expected = dout.sum(axis=(0, 2, 3))
    with Calls(student) as calls:
        cache = cache_of(calls, "conv2d_forward", case.inputs)

        def compare(gradients):
            _, _, db = gradients
            assert_close(db, expected, what="db", axes=("kernel",))

        calls.add("conv2d_backward", (dout, cache), then=compare, count=3)


@weight(2)
@number("1.3")
def test_conv2d_backward_gives_the_gradient_of_the_kernels(student, rng, oracle):
    """dw, without stride or padding, is PyTorch's: a sum over images and output pixels."""
    case = draw_convolution(rng, (3, 2, 5, 7), (4, 2, 3, 2))
    with Calls(student) as calls:
        check_convolution_gradients(calls, oracle, rng, case, "no stride, no padding", only=("dw",))


@weight(2)
@number("1.3")
def test_conv2d_backward_gives_the_gradient_of_the_images(student, rng, oracle):
    """dx, without stride or padding, is PyTorch's: a sum over all kernels that saw the pixel."""
    case = draw_convolution(rng, (2, 3, 6, 5), (4, 3, 2, 3))
    with Calls(student) as calls:
        check_convolution_gradients(calls, oracle, rng, case, "no stride, no padding", only=("dx",))


@weight(1)
@number("1.3")
def test_conv2d_backward_follows_the_stride(student, rng, oracle):
    """dx, dw and db with unequal strides are PyTorch's, also where pixels are jumped over."""
    with Calls(student) as calls:
        for x_shape, stride in (((2, 3, 7, 5), (2, 1)), ((2, 3, 6, 10), (1, 4))):
            case = draw_convolution(rng, x_shape, (4, 3, 3, 2), stride=stride)
            check_convolution_gradients(calls, oracle, rng, case, f"stride {stride}")


@weight(2)
@number("1.3")
def test_conv2d_backward_cuts_the_padding_off(student, rng, oracle):
    """dx, dw and db with unequal paddings are PyTorch's, and dx has the shape of x."""
    with Calls(student) as calls:
        for padding in ((2, 1), (0, 3)):
            case = draw_convolution(rng, (2, 3, 5, 4), (4, 3, 2, 3), padding=padding)
            check_convolution_gradients(calls, oracle, rng, case, f"padding {padding}")


@weight(1)
@number("1.3")
def test_conv2d_backward_is_right_for_leftover_pixels_and_sizes_of_one(student, rng, oracle):
    """Pixels beyond the stride's reach get zeros; sizes of 1 and views are nothing special."""
    case = draw_convolution(rng, (2, 2, 7, 6), (3, 2, 2, 3), stride=(3, 2), padding=(2, 1))
    with Calls(student) as calls:
        check_convolution_gradients(calls, oracle, rng, case, "leftover pixels")
        case = draw_convolution(rng, (1, 2, 5, 6), (1, 2, 1, 1), stride=2)
        check_convolution_gradients(calls, oracle, rng, case, "a kernel of one pixel")
        case = draw_convolution(rng, (2, 1, 4, 3), (3, 1, 4, 3))
        check_convolution_gradients(calls, oracle, rng, case, "a kernel as big as the image")
        for view in (sliced, transposed):
            case = draw_convolution(rng, (2, 3, 5, 4), (4, 3, 2, 3))
            case = Convolution(view(case.x), view(case.w), view(case.b))
            check_convolution_gradients(calls, oracle, rng, case, "views", view=view)


@weight(1)
@number("1.3")
def test_conv2d_backward_keeps_float32_and_does_not_round_for_integer_inputs(student, rng, oracle):
    """Gradients are float32 for float32 inputs, and float64 for integer images and kernels."""
    case = draw_convolution(rng, (2, 3, 5, 6), (4, 3, 3, 2), np.float32, padding=1)
    with Calls(student) as calls:
        check_convolution_gradients(calls, oracle, rng, case, "float32")
        shapes = ((2, 2, 4, 5), (3, 2, 2, 3), (3,))
        inputs = (draw_whole(rng, shape).astype(np.int64) for shape in shapes)
        check_convolution_gradients(calls, oracle, rng, Convolution(*inputs), "integers")


@weight(1)
@number("1.3")
def test_conv2d_backward_uses_its_own_cache_and_leaves_dout_alone(student, rng, oracle):
    """Each backward pass belongs to the forward pass whose cache it gets, however often it runs."""
    first, second = (draw_convolution(rng, (2, 2, 5, 4), (3, 2, 3, 2)) for _ in range(2))
    with Calls(student) as calls:
        check_convolution_caches_stay_apart(calls, oracle, rng, first, second, (1, 1))
        cache = cache_of(calls, "conv2d_forward", first.inputs)
        dout = rng.normal(size=(2, 3, 3, 3))
        calls.unchanged("conv2d_backward", dout, cache)


@weight(2)
@number("1.4")
def test_max_pool2d_forward_takes_the_largest_value_of_each_window(student, rng, oracle):
    """Without a stride, windows lie side by side, for each image and channel on its own."""
    with Calls(student) as calls:
        for x_shape, kernel in (((2, 3, 6, 8), 2), ((2, 3, 4, 9), (2, 3)), ((1, 1, 3, 2), (3, 2))):
            case = Pooling(draw_distinct(rng, x_shape), kernel)
            check_pooling(calls, oracle, "max", case, f"kernel {kernel}")


@weight(1)
@number("1.4")
def test_max_pool2d_forward_follows_stride_and_padding(student, rng, oracle):
    """Windows that overlap, that leave gaps, or that leave pixels over, give PyTorch's output."""
    with Calls(student) as calls:
        for kernel, sizes in (
            ((3, 2), {"stride": (1, 2)}),
            (2, {"stride": np.int64(3)}),
            ((2, 3), {"stride": (2, 1), "padding": (1, 0)}),
            ((3, 4), {"stride": 2, "padding": (0, 2)}),
        ):
            case = Pooling(draw_distinct(rng, (2, 3, 8, 7)), kernel, sizes)
            check_pooling(calls, oracle, "max", case, f"kernel {kernel}, {in_words(sizes)}")
        case = Pooling(sliced(draw_distinct(rng, (2, 3, 4, 6))), 2)
        check_pooling(calls, oracle, "max", case, "a view")


@weight(1)
@number("1.4")
def test_max_pool2d_forward_never_lets_padding_win(student, rng, oracle):
    """Negative numbers beat the padding, which is at most half the kernel: else ValueError."""
    negative = -1 - rng.uniform(size=(2, 2, 5, 6))
    with Calls(student) as calls:
        for kernel, padding in ((3, 1), ((2, 3), (1, 0))):
            case = Pooling(negative, kernel, {"stride": 1, "padding": padding})
            check_pooling(calls, oracle, "max", case, f"kernel {kernel}, padding {padding}")
        for kernel, padding in ((3, 2), ((3, 5), (2, 0)), ((5, 3), (0, 2))):
            situation = f"kernel {kernel} with padding {padding}"
            calls.refused(situation, "max_pool2d_forward", negative, kernel, 1, padding, sent=1)


@weight(1)
@number("1.4")
def test_max_pool2d_backward_sends_the_gradient_to_the_largest_value(student, rng, oracle):
    """With windows side by side, the largest value of each gets its gradient, the others 0."""
    with Calls(student) as calls:
        for x_shape, kernel in (((2, 3, 6, 8), 2), ((2, 3, 4, 9), (2, 3)), ((1, 1, 3, 2), (3, 2))):
            case = Pooling(draw_distinct(rng, x_shape), kernel)
            check_pooling_gradient(calls, oracle, rng, "max", case, f"kernel {kernel}")


@weight(1)
@number("1.4")
def test_max_pool2d_backward_adds_up_where_windows_overlap(student, rng, oracle):
    """A pixel that is the largest of several windows gets the sum, with padding and stride too."""
    with Calls(student) as calls:
        for kernel, sizes in (
            (3, {"stride": 1}),
            ((3, 2), {"stride": (2, 1), "padding": (1, 1)}),
            ((2, 3), {"stride": (3, 2), "padding": (0, 1)}),
        ):
            x = draw_distinct(rng, (2, 3, 7, 6))
            x[:, :, 3, 2] += 1000  # the largest of every window that holds it
            case = Pooling(x, kernel, sizes)
            situation = f"kernel {kernel}, {in_words(sizes)}"
            check_pooling_gradient(calls, oracle, rng, "max", case, situation, view=transposed)


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
    with Calls(student) as calls:
        case, what = Pooling(x[None, None], 2), "dx (windows side by side)"
        check_pooling_backward(calls, "max", case, dout, expected, what)

        dout = rng.normal(size=(2, 3, 3, 4))
        expected = np.zeros((2, 3, 4, 6))
        expected[:, :, :3, :4] = dout
        case = Pooling(np.full((2, 3, 4, 6), -2.5), (2, 3), {"stride": 1})
        what = "dx (equal pixels, overlapping windows)"
        check_pooling_backward(calls, "max", case, dout, expected, what)


@weight(1)
@number("1.4")
def test_max_pool2d_keeps_the_type_of_x_forward_and_of_dout_backward(student, rng, oracle):
    """out has the dtype of x, integers too, and dx has the dtype of dout."""
    sizes = {"stride": 1, "padding": 1}
    floats = Pooling(draw_distinct(rng, (2, 2, 4, 5)).astype(np.float32), (2, 3), sizes)
    integers = Pooling(rng.permutation(40).reshape(2, 2, 5, 2) - 50, (3, 2), sizes)
    with Calls(student) as calls:
        check_pooling(calls, oracle, "max", floats, "float32")
        check_pooling(calls, oracle, "max", integers, "integers")
        check_pooling_gradient(calls, oracle, rng, "max", floats, "float32")
        for dtype in (np.float64, np.float32):
            situation = f"integer x, {np.dtype(dtype)} dout"
            check_pooling_gradient(calls, oracle, rng, "max", integers, situation, dtype)


@weight(1)
@number("1.4")
def test_max_pool2d_leaves_inputs_alone_and_calls_do_not_disturb_each_other(student, rng, oracle):
    """x and dout are as before, and each backward pass uses the cache it is given."""
    xs = [draw_distinct(rng, shape) for shape in ((2, 2, 5, 6), (2, 2, 5, 6), (1, 3, 4, 7))]
    with Calls(student) as calls:
        check_poolings_stay_apart(calls, oracle, rng, "max", xs, (3, 1, 1))
        for padding in (0, 1):
            calls.unchanged("max_pool2d_forward", xs[0], 2, 1, padding)
        cache = cache_of(calls, "max_pool2d_forward", (xs[0], 2, 1))
        dout = rng.normal(size=(2, 2, 4, 5))
        calls.unchanged("max_pool2d_backward", dout, cache)


@weight(1)
@number("1.5")
def test_avg_pool2d_forward_takes_the_mean_of_each_window(student, rng, oracle):
    """Windows side by side, overlapping, with gaps or leftovers, give PyTorch's output."""
    with Calls(student) as calls:
        for kernel, sizes in (
            ((2, 3), {}),
            (2, {"stride": np.int64(1)}),
            ((4, 3), {"stride": (1, 2)}),
            ((2, 1), {"stride": (3, 4)}),
            ((3, 2), {"stride": (2, 3)}),
        ):
            x = transposed(rng.normal(size=(2, 3, 8, 9)))
            check_pooling(
                calls,
                oracle,
                "avg",
                Pooling(x, kernel, sizes),
                f"kernel {kernel}, {in_words(sizes)}",
            )


@weight(1)
@number("1.5")
def test_avg_pool2d_forward_counts_padding_as_zeros(student, rng, oracle):
    """Windows over the edge are still divided by kh * kw; padding above half is a ValueError."""
    expected = np.tile(np.outer([2.0, 3, 2], [2, 3, 3, 2]), (2, 1, 1, 1))
    with Calls(student) as calls:
        arguments, sizes = (np.full((2, 1, 3, 4), 9.0), 3), {"stride": 1, "padding": 1}
        what = "out (an image of nines)"
        check_output(calls, "avg_pool2d_forward", arguments, sizes, expected, what)
        x = rng.normal(size=(2, 3, 5, 6))
        case = Pooling(x, (4, 2), {"stride": (1, 2), "padding": (2, 0)})
        check_pooling(calls, oracle, "avg", case, "padding (2, 0)")
        for kernel, padding in ((3, 2), ((3, 5), (2, 0)), ((5, 3), (0, 2))):
            situation = f"kernel {kernel} with padding {padding}"
            calls.refused(situation, "avg_pool2d_forward", x, kernel, 1, padding, sent=1)


@weight(1)
@number("1.5")
def test_avg_pool2d_backward_shares_the_gradient_equally(student, rng, oracle):
    """With windows side by side, each pixel gets its window's gradient divided by kh * kw."""
    with Calls(student) as calls:
        for x_shape, kernel in (((2, 3, 6, 8), 2), ((2, 3, 4, 9), (2, 3)), ((1, 1, 3, 2), (3, 2))):
            case = Pooling(rng.normal(size=x_shape), kernel)
            check_pooling_gradient(calls, oracle, rng, "avg", case, f"kernel {kernel}")


@weight(1)
@number("1.5")
def test_avg_pool2d_backward_adds_up_where_windows_overlap(student, rng, oracle):
    """Overlapping windows, padding, gaps and leftover pixels give PyTorch's gradient."""
    with Calls(student) as calls:
        for kernel, sizes in (
            (3, {"stride": 1}),
            ((3, 2), {"stride": (2, 1), "padding": (1, 1)}),
            ((2, 3), {"stride": (3, 2), "padding": (0, 1)}),
        ):
            case = Pooling(rng.normal(size=(2, 3, 7, 6)), kernel, sizes)
            situation = f"kernel {kernel}, {in_words(sizes)}"
            check_pooling_gradient(calls, oracle, rng, "avg", case, situation, view=sliced)


@weight(1)
@number("1.5")
def test_avg_pool2d_keeps_float32_and_counts_integers_as_float64(student, rng, oracle):
    """float32 in gives float32 out, means of integers are not rounded, dx has dout's dtype."""
    floats = Pooling(rng.normal(size=(2, 2, 4, 6)).astype(np.float32), (2, 3), {"stride": 1})
    integers = Pooling(draw_bytes(rng, (2, 2, 5, 4)), (3, 2), {"stride": 1, "padding": 1})
    with Calls(student) as calls:
        check_pooling(calls, oracle, "avg", floats, "float32")
        check_pooling(calls, oracle, "avg", integers, "integers")
        check_pooling_gradient(calls, oracle, rng, "avg", floats, "float32")
        for dtype in (np.float64, np.float32):
            situation = f"integer x, {np.dtype(dtype)} dout"
            check_pooling_gradient(calls, oracle, rng, "avg", integers, situation, dtype)


@weight(1)
@number("1.5")
def test_avg_pool2d_leaves_inputs_alone_and_calls_do_not_disturb_each_other(student, rng, oracle):
    """x and dout are as before, and each backward pass uses the cache it is given."""
    xs = [rng.normal(size=shape) for shape in ((2, 2, 5, 6), (2, 2, 5, 6), (1, 3, 4, 7))]
    with Calls(student) as calls:
        check_poolings_stay_apart(calls, oracle, rng, "avg", xs, (3, 1, 1))
        for padding in (0, 1):
            calls.unchanged("avg_pool2d_forward", xs[0], 2, 1, padding)
        cache = cache_of(calls, "avg_pool2d_forward", (xs[0], 2, 1))
        dout = rng.normal(size=(2, 2, 4, 5))
        calls.unchanged("avg_pool2d_backward", dout, cache)


@weight(2)
@number("1.6")
def test_im2col_lays_every_patch_out_as_a_column(student, rng, oracle):
    """Entries in the order channel, row, column; patches row by row; the dtype stays."""
    x = np.arange(12).reshape(1, 2, 2, 3)
    expected = np.array([[[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [9, 10], [10, 11]]])
    with Calls(student) as calls:
        what = "cols (an image of 0 to 11)"
        check_array(calls, "im2col", (x, 2), {}, expected, what, COLUMN_AXES)
        for dtype, kernel, sizes in (
            (np.float64, (3, 2), {}),
            (np.float32, (2, 3), {"stride": (2, 1), "padding": (1, 2)}),
            (np.int64, (1, 4), {"stride": np.int64(1), "padding": 1}),
            (np.float64, (2, 3), {"padding": (2, 0)}),
            (np.float64, (3, 1), {"padding": (0, 1)}),
        ):
            x = draw_whole(rng, (2, 3, 4, 5)).astype(dtype)
            expected = oracle.im2col(x, kernel, **sizes)
            arguments, what = (transposed(x), kernel), f"cols (kernel {kernel}, {in_words(sizes)})"
            check_array(calls, "im2col", arguments, sizes, expected, what, COLUMN_AXES)


@weight(2)
@number("1.6")
def test_col2im_adds_every_column_back_to_its_pixels(student, rng, oracle):
    """Pixels in several patches get the sum, the padding is cut off, and the dtype stays."""
    expected = np.tile(np.outer([1.0, 2, 1], [1, 2, 2, 1]), (2, 3, 1, 1))
    with Calls(student) as calls:
        arguments, what = (np.ones((2, 12, 6)), (2, 3, 3, 4), 2), "the image of columns of ones"
        check_array(calls, "col2im", arguments, {}, expected, what, IMAGE_AXES)
        for dtype, kernel, count, sizes in (
            (np.float64, (3, 2), 8, {}),
            (np.float32, (2, 3), 21, {"stride": (2, 1), "padding": (1, 2)}),
            (np.int64, (1, 4), 24, {"stride": np.int64(1), "padding": 1}),
        ):
            cols = draw_whole(rng, (2, 3 * kernel[0] * kernel[1], count)).astype(dtype)
            expected = oracle.col2im(cols, (2, 3, 4, 5), kernel, **sizes)
            arguments = (sliced(cols), (2, 3, 4, 5), kernel)
            what = f"x (kernel {kernel}, {in_words(sizes)})"
            check_array(calls, "col2im", arguments, sizes, expected, what, IMAGE_AXES)


@weight(1)
@number("1.6")
def test_col2im_is_the_backward_pass_of_im2col(student, rng):
    """The sum of im2col(x) * y equals the sum of x * col2im(y), for any x and y."""
    # Whole numbers: both sums are exact, in whatever order they are taken.
    x, y = draw_whole(rng, (2, 3, 5, 6)), draw_whole(rng, (2, 18, 12))
    sizes = {"kernel": (3, 2), "stride": (2, 2), "padding": (1, 1)}
    cols, image = student.im2col(x, **sizes), student.col2im(y, x.shape, **sizes)
    for name, result, like in (("im2col", cols, y), ("col2im", image, x)):
        right = isinstance(result, np.ndarray) and result.shape == like.shape
        check(right, f"{name} returns no array of the right shape.", f"expected {like.shape}")
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
    with Calls(student) as calls:
        for x_shape, w_shape, sizes in (
            ((2, 3, 6, 7), (4, 3, 3, 2), {}),
            ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": (2, 3)}),
            ((2, 2, 4, 6), (3, 2, 2, 3), {"stride": (3, 1), "padding": (2, 3)}),
            ((1, 1, 4, 3), (1, 1, 4, 3), {"stride": np.int64(2)}),
        ):
            case = draw_convolution(rng, x_shape, w_shape, **sizes)
            case = Convolution(transposed(case.x), sliced(case.w), case.b, sizes)
            check_convolution(calls, oracle, case, in_words(sizes), fast=True)
        for channels in (1, 2, 4):
            case = draw_convolution(rng, (2, 3, 5, 6), (4, channels, 3, 2))
            situation = "a c_in that differs between x and w"
            calls.refused(situation, "conv2d_forward_fast", *case.inputs, sent=1)


@weight(1)
@number("1.6")
def test_conv2d_backward_fast_gives_the_gradients_of_a_convolution(student, rng, oracle):
    """dx, dw and db with strides, paddings and sizes of 1 are PyTorch's."""
    with Calls(student) as calls:
        for x_shape, w_shape, sizes in (
            ((2, 3, 6, 7), (4, 3, 3, 2), {}),
            ((2, 3, 7, 8), (4, 3, 3, 2), {"stride": (2, 3)}),
            ((2, 2, 4, 6), (3, 2, 2, 3), {"stride": (3, 1), "padding": (2, 3)}),
            ((1, 1, 4, 3), (1, 1, 4, 3), {}),
        ):
            case = draw_convolution(rng, x_shape, w_shape, **sizes)
            check_convolution_gradients(
                calls, oracle, rng, case, in_words(sizes), fast=True, view=transposed
            )


@weight(1)
@number("1.6")
def test_fast_convolution_is_right_for_leftover_pixels_float32_and_integers(student, rng, oracle):
    """Pixels beyond the stride's reach get zeros; float32 stays; integers count as float64."""
    with Calls(student) as calls:
        for dtype, sizes in (
            (np.float64, {"stride": (3, 2), "padding": (2, 1)}),
            (np.float32, {"padding": 1}),
            (np.int8, {}),
        ):
            case = draw_convolution(rng, (2, 2, 7, 6), (3, 2, 2, 3), dtype, **sizes)
            if dtype is np.int8:
                case = Convolution(*(draw_bytes(rng, array.shape) for array in case.inputs))
            situation = f"{np.dtype(dtype)}, {in_words(sizes)}"
            check_convolution(calls, oracle, case, situation, fast=True)
            check_convolution_gradients(calls, oracle, rng, case, situation, fast=True)


@weight(1)
@number("1.6")
def test_fast_convolution_leaves_inputs_alone_and_calls_do_not_disturb_each_other(
    student, rng, oracle
):
    """im2col, col2im and both passes change no input, and each pass uses its own cache."""
    first, second = (draw_convolution(rng, (2, 2, 5, 4), (3, 2, 3, 2)) for _ in range(2))
    with Calls(student) as calls:
        check_convolutions_stay_apart(calls, oracle, first, second, (1, 1), fast=True)
        check_convolution_caches_stay_apart(calls, oracle, rng, first, second, (1, 1), fast=True)
        for padding in (0, 1):
            calls.unchanged("conv2d_forward_fast", *first.inputs, 1, padding)
            calls.unchanged("im2col", first.x, (3, 2), 1, padding)
        cache = cache_of(calls, "conv2d_forward_fast", first.inputs)
        dout, cols = rng.normal(size=(2, 3, 3, 3)), rng.normal(size=(2, 12, 9))
        calls.unchanged("conv2d_backward_fast", dout, cache)
        calls.unchanged("col2im", cols, (2, 2, 5, 4), (3, 2))


@weight(2)
@number("1.6")
@tags("timing")
def test_fast_convolution_is_ten_times_as_fast_as_a_loop(student, rng, oracle):
    """One image of 1 x 81 x 91 and one kernel of 2 x 3: 10 times faster, forward and backward."""
    check_fast(student, oracle, rng, (1, 1, 81, 91), (1, 1, 2, 3))


@weight(1)
@number("1.7")
def test_conv_parameters_counts_weights_and_biases(student):
    """c_out kernels of c_in * kh * kw weights, and one bias each unless bias is False."""
    with Calls(student) as calls:
        for arguments, expected in (
            ((1, 16, 5), 416),
            ((16, 32, 5), 12_832),
            ((3, 8, (2, 7)), 344),
            ((3, 8, (2, 7), False), 336),
            ((1, 1, 1), 2),
            ((2, 5, np.int64(3)), 95),
        ):
            check_count(
                calls, "conv_parameters", arguments, expected, f"conv_parameters{arguments}"
            )
        what = "conv_parameters(c_in=4, c_out=6, kernel=3, bias=False)"
        check_count(calls, "conv_parameters", (), 216, what, c_in=4, c_out=6, kernel=3, bias=False)


@weight(1)
@number("1.7")
def test_linear_parameters_counts_weights_and_biases(student):
    """n_in * n_out weights, and one bias for each output unless bias is False."""
    with Calls(student) as calls:
        for arguments, expected in (
            ((512, 64), 32_832),
            ((64, 10), 650),
            ((64, 10, False), 640),
            ((1, 1), 2),
            ((784, 24 * 24 * 16), 7_234_560),
        ):
            check_count(
                calls, "linear_parameters", arguments, expected, f"linear_parameters{arguments}"
            )
        what = "linear_parameters(n_in=7, n_out=3, bias=False)"
        check_count(calls, "linear_parameters", (), 21, what, n_in=7, n_out=3, bias=False)


@weight(2)
@number("1.8")
def test_q1_the_kernel_answers_to_upright_edges_and_not_to_flat_areas(lab):
    """Lab, question 1: 0 on flat areas, positive where it gets brighter from left to right."""
    kernel = array_answer(lab, "q1_kernel", (3, 3))
    for brightness in (0.25, 1.0):
        check_flat(kernel, brightness)
    check_step(kernel, 0.25, 0.75)


@weight(1)
@number("1.8")
def test_q2_the_weights_of_a_kernel_that_ignores_brightness_add_up_to_the_right_number(lab):
    """Lab, question 2: the answers to a brighter picture change by the sum of the weights."""
    check_number(lab, "q2_sum", 0)


@weight(1)
@number("1.8")
def test_q4_a_mean_takes_grain_away(lab):
    """Lab, question 4: the grain after a mean over 5 x 5 pixels, divided by that before it."""
    check_number(lab, "q4_factor", 1 / math.sqrt(5 * 5), tolerance=0.02)


@weight(2)
@number("1.9")
def test_q7_the_map_of_the_photograph_has_the_right_size(lab):
    """Lab, question 7: rows and columns of a map with stride (2, 3) and padding (2, 0)."""
    places = [
        len(range(0, size + 2 * padding - kernel + 1, stride))
        for size, kernel, stride, padding in ((96, 5, 2, 2), (128, 3, 3, 0))
    ]
    check_sizes(lab, "q7_shape", places)


@weight(2)
@number("1.9")
def test_q8_padding_darkens_the_corner(lab):
    """Lab, question 8: the mean of a white picture in its corner, with padding 1."""
    check_number(lab, "q8_corner", 4 / 9, tolerance=1e-3)
