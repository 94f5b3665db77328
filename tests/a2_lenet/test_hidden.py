"""The hidden tests of assignment 2: what the public tests check, on other shapes and inputs."""

import numpy as np
from gradescope_utils.autograder_utils.decorators import number, tags, weight

from common.data import load_mnist
from common.labs.answer_checks import array_answer, check_choice, check_number, check_sizes
from common.testing.battery.promise_checks import check_promises
from common.testing.checks import check_refused, sliced, transposed
from common.testing.compare import assert_close, assert_equal, check, unpack
from tests.a2_lenet import cases, network_cases, optimizer_cases, training_cases
from tests.a2_lenet.battery_cases import CASES
from tests.a2_lenet.cases import LOGIT_AXES, ROW_AXES, TINY

OTHER = {"image_size": 12, "filters": (3, 4), "kernel_size": 3, "hidden_size": 6, "num_classes": 5}
ODD = {"image_size": 11, "filters": (4, 2), "kernel_size": 2, "hidden_size": 3, "num_classes": 6}
LARGER = {"image_size": 17, "filters": (5, 3), "kernel_size": 4, "hidden_size": 2, "num_classes": 7}
OTHER_MLP = {"image_size": 5, "hidden_size": 4, "num_classes": 6}
OTHER_SHAPES = {"a": (3,), "b.w": (2, 4), "c": (1, 2, 3, 1), "d": (1,)}


@weight(1)
@number("2.1")
def test_relu_is_right_for_other_arrays(student, rng):
    """Forward and backward, with zeros, views and float32, on other shapes."""
    for shape in ((9,), (5, 2), (3, 2, 5, 4), (1, 3, 1)):
        for dtype in (np.dtype("float64"), np.dtype("float32")):
            x = cases.draw_quarters(rng, shape).astype(dtype)
            out, _ = unpack(student.relu_forward(sliced(x)), 2, "relu_forward")
            assert_close(out, np.where(x > 0, x, dtype.type(0)), what=f"out ({dtype})")
            dout = rng.normal(size=shape).astype(dtype)
            _, cache = unpack(student.relu_forward(transposed(x)), 2, "relu_forward")
            dx = student.relu_backward(sliced(dout), cache)
            assert_close(dx, np.where(x > 0, dout, dtype.type(0)), what=f"dx ({dtype})")


@weight(1)
@number("2.1")
def test_linear_is_right_for_other_sizes(student, rng, oracle):
    """Output and gradients equal PyTorch's for other sizes; bad shapes raise ValueError."""
    for sizes in ((6, 5, 2), (1, 4, 3), (2, 1, 6), (7, 3, 1)):
        for dtype in (np.float64, np.float32):
            x, w, b = cases.draw_linear(rng, *sizes, dtype=dtype)
            result = student.linear_forward(transposed(x), sliced(w), sliced(b))
            out, _ = unpack(result, 2, "linear_forward")
            expected = oracle.linear(x, w, b)
            assert_close(out, expected, what="out (other sizes)", axes=ROW_AXES)
            dout = cases.draw_exact(rng, expected.shape, dtype)
            result = student.linear_forward(sliced(x), transposed(w), b)
            _, cache = unpack(result, 2, "linear_forward")
            gradients = unpack(student.linear_backward(dout, cache), 3, "linear_backward")
            expected = oracle.linear_gradients(x, w, b, dout)
            cases.compare_linear_gradients(gradients, expected, "views")
    x, w, b = cases.draw_linear(rng, 3, 4, 2)
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
    """Rows in row-major order and back; inputs don't change; each pass uses its own cache."""
    for shape in ((3, 2, 5, 4), (1, 4, 1, 6), (5, 3, 2), (2, 7)):
        for view in (sliced, transposed):
            x, expected = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
            out, cache = unpack(student.flatten_forward(view(x)), 2, "flatten_forward")
            rows = x.reshape(len(x), -1)
            assert_close(out, rows, what="out (other shapes)", axes=ROW_AXES)
            dx = student.flatten_backward(view(expected.reshape(rows.shape)), cache)
            assert_close(dx, expected, what="dx (other shapes)")
    check_promises(student, rng, CASES["2.1"])


