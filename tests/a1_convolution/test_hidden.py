"""The hidden tests of assignment 1: what the public tests check, on other shapes and inputs."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_choice, check_number
from common.testing.calls import Calls
from common.testing.checks import sliced, transposed
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
    check_pooling,
    check_pooling_backward,
    check_pooling_gradient,
    check_poolings_stay_apart,
    draw_bytes,
    draw_convolution,
    draw_distinct,
    draw_whole,
)
from tests.a1_convolution.lab_cases import (
    check_flat,
    check_rows,
    check_step,
    most_upright_digit,
)


@weight(1)
@number("1.1")
def test_conv_output_size_is_right_for_any_sizes(student, rng):
    """Whatever the sizes, the result is the number of places where the kernel fits."""
    cases = []
    for _ in range(60):
        size, stride, padding = (
            int(rng.integers(low, high)) for low, high in ((1, 40), (1, 7), (0, 5))
        )
        padded = size + 2 * padding
        kernel = int(rng.integers(1, padded + 1))
        # A kernel starts at every stride-th pixel from which it still fits.
        places = len(range(0, padded - kernel + 1, stride))
        cases.append(((size, kernel, stride, padding), places))
    with Calls(student) as calls:
        for sizes, places in cases:
            check_count(calls, "conv_output_size", sizes, places, "the output size")


@weight(1)
@number("1.1")
def test_conv_output_size_refuses_any_sizes_out_of_range(student, rng):
    """Sizes, kernels and strides below 1, paddings below 0 and too long kernels: ValueError."""
    size, padding, below = (int(rng.integers(low, low + 9)) for low in (6, 1, 1))
    with Calls(student) as calls:
        for situation, sizes in (
            ("a size below 1", (0, 1, 1, padding)),
            ("a kernel below 1", (size, 0, 1, padding)),
            ("a stride below 1", (size, 3, 0, padding)),
            ("a size below 1", (1 - below, 1, 1, below)),
            ("a kernel below 1", (size, 1 - below, 1, 0)),
            ("a stride below 1", (size, 3, 1 - below, padding)),
            ("a padding below 0", (size + 2 * below, 2, 1, -below)),
            ("a kernel that doesn't fit", (size, size + 1, 2, 0)),
            ("a kernel that doesn't fit", (size, size + 2 * padding + below, 1, padding)),
        ):
            calls.refused(situation, "conv_output_size", *sizes)
        sizes, what = (size, size + 2 * padding, 1, padding), "a kernel that just fits"
        check_count(calls, "conv_output_size", sizes, 1, f"the output size for {what}")


@weight(2)
@number("1.2")
def test_conv2d_forward_is_right_for_other_images_and_kernels(student, rng, oracle):
    """Without stride or padding, the output is PyTorch's on other shapes."""
    with Calls(student) as calls:
        for x_shape, w_shape in (((3, 2, 7, 5), (5, 2, 2, 4)), ((2, 4, 5, 8), (3, 4, 4, 1))):
            case = draw_convolution(rng, x_shape, w_shape)
            check_convolution(calls, oracle, case, "no stride, no padding")


@weight(2)
@number("1.2")
def test_conv2d_forward_is_right_for_other_strides_and_paddings(student, rng, oracle):
    """With strides and paddings, as pairs and as single numbers, the output is PyTorch's."""
    with Calls(student) as calls:
        for x_shape, w_shape, sizes in (
            ((2, 3, 10, 6), (4, 3, 4, 2), {"stride": (3, 2)}),
            ((3, 2, 4, 7), (2, 2, 3, 5), {"padding": (1, 4)}),
            ((2, 3, 6, 9), (4, 3, 4, 3), {"stride": (2, 5), "padding": (3, 2)}),
            ((2, 1, 8, 5), (3, 1, 4, 1), {"stride": 2, "padding": np.int64(2)}),
        ):
            case = draw_convolution(rng, x_shape, w_shape, **sizes)
            check_convolution(calls, oracle, case, "stride or padding or both")


