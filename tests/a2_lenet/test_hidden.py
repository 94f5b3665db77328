"""The hidden tests of assignment 2: what the public tests check, on other shapes and inputs."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_choice, check_number, check_sizes
from common.testing.checks import check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_close, check
from tests.a2_lenet.cases import (
    LOGIT_AXES,
    Sizes,
    build,
    build_drawn,
    check_bad_labels,
    check_cross_entropy,
    check_flatten,
    check_forward,
    check_layers_stay_apart,
    check_linear,
    check_linear_gradients,
    check_relu_backward,
    draw_dense,
    draw_images,
    draw_labels,
    draw_quarters,
    draw_seed,
    draw_surprising_labels,
    generator,
)
from tests.a2_lenet.network_cases import (
    MLPSizes,
    check_feature_maps,
    check_field,
    check_first_parameters,
    check_first_weights,
    check_he_normal,
    check_network,
    check_network_gradients,
    check_network_keeps_apart,
    check_network_refuses,
    check_network_types,
)
from tests.a2_lenet.optimizer_cases import (
    OPTIMIZERS,
    check_steps,
    check_steps_have_no_side_effects,
    check_steps_refuse,
)
from tests.a2_lenet.training_cases import (
    TINY,
    check_best_weights,
    check_digits,
    check_diverges,
    check_every_image_once,
    check_full_batch_weights,
    check_history,
    check_is_shuffled,
    check_orders,
    check_permutation,
    check_pieces,
    check_resuming,
    check_strange_state,
    draw_full_batch_run,
    labels_for_best,
    labels_never_predicted,
    permutation_of,
)

OTHER = Sizes(image_size=12, filters=(3, 4), kernel=3, hidden=6, classes=5)
ODD = Sizes(image_size=11, filters=(4, 2), kernel=2, hidden=3, classes=6)
OTHER_MLP = MLPSizes(image_size=5, hidden=4, classes=6)
OTHER_SHAPES = {"a": (3,), "b.w": (2, 4), "c": (1, 2, 3, 1), "d": (1,)}


@weight(1)
@number("2.1")
def test_relu_is_right_for_other_arrays(student, rng):
    """Forward and backward, with zeros, views and float32, on other shapes."""
    for shape in ((9,), (5, 2), (3, 2, 5, 4), (1, 3, 1)):
        for dtype in (np.float64, np.float32):
            x = draw_quarters(rng, shape).astype(dtype)
            expected = np.where(x > 0, x, 0).astype(dtype)
            check_forward(student, "relu", (sliced(x),), expected, situation=f"{np.dtype(dtype)}")
            check_relu_backward(student, rng, transposed(x), f"{np.dtype(dtype)}", view=sliced)


@weight(1)
@number("2.1")
def test_linear_is_right_for_other_sizes(student, rng, oracle):
    """Output and gradients are PyTorch's on other sizes and types; what doesn't fit is refused."""
    for sizes in ((6, 5, 2), (1, 4, 3), (2, 1, 6), (7, 3, 1)):
        for dtype in (np.float64, np.float32):
            x, w, b = draw_dense(rng, *sizes, dtype=dtype)
            check_linear(student, oracle, (transposed(x), sliced(w), sliced(b)), "other sizes")
            check_linear_gradients(
                student, oracle, rng, (sliced(x), transposed(w), b), situation="views"
            )
    x, w, b = draw_dense(rng, 3, 4, 2)
    for situation, inputs in (
        ("a d_in that differs between x and w", (x[:, 1:], w, b)),
        ("a b of one entry", (x, w, b[:1])),
        ("a b that is too long", (x, w, np.concatenate([b, b]))),
        ("an x with three axes", (x[None], w, b)),
    ):
        check_refused(situation, student.linear_forward, *inputs)


@weight(1)
@number("2.1")
def test_flatten_is_right_for_other_shapes_and_layers_have_no_side_effects(student, rng, oracle):
    """Rows in row-major order and back; inputs stay; each backward pass uses its own cache."""
    for shape in ((3, 2, 5, 4), (1, 4, 1, 6), (5, 3, 2), (2, 7)):
        for view in (sliced, transposed):
            check_flatten(student, rng, shape, "other shapes", view=view, dtype=np.float32)
    check_layers_stay_apart(student, oracle, rng, (3, 4, 2), dense=(2, 5, 3))


@weight(2)
@number("2.2")
def test_cross_entropy_is_right_for_other_logits(student, rng, oracle):
    """Loss and gradient are PyTorch's for other sizes, types and views; inputs stay."""
    for n, classes in ((7, 3), (1, 6), (4, 9), (3, 2)):
        for dtype in (np.float64, np.float32):
            logits = (4 * rng.normal(size=(n, classes))).astype(dtype)
            labels = draw_surprising_labels(rng, logits)
            expected = oracle.cross_entropy(logits, labels)
            for view in (sliced, transposed):
                small = labels.astype(np.uint8)
                check_cross_entropy(
                    student, logits, small, expected, situation="other sizes", view=view
                )
    function = student.softmax_cross_entropy
    check_unchanged("softmax_cross_entropy", function, logits, labels)


