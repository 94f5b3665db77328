"""What the tests of assignment 2 share, and how one case of exercises 2.1 and 2.2 is checked."""

from dataclasses import dataclass

import numpy as np

from common.student_code.values import Handle
from common.testing.checks import check_float, check_refused, check_unchanged
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import call_each, write_into

ROW_AXES = ("image", "feature")
LOGIT_AXES = ("image", "class")


# How inputs are drawn


@dataclass(frozen=True)
class Sizes:
    """The sizes of a LeNet, and the shapes that follow from them."""

    image_size: int
    filters: tuple[int, int]
    kernel: int
    hidden: int
    classes: int

    @property
    def shapes(self):
        first, second = self.filters
        side = self.image_size
        for _ in range(2):
            side = (side - self.kernel + 1) // 2
        return {
            "conv1.w": (first, 1, self.kernel, self.kernel),
            "conv1.b": (first,),
            "conv2.w": (second, first, self.kernel, self.kernel),
            "conv2.b": (second,),
            "dense1.w": (second * side * side, self.hidden),
            "dense1.b": (self.hidden,),
            "dense2.w": (self.hidden, self.classes),
            "dense2.b": (self.classes,),
        }


def draw_weights(rng, sizes):
    """Weights of a size that keeps signals alive, and biases that are far from 0."""
    weights = {}
    for name, shape in sizes.shapes.items():
        if name.endswith(".b"):
            weights[name] = rng.uniform(0.2, 0.6, size=shape) * rng.choice([-1, 1], size=shape)
        else:
            weights[name] = rng.normal(size=shape) * np.sqrt(2 / fan_in_of(shape))
    return weights


def fan_in_of(shape):
    """How many numbers go into one output of a layer whose w has that shape."""
    return shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))


def draw_quarters(rng, shape):
    """Multiples of 1/4 up to 1: sums of products are exact in float32 too.

    So no value lies within rounding of a relu's or a pooling's edge without lying on it.
    """
    return rng.integers(-4, 5, size=shape) / 4


def draw_images(rng, n, image_size):
    return rng.normal(size=(n, 1, image_size, image_size))


def draw_labels(rng, n, classes):
    return rng.integers(classes, size=n)


def draw_seed(rng):
    return int(rng.integers(2**31))


def generator(rng):
    """A generator to hand in: its seed comes from the test's own."""
    return np.random.default_rng(draw_seed(rng))


# What every exercise needs


def check_named(arrays, expected, what, tolerance=None):
    """A dict has exactly the expected names, and under each the expected array."""
    check_names(arrays, expected, what)
    for name, array in expected.items():
        assert_close(arrays[name], array, what=f"{what}: {name}", tolerance=tolerance)


def check_names(arrays, names, what):
    check(isinstance(arrays, dict), f"{what} must be a dict of arrays by name.")
    missing = [name for name in names if name not in arrays]
    check(not missing, f"{what} have no {', '.join(missing)}.")
    extra = [str(name) for name in arrays if name not in names]
    check(
        not extra,
        f"{what} have names that the handout doesn't give.",
        f"These are {', '.join(extra)}.",
    )


def plain_copy(value, what):
    """A copy by value of a student's state, which must be plain data."""
    if isinstance(value, dict):
        return {key: plain_copy(item, what) for key, item in value.items()}
    if isinstance(value, tuple | list):
        kind = tuple if isinstance(value, tuple) else list
        return kind(plain_copy(item, what) for item in value)
    plain = value is None or isinstance(value, int | float | str | np.ndarray | np.number | np.bool)
    check(
        plain,
        f"{what} must be plain data: dicts, lists and tuples of arrays, numbers, strings and None.",
    )
    return value


# Exercise 2.1


def check_forward(student, name, args, expected, *, situation, axes=None):
    """The output of a layer; returns its cache."""
    out, cache = unpack(getattr(student, f"{name}_forward")(*args), 2, f"{name}_forward")
    assert_close(out, expected, what=f"out ({situation})", axes=axes)
    return cache


