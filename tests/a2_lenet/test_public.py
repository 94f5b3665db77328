"""The public tests of assignment 2: a LeNet, trained from scratch."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.labs.answer_checks import array_answer, check_number, check_sizes
from common.testing.checks import check_refused, check_unchanged, sliced, transposed
from common.testing.compare import assert_equal, check
from tests.a2_lenet.cases import (
    Sizes,
    build,
    check_bad_labels,
    check_cross_entropy,
    check_flatten,
    check_forward,
    check_layers_stay_apart,
    check_linear,
    check_linear_gradients,
    check_names,
    check_relu_backward,
    draw_dense,
    draw_images,
    draw_labels,
    draw_quarters,
    draw_seed,
    generator,
    unlikely_labels,
)
from tests.a2_lenet.lab_cases import check_confusion, check_picture
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
    check_shuffling,
    check_strange_state,
    draw_full_batch_run,
    labels_for_best,
    labels_never_predicted,
)

SMALL = Sizes(image_size=11, filters=(2, 3), kernel=2, hidden=5, classes=4)
WITH_LEFTOVERS = Sizes(image_size=13, filters=(3, 2), kernel=3, hidden=4, classes=5)
SMALL_MLP = MLPSizes(image_size=4, hidden=5, classes=3)


@weight(1)
@number("2.1")
def test_relu_keeps_what_is_positive_and_sets_the_rest_to_zero(student, rng):
    """Arrays of any shape, with zeros among them, views too: out is max(x, 0)."""
    for shape in ((6,), (3, 4), (2, 3, 4, 5), (1, 1)):
        x = draw_quarters(rng, shape)
        check_forward(student, "relu", (x,), np.where(x > 0, x, 0.0), situation=f"shape {shape}")
    x = draw_quarters(rng, (3, 4, 5))
    for view in (sliced, transposed):
        check_forward(student, "relu", (view(x),), np.where(x > 0, x, 0.0), situation="views")


@weight(1)
@number("2.1")
def test_relu_lets_the_gradient_through_where_x_was_positive(student, rng):
    """dx is dout where x is above 0, and 0 elsewhere, also where x is exactly 0."""
    for shape in ((6,), (3, 4), (2, 3, 4, 5)):
        check_relu_backward(student, rng, rng.normal(size=shape), f"shape {shape}")
        check_relu_backward(student, rng, draw_quarters(rng, shape), "with zeros", view=transposed)
    check_relu_backward(student, rng, np.zeros((2, 3)), "zeros only")


@weight(1)
@number("2.1")
def test_linear_multiplies_by_the_weights_and_adds_one_bias_for_each_output(student, rng, oracle):
    """out is x @ w + b, for sizes of 1 and views too."""
    for sizes in ((4, 3, 5), (1, 6, 2), (3, 1, 4), (5, 2, 1), (1, 1, 1)):
        check_linear(student, oracle, draw_dense(rng, *sizes), f"n, d_in, d_out of {sizes}")
    x, w, b = draw_dense(rng, 4, 3, 5)
    check_linear(student, oracle, (sliced(x), transposed(w), sliced(b)), "views")


@weight(1)
@number("2.1")
def test_linear_gives_the_gradients_of_input_weights_and_bias(student, rng, oracle):
    """dx, dw and db are PyTorch's; dw and db are sums over the batch, not means."""
    for sizes in ((4, 3, 5), (1, 6, 2), (3, 1, 4), (5, 2, 1)):
        situation = f"n, d_in, d_out of {sizes}"
        check_linear_gradients(student, oracle, rng, draw_dense(rng, *sizes), situation=situation)
    x, w, b = draw_dense(rng, 4, 3, 5)
    views = (transposed(x), sliced(w), sliced(b))
    check_linear_gradients(student, oracle, rng, views, situation="views", view=transposed)


@weight(1)
@number("2.1")
def test_linear_refuses_shapes_that_do_not_fit_together(student, rng, oracle):
    """x, w and b that make no dense layer raise ValueError; those that make one don't."""
    x, w, b = draw_dense(rng, 4, 3, 5)
    for situation, inputs in (
        ("a d_in that differs between x and w", (x[:, :2], w, b)),
        ("a w that is transposed", (x, w.T, b)),
        ("a b that is too short", (x, w, b[:4])),
        ("a b of one entry", (x, w, b[:1])),
        ("a b with two axes", (x, w, b[None])),
        ("an x with one axis", (x[0], w, b)),
        ("images that are not flattened", (x[:, :, None], w, b)),
    ):
        check_refused(situation, student.linear_forward, *inputs)
    check_linear(student, oracle, (x, w, b), "shapes that fit")


