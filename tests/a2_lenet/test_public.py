"""The public tests of assignment 2: a LeNet, trained from scratch."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.data import load_mnist
from common.labs.answer_checks import array_answer, check_number, check_sizes
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_refused, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
from tests.a2_lenet import cases, network_cases, optimizer_cases, training_cases
from tests.a2_lenet.battery_cases import CASES
from tests.a2_lenet.cases import LOGIT_AXES, ROW_AXES, TINY

DEFAULT = {
    "image_size": 28,
    "filters": (16, 32),
    "kernel_size": 5,
    "hidden_size": 64,
    "num_classes": 10,
}
SMALL = {"image_size": 11, "filters": (2, 3), "kernel_size": 2, "hidden_size": 5, "num_classes": 4}
WITH_LEFTOVERS = {
    "image_size": 13,
    "filters": (3, 2),
    "kernel_size": 3,
    "hidden_size": 4,
    "num_classes": 5,
}
SMALL_MLP = {"image_size": 4, "hidden_size": 5, "num_classes": 3}


@weight(1)
@number("2.1")
def test_relu_keeps_what_is_positive_and_sets_the_rest_to_zero(student, rng):
    """out is max(x, 0), for arrays of any shape, with zeros, and for views."""
    for shape in ((6,), (3, 4), (2, 3, 4, 5), (1, 1)):
        x = cases.draw_quarters(rng, shape)
        out, _ = unpack(student.relu_forward(x), 2, "relu_forward")
        assert_close(out, np.where(x > 0, x, 0.0), what=f"out (shape {shape})")
    x = cases.draw_quarters(rng, (3, 4, 5))
    for view in (sliced, transposed):
        out, _ = unpack(student.relu_forward(view(x)), 2, "relu_forward")
        assert_close(out, np.where(x > 0, x, 0.0), what="out (views)")


@weight(1)
@number("2.1")
def test_relu_lets_the_gradient_through_where_x_was_positive(student, rng):
    """dx is dout where x is above 0, and 0 elsewhere, also where x is exactly 0."""

    def check_backward(x, situation, view=np.asarray):
        dout = rng.normal(size=x.shape)
        _, cache = unpack(student.relu_forward(x), 2, "relu_forward")
        dx = student.relu_backward(view(dout), cache)
        assert_close(dx, np.where(x > 0, dout, 0.0), what=f"dx ({situation})")

    for shape in ((6,), (3, 4), (2, 3, 4, 5)):
        check_backward(rng.normal(size=shape), f"shape {shape}")
        check_backward(cases.draw_quarters(rng, shape), "with zeros", transposed)
    check_backward(np.zeros((2, 3)), "zeros only")


@weight(1)
@number("2.1")
def test_linear_multiplies_by_the_weights_and_adds_one_bias_for_each_output(student, rng, oracle):
    """out is x @ w + b, also for sizes of 1 and for views."""
    for sizes in ((4, 3, 5), (1, 6, 2), (3, 1, 4), (5, 2, 1), (1, 1, 1)):
        x, w, b = cases.draw_linear(rng, *sizes)
        out, _ = unpack(student.linear_forward(x, w, b), 2, "linear_forward")
        what = f"out (n, d_in, d_out of {sizes})"
        assert_close(out, oracle.linear(x, w, b), what=what, axes=ROW_AXES)
    x, w, b = cases.draw_linear(rng, 4, 3, 5)
    result = student.linear_forward(sliced(x), transposed(w), sliced(b))
    out, _ = unpack(result, 2, "linear_forward")
    assert_close(out, oracle.linear(x, w, b), what="out (views)", axes=ROW_AXES)


@weight(1)
@number("2.1")
def test_linear_gives_the_gradients_of_input_weights_and_bias(student, rng, oracle):
    """dx, dw and db equal PyTorch's; dw and db are sums over the batch, not means."""
    for sizes in ((4, 3, 5), (1, 6, 2), (3, 1, 4), (5, 2, 1)):
        x, w, b = cases.draw_linear(rng, *sizes)
        dout = rng.normal(size=(len(x), len(b)))
        _, cache = unpack(student.linear_forward(x, w, b), 2, "linear_forward")
        gradients = unpack(student.linear_backward(dout, cache), 3, "linear_backward")
        expected = oracle.linear_gradients(x, w, b, dout)
        cases.compare_linear_gradients(gradients, expected, f"n, d_in, d_out of {sizes}")
    x, w, b = cases.draw_linear(rng, 4, 3, 5)
    dout = rng.normal(size=(4, 5))
    result = student.linear_forward(transposed(x), sliced(w), sliced(b))
    _, cache = unpack(result, 2, "linear_forward")
    gradients = unpack(student.linear_backward(transposed(dout), cache), 3, "linear_backward")
    cases.compare_linear_gradients(gradients, oracle.linear_gradients(x, w, b, dout), "views")


@weight(1)
@number("2.1")
def test_linear_refuses_shapes_that_do_not_fit_together(student, rng, oracle):
    """x, w and b raise ValueError if and only if their shapes don't fit together."""
    x, w, b = cases.draw_linear(rng, 4, 3, 5)
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
    out, _ = unpack(student.linear_forward(x, w, b), 2, "linear_forward")
    assert_close(out, oracle.linear(x, w, b), what="out (shapes that fit)", axes=ROW_AXES)