def check_relu_backward(student, rng, x, situation, *, view=None):
    """dx of a relu, under a random dout."""
    dout = rng.normal(size=x.shape).astype(x.dtype)
    expected = np.where(x > 0, dout, 0).astype(x.dtype)
    _, cache = unpack(student.relu_forward(x), 2, "relu_forward")
    dx = student.relu_backward(dout if view is None else view(dout), cache)
    assert_close(dx, expected, what=f"dx ({situation})")


def draw_dense(rng, n, d_in, d_out, *, dtype=np.float64):
    """x, w and b of a dense layer."""
    shapes = ((n, d_in), (d_in, d_out), (d_out,))
    return tuple(draw_exact(rng, shape, dtype) for shape in shapes)


def draw_exact(rng, shape, dtype):
    """Any numbers in float64; in float32 such that sums which nearly cancel are exact."""
    return (draw_quarters if dtype == np.float32 else draw_normal)(rng, shape).astype(dtype)


def draw_normal(rng, shape):
    return rng.normal(size=shape)


def check_linear(student, oracle, inputs, situation):
    """The output of a dense layer is PyTorch's."""
    expected = oracle.linear(*inputs)
    check_forward(student, "linear", inputs, expected, situation=situation, axes=ROW_AXES)


def check_linear_gradients(student, oracle, rng, inputs, *, situation, view=None):
    """dx, dw and db of a dense layer are PyTorch's under a random dout."""
    x, _, b = inputs
    dout = draw_exact(rng, (len(x), len(b)), x.dtype)
    expected = oracle.linear_gradients(*inputs, dout)
    _, cache = unpack(student.linear_forward(*inputs), 2, "linear_forward")
    dout = dout if view is None else view(dout)
    gradients = unpack(student.linear_backward(dout, cache), 3, "linear_backward")
    compare_linear_gradients(gradients, expected, situation)


def compare_linear_gradients(gradients, expected, situation):
    for name, actual, wanted in zip(("dx", "dw", "db"), gradients, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})")


def check_flatten(student, rng, shape, situation, *, view=None, dtype=np.float64):
    """Rows in row-major order, and back again."""
    x = rng.normal(size=shape).astype(dtype)
    rows = x.reshape(len(x), -1)
    given = x if view is None else view(x)
    cache = check_forward(student, "flatten", (given,), rows, situation=situation, axes=ROW_AXES)
    dx = rng.normal(size=shape).astype(dtype)
    dout = dx.reshape(len(x), -1)
    result = student.flatten_backward(dout if view is None else view(dout), cache)
    assert_close(result, dx, what=f"dx ({situation})")


def check_layers_stay_apart(student, oracle, rng, shape, *, dense):
    """Two forward calls, then three backward calls that use the first cache twice."""
    xs = [rng.normal(size=shape) for _ in range(2)]
    douts = [rng.normal(size=shape) for _ in range(2)]
    caches = forward_caches(student, "relu", [(x,) for x in xs])
    order = (0, 1, 0)
    results = call_each(student.relu_backward, [(douts[i], caches[i]) for i in order])
    for i, dx in zip(order, results, strict=True):
        expected = np.where(xs[i] > 0, douts[i], 0)
        assert_close(dx, expected, what="dx of relu (several calls in a row)")
    check_unchanged("relu_forward", student.relu_forward, xs[0])
    check_unchanged("relu_backward", student.relu_backward, douts[0], caches[0])

    inputs = [draw_dense(rng, *dense) for _ in range(2)]
    douts = [rng.normal(size=(dense[0], dense[2])) for _ in range(2)]
    expected = [
        oracle.linear_gradients(*given, dout) for given, dout in zip(inputs, douts, strict=True)
    ]
    caches = forward_caches(student, "linear", inputs)
    results = call_each(student.linear_backward, [(douts[i], caches[i]) for i in order])
    for i, result in zip(order, results, strict=True):
        gradients = unpack(result, 3, "linear_backward")
        compare_linear_gradients(gradients, expected[i], "several calls in a row")
    check_unchanged("linear_forward", student.linear_forward, *inputs[0])
    check_unchanged("linear_backward", student.linear_backward, douts[0], caches[0])

    shapes = (shape, shape[::-1])
    caches = forward_caches(student, "flatten", [(rng.normal(size=shape),) for shape in shapes])
    dxs = [rng.normal(size=shape) for shape in shapes]
    calls = [(dxs[i].reshape(len(dxs[i]), -1), caches[i]) for i in order]
    for i, dx in zip(order, call_each(student.flatten_backward, calls), strict=True):
        assert_close(dx, dxs[i], what="dx of flatten (several calls in a row)")
    check_unchanged("flatten_forward", student.flatten_forward, dxs[0])
    check_unchanged("flatten_backward", student.flatten_backward, *calls[0])