@weight(2)
@number("2.2")
def test_cross_entropy_is_right_for_other_logits(student, rng, oracle):
    """Loss and gradient equal PyTorch's for other sizes, dtypes and views; inputs don't change."""
    for n, classes in ((7, 3), (1, 6), (4, 9), (3, 2)):
        for dtype in (np.float64, np.float32):
            logits = (4 * rng.normal(size=(n, classes))).astype(dtype)
            labels = cases.draw_surprising_labels(rng, logits)
            expected = oracle.cross_entropy(logits, labels)
            for view in (sliced, transposed):
                result = student.softmax_cross_entropy(view(logits), labels.astype(np.uint8))
                cases.compare_cross_entropy(result, expected, "other sizes")
    check_promises(student, rng, CASES["2.2"])


@weight(1)
@number("2.2")
def test_cross_entropy_does_not_overflow_for_other_logits(student, rng):
    """If one logit is far above the others, the loss is its distance from the label's logit."""
    n, classes = 8, 5
    highs = np.array([1e4, 1e4, 0, -9e3] * 2)
    lows = np.array([-1e4, 0, -1e4, -1e4] * 2)
    for dtype in (np.float64, np.float32):
        winners, labels = rng.integers(classes, size=n), rng.integers(classes, size=n)
        labels[:4] = (winners[:4] + 1) % classes  # each kind of row gets a wrong label once
        logits = np.repeat(lows[:, None], classes, axis=1)
        logits[np.arange(n), winners] = highs
        gradient = (np.eye(classes)[winners] - np.eye(classes)[labels]) / n
        loss = np.mean((highs - lows) * (winners != labels))
        result = student.softmax_cross_entropy(logits.astype(dtype), labels)
        cases.compare_cross_entropy(result, (loss, gradient.astype(dtype)), "huge logits")


@weight(1)
@number("2.2")
def test_cross_entropy_rejects_other_bad_labels(student, rng):
    """Labels out of range, float labels, too few labels and empty batches raise ValueError."""
    for n, classes in ((3, 6), (8, 2)):
        logits, labels = rng.normal(size=(n, classes)), rng.integers(classes, size=n)
        for situation, given, wrong in cases.bad_labels(logits, labels):
            check_refused(situation, student.softmax_cross_entropy, given, wrong)
        unpack(student.softmax_cross_entropy(logits, labels), 2, "softmax_cross_entropy")


@weight(1)
@number("2.3")
def test_he_normal_is_right_for_other_shapes(student, rng):
    """Normal draws with mean 0 and standard deviation sqrt(2 / fan_in), from the generator."""
    for shape, fan_in, dtype in (
        ((30, 60), 30, "float64"),
        ((20, 4, 3, 7), 84, "float32"),
        ((3, 700), 1, "float64"),
    ):
        seed = cases.draw_seed(rng)
        results = [
            student.he_normal(np.random.default_rng(number), shape, fan_in, dtype)
            for number in (seed, seed, seed + 1)
        ]
        network_cases.check_he_normal(results, shape, fan_in, dtype)


@weight(1)
@number("2.3")
def test_lenet_has_the_right_initial_weights_for_other_sizes(student, rng):
    """Names, shapes, dtype, standard deviation, biases of 0; small images raise ValueError."""
    for sizes in (OTHER, ODD, LARGER):
        for dtype in ("float32", "float64"):
            model = student.LeNet(cases.generator(rng), dtype=dtype, **sizes)
            network_cases.check_initial_parameters(model, sizes, dtype)
    sizes = {
        "image_size": 20,
        "filters": (100, 30),
        "kernel_size": 4,
        "hidden_size": 40,
        "num_classes": 50,
    }
    network_cases.check_initial_weights(student.LeNet(cases.generator(rng), **sizes), sizes)
    for image_size, kernel_size in ((12, 4), (4, 4), (5, 2), (9, 3)):
        sizes = {"image_size": image_size, "kernel_size": kernel_size}
        check_refused("images too small", student.LeNet, cases.generator(rng), **sizes)
    cases.check_model(student.LeNet(cases.generator(rng), image_size=10, kernel_size=3))