@weight(1)
@number("2.1")
def test_flatten_makes_a_row_of_each_image_and_back(student, rng):
    """Rows are in row-major order, whatever the memory layout; dx has the shape of x."""
    shapes = ((2, 3, 4, 5), (4, 1, 2, 3), (1, 2, 3, 1), (3, 4, 2), (3, 5))
    situations = [(f"shape {shape}", shape, np.asarray) for shape in shapes]
    situations += [("views", (2, 3, 4, 5), view) for view in (sliced, transposed)]
    for situation, shape, view in situations:
        x, expected = (rng.normal(size=shape) for _ in range(2))
        out, cache = unpack(student.flatten_forward(view(x)), 2, "flatten_forward")
        assert_close(out, x.reshape(len(x), -1), what=f"out ({situation})", axes=ROW_AXES)
        dx = student.flatten_backward(view(expected.reshape(len(x), -1)), cache)
        assert_close(dx, expected, what=f"dx ({situation})")


@weight(1)
@number("2.1")
def test_layers_keep_float32_leave_inputs_alone_and_do_not_disturb_each_other(student, rng, oracle):
    """float32 in gives float32 out; inputs don't change; each backward pass uses its own cache."""
    x = cases.draw_quarters(rng, (2, 3, 4)).astype(np.float32)
    out, _ = unpack(student.relu_forward(x), 2, "relu_forward")
    assert_close(out, np.where(x > 0, x, np.float32(0)), what="out (float32)")
    dout = rng.normal(size=x.shape).astype(np.float32)
    _, cache = unpack(student.relu_forward(x), 2, "relu_forward")
    dx = student.relu_backward(dout, cache)
    assert_close(dx, np.where(x > 0, dout, np.float32(0)), what="dx (float32)")

    x, w, b = cases.draw_linear(rng, 4, 3, 5, dtype=np.float32)
    out, _ = unpack(student.linear_forward(x, w, b), 2, "linear_forward")
    assert_close(out, oracle.linear(x, w, b), what="out (float32)", axes=ROW_AXES)
    dout = cases.draw_exact(rng, (4, 5), np.float32)
    _, cache = unpack(student.linear_forward(x, w, b), 2, "linear_forward")
    gradients = unpack(student.linear_backward(dout, cache), 3, "linear_backward")
    cases.compare_linear_gradients(gradients, oracle.linear_gradients(x, w, b, dout), "float32")

    x, expected = (rng.normal(size=(2, 3, 4, 5)).astype(np.float32) for _ in range(2))
    out, cache = unpack(student.flatten_forward(x), 2, "flatten_forward")
    assert_close(out, x.reshape(2, 60), what="out (float32)", axes=ROW_AXES)
    dx = student.flatten_backward(expected.reshape(2, 60), cache)
    assert_close(dx, expected, what="dx (float32)")

    check_promises(student, rng, CASES["2.1"])


@weight(2)
@number("2.2")
def test_cross_entropy_is_a_mean_and_a_float(student, rng, oracle):
    """Equal logits give log(num_classes), whatever the labels; others give PyTorch's loss."""
    for n, classes in ((4, 3), (1, 5), (3, 1)):
        logits, labels = np.full((n, classes), 0.7), rng.integers(classes, size=n)
        gradient = np.full((n, classes), 1 / classes)
        gradient[np.arange(n), labels] -= 1
        expected = np.log(classes), gradient / n
        result = student.softmax_cross_entropy(logits, labels)
        cases.compare_cross_entropy(result, expected, f"{classes} equal logits")
    for n, classes in ((5, 4), (2, 7)):
        logits, labels = rng.normal(size=(n, classes)), rng.integers(classes, size=n)
        result = student.softmax_cross_entropy(logits, labels)
        cases.compare_cross_entropy(result, oracle.cross_entropy(logits, labels), f"{n} images")


@weight(2)
@number("2.2")
def test_cross_entropy_gives_the_gradient_of_the_mean(student, rng, oracle):
    """dlogits equals PyTorch's for views, float32 and labels of any integer dtype."""
    logits, labels = 3 * rng.normal(size=(6, 4)), rng.integers(4, size=6)
    expected = oracle.cross_entropy(logits, labels)
    for view in (sliced, transposed):
        result = student.softmax_cross_entropy(view(logits), labels)
        cases.compare_cross_entropy(result, expected, "views")
    for dtype in ("uint8", "int8", "int32"):
        result = student.softmax_cross_entropy(logits, labels.astype(dtype))
        cases.compare_cross_entropy(result, expected, f"{dtype} labels")
    single, unlikely = logits.astype(np.float32), logits.argmin(axis=1)
    result = student.softmax_cross_entropy(single, unlikely)
    cases.compare_cross_entropy(result, oracle.cross_entropy(single, unlikely), "float32")
    check_promises(student, rng, CASES["2.2"])


