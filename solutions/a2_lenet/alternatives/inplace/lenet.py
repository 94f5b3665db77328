"""Assignment 2 written out: no helper between the models and their layers, and training in place.

Training writes new weights into the model's own arrays, counts steps instead of epochs, and saves
its state as a list. Each learned array has its own gradient line.
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


def relu_forward(x: Array) -> tuple[Array, tuple]:
    """max(x, 0)."""
    out = x.copy()
    out[out < 0] = 0
    # The output is all that the backward pass needs: it is 0 where the gradient is.
    return out, (out,)


def relu_backward(dout: Array, cache: tuple) -> Array:
    """dx."""
    (out,) = cache
    return np.where(out > 0, dout, np.zeros((), dout.dtype))


def linear_forward(x: Array, w: Array, b: Array) -> tuple[Array, dict]:
    """x @ w + b."""
    check_dense(x, w, b)
    return np.matmul(x, w) + b, {"x": x, "w": w}


def linear_backward(dout: Array, cache: dict) -> tuple[Array, Array, Array]:
    """(dx, dw, db)."""
    dx = (cache["w"] @ dout.T).T
    dw = np.tensordot(cache["x"], dout, axes=(0, 0))
    return dx, dw, np.add.reduce(dout)


def flatten_forward(x: Array) -> tuple[Array, list[int]]:
    """One row for each image."""
    return x.reshape(x.shape[0], -1, order="C").copy(), list(x.shape)


def flatten_backward(dout: Array, cache: list[int]) -> Array:
    """dx."""
    return dout.reshape(cache).copy()


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """In float64 throughout, and the loss as the logarithm of 1 / p without ever forming p."""
    check_labels(logits, labels)
    n = len(labels)
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    sums = powers.sum(axis=1)
    loss = sum(math.log(sums[i]) - shifted[i, labels[i]] for i in range(n)) / n
    dlogits = powers / (n * sums[:, None])
    dlogits[np.arange(n), labels] -= 1 / n
    return float(loss), dlogits.astype(logits.dtype)


def he_normal(
    rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: str = "float32"
) -> Array:
    """Normal draws, with variance 2 / fan_in."""
    return np.asarray(rng.normal(0, np.sqrt(2.0 / fan_in), shape), dtype=dtype)


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
        f1, f2 = filters
        side = conv_pool_size(conv_pool_size(image_size, kernel), kernel)
        self.parameters = {
            "conv1.w": he_normal(rng, (f1, 1, kernel, kernel), kernel**2, dtype),
            "conv2.w": he_normal(rng, (f2, f1, kernel, kernel), f1 * kernel**2, dtype),
            "dense1.w": he_normal(rng, (f2 * side**2, hidden), f2 * side**2, dtype),
            "dense2.w": he_normal(rng, (hidden, classes), hidden, dtype),
            "conv1.b": np.zeros(f1, dtype),
            "conv2.b": np.zeros(f2, dtype),
            "dense1.b": np.zeros(hidden, dtype),
            "dense2.b": np.zeros(classes, dtype),
        }

    def forward(self, x: Array) -> Array:
        """The logits; the relu after the pooling, which gives the same and is less work."""
        check_images(x, self.image_size)
        p = self.parameters
        a, _ = conv2d_forward_fast(x.astype(self.dtype), p["conv1.w"], p["conv1.b"])
        a, _ = max_pool2d_forward(a, 2)
        a, _ = conv2d_forward_fast(np.maximum(a, 0), p["conv2.w"], p["conv2.b"])
        a, _ = max_pool2d_forward(a, 2)
        a = np.maximum(a, 0).reshape(len(x), -1)
        a = np.maximum(a @ p["dense1.w"] + p["dense1.b"], 0)
        return a @ p["dense2.w"] + p["dense2.b"]

    def loss_and_gradients(self, x: Array, labels: Array) -> tuple[float, Arrays]:
        """The mean loss, and its gradients by name."""
        check_images(x, self.image_size)
        p = self.parameters
        a1, conv1 = conv2d_forward_fast(x.astype(self.dtype), p["conv1.w"], p["conv1.b"])
        m1, pool1 = max_pool2d_forward(a1, 2)
        h1 = np.maximum(m1, 0)
        a2, conv2 = conv2d_forward_fast(h1, p["conv2.w"], p["conv2.b"])
        m2, pool2 = max_pool2d_forward(a2, 2)
        h2 = np.maximum(m2, 0).reshape(len(x), -1)
        h3 = np.maximum(h2 @ p["dense1.w"] + p["dense1.b"], 0)
        logits = h3 @ p["dense2.w"] + p["dense2.b"]

        loss, d4 = softmax_cross_entropy(logits, labels)
        d3 = (d4 @ p["dense2.w"].T) * (h3 > 0)
        d2 = (d3 @ p["dense1.w"].T) * (h2 > 0)
        d2 = max_pool2d_backward(d2.reshape(m2.shape), pool2)
        d1, dw2, db2 = conv2d_backward_fast(d2, conv2)
        d1 = max_pool2d_backward(d1 * (h1 > 0), pool1)
        _, dw1, db1 = conv2d_backward_fast(d1, conv1)
        gradients = {
            "conv1.w": dw1,
            "conv1.b": db1,
            "conv2.w": dw2,
            "conv2.b": db2,
            "dense1.w": h2.T @ d3,
            "dense1.b": d3.sum(axis=0),
            "dense2.w": h3.T @ d4,
            "dense2.b": d4.sum(axis=0),
        }
        return loss, gradients


def sgd_momentum(
    parameters: Arrays,
    gradients: Arrays,
    state: list | None,
    learning_rate: float,
    momentum: float = 0.9,
) -> tuple[Arrays, list]:
    """One step. The state is a list of (name, velocity)."""
    check_same_shapes(parameters, gradients)
    old = dict(state) if state else {}
    result, velocities = {}, []
    for name, p in parameters.items():
        velocity = gradients[name].copy()
        if name in old:
            velocity += momentum * old[name]
        result[name] = p.copy()
        result[name] -= learning_rate * velocity
        velocities.append((name, velocity))
    return result, velocities


def adam(
    parameters: Arrays,
    gradients: Arrays,
    state: list | None,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Arrays, list]:
    """One step, on copies that are changed in place. The sums are kept without 1 - beta."""
    check_same_shapes(parameters, gradients)
    # power1 and power2 are beta1**t and beta2**t.
    power1, power2, sums1, sums2 = state or [1.0, 1.0, {}, {}]
    power1, power2 = power1 * beta1, power2 * beta2
    result, new1, new2 = {}, {}, {}
    for name, p in parameters.items():
        g = gradients[name]
        new1[name] = g + beta1 * sums1[name] if name in sums1 else g.copy()
        new2[name] = g * g + beta2 * sums2[name] if name in sums2 else g * g
        step = new1[name] * ((1 - beta1) / (1 - power1))
        step /= np.sqrt(new2[name] * ((1 - beta2) / (1 - power2))) + epsilon
        step *= learning_rate
        result[name] = p - step
    return result, [power1, power2, new1, new2]


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
    """Draw without putting back, then cut at every batch_size."""
    order = rng.choice(n, size=n, replace=False)
    count = (n + batch_size - 1) // batch_size
    return [order[i * batch_size : min(n, (i + 1) * batch_size)] for i in range(count)]


def measured(model: object, images: Array, labels: Array) -> tuple[float, float]:
    """The mean loss and the accuracy, in pieces of 64."""
    pieces = [model.forward(images[i : i + 64]) for i in range(0, len(images), 64)]
    logits = np.concatenate(pieces)
    return softmax_cross_entropy(logits, labels)[0], float((logits.argmax(axis=1) == labels).mean())


def write(model: object, arrays: Arrays) -> None:
    """Put values into the model's own arrays."""
    for name, array in arrays.items():
        model.parameters[name][...] = array