@weight(2)
@number("1.2")
def test_conv2d_forward_is_right_for_other_types_sizes_of_one_and_views(student, rng, oracle):
    """float32, integers, sizes of 1, leftover pixels and views, on other shapes."""
    case = draw_convolution(rng, (3, 2, 6, 4), (2, 2, 2, 3), np.float32, stride=(2, 1))
    with Calls(student) as calls:
        check_convolution(calls, oracle, case, "float32")
        inputs = (draw_bytes(rng, shape, np.int16) for shape in ((3, 2, 5, 4), (2, 2, 3, 2), (2,)))
        check_convolution(calls, oracle, Convolution(*inputs), "integers")
        case = draw_convolution(rng, (1, 3, 5, 5), (2, 3, 2, 4))
        case = Convolution(draw_bytes(rng, case.x.shape, np.uint8), case.w, case.b)
        check_convolution(calls, oracle, case, "images of integers")
        case = draw_convolution(rng, (1, 1, 1, 6), (1, 1, 1, 6))
        check_convolution(calls, oracle, case, "sizes of one")
        case = draw_convolution(rng, (2, 3, 8, 9), (2, 3, 3, 2), stride=(3, 4), padding=(0, 1))
        check_convolution(calls, oracle, case, "leftover pixels")
        case = Convolution(transposed(case.x), sliced(case.w), sliced(case.b), {"stride": (1, 7)})
        check_convolution(calls, oracle, case, "views")


@weight(1)
@number("1.2")
def test_conv2d_forward_has_no_side_effects(student, rng, oracle):
    """Inputs stay as they are, outputs survive further calls, and wrong channels are refused."""
    first, second = (draw_convolution(rng, (1, 3, 4, 6), (2, 3, 2, 3)) for _ in range(2))
    with Calls(student) as calls:
        check_convolutions_stay_apart(calls, oracle, first, second, ((2, 1), (0, 1)))
        for sizes in ((1, 0), (1, (1, 0))):
            calls.unchanged("conv2d_forward", *first.inputs, *sizes)
        for images, kernels in ((4, 1), (1, 5), (3, 4)):
            case = draw_convolution(rng, (1, images, 4, 6), (2, kernels, 2, 3))
            situation = "a c_in that differs between x and w"
            calls.refused(situation, "conv2d_forward", *case.inputs, sent=1)


@weight(2)
@number("1.3")
def test_conv2d_backward_is_right_for_other_kernels(student, rng, oracle):
    """dw and db, without stride or padding, are PyTorch's on other shapes."""
    with Calls(student) as calls:
        for x_shape, w_shape in (((4, 2, 7, 5), (3, 2, 2, 4)), ((2, 4, 5, 6), (3, 4, 4, 1))):
            case = draw_convolution(rng, x_shape, w_shape)
            check_convolution_gradients(
                calls, oracle, rng, case, "no stride, no padding", only=("dw", "db")
            )


@weight(2)
@number("1.3")
def test_conv2d_backward_is_right_for_other_images(student, rng, oracle):
    """dx, without stride or padding, is PyTorch's on other shapes."""
    with Calls(student) as calls:
        for x_shape, w_shape in (((3, 2, 4, 7), (5, 2, 3, 2)), ((2, 4, 6, 5), (3, 4, 1, 4))):
            case = draw_convolution(rng, x_shape, w_shape)
            check_convolution_gradients(
                calls, oracle, rng, case, "no stride, no padding", only=("dx",)
            )