@weight(1)
@number("2.2")
def test_cross_entropy_does_not_overflow(student):
    """Logits of 1e4 and -1e4 give the exact loss, which can be 20,000, and no NaN."""
    logits = np.array([[1e4, 0, -1e4], [1e4, 1e4, -1e4], [-1e4, -1e4, -1e4], [0, 1e4, 5]])
    labels = np.array([2, 0, 1, 1])
    gradient = np.array([[1, 0, -1], [-1 / 2, 1 / 2, 0], [1 / 3, -2 / 3, 1 / 3], [0, 0, 0]]) / 4
    loss = (2e4 + np.log(2) + np.log(3)) / 4
    for dtype in (np.float64, np.float32):
        result = student.softmax_cross_entropy(logits.astype(dtype), labels)
        expected = loss, gradient.astype(dtype)
        cases.compare_cross_entropy(result, expected, f"huge logits, {np.dtype(dtype)}")


@weight(1)
@number("2.2")
def test_cross_entropy_refuses_labels_that_do_not_fit(student, rng):
    """Labels out of range, float labels, too few labels and empty batches raise ValueError."""
    logits, labels = rng.normal(size=(5, 3)), rng.integers(3, size=5)
    for situation, given, wrong in cases.bad_labels(logits, labels):
        check_refused(situation, student.softmax_cross_entropy, given, wrong)
    unpack(student.softmax_cross_entropy(logits, labels), 2, "softmax_cross_entropy")


@weight(1)
@number("2.3")
def test_he_normal_draws_with_the_right_spread(student, rng):
    """Normal draws with mean 0 and standard deviation sqrt(2 / fan_in), from the generator."""
    for shape, fan_in, dtype in (
        ((40, 50), 50, "float32"),
        ((16, 8, 5, 3), 120, "float64"),
        ((2000,), 7, "float32"),
    ):
        seed = cases.draw_seed(rng)
        results = [
            student.he_normal(np.random.default_rng(number), shape, fan_in, dtype)
            for number in (seed, seed, seed + 1)
        ]
        network_cases.check_he_normal(results, shape, fan_in, dtype)
    draws = student.he_normal(cases.generator(rng), (2, 3), 3)
    right = isinstance(draws, np.ndarray) and draws.dtype == np.float32
    check(right, "he_normal must return float32 by default.")


@weight(1)
@number("2.3")
def test_lenet_has_the_parameters_that_its_docstring_names(student, rng):
    """Names, shapes and dtype; biases of 0; 46,730 parameters with the default sizes."""
    for sizes, dtype in ((DEFAULT, "float32"), (SMALL, "float64"), (WITH_LEFTOVERS, "float32")):
        model = student.LeNet(cases.generator(rng), dtype=dtype, **sizes)
        network_cases.check_initial_parameters(model, sizes, dtype)
    model = student.LeNet(cases.generator(rng))
    parameters = cases.parameters_of(model, cases.weight_shapes(**DEFAULT))
    count = sum(array.size for array in parameters.values())
    assert_equal(count, 46_730, what="the number of parameters")


@weight(1)
@number("2.3")
def test_lenet_draws_each_weight_with_its_own_deviation(student, rng):
    """Each w has the standard deviation sqrt(2 / fan_in); the same seed gives the same weights."""
    sizes = {
        "image_size": 28,
        "filters": (60, 40),
        "kernel_size": 5,
        "hidden_size": 50,
        "num_classes": 30,
    }
    network_cases.check_initial_weights(student.LeNet(cases.generator(rng), **sizes), sizes)
    seed = cases.draw_seed(rng)
    first, again, other = (
        student.LeNet(np.random.default_rng(number), **SMALL).parameters["linear1.w"]
        for number in (seed, seed, seed + 1)
    )
    check(np.array_equal(first, again), "The same seed must give the same weights.")
    check(not np.array_equal(first, other), "Another seed must give other weights.")


@weight(2)
@number("2.3")
def test_lenet_gives_the_logits_of_its_layers(student, rng, oracle):
    """With the same weights, the logits equal PyTorch's, also if a pooling leaves pixels over."""
    for situation, sizes, n, view in (
        ("6 images of 11 x 11", SMALL, 6, np.asarray),
        ("2 images of 13 x 13", WITH_LEFTOVERS, 2, np.asarray),
        ("one image of 8 x 8", TINY, 1, np.asarray),
        ("views", SMALL, 3, sliced),
        ("views", SMALL, 3, transposed),
    ):
        weights = cases.draw_weights(rng, sizes)
        model = cases.make_model(student.LeNet, rng, sizes, weights)
        x = cases.draw_images(rng, n, sizes)
        logits = model.forward(view(x))
        expected = oracle.lenet(x, *weights.values())
        assert_close(logits, expected, what=f"logits ({situation})", axes=LOGIT_AXES)


