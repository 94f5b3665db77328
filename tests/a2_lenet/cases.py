"""What the public and the hidden tests of assignment 2 share: how one case is checked."""

import re
from dataclasses import dataclass

import numpy as np

from common.comparison import assert_close, assert_equal, check, unpack
from common.data import load_mnist
from common.operations import call_each, changed_inputs, write_into
from common.values import Handle

IMAGE_AXES = ("image", "channel", "row", "column")
ROW_AXES = ("image", "feature")
LOGIT_AXES = ("image", "class")
MAP_AXES = ("filter", "row", "column")


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


@dataclass(frozen=True)
class MLPSizes:
    """The sizes of an MLP, and the shapes that follow from them."""

    image_size: int
    hidden: int
    classes: int

    @property
    def shapes(self):
        return {
            "dense1.w": (self.image_size**2, self.hidden),
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


def draw_quarters(rng, shape):
    """Multiples of 1/4 up to 1: sums of products are exact in float32 too.

    So no value lies within rounding of a relu's or a pooling's edge without lying on it.
    """
    return rng.integers(-4, 5, size=shape) / 4


def draw_quarter_weights(rng, sizes):
    """Weights that make sums of products with such images exact in float32, up to the logits.

    The last weights are any small numbers: equal ones would let gradients cancel to mere noise,
    and large ones would leave nothing of most probabilities.
    """
    weights = {name: draw_quarters(rng, shape) for name, shape in sizes.shapes.items()}
    return weights | {"dense2.w": 0.3 * rng.normal(size=sizes.shapes["dense2.w"])}


def draw_images(rng, n, image_size):
    return rng.normal(size=(n, 1, image_size, image_size))


def draw_labels(rng, n, classes):
    return rng.integers(classes, size=n)


def draw_seed(rng):
    return int(rng.integers(2**31))


def generator(rng):
    """A generator to hand in: its seed comes from the test's own."""
    return np.random.default_rng(draw_seed(rng))


def sliced(array):
    """The same numbers as a view into a larger array, with gaps between them."""
    large = np.full((*array.shape[:-1], 2 * array.shape[-1]), 99, dtype=array.dtype)
    large[..., ::2] = array
    return large[..., ::2]


def transposed(array):
    """The same numbers, laid out in memory from the last axis to the first."""
    return np.ascontiguousarray(array.T).T


# What every exercise needs


def check_refused(situation, function, *args, **kwargs):
    """The call raises ValueError."""
    try:
        function(*args, **kwargs)
    except ValueError:
        return
    check(False, f"There should be a ValueError for {situation}, but nothing was raised.")


def check_unchanged(name, function, *args):
    """The call leaves its array arguments as they were."""
    changed = changed_inputs(function, *args)
    check(not changed, f"{name} changes an input.", f"It changes {', '.join(changed)}.")


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


def check_is_float(value, what):
    """A Python float, or NumPy's float64, which is one."""
    check(isinstance(value, float), f"{what} must be a float.", f"It is a {type(value).__name__}.")


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


def check_forward(student, name, args, expected, situation, axes=None):
    """The output of a layer; returns its cache."""
    out, cache = unpack(getattr(student, f"{name}_forward")(*args), 2, f"{name}_forward")
    assert_close(out, expected, what=f"out ({situation})", axes=axes)
    return cache


def check_relu_backward(student, rng, x, situation, view=None):
    """dx of a relu, under a random dout."""
    dout = rng.normal(size=x.shape).astype(x.dtype)
    expected = np.where(x > 0, dout, 0).astype(x.dtype)
    _, cache = unpack(student.relu_forward(x), 2, "relu_forward")
    dx = student.relu_backward(dout if view is None else view(dout), cache)
    assert_close(dx, expected, what=f"dx ({situation})")


def draw_dense(rng, n, d_in, d_out, dtype=np.float64):
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
    check_forward(student, "linear", inputs, expected, situation, axes=ROW_AXES)


def check_linear_gradients(student, oracle, rng, inputs, situation, view=None):
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


def check_flatten(student, rng, shape, situation, view=None, dtype=np.float64):
    """Rows in row-major order, and back again."""
    x = rng.normal(size=shape).astype(dtype)
    rows = x.reshape(len(x), -1)
    given = x if view is None else view(x)
    cache = check_forward(student, "flatten", (given,), rows, situation, axes=ROW_AXES)
    dx = rng.normal(size=shape).astype(dtype)
    dout = dx.reshape(len(x), -1)
    result = student.flatten_backward(dout if view is None else view(dout), cache)
    assert_close(result, dx, what=f"dx ({situation})")


def check_layers_stay_apart(student, oracle, rng, shape, dense):
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


def check_cross_entropy(student, logits, labels, expected, situation, view=None, tolerance=None):
    """Loss and gradient are as expected; the loss is a float."""
    given = logits if view is None else view(logits)
    result = student.softmax_cross_entropy(given, labels)
    loss, dlogits = unpack(result, 2, "softmax_cross_entropy")
    wanted_loss, wanted = expected
    check_is_float(loss, f"loss ({situation})")
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
        ("a label that is too large", logits, too_large),
        ("a negative label", logits, negative),
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


def build_drawn(student, kind, rng, sizes, dtype="float64", weights=None):
    """A model with drawn weights, and these weights."""
    weights = draw_weights(rng, sizes) if weights is None else weights
    weights = {name: array.astype(dtype) for name, array in weights.items()}
    return build(student, kind, rng, weights, dtype=dtype, **vars(sizes)), weights


def check_first_parameters(student, kind, rng, sizes, dtype):
    """Names, shapes and dtype are those of the handout, and every bias is 0."""
    model = build(student, kind, rng, dtype=dtype, **vars(sizes))
    parameters = model.parameters
    check_names(parameters, sizes.shapes, "parameters")
    for name, shape in sizes.shapes.items():
        array = parameters[name]
        right = isinstance(array, np.ndarray)
        check(right, f"{name} must be a NumPy array.")
        check(
            array.shape == shape,
            f"{name} has a wrong shape.",
            f"It is {array.shape}; it should be {shape}.",
            value=array,
        )
        check(array.dtype == dtype, f"{name} must have the dtype of the model.", value=array)
        if name.endswith(".b"):
            check(not array.any(), f"{name} must be all zeros at first.", value=array)


# How far the measured variance of so many normal draws may be from the true one, as a part of it.
# Chernoff's bound on the chance that right code is further off: exp(-n/2 * (t - log(1 + t))) above
# and less below. For n = 1,500 and t = 0.25 that is 2e-9. A factor of 2, the usual mistake, is far.
SPREAD = 0.25


def check_normal(draws, fan_in, what):
    """Draws have mean 0, variance 2 / fan_in and the tails of a normal distribution.

    With 1,500 draws or more, the chance that right code fails is below 1e-7: the mean may be 6 of
    its standard deviations off (2e-9), the variance as said above (4e-9), and the share of draws
    beyond two standard deviations, 4.6 %, may be anything from 0.5 % to 10 % (below 1e-12).
    """
    draws = draws.astype(np.float64).ravel()
    deviation = np.sqrt(2 / fan_in)
    check(
        bool(np.isfinite(draws).all()) and abs(draws.mean()) <= 6 * deviation / np.sqrt(draws.size),
        f"{what} must have mean 0.",
        f"The mean of {draws.size} entries is {draws.mean():.3g}.",
    )
    ratio = np.mean(draws**2) / deviation**2
    check(
        1 - SPREAD <= ratio <= 1 + SPREAD,
        f"{what} must have the standard deviation sqrt(2 / fan_in).",
        f"It is {np.sqrt(ratio):.3f} times that, in {draws.size} entries.",
    )
    beyond = np.mean(np.abs(draws) > 2 * deviation)
    check(
        0.005 <= beyond <= 0.1,
        f"{what} must be normal draws.",
        f"{beyond:.1%} of them lie more than two standard deviations from 0; 4.6 % should.",
    )
    # float32 has few enough numbers that a draw comes twice now and then, but not often.
    check(np.unique(draws).size > 0.9 * draws.size, f"{what} must be independent draws.")


def check_he_normal(student, rng, shape, fan_in, dtype):
    """Shape, dtype and distribution, and that the generator alone decides."""
    seed = draw_seed(rng)
    draws = student.he_normal(np.random.default_rng(seed), shape, fan_in, dtype)
    what = "what he_normal returns"
    check(isinstance(draws, np.ndarray), f"{what} must be a NumPy array.")
    check(draws.shape == shape, f"{what} has a wrong shape.", f"It is {draws.shape}.", value=draws)
    check(draws.dtype == dtype, f"{what} has a wrong dtype.", f"It is {draws.dtype}.", value=draws)
    check_normal(draws, fan_in, what)
    again = student.he_normal(np.random.default_rng(seed), shape, fan_in, dtype)
    check(np.array_equal(draws, again), "he_normal must draw the same from the same generator.")
    other = student.he_normal(np.random.default_rng(seed + 1), shape, fan_in, dtype)
    check(not np.array_equal(draws, other), "he_normal must draw from the generator it is given.")


def check_first_weights(student, kind, rng, sizes):
    """Each w has the spread of its own fan_in, and no two of them hold the same draws.

    Every w has 1,500 entries or more. Besides what check_normal says, right code fails if two of
    at most four weights are correlated by 0.25 or more: 6 * 2 * exp(-1500 * 0.25**2 / 2) = 5e-20.
    """
    model = build(student, kind, rng, **vars(sizes))
    parameters = model.parameters
    check_names(parameters, sizes.shapes, "parameters")
    heads = []
    for name, shape in sizes.shapes.items():
        if name.endswith(".b"):
            continue
        check(
            isinstance(parameters[name], np.ndarray) and parameters[name].shape == shape,
            f"{name} has a wrong shape.",
        )
        check_normal(parameters[name], fan_in_of(shape), name)
        heads.append(parameters[name].ravel()[:1500].astype(np.float64))
    correlations = np.corrcoef(heads) - np.eye(len(heads))
    check(np.abs(correlations).max() < 0.25, "Two weights hold the same draws.")


def fan_in_of(shape):
    """How many numbers go into one output of a layer whose w has that shape."""
    return shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))