@weight(1)
@number("2.2")
def test_cross_entropy_does_not_overflow_for_other_logits(student, rng):
    """One logit is far above the others: the loss is how far the label's logit lies below it."""
    n, classes = 8, 5
    highs = np.array([1e4, 1e4, 0, -9e3] * 2)
    lows = np.array([-1e4, 0, -1e4, -1e4] * 2)
    for dtype in (np.float64, np.float32):
        winners, labels = draw_labels(rng, n, classes), draw_labels(rng, n, classes)
        labels[:4] = (winners[:4] + 1) % classes  # each kind of row gets a wrong label once
        logits = np.repeat(lows[:, None], classes, axis=1)
        logits[np.arange(n), winners] = highs
        gradient = (np.eye(classes)[winners] - np.eye(classes)[labels]) / n
        loss = np.mean((highs - lows) * (winners != labels))
        expected = loss, gradient.astype(dtype)
        check_cross_entropy(
            student, logits.astype(dtype), labels, expected, situation="huge logits"
        )


@weight(1)
@number("2.2")
def test_cross_entropy_refuses_other_bad_labels(student, rng):
    """Labels out of range, floats, another number of them and empty batches: ValueError."""
    for n, classes in ((3, 6), (8, 2)):
        check_bad_labels(student, rng, n, classes)


@weight(1)
@number("2.3")
def test_he_normal_is_right_for_other_shapes(student, rng):
    """Normal draws of mean 0 and standard deviation sqrt(2 / fan_in), from the given generator."""
    for shape, fan_in, dtype in (
        ((30, 60), 30, "float64"),
        ((20, 4, 3, 7), 84, "float32"),
        ((3, 700), 1, "float64"),
    ):
        check_he_normal(student, rng, shape, fan_in, dtype=dtype)


@weight(1)
@number("2.3")
def test_lenet_has_the_right_first_weights_for_other_sizes(student, rng):
    """Names, shapes, dtype and spread; biases of 0; images that are too small are refused."""
    for sizes in (OTHER, ODD, Sizes(17, (5, 3), 4, 2, 7)):
        for dtype in ("float32", "float64"):
            check_first_parameters(student, "LeNet", rng, sizes, dtype=dtype)
    check_first_weights(student, "LeNet", rng, Sizes(20, (100, 30), 4, 40, 50))
    for image_size, kernel in ((12, 4), (4, 4), (5, 2), (9, 3)):
        sizes = {"image_size": image_size, "kernel": kernel}
        check_refused("images too small", student.LeNet, generator(rng), **sizes)
    build(student, "LeNet", rng, image_size=10, kernel=3)


@weight(2)
@number("2.3")
def test_lenet_gives_the_logits_of_its_layers_for_other_sizes(student, rng, oracle):
    """With the same weights, the logits are PyTorch's, leftover pixels and views included."""
    for sizes, n in ((OTHER, 4), (ODD, 3), (Sizes(17, (5, 3), 4, 2, 7), 1)):
        for view in (sliced, transposed):
            check_network(
                student, oracle, rng, "LeNet", sizes=sizes, n=n, situation="other sizes", view=view
            )


@weight(2)
@number("2.3")
def test_lenet_gives_the_gradient_of_every_weight_for_other_sizes(student, rng, oracle):
    """With the same weights, the loss and all gradients are PyTorch's, in the model's dtype."""
    for sizes, n in ((OTHER, 4), (ODD, 3), (Sizes(17, (5, 3), 4, 2, 7), 1)):
        check_network_gradients(
            student, oracle, rng, "LeNet", sizes=sizes, n=n, situation="other sizes", view=sliced
        )
    check_network_types(student, oracle, rng, "LeNet", sizes=OTHER, n=4)