@weight(2)
@number("2.3")
def test_lenet_gives_the_gradient_of_every_weight(student, rng, oracle):
    """With the same weights, the loss and all eight gradients equal PyTorch's."""
    for situation, sizes, n, view in (
        ("6 images of 11 x 11", SMALL, 6, np.asarray),
        ("2 images of 13 x 13", WITH_LEFTOVERS, 2, np.asarray),
        ("one image of 8 x 8", TINY, 1, np.asarray),
        ("views", SMALL, 3, transposed),
    ):
        weights = cases.draw_weights(rng, sizes)
        model = cases.make_model(student.LeNet, rng, sizes, weights)
        x = cases.draw_images(rng, n, sizes)
        labels = cases.draw_surprising_labels(rng, oracle.lenet(x, *weights.values()))
        result = model.loss_and_gradients(view(x), labels)
        expected = oracle.lenet_gradients(x, labels, *weights.values())
        network_cases.compare_loss_and_gradients(result, expected, weights, situation)


@weight(1)
@number("2.3")
def test_lenet_computes_in_its_own_dtype(student, rng, oracle):
    """Logits and gradients have the dtype of the model, for float and integer images."""
    network_cases.check_types(student.LeNet, oracle, rng, sizes=SMALL, n=3)


@weight(1)
@number("2.3")
def test_lenet_uses_its_current_weights_and_changes_none(student, rng, oracle):
    """Overwritten weights are used at once; calls and models don't affect each other."""
    network_cases.check_independence(student.LeNet, oracle.lenet_gradients, rng, sizes=SMALL, n=3)
    check_promises(student, rng, CASES["2.3"])


@weight(1)
@number("2.3")
def test_lenet_rejects_images_and_labels_that_do_not_fit(student, rng):
    """Wrong shapes, empty batches, bad labels and images that are too small raise ValueError."""
    model = cases.make_model(student.LeNet, rng, SMALL, cases.draw_weights(rng, SMALL))
    network_cases.check_refusals(model, rng, SMALL, n=3)
    for image_size, kernel_size in ((15, 5), (5, 5), (3, 5), (4, 2), (9, 3)):
        situation = f"a kernel_size of {kernel_size} and images of {image_size} x {image_size}"
        sizes = {"image_size": image_size, "kernel_size": kernel_size}
        check_refused(situation, student.LeNet, cases.generator(rng), **sizes)
    cases.check_model(student.LeNet(cases.generator(rng), image_size=16, kernel_size=5))


@weight(2)
@number("2.4")
def test_sgd_momentum_takes_the_steps_of_pytorch(student, rng, oracle):
    """Four steps with changing learning rates, with and without momentum."""
    rates = (0.1, 0.1, 0.03, 0.2)
    for settings, momentum in (({"momentum": 0.7}, 0.7), ({"momentum": 0.0}, 0.0), ({}, 0.9)):
        parameters, steps = optimizer_cases.draw_steps(rng, oracle.sgd_steps, rates, (momentum,))
        state = None
        for count, (gradients, rate, expected) in enumerate(steps, start=1):
            result = student.sgd_momentum(parameters, gradients, state, rate, **settings)
            parameters, state = unpack(result, 2, "sgd_momentum")
            optimizer_cases.compare_step(parameters, expected, count)


@weight(2)
@number("2.4")
def test_adam_takes_the_steps_of_pytorch(student, rng, oracle):
    """Four steps with changing learning rates, with default and other betas."""
    rates = (0.1, 0.1, 0.03, 0.2)
    other_betas = {"beta1": 0.7, "beta2": 0.8}
    for settings, values in (({}, (0.9, 0.999, 1e-8)), (other_betas, (0.7, 0.8, 1e-8))):
        parameters, steps = optimizer_cases.draw_steps(rng, oracle.adam_steps, rates, values)
        state = None
        for count, (gradients, rate, expected) in enumerate(steps, start=1):
            result = student.adam(parameters, gradients, state, rate, **settings)
            parameters, state = unpack(result, 2, "adam")
            optimizer_cases.compare_step(parameters, expected, count)


@weight(1)
@number("2.4")
def test_adam_adds_epsilon_to_the_square_root(student, rng, oracle):
    """epsilon is added to the square root: with one as large as the gradients, it matters."""
    rates, settings = (0.1, 0.05, 0.2), {"beta1": 0.8, "beta2": 0.9, "epsilon": 0.5}
    parameters, steps = optimizer_cases.draw_steps(rng, oracle.adam_steps, rates, (0.8, 0.9, 0.5))
    state = None
    for count, (gradients, rate, expected) in enumerate(steps, start=1):
        result = student.adam(parameters, gradients, state, rate, **settings)
        parameters, state = unpack(result, 2, "adam")
        optimizer_cases.compare_step(parameters, expected, count)


@weight(1)
@number("2.4")
def test_optimizers_change_nothing_and_return_plain_new_data(student, rng):
    """A step repeated from the same state, or from a copy of it, gives the same result."""
    for name, step in (("sgd_momentum", student.sgd_momentum), ("adam", student.adam)):
        optimizer_cases.check_steps_can_be_repeated(step, name, rng)
    check_promises(student, rng, CASES["2.4"])