def check_network(student, oracle, rng, kind, sizes, n, situation, view=None):
    """The logits of a model are PyTorch's; returns the model and what it was asked."""
    model, weights = build_drawn(student, kind, rng, sizes)
    x = draw_images(rng, n, sizes.image_size)
    expected = getattr(oracle, kind.lower())(x, *weights.values())
    logits = model.forward(x if view is None else view(x))
    assert_close(logits, expected, what=f"logits ({situation})", axes=LOGIT_AXES)


def check_network_gradients(student, oracle, rng, kind, sizes, n, situation, view=None):
    """The loss of a model and the gradient of each weight are PyTorch's."""
    model, weights = build_drawn(student, kind, rng, sizes)
    x = draw_images(rng, n, sizes.image_size)
    logits = getattr(oracle, kind.lower())(x, *weights.values())
    labels = draw_surprising_labels(rng, logits)
    expected = getattr(oracle, f"{kind.lower()}_gradients")(x, labels, *weights.values())
    result = model.loss_and_gradients(x if view is None else view(x), labels)
    compare_loss_and_gradients(result, expected, weights, situation)


def compare_loss_and_gradients(result, expected, names, situation, precision=None):
    loss, gradients = unpack(result, 2, "loss_and_gradients")
    check_is_float(loss, f"loss ({situation})")
    assert_close(loss, float(expected[0]), what=f"loss ({situation})", tolerance=precision)
    wanted = dict(zip(names, expected[1:], strict=True))
    check_named(gradients, wanted, f"gradients ({situation})")