@weight(1)
@number("2.3")
def test_lenet_has_no_side_effects_and_refuses_what_does_not_fit(student, rng, oracle):
    """Weights of the moment, models and calls that stay apart, ValueErrors: on other sizes."""
    check_network_keeps_apart(student, oracle, rng, "LeNet", sizes=ODD, n=2)
    check_network_refuses(student, rng, "LeNet", OTHER, n=4)


@weight(1)
@number("2.4")
def test_sgd_momentum_is_right_for_other_steps(student, rng, oracle):
    """Other shapes, rates and momenta give PyTorch's parameters after each step."""
    for momentum in (0.5, 0.95):
        rates = tuple(float(rate) for rate in rng.uniform(0.01, 0.3, size=5))
        asked = {"momentum": momentum}
        check_steps(
            student,
            oracle,
            rng,
            "sgd_momentum",
            rates=rates,
            asked=asked,
            settings=(momentum,),
            shapes=OTHER_SHAPES,
        )
    check_steps(
        student,
        oracle,
        rng,
        "sgd_momentum",
        rates=(0.2, 0.1),
        asked={},
        settings=(0.9,),
        dtype="float32",
    )


@weight(2)
@number("2.4")
def test_adam_is_right_for_other_steps(student, rng, oracle):
    """Other shapes, rates, betas and epsilons give PyTorch's parameters after each step."""
    for settings in ((0.9, 0.999, 1e-8), (0.5, 0.95, 1e-3), (0.85, 0.6, 0.3)):
        rates = tuple(float(rate) for rate in rng.uniform(0.01, 0.3, size=5))
        asked = dict(zip(("beta1", "beta2", "epsilon"), settings, strict=True))
        check_steps(
            student,
            oracle,
            rng,
            "adam",
            rates=rates,
            asked=asked,
            settings=settings,
            shapes=OTHER_SHAPES,
        )
    settings = (0.9, 0.999, 1e-8)
    check_steps(
        student, oracle, rng, "adam", rates=(0.2, 0.1), asked={}, settings=settings, dtype="float32"
    )


@weight(1)
@number("2.4")
def test_optimizers_have_no_side_effects_on_other_arrays(student, rng):
    """Steps can be repeated, also from a copied state; gradients that don't fit are refused."""
    for name in OPTIMIZERS:
        check_steps_have_no_side_effects(student, rng, name, OTHER_SHAPES)
        check_steps_refuse(student, rng, name, {"first": (3, 2), "second": (4,)})


@weight(1)
@number("2.5")
def test_minibatches_are_right_for_other_numbers(student, rng):
    """Every number once, in an order that looks random and that the generator decides."""
    for n, batch_size in ((23, 5), (24, 6), (2, 9), (17, 16)):
        check_pieces(student.minibatches(n, batch_size, generator(rng)), n, batch_size)
    seed = draw_seed(rng)
    first, again = (
        check_pieces(student.minibatches(2000, 70, np.random.default_rng(seed)), 2000, 70)
        for _ in range(2)
    )
    check(np.array_equal(first, again), "The same generator must give the same minibatches.")
    check_is_shuffled(first, "The numbers")


@weight(2)
@number("2.5")
def test_train_takes_the_steps_of_pytorch_for_other_settings(student, rng, oracle):
    """With all images in one mini-batch: momentum, Adam and the decay, and the whole history."""
    for optimizer, rate, decay in (("sgd", 0.25, 0.7), ("adam", 0.08, 0.6)):
        run = draw_full_batch_run(
            oracle, rng, optimizer, 5, learning_rate=rate, decay=decay, best=4, n=5
        )
        check_full_batch_weights(student, rng, run, f"{optimizer}, five epochs")
        check_history(student, rng, run, draw_labels(rng, 16, TINY.classes))


@weight(1)
@number("2.5")
def test_train_leaves_other_best_weights_in_the_model(student, rng, oracle):
    """Those after the epoch with the highest validation accuracy; on a tie, the earliest."""
    for best in (0, 1, 2):
        run = draw_full_batch_run(
            oracle, rng, "adam", 3, learning_rate=0.12, decay=0.9, best=best, n=8
        )
        situation = f"epoch {best + 1} of 3 is the best"
        check_best_weights(
            student, rng, run, best, labels=labels_for_best(run, best), situation=situation
        )
    never = labels_never_predicted(run, TINY.classes)
    check_best_weights(
        student, rng, run, 0, labels=never, situation="all epochs have the same accuracy"
    )