@weight(1)
@number("2.4")
def test_optimizers_keep_float32_and_reject_gradients_that_do_not_fit(student, rng, oracle):
    """New parameters have the dtype of the old; wrong names or shapes raise ValueError."""
    rates, shapes = (0.1, 0.05), optimizer_cases.SHAPES
    for name, step, answer, values in (
        ("sgd_momentum", student.sgd_momentum, oracle.sgd_steps, (0.9,)),
        ("adam", student.adam, oracle.adam_steps, (0.9, 0.999, 1e-8)),
    ):
        parameters, steps = optimizer_cases.draw_steps(rng, answer, rates, values, dtype="float32")
        state = None
        for count, (gradients, rate, expected) in enumerate(steps, start=1):
            parameters, state = unpack(step(parameters, gradients, state, rate), 2, name)
            optimizer_cases.compare_step(parameters, expected, count)
        parameters, gradients = (optimizer_cases.draw_arrays(rng, shapes) for _ in range(2))
        for situation, wrong in optimizer_cases.wrong_gradients(gradients):
            check_refused(situation, step, parameters, wrong, None, 0.1)
        unpack(step(parameters, gradients, None, 0.1), 2, name)


@weight(1)
@number("2.5")
def test_minibatches_hold_every_index_once(student, rng):
    """Integer arrays of batch_size indices; the last one is smaller if n isn't a multiple."""
    for n, batch_size in ((12, 4), (11, 4), (3, 5), (5, 1), (1, 1), (7, 7)):
        pieces = student.minibatches(n, batch_size, cases.generator(rng))
        training_cases.check_pieces(pieces, n, batch_size)


@weight(1)
@number("2.5")
def test_minibatches_come_in_an_order_that_the_generator_draws(student, rng):
    """The same seed gives the same order, another seed another order; each looks random."""
    start, orders = cases.draw_seed(rng), []
    for seed in (start, start, start + 1):
        pieces = student.minibatches(2000, 50, np.random.default_rng(seed))
        orders.append(training_cases.check_pieces(pieces, 2000, 50))
    first, again, other = orders
    check(np.array_equal(first, again), "The same seed must give the same mini-batches.")
    check(not np.array_equal(first, other), "Another seed must give other mini-batches.")
    training_cases.check_is_shuffled(first, "The indices")
    check_promises(student, rng, CASES["2.5"])


@weight(1)
@number("2.5")
def test_train_takes_momentum_steps_with_a_decaying_learning_rate(student, rng, oracle):
    """With all images in one mini-batch, losses and weights equal those of PyTorch's SGD."""
    run = training_cases.draw_full_batch_run(
        oracle, rng, best=3, optimizer="sgd", epochs=4, learning_rate=0.3, decay=0.7
    )
    model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
    data = student.Data(run.images, run.labels, run.validation_images, run.predictions[3])
    history = student.train(model, data, student.TrainConfig(**run.settings))
    training_cases.compare_last_weights(model, history, run, "momentum, four epochs")


@weight(1)
@number("2.5")
def test_train_takes_adam_steps_with_a_decaying_learning_rate(student, rng, oracle):
    """With all images in one mini-batch, losses and weights equal those of PyTorch's Adam."""
    run = training_cases.draw_full_batch_run(
        oracle, rng, best=3, optimizer="adam", epochs=4, learning_rate=0.1, decay=0.8
    )
    model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
    data = student.Data(run.images, run.labels, run.validation_images, run.predictions[3])
    history = student.train(model, data, student.TrainConfig(**run.settings))
    training_cases.compare_last_weights(model, history, run, "Adam, four epochs")


@weight(1)
@number("2.5")
def test_history_holds_losses_and_accuracies_after_each_epoch(student, rng, oracle):
    """Loss and accuracy on training and validation images, and the learning rate, as floats."""
    run = training_cases.draw_full_batch_run(
        oracle, rng, optimizer="sgd", epochs=3, learning_rate=0.2, decay=0.5
    )
    labels = rng.integers(TINY["num_classes"], size=16)
    model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
    data = student.Data(run.images, run.labels, run.validation_images, labels)
    history = student.train(model, data, student.TrainConfig(**run.settings))
    training_cases.compare_history(history, run, labels)


@weight(2)
@number("2.5")
def test_train_leaves_the_best_weights_in_the_model(student, rng, oracle):
    """The best epoch has the highest validation accuracy; on a tie, it is the earliest one."""

    def check_best(run, best, labels, situation):
        model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
        data = student.Data(run.images, run.labels, run.validation_images, labels)
        student.train(model, data, student.TrainConfig(**run.settings))
        training_cases.compare_best_weights(model, run, best, situation)

    for best in (0, 1):
        run = training_cases.draw_full_batch_run(
            oracle, rng, best=best, optimizer="adam", epochs=3, learning_rate=0.1, decay=0.9
        )
        check_best(run, best, run.predictions[best], f"epoch {best + 1} of 3 is the best")
    never = training_cases.labels_never_predicted(run)
    check_best(run, 0, never, "all epochs have the same accuracy")


