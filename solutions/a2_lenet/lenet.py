"""Assignment 2: a LeNet for handwritten digits, trained from scratch, in NumPy.

Conventions of the whole file
    Images:       (n, 1, image_size, image_size): image, channel, row, column.
    Labels:       integers, (n,), each from 0 to num_classes - 1.
    Logits:       (n, num_classes), the input of the softmax.
    Gradients:    the shape and the dtype of the array that they belong to.
    Dtypes:       the float arrays of one call have one dtype, float32 or float64, and its results
                  have the same. A model converts images, of any dtype, to its own dtype, which its
                  logits and gradients have too.
    Side effects: none. No function changes its arguments or remembers anything between two calls.
                  Only train changes something: the parameters of its model (dict, arrays or both).
                  No result is a view of an argument, except where flattening needs no copy.
    Dicts:        plain ones, no subclasses such as OrderedDict.
    Randomness:   comes only from the generator `rng` that is passed in.
    Caches:       whatever your backward pass needs from your forward pass; the arguments themselves
                  are fine, since nothing writes into them in between. Tests only pass a cache back,
                  sometimes more than once.
    Errors:       bad input raises ValueError. The checks are given; call them where the docstring
                  says so.

NumPy only: no PyTorch, no SciPy.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Num

from assignments.a1_convolution.convolution import (
    conv2d_backward_fast,
    conv2d_forward_fast,
    max_pool2d_backward,
    max_pool2d_forward,
)
from common.training.training_progress import TrainingDisplay

Array = np.ndarray
Arrays = dict[str, np.ndarray]  # arrays by the name of their parameter


def check_linear(
    x: Float[Array, "n d_in"], w: Float[Array, "d_in d_out"], b: Float[Array, " d_out"]
) -> None:
    """Given: raise ValueError if the shapes of a linear layer don't fit together."""
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0] or b.shape != w.shape[1:]:
        raise ValueError(
            "x, w and b must be (n, d_in), (d_in, d_out) and (d_out,), "
            f"got {x.shape}, {w.shape} and {b.shape}"
        )


def check_labels(logits: Float[Array, "n num_classes"], labels: Int[Array, " n"]) -> None:
    """Given: raise ValueError for an empty batch, or labels that don't fit the logits."""
    if logits.ndim != 2 or len(logits) == 0:
        raise ValueError(f"logits must be (n, num_classes) with n at least 1, got {logits.shape}")
    n, num_classes = logits.shape
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    if labels.shape != (n,):
        raise ValueError(f"labels must be ({n},) for {n} rows of logits, got {labels.shape}")
    if labels.min() < 0 or labels.max() >= num_classes:
        raise ValueError(
            f"labels must be from 0 to {num_classes - 1}, got {labels.min()} to {labels.max()}"
        )


def check_images(x: Num[Array, "n 1 s s"], image_size: int) -> None:
    """Given: raise ValueError for an empty batch, or images of a wrong shape."""
    if x.shape[1:] != (1, image_size, image_size) or len(x) == 0:
        raise ValueError(
            f"images must be (n, 1, {image_size}, {image_size}) with n at least 1, got {x.shape}"
        )


def check_pairs(images: Num[Array, "n 1 s s"], labels: Int[Array, " n"]) -> None:
    """Given: raise ValueError for no images, or if the numbers of images and labels differ."""
    if len(images) == 0 or len(images) != len(labels):
        raise ValueError(
            "images and labels must be equally many, at least one, "
            f"got {len(images)} images and {len(labels)} labels"
        )


def check_same_shapes(parameters: Arrays, others: Arrays) -> None:
    """Given: raise ValueError unless both dicts have the same names and shapes."""
    if parameters.keys() != others.keys():
        raise ValueError(f"names must be {sorted(parameters)}, got {sorted(others)}")
    for name, array in parameters.items():
        if array.shape != others[name].shape:
            raise ValueError(f"{name} must be {array.shape}, got {others[name].shape}")


def check_loss(loss: float, epoch: int, step: int) -> None:
    """Given: raise ValueError if a loss is not finite. Epochs and steps are counted from 1."""
    if not math.isfinite(loss):
        raise ValueError(f"the loss is {loss} at epoch {epoch}, step {step}: training diverged")