@weight(1)
@number("2.5")
def test_train_shuffles_other_images_anew_and_uses_each_once(student, rng, oracle):
    """Every image once in each epoch, in an order that depends on the seed and the epoch."""
    check_every_image_once(student, oracle, rng, n=13, batch_size=5, epochs=3)
    check_orders(student, oracle, rng, n=14)


@weight(1)
@number("2.5")
def test_other_runs_go_on_as_if_they_had_never_stopped(student, rng):
    """Exactly the same weights and history, with momentum and with Adam, for early best weights."""
    for optimizer, dtype in (("sgd", "float64"), ("adam", "float32")):
        for wrong_labels in (True, False):
            check_resuming(
                student,
                rng,
                optimizer,
                dtype,
                wrong_labels=wrong_labels,
                epochs=3,
                n=10,
                batch_size=3,
            )


@weight(1)
@number("2.5")
def test_train_stops_other_runs_that_diverge(student, rng):
    """ValueError with epoch and step, counted from 1; ValueError for a state of another model."""
    check_diverges(student, rng, n=9, batch_size=3, step=2)
    check_diverges(student, rng, n=4, batch_size=4, step=1)
    check_diverges(student, rng, n=5, batch_size=2, step=1, poisoned=True)
    check_strange_state(student, rng)


@weight(2)
@number("2.5")
@tags("training")
def test_lenet_reads_held_out_digits_with_other_seeds(student, rng):
    """4,000 halved images, 3 epochs, another seed: 88 % of 1,000 others are read rightly."""
    check_digits(student, rng, seed=draw_seed(rng))


@weight(1)
@number("2.6")
def test_mlp_is_right_for_other_sizes(student, rng, oracle):
    """First weights, logits, gradients, dtype and ValueErrors, on other sizes."""
    for dtype in ("float32", "float64"):
        check_first_parameters(student, "MLP", rng, OTHER_MLP, dtype=dtype)
    check_first_weights(student, "MLP", rng, MLPSizes(9, 50, 35))
    for view in (sliced, transposed):
        check_network(
            student, oracle, rng, "MLP", sizes=OTHER_MLP, n=3, situation="other sizes", view=view
        )
        check_network_gradients(
            student, oracle, rng, "MLP", sizes=OTHER_MLP, n=3, situation="other sizes", view=view
        )
    check_network_types(student, oracle, rng, "MLP", sizes=OTHER_MLP, n=4)
    check_network_keeps_apart(student, oracle, rng, "MLP", sizes=OTHER_MLP, n=2)
    check_network_refuses(student, rng, "MLP", OTHER_MLP, n=4)


@weight(1)
@number("2.6")
def test_permute_pixels_is_right_for_other_images(student, rng):
    """One random permutation, which depends on the generator and the number of pixels alone."""
    check_permutation(student, rng, (2, 3, 7, 3))
    check_permutation(student, rng, (1, 1, 5, 8))


@weight(1)
@number("2.6")
def test_an_mlp_whose_weights_are_permuted_too_sees_no_difference(student, rng):
    """When the rows of dense1.w move as the pixels do, the logits stay the same."""
    sizes, seed = OTHER_MLP, draw_seed(rng)
    model, weights = build_drawn(student, "MLP", rng, sizes)
    images = draw_images(rng, 4, sizes.image_size)
    hidden = np.maximum(images.reshape(4, -1) @ weights["dense1.w"] + weights["dense1.b"], 0)
    expected = hidden @ weights["dense2.w"] + weights["dense2.b"]
    assert_close(model.forward(images), expected, what="logits", axes=LOGIT_AXES)
    order = permutation_of(student, seed, images.shape)
    moved = weights | {"dense1.w": weights["dense1.w"][order]}
    other = build(student, "MLP", rng, moved, dtype="float64", **vars(sizes))
    shuffled = student.permute_pixels(images, np.random.default_rng(seed))
    logits = other.forward(shuffled)
    assert_close(logits, expected, what="logits of shuffled images", axes=LOGIT_AXES)


