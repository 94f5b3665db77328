"""What the tests of assignment 2 share: inputs, networks, comparisons of exercises 2.1 and 2.2."""

import numpy as np

from common.student_code.values import Handle
from common.testing.checks import check_float
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import write_into

ROW_AXES = ("image", "feature")
LOGIT_AXES = ("image", "class")
# The sizes of a network are the arguments of LeNet or MLP.
TINY = {"image_size": 8, "filters": (2, 3), "kernel_size": 2, "hidden_size": 5, "num_classes": 4}


def weight_shapes(image_size, hidden_size, num_classes, *, filters=(), kernel_size=0):
    """The shapes of a LeNet's parameters by name, or of an MLP's, which has no filters."""
    shapes, channels, side = {}, 1, image_size
    for layer, count in enumerate(filters, start=1):
        shapes[f"conv{layer}.w"] = (count, channels, kernel_size, kernel_size)
        shapes[f"conv{layer}.b"] = (count,)
        channels, side = count, (side - kernel_size + 1) // 2
    return shapes | {
        "linear1.w": (channels * side * side, hidden_size),
        "linear1.b": (hidden_size,),
        "linear2.w": (hidden_size, num_classes),
        "linear2.b": (num_classes,),
    }


def draw_weights(rng, sizes, dtype="float64"):
    """Weights that keep the scale of the signal, and biases that are far from 0."""
    weights = {}
    for name, shape in weight_shapes(**sizes).items():
        if name.endswith(".b"):
            array = rng.uniform(0.2, 0.6, size=shape) * rng.choice([-1, 1], size=shape)
        else:
            array = rng.normal(size=shape) * np.sqrt(2 / fan_in_of(shape))
        weights[name] = array.astype(dtype)
    return weights


def fan_in_of(shape):
    """The number of inputs of one output of a layer whose w has that shape."""
    return shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))


def draw_quarters(rng, shape):
    """Multiples of 1/4 from -1 to 1: sums of products are exact, also in float32."""
    # So rounding can't move a value across 0 before a relu, or change a pooling's maximum.
    return rng.integers(-4, 5, size=shape) / 4


def draw_images(rng, n, sizes):
    """n images for a network of these sizes."""
    return rng.normal(size=(n, 1, sizes["image_size"], sizes["image_size"]))


def draw_batch(rng, n, sizes):
    """n images and their labels."""
    return draw_images(rng, n, sizes), rng.integers(sizes["num_classes"], size=n)


def draw_surprising_labels(rng, logits):
    """Random labels, of which the first is unlikely, so that the loss is not near 0."""
    # A loss near 0 is a small difference of large numbers: much of it is rounding error.
    labels = rng.integers(logits.shape[1], size=len(logits))
    labels[0] = logits[0].argmin()
    return labels


def draw_linear(rng, n, d_in, d_out, *, dtype=np.float64):
    """x, w and b of a linear layer."""
    return tuple(draw_exact(rng, shape, dtype) for shape in ((n, d_in), (d_in, d_out), (d_out,)))


def draw_exact(rng, shape, dtype):
    """Normal draws in float64; in float32 numbers whose sums are exact."""
    array = draw_quarters(rng, shape) if dtype == np.float32 else rng.normal(size=shape)
    return array.astype(dtype)


def draw_seed(rng):
    return int(rng.integers(2**31))


def generator(rng):
    """A generator for student code, seeded by the test's generator."""
    return np.random.default_rng(draw_seed(rng))


def check_named(arrays, expected, what, tolerance=None):
    """A dict has exactly the expected names and arrays."""
    check_names(arrays, expected, what)
    for name, array in expected.items():
        assert_close(arrays[name], array, what=f"{what}: {name}", tolerance=tolerance)


def check_names(arrays, names, what):
    """A dict has exactly these names."""
    check(isinstance(arrays, dict), f"{what} must be a plain dict from names to arrays.")
    missing = [name for name in names if name not in arrays]
    check(not missing, f"{what}: {', '.join(missing)} missing.")
    extra = [str(name) for name in arrays if name not in names]
    check(
        not extra,
        f"{what}: unexpected names.",
        f"Not in the docstring: {', '.join(extra)}.",
    )


def plain_copy(value, what):
    """A copy of a student's state, which must be plain data."""
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


def check_model(model, kind="LeNet"):
    """A class returned an object; returns it."""
    check(isinstance(model, Handle), f"{kind}(...) must return a model.")
    return model


def parameters_of(model, names):
    """The parameters of a LeNet or an MLP, which must have exactly these names."""
    parameters = check_model(model, "LeNet" if "conv1.w" in names else "MLP").parameters
    check_names(parameters, names, "parameters")
    return parameters


def make_model(network, rng, sizes, weights):
    """A LeNet or MLP of the student's class with these weights, in their dtype."""
    model = network(generator(rng), dtype=weights["linear1.w"].dtype.name, **sizes)
    parameters_of(model, weights)
    write_into(model, "parameters", weights)
    return model


def compare_linear_gradients(gradients, expected, situation):
    """dx, dw and db are the expected ones."""
    for name, actual, wanted in zip(("dx", "dw", "db"), gradients, expected, strict=True):
        assert_close(actual, wanted, what=f"{name} ({situation})")


def compare_loss(loss, expected, situation, dtype):
    """The loss is the expected one, and a float."""
    check_float(loss, f"loss ({situation})")
    # A loss is only as precise as the logits, whatever type it is returned in.
    tolerance = 1e-4 if dtype == np.float32 else None
    assert_close(loss, float(expected), what=f"loss ({situation})", tolerance=tolerance)


def compare_cross_entropy(result, expected, situation):
    """Loss and gradient are the expected ones."""
    loss, dlogits = unpack(result, 2, "softmax_cross_entropy")
    wanted_loss, wanted = expected
    compare_loss(loss, wanted_loss, situation, wanted.dtype)
    assert_close(dlogits, wanted, what=f"dlogits ({situation})", axes=LOGIT_AXES)


def bad_labels(logits, labels):
    """Logits and labels that don't fit together, and why."""
    too_large, negative = labels.copy(), labels.copy()
    too_large[-1], negative[0] = logits.shape[1], -1
    return (
        ("a negative label", logits, negative),
        ("a label that is too large", logits, too_large),
        ("labels that are floats", logits, labels.astype(np.float64)),
        ("one label too few", logits, labels[:-1]),
        ("labels of two axes", logits, labels[:, None]),
        ("an empty batch", logits[:0], labels[:0]),
    )