@weight(2)
@number("1.3")
def test_conv2d_backward_is_right_for_other_strides_and_paddings(student, rng, oracle):
    """dx, dw and db with strides and paddings are PyTorch's on other shapes."""
    with Calls(student) as calls:
        for x_shape, w_shape, sizes in (
            ((2, 3, 10, 6), (4, 3, 4, 2), {"stride": (3, 2)}),
            ((3, 2, 4, 6), (2, 2, 3, 5), {"padding": (1, 4)}),
            ((2, 3, 6, 9), (4, 3, 4, 3), {"stride": (2, 5), "padding": (3, 2)}),
            ((2, 1, 8, 5), (3, 1, 4, 1), {"stride": 2, "padding": 2}),
        ):
            case = draw_convolution(rng, x_shape, w_shape, **sizes)
            check_convolution_gradients(calls, oracle, rng, case, "stride or padding or both")


@weight(1)
@number("1.3")
def test_conv2d_backward_is_right_for_other_types_sizes_of_one_and_views(student, rng, oracle):
    """float32, integers, sizes of 1, leftover pixels and views, on other shapes."""
    case = draw_convolution(rng, (3, 2, 6, 4), (2, 2, 2, 3), np.float32, stride=(2, 1))
    with Calls(student) as calls:
        check_convolution_gradients(calls, oracle, rng, case, "float32")
        shapes = ((3, 2, 5, 4), (2, 2, 3, 2), (2,))
        inputs = (draw_whole(rng, shape).astype(np.int32) for shape in shapes)
        check_convolution_gradients(calls, oracle, rng, Convolution(*inputs), "integers")
        case = draw_convolution(rng, (1, 1, 1, 6), (1, 1, 1, 6))
        check_convolution_gradients(calls, oracle, rng, case, "sizes of one")
        case = draw_convolution(rng, (2, 3, 8, 9), (2, 3, 3, 2), stride=(3, 4), padding=(0, 1))
        check_convolution_gradients(calls, oracle, rng, case, "leftover pixels")
        case = Convolution(transposed(case.x), sliced(case.w), sliced(case.b), {"stride": (1, 7)})
        check_convolution_gradients(calls, oracle, rng, case, "views", view=sliced)


@weight(1)
@number("1.3")
def test_conv2d_backward_has_no_side_effects(student, rng, oracle):
    """Each backward pass belongs to the forward pass whose cache it gets; dout stays as it is."""
    first, second = (draw_convolution(rng, (1, 3, 4, 6), (2, 3, 2, 3)) for _ in range(2))
    with Calls(student) as calls:
        check_convolution_caches_stay_apart(calls, oracle, rng, first, second, ((2, 1), (0, 1)))
        cache = cache_of(calls, "conv2d_forward", second.inputs)
        dout = rng.normal(size=(1, 2, 3, 4))
        calls.unchanged("conv2d_backward", dout, cache)


@weight(1)
@number("1.4")
def test_max_pool2d_forward_is_right_for_other_windows(student, rng, oracle):
    """Strides, paddings, negative numbers and views, on other shapes."""
    with Calls(student) as calls:
        for x_shape, kernel, sizes in (
            ((3, 2, 6, 10), (3, 5), {}),
            ((2, 3, 9, 8), (3, 2), {"stride": (2, 3)}),
            ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
            ((2, 1, 7, 8), 3, {"stride": 2, "padding": np.int64(1)}),
        ):
            x = draw_distinct(rng, x_shape)
            for image in (x, x - 1000, transposed(x)):
                check_pooling(calls, oracle, "max", Pooling(image, kernel, sizes), "other windows")
        for kernel, padding in (((5, 3), (3, 1)), ((3, 5), (1, 3))):
            situation = "a padding above half the kernel"
            calls.refused(situation, "max_pool2d_forward", x, kernel, 1, padding, sent=1)


