"""Assignment 2 with objects: a layer is an object, a network a list of them, a run a record.

Caches are instances of classes. The optimizers keep one record for each parameter.
"""

import math

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


class Cache:
    """What a backward pass needs: attributes, by the names that they are given."""

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)


def relu_forward(x: Array) -> tuple[Array, Cache]:
    """max(x, 0)."""
    return np.where(x > 0, x, np.zeros_like(x)), Cache(x=x)


def relu_backward(dout: Array, cache: Cache) -> Array:
    """dx."""
    dx = dout.copy()
    dx[cache.x <= 0] = 0
    return dx


def linear_forward(x: Array, w: Array, b: Array) -> tuple[Array, Cache]:
    """x @ w + b."""
    check_dense(x, w, b)
    out = x @ w
    out += b
    return out, Cache(x=x, w=w)


def linear_backward(dout: Array, cache: Cache) -> tuple[Array, Array, Array]:
    """(dx, dw, db)."""
    ones = np.ones(len(dout), dout.dtype)
    return dout @ cache.w.T, (dout.T @ cache.x).T, ones @ dout


def flatten_forward(x: Array) -> tuple[Array, Cache]:
    """One row for each image."""
    return np.ascontiguousarray(x).reshape(len(x), -1), Cache(shape=x.shape)


def flatten_backward(dout: Array, cache: Cache) -> Array:
    """dx."""
    return dout.reshape(cache.shape)


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """The loss by the gap between each row's logarithm of a sum and its right logit."""
    check_labels(logits, labels)
    n = len(logits)
    right = np.take_along_axis(logits, labels[:, None], axis=1)
    # All logits relative to the right one: the loss is the logarithm of the sum of exponentials.
    relative = logits - right
    largest = relative.max(axis=1, keepdims=True)
    powers = np.exp(relative - largest)
    sums = powers.sum(axis=1, keepdims=True)
    loss = float(np.mean(largest + np.log(sums)))
    target = np.zeros_like(logits)
    np.put_along_axis(target, labels[:, None], 1, axis=1)
    return loss, (powers / sums - target) / n


def he_normal(
    rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: str = "float32"
) -> Array:
    """Normal draws, with standard deviation sqrt(2 / fan_in)."""
    return rng.standard_normal(size=shape, dtype=np.dtype(dtype)) * np.dtype(dtype).type(
        math.sqrt(2 / fan_in)
    )


class Convolution:
    """A convolution, with its parameters under name.w and name.b."""

    def __init__(self, name: str, c_in: int, c_out: int, kernel: int) -> None:
        self.name = name
        self.shape = (c_out, c_in, kernel, kernel)
        self.fan_in = c_in * kernel * kernel
        self.outputs = c_out

    def forward(self, x: Array, parameters: Arrays) -> tuple[Array, object]:
        return conv2d_forward_fast(x, parameters[self.name + ".w"], parameters[self.name + ".b"])

    def backward(self, dout: Array, cache: object, gradients: Arrays) -> Array:
        dx, gradients[self.name + ".w"], gradients[self.name + ".b"] = conv2d_backward_fast(
            dout, cache
        )
        return dx


class Dense:
    """A dense layer, with its parameters under name.w and name.b."""

    def __init__(self, name: str, d_in: int, d_out: int) -> None:
        self.name = name
        self.shape = (d_in, d_out)
        self.fan_in = d_in
        self.outputs = d_out

    def forward(self, x: Array, parameters: Arrays) -> tuple[Array, object]:
        return linear_forward(x, parameters[self.name + ".w"], parameters[self.name + ".b"])

    def backward(self, dout: Array, cache: object, gradients: Arrays) -> Array:
        dx, gradients[self.name + ".w"], gradients[self.name + ".b"] = linear_backward(dout, cache)
        return dx


class Relu:
    """A relu; it has no parameters."""

    def forward(self, x: Array, parameters: Arrays) -> tuple[Array, object]:
        return relu_forward(x)

    def backward(self, dout: Array, cache: object, gradients: Arrays) -> Array:
        return relu_backward(dout, cache)


class Pool:
    """A max pooling over 2 x 2 windows."""

    def forward(self, x: Array, parameters: Arrays) -> tuple[Array, object]:
        return max_pool2d_forward(x, 2)

    def backward(self, dout: Array, cache: object, gradients: Arrays) -> Array:
        return max_pool2d_backward(dout, cache)


