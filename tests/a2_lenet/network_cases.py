"""Checks of networks, initial weights and feature maps, for exercises 2.3, 2.6 and 2.7."""

import numpy as np

from common.testing.checks import check_refused
from common.testing.compare import assert_close, check, unpack
from common.testing.remote.operations import write_into
from tests.a2_lenet import cases
from tests.a2_lenet.cases import LOGIT_AXES


def draw_quarter_weights(rng, sizes, dtype):
    """Weights whose sums of products with such images are exact in float32, up to the logits."""
    weights = {
        name: cases.draw_quarters(rng, shape)
        for name, shape in cases.weight_shapes(**sizes).items()
    }
    # Biases lie off the grid of the sums that they are added to, so that no sum is 0: exercise 2.1
    # tests the gradient of relu there.
    biases = [name for name in weights if name.endswith(".b")]
    for layer, name in enumerate(biases):
        weights[name] += 0.5 ** (5 + 3 * layer)  # sums: in 1/16, then 1/128, then 1/1024
    # The last weights are small normal draws: with equal ones, gradients would cancel to rounding
    # error, and with large ones, most probabilities would vanish.
    weights["linear2.w"] = 0.3 * rng.normal(size=weights["linear2.w"].shape)
    return {name: array.astype(dtype) for name, array in weights.items()}


def draw_quarter_images(rng, n, sizes, dtype):
    """Images of multiples of 1/4, or of integers for uint8."""
    images = cases.draw_quarters(rng, (n, 1, sizes["image_size"], sizes["image_size"]))
    return (np.abs(4 * images) if dtype == "uint8" else images).astype(dtype)


def check_initial_parameters(model, sizes, dtype):
    """Names, shapes and dtype are those of the docstring, and every bias is 0."""
    shapes = cases.weight_shapes(**sizes)
    parameters = cases.parameters_of(model, shapes)
    for name, shape in shapes.items():
        array = parameters[name]
        check(isinstance(array, np.ndarray), f"{name} must be a NumPy array.")
        check(
            array.shape == shape,
            f"{name} has a wrong shape.",
            f"got {array.shape}, expected {shape}",
            value=array,
        )
        check(array.dtype == dtype, f"{name} must have the dtype of the model.", value=array)
        if name.endswith(".b"):
            check(not array.any(), f"{name} must be initialized to zeros.", value=array)


# The allowed relative error t of the variance of n normal draws. Chernoff's bound on the
# probability that correct code exceeds it: exp(-n/2 * (t - log(1 + t))) above, and less below. For
# n = 1,500 and t = 0.25 that is 2e-9. The usual mistake is a factor of 2.
SPREAD = 0.25


def check_normal(draws, fan_in, what):
    """Draws have mean 0, variance 2 / fan_in and the tails of a normal distribution."""
    # With 1,500 draws or more, correct code fails with a probability below 1e-7: the mean may be 6
    # standard errors off (2e-9), the variance as said above (4e-9), and the fraction of draws
    # beyond two standard deviations, 4.6 %, may be anything from 0.5 % to 10 % (below 1e-12).
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
        f"{what} must be drawn from a normal distribution.",
        f"{beyond:.1%} of them lie more than two standard deviations from 0; 4.6 % should.",
    )
    # In float32 a draw may occur twice by coincidence, but not often.
    check(np.unique(draws).size > 0.9 * draws.size, f"{what} must be independent draws.")


def check_he_normal(results, shape, fan_in, dtype):
    """The results of he_normal for a seed, for the same seed again, and for another one."""
    draws, again, other = results
    what = "the result of he_normal"
    check(isinstance(draws, np.ndarray), f"{what} must be a NumPy array.")
    check(
        draws.shape == shape,
        f"{what} has a wrong shape.",
        f"got {draws.shape}, expected {shape}",
        value=draws,
    )
    check(
        draws.dtype == dtype,
        f"{what} has a wrong dtype.",
        f"got {draws.dtype}, expected {dtype}",
        value=draws,
    )
    check_normal(draws, fan_in, what)
    same, differs = np.array_equal(draws, again), not np.array_equal(draws, other)
    check(same, "he_normal must return the same draws for the same seed.")
    check(differs, "he_normal must draw from the generator that it is given.")