@weight(2)
@number("1.4")
def test_max_pool2d_backward_is_right_for_other_windows(student, rng, oracle):
    """Windows side by side, overlapping and with gaps, with and without padding."""
    with Calls(student) as calls:
        for x_shape, kernel, sizes in (
            ((3, 2, 6, 10), (3, 5), {}),
            ((2, 3, 9, 8), (3, 2), {"stride": (1, 3)}),
            ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
            ((2, 1, 7, 8), 3, {"stride": 2, "padding": 1}),
        ):
            x = draw_distinct(rng, x_shape)
            x[:, :, 3, 3] += 1000  # the largest of every window that holds it
            for view in (sliced, transposed):
                case = Pooling(view(x - 2000), kernel, sizes)
                check_pooling_gradient(calls, oracle, rng, "max", case, "other windows", view=view)


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
    with Calls(student) as calls:
        case, what = Pooling(x, (kh, kw)), "dx (windows side by side)"
        check_pooling_backward(calls, "max", case, dout, expected, what)

        # In an image of equal numbers, the first pixel of a window that is no padding wins.
        dout = rng.normal(size=(2, 2, 6, 5))
        expected = np.zeros((2, 2, 5, 4))
        for row, column in np.ndindex(6, 5):
            expected[:, :, max(row - 1, 0), max(column - 1, 0)] += dout[:, :, row, column]
        case = Pooling(np.full((2, 2, 5, 4), -0.5), 2, {"stride": 1, "padding": 1})
        what = "dx (equal pixels, overlapping windows)"
        check_pooling_backward(calls, "max", case, dout, expected, what)


@weight(1)
@number("1.4")
def test_max_pool2d_keeps_other_types_and_has_no_side_effects(student, rng, oracle):
    """out has the dtype of x, dx has that of dout, and calls don't disturb each other."""
    sizes = {"stride": (2, 1), "padding": (1, 0)}
    x = draw_distinct(rng, (2, 3, 6, 5)) * 4 - 500
    with Calls(student) as calls:
        for dtype in (np.float32, np.int16):
            case = Pooling(x.astype(dtype), (2, 3), sizes)
            check_pooling(calls, oracle, "max", case, "another type")
            check_pooling_gradient(calls, oracle, rng, "max", case, "another type", np.float32)
        check_poolings_stay_apart(
            calls, oracle, rng, "max", [x, x[::-1], x[:1, :, 2:]], ((2, 3), 1, (1, 0))
        )
        calls.unchanged("max_pool2d_forward", x, (3, 2), 1)
        cache = cache_of(calls, "max_pool2d_forward", (x, (3, 2), 1))
        dout = rng.normal(size=(2, 3, 4, 4))
        calls.unchanged("max_pool2d_backward", dout, cache)


@weight(1)
@number("1.5")
def test_avg_pool2d_forward_is_right_for_other_windows(student, rng, oracle):
    """Strides, paddings, views, float32 and integers, on other shapes."""
    with Calls(student) as calls:
        for x_shape, kernel, sizes in (
            ((3, 2, 6, 10), (3, 5), {}),
            ((2, 3, 9, 8), (3, 2), {"stride": (2, 3)}),
            ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
            ((2, 1, 7, 8), 3, {"stride": 2, "padding": np.int64(1)}),
        ):
            x = rng.normal(size=x_shape)
            for image in (sliced(x), x.astype(np.float32), draw_bytes(rng, x_shape, np.uint8)):
                check_pooling(calls, oracle, "avg", Pooling(image, kernel, sizes), "other windows")
            calls.unchanged("avg_pool2d_forward", x, kernel)
        for kernel, padding in (((5, 3), (3, 1)), ((3, 5), (1, 3))):
            situation = "a padding above half the kernel"
            calls.refused(situation, "avg_pool2d_forward", x, kernel, 1, padding, sent=1)


