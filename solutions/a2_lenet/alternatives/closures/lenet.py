"""Assignment 2 with closures: the cache of a layer is the function that runs it backwards.

The optimizers put all parameters into one long vector. Training draws every epoch's order from one
generator, whose state is saved as numbers.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from functools import partial

import numpy as np

from assignments.a1_convolution.convolution import (
    conv2d_backward_fast,
    conv2d_forward_fast,
    max_pool2d_backward,
    max_pool2d_forward,
)
from common.training.training_progress import TrainingDisplay

Array = np.ndarray
Arrays = dict[str, np.ndarray]
Backward = Callable[[Array], object]


def check_dense(x: Array, w: Array, b: Array) -> None:
    """Raise ValueError when the shapes of a dense layer don't fit together."""
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0] or b.shape != w.shape[1:]:
        raise ValueError(f"x {x.shape}, w {w.shape} and b {b.shape} don't make a dense layer")


def check_labels(logits: Array, labels: Array) -> None:
    """Raise ValueError for an empty batch, or labels that don't fit the logits."""
    if logits.ndim != 2 or len(logits) == 0:
        raise ValueError(f"logits must be (n, classes) with n at least 1, got {logits.shape}")
    n, classes = logits.shape
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    if labels.shape != (n,):
        raise ValueError(f"{n} rows of logits need labels of shape ({n},), got {labels.shape}")
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"labels must lie from 0 to {classes - 1}")


def check_images(x: Array, image_size: int) -> None:
    """Raise ValueError for an empty batch, or images of a wrong shape."""
    if x.shape[1:] != (1, image_size, image_size) or len(x) == 0:
        raise ValueError(
            f"images must be (n, 1, {image_size}, {image_size}) with n at least 1, got {x.shape}"
        )


def check_same_shapes(parameters: Arrays, others: Arrays) -> None:
    """Raise ValueError unless both dicts have the same names, with arrays of one shape."""
    if parameters.keys() != others.keys():
        raise ValueError(f"the names differ: {sorted(parameters)} and {sorted(others)}")
    for name, array in parameters.items():
        if array.shape != others[name].shape:
            raise ValueError(f"{name} has two shapes: {array.shape} and {others[name].shape}")


def check_loss(loss: float, epoch: int, step: int) -> None:
    """Raise ValueError when a loss is not finite. Epochs and steps count from 1 here."""
    if not math.isfinite(loss):
        raise ValueError(f"the loss is {loss} at epoch {epoch}, step {step}: the run diverged")


def conv_pool_size(size: int, kernel: int) -> int:
    """The side of a square image after a convolution without padding and a 2 x 2 pooling."""
    if kernel < 1 or size - kernel + 1 < 2:
        raise ValueError(f"a kernel of {kernel} and a pooling don't fit into an image of {size}")
    return (size - kernel + 1) // 2


def relu_forward(x: Array) -> tuple[Array, Backward]:
    """max(x, 0)."""
    slope = (x > 0).astype(x.dtype)
    return x * slope, lambda dout: dout * slope


def relu_backward(dout: Array, cache: Backward) -> Array:
    """dx."""
    return cache(dout)


def linear_forward(x: Array, w: Array, b: Array) -> tuple[Array, Backward]:
    """x @ w + b."""
    check_dense(x, w, b)

    def backward(dout: Array) -> tuple[Array, Array, Array]:
        dx = np.einsum("no,io->ni", dout, w)
        dw = np.einsum("ni,no->io", x, dout, optimize=True)
        return dx, dw, np.einsum("no->o", dout)

    return np.dot(x, w) + b[None, :], backward


def linear_backward(dout: Array, cache: Backward) -> tuple[Array, Array, Array]:
    """(dx, dw, db)."""
    return cache(dout)


def flatten_forward(x: Array) -> tuple[Array, Backward]:
    """One row for each image."""
    shape = x.shape
    rows = np.stack([image.ravel() for image in x])
    return rows, lambda dout: dout.reshape(shape)


def flatten_backward(dout: Array, cache: Backward) -> Array:
    """dx."""
    return cache(dout)


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """The logarithm of each row's sum, by logaddexp.

    Relative to the row's largest: next to a logit of 1e4, float32 has no room for small digits.
    """
    check_labels(logits, labels)
    n, classes = logits.shape
    relative = logits - np.amax(logits, axis=1)[:, None]
    log_sums = np.logaddexp.reduce(relative, axis=1)
    one_hot = (labels[:, None] == np.arange(classes)).astype(logits.dtype)
    losses = log_sums - np.einsum("nc,nc->n", one_hot, relative)
    return float(np.mean(losses)), (np.exp(relative - log_sums[:, None]) - one_hot) / n


