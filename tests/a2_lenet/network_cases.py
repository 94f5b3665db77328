"""How the tests of exercises 2.3, 2.6 and 2.7 check networks, first weights and feature maps."""

from dataclasses import dataclass

import numpy as np

from common.testing.checks import check_float, check_refused, check_unchanged
from common.testing.compare import assert_close, assert_equal, check, unpack
from common.testing.remote.operations import call_each, write_into
from tests.a2_lenet.cases import (
    LOGIT_AXES,
    build,
    build_drawn,
    check_named,
    check_names,
    draw_images,
    draw_labels,
    draw_quarters,
    draw_seed,
    draw_surprising_labels,
    fan_in_of,
    unlikely_labels,
)

MAP_AXES = ("filter", "row", "column")


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


def draw_quarter_weights(rng, sizes):
    """Weights that make sums of products with such images exact in float32, up to the logits.

    The last weights are any small numbers: equal ones would let gradients cancel to mere noise,
    and large ones would leave nothing of most probabilities. Biases lie off the grid of the sums
    that they are added to, so that no sum is 0: the slope of relu there is for exercise 2.1.
    """
    weights = {name: draw_quarters(rng, shape) for name, shape in sizes.shapes.items()}
    biases = [name for name in weights if name.endswith(".b")]
    for layer, name in enumerate(biases):
        weights[name] += 0.5 ** (5 + 3 * layer)  # sums: in 1/16, then 1/128, then 1/1024
    return weights | {"dense2.w": 0.3 * rng.normal(size=sizes.shapes["dense2.w"])}


# Exercises 2.3 and 2.6: the networks


def check_first_parameters(student, kind, rng, sizes, *, dtype):
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


def check_he_normal(student, rng, shape, fan_in, *, dtype):
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


def check_network(student, oracle, rng, kind, *, sizes, n, situation, view=None):
    """The logits of a model are PyTorch's; returns the model and what it was asked."""
    model, weights = build_drawn(student, kind, rng, sizes)
    x = draw_images(rng, n, sizes.image_size)
    expected = getattr(oracle, kind.lower())(x, *weights.values())
    logits = model.forward(x if view is None else view(x))
    assert_close(logits, expected, what=f"logits ({situation})", axes=LOGIT_AXES)


def check_network_gradients(student, oracle, rng, kind, *, sizes, n, situation, view=None):
    """The loss of a model and the gradient of each weight are PyTorch's."""
    model, weights = build_drawn(student, kind, rng, sizes)
    x = draw_images(rng, n, sizes.image_size)
    logits = getattr(oracle, kind.lower())(x, *weights.values())
    labels = draw_surprising_labels(rng, logits)
    expected = getattr(oracle, f"{kind.lower()}_gradients")(x, labels, *weights.values())
    result = model.loss_and_gradients(x if view is None else view(x), labels)
    compare_loss_and_gradients(result, expected, weights, situation)


def compare_loss_and_gradients(result, expected, names, situation, *, precision=None):
    loss, gradients = unpack(result, 2, "loss_and_gradients")
    check_float(loss, f"loss ({situation})")
    assert_close(loss, float(expected[0]), what=f"loss ({situation})", tolerance=precision)
    wanted = dict(zip(names, expected[1:], strict=True))
    check_named(gradients, wanted, f"gradients ({situation})")


def check_network_types(student, oracle, rng, kind, *, sizes, n):
    """Logits and gradients have the dtype of the model, whatever that of the images."""
    for dtype, image_type in (
        ("float32", "float64"),
        ("float32", "uint8"),
        ("float64", "float32"),
    ):
        weights = draw_quarter_weights(rng, sizes)
        model, weights = build_drawn(student, kind, rng, sizes, dtype=dtype, weights=weights)
        x = draw_quarters(rng, (n, 1, sizes.image_size, sizes.image_size))
        x = (np.abs(4 * x) if image_type == "uint8" else x).astype(image_type)
        situation = f"a {dtype} model, {image_type} images"
        expected = getattr(oracle, kind.lower())(x, *weights.values())
        labels = unlikely_labels(expected)
        assert_close(model.forward(x), expected, what=f"logits ({situation})", axes=LOGIT_AXES)
        expected = getattr(oracle, f"{kind.lower()}_gradients")(x, labels, *weights.values())
        result = model.loss_and_gradients(x, labels)
        precision = 1e-4 if dtype == "float32" else None
        compare_loss_and_gradients(result, expected, weights, situation, precision=precision)


def check_network_keeps_apart(student, oracle, rng, kind, *, sizes, n):
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


def check_network_refuses(student, rng, kind, sizes, *, n):
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


# Exercise 2.7


def check_field(student, oracle, layers):
    """Size and jump are those of the pixels that PyTorch's outputs depend on."""
    result = student.receptive_field(layers)
    expected = tuple(map(int, oracle.receptive_field(layers)))
    assert_equal(result, expected, what="the receptive field's size and jump")


def check_feature_maps(student, oracle, rng, sizes, *, dtype, image_type, view=None):
    """The maps after each convolution and its relu are PyTorch's, in the dtype of the model."""
    weights = draw_quarter_weights(rng, sizes)
    model, weights = build_drawn(student, "LeNet", rng, sizes, dtype=dtype, weights=weights)
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