def check_network_types(student, oracle, rng, kind, sizes, n):
    """Logits and gradients have the dtype of the model, whatever that of the images."""
    for dtype, image_type in (
        ("float32", "float64"),
        ("float32", "uint8"),
        ("float64", "float32"),
    ):
        weights = draw_quarter_weights(rng, sizes)
        model, weights = build_drawn(student, kind, rng, sizes, dtype, weights)
        x = draw_quarters(rng, (n, 1, sizes.image_size, sizes.image_size))
        x = (np.abs(4 * x) if image_type == "uint8" else x).astype(image_type)
        situation = f"a {dtype} model, {image_type} images"
        expected = getattr(oracle, kind.lower())(x, *weights.values())
        labels = unlikely_labels(expected)
        assert_close(model.forward(x), expected, what=f"logits ({situation})", axes=LOGIT_AXES)
        expected = getattr(oracle, f"{kind.lower()}_gradients")(x, labels, *weights.values())
        result = model.loss_and_gradients(x, labels)
        precision = 1e-4 if dtype == "float32" else None
        compare_loss_and_gradients(result, expected, weights, situation, precision)


def check_network_keeps_apart(student, oracle, rng, kind, sizes, n):
    """Two models, new weights between calls, several calls in a row: nothing is mixed up."""
    gradients_of = getattr(oracle, f"{kind.lower()}_gradients")
    model, weights = build_drawn(student, kind, rng, sizes)
    other, other_weights = build_drawn(student, kind, rng, sizes)
    calls = [
        (draw_images(rng, n + more, sizes.image_size), draw_labels(rng, n + more, sizes.classes))
        for more in (0, 1)
    ]
    expected = [gradients_of(*call, *weights.values()) for call in calls]
    order = (0, 1, 0)
    results = call_each(model.loss_and_gradients, [calls[i] for i in order])
    for i, result in zip(order, results, strict=True):
        compare_loss_and_gradients(result, expected[i], weights, "several calls in a row")
    expected = gradients_of(*calls[0], *other_weights.values())
    result = other.loss_and_gradients(*calls[0])
    compare_loss_and_gradients(result, expected, weights, "a second model")
    check_named(model.parameters, weights, "parameters after several calls", tolerance=0.0)
    write_into(model, "parameters", other_weights)
    result = model.loss_and_gradients(*calls[0])
    compare_loss_and_gradients(result, expected, weights, "after new weights were written")
    check_unchanged("forward", model.forward, calls[0][0])
    check_unchanged("loss_and_gradients", model.loss_and_gradients, *calls[0])


def check_network_refuses(student, rng, kind, sizes, n):
    """Images of a wrong shape, empty batches and bad labels raise ValueError."""
    model, _ = build_drawn(student, kind, rng, sizes)
    x, labels = draw_images(rng, n, sizes.image_size), draw_labels(rng, n, sizes.classes)
    for situation, images in (
        ("images without their channel", x[:, 0]),
        ("images with two channels", np.repeat(x, 2, axis=1)),
        ("images with a row too few", x[:, :, 1:]),
        ("images that are too large", draw_images(rng, n, sizes.image_size + 1)),
        ("an empty batch", x[:0]),
    ):
        check_refused(situation, model.forward, images)
        check_refused(situation, model.loss_and_gradients, images, labels[: len(images)])
    check_refused("a label that is too large", model.loss_and_gradients, x, labels + sizes.classes)
    check_refused("one label too few", model.loss_and_gradients, x, labels[1:])
    unpack(model.loss_and_gradients(x, labels), 2, "loss_and_gradients")


# Exercise 2.4


SHAPES = {"conv.w": (2, 1, 3, 2), "dense.w": (4, 3), "dense.b": (5,)}
OPTIMIZERS = ("sgd_momentum", "adam")


def draw_arrays(rng, shapes, dtype="float64"):
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}


def draw_steps(rng, shapes, count, dtype="float64"):
    """The gradients of several steps, some of them much smaller than others."""
    steps = [draw_arrays(rng, shapes, dtype) for _ in range(count)]
    for gradients in steps:
        for array in gradients.values():
            array.flat[0] *= 1e-3
    return steps