@weight(1)
@number("2.5")
def test_train_uses_every_image_once_in_each_epoch(student, rng, oracle):
    """Also if the last mini-batch is smaller; and train doesn't change the images."""
    images, labels = cases.draw_batch(rng, 11, TINY)
    weights, losses = training_cases.draw_separating_weights(oracle, rng, images, labels)
    model = cases.make_model(student.LeNet, rng, TINY, weights)
    data = student.Data(images, labels, images, labels)
    settings = {"optimizer": "sgd", "learning_rate": training_cases.STANDSTILL, "epochs": 2}
    for batch_size in (1, 4):
        history = student.train(model, data, student.TrainConfig(batch_size=batch_size, **settings))
        training_cases.compare_step_losses(history, losses, batch_size, epochs=2)
    same = np.array_equal(data.train_images, images) and np.array_equal(data.train_labels, labels)
    check(same, "train must not change the images or labels that it is given.")


@weight(1)
@number("2.5")
def test_train_uses_a_new_order_in_each_epoch(student, rng, oracle):
    """The order of the images depends only on config.seed and the epoch."""
    training_cases.check_orders(student, oracle, rng, n=12)


@weight(2)
@number("2.5")
def test_a_resumed_run_equals_an_uninterrupted_one(student, rng):
    """Exactly the same weights and history, wherever and however often it is interrupted."""
    for settings in (
        {"optimizer": "adam", "dtype": "float32", "wrong_labels": True},
        {"optimizer": "adam", "dtype": "float64", "wrong_labels": False},
        {"optimizer": "sgd", "dtype": "float32", "wrong_labels": False},
    ):
        training_cases.check_resuming(student, rng, **settings)


@weight(1)
@number("2.5")
def test_train_stops_if_the_loss_is_not_finite_and_rejects_the_state_of_another_model(student, rng):
    """ValueError with epoch and step, counted from 1; ValueError for another model's state."""
    # In float32, a learning rate of 1e300 makes every weight infinite at once, so that the loss of
    # the second step is not finite, whatever the images; if an epoch has one step, the loss over
    # all images comes before it. Poisoned, the last biases are NaN, and so is the first loss.
    for n, batch_size, step, poisoned in ((6, 2, 2, False), (3, 5, 1, False), (4, 3, 1, True)):
        images, labels = cases.draw_batch(rng, n, TINY)
        images = images.astype(np.float32)
        weights = cases.draw_weights(rng, TINY, "float32")
        if poisoned:
            weights["linear2.b"][:] = np.nan
        model = cases.make_model(student.LeNet, rng, TINY, weights)
        data = student.Data(images, labels, images, labels)
        settings = {"optimizer": "sgd", "batch_size": batch_size, "epochs": 2}
        config = student.TrainConfig(learning_rate=1e300, **settings)
        training_cases.check_diverges(student.train, model, data, config, step=step)
    training_cases.check_state_of_another_model(student, rng)


@weight(2)
@number("2.5")
@tags("training")
def test_lenet_reaches_88_percent_on_held_out_digits_after_three_epochs(student, rng):
    """A smaller LeNet is trained on 4,000 images of 14 x 14 and tested on 1,000 others."""
    mnist = load_mnist()
    order = rng.permutation(len(mnist.train_labels))
    images, labels = training_cases.halved(mnist.train_images[order]), mnist.train_labels[order]
    data = student.Data(images, labels, images[:500], labels[:500])
    model = cases.check_model(student.LeNet(cases.generator(rng), **training_cases.HALF))
    student.train(model, data, student.TrainConfig(learning_rate=0.006, decay=0.5))
    training_cases.check_digits(model, rng)


@weight(1)
@number("2.6")
def test_mlp_has_the_parameters_that_its_docstring_names(student, rng):
    """Names, shapes, dtype and standard deviation; 46,915 parameters with the default sizes."""
    default = {"image_size": 28, "hidden_size": 59, "num_classes": 10}
    for sizes, dtype in ((default, "float32"), (SMALL_MLP, "float64")):
        model = student.MLP(cases.generator(rng), dtype=dtype, **sizes)
        network_cases.check_initial_parameters(model, sizes, dtype)
    sizes = {"image_size": 10, "hidden_size": 60, "num_classes": 25}
    network_cases.check_initial_weights(student.MLP(cases.generator(rng), **sizes), sizes)
    model = student.MLP(cases.generator(rng))
    parameters = cases.parameters_of(model, cases.weight_shapes(**default))
    count = sum(array.size for array in parameters.values())
    assert_equal(count, 46_915, what="the number of parameters")


@weight(1)
@number("2.6")
def test_mlp_gives_logits_and_gradients(student, rng, oracle):
    """With the same weights, logits, loss and gradients equal PyTorch's, also for views."""
    for situation, sizes, n, view in (
        ("6 images", SMALL_MLP, 6, np.asarray),
        ("one image", {"image_size": 3, "hidden_size": 2, "num_classes": 4}, 1, np.asarray),
        ("views", SMALL_MLP, 3, transposed),
    ):
        weights = cases.draw_weights(rng, sizes)
        model = cases.make_model(student.MLP, rng, sizes, weights)
        x = cases.draw_images(rng, n, sizes)
        logits = model.forward(view(x))
        expected = oracle.mlp(x, *weights.values())
        assert_close(logits, expected, what=f"logits ({situation})", axes=LOGIT_AXES)

        weights = cases.draw_weights(rng, sizes)
        model = cases.make_model(student.MLP, rng, sizes, weights)
        x = cases.draw_images(rng, n, sizes)
        labels = cases.draw_surprising_labels(rng, oracle.mlp(x, *weights.values()))
        result = model.loss_and_gradients(view(x), labels)
        expected = oracle.mlp_gradients(x, labels, *weights.values())
        network_cases.compare_loss_and_gradients(result, expected, weights, situation)