@weight(2)
@number("1.5")
def test_avg_pool2d_backward_is_right_for_other_windows(student, rng, oracle):
    """Overlaps, gaps, paddings and types on other shapes, and calls don't disturb each other."""
    with Calls(student) as calls:
        for x_shape, kernel, sizes in (
            ((3, 2, 6, 10), (3, 5), {}),
            ((2, 3, 9, 8), (3, 2), {"stride": (1, 3)}),
            ((1, 4, 5, 9), (4, 3), {"stride": (1, 2), "padding": (2, 1)}),
            ((2, 1, 7, 8), 3, {"stride": 2, "padding": 1}),
        ):
            x = rng.normal(size=x_shape)
            for image, dtype in ((x, np.float64), (draw_bytes(rng, x_shape), np.float32)):
                case = Pooling(image, kernel, sizes)
                check_pooling_gradient(
                    calls, oracle, rng, "avg", case, "other windows", dtype, transposed
                )
        check_poolings_stay_apart(
            calls, oracle, rng, "avg", [x, x[:, :, ::-1], x[:1, :, 2:]], ((2, 3), 1, (1, 0))
        )
        cache = cache_of(calls, "avg_pool2d_forward", (x, (3, 2), 1))
        dout = rng.normal(size=(2, 1, 5, 7))
        calls.unchanged("avg_pool2d_backward", dout, cache)


@weight(1)
@number("1.6")
def test_im2col_and_col2im_are_right_for_other_shapes(student, rng, oracle):
    """Columns and images are PyTorch's, whatever stride, padding and type, leftovers included."""
    with Calls(student) as calls:
        for dtype, x_shape, kernel, sizes in (
            (np.float64, (3, 2, 5, 7), (2, 4), {}),
            (np.float32, (2, 3, 8, 4), (4, 3), {"stride": (2, 1), "padding": (0, 2)}),
            (np.int16, (1, 2, 7, 9), (3, 2), {"stride": (3, 4), "padding": 1}),
        ):
            x = draw_whole(rng, x_shape).astype(dtype)
            expected = oracle.im2col(x, kernel, **sizes)
            check_array(calls, "im2col", (sliced(x), kernel), sizes, expected, "cols", COLUMN_AXES)
            cols = draw_whole(rng, expected.shape).astype(dtype)
            expected = oracle.col2im(cols, x_shape, kernel, **sizes)
            arguments = (transposed(cols), x_shape, kernel)
            check_array(calls, "col2im", arguments, sizes, expected, "x", IMAGE_AXES)
            calls.unchanged("im2col", x, kernel)
            calls.unchanged("col2im", cols, x_shape, kernel, *sizes.values())


@weight(2)
@number("1.6")
def test_conv2d_forward_fast_is_right_for_other_shapes(student, rng, oracle):
    """Strides, paddings, float32, integers and views; inputs and earlier outputs stay."""
    with Calls(student) as calls:
        for x_shape, w_shape, dtype, sizes in (
            ((3, 2, 7, 5), (5, 2, 2, 4), np.float64, {}),
            ((2, 3, 10, 6), (4, 3, 4, 2), np.float32, {"stride": (3, 2)}),
            ((2, 3, 6, 9), (4, 3, 4, 3), np.float64, {"stride": (2, 5), "padding": (3, 2)}),
            ((2, 1, 8, 5), (3, 1, 4, 1), np.float64, {"stride": 2, "padding": np.int64(2)}),
        ):
            case = draw_convolution(rng, x_shape, w_shape, dtype, **sizes)
            case = Convolution(sliced(case.x), transposed(case.w), case.b, sizes)
            check_convolution(calls, oracle, case, "other shapes", fast=True)
        inputs = (draw_bytes(rng, shape, np.int16) for shape in ((3, 2, 5, 4), (2, 2, 3, 2), (2,)))
        check_convolution(calls, oracle, Convolution(*inputs), "integers", fast=True)
        first, second = (draw_convolution(rng, (1, 3, 4, 6), (2, 3, 2, 3)) for _ in range(2))
        check_convolutions_stay_apart(calls, oracle, first, second, ((2, 1), (0, 1)), fast=True)
        calls.unchanged("conv2d_forward_fast", *first.inputs)