@weight(1)
@number("2.1")
def test_flatten_makes_a_row_of_each_image_and_back(student, rng):
    """Rows in row-major order, whatever the order in memory; dx has the shape of x."""
    for shape in ((2, 3, 4, 5), (4, 1, 2, 3), (1, 2, 3, 1), (3, 4, 2), (3, 5)):
        check_flatten(student, rng, shape, f"shape {shape}")
    for view in (sliced, transposed):
        check_flatten(student, rng, (2, 3, 4, 5), "views", view=view)


@weight(1)
@number("2.1")
def test_layers_keep_float32_leave_inputs_alone_and_do_not_disturb_each_other(student, rng, oracle):
    """float32 in gives float32 out; x, dout, w and b stay; each pass uses its own cache."""
    x = draw_quarters(rng, (2, 3, 4)).astype(np.float32)
    check_forward(
        student, "relu", (x,), np.where(x > 0, x, 0).astype(np.float32), situation="float32"
    )
    check_relu_backward(student, rng, x, "float32")
    inputs = draw_dense(rng, 4, 3, 5, dtype=np.float32)
    check_linear(student, oracle, inputs, "float32")
    check_linear_gradients(student, oracle, rng, inputs, situation="float32")
    check_flatten(student, rng, (2, 3, 4, 5), "float32", dtype=np.float32)
    check_layers_stay_apart(student, oracle, rng, (2, 3, 4, 5), dense=(4, 3, 5))


@weight(2)
@number("2.2")
def test_cross_entropy_is_the_mean_surprise_and_a_float(student, rng, oracle):
    """Equal logits give log(classes), whatever the labels; others give PyTorch's loss."""
    for n, classes in ((4, 3), (1, 5), (3, 1)):
        labels = draw_labels(rng, n, classes)
        gradient = np.full((n, classes), 1 / classes)
        gradient[np.arange(n), labels] -= 1
        expected = np.log(classes), gradient / n
        logits = np.full((n, classes), 0.7)
        check_cross_entropy(student, logits, labels, expected, situation=f"{classes} equal logits")
    for n, classes in ((5, 4), (2, 7)):
        logits, labels = rng.normal(size=(n, classes)), draw_labels(rng, n, classes)
        expected = oracle.cross_entropy(logits, labels)
        check_cross_entropy(student, logits, labels, expected, situation=f"{n} images")


@weight(2)
@number("2.2")
def test_cross_entropy_gives_the_gradient_of_the_mean(student, rng, oracle):
    """dlogits is PyTorch's for views, float32 and any type of integer labels; inputs stay."""
    logits, labels = 3 * rng.normal(size=(6, 4)), draw_labels(rng, 6, 4)
    expected = oracle.cross_entropy(logits, labels)
    for view in (sliced, transposed):
        check_cross_entropy(student, logits, labels, expected, situation="views", view=view)
    for dtype in ("uint8", "int8", "int32"):
        check_cross_entropy(
            student, logits, labels.astype(dtype), expected, situation=f"{dtype} labels"
        )
    single, unlikely = logits.astype(np.float32), unlikely_labels(logits)
    expected = oracle.cross_entropy(single, unlikely)
    check_cross_entropy(student, single, unlikely, expected, situation="float32")
    function = student.softmax_cross_entropy
    check_unchanged("softmax_cross_entropy", function, logits, labels)


@weight(1)
@number("2.2")
def test_cross_entropy_does_not_overflow(student):
    """Logits of 1e4 and -1e4 give the exact loss, which may be 20,000, and no NaN."""
    logits = np.array([[1e4, 0, -1e4], [1e4, 1e4, -1e4], [-1e4, -1e4, -1e4], [0, 1e4, 5]])
    labels = np.array([2, 0, 1, 1])
    gradient = np.array([[1, 0, -1], [-1 / 2, 1 / 2, 0], [1 / 3, -2 / 3, 1 / 3], [0, 0, 0]]) / 4
    loss = (2e4 + np.log(2) + np.log(3)) / 4
    for dtype in (np.float64, np.float32):
        expected = loss, gradient.astype(dtype)
        situation = f"huge logits, {np.dtype(dtype)}"
        check_cross_entropy(student, logits.astype(dtype), labels, expected, situation=situation)


@weight(1)
@number("2.2")
def test_cross_entropy_refuses_labels_that_do_not_fit(student, rng):
    """Labels out of range, floats, another number of them and empty batches: ValueError."""
    check_bad_labels(student, rng, 5, 3)