def forward_caches(student, name, calls):
    results = call_each(getattr(student, f"{name}_forward"), calls)
    return [unpack(result, 2, f"{name}_forward")[1] for result in results]


# Exercise 2.2


def unlikely_labels(logits):
    """The label with the smallest logit for each image.

    A loss near 0 is the small difference of large numbers: much of it is noise.
    """
    return logits.argmin(axis=1)


def draw_surprising_labels(rng, logits):
    """Random labels, of which the first is unlikely, so that the loss is not near 0."""
    labels = draw_labels(rng, *logits.shape)
    labels[0] = unlikely_labels(logits)[0]
    return labels


def check_cross_entropy(student, logits, labels, expected, *, situation, view=None, tolerance=None):
    """Loss and gradient are as expected; the loss is a float."""
    given = logits if view is None else view(logits)
    result = student.softmax_cross_entropy(given, labels)
    loss, dlogits = unpack(result, 2, "softmax_cross_entropy")
    wanted_loss, wanted = expected
    check_float(loss, f"loss ({situation})")
    # A loss comes in the precision of the logits, whatever the type that it is told in.
    precision = 1e-4 if logits.dtype == np.float32 else None
    assert_close(loss, float(wanted_loss), what=f"loss ({situation})", tolerance=precision)
    assert_close(
        dlogits, wanted, what=f"dlogits ({situation})", axes=LOGIT_AXES, tolerance=tolerance
    )


def check_bad_labels(student, rng, n, classes):
    """Labels that don't fit the logits are refused, others aren't."""
    logits, labels = rng.normal(size=(n, classes)), draw_labels(rng, n, classes)
    function = student.softmax_cross_entropy
    too_large, negative = labels.copy(), labels.copy()
    too_large[-1], negative[0] = classes, -1
    for situation, given, wanted in (
        ("a negative label", logits, negative),
        ("a label that is too large", logits, too_large),
        ("labels that are floats", logits, labels.astype(np.float64)),
        ("one label too few", logits, labels[:-1]),
        ("labels of two axes", logits, labels[:, None]),
        ("an empty batch", logits[:0], labels[:0]),
    ):
        check_refused(situation, function, given, wanted)
    unpack(function(logits, labels), 2, "softmax_cross_entropy")


# Exercises 2.3 and 2.6: the networks


def build(student, kind, rng, weights=None, **sizes):
    """A LeNet or an MLP of the student's, with the given weights if there are any."""
    model = getattr(student, kind)(generator(rng), **sizes)
    check(isinstance(model, Handle), f"{kind}(...) must make a model.")
    if weights is not None:
        check_names(model.parameters, weights, "parameters")
        write_into(model, "parameters", weights)
    return model


def build_drawn(student, kind, rng, sizes, *, dtype="float64", weights=None):
    """A model with drawn weights, and these weights."""
    weights = draw_weights(rng, sizes) if weights is None else weights
    weights = {name: array.astype(dtype) for name, array in weights.items()}
    return build(student, kind, rng, weights, dtype=dtype, **vars(sizes)), weights