def check_steps(student, oracle, rng, name, rates, asked, settings, shapes=SHAPES, dtype="float64"):
    """Several steps of an optimizer give PyTorch's parameters, after each of them.

    asked: the settings that are handed in; settings: all of them, in the oracle's order.
    """
    parameters = draw_arrays(rng, shapes, dtype)
    steps = draw_steps(rng, shapes, len(rates), dtype)
    ask = {"sgd_momentum": "sgd_steps", "adam": "adam_steps"}[name]
    expected = {
        key: getattr(oracle, ask)(array, np.stack([step[key] for step in steps]), rates, *settings)
        for key, array in parameters.items()
    }
    state = None
    for number, (gradients, rate) in enumerate(zip(steps, rates, strict=True)):
        result = getattr(student, name)(parameters, gradients, state, rate, **asked)
        parameters, state = unpack(result, 2, name)
        wanted = {key: array[number] for key, array in expected.items()}
        check_named(parameters, wanted, f"parameters after step {number + 1}")


def check_steps_have_no_side_effects(student, rng, name, shapes=SHAPES):
    """A step changes nothing that it was given, and what it returns is new.

    What a step returned is the student's own object when it is handed back in: so a step that
    writes into it is seen, because the next step from the same place ends elsewhere.
    """
    step = getattr(student, name)
    first, second = (draw_arrays(rng, shapes) for _ in range(2))
    parameters, state = unpack(step(first, second, None, 0.1), 2, name)
    gradients, _ = unpack(step(second, first, None, 0.2), 2, name)
    calls = [(parameters, gradients, state, 0.3), (parameters, first, state, 0.1)]
    results = call_each(step, [calls[0], calls[1], calls[0]])
    results = [unpack(result, 2, name) for result in results]
    check_names(results[0][0], shapes, "parameters")
    check_named(
        results[2][0], results[0][0], "parameters of a step that is repeated", tolerance=0.0
    )
    copied = plain_copy(state, "The state of an optimizer")
    by_value = dict(parameters), dict(gradients), copied, 0.3
    alone, alone_state = unpack(step(*by_value), 2, name)
    check_named(alone, results[0][0], "parameters of a step from a copied state", tolerance=0.0)
    # One step more, from the states of both: they must be the same too.
    after, _ = unpack(step(first, second, results[0][1], 0.2), 2, name)
    alone, _ = unpack(step(first, second, alone_state, 0.2), 2, name)
    check_named(alone, after, "parameters of the step after that", tolerance=0.0)


def check_steps_refuse(student, rng, name, shapes=SHAPES):
    """Gradients with other names or shapes are refused."""
    step = getattr(student, name)
    parameters, gradients = draw_arrays(rng, shapes), draw_arrays(rng, shapes)
    key = next(reversed(shapes))
    missing = {other: array for other, array in gradients.items() if other != key}
    for situation, given in (
        ("a gradient that is missing", missing),
        ("a gradient of no parameter", gradients | {"more.w": gradients[key]}),
        ("a gradient under another name", missing | {"other.b": gradients[key]}),
        ("a gradient of another shape", gradients | {key: gradients[key][:1]}),
    ):
        check_refused(situation, step, parameters, given, None, 0.1)
    unpack(step(parameters, gradients, None, 0.1), 2, name)


# Exercise 2.5


TINY = Sizes(image_size=8, filters=(2, 3), kernel=2, hidden=5, classes=4)


def check_pieces(pieces, n, batch_size):
    """Every number once, in pieces of the right size; returns the numbers in their order."""
    check(isinstance(pieces, list), "minibatches must return a list.")
    for piece in pieces:
        right = isinstance(piece, np.ndarray) and piece.ndim == 1 and piece.dtype.kind in "iu"
        check(right, "Each minibatch must be an integer array with one axis.")
    sizes = [len(piece) for piece in pieces]
    whole, rest = divmod(n, batch_size)
    expected = [batch_size] * whole + [rest] * bool(rest)
    check(
        sizes == expected,
        "The minibatches have wrong sizes.",
        f"They are {sizes}; they should be {expected}.",
    )
    order = np.concatenate(pieces)
    check(
        np.array_equal(np.sort(order), np.arange(n)),
        "Every number must be in exactly one minibatch.",
        f"These are not: {sorted(set(range(n)).symmetric_difference(order.tolist()))}",
        value=order,
    )
    return order


def check_is_shuffled(order, what):
    """An order of 2,000 numbers looks random.

    The chance that right code fails is below 1e-9: the correlation of place and number has a
    standard deviation of 0.022 and may be 0.15 (6.7 of them); a number is followed by a larger one
    half the time, with a standard deviation of 0.0065, and the share may be 0.4 to 0.6; and a
    number is followed by the next one about once (a Poisson count) and may be 20 times.
    """
    steps = np.diff(order)
    correlation = np.corrcoef(order, np.arange(order.size))[0, 1]
    random = (
        abs(correlation) < 0.15
        and 0.4 < np.mean(steps > 0) < 0.6
        and np.sum(steps == 1) < 20
        and np.sum(steps == -1) < 20
    )
    check(random, f"{what} must be in an order in which every place is equally likely.")


def make_data(student, images, labels, validation_images=None, validation_labels=None):
    """The student's Data; without validation images, the training images serve for both."""
    if validation_images is None:
        validation_images, validation_labels = images, labels
    return student.Data(images, labels, validation_images, validation_labels)