@weight(2)
@number("2.3")
def test_lenet_gives_the_logits_of_its_layers_for_other_sizes(student, rng, oracle):
    """With the same weights, the logits equal PyTorch's, also for leftover pixels and views."""
    for sizes, n in ((OTHER, 4), (ODD, 3), (LARGER, 1)):
        for view in (sliced, transposed):
            weights = cases.draw_weights(rng, sizes)
            model = cases.make_model(student.LeNet, rng, sizes, weights)
            x = cases.draw_images(rng, n, sizes)
            logits = model.forward(view(x))
            expected = oracle.lenet(x, *weights.values())
            assert_close(logits, expected, what="logits (other sizes)", axes=LOGIT_AXES)


@weight(2)
@number("2.3")
def test_lenet_gives_the_gradient_of_every_weight_for_other_sizes(student, rng, oracle):
    """With the same weights, the loss and all gradients equal PyTorch's, in the model's dtype."""
    for sizes, n in ((OTHER, 4), (ODD, 3), (LARGER, 1)):
        weights = cases.draw_weights(rng, sizes)
        model = cases.make_model(student.LeNet, rng, sizes, weights)
        x = cases.draw_images(rng, n, sizes)
        labels = cases.draw_surprising_labels(rng, oracle.lenet(x, *weights.values()))
        result = model.loss_and_gradients(sliced(x), labels)
        expected = oracle.lenet_gradients(x, labels, *weights.values())
        network_cases.compare_loss_and_gradients(result, expected, weights, "other sizes")
    network_cases.check_types(student.LeNet, oracle, rng, sizes=OTHER, n=4)


@weight(1)
@number("2.3")
def test_lenet_has_no_side_effects_and_rejects_what_does_not_fit(student, rng, oracle):
    """Current weights, independent models and calls, ValueErrors: on other sizes."""
    network_cases.check_independence(student.LeNet, oracle.lenet_gradients, rng, sizes=ODD, n=2)
    check_promises(student, rng, CASES["2.3"])
    model = cases.make_model(student.LeNet, rng, OTHER, cases.draw_weights(rng, OTHER))
    network_cases.check_refusals(model, rng, OTHER, n=4)


@weight(1)
@number("2.4")
def test_sgd_momentum_is_right_for_other_steps(student, rng, oracle):
    """Other shapes, learning rates and momenta give PyTorch's parameters after each step."""

    def check_steps(momentum, settings, rates, **kind):
        answer = oracle.sgd_steps
        parameters, steps = optimizer_cases.draw_steps(rng, answer, rates, (momentum,), **kind)
        state = None
        for count, (gradients, rate, expected) in enumerate(steps, start=1):
            result = student.sgd_momentum(parameters, gradients, state, rate, **settings)
            parameters, state = unpack(result, 2, "sgd_momentum")
            optimizer_cases.compare_step(parameters, expected, count)

    for momentum in (0.5, 0.95):
        rates = tuple(rng.uniform(0.01, 0.3, size=5).tolist())
        check_steps(momentum, {"momentum": momentum}, rates, shapes=OTHER_SHAPES)
    check_steps(0.9, {}, (0.2, 0.1), dtype="float32")