def he_normal(
    rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: str = "float32"
) -> Array:
    """Normal draws, with standard deviation sqrt(2 / fan_in)."""
    return (rng.standard_normal(shape) * (2 / fan_in) ** 0.5).astype(dtype)


def chain(x: Array, layers: list[Callable]) -> tuple[Array, list[Backward]]:
    """Send x through all layers; what comes out, and the way back, last layer first."""
    back = []
    for layer in layers:
        x, backward = layer(x)
        back.insert(0, backward)
    return x, back


def convolution(p: Arrays, name: str) -> Callable:
    """The layer of that name; its way back returns a gradient and those of its parameters."""

    def forward(x: Array) -> tuple[Array, Backward]:
        out, cache = conv2d_forward_fast(x, p[name + ".w"], p[name + ".b"])

        def backward(dout: Array) -> tuple[Array, Arrays]:
            dx, dw, db = conv2d_backward_fast(dout, cache)
            return dx, {name + ".w": dw, name + ".b": db}

        return out, backward

    return forward


def dense(p: Arrays, name: str) -> Callable:
    """The same for a dense layer."""

    def forward(x: Array) -> tuple[Array, Backward]:
        out, cache = linear_forward(x, p[name + ".w"], p[name + ".b"])

        def backward(dout: Array) -> tuple[Array, Arrays]:
            dx, dw, db = linear_backward(dout, cache)
            return dx, {name + ".w": dw, name + ".b": db}

        return out, backward

    return forward


def plain(forward: Callable, backward: Callable, *args: int) -> Callable:
    """The same for a pair of functions without parameters."""

    def layer(x: Array) -> tuple[Array, Backward]:
        out, cache = forward(x, *args)
        return out, lambda dout: (backward(dout, cache), {})

    return layer


RELU = plain(relu_forward, relu_backward)
POOL = plain(max_pool2d_forward, max_pool2d_backward, 2)
FLATTEN = plain(flatten_forward, flatten_backward)


def gradients_of(layers: list[Callable], x: Array, labels: Array) -> tuple[float, Arrays]:
    """The loss after all layers, and the gradients of all parameters."""
    logits, back = chain(x, layers)
    loss, dout = softmax_cross_entropy(logits, labels)
    gradients: Arrays = {}
    for backward in back:
        dout, found = backward(dout)
        gradients |= found
    return loss, gradients


class LeNet:
    """conv, relu, pool, conv, relu, pool, dense, relu, dense."""

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        filters: tuple[int, int] = (16, 32),
        kernel: int = 5,
        hidden: int = 64,
        classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        first, second = filters
        side = conv_pool_size(conv_pool_size(image_size, kernel), kernel)
        area, flat = kernel * kernel, second * side * side
        # The last layer first: the order of the draws is free.
        self.parameters = {
            "dense2.b": np.zeros(classes, dtype),
            "dense2.w": he_normal(rng, (hidden, classes), hidden, dtype),
            "dense1.b": np.zeros(hidden, dtype),
            "dense1.w": he_normal(rng, (flat, hidden), flat, dtype),
            "conv2.b": np.zeros(second, dtype),
            "conv2.w": he_normal(rng, (second, first, kernel, kernel), first * area, dtype),
            "conv1.b": np.zeros(first, dtype),
            "conv1.w": he_normal(rng, (first, 1, kernel, kernel), area, dtype),
        }

    def layers(self) -> list[Callable]:
        """The layers, with the parameters of this moment."""
        p = self.parameters
        convolutions = [convolution(p, "conv1"), RELU, POOL, convolution(p, "conv2"), RELU, POOL]
        return [*convolutions, FLATTEN, dense(p, "dense1"), RELU, dense(p, "dense2")]

    def forward(self, x: Array) -> Array:
        """The logits."""
        check_images(x, self.image_size)
        return chain(np.asarray(x, self.dtype), self.layers())[0]

    def loss_and_gradients(self, x: Array, labels: Array) -> tuple[float, Arrays]:
        """The mean loss, and its gradients by name."""
        check_images(x, self.image_size)
        return gradients_of(self.layers(), np.asarray(x, self.dtype), labels)


def to_vector(arrays: Arrays, names: list[str]) -> Array:
    """All arrays in a row."""
    return np.concatenate([arrays[name].ravel() for name in names])