def history_numbers(history, name, count):
    """One list of a history, as an array of so many floats."""
    check(isinstance(history, dict), "train must return a dict.")
    check(name in history, f"The history has no {name}.")
    entries = history[name]
    right = isinstance(entries, list | tuple) and all(isinstance(one, float) for one in entries)
    check(right, f"history: {name} must be a list of floats.")
    check(
        len(entries) == count,
        f"history: {name} has too {'many' if len(entries) > count else 'few'} entries.",
        f"It has {len(entries)}; there should be {count}.",
    )
    return np.array(entries, dtype=np.float64)


EPOCH_ENTRIES = ("loss", "accuracy", "validation_loss", "validation_accuracy", "learning_rate")


@dataclass(frozen=True)
class FullBatchRun:
    """A run whose only mini-batch holds all images, so that no order matters, and its outcome."""

    images: np.ndarray
    labels: np.ndarray
    validation_images: np.ndarray
    first_weights: dict
    settings: dict
    step_loss: np.ndarray
    logits: np.ndarray  # (epochs, n, classes), after each epoch
    validation_logits: np.ndarray
    weights: np.ndarray  # (epochs, all parameters), after each epoch

    @property
    def epochs(self):
        return len(self.step_loss)

    def weights_after(self, epoch):
        ends = np.cumsum([array.size for array in self.first_weights.values()])
        parts = np.split(self.weights[epoch], ends[:-1])
        first = self.first_weights.items()
        return {
            name: part.reshape(array.shape)
            for (name, array), part in zip(first, parts, strict=True)
        }

    @property
    def rates(self):
        return self.settings["learning_rate"] * self.settings["decay"] ** np.arange(self.epochs)


def draw_full_batch_run(
    oracle, rng, optimizer, epochs, learning_rate, decay, best=None, n=7, sizes=TINY
):
    """Draw images, labels and weights, and ask PyTorch how the training goes.

    With `best`, draw again until no other epoch predicts the same labels as that one.
    """
    settings = {
        "optimizer": optimizer,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "decay": decay,
        "momentum": 0.8,
        "batch_size": n,
    }
    rates = tuple(learning_rate * decay**epoch for epoch in range(epochs))
    while True:
        images, validation_images = (draw_images(rng, count, sizes.image_size) for count in (n, 16))
        labels = draw_labels(rng, n, sizes.classes)
        weights = draw_weights(rng, sizes)
        outcome = oracle.lenet_training(
            images, labels, validation_images, rates, optimizer, 0.8, *weights.values()
        )
        given = (images, labels, validation_images, weights, settings)
        run = FullBatchRun(*given, *outcome)
        if best is None or is_single_best(run, best):
            return run


def is_single_best(run, best):
    """Whether the predictions after one epoch differ from those after every other."""
    predictions = run.validation_logits.argmax(axis=2)  # (epochs, m)
    return int((predictions == predictions[best]).all(axis=1).sum()) == 1


def labels_for_best(run, best):
    """Validation labels with which the given epoch is the best: those that it predicts."""
    return run.validation_logits[best].argmax(axis=1)


def labels_never_predicted(run, classes):
    """Validation labels that are wrong after every epoch: all epochs tie, at an accuracy of 0."""
    predictions = run.validation_logits.argmax(axis=2)
    return np.array([min(set(range(classes)) - set(column.tolist())) for column in predictions.T])


def run_full_batch(student, rng, run, validation_labels, sizes=TINY):
    """The student's training of that run: the model after it, and the history."""
    model = build(student, "LeNet", rng, run.first_weights, dtype="float64", **vars(sizes))
    data = make_data(student, run.images, run.labels, run.validation_images, validation_labels)
    return model, student.train(model, data, student.Config(**run.settings))


def check_full_batch_weights(student, rng, run, situation):
    """Losses of all steps and the weights after the last epoch, the best one, are PyTorch's."""
    labels = labels_for_best(run, run.epochs - 1)
    model, history = run_full_batch(student, rng, run, labels)
    steps = history_numbers(history, "step_loss", run.epochs)
    assert_close(steps, run.step_loss, what=f"step_loss ({situation})", axes=("step",))
    what = f"parameters after training ({situation})"
    check_named(model.parameters, run.weights_after(run.epochs - 1), what)


def mean_loss(logits, labels):
    """The cross entropy of some logits: log of the sum of exp, minus the label's logit."""
    largest = logits.max(axis=1, keepdims=True)
    total = np.log(np.exp(logits - largest).sum(axis=1)) + largest[:, 0]
    return float(np.mean(total - logits[np.arange(len(labels)), labels]))


def check_history(student, rng, run, validation_labels):
    """The figures of each epoch are those after it, over all images."""
    _, history = run_full_batch(student, rng, run, validation_labels)
    expected = {"learning_rate": run.rates}
    for prefix, logits, labels in (
        ("", run.logits, run.labels),
        ("validation_", run.validation_logits, validation_labels),
    ):
        expected[f"{prefix}loss"] = np.array([mean_loss(after, labels) for after in logits])
        hits = (logits.argmax(axis=2) == labels).mean(axis=1)
        expected[f"{prefix}accuracy"] = hits
    for name in EPOCH_ENTRIES:
        numbers = history_numbers(history, name, run.epochs)
        assert_close(numbers, expected[name], what=f"history: {name}", axes=("epoch",))


def check_best_weights(student, rng, run, best, labels, situation):
    """After training, the model holds and uses the weights of the best epoch."""
    model, _ = run_full_batch(student, rng, run, labels)
    check_named(model.parameters, run.weights_after(best), f"parameters ({situation})")
    logits = model.forward(run.validation_images)
    assert_close(logits, run.validation_logits[best], what=f"logits ({situation})", axes=LOGIT_AXES)