@weight(2)
@number("2.4")
def test_adam_is_right_for_other_steps(student, rng, oracle):
    """Other shapes, learning rates, betas and epsilons give PyTorch's parameters."""

    def check_steps(values, settings, rates, **kind):
        answer = oracle.adam_steps
        parameters, steps = optimizer_cases.draw_steps(rng, answer, rates, values, **kind)
        state = None
        for count, (gradients, rate, expected) in enumerate(steps, start=1):
            result = student.adam(parameters, gradients, state, rate, **settings)
            parameters, state = unpack(result, 2, "adam")
            optimizer_cases.compare_step(parameters, expected, count)

    for values in ((0.9, 0.999, 1e-8), (0.5, 0.95, 1e-3), (0.85, 0.6, 0.3)):
        rates = tuple(rng.uniform(0.01, 0.3, size=5).tolist())
        settings = dict(zip(("beta1", "beta2", "epsilon"), values, strict=True))
        check_steps(values, settings, rates, shapes=OTHER_SHAPES)
    check_steps((0.9, 0.999, 1e-8), {}, (0.2, 0.1), dtype="float32")


@weight(1)
@number("2.4")
def test_optimizers_have_no_side_effects_on_other_arrays(student, rng):
    """Steps can be repeated, also from a copied state; bad gradients raise ValueError."""
    check_promises(student, rng, CASES["2.4"])
    for name, step in (("sgd_momentum", student.sgd_momentum), ("adam", student.adam)):
        optimizer_cases.check_steps_can_be_repeated(step, name, rng, OTHER_SHAPES)
        shapes = {"first": (3, 2), "second": (4,)}
        parameters, gradients = (optimizer_cases.draw_arrays(rng, shapes) for _ in range(2))
        for situation, wrong in optimizer_cases.wrong_gradients(gradients):
            check_refused(situation, step, parameters, wrong, None, 0.1)
        unpack(step(parameters, gradients, None, 0.1), 2, name)


@weight(1)
@number("2.5")
def test_minibatches_are_right_for_other_numbers(student, rng):
    """Every index once, in a random order that the generator decides."""
    for n, batch_size in ((23, 5), (24, 6), (2, 9), (17, 16)):
        pieces = student.minibatches(n, batch_size, cases.generator(rng))
        training_cases.check_pieces(pieces, n, batch_size)
    seed, orders = cases.draw_seed(rng), []
    for _ in range(2):
        pieces = student.minibatches(2000, 70, np.random.default_rng(seed))
        orders.append(training_cases.check_pieces(pieces, 2000, 70))
    check(np.array_equal(*orders), "The same seed must give the same mini-batches.")
    training_cases.check_is_shuffled(orders[0], "The indices")
    check_promises(student, rng, CASES["2.5"])


@weight(2)
@number("2.5")
def test_train_takes_the_steps_of_pytorch_for_other_settings(student, rng, oracle):
    """With all images in one mini-batch: momentum, Adam and the decay, and the whole history."""
    for optimizer, rate, decay in (("sgd", 0.25, 0.7), ("adam", 0.08, 0.6)):
        settings = {"optimizer": optimizer, "epochs": 5, "learning_rate": rate, "decay": decay}
        run = training_cases.draw_full_batch_run(oracle, rng, best=4, n=5, **settings)
        model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
        data = student.Data(run.images, run.labels, run.validation_images, run.predictions[4])
        history = student.train(model, data, student.TrainConfig(**run.settings))
        training_cases.compare_last_weights(model, history, run, f"{optimizer}, five epochs")

        labels = rng.integers(TINY["num_classes"], size=16)
        model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
        data = student.Data(run.images, run.labels, run.validation_images, labels)
        history = student.train(model, data, student.TrainConfig(**run.settings))
        training_cases.compare_history(history, run, labels)