@weight(1)
@number("2.3")
def test_he_normal_draws_with_the_right_spread(student, rng):
    """Normal draws of mean 0 and standard deviation sqrt(2 / fan_in), from the given generator."""
    for shape, fan_in, dtype in (
        ((40, 50), 50, "float32"),
        ((16, 8, 5, 3), 120, "float64"),
        ((2000,), 7, "float32"),
    ):
        check_he_normal(student, rng, shape, fan_in, dtype=dtype)
    draws = student.he_normal(generator(rng), (2, 3), 3)
    right = isinstance(draws, np.ndarray) and draws.dtype == np.float32
    check(right, "he_normal must give float32 when no dtype is named.")


@weight(1)
@number("2.3")
def test_lenet_has_the_parameters_that_the_handout_names(student, rng):
    """Names, shapes and dtype of the weights; biases of 0; 46,730 numbers with the usual sizes."""
    check_first_parameters(student, "LeNet", rng, Sizes(28, (16, 32), 5, 64, 10), dtype="float32")
    check_first_parameters(student, "LeNet", rng, SMALL, dtype="float64")
    check_first_parameters(student, "LeNet", rng, WITH_LEFTOVERS, dtype="float32")
    parameters = build(student, "LeNet", rng).parameters
    check_names(parameters, SMALL.shapes, "parameters")
    count = sum(array.size for array in parameters.values())
    assert_equal(count, 46_730, what="the number of parameters")


@weight(1)
@number("2.3")
def test_lenet_draws_each_weight_with_its_own_spread(student, rng):
    """Each w has the standard deviation sqrt(2 / fan_in); the same seed gives the same weights."""
    check_first_weights(student, "LeNet", rng, Sizes(28, (60, 40), 5, 50, 30))
    seed = draw_seed(rng)
    first, again, other = (
        student.LeNet(np.random.default_rng(number), **vars(SMALL)).parameters["dense1.w"]
        for number in (seed, seed, seed + 1)
    )
    check(np.array_equal(first, again), "The same seed must give the same weights.")
    check(not np.array_equal(first, other), "Another seed must give other weights.")


@weight(2)
@number("2.3")
def test_lenet_gives_the_logits_of_its_layers(student, rng, oracle):
    """With the same weights, the logits are PyTorch's, also where a pooling leaves pixels over."""
    for sizes, n in ((SMALL, 6), (WITH_LEFTOVERS, 2), (TINY, 1)):
        situation = f"{n} images of {sizes.image_size} x {sizes.image_size}"
        check_network(student, oracle, rng, "LeNet", sizes=sizes, n=n, situation=situation)
    for view in (sliced, transposed):
        check_network(student, oracle, rng, "LeNet", sizes=SMALL, n=3, situation="views", view=view)


@weight(2)
@number("2.3")
def test_lenet_gives_the_gradient_of_every_weight(student, rng, oracle):
    """With the same weights, the loss and all eight gradients are PyTorch's."""
    for sizes, n in ((SMALL, 6), (WITH_LEFTOVERS, 2), (TINY, 1)):
        situation = f"{n} images of {sizes.image_size} x {sizes.image_size}"
        check_network_gradients(
            student, oracle, rng, "LeNet", sizes=sizes, n=n, situation=situation
        )
    check_network_gradients(
        student, oracle, rng, "LeNet", sizes=SMALL, n=3, situation="views", view=transposed
    )


@weight(1)
@number("2.3")
def test_lenet_computes_in_its_own_dtype(student, rng, oracle):
    """Logits and gradients have the dtype of the model, for images of floats and of integers."""
    check_network_types(student, oracle, rng, "LeNet", sizes=SMALL, n=3)


@weight(1)
@number("2.3")
def test_lenet_uses_the_weights_of_the_moment_and_changes_none(student, rng, oracle):
    """Weights that were overwritten count at once; calls and models don't disturb each other."""
    check_network_keeps_apart(student, oracle, rng, "LeNet", sizes=SMALL, n=3)


@weight(1)
@number("2.3")
def test_lenet_refuses_images_and_labels_that_do_not_fit(student, rng):
    """Wrong shapes, empty batches, bad labels and images too small for the layers: ValueError."""
    check_network_refuses(student, rng, "LeNet", SMALL, n=3)
    for image_size, kernel in ((15, 5), (5, 5), (3, 5), (4, 2), (9, 3)):
        situation = f"a kernel of {kernel} and images of {image_size} x {image_size}"
        sizes = {"image_size": image_size, "kernel": kernel}
        check_refused(situation, student.LeNet, generator(rng), **sizes)
    build(student, "LeNet", rng, image_size=16, kernel=5)