class Flatten:
    """Maps to rows."""

    def forward(self, x: Array, parameters: Arrays) -> tuple[Array, object]:
        return flatten_forward(x)

    def backward(self, dout: Array, cache: object, gradients: Arrays) -> Array:
        return flatten_backward(dout, cache)


class Network:
    """Layers in a row, and their parameters."""

    def __init__(self, rng: np.random.Generator, layers: list, image_size: int, dtype: str) -> None:
        self.layers = layers
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        self.parameters: Arrays = {}
        for layer in layers:
            if isinstance(layer, Convolution | Dense):
                self.parameters[layer.name + ".w"] = he_normal(
                    rng, layer.shape, layer.fan_in, dtype
                )
                self.parameters[layer.name + ".b"] = np.zeros(layer.outputs, dtype)

    def run(self, x: Array) -> list[tuple[Array, object]]:
        """What comes out of each layer, with its cache."""
        check_images(x, self.image_size)
        out = x.astype(self.dtype)
        steps = []
        for layer in self.layers:
            out, cache = layer.forward(out, self.parameters)
            steps.append((out, cache))
        return steps

    def forward(self, x: Array) -> Array:
        """The logits."""
        return self.run(x)[-1][0]

    def loss_and_gradients(self, x: Array, labels: Array) -> tuple[float, Arrays]:
        """The mean loss, and its gradients by name."""
        steps = self.run(x)
        loss, dout = softmax_cross_entropy(steps[-1][0], labels)
        gradients: Arrays = {}
        for layer, (_, cache) in zip(reversed(self.layers), reversed(steps), strict=True):
            dout = layer.backward(dout, cache, gradients)
        return loss, gradients


class LeNet(Network):
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
        side = conv_pool_size(conv_pool_size(image_size, kernel), kernel)
        layers = [
            Convolution("conv1", 1, filters[0], kernel),
            Relu(),
            Pool(),
            Convolution("conv2", filters[0], filters[1], kernel),
            Relu(),
            Pool(),
            Flatten(),
            Dense("dense1", filters[1] * side**2, hidden),
            Relu(),
            Dense("dense2", hidden, classes),
        ]
        super().__init__(rng, layers, image_size, dtype)


def sgd_momentum(
    parameters: Arrays,
    gradients: Arrays,
    state: dict | None,
    learning_rate: float,
    momentum: float = 0.9,
) -> tuple[Arrays, dict]:
    """One step. The first velocity is the gradient itself."""
    check_same_shapes(parameters, gradients)
    if state is None:
        state = {name: g.copy() for name, g in gradients.items()}
    else:
        state = {name: momentum * state[name] + g for name, g in gradients.items()}
    return {name: p - learning_rate * state[name] for name, p in parameters.items()}, state


def adam(
    parameters: Arrays,
    gradients: Arrays,
    state: dict | None,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Arrays, dict]:
    """One step. Each parameter has its own count, mean and square."""
    check_same_shapes(parameters, gradients)
    state = state or {name: {"steps": 0, "mean": 0.0, "square": 0.0} for name in parameters}
    new_parameters, new_state = {}, {}
    for name, parameter in parameters.items():
        old, gradient = state[name], gradients[name]
        steps = old["steps"] + 1
        # A running mean moves towards the new value by a share.
        mean = old["mean"] + (1 - beta1) * (gradient - old["mean"])
        square = old["square"] + (1 - beta2) * (gradient * gradient - old["square"])
        root = np.sqrt(square) / math.sqrt(1 - beta2**steps)
        rate = learning_rate / (1 - beta1**steps)
        new_parameters[name] = parameter - rate * (mean / (root + epsilon))
        new_state[name] = {"steps": steps, "mean": mean, "square": square}
    return new_parameters, new_state


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
    """A shuffled list of numbers, cut at every batch_size."""
    order = np.arange(n)
    rng.shuffle(order)
    return np.split(order, range(batch_size, n, batch_size))