@weight(1)
@number("2.7")
def test_receptive_field_is_right_for_other_layers(student, rng, oracle):
    """Whatever the layers, size and jump are those of the pixels that outputs depend on."""
    for count in range(1, 9):
        layers = [(int(rng.integers(1, 8)), int(rng.integers(1, 4))) for _ in range(count)]
        check_field(student, oracle, layers)
        place = int(rng.integers(count))
        for kernel, stride in ((0, 1), (1, 0), (-2, 2), (2, -2)):
            wrong = [*layers[:place], (kernel, stride), *layers[place + 1 :]]
            check_refused("a kernel or a stride below 1", student.receptive_field, wrong)


@weight(1)
@number("2.7")
def test_feature_maps_are_right_for_other_sizes(student, rng, oracle):
    """conv1 and conv2 after their relu, in the dtype of the model; wrong shapes: ValueError."""
    for sizes, dtype, image_type in (
        (OTHER, "float32", "float32"),
        (ODD, "float64", "uint8"),
        (Sizes(17, (5, 3), 4, 2, 7), "float64", "float32"),
    ):
        check_feature_maps(
            student, oracle, rng, sizes, dtype=dtype, image_type=image_type, view=sliced
        )
    model = build(student, "LeNet", rng, **vars(OTHER))
    images = draw_images(rng, 3, OTHER.image_size)
    for situation, image in (
        ("an image without its channel", images[0, 0]),
        ("several images", images),
        ("an image with several channels", images[:, 0]),
        ("an image that is too large", draw_images(rng, 1, OTHER.image_size + 2)[0]),
    ):
        check_refused(situation, student.feature_maps, model, image)


@weight(1)
@number("2.8")
def test_q2_larger_images_need_a_larger_dense_layer(lab):
    """Lab, question 2: the parameters of a LeNet for images of 56 x 56 pixels."""
    side = ((56 - 4) // 2 - 4) // 2
    dense1 = (32 * side * side + 1) * 64
    check_number(lab, "q2_parameters", (25 + 1) * 16 + (400 + 1) * 32 + dense1 + (64 + 1) * 10)


# The signs of the lab's first kernel after training, where it is more than 0.02 away from 0.
SIGNS = "+?++-+++---?------++-+-++"


@weight(1)
@number("2.8")
def test_q5_the_patch_that_a_kernel_answers_to_most_is_found(lab):
    """Lab, question 5: ink below each positive weight, paper below each negative one."""
    patch = array_answer(lab, "q5_patch", (5, 5))
    check(
        patch.min() >= 0 and patch.max() <= 1, "q5_patch holds no pixels from 0 to 1.", value=patch
    )
    wrong = [
        place
        for place, (sign, pixel) in enumerate(zip(SIGNS, patch.flat, strict=True))
        if sign != "?" and abs(pixel - (sign == "+")) > 1e-6
    ]
    check(
        not wrong,
        "Another patch than q5_patch gives a larger answer.",
        f"{len(wrong)} pixels are not as the kernel would like them best",
        value=patch,
    )


@weight(1)
@number("2.8")
def test_q6_the_shift_that_is_too_much_is_found(lab):
    """Lab, question 6: from which shift on fewer than half of the digits are right."""
    check_number(lab, "q6_pixels", 4)  # measured: 63 % at 3 pixels, 45 % at 4


@weight(1)
@number("2.8")
def test_q6_why_a_shift_hurts(lab):
    """Lab, question 6: what in a LeNet depends on the place."""
    check_choice(lab, "q6_why", "c", ("a", "b", "c", "d"))


@weight(1)
@number("2.9")
def test_q7_the_most_frequent_mistake_is_found(lab):
    """Lab, question 7: what it is, and what the LeNet says."""
    check_sizes(lab, "q7_pair", (4, 9))  # measured: 7 times; no other mistake more than 5 times


@weight(1)
@number("2.9")
def test_q8_few_mistakes_are_left(lab):
    """Lab, question 8: the mistakes among images with a largest probability of 0.9 or more."""
    check_number(lab, "q8_left", 4, tolerance=1)


@weight(1)
@number("2.9")
def test_q9_a_linear_network_does_not_notice_the_shuffle(lab):
    """Lab, question 9: the images for which it says another digit than with ordinary pixels."""
    check_number(lab, "q9_changed", 0)


@weight(1)
@number("2.9")
def test_q10_the_permutation_that_does_no_harm_is_found(lab):
    """Lab, question 10: what leaves neighbours neighbours, in the same way at each place."""
    check_choice(lab, "q10_harmless", "b", ("a", "b", "c", "d"))