@weight(1)
@number("2.5")
def test_train_leaves_other_best_weights_in_the_model(student, rng, oracle):
    """The best epoch has the highest validation accuracy; on a tie, it is the earliest one."""

    def check_best(run, best, labels, situation):
        model = cases.make_model(student.LeNet, rng, TINY, run.initial_weights)
        data = student.Data(run.images, run.labels, run.validation_images, labels)
        student.train(model, data, student.TrainConfig(**run.settings))
        training_cases.compare_best_weights(model, run, best, situation)

    settings = {"optimizer": "adam", "epochs": 3, "learning_rate": 0.12, "decay": 0.9}
    for best in (0, 1, 2):
        run = training_cases.draw_full_batch_run(oracle, rng, best=best, n=8, **settings)
        check_best(run, best, run.predictions[best], f"epoch {best + 1} of 3 is the best")
    never = training_cases.labels_never_predicted(run)
    check_best(run, 0, never, "all epochs have the same accuracy")


@weight(1)
@number("2.5")
def test_train_uses_other_images_once_in_each_epoch_in_a_new_order(student, rng, oracle):
    """Every image once in each epoch, in an order that depends on the seed and the epoch."""
    images, labels = cases.draw_batch(rng, 13, TINY)
    weights, losses = training_cases.draw_separating_weights(oracle, rng, images, labels)
    model = cases.make_model(student.LeNet, rng, TINY, weights)
    data = student.Data(images, labels, images, labels)
    settings = {"optimizer": "sgd", "learning_rate": training_cases.STANDSTILL, "epochs": 3}
    for batch_size in (1, 5):
        history = student.train(model, data, student.TrainConfig(batch_size=batch_size, **settings))
        training_cases.compare_step_losses(history, losses, batch_size, epochs=3)
    same = np.array_equal(data.train_images, images) and np.array_equal(data.train_labels, labels)
    check(same, "train must not change the images or labels that it is given.")
    training_cases.check_orders(student, oracle, rng, n=14)


@weight(1)
@number("2.5")
def test_other_resumed_runs_equal_uninterrupted_ones(student, rng):
    """Exactly the same weights and history, with both optimizers and early or late best weights."""
    sizes = {"epochs": 3, "n": 10, "batch_size": 3}
    for optimizer, dtype in (("sgd", "float64"), ("adam", "float32")):
        for wrong_labels in (True, False):
            settings = {"optimizer": optimizer, "dtype": dtype, "wrong_labels": wrong_labels}
            training_cases.check_resuming(student, rng, **settings, **sizes)


@weight(1)
@number("2.5")
def test_train_stops_other_runs_that_diverge(student, rng):
    """ValueError with epoch and step, counted from 1; ValueError for another model's state."""
    for n, batch_size, step, poisoned in ((9, 3, 2, False), (4, 4, 1, False), (5, 2, 1, True)):
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
def test_lenet_reaches_88_percent_with_other_seeds(student, rng):
    """4,000 halved images, 3 epochs, another seed: 88 % accuracy on 1,000 other images."""
    seed, mnist = cases.draw_seed(rng), load_mnist()
    order = rng.permutation(len(mnist.train_labels))
    images, labels = training_cases.halved(mnist.train_images[order]), mnist.train_labels[order]
    data = student.Data(images, labels, images[:500], labels[:500])
    model = cases.check_model(student.LeNet(cases.generator(rng), **training_cases.HALF))
    student.train(model, data, student.TrainConfig(learning_rate=0.006, decay=0.5, seed=seed))
    training_cases.check_digits(model, rng)