def check_initial_weights(model, sizes):
    """Each w has the standard deviation of its own fan_in, and no two share their draws."""
    shapes = cases.weight_shapes(**sizes)
    parameters = cases.parameters_of(model, shapes)
    heads = []
    for name, shape in shapes.items():
        if name.endswith(".b"):
            continue
        array = parameters[name]
        right = isinstance(array, np.ndarray) and array.shape == shape
        check(right, f"{name} has a wrong shape.")
        check_normal(array, cases.fan_in_of(shape), name)
        heads.append(array.ravel()[:1500].astype(np.float64))
    # Every w has 1,500 entries or more. Two of at most four independent weights have a correlation
    # of 0.25 or more with a probability of 6 * 2 * exp(-1500 * 0.25**2 / 2) = 5e-20.
    correlations = np.corrcoef(heads) - np.eye(len(heads))
    check(np.abs(correlations).max() < 0.25, "Two weights must not contain the same draws.")


def compare_loss_and_gradients(result, expected, names, situation):
    """The loss and the gradient of each weight are the expected ones."""
    loss, gradients = unpack(result, 2, "loss_and_gradients")
    cases.compare_loss(loss, expected[0], situation, expected[1].dtype)
    wanted = dict(zip(names, expected[1:], strict=True))
    cases.check_named(gradients, wanted, f"gradients ({situation})")


def check_types(network, oracle, rng, *, sizes, n):
    """Logits and gradients have the dtype of the model, whatever the dtype of the images."""
    logits_of = oracle.lenet if "filters" in sizes else oracle.mlp
    gradients_of = oracle.lenet_gradients if "filters" in sizes else oracle.mlp_gradients
    types = (("float32", "float64"), ("float32", "uint8"), ("float64", "float32"))
    for dtype, image_type in types:
        situation = f"a {dtype} model, {image_type} images"
        weights = draw_quarter_weights(rng, sizes, dtype)
        model = cases.make_model(network, rng, sizes, weights)
        x = draw_quarter_images(rng, n, sizes, image_type)
        expected = logits_of(x, *weights.values())
        assert_close(model.forward(x), expected, what=f"logits ({situation})", axes=LOGIT_AXES)
        labels = expected.argmin(axis=1)  # unlikely ones: the loss is not near 0
        expected = gradients_of(x, labels, *weights.values())
        result = model.loss_and_gradients(x, labels)
        compare_loss_and_gradients(result, expected, weights, situation)


def check_independence(network, gradients_of, rng, *, sizes, n):
    """Two models, and new weights between calls: each result is right."""
    weights = cases.draw_weights(rng, sizes)
    model = cases.make_model(network, rng, sizes, weights)
    other_weights = cases.draw_weights(rng, sizes)
    other = cases.make_model(network, rng, sizes, other_weights)
    batch = cases.draw_batch(rng, n, sizes)
    for situation, network_weights, one in (
        ("a first model", weights, model),
        ("a second model", other_weights, other),
        ("the first model again", weights, model),
    ):
        expected = gradients_of(*batch, *network_weights.values())
        result = one.loss_and_gradients(*batch)
        compare_loss_and_gradients(result, expected, weights, situation)
    cases.check_named(model.parameters, weights, "parameters after several calls", tolerance=0.0)
    write_into(model, "parameters", other_weights)
    expected = gradients_of(*batch, *other_weights.values())
    result = model.loss_and_gradients(*batch)
    compare_loss_and_gradients(result, expected, weights, "after new weights were written")


def check_refusals(model, rng, sizes, n):
    """Images of a wrong shape, empty batches and bad labels raise ValueError."""
    x, labels = cases.draw_batch(rng, n, sizes)
    side = sizes["image_size"] + 1
    for situation, images in (
        ("images without their channel", x[:, 0]),
        ("images with two channels", np.repeat(x, 2, axis=1)),
        ("images that lack a row", x[:, :, 1:]),
        ("images that are too large", rng.normal(size=(n, 1, side, side))),
        ("an empty batch", x[:0]),
    ):
        check_refused(situation, model.forward, images)
        check_refused(situation, model.loss_and_gradients, images, labels[: len(images)])
    too_large = labels + sizes["num_classes"]
    check_refused("a label that is too large", model.loss_and_gradients, x, too_large)
    check_refused("one label too few", model.loss_and_gradients, x, labels[1:])
    unpack(model.loss_and_gradients(x, labels), 2, "loss_and_gradients")


def compare_maps(maps, expected, situation):
    """The feature maps of one image are the expected ones, which are batches of one."""
    wanted = dict(zip(("conv1", "conv2"), expected, strict=True))
    cases.check_names(maps, wanted, "The feature maps")
    for name, batch in wanted.items():
        what = f"the maps of {name} ({situation})"
        assert_close(maps[name], batch[0], what=what, axes=("filter", "row", "column"))