# So small that a step changes no weight: the losses of the steps tell which images were in them.
STANDSTILL = 1e-300


def draw_telling_weights(oracle, rng, images, labels):
    """Weights with which every image has a loss of its own, and these losses."""
    while True:
        weights = draw_weights(rng, TINY)
        logits = oracle.lenet(images, *weights.values())
        pairs = zip(logits, labels, strict=True)
        losses = np.array([mean_loss(row[None], label[None]) for row, label in pairs])
        if np.diff(np.sort(losses)).min() > 1e-5:
            return weights, losses


def check_every_image_once(student, oracle, rng, n, batch_size, epochs):
    """In each epoch every image is in one mini-batch, and the last one may be smaller."""
    images, labels = draw_images(rng, n, TINY.image_size), draw_labels(rng, n, TINY.classes)
    weights, losses = draw_telling_weights(oracle, rng, images, labels)
    model = build(student, "LeNet", rng, weights, dtype="float64", **vars(TINY))
    data = make_data(student, images, labels)
    settings = {"optimizer": "sgd", "learning_rate": STANDSTILL, "epochs": epochs}
    history = student.train(model, data, student.Config(batch_size=1, **settings))
    alone = np.sort(history_numbers(history, "step_loss", n * epochs).reshape(epochs, n))
    expected = np.tile(np.sort(losses), (epochs, 1))
    what = "the sorted step_loss of each epoch, with mini-batches of 1"
    assert_close(alone, expected, what=what, axes=("epoch", "image"))

    history = student.train(model, data, student.Config(batch_size=batch_size, **settings))
    starts = range(0, n, batch_size)
    sizes = np.array([min(batch_size, n - start) for start in starts])
    steps = history_numbers(history, "step_loss", len(starts) * epochs)
    means = steps.reshape(epochs, -1) @ sizes / n
    what = "the mean of step_loss over the images of each epoch"
    assert_close(means, np.full(epochs, losses.mean()), what=what, axes=("epoch",))
    kept = data.train_images, data.train_labels
    same = all(map(np.array_equal, kept, (images, labels)))
    check(same, "train changes the images or labels that it is given.")


def check_orders(student, oracle, rng, n=12):
    """The order of the images is new in each epoch, and depends on the seed and the epoch alone.

    Right code fails when two of a few orders of 12 images are equal: one in 479,001,600 each.
    """
    images, labels = draw_images(rng, n, TINY.image_size), draw_labels(rng, n, TINY.classes)
    data, seed = make_data(student, images, labels), draw_seed(rng)

    def orders(seed, epochs, **settings):
        weights, losses = draw_telling_weights(oracle, rng, images, labels)
        model = build(student, "LeNet", rng, weights, dtype="float64", **vars(TINY))
        settings = {"learning_rate": STANDSTILL, "batch_size": 1, **settings}
        config = student.Config(seed=seed, epochs=epochs, **settings)
        steps = history_numbers(student.train(model, data, config), "step_loss", n * epochs)
        return np.abs(steps[:, None] - losses).argmin(axis=1).reshape(epochs, n)

    first = orders(seed, 3, optimizer="sgd")
    for one, other in ((0, 1), (0, 2), (1, 2)):
        check(
            not np.array_equal(first[one], first[other]),
            "Each epoch must go through the images in a new order.",
            f"Epochs {one + 1} and {other + 1} have the same.",
        )
    again = orders(seed, 2, optimizer="adam")
    check(
        np.array_equal(again, first[:2]),
        "The order must depend on config.seed and the epoch alone.",
        "Another model, optimizer or number of epochs gives another order.",
    )
    other = orders(seed + 1, 2, optimizer="sgd")
    check(not np.array_equal(other[0], first[0]), "Another seed must give another order.")


def check_same_run(model, history, whole_model, whole, epochs, steps, situation):
    """Two runs ended with exactly the same weights and histories."""
    for name, count in (*((name, epochs) for name in EPOCH_ENTRIES), ("step_loss", steps)):
        expected = history_numbers(whole, name, count)
        numbers = history_numbers(history, name, count)
        assert_close(numbers, expected, what=f"history: {name} ({situation})", tolerance=0.0)
    check_named(model.parameters, whole_model.parameters, f"parameters ({situation})", 0.0)