def from_vector(vector: Array, like: Arrays, names: list[str]) -> Arrays:
    """The arrays that to_vector put into a row; `like` has their shapes."""
    ends = np.cumsum([like[name].size for name in names])
    pieces = np.split(vector, ends[:-1])
    by_name = dict(zip(names, pieces, strict=True))
    return {name: by_name[name].reshape(array.shape) for name, array in like.items()}


def sgd_momentum(
    parameters: Arrays,
    gradients: Arrays,
    state: Array | None,
    learning_rate: float,
    momentum: float = 0.9,
) -> tuple[Arrays, Array]:
    """One step. The state is the velocity of the long vector."""
    check_same_shapes(parameters, gradients)
    names = sorted(parameters)
    p, g = to_vector(parameters, names), to_vector(gradients, names)
    velocity = g if state is None else momentum * state + g
    return from_vector(p - learning_rate * velocity, parameters, names), velocity


def adam(
    parameters: Arrays,
    gradients: Arrays,
    state: tuple | None,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Arrays, tuple]:
    """One step. Both corrections go into the learning rate, and one of them into epsilon."""
    check_same_shapes(parameters, gradients)
    names = sorted(parameters)
    p, g = to_vector(parameters, names), to_vector(gradients, names)
    t, mean, square = state or (0, np.zeros_like(p), np.zeros_like(p))
    t += 1
    mean = beta1 * mean + (1 - beta1) * g
    square = beta2 * square + (1 - beta2) * np.square(g)
    correction = math.sqrt(1 - beta2**t)
    rate = learning_rate * correction / (1 - beta1**t)
    p = p - rate * mean / (np.sqrt(square) + epsilon * correction)
    return from_vector(p, parameters, names), (t, mean, square)


class Data:
    """The images to learn from, and those to choose the best weights by."""

    def __init__(
        self,
        train_images: Array,
        train_labels: Array,
        validation_images: Array,
        validation_labels: Array,
    ) -> None:
        for images, labels in (
            (train_images, train_labels),
            (validation_images, validation_labels),
        ):
            if len(images) == 0 or len(images) != len(labels):
                raise ValueError(f"there are {len(images)} images and {len(labels)} labels")
        self.train_images = train_images
        self.train_labels = train_labels
        self.validation_images = validation_images
        self.validation_labels = validation_labels


class Config:
    """How to train."""

    def __init__(
        self,
        epochs: int = 3,
        batch_size: int = 32,
        learning_rate: float = 0.002,
        decay: float = 0.7,
        optimizer: str = "adam",
        momentum: float = 0.9,
        seed: int = 0,
    ) -> None:
        if epochs < 1 or batch_size < 1 or learning_rate <= 0 or not 0 < decay <= 1:
            raise ValueError(
                "epochs and batch_size must be at least 1, learning_rate above 0, decay above 0 "
                f"and at most 1, got {epochs}, {batch_size}, {learning_rate}, {decay}"
            )
        if optimizer not in ("sgd", "adam"):
            raise ValueError(f"optimizer must be 'sgd' or 'adam', got {optimizer!r}")
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = float(learning_rate)
        self.decay = float(decay)
        self.optimizer = optimizer
        self.momentum = float(momentum)
        self.seed = seed


def predict(model: object, images: Array, batch_size: int = 100) -> Array:
    """The label with the largest logit for each image; the first one on a tie."""
    starts = range(0, len(images), batch_size)
    return np.concatenate(
        [model.forward(images[start : start + batch_size]).argmax(axis=1) for start in starts]
    )


def evaluate(
    model: object, images: Array, labels: Array, batch_size: int = 100
) -> tuple[float, float]:
    """The mean loss over all images, and the share of them that get the right label."""
    loss, right = 0.0, 0
    for start in range(0, len(images), batch_size):
        batch = slice(start, start + batch_size)
        logits = model.forward(images[batch])
        loss += softmax_cross_entropy(logits, labels[batch])[0] * len(logits)
        right += int((logits.argmax(axis=1) == labels[batch]).sum())
    return loss / len(images), right / len(images)


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> list[Array]:
    """The order in which n random numbers would be sorted, cut at every batch_size."""
    order = np.argsort(rng.random(n))
    batches = []
    while len(order):
        batches.append(order[:batch_size])
        order = order[batch_size:]
    return batches