@weight(1)
@number("1.6")
def test_conv2d_backward_fast_is_right_for_other_shapes(student, rng, oracle):
    """Strides, paddings, float32, integers and views; each pass uses its own cache."""
    with Calls(student) as calls:
        for x_shape, w_shape, dtype, sizes in (
            ((3, 2, 7, 5), (5, 2, 2, 4), np.float64, {}),
            ((2, 3, 10, 6), (4, 3, 4, 2), np.float32, {"stride": (3, 2)}),
            ((2, 3, 6, 9), (4, 3, 4, 3), np.float64, {"stride": (2, 5), "padding": (3, 2)}),
            ((2, 1, 8, 5), (3, 1, 4, 1), np.float64, {"stride": 2, "padding": 2}),
        ):
            case = draw_convolution(rng, x_shape, w_shape, dtype, **sizes)
            check_convolution_gradients(
                calls, oracle, rng, case, "other shapes", fast=True, view=sliced
            )
        inputs = (draw_bytes(rng, shape, np.int16) for shape in ((3, 2, 5, 4), (2, 2, 3, 2), (2,)))
        check_convolution_gradients(calls, oracle, rng, Convolution(*inputs), "integers", fast=True)
        first, second = (draw_convolution(rng, (1, 3, 4, 6), (2, 3, 2, 3)) for _ in range(2))
        sizes = ((2, 1), (0, 1))
        check_convolution_caches_stay_apart(calls, oracle, rng, first, second, sizes, fast=True)
        cache = cache_of(calls, "conv2d_forward_fast", first.inputs)
        dout = rng.normal(size=(1, 2, 3, 4))
        calls.unchanged("conv2d_backward_fast", dout, cache)


@weight(2)
@number("1.6")
@tags("timing")
def test_fast_convolution_is_ten_times_as_fast_as_a_loop_on_other_shapes(student, rng, oracle):
    """On another image and kernel of about that size: 10 times faster, forward and backward."""
    check_fast(student, oracle, rng, (1, 1, 71, 102), (1, 1, 3, 2))


@weight(1)
@number("1.7")
def test_parameters_are_counted_right_for_any_layer(student, rng):
    """Weights and biases of convolutions and dense layers of any size."""
    convolutions, layers = [], []
    for _ in range(20):
        c_in, c_out, kh, kw = (int(size) for size in rng.integers(1, 30, size=4))
        for bias in (True, False):
            flag = () if bias else (False,)
            for kernel, area in (((kh, kw), kh * kw), (kh, kh * kh)):
                expected = c_in * area * c_out + bias * c_out
                convolutions.append(((c_in, c_out, kernel, *flag), expected))
            layers.append(((c_in, c_out, *flag), c_in * c_out + bias * c_out))
    what = "the number of a convolution's parameters"
    with Calls(student) as calls:
        for arguments, expected in convolutions:
            check_count(calls, "conv_parameters", arguments, expected, what)
        what = "the number of a dense layer's parameters"
        for arguments, expected in layers:
            check_count(calls, "linear_parameters", arguments, expected, what)


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
def test_q3_the_most_upright_digit_is_found(lab, oracle):
    """Lab, question 3: the digit with the largest ratio of upright to level edges."""
    check_number(lab, "q3_digit", most_upright_digit(oracle))


@weight(1)
@number("1.8")
def test_q5_three_kernels_make_one_of_the_right_size(lab):
    """Lab, question 5: the width of one kernel that does the work of three."""
    check_number(lab, "q5_size", 1 + 3 * (3 - 1))


@weight(1)
@number("1.9")
def test_q9_what_a_shift_does_with_stride_two(lab):
    """Lab, question 9: what becomes of a map with stride 2 when the picture is shifted by one."""
    check_choice(lab, "q9_shift", "c", ("a", "b", "c", "d"))


@weight(2)
@number("1.9")
def test_q10_the_second_map_sees_the_right_number_of_pixels(lab):
    """Lab, question 10: the pixels that a place of the second map sees."""
    check_number(lab, "q10_field", 3 + 3 * (3 - 1))