@weight(1)
@number("2.6")
def test_mlp_is_right_for_other_sizes(student, rng, oracle):
    """Initial weights, logits, gradients, dtype and ValueErrors, on other sizes."""
    for dtype in ("float32", "float64"):
        model = student.MLP(cases.generator(rng), dtype=dtype, **OTHER_MLP)
        network_cases.check_initial_parameters(model, OTHER_MLP, dtype)
    sizes = {"image_size": 9, "hidden_size": 50, "num_classes": 35}
    network_cases.check_initial_weights(student.MLP(cases.generator(rng), **sizes), sizes)
    for view in (sliced, transposed):
        weights = cases.draw_weights(rng, OTHER_MLP)
        model = cases.make_model(student.MLP, rng, OTHER_MLP, weights)
        x = cases.draw_images(rng, 3, OTHER_MLP)
        logits = model.forward(view(x))
        expected = oracle.mlp(x, *weights.values())
        assert_close(logits, expected, what="logits (other sizes)", axes=LOGIT_AXES)

        weights = cases.draw_weights(rng, OTHER_MLP)
        model = cases.make_model(student.MLP, rng, OTHER_MLP, weights)
        x = cases.draw_images(rng, 3, OTHER_MLP)
        labels = cases.draw_surprising_labels(rng, oracle.mlp(x, *weights.values()))
        result = model.loss_and_gradients(view(x), labels)
        expected = oracle.mlp_gradients(x, labels, *weights.values())
        network_cases.compare_loss_and_gradients(result, expected, weights, "other sizes")
    network_cases.check_types(student.MLP, oracle, rng, sizes=OTHER_MLP, n=4)
    network_cases.check_independence(student.MLP, oracle.mlp_gradients, rng, sizes=OTHER_MLP, n=2)
    check_promises(student, rng, CASES["2.6"])
    model = cases.make_model(student.MLP, rng, OTHER_MLP, cases.draw_weights(rng, OTHER_MLP))
    network_cases.check_refusals(model, rng, OTHER_MLP, n=4)


@weight(1)
@number("2.6")
def test_permute_pixels_is_right_for_other_images(student, rng):
    """One random permutation, which depends only on the generator and the number of pixels."""
    for shape in ((2, 3, 7, 3), (1, 1, 5, 8)):
        training_cases.check_permutation(student.permute_pixels, rng, shape)


@weight(1)
@number("2.6")
def test_an_mlp_with_permuted_weights_gives_the_same_logits_on_permuted_pixels(student, rng):
    """If the rows of linear1.w are permuted like the pixels, the logits stay the same."""
    seed, weights = cases.draw_seed(rng), cases.draw_weights(rng, OTHER_MLP)
    model = cases.make_model(student.MLP, rng, OTHER_MLP, weights)
    images = cases.draw_images(rng, 4, OTHER_MLP)
    hidden = np.maximum(images.reshape(4, -1) @ weights["linear1.w"] + weights["linear1.b"], 0)
    expected = hidden @ weights["linear2.w"] + weights["linear2.b"]
    assert_close(model.forward(images), expected, what="logits", axes=LOGIT_AXES)
    order = training_cases.permutation_of(student.permute_pixels, seed, images.shape)
    permuted = weights | {"linear1.w": weights["linear1.w"][order]}
    other = cases.make_model(student.MLP, rng, OTHER_MLP, permuted)
    logits = other.forward(student.permute_pixels(images, np.random.default_rng(seed)))
    assert_close(logits, expected, what="logits of shuffled images", axes=LOGIT_AXES)


@weight(1)
@number("2.7")
def test_receptive_field_is_right_for_other_layers(student, rng, oracle):
    """Size and jump are those of the pixels that the outputs depend on."""
    for count in range(1, 9):
        layers = [(int(rng.integers(1, 8)), int(rng.integers(1, 4))) for _ in range(count)]
        expected = tuple(map(int, oracle.receptive_field(layers)))
        result = student.receptive_field(layers)
        assert_equal(result, expected, what="the receptive field's size and jump")
        index = int(rng.integers(count))
        for kernel_size, stride in ((0, 1), (1, 0), (-2, 2), (2, -2)):
            wrong = [*layers[:index], (kernel_size, stride), *layers[index + 1 :]]
            check_refused("a kernel_size or a stride below 1", student.receptive_field, wrong)