class Run:
    """A training run: all that changes from epoch to epoch."""

    def __init__(self, model: Network, config: Config) -> None:
        self.model = model
        self.config = config
        self.history: dict[str, list[float]] = {
            "loss": [],
            "accuracy": [],
            "validation_loss": [],
            "validation_accuracy": [],
            "learning_rate": [],
            "step_loss": [],
        }
        self.moments: dict | None = None
        self.best_epoch = -1
        self.best: Arrays = {}

    @property
    def epochs_done(self) -> int:
        return len(self.history["loss"])

    def restore(self, state: dict) -> None:
        """Go on from there."""
        check_same_shapes(self.model.parameters, state["latest"])
        self.model.parameters = dict(state["latest"])
        self.history = {name: values[:] for name, values in state["figures"].items()}
        self.moments = state["moments"]
        self.best, self.best_epoch = state["best"], state["best_epoch"]

    def state(self) -> dict:
        """What restore needs."""
        return {
            "latest": copies(self.model.parameters),
            "figures": {name: values[:] for name, values in self.history.items()},
            "moments": self.moments,
            "best": copies(self.best),
            "best_epoch": self.best_epoch,
        }

    def optimize(self, gradients: Arrays, learning_rate: float) -> None:
        """One step of the optimizer."""
        optimizers = {"sgd": sgd_momentum, "adam": adam}
        extra = {"momentum": self.config.momentum} if self.config.optimizer == "sgd" else {}
        self.model.parameters, self.moments = optimizers[self.config.optimizer](
            self.model.parameters, gradients, self.moments, learning_rate, **extra
        )

    def epoch(self, data: Data, display: TrainingDisplay) -> None:
        """Go once through the images, and measure."""
        number = self.epochs_done
        learning_rate = self.config.learning_rate * self.config.decay**number
        rng = np.random.default_rng((number, self.config.seed))
        batches = minibatches(len(data.train_images), self.config.batch_size, rng)
        for step, batch in enumerate(batches, start=1):
            loss, gradients = self.model.loss_and_gradients(
                data.train_images[batch], data.train_labels[batch]
            )
            check_loss(loss, number + 1, step)
            self.optimize(gradients, learning_rate)
            self.history["step_loss"].append(loss)
            display.step(loss=loss)
        self.measure("", data.train_images, data.train_labels, number, len(batches))
        held_out = (data.validation_images, data.validation_labels)
        self.measure("validation_", *held_out, number, len(batches))
        self.history["learning_rate"].append(learning_rate)

        accuracies = self.history["validation_accuracy"]
        if accuracies.index(max(accuracies)) != self.best_epoch:
            self.best_epoch, self.best = number, copies(self.model.parameters)
        display.note(f"epoch {number + 1}: validation accuracy {accuracies[-1]:.4f}")

    def measure(self, prefix: str, images: Array, labels: Array, number: int, step: int) -> None:
        """Add loss and accuracy to the history."""
        loss, accuracy = evaluate(self.model, images, labels)
        check_loss(loss, number + 1, step)
        self.history[prefix + "loss"].append(loss)
        self.history[prefix + "accuracy"].append(accuracy)


def copies(arrays: Arrays) -> Arrays:
    """The same arrays in new memory."""
    return {name: array.copy() for name, array in arrays.items()}


def train(model: Network, data: Data, config: Config, state: dict | None = None) -> dict:
    """Fit a model, epoch by epoch."""
    run = Run(model, config)
    if state is not None:
        run.restore(state)
    epochs = range(run.epochs_done, config.epochs)
    steps = -(-len(data.train_images) // config.batch_size)
    with TrainingDisplay(len(epochs) * steps, title="training") as display:
        for _ in epochs:
            run.epoch(data, display)
    history = {**run.history, "state": run.state()}
    model.parameters = copies(run.best)
    return history


class MLP(Network):
    """flatten, dense, relu, dense."""

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        hidden: int = 59,
        classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        layers = [
            Flatten(),
            Dense("dense1", image_size**2, hidden),
            Relu(),
            Dense("dense2", hidden, classes),
        ]
        super().__init__(rng, layers, image_size, dtype)


def permute_pixels(images: Array, rng: np.random.Generator) -> Array:
    """Take each pixel from the place that the permutation names."""
    height, width = images.shape[2:]
    rows, columns = np.divmod(rng.permutation(height * width), width)
    return images[:, :, rows, columns].reshape(images.shape)


def receptive_field(layers: list[tuple[int, int]]) -> tuple[int, int]:
    """One output at a time, walked back to the image."""
    if any(number < 1 for layer in layers for number in layer):
        raise ValueError("kernels and strides must be at least 1")
    size = 1
    for kernel, stride in reversed(layers):
        size = (size - 1) * stride + kernel
    return int(size), math.prod(int(stride) for _, stride in layers)


def feature_maps(model: LeNet, image: Array) -> Arrays:
    """What comes out of the relu after each convolution."""
    steps = model.run(image[None])
    return {"conv1": steps[1][0][0], "conv2": steps[4][0][0]}