def train(model: object, data: Data, config: Config, state: dict | None = None) -> dict:
    """Fit a model. All that a run knows is in one dict of plain data."""
    rng = np.random.default_rng(config.seed)
    if state is None:
        state = {"epochs": [], "steps": [], "now": None, "optimizer": None, "best": None}
    else:
        check_same_shapes(model.parameters, state["now"])
        model.parameters = dict(state["now"])
        rng.bit_generator.state = state["rng"]
    epochs, steps = list(state["epochs"]), list(state["steps"])
    optimizer, best = state["optimizer"], state["best"]

    def update(gradients: Arrays, learning_rate: float) -> None:
        nonlocal optimizer
        if config.optimizer == "sgd":
            step = partial(sgd_momentum, momentum=config.momentum)
        else:
            step = adam
        model.parameters, optimizer = step(model.parameters, gradients, optimizer, learning_rate)

    per_epoch = math.ceil(len(data.train_images) / config.batch_size)
    learning_rate = config.learning_rate
    for _ in epochs:
        learning_rate *= config.decay
    with TrainingDisplay(max(0, config.epochs - len(epochs)) * per_epoch) as display:
        while len(epochs) < config.epochs:
            number = len(epochs) + 1
            batches = minibatches(len(data.train_images), config.batch_size, rng)
            for step, batch in enumerate(batches, start=1):
                loss, gradients = model.loss_and_gradients(
                    data.train_images[batch], data.train_labels[batch]
                )
                check_loss(loss, number, step)
                update(gradients, learning_rate)
                steps.append(loss)
                display.step(loss=loss)
            train_loss, train_accuracy = evaluate(model, data.train_images, data.train_labels)
            valid_loss, valid_accuracy = evaluate(
                model, data.validation_images, data.validation_labels
            )
            check_loss(train_loss + valid_loss, number, len(batches))
            if best is None or valid_accuracy > best[0]:
                best = (valid_accuracy, model.parameters)
            epochs.append((train_loss, train_accuracy, valid_loss, valid_accuracy, learning_rate))
            display.note(f"epoch {number}: accuracy {train_accuracy:.4f}, {valid_accuracy:.4f}")
            learning_rate *= config.decay

    state = {
        "epochs": epochs,
        "steps": steps,
        "now": model.parameters,
        "optimizer": optimizer,
        "best": best,
        "rng": rng.bit_generator.state,
    }
    model.parameters = deepcopy(best[1])
    columns = [list(column) for column in zip(*epochs, strict=True)]
    names = ("loss", "accuracy", "validation_loss", "validation_accuracy", "learning_rate")
    history = dict(zip(names, columns, strict=True))
    return history | {"step_loss": list(steps), "state": state}


class MLP:
    """flatten, dense, relu, dense."""

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        hidden: int = 59,
        classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        self.parameters = {}
        for name, d_in, d_out in (
            ("dense1", image_size * image_size, hidden),
            ("dense2", hidden, classes),
        ):
            self.parameters[name + ".w"] = he_normal(rng, (d_in, d_out), d_in, dtype)
            self.parameters[name + ".b"] = np.zeros(d_out, dtype)

    def layers(self) -> list[Callable]:
        """The layers, with the parameters of this moment."""
        return [FLATTEN, dense(self.parameters, "dense1"), RELU, dense(self.parameters, "dense2")]

    def forward(self, x: Array) -> Array:
        """The logits."""
        check_images(x, self.image_size)
        return chain(np.asarray(x, self.dtype), self.layers())[0]

    def loss_and_gradients(self, x: Array, labels: Array) -> tuple[float, Arrays]:
        """The mean loss, and its gradients by name."""
        check_images(x, self.image_size)
        return gradients_of(self.layers(), np.asarray(x, self.dtype), labels)


def permute_pixels(images: Array, rng: np.random.Generator) -> Array:
    """Put each pixel at the place that the permutation names."""
    rows, columns = np.unravel_index(
        np.argsort(rng.random(images.shape[2] * images.shape[3])), images.shape[2:]
    )
    permuted = np.empty_like(images)
    permuted[:, :, rows, columns] = images.reshape(*images.shape[:2], -1)
    return permuted


def receptive_field(layers: list[tuple[int, int]]) -> tuple[int, int]:
    """The last pixel under output 0, when the first is 0, and the first under output 1."""
    last, jump = 0, 1
    for kernel, stride in layers:
        if min(kernel, stride) < 1:
            raise ValueError("kernels and strides must be at least 1")
        last += (kernel - 1) * jump
        jump *= stride
    return last + 1, jump


def feature_maps(model: LeNet, image: Array) -> Arrays:
    """What comes out of the relu after each convolution."""
    check_images(image[None], model.image_size)
    layers = model.layers()
    first, _ = chain(image[None].astype(model.dtype), layers[:2])
    second, _ = chain(first, layers[2:5])
    return {"conv1": first[0], "conv2": second[0]}