def conv_pool_size(size: int, kernel_size: int) -> int:
    """Given: the side of a square image after a convolution without padding and a 2 x 2 pooling."""
    if kernel_size < 1 or size - kernel_size + 1 < 2:
        raise ValueError(
            f"kernel_size must be from 1 to {size - 1} for an image of size {size} "
            f"and a 2 x 2 pooling, got {kernel_size}"
        )
    return (size - kernel_size + 1) // 2


# Exercise 2.1


def relu_forward(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], object]:
    """Elementwise max(x, 0), for an array of any shape.

    Returns (out, cache).
    """
    # BEGIN SOLUTION
    return np.maximum(x, 0), x > 0
    # END SOLUTION


def relu_backward(dout: Float[Array, "..."], cache: object) -> Float[Array, "..."]:
    """The backward pass of relu_forward: dx. Where x is exactly 0, the gradient is 0."""
    # BEGIN SOLUTION
    return dout * cache
    # END SOLUTION


def linear_forward(
    x: Float[Array, "n d_in"], w: Float[Array, "d_in d_out"], b: Float[Array, " d_out"]
) -> tuple[Float[Array, "n d_out"], object]:
    """A linear layer: out = x @ w + b.

    Returns (out, cache). Raises ValueError if the shapes don't fit together (check_linear).
    """
    # BEGIN SOLUTION
    check_linear(x, w, b)
    return x @ w + b, (x, w)
    # END SOLUTION


def linear_backward(
    dout: Float[Array, "n d_out"], cache: object
) -> tuple[Float[Array, "n d_in"], Float[Array, "d_in d_out"], Float[Array, " d_out"]]:
    """The backward pass of linear_forward: (dx, dw, db)."""
    # BEGIN SOLUTION
    x, w = cache
    return dout @ w.T, x.T @ dout, dout.sum(axis=0)
    # END SOLUTION


def flatten_forward(x: Float[Array, "n ..."]) -> tuple[Float[Array, "n d"], object]:
    """Reshape each image to one row, in row-major order: (n, c, h, w) becomes (n, c*h*w).

    x may have any number of axes from two on; n is at least 1.
    Returns (out, cache).
    """
    # BEGIN SOLUTION
    return x.reshape(len(x), math.prod(x.shape[1:])), x.shape
    # END SOLUTION


def flatten_backward(dout: Float[Array, "n d"], cache: object) -> Float[Array, "n ..."]:
    """The backward pass of flatten_forward: dx, in the shape of x."""
    # BEGIN SOLUTION
    return dout.reshape(cache)
    # END SOLUTION


# Exercise 2.2


def softmax_cross_entropy(
    logits: Float[Array, "n num_classes"], labels: Int[Array, " n"]
) -> tuple[float, Float[Array, "n num_classes"]]:
    """The mean cross-entropy of the softmax of the logits, and its gradient.

    loss = the mean over i of -log(p[i, labels[i]]),
    where p[i] = exp(logits[i]) / sum(exp(logits[i]))

    Returns (loss, dlogits): a Python float, and the gradient of that mean.
    Logits as large as 1e4 or as small as -1e4 must neither overflow nor lose precision in float32:
    subtract the largest logit of each row first, and compute log p directly, not as the logarithm
    of a probability that may be 0.
    Raises ValueError for an empty batch, and for labels that are not integers, have a shape other
    than (n,) or lie outside 0 ... num_classes - 1 (check_labels).
    """
    # BEGIN SOLUTION
    check_labels(logits, labels)
    n = len(logits)
    rows = np.arange(n)
    # The softmax doesn't change if every logit of a row moves by the same amount. With a largest
    # logit of 0, exp can't overflow, and the sum of the exps is at least 1.
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    dlogits = np.exp(log_p)
    dlogits[rows, labels] -= 1
    return float(-log_p[rows, labels].mean()), dlogits / n
    # END SOLUTION


# Exercise 2.3


def he_normal(
    rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: str = "float32"
) -> Float[Array, "..."]:
    """He initialization: independent normal draws, mean 0, standard deviation sqrt(2 / fan_in).

    fan_in: the number of inputs of one output of the layer.
    dtype: that of the result, as NumPy takes it: a name, or an np.dtype such as model.dtype.
    """
    # BEGIN SOLUTION
    return rng.normal(scale=math.sqrt(2 / fan_in), size=shape).astype(dtype)
    # END SOLUTION


