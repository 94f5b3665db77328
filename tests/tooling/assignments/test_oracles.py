"""Tests assignment 1's oracle against plain loops and finite differences."""

import numpy as np
import pytest

from common.training.numeric_gradients import numeric_gradient
from tests.a1_convolution import oracle

pytestmark = pytest.mark.usefixtures("one_thread")
CONVOLUTIONS = {
    "plain": ((2, 3, 4, 5), (2, 3, 2, 3), 1, 0),
    "stride": ((2, 1, 6, 5), (3, 1, 3, 2), (2, 3), 0),
    "padding": ((1, 2, 3, 4), (2, 2, 3, 2), 1, (2, 1)),
    "both, leftover pixels": ((2, 2, 5, 6), (1, 2, 2, 3), (2, 3), (1, 0)),
    "sizes of one": ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0),
}
WINDOWS = {
    "plain": ((2, 3, 4, 6), (2, 3), None, 0),
    "overlap": ((2, 1, 5, 4), (3, 2), 1, 0),
    "gaps": ((1, 2, 7, 8), 2, (3, 4), 0),
    "padding": ((2, 2, 4, 5), (2, 3), (1, 2), 1),
}
PATCHES = {name: case for name, case in WINDOWS.items() if name != "plain"}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def by_case(cases):
    kernel = "w_shape" if cases is CONVOLUTIONS else "kernel_size"
    return pytest.mark.parametrize(
        ("x_shape", kernel, "stride", "padding"), cases.values(), ids=cases
    )


def pair(size):
    return (size, size) if isinstance(size, int) else size


def patches(x, kernel_size, stride, padding, fill=0.0):
    """Each position (r, s) of a window and the patch under it, straight from the definition."""
    (kh, kw), (sh, sw), (ph, pw) = pair(kernel_size), pair(stride or kernel_size), pair(padding)
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=fill)
    rows = range(0, padded.shape[2] - kh + 1, sh)
    columns = range(0, padded.shape[3] - kw + 1, sw)
    for r, top in enumerate(rows):
        for s, left in enumerate(columns):
            yield (r, s), padded[:, :, top : top + kh, left : left + kw]


def pooled(x, kernel_size, stride, padding, fill, reduce):
    found = {
        position: reduce(patch, axis=(2, 3))
        for position, patch in patches(x, kernel_size, stride, padding, fill)
    }
    height, width = (1 + max(position[axis] for position in found) for axis in (0, 1))
    return np.stack([np.stack([found[r, s] for s in range(width)], -1) for r in range(height)], -2)


def distinct(rng, shape):
    """Values far enough apart that a finite step never changes which one is the largest."""
    return rng.permutation(int(np.prod(shape))).reshape(shape) / 8 - 3.0


def close(actual, expected, bar=1e-8):
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= bar * np.abs(expected).max()


@by_case(CONVOLUTIONS)
def test_convolution_is_the_sum_of_its_definition(rng, x_shape, w_shape, stride, padding):
    x, w, b = rng.normal(size=x_shape), rng.normal(size=w_shape), rng.normal(size=w_shape[0])
    out = oracle.conv2d(x, w, b, stride, padding)
    count = 0
    for (r, s), patch in patches(x, w_shape[2:], stride, padding):
        close(out[:, :, r, s], np.einsum("ncpq,kcpq->nk", patch, w) + b)
        count += 1
    assert out.shape[2] * out.shape[3] == count


@by_case(CONVOLUTIONS)
def test_gradients_of_convolution_are_finite_differences(rng, x_shape, w_shape, stride, padding):
    inputs = [rng.normal(size=shape) for shape in (x_shape, w_shape, w_shape[:1])]
    dout = rng.normal(size=oracle.conv2d(*inputs, stride, padding).shape)
    gradients = oracle.conv2d_gradients(*inputs, dout, stride, padding)
    assert len(gradients) == 3
    for index, gradient in enumerate(gradients):

        def moved(value, index=index):
            changed = [*inputs[:index], value, *inputs[index + 1 :]]
            return oracle.conv2d(*changed, stride, padding)

        close(gradient, numeric_gradient(moved, inputs[index], dout))