def check_resuming(student, rng, optimizer, dtype, wrong_labels, epochs=4, n=9, batch_size=4):
    """A run that is interrupted, and goes on in a new model, ends as one that never stopped.

    With wrong labels for validation, accuracy falls and the best weights are early ones; with
    right ones they are late.
    """
    images, labels = draw_images(rng, n, TINY.image_size), draw_labels(rng, n, TINY.classes)
    validation = (labels + 1) % TINY.classes if wrong_labels else labels
    data = make_data(student, images, labels, images, validation)
    weights, seed = draw_weights(rng, TINY), draw_seed(rng)
    steps = epochs * -(-n // batch_size)

    def config(epochs):
        settings = {"batch_size": batch_size, "learning_rate": 0.02, "decay": 0.8}
        return student.Config(epochs=epochs, optimizer=optimizer, seed=seed, **settings)

    def model_with(weights=None):
        return build(student, "LeNet", rng, weights, dtype=dtype, **vars(TINY))

    whole_model = model_with(weights)
    whole = student.train(whole_model, data, config(epochs))
    for stop in (1, epochs - 1):
        history = student.train(model_with(weights), data, config(stop))
        state = state_of(history)
        for situation, given in (
            ("a run that goes on from a copied state", plain_copy(state, "history: state")),
            ("a run that goes on", state),
            ("a run that goes on from the same state again", state),
        ):
            model = model_with()
            history = student.train(model, data, config(epochs), given)
            check_same_run(model, history, whole_model, whole, epochs, steps, situation)
    model = model_with(weights)
    history = student.train(model, data, config(1))
    for stop in range(2, epochs + 1):
        model = model_with()
        history = student.train(model, data, config(stop), state_of(history))
    check_same_run(model, history, whole_model, whole, epochs, steps, "stopped after each epoch")
    model = model_with()
    history = student.train(model, data, config(epochs), state_of(whole))
    check_same_run(model, history, whole_model, whole, epochs, steps, "no epochs left")


def state_of(history):
    check(isinstance(history, dict), "train must return a dict.")
    check("state" in history, "The history has no state.")
    state = history["state"]
    check(state is not None, "history: state is None.")
    return state


def check_diverges(student, rng, n, batch_size, step, learning_rate=1e300, poison=None):
    """A loss that is not finite raises ValueError, with the epoch and the step counted from 1.

    In float32, a learning rate of 1e300 makes every weight infinite at once, so that the loss of
    the second step is not finite, whatever the images.
    """
    images, labels = draw_images(rng, n, TINY.image_size), draw_labels(rng, n, TINY.classes)
    images = np.full_like(images, poison) if poison else images
    data = make_data(student, images, labels)
    settings = {"optimizer": "sgd", "batch_size": batch_size, "epochs": 2}
    config = student.Config(learning_rate=learning_rate, **settings)
    model, _ = build_drawn(student, "LeNet", rng, TINY, "float32")
    try:
        student.train(model, data, config)
    except ValueError as error:
        told = re.search(rf"epoch\D*1\b.*step\D*{step}\b", str(error), re.IGNORECASE | re.DOTALL)
        check(
            told is not None,
            "The ValueError of a run that diverges must name the epoch and the step, from 1 on.",
            f"It says: {error}",
            "check_loss says it; call it with each step's loss, before the weights change.",
        )
        return
    check(False, "There should be a ValueError for a loss that is not finite.")


def check_strange_state(student, rng):
    """A state whose arrays don't fit the model is refused, one that fits isn't."""
    images, labels = draw_images(rng, 5, TINY.image_size), draw_labels(rng, 5, TINY.classes)
    data = make_data(student, images, labels)
    sizes = vars(TINY)
    history = student.train(build(student, "LeNet", rng, **sizes), data, student.Config(epochs=1))
    state, config = state_of(history), student.Config(epochs=2)
    other = build(student, "LeNet", rng, **(sizes | {"hidden": TINY.hidden + 1}))
    check_refused("a state of a larger model", student.train, other, data, config, state)
    history = student.train(build(student, "LeNet", rng, **sizes), data, config, state)
    history_numbers(history, "loss", 2)


# Held-out accuracy after 3 epochs on 4,000 images. The reference reached 95.6 to 96.8 % in ten runs
# with other seeds for weights and batches: 96.2 % in the mean, with a standard deviation of 0.4
# points. So 93 % lies eight of these below what right code reaches. Code that guesses is at 10 %.
ACCURACY = 0.93
HELD_OUT_BATCH = 250


def check_digits(student, rng, **settings):
    """A LeNet learns the digits: the judge asks for logits, and knows the labels."""
    mnist = load_mnist()
    order = rng.permutation(len(mnist.train_labels))
    images, labels = mnist.train_images[order], mnist.train_labels[order]
    data = make_data(student, images, labels, images[:500], labels[:500])
    model = build(student, "LeNet", rng)
    student.train(model, data, student.Config(**settings))
    reached = held_out_accuracy(model, rng, mnist.test_images, mnist.test_labels)
    check(
        reached >= ACCURACY,
        f"After 3 epochs, at least {ACCURACY:.0%} of the held-out digits must be read rightly.",
        f"It is {reached:.1%}.",
        "If all other tests pass: does train use config's own values?",
    )


def held_out_accuracy(model, rng, images, labels):
    """The share of images with the right label, asked for in an order that tells nothing."""
    order, right = rng.permutation(len(labels)), 0
    for start in range(0, len(order), HELD_OUT_BATCH):
        chosen = order[start : start + HELD_OUT_BATCH]
        logits = model.forward(images[chosen])
        fits = isinstance(logits, np.ndarray) and logits.shape == (len(chosen), 10)
        check(fits, "The logits must be an array with a row for each image and 10 columns.")
        right += int((logits.argmax(axis=1) == labels[chosen]).sum())
    return right / len(labels)


# Exercise 2.6


def permutation_of(student, seed, shape):
    """Where each pixel of an image comes from, as permute_pixels has it for such images."""
    n, c, h, w = shape
    places = np.tile(np.arange(h * w).reshape(h, w), (n, c, 1, 1))
    moved = student.permute_pixels(places, np.random.default_rng(seed))
    fits = isinstance(moved, np.ndarray) and moved.shape == shape and moved.dtype == places.dtype
    check(fits, "permute_pixels must return images of the same shape and dtype.")
    order = moved[0, 0].ravel()
    check(
        np.array_equal(np.sort(order), np.arange(h * w)),
        "Every pixel must be somewhere in the permuted image, and only once.",
        value=moved,
    )
    alike = bool((moved == moved[:1, :1]).all())
    check(alike, "All images and channels must be permuted alike.", value=moved)
    return order


def check_permutation(student, rng, shape):
    """One permutation for all images, which depends on the generator and on h * w alone."""
    n, c, h, w = shape
    seed = draw_seed(rng)
    order = permutation_of(student, seed, shape)
    for situation, other_shape in (
        ("in a second call", shape),
        ("for another number of images", (n + 2, c, h, w)),
        ("for another number of channels", (n, c + 1, h, w)),
        ("for images on their side", (n, c, w, h)),
    ):
        again = permutation_of(student, seed, other_shape)
        same = np.array_equal(order, again)
        check(same, f"A generator of the same seed must give the same permutation {situation}.")
    other = permutation_of(student, seed + 1, shape)
    check(not np.array_equal(order, other), "Another seed must give another permutation.")
    for dtype in ("float64", "float32", "uint8"):
        images = rng.integers(256, size=shape).astype(dtype)
        expected = images.reshape(n, c, h * w)[..., order].reshape(shape)
        for view in (np.ascontiguousarray, sliced, transposed):
            moved = student.permute_pixels(view(images), np.random.default_rng(seed))
            assert_close(moved, expected, what=f"permuted {dtype} images", axes=IMAGE_AXES)
        generator = np.random.default_rng(seed)
        check_unchanged("permute_pixels", student.permute_pixels, images, generator)
    large = permutation_of(student, seed, (1, 1, 40, 50))
    check_is_shuffled(large, "The pixels")


# Held-out accuracy after 5 epochs on 600 digits, with the reference and nine seeds: the LeNet falls
# from 87-91 % to 67-78 % when the pixels are shuffled, by 16 points in the mean with a standard
# deviation of 2.7; the MLP is at 81-84 % either way, and moves by 0 in the mean with one of 0.9.
# Each bound lies five of these or more away, a chance below 1e-6. Both trainings of a network start
# from the same weights, so images that are not shuffled at all make no difference.
LOSS_OF_CONVOLUTION, CHANGE_OF_MLP, FLOOR_OF_MLP = 0.02, 0.06, 0.70


def check_shuffling(student, rng):
    """Shuffled pixels hurt the convolution, and mean nothing to the MLP."""
    mnist, count, reached = load_mnist(), 600, {}
    seed, labels = draw_seed(rng), mnist.train_labels[:600]
    plain = mnist.train_images[:count], mnist.test_images
    shuffled = [student.permute_pixels(part, np.random.default_rng(seed)) for part in plain]
    for images, given in zip(shuffled, plain, strict=True):
        fits = isinstance(images, np.ndarray) and images.shape == given.shape
        check(fits, "permute_pixels must return images of the same shape.")
    config = student.Config(epochs=5, batch_size=20)
    for kind in ("LeNet", "MLP"):
        for place, (images, held_out) in (("plain", plain), ("shuffled", shuffled)):
            model = build(student, kind, np.random.default_rng(seed))
            data = make_data(student, images, labels, images[:100], labels[:100])
            student.train(model, data, config)
            reached[kind, place] = held_out_accuracy(model, rng, held_out, mnist.test_labels)
    figures = ", ".join(f"{kind} {place}: {share:.1%}" for (kind, place), share in reached.items())
    lost = reached["LeNet", "plain"] - reached["LeNet", "shuffled"]
    change = abs(reached["MLP", "plain"] - reached["MLP", "shuffled"])
    low = min(reached["MLP", "plain"], reached["MLP", "shuffled"])
    check(low >= FLOOR_OF_MLP, "The MLP must learn plain and shuffled digits.", figures)
    check(change <= CHANGE_OF_MLP, "Shuffled pixels must hardly matter to the MLP.", figures)
    check(lost >= LOSS_OF_CONVOLUTION, "Shuffled pixels must hurt the LeNet.", figures)


# Exercise 2.7


def check_field(student, oracle, layers):
    """Size and jump are those of the pixels that PyTorch's outputs depend on."""
    result = student.receptive_field(layers)
    expected = tuple(map(int, oracle.receptive_field(layers)))
    assert_equal(result, expected, what="the receptive field's size and jump")


def check_feature_maps(student, oracle, rng, sizes, dtype, image_type, view=None):
    """The maps after each convolution and its relu are PyTorch's, in the dtype of the model."""
    weights = draw_quarter_weights(rng, sizes)
    model, weights = build_drawn(student, "LeNet", rng, sizes, dtype, weights)
    image = draw_quarters(rng, (1, sizes.image_size, sizes.image_size))
    image = (np.abs(4 * image) if image_type == "uint8" else image).astype(image_type)
    expected = oracle.lenet_maps(image[None], *weights.values())
    wanted = {name: maps[0] for name, maps in zip(("conv1", "conv2"), expected, strict=True)}
    maps = student.feature_maps(model, image if view is None else view(image))
    check_names(maps, wanted, "The feature maps")
    for name, array in wanted.items():
        what = f"the maps of {name} (a {dtype} model, a {image_type} image)"
        assert_close(maps[name], array, what=what, axes=MAP_AXES)
    check_unchanged("feature_maps", student.feature_maps, model, image)
    check_named(model.parameters, weights, "parameters after feature_maps", tolerance=0.0)