def snapshot(model: object) -> Arrays:
    """A copy of the model's arrays."""
    return {name: array.copy() for name, array in model.parameters.items()}


def train(model: object, data: Data, config: Config, state: list | None = None) -> dict:
    """Fit a model, in one loop over steps."""
    n = len(data.train_images)
    per_epoch = (n - 1) // config.batch_size + 1
    step_losses, rows, moments, best = [], [], None, None
    if state is not None:
        step_losses, rows, moments, best = list(state[0]), list(state[1]), state[2], state[3]
        check_same_shapes(model.parameters, state[4])
        write(model, state[4])

    total = config.epochs * per_epoch
    batches: list[Array] = []
    with TrainingDisplay(max(total - len(step_losses), 0), title="training") as display:
        for step in range(len(step_losses), total):
            epoch, place = divmod(step, per_epoch)
            learning_rate = config.learning_rate * config.decay**epoch
            if place == 0:
                # The child of the seed that belongs to this epoch.
                seed = np.random.SeedSequence(config.seed, spawn_key=(epoch,))
                batches = minibatches(n, config.batch_size, np.random.default_rng(seed))
            images, labels = data.train_images[batches[place]], data.train_labels[batches[place]]
            loss, gradients = model.loss_and_gradients(images, labels)
            check_loss(loss, epoch + 1, place + 1)
            if config.optimizer == "adam":
                new, moments = adam(model.parameters, gradients, moments, learning_rate)
            else:
                new, moments = sgd_momentum(
                    model.parameters, gradients, moments, learning_rate, config.momentum
                )
            write(model, new)
            step_losses.append(loss)
            display.step(loss=loss)
            if place < per_epoch - 1:
                continue
            row = [
                *measured(model, data.train_images, data.train_labels),
                *measured(model, data.validation_images, data.validation_labels),
                learning_rate,
            ]
            check_loss(row[0], epoch + 1, place + 1)
            check_loss(row[2], epoch + 1, place + 1)
            if not rows or row[3] > max(row[3] for row in rows):
                best = snapshot(model)
            rows.append(row)
            display.note(f"epoch {epoch + 1}: {row[:4]}")

    latest = snapshot(model)
    write(model, best)
    names = ("loss", "accuracy", "validation_loss", "validation_accuracy", "learning_rate")
    history = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    history["step_loss"] = list(step_losses)
    history["state"] = [step_losses, rows, moments, best, latest]
    return history


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
        self.parameters = {
            "dense1.w": he_normal(rng, (image_size**2, hidden), image_size**2, dtype),
            "dense1.b": np.zeros(hidden, dtype),
            "dense2.w": he_normal(rng, (hidden, classes), hidden, dtype),
            "dense2.b": np.zeros(classes, dtype),
        }

    def forward(self, x: Array) -> Array:
        """The logits."""
        check_images(x, self.image_size)
        p = self.parameters
        rows = x.astype(self.dtype).reshape(len(x), -1)
        hidden = np.maximum(rows @ p["dense1.w"] + p["dense1.b"], 0)
        return hidden @ p["dense2.w"] + p["dense2.b"]

    def loss_and_gradients(self, x: Array, labels: Array) -> tuple[float, Arrays]:
        """The mean loss, and its gradients by name."""
        check_images(x, self.image_size)
        p = self.parameters
        rows = x.astype(self.dtype).reshape(len(x), -1)
        hidden = np.maximum(rows @ p["dense1.w"] + p["dense1.b"], 0)
        loss, d2 = softmax_cross_entropy(hidden @ p["dense2.w"] + p["dense2.b"], labels)
        d1 = (d2 @ p["dense2.w"].T) * (hidden > 0)
        return loss, {
            "dense2.b": d2.sum(axis=0),
            "dense2.w": hidden.T @ d2,
            "dense1.b": d1.sum(axis=0),
            "dense1.w": rows.T @ d1,
        }