class LeNet:
    """conv, relu, pool, conv, relu, pool, flatten, linear, relu, linear.

    Both convolutions have stride 1 and no padding. Both poolings are max poolings over 2 x 2
    windows that don't overlap; a row or column that is left over at the edge is ignored. The maps
    are flattened in the order channel, row, column.

    parameters: the learned arrays, by name.

        conv1.w    (filters[0], 1, kernel_size, kernel_size)             conv1.b    (filters[0],)
        conv2.w    (filters[1], filters[0], kernel_size, kernel_size)    conv2.b    (filters[1],)
        linear1.w  (filters[1] * side * side, hidden_size)               linear1.b  (hidden_size,)
        linear2.w  (hidden_size, num_classes)                            linear2.b  (num_classes,)

    side is the side of the maps after the second pooling (conv_pool_size, twice): 28, 12, 4. With
    the default sizes there are 46,730 parameters.

    Every w comes from he_normal, with a fan_in of c_in * kernel_size * kernel_size or d_in; every b
    is 0. Every method uses the arrays that are in `parameters` when it is called. Other code writes
    into these arrays, replaces them in the dict, or replaces the dict: so keep no other reference
    to them, and nothing computed from them. The methods don't change them.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        filters: tuple[int, int] = (16, 32),
        kernel_size: int = 5,
        hidden_size: int = 64,
        num_classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        """Draw the initial weights. Raises ValueError if the image is too small for the layers."""
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        self.parameters: Arrays = {}
        # BEGIN SOLUTION
        first, second = filters
        side = conv_pool_size(conv_pool_size(image_size, kernel_size), kernel_size)
        flat = second * side * side
        window = (kernel_size, kernel_size)
        area = kernel_size * kernel_size
        self.parameters = {
            "conv1.w": he_normal(rng, (first, 1, *window), area, dtype),
            "conv1.b": np.zeros(first, dtype),
            "conv2.w": he_normal(rng, (second, first, *window), first * area, dtype),
            "conv2.b": np.zeros(second, dtype),
            "linear1.w": he_normal(rng, (flat, hidden_size), flat, dtype),
            "linear1.b": np.zeros(hidden_size, dtype),
            "linear2.w": he_normal(rng, (hidden_size, num_classes), hidden_size, dtype),
            "linear2.b": np.zeros(num_classes, dtype),
        }
        # END SOLUTION

    def forward(self, x: Num[Array, "n 1 s s"]) -> Float[Array, "n num_classes"]:
        """Given: the logits. Raises ValueError for an empty batch or images of a wrong shape."""
        logits, _ = self.forward_with_caches(x)
        return logits

    def loss_and_gradients(
        self, x: Num[Array, "n 1 s s"], labels: Int[Array, " n"]
    ) -> tuple[float, Arrays]:
        """Given: the mean loss of a batch, and its gradient for each name in `parameters`.

        Raises ValueError as forward and softmax_cross_entropy do.
        """
        logits, caches = self.forward_with_caches(x)
        loss, dlogits = softmax_cross_entropy(logits, labels)
        return loss, self.backward(dlogits, caches)

    def forward_with_caches(
        self, x: Num[Array, "n 1 s s"]
    ) -> tuple[Float[Array, "n num_classes"], object]:
        """The logits, and the caches that backward needs. Tests don't call this method directly.

        Raises ValueError for an empty batch or images of a wrong shape (check_images).
        """
        # BEGIN SOLUTION
        check_images(x, self.image_size)
        p = self.parameters
        x = x.astype(self.dtype, copy=False)

        out, conv1 = conv2d_forward_fast(x, p["conv1.w"], p["conv1.b"])  # (n, 16, 24, 24)
        out, relu1 = relu_forward(out)
        out, pool1 = max_pool2d_forward(out, 2)  # (n, 16, 12, 12)

        out, conv2 = conv2d_forward_fast(out, p["conv2.w"], p["conv2.b"])  # (n, 32, 8, 8)
        out, relu2 = relu_forward(out)
        out, pool2 = max_pool2d_forward(out, 2)  # (n, 32, 4, 4)

        out, flat = flatten_forward(out)  # (n, 512)
        out, linear1 = linear_forward(out, p["linear1.w"], p["linear1.b"])  # (n, 64)
        out, relu3 = relu_forward(out)
        logits, linear2 = linear_forward(out, p["linear2.w"], p["linear2.b"])  # (n, 10)
        return logits, (conv1, relu1, pool1, conv2, relu2, pool2, flat, linear1, relu3, linear2)
        # END SOLUTION

    def backward(self, dlogits: Float[Array, "n num_classes"], caches: object) -> Arrays:
        """The gradient for each name in `parameters`, given the caches of forward_with_caches."""
        # BEGIN SOLUTION
        conv1, relu1, pool1, conv2, relu2, pool2, flat, linear1, relu3, linear2 = caches
        g: Arrays = {}
        dout, g["linear2.w"], g["linear2.b"] = linear_backward(dlogits, linear2)
        dout = relu_backward(dout, relu3)
        dout, g["linear1.w"], g["linear1.b"] = linear_backward(dout, linear1)
        dout = flatten_backward(dout, flat)

        dout = max_pool2d_backward(dout, pool2)
        dout = relu_backward(dout, relu2)
        dout, g["conv2.w"], g["conv2.b"] = conv2d_backward_fast(dout, conv2)

        dout = max_pool2d_backward(dout, pool1)
        dout = relu_backward(dout, relu1)
        _, g["conv1.w"], g["conv1.b"] = conv2d_backward_fast(dout, conv1)
        return g
        # END SOLUTION


# Exercise 2.4


def sgd_momentum(
    parameters: Arrays,
    gradients: Arrays,
    state: object,
    learning_rate: float,
    momentum: float = 0.9,
) -> tuple[Arrays, object]:
    """One step of stochastic gradient descent with momentum, for each array separately.

    velocity = momentum * velocity + gradient        (0 before the first step)
    parameter = parameter - learning_rate * velocity

    state: None at the first step, then the state that the previous step returned. It may be any
        plain data: dicts, lists and tuples of arrays, numbers, strings and None.
    Returns (parameters, state): new dicts of new arrays, in the dtype of the old ones. The
    arguments are not changed, so a step can be repeated from the same state.
    Raises ValueError if the names or shapes of parameters and gradients differ (check_same_shapes).
    """
    # BEGIN SOLUTION
    check_same_shapes(parameters, gradients)
    velocities = {name: np.zeros_like(p) for name, p in parameters.items()}
    if state is not None:
        velocities = state["velocities"]
    velocities = {name: momentum * velocities[name] + g for name, g in gradients.items()}
    new = {name: p - learning_rate * velocities[name] for name, p in parameters.items()}
    return new, {"velocities": velocities}
    # END SOLUTION


def adam(
    parameters: Arrays,
    gradients: Arrays,
    state: object,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Arrays, object]:
    """One step of Adam, elementwise.

    m = beta1 * m + (1 - beta1) * gradient                     (0 before the first step)
    v = beta2 * v + (1 - beta2) * gradient**2                  (0 before the first step)
    m_hat = m / (1 - beta1**t),  v_hat = v / (1 - beta2**t)    (steps t are counted from 1)
    parameter = parameter - learning_rate * m_hat / (sqrt(v_hat) + epsilon)

    state, return value and errors: as in sgd_momentum.
    """
    # BEGIN SOLUTION
    check_same_shapes(parameters, gradients)
    if state is None:
        zeros = {name: np.zeros_like(p) for name, p in parameters.items()}
        state = {"t": 0, "m": zeros, "v": zeros}
    t = state["t"] + 1
    m, v, new = {}, {}, {}
    for name, p in parameters.items():
        g = gradients[name]
        m[name] = beta1 * state["m"][name] + (1 - beta1) * g
        v[name] = beta2 * state["v"][name] + (1 - beta2) * g**2
        # Both averages start at 0, which makes them too small at first.
        m_hat = m[name] / (1 - beta1**t)
        v_hat = v[name] / (1 - beta2**t)
        new[name] = p - learning_rate * m_hat / (np.sqrt(v_hat) + epsilon)
    return new, {"t": t, "m": m, "v": v}
    # END SOLUTION


# Exercise 2.5


@dataclass(frozen=True)
class Data:
    """Given: training images, and validation images, which choose the best weights.

    Raises ValueError for no images, or if the numbers of images and labels differ.
    """

    train_images: Num[Array, "n 1 s s"]
    train_labels: Int[Array, " n"]
    validation_images: Num[Array, "m 1 s s"]
    validation_labels: Int[Array, " m"]

    def __post_init__(self) -> None:
        check_pairs(self.train_images, self.train_labels)
        check_pairs(self.validation_images, self.validation_labels)


@dataclass(frozen=True)
class TrainConfig:
    """Given: the settings of a training run. Raises ValueError for impossible ones.

    epochs: the total number of passes over the training images; a resumed run includes the passes
        that it has already made.
    batch_size: the number of images per step.
    learning_rate: the learning rate of the first epoch.
    decay: the learning rate is multiplied by it after each epoch; above 0, at most 1.
    optimizer: "sgd" (sgd_momentum with `momentum`) or "adam" (with adam's defaults).
    momentum: from 0 to below 1; adam doesn't use it.
    seed: at least 0, which isn't checked here. The same seed gives the same run, another seed gives
        other mini-batches.
    """

    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 0.002
    decay: float = 0.7
    optimizer: str = "adam"
    momentum: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {self.epochs}")
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0, got {self.learning_rate}")
        if not 0 < self.decay <= 1:
            raise ValueError(f"decay must be above 0 and at most 1, got {self.decay}")
        if self.optimizer not in ("sgd", "adam"):
            raise ValueError(f"optimizer must be 'sgd' or 'adam', got {self.optimizer!r}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, got {self.momentum}")


def predict(
    model: object, images: Num[Array, "n 1 s s"], batch_size: int = 100
) -> Int[Array, " n"]:
    """Given: the label with the largest logit for each image; on a tie, the first one."""
    if len(images) == 0:
        raise ValueError("predict needs at least one image, got 0")
    starts = range(0, len(images), batch_size)
    return np.concatenate(
        [model.forward(images[start : start + batch_size]).argmax(axis=1) for start in starts]
    )


def evaluate(
    model: object, images: Num[Array, "n 1 s s"], labels: Int[Array, " n"], batch_size: int = 100
) -> tuple[float, float]:
    """Given: the mean loss and the accuracy over all images."""
    check_pairs(images, labels)
    loss, correct = 0.0, 0
    for start in range(0, len(images), batch_size):
        batch = slice(start, start + batch_size)
        logits = model.forward(images[batch])
        loss += softmax_cross_entropy(logits, labels[batch])[0] * len(logits)
        correct += int((logits.argmax(axis=1) == labels[batch]).sum())
    return loss / len(images), correct / len(images)


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> list[Int[Array, " batch"]]:
    """Split the indices 0 ... n - 1, in a random order drawn from rng, into mini-batches.

    Every index is in exactly one mini-batch, and every order is equally likely. Mini-batches have
    batch_size indices; the last one is smaller if batch_size doesn't divide n. Both n and
    batch_size are at least 1.
    Returns a list of integer arrays.
    """
    # BEGIN SOLUTION
    order = rng.permutation(n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]
    # END SOLUTION


def train(model: object, data: Data, config: TrainConfig, state: object = None) -> dict:
    """Train a model (a LeNet or an MLP) on the training images.

    The learning rate is config.learning_rate in the first epoch and is multiplied by config.decay
    after each one. An epoch is one pass over the mini-batches of the training images, in a new
    random order that depends only on config.seed and the epoch (how is up to you). Each mini-batch
    gives one step of config.optimizer, whose state carries over from epoch to epoch. After each
    epoch the model is evaluated on all training images and on all validation images (evaluate).

    When train returns, model.parameters holds the best weights: those after the epoch with the
    highest validation accuracy; on a tie, even of zeros, the earliest such epoch.

    Returns history, a dict. These lists have one entry per epoch:

        loss, accuracy                          on the training images, after the epoch
        validation_loss, validation_accuracy    on the validation images, after the epoch
        learning_rate                           in the epoch

    This one has an entry per step:

        step_loss                               on the mini-batch, before the weights change

    And "state" is what a run can be resumed from: plain data (dicts, lists and tuples of arrays,
    numbers, strings and None). Accuracies are between 0 and 1. All entries of the lists are floats.

    state: None for a new run, or the history["state"] of a run that ended. A resumed run takes its
        weights from the state, trains until config.epochs epochs are complete, and gives exactly
        the results of an uninterrupted run: the same weights in the model, and the history of all
        epochs, including the earlier ones. So the state holds the latest weights, the best weights,
        the optimizer's state and the history so far. The caller takes care that the other settings
        are the same. If the state has config.epochs epochs or more, train only sets the model to
        the best weights, and returns the history of the state, with an equal state. It doesn't
        change the state that it is given, so a run can be resumed from it more than once.

    Raises ValueError with epoch and step as soon as a loss is not finite (check_loss): both are
    counted from 1, steps within their epoch. If it is a loss from evaluate, the step is the last of
    the epoch. Raises ValueError also if the weights in the state don't fit the model
    (check_same_shapes). Which weights the model has after an error is up to you.
    Shows the loss of each step and a line per epoch while it runs:
    `with TrainingDisplay(total_steps, title="training") as display`, for the steps of this call,
    then `display.step(loss=...)` after each step and `display.note("...")` after each epoch.
    """
    # BEGIN SOLUTION
    names = ("loss", "accuracy", "validation_loss", "validation_accuracy", "learning_rate")
    history = {name: [] for name in (*names, "step_loss")}
    optimizer_state, best = None, model.parameters
    if state is not None:
        check_same_shapes(model.parameters, state["parameters"])
        model.parameters = state["parameters"]
        optimizer_state, best = state["optimizer"], state["best"]
        history = {name: list(values) for name, values in state["history"].items()}

    n, first = len(data.train_images), len(history["loss"])
    steps = math.ceil(n / config.batch_size)
    with TrainingDisplay(max(config.epochs - first, 0) * steps, title="training") as display:
        for epoch in range(first, config.epochs):
            learning_rate = config.learning_rate * config.decay**epoch
            # Each epoch has its own generator, so the state need not hold one.
            rng = np.random.default_rng([config.seed, epoch])
            for step, batch in enumerate(minibatches(n, config.batch_size, rng)):
                loss, gradients = model.loss_and_gradients(
                    data.train_images[batch], data.train_labels[batch]
                )
                check_loss(loss, epoch + 1, step + 1)
                if config.optimizer == "adam":
                    model.parameters, optimizer_state = adam(
                        model.parameters, gradients, optimizer_state, learning_rate
                    )
                else:
                    model.parameters, optimizer_state = sgd_momentum(
                        model.parameters, gradients, optimizer_state, learning_rate, config.momentum
                    )
                history["step_loss"].append(loss)
                display.step(loss=loss)

            loss, accuracy = evaluate(model, data.train_images, data.train_labels)
            check_loss(loss, epoch + 1, steps)
            validation_loss, validation_accuracy = evaluate(
                model, data.validation_images, data.validation_labels
            )
            check_loss(validation_loss, epoch + 1, steps)
            if validation_accuracy > max(history["validation_accuracy"], default=-1):
                best = model.parameters
            values = (loss, accuracy, validation_loss, validation_accuracy, learning_rate)
            for name, value in zip(names, values, strict=True):
                history[name].append(value)
            display.note(
                f"epoch {epoch + 1}: loss {loss:.4f}, accuracy {accuracy:.4f}, "
                f"validation loss {validation_loss:.4f}, accuracy {validation_accuracy:.4f}"
            )

    state = {
        "parameters": model.parameters,
        "best": best,
        "optimizer": optimizer_state,
        "history": {name: list(values) for name, values in history.items()},
    }
    # Copies: writing into the model's arrays must not change the state.
    model.parameters = {name: array.copy() for name, array in best.items()}
    return {**history, "state": state}
    # END SOLUTION


# Exercise 2.6


class MLP:
    """flatten, linear, relu, linear: a network that doesn't know which pixels are neighbors.

    parameters: the learned arrays, by name.

        linear1.w  (image_size * image_size, hidden_size)    linear1.b  (hidden_size,)
        linear2.w  (hidden_size, num_classes)                linear2.b  (num_classes,)

    With the default sizes there are 46,915 parameters, 185 more than in the LeNet.
    Initialization, dtype and the use of `parameters` are as in LeNet.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        hidden_size: int = 59,
        num_classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        """Draw the initial weights."""
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        self.parameters: Arrays = {}
        # BEGIN SOLUTION
        pixels = image_size * image_size
        self.parameters = {
            "linear1.w": he_normal(rng, (pixels, hidden_size), pixels, dtype),
            "linear1.b": np.zeros(hidden_size, dtype),
            "linear2.w": he_normal(rng, (hidden_size, num_classes), hidden_size, dtype),
            "linear2.b": np.zeros(num_classes, dtype),
        }
        # END SOLUTION

    def forward(self, x: Num[Array, "n 1 s s"]) -> Float[Array, "n num_classes"]:
        """The logits. Raises ValueError for an empty batch or wrong shapes (check_images)."""
        # BEGIN SOLUTION
        check_images(x, self.image_size)
        p = self.parameters
        out, _ = flatten_forward(x.astype(self.dtype, copy=False))  # (n, 784)
        out, _ = linear_forward(out, p["linear1.w"], p["linear1.b"])  # (n, 59)
        out, _ = relu_forward(out)
        logits, _ = linear_forward(out, p["linear2.w"], p["linear2.b"])  # (n, 10)
        return logits
        # END SOLUTION

    def loss_and_gradients(
        self, x: Num[Array, "n 1 s s"], labels: Int[Array, " n"]
    ) -> tuple[float, Arrays]:
        """The mean loss of a batch, and its gradient for each name in `parameters`.

        Raises ValueError as forward and softmax_cross_entropy do.
        """
        # BEGIN SOLUTION
        check_images(x, self.image_size)
        p, g = self.parameters, {}
        out, _ = flatten_forward(x.astype(self.dtype, copy=False))  # (n, 784)
        out, linear1 = linear_forward(out, p["linear1.w"], p["linear1.b"])  # (n, 59)
        out, relu = relu_forward(out)
        logits, linear2 = linear_forward(out, p["linear2.w"], p["linear2.b"])  # (n, 10)

        loss, dlogits = softmax_cross_entropy(logits, labels)
        dout, g["linear2.w"], g["linear2.b"] = linear_backward(dlogits, linear2)
        dout = relu_backward(dout, relu)
        _, g["linear1.w"], g["linear1.b"] = linear_backward(dout, linear1)
        return loss, g
        # END SOLUTION


def permute_pixels(
    images: Num[Array, "n c h w"], rng: np.random.Generator
) -> Num[Array, "n c h w"]:
    """Shuffle the pixels: one random permutation of the h * w positions, the same for all images.

    All channels are permuted in the same way; pixels stay in their channel. Every permutation is
    equally likely. As a permutation of the h * w positions in row-major order, it depends only on
    rng and on h * w: with generators of the same seed, training and validation images are permuted
    in the same way, and so are images of 2 x 8 and of 4 x 4 pixels.
    Returns new images of the same shape and dtype.
    """
    # BEGIN SOLUTION
    n, c, height, width = images.shape
    order = rng.permutation(height * width)
    return images.reshape(n, c, height * width)[:, :, order].reshape(images.shape)
    # END SOLUTION


# Exercise 2.7


def receptive_field(layers: list[tuple[int, int]]) -> tuple[int, int]:
    """The receptive field of one output after a sequence of convolutions and poolings.

    layers: the (kernel_size, stride) of each layer along one axis, the layer next to the image
        first.
    Returns (size, jump), two ints: the number of pixels that the field spans, and the distance in
    pixels between the fields of neighboring outputs. Without layers, both are 1. Padding doesn't
    matter.
    Raises ValueError if a kernel_size or a stride is below 1.
    """
    # BEGIN SOLUTION
    size, jump = 1, 1
    for kernel_size, stride in layers:
        if kernel_size < 1 or stride < 1:
            raise ValueError(
                f"kernel_size and stride must be at least 1, got {kernel_size} and {stride}"
            )
        size += (kernel_size - 1) * jump
        jump *= stride
    return size, jump
    # END SOLUTION


def feature_maps(
    model: LeNet, image: Num[Array, "1 s s"]
) -> dict[str, Float[Array, "filters h w"]]:
    """The feature maps of a LeNet for one image.

    image: one image, with its channel axis: (1, image_size, image_size).
    Returns {"conv1": ..., "conv2": ...}: the maps after each convolution and its relu, before the
    pooling, one per filter. With the default sizes these are (16, 24, 24) and (32, 8, 8), in the
    dtype of the model.
    Raises ValueError for an image of a wrong shape (check_images, for a batch of this image).
    """
    # BEGIN SOLUTION
    x = image[None]
    check_images(x, model.image_size)
    p = model.parameters
    first, _ = conv2d_forward_fast(x.astype(model.dtype), p["conv1.w"], p["conv1.b"])
    first, _ = relu_forward(first)  # (1, 16, 24, 24)
    pooled, _ = max_pool2d_forward(first, 2)
    second, _ = conv2d_forward_fast(pooled, p["conv2.w"], p["conv2.b"])
    second, _ = relu_forward(second)  # (1, 32, 8, 8)
    return {"conv1": first[0], "conv2": second[0]}
    # END SOLUTION