@weight(2)
@number("2.4")
def test_sgd_momentum_takes_the_steps_of_pytorch(student, rng, oracle):
    """Four steps with another learning rate each, with and without momentum."""
    rates = (0.1, 0.1, 0.03, 0.2)
    for momentum in (0.7, 0.0):
        asked = {"momentum": momentum}
        check_steps(
            student, oracle, rng, "sgd_momentum", rates=rates, asked=asked, settings=(momentum,)
        )
    check_steps(student, oracle, rng, "sgd_momentum", rates=rates, asked={}, settings=(0.9,))


@weight(2)
@number("2.4")
def test_adam_takes_the_steps_of_pytorch(student, rng, oracle):
    """Four steps with another learning rate each, and betas that are not the usual ones."""
    rates = (0.1, 0.1, 0.03, 0.2)
    check_steps(student, oracle, rng, "adam", rates=rates, asked={}, settings=(0.9, 0.999, 1e-8))
    asked = {"beta1": 0.7, "beta2": 0.8}
    check_steps(student, oracle, rng, "adam", rates=rates, asked=asked, settings=(0.7, 0.8, 1e-8))


@weight(1)
@number("2.4")
def test_adam_adds_epsilon_to_the_root(student, rng, oracle):
    """With an epsilon as large as the gradients, it matters where it is added: after the root."""
    asked = {"beta1": 0.8, "beta2": 0.9, "epsilon": 0.5}
    check_steps(
        student, oracle, rng, "adam", rates=(0.1, 0.05, 0.2), asked=asked, settings=(0.8, 0.9, 0.5)
    )


@weight(1)
@number("2.4")
def test_optimizers_change_nothing_and_return_plain_new_data(student, rng):
    """A step that is repeated from the same state, or from a copy of it, ends at the same place."""
    for name in OPTIMIZERS:
        check_steps_have_no_side_effects(student, rng, name)


@weight(1)
@number("2.4")
def test_optimizers_keep_float32_and_refuse_gradients_that_do_not_fit(student, rng, oracle):
    """New parameters have the dtype of the old; other names or shapes raise ValueError."""
    rates = (0.1, 0.05)
    for name, settings in (("sgd_momentum", (0.9,)), ("adam", (0.9, 0.999, 1e-8))):
        check_steps(
            student, oracle, rng, name, rates=rates, asked={}, settings=settings, dtype="float32"
        )
        check_steps_refuse(student, rng, name)


@weight(1)
@number("2.5")
def test_minibatches_hold_every_number_once(student, rng):
    """Integer arrays of batch_size numbers, the last one smaller where they don't come out even."""
    for n, batch_size in ((12, 4), (11, 4), (3, 5), (5, 1), (1, 1), (7, 7)):
        check_pieces(student.minibatches(n, batch_size, generator(rng)), n, batch_size)


@weight(1)
@number("2.5")
def test_minibatches_come_in_an_order_that_the_generator_draws(student, rng):
    """The same seed gives the same order, another seed another one, and each looks random."""
    seed = draw_seed(rng)
    first, again, other = (
        check_pieces(student.minibatches(2000, 50, np.random.default_rng(number)), 2000, 50)
        for number in (seed, seed, seed + 1)
    )
    check(np.array_equal(first, again), "The same generator must give the same minibatches.")
    check(not np.array_equal(first, other), "Another generator must give other minibatches.")
    check_is_shuffled(first, "The numbers")


@weight(1)
@number("2.5")
def test_train_takes_steps_of_momentum_with_a_rate_that_decays(student, rng, oracle):
    """With all images in one mini-batch, losses and weights are those of PyTorch's SGD."""
    run = draw_full_batch_run(oracle, rng, "sgd", 4, learning_rate=0.3, decay=0.7, best=3)
    check_full_batch_weights(student, rng, run, "momentum, four epochs")


@weight(1)
@number("2.5")
def test_train_takes_steps_of_adam_with_a_rate_that_decays(student, rng, oracle):
    """With all images in one mini-batch, losses and weights are those of PyTorch's Adam."""
    run = draw_full_batch_run(oracle, rng, "adam", 4, learning_rate=0.1, decay=0.8, best=3)
    check_full_batch_weights(student, rng, run, "Adam, four epochs")