@weight(1)
@number("2.6")
def test_mlp_keeps_its_dtype_uses_its_current_weights_and_rejects_bad_input(student, rng, oracle):
    """The dtype of the model; overwritten weights are used; wrong shapes raise ValueError."""
    network_cases.check_types(student.MLP, oracle, rng, sizes=SMALL_MLP, n=3)
    network_cases.check_independence(student.MLP, oracle.mlp_gradients, rng, sizes=SMALL_MLP, n=3)
    check_promises(student, rng, CASES["2.6"])
    model = cases.make_model(student.MLP, rng, SMALL_MLP, cases.draw_weights(rng, SMALL_MLP))
    network_cases.check_refusals(model, rng, SMALL_MLP, n=3)


@weight(1)
@number("2.6")
def test_permute_pixels_permutes_all_images_alike(student, rng):
    """One random permutation, which depends only on the generator and the number of pixels."""
    training_cases.check_permutation(student.permute_pixels, rng, (3, 2, 4, 6))


# Held-out accuracy after 4 epochs on 2,000 halved digits, with the reference and 20 seeds: the
# LeNet falls from 86-90 % to 69-76 % when the pixels are shuffled, by 15.3 points on average
# (standard deviation 2.5). The MLP reaches 87-92 % either way, the worse of both 89.6 % on average
# (1.1), and changes by 0.0 on average (1.0). Each bound is five standard deviations or more away, a
# probability below 1e-6. Both trainings of a network start from the same weights, so images that
# are not shuffled at all make no difference.
LOSS_OF_CONVOLUTION, CHANGE_OF_MLP, FLOOR_OF_MLP = 0.02, 0.06, 0.80


@weight(1)
@number("2.6")
@tags("training")
def test_shuffled_pixels_hurt_the_lenet_and_not_the_mlp(student, rng):
    """On digits of 14 x 14, the LeNet loses 2 points or more, the MLP changes by 6 or less."""
    mnist, seed, reached = load_mnist(), cases.draw_seed(rng), {}
    order = rng.permutation(len(mnist.train_labels))[:2000]
    labels = mnist.train_labels[order]
    plain = [training_cases.halved(part) for part in (mnist.train_images[order], mnist.test_images)]
    shuffled = [student.permute_pixels(part, np.random.default_rng(seed)) for part in plain]
    for images, given in zip(shuffled, plain, strict=True):
        fits = isinstance(images, np.ndarray) and images.shape == given.shape
        check(fits, "permute_pixels must return images of the same shape.")
    config = student.TrainConfig(epochs=4, learning_rate=0.01)
    for kind, network, sizes in (
        ("LeNet", student.LeNet, {"image_size": 14, "filters": (4, 8), "kernel_size": 3}),
        ("MLP", student.MLP, {"image_size": 14}),
    ):
        for pixels, (images, held_out) in (("plain", plain), ("shuffled", shuffled)):
            model = network(cases.generator(np.random.default_rng(seed)), **sizes)
            cases.check_model(model, kind)
            data = student.Data(images, labels, images[:100], labels[:100])
            student.train(model, data, config)
            accuracy = training_cases.held_out_accuracy(model, rng, held_out, mnist.test_labels)
            reached[f"{kind} {pixels}"] = accuracy
    accuracies = ", ".join(f"{what}: {accuracy:.1%}" for what, accuracy in reached.items())
    lost = reached["LeNet plain"] - reached["LeNet shuffled"]
    change = abs(reached["MLP plain"] - reached["MLP shuffled"])
    low = min(reached["MLP plain"], reached["MLP shuffled"])
    check(low >= FLOOR_OF_MLP, "The MLP must learn plain and shuffled digits.", accuracies)
    check(change <= CHANGE_OF_MLP, "Shuffled pixels must hardly matter to the MLP.", accuracies)
    check(lost >= LOSS_OF_CONVOLUTION, "Shuffled pixels must hurt the LeNet.", accuracies)


@weight(1)
@number("2.7")
def test_receptive_field_grows_layer_by_layer(student, oracle):
    """Size and jump after a sequence of layers; those of the LeNet are 16 and 4."""
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
        expected = tuple(map(int, oracle.receptive_field(layers)))
        assert_equal(result, expected, what="the receptive field's size and jump")


@weight(1)
@number("2.7")
def test_receptive_field_rejects_sizes_below_one(student, oracle):
    """A kernel_size or a stride below 1 raises ValueError, whichever layer it is in."""
    for layers in ([(0, 1)], [(3, 0)], [(3, 1), (-1, 1)], [(3, 1), (3, -1)], [(0, 2), (5, 1)]):
        check_refused(f"the layers {layers}", student.receptive_field, layers)
    layers = [(1, 1), (3, 2)]
    expected = tuple(map(int, oracle.receptive_field(layers)))
    result = student.receptive_field(layers)
    assert_equal(result, expected, what="the receptive field's size and jump")