def permute_pixels(images: Array, rng: np.random.Generator) -> Array:
    """Pixels first, then shuffle them: along their axis, all images together."""
    pixels = np.moveaxis(images.reshape(*images.shape[:2], -1), 2, 0)
    # Not rng.shuffle: it would change the images that were handed in.
    return np.moveaxis(rng.permutation(pixels, axis=0), 0, 2).reshape(images.shape)


def receptive_field(layers: list[tuple[int, int]]) -> tuple[int, int]:
    """The sum, written as one."""
    if not all(kernel >= 1 and stride >= 1 for kernel, stride in layers):
        raise ValueError("kernels and strides must be at least 1")
    jumps = [1]
    for _, stride in layers:
        jumps.append(jumps[-1] * stride)
    spread = sum((kernel - 1) * jump for (kernel, _), jump in zip(layers, jumps, strict=False))
    return 1 + spread, jumps[-1]


def feature_maps(model: LeNet, image: Array) -> Arrays:
    """The maps of both convolutions, with the relu before the pooling."""
    x = np.expand_dims(image, 0).astype(model.dtype)
    check_images(x, model.image_size)
    p = model.parameters
    first = np.maximum(conv2d_forward_fast(x, p["conv1.w"], p["conv1.b"])[0], 0)
    pooled = max_pool2d_forward(first, 2)[0]
    second = np.maximum(conv2d_forward_fast(pooled, p["conv2.w"], p["conv2.b"])[0], 0)
    return {"conv1": np.squeeze(first, 0), "conv2": np.squeeze(second, 0)}