@weight(1)
@number("2.7")
def test_feature_maps_are_right_for_other_sizes(student, rng, oracle):
    """conv1 and conv2 after relu, in the dtype of the model; wrong shapes raise ValueError."""
    for sizes, dtype, image_type in (
        (OTHER, "float32", "float32"),
        (ODD, "float64", "uint8"),
        (LARGER, "float64", "float32"),
    ):
        weights = network_cases.draw_quarter_weights(rng, sizes, dtype)
        model = cases.make_model(student.LeNet, rng, sizes, weights)
        image = network_cases.draw_quarter_images(rng, 1, sizes, image_type)[0]
        maps = student.feature_maps(model, sliced(image))
        expected = oracle.lenet_maps(image[None], *weights.values())
        network_cases.compare_maps(maps, expected, f"a {dtype} model, a {image_type} image")
        cases.check_named(model.parameters, weights, "parameters after feature_maps", tolerance=0.0)
    check_promises(student, rng, CASES["2.7"])
    model = cases.check_model(student.LeNet(cases.generator(rng), **OTHER))
    images = cases.draw_images(rng, 3, OTHER)
    for situation, image in (
        ("an image without its channel", images[0, 0]),
        ("several images", images),
        ("an image with several channels", images[:, 0]),
        ("an image that is too large", rng.normal(size=(1, 14, 14))),
    ):
        check_refused(situation, student.feature_maps, model, image)


@weight(1)
@number("2.8")
def test_q2_larger_images_need_a_larger_linear_layer(lab):
    """Lab, question 2: the parameters of a LeNet for images of 56 x 56 pixels."""
    side = ((56 - 4) // 2 - 4) // 2
    linear1 = (32 * side * side + 1) * 64
    check_number(lab, "q2_parameters", (25 + 1) * 16 + (400 + 1) * 32 + linear1 + (64 + 1) * 10)


# The signs of the lab's first kernel after training, where it is more than 0.02 away from 0.
SIGNS = "+?++-+++---?------++-+-++"


@weight(1)
@number("2.8")
def test_q5_the_patch_with_the_largest_response(lab):
    """Lab, question 5: ink under each positive weight, paper under each negative one."""
    patch = array_answer(lab, "q5_patch", (5, 5))
    check(
        patch.min() >= 0 and patch.max() <= 1, "q5_patch must hold pixels from 0 to 1.", value=patch
    )
    wrong = [
        index
        for index, (sign, pixel) in enumerate(zip(SIGNS, patch.flat, strict=True))
        if sign != "?" and abs(pixel - (sign == "+")) > 1e-6
    ]
    check(
        not wrong,
        "Another patch gives a larger response than q5_patch.",
        f"{len(wrong)} pixels don't have their best value",
        value=patch,
    )


@weight(1)
@number("2.8")
def test_q6_the_shift_that_is_too_large(lab):
    """Lab, question 6: the smallest shift with an accuracy below one half."""
    check_number(lab, "q6_pixels", 4)  # measured: 63 % at 3 pixels, 45 % at 4


@weight(1)
@number("2.8")
def test_q6_why_a_shift_hurts(lab):
    """Lab, question 6: what in a LeNet depends on the position."""
    check_choice(lab, "q6_why", "c", ("a", "b", "c", "d"))


@weight(1)
@number("2.9")
def test_q7_the_most_frequent_error(lab):
    """Lab, question 7: the label and the prediction."""
    check_sizes(lab, "q7_pair", (4, 9))  # measured: 7 times; no other error more than 5 times


@weight(1)
@number("2.9")
def test_q8_few_errors_are_left(lab):
    """Lab, question 8: the errors among images with a confidence of 0.9 or more."""
    check_number(lab, "q8_left", 4, tolerance=1)


@weight(1)
@number("2.9")
def test_q9_a_linear_network_does_not_notice_the_shuffle(lab):
    """Lab, question 9: the images whose prediction differs from that with ordinary pixels."""
    check_number(lab, "q9_changed", 0)


@weight(1)
@number("2.9")
def test_q10_the_permutation_that_does_no_harm(lab):
    """Lab, question 10: what keeps neighbors together, in the same way at each position."""
    check_choice(lab, "q10_harmless", "b", ("a", "b", "c", "d"))