@weight(2)
@number("2.7")
def test_feature_maps_follow_each_convolution_and_its_relu(student, rng, oracle):
    """conv1 and conv2 after relu, in the dtype of the model; wrong shapes raise ValueError."""
    for sizes, dtype, image_type, view in (
        (SMALL, "float64", "float64", np.asarray),
        (WITH_LEFTOVERS, "float32", "uint8", np.asarray),
        (SMALL, "float32", "float64", np.asarray),
        (SMALL, "float64", "float64", transposed),
    ):
        weights = network_cases.draw_quarter_weights(rng, sizes, dtype)
        model = cases.make_model(student.LeNet, rng, sizes, weights)
        image = network_cases.draw_quarter_images(rng, 1, sizes, image_type)[0]
        maps = student.feature_maps(model, view(image))
        expected = oracle.lenet_maps(image[None], *weights.values())
        network_cases.compare_maps(maps, expected, f"a {dtype} model, a {image_type} image")
        cases.check_named(model.parameters, weights, "parameters after feature_maps", tolerance=0.0)
    check_promises(student, rng, CASES["2.7"])
    model = cases.check_model(student.LeNet(cases.generator(rng), **SMALL))
    images = cases.draw_images(rng, 2, SMALL)
    for situation, image in (
        ("an image without its channel", images[0, 0]),
        ("several images", images),
        ("an image with two channels", images[:, 0]),
        ("an image that is too small", images[0, :, 1:, 1:]),
    ):
        check_refused(situation, student.feature_maps, model, image)


@weight(2)
@number("2.8")
def test_q1_multiplications_of_each_layer(lab):
    """Lab, question 1: positions of a map, times kernels, times weights of a kernel."""
    products = [24 * 24 * 16 * 25, 8 * 8 * 32 * (16 * 25), 512 * 64, 64 * 10]
    check_sizes(lab, "q1_products", products)


@weight(1)
@number("2.8")
def test_q3_how_far_each_layer_moved(lab):
    """Lab, question 3: the norm of the change, divided by the norm of the initial weights."""
    moved = array_answer(lab, "q3_moved", (4,))
    right = np.array([0.125, 0.396, 0.327, 0.147])  # measured, for conv1, conv2, linear1, linear2
    check(bool((abs(moved - right) <= 0.01).all()), "q3_moved is wrong.", value=moved)


@weight(2)
@number("2.9")
def test_q7_confusion_matrix(lab):
    """Lab, question 7: 100 images in each row, and as many errors as the LeNet makes."""
    counts = array_answer(lab, "q7_confusion", (10, 10))
    total = counts.sum()
    check(
        bool((counts >= 0).all()) and total == 1000,
        "q7_confusion must count each test image once.",
        f"its sum is {total:g}, expected 1000",
        value=counts,
    )
    check(
        bool((counts.sum(axis=1) == 100).all()),
        "Each row of q7_confusion must count the images of one digit.",
        f"each row must add up to 100, got {counts.sum(axis=1)}",
        value=counts,
    )
    wrong = total - np.trace(counts)
    check(
        abs(wrong - 78) <= 5,  # measured; rounding differs between machines
        "q7_confusion must have as many errors as the LeNet makes.",
        f"{wrong:g} images are off the diagonal",
        value=counts,
    )


@weight(1)
@number("2.9")
def test_q8_images_that_a_person_reads(lab):
    """Lab, question 8: how many of the 1,000 images have a confidence below 0.9."""
    check_number(lab, "q8_deferred", 250, tolerance=5)


@weight(1)
@number("2.9")
def test_q9_weights_at_the_positions_of_their_pixels(lab):
    """Lab, question 9: the weights of digit 0, with the shuffle undone."""
    picture = array_answer(lab, "q9_picture", (28, 28))
    mnist, n = load_mnist(), 2000
    x = mnist.train_images[:n].reshape(n, -1).astype(float)
    labels = np.eye(10)[mnist.train_labels[:n]]
    w, b = np.zeros((x.shape[1], 10)), np.zeros(10)
    for _ in range(50):  # what the lab's linear network learns from ordinary pixels
        powers = np.exp(x @ w + b)
        error = (powers / powers.sum(axis=1, keepdims=True) - labels) / n
        w, b = w - 0.5 * x.T @ error, b - 0.5 * error.sum(axis=0)
    right = w[:, 0].reshape(28, 28)
    same = np.allclose(np.sort(picture, axis=None), np.sort(right, axis=None), atol=1e-6)
    check(same, "q9_picture must hold the weights of digit 0.", value=picture)
    check(
        np.allclose(picture, right, atol=1e-6),
        "q9_picture has the right weights at wrong positions.",
        f"{np.isclose(picture, right, atol=1e-6).sum()} of {right.size} are at the right position",
        value=picture,
    )