@weight(1)
@number("2.5")
def test_history_tells_what_the_model_is_worth_after_each_epoch(student, rng, oracle):
    """Loss and accuracy of training and validation images, and the learning rate, as floats."""
    run = draw_full_batch_run(oracle, rng, "sgd", 3, learning_rate=0.2, decay=0.5)
    check_history(student, rng, run, draw_labels(rng, 16, TINY.classes))


@weight(2)
@number("2.5")
def test_train_leaves_the_best_weights_in_the_model(student, rng, oracle):
    """Those after the epoch with the highest validation accuracy; on a tie, the earliest."""
    for best in (0, 1):
        run = draw_full_batch_run(oracle, rng, "adam", 3, learning_rate=0.1, decay=0.9, best=best)
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
def test_train_uses_every_image_once_in_each_epoch(student, rng, oracle):
    """Also when the last mini-batch is smaller; and the images stay as they are."""
    check_every_image_once(student, oracle, rng, n=11, batch_size=4, epochs=2)


@weight(1)
@number("2.5")
def test_train_shuffles_anew_in_each_epoch_by_the_seed(student, rng, oracle):
    """The order of the images depends on config.seed and the epoch, and on nothing else."""
    check_orders(student, oracle, rng)


@weight(2)
@number("2.5")
def test_a_run_that_goes_on_ends_as_one_that_never_stopped(student, rng):
    """Exactly the same weights and history, wherever it was stopped and however often."""
    check_resuming(student, rng, "adam", "float32", wrong_labels=True)
    check_resuming(student, rng, "adam", "float64", wrong_labels=False)
    check_resuming(student, rng, "sgd", "float32", wrong_labels=False)


@weight(1)
@number("2.5")
def test_train_stops_when_the_loss_is_not_finite_and_refuses_a_strange_state(student, rng):
    """ValueError with epoch and step, counted from 1; ValueError for a state of another model."""
    check_diverges(student, rng, n=6, batch_size=2, step=2)
    check_diverges(student, rng, n=3, batch_size=5, step=1)
    check_diverges(student, rng, n=4, batch_size=3, step=1, poisoned=True)
    check_strange_state(student, rng)


@weight(2)
@number("2.5")
@tags("training")
def test_lenet_reads_88_percent_of_held_out_digits_after_three_epochs(student, rng):
    """Trained on 4,000 images of 14 x 14 pixels, a smaller LeNet reads 1,000 other ones."""
    check_digits(student, rng)


@weight(1)
@number("2.6")
def test_mlp_has_the_parameters_that_the_handout_names(student, rng):
    """Names, shapes, dtype and spread of the weights; 46,915 numbers with the usual sizes."""
    check_first_parameters(student, "MLP", rng, MLPSizes(28, 59, 10), dtype="float32")
    check_first_parameters(student, "MLP", rng, SMALL_MLP, dtype="float64")
    check_first_weights(student, "MLP", rng, MLPSizes(10, 60, 25))
    parameters = build(student, "MLP", rng).parameters
    check_names(parameters, SMALL_MLP.shapes, "parameters")
    count = sum(array.size for array in parameters.values())
    assert_equal(count, 46_915, what="the number of parameters")


@weight(1)
@number("2.6")
def test_mlp_gives_logits_and_gradients(student, rng, oracle):
    """With the same weights, logits, loss and gradients are PyTorch's, and views are fine."""
    for sizes, n in ((SMALL_MLP, 6), (MLPSizes(3, 2, 4), 1)):
        check_network(student, oracle, rng, "MLP", sizes=sizes, n=n, situation=f"{n} images")
        check_network_gradients(
            student, oracle, rng, "MLP", sizes=sizes, n=n, situation=f"{n} images"
        )
    check_network(
        student, oracle, rng, "MLP", sizes=SMALL_MLP, n=3, situation="views", view=transposed
    )
    check_network_gradients(
        student, oracle, rng, "MLP", sizes=SMALL_MLP, n=3, situation="views", view=transposed
    )


@weight(1)
@number("2.6")
def test_mlp_keeps_its_dtype_uses_the_weights_of_the_moment_and_refuses(student, rng, oracle):
    """The dtype of the model; weights that were overwritten count; wrong shapes: ValueError."""
    check_network_types(student, oracle, rng, "MLP", sizes=SMALL_MLP, n=3)
    check_network_keeps_apart(student, oracle, rng, "MLP", sizes=SMALL_MLP, n=3)
    check_network_refuses(student, rng, "MLP", SMALL_MLP, n=3)