@by_case(WINDOWS)
def test_pooling_is_the_largest_or_the_mean_of_each_window(
    rng, x_shape, kernel_size, stride, padding
):
    x = distinct(rng, x_shape)
    largest = pooled(x, kernel_size, stride, padding, -np.inf, np.max)
    close(oracle.max_pool2d(x, kernel_size, stride, padding), largest)
    close(
        oracle.avg_pool2d(x, kernel_size, stride, padding),
        pooled(x, kernel_size, stride, padding, 0, np.mean),
    )


@pytest.mark.parametrize("kind", ["max", "avg"])
@by_case(WINDOWS)
def test_gradients_of_pooling_are_finite_differences(
    rng, kind, x_shape, kernel_size, stride, padding
):
    forward = getattr(oracle, f"{kind}_pool2d")
    gradient = getattr(oracle, f"{kind}_pool2d_gradient")
    x = distinct(rng, x_shape)
    dout = rng.normal(size=forward(x, kernel_size, stride, padding).shape)
    expected = numeric_gradient(lambda moved: forward(moved, kernel_size, stride, padding), x, dout)
    close(gradient(x, dout, kernel_size, stride, padding), expected)


def test_the_first_in_row_major_order_gets_the_gradient_of_a_tie():
    x = np.array([[[[1.0, 5.0, 0.0], [5.0, 5.0, 0.0]]]])
    dx = oracle.max_pool2d_gradient(x, np.array([[[[7.0]]]]), (2, 3))
    np.testing.assert_array_equal(dx, [[[[0, 7, 0], [0, 0, 0]]]])


@by_case(PATCHES)
def test_im2col_lays_out_patches_and_col2im_is_its_gradient(
    rng, x_shape, kernel_size, stride, padding
):
    x = rng.normal(size=x_shape)
    cols = oracle.im2col(x, kernel_size, stride, padding)
    expected = [patch.reshape(len(x), -1) for _, patch in patches(x, kernel_size, stride, padding)]
    close(cols, np.stack(expected, -1))
    dcols = rng.normal(size=cols.shape)
    by_differences = numeric_gradient(
        lambda moved: oracle.im2col(moved, kernel_size, stride, padding), x, dcols
    )
    close(oracle.col2im(dcols, x_shape, kernel_size, stride, padding), by_differences)


def test_answers_have_the_types_that_the_handout_promises(rng):
    x, w, b = (rng.normal(size=shape) for shape in ((1, 2, 4, 4), (2, 2, 2, 2), (2,)))
    whole = (rng.integers(-9, 9, size=array.shape) for array in (x, w, b))
    single = [array.astype(np.float32) for array in (x, w, b)]
    assert oracle.conv2d(x, w, b).dtype == np.float64
    assert oracle.conv2d(*single).dtype == np.float32
    assert oracle.conv2d(*whole).dtype == np.float64
    assert oracle.conv2d(single[0], w, b).dtype == np.float64
    for kind in (np.float32, np.int16):
        assert oracle.max_pool2d(x.astype(kind), 2).dtype == kind
        assert oracle.im2col(x.astype(kind), 2).dtype == kind
    assert oracle.avg_pool2d(single[0], 2).dtype == np.float32
    assert oracle.avg_pool2d(x.astype(np.int8), 2).dtype == np.float64


def test_the_oracle_leaves_its_inputs_alone(rng):
    x, w, b = (rng.normal(size=shape) for shape in ((1, 2, 4, 4), (2, 2, 2, 2), (2,)))
    before = [array.copy() for array in (x, w, b)]
    oracle.conv2d_gradients(x[::-1], w, b, np.ones((1, 2, 3, 3)))
    for array, copy in zip((x, w, b), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_finite_differences_are_right_where_the_gradient_is_known(rng):
    x, dout = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    close(numeric_gradient(np.square, x, dout), 2 * x * dout)
    matrix, upstream = rng.normal(size=(2, 4)), rng.normal(size=(3, 4))
    close(numeric_gradient(lambda value: value @ matrix, x, upstream), upstream @ matrix.T)