@weight(1)
@number("2.6")
def test_permute_pixels_moves_the_pixels_of_all_images_alike(student, rng):
    """One random permutation, which depends on the generator and the number of pixels alone."""
    check_permutation(student, rng, (3, 2, 4, 6))


@weight(1)
@number("2.6")
@tags("training")
def test_shuffled_pixels_hurt_the_lenet_and_not_the_mlp(student, rng):
    """On 2,000 digits of 14 x 14: the LeNet loses 2 points or more, the MLP moves by 6 or less."""
    check_shuffling(student, rng)


@weight(1)
@number("2.7")
def test_receptive_field_grows_layer_by_layer(student, oracle):
    """Size and jump of convolutions and poolings in a row; the LeNet's are 16 and 4."""
    for layers, expected in (
        ([], (1, 1)),
        ([(5, 1)], (5, 1)),
        ([(3, 1), (3, 1)], (5, 1)),
        ([(2, 2)], (2, 2)),
        ([(5, 1), (2, 2), (5, 1), (2, 2)], (16, 4)),
        ([(2, 3), (4, 2)], (11, 6)),
        ([(1, 2), (1, 3)], (1, 6)),
        ([(7, 2), (3, 2), (3, 1), (1, 1)], (19, 4)),
    ):
        result = student.receptive_field(layers)
        assert_equal(result, expected, what=f"the receptive field of {layers}")
        check_field(student, oracle, layers)


@weight(1)
@number("2.7")
def test_receptive_field_refuses_sizes_below_one(student, oracle):
    """A kernel or a stride below 1 raises ValueError, in whichever layer it is."""
    for layers in (
        [(0, 1)],
        [(3, 0)],
        [(3, 1), (-1, 1)],
        [(3, 1), (3, -1)],
        [(0, 2), (5, 1)],
    ):
        check_refused(f"the layers {layers}", student.receptive_field, layers)
    check_field(student, oracle, [(1, 1), (3, 2)])


@weight(2)
@number("2.7")
def test_feature_maps_are_what_the_filters_find(student, rng, oracle):
    """conv1 and conv2 after their relu, in the dtype of the model; wrong shapes: ValueError."""
    for sizes, dtype, image_type in (
        (SMALL, "float64", "float64"),
        (WITH_LEFTOVERS, "float32", "uint8"),
        (SMALL, "float32", "float64"),
    ):
        check_feature_maps(student, oracle, rng, sizes, dtype=dtype, image_type=image_type)
    check_feature_maps(
        student, oracle, rng, SMALL, dtype="float64", image_type="float64", view=transposed
    )
    model = build(student, "LeNet", rng, **vars(SMALL))
    images = draw_images(rng, 2, SMALL.image_size)
    for situation, image in (
        ("an image without its channel", images[0, 0]),
        ("several images", images),
        ("an image with two channels", images[:, 0]),
        ("an image that is too small", images[0, :, 1:, 1:]),
    ):
        check_refused(situation, student.feature_maps, model, image)


@weight(2)
@number("2.8")
def test_q1_the_products_of_each_layer_are_counted(lab):
    """Lab, question 1: places of a map, times kernels, times weights of a kernel."""
    products = [24 * 24 * 16 * 25, 8 * 8 * 32 * (16 * 25), 512 * 64, 64 * 10]
    check_sizes(lab, "q1_products", products)


@weight(1)
@number("2.8")
def test_q3_the_way_that_each_layer_moved_is_measured(lab):
    """Lab, question 3: the length of what training added, divided by the first length."""
    moved = array_answer(lab, "q3_moved", (4,))
    right = np.array([0.125, 0.396, 0.327, 0.147])  # measured, for conv1, conv2, dense1, dense2
    check(bool((abs(moved - right) <= 0.01).all()), "q3_moved is wrong.", value=moved)


@weight(2)
@number("2.9")
def test_q7_the_confusion_matrix_has_a_row_for_each_digit(lab):
    """Lab, question 7: 100 images in each row, and as many mistakes as the LeNet makes."""
    check_confusion(lab, errors=78, spread=5)


@weight(1)
@number("2.9")
def test_q8_what_is_unsure_is_handed_over(lab):
    """Lab, question 8: how many of the 1,000 images have a largest probability below 0.9."""
    check_number(lab, "q8_handed", 250, tolerance=5)


@weight(1)
@number("2.9")
def test_q9_the_weights_lie_where_their_pixels_were(lab):
    """Lab, question 9: the picture of digit 0, with the shuffle undone."""
    check_picture(lab)
