"""Assignment 2: a LeNet that reads digits, trained from scratch, in NumPy.

Conventions of the whole file
    Images are arrays of shape (n, 1, image_size, image_size): image, channel, row, column.
    Labels are integer arrays of shape (n,), each from 0 to classes - 1.
    Logits are arrays of shape (n, classes): the scores before the softmax.
    A dense layer computes x @ w + b, with w of shape (d_in, d_out).
    A gradient has the shape and the dtype of what it is the gradient of.
    float32 in gives float32 out: the float arrays of a call have one type, float32 or float64.
    A model has one dtype; its logits and gradients have it too, whatever the type of the images.
    No function changes an array, a list or a dict that it is given, and none remembers anything
    between two calls. Only train changes something: the parameters of its model.
    A generator `rng` that is handed in is the only source of chance, and drawing moves it on.
    `cache` is whatever your backward pass needs from your forward pass. Tests only hand it back,
    sometimes more than once.
    Bad input raises ValueError: the checks are given, you call them where the docstring says so.

NumPy only: no PyTorch, no SciPy.
"""

import math

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
Arrays = dict[str, np.ndarray]  # arrays by the name of the parameter that they belong to


def check_dense(
    x: Float[Array, "n d_in"], w: Float[Array, "d_in d_out"], b: Float[Array, " d_out"]
) -> None:
    """Given: raise ValueError when the shapes of a dense layer don't fit together."""
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0] or b.shape != w.shape[1:]:
        raise ValueError(f"x {x.shape}, w {w.shape} and b {b.shape} don't make a dense layer")


def check_labels(logits: Float[Array, "n classes"], labels: Int[Array, " n"]) -> None:
    """Given: raise ValueError for an empty batch, or labels that don't fit the logits."""
    if logits.ndim != 2 or len(logits) == 0:
        raise ValueError(f"logits must be (n, classes) with n at least 1, got {logits.shape}")
    n, classes = logits.shape
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, got {labels.dtype}")
    if labels.shape != (n,):
        raise ValueError(f"{n} rows of logits need labels of shape ({n},), got {labels.shape}")
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"labels must lie from 0 to {classes - 1}")


def check_images(x: Num[Array, "n 1 s s"], image_size: int) -> None:
    """Given: raise ValueError for an empty batch, or images of a wrong shape."""
    if x.shape[1:] != (1, image_size, image_size) or len(x) == 0:
        raise ValueError(
            f"images must be (n, 1, {image_size}, {image_size}) with n at least 1, got {x.shape}"
        )


def check_same_shapes(parameters: Arrays, others: Arrays) -> None:
    """Given: raise ValueError unless both dicts have the same names, with arrays of one shape."""
    if parameters.keys() != others.keys():
        raise ValueError(f"the names differ: {sorted(parameters)} and {sorted(others)}")
    for name, array in parameters.items():
        if array.shape != others[name].shape:
            raise ValueError(f"{name} has two shapes: {array.shape} and {others[name].shape}")


def check_loss(loss: float, epoch: int, step: int) -> None:
    """Given: raise ValueError when a loss is not finite. Epochs and steps count from 1 here."""
    if not math.isfinite(loss):
        raise ValueError(f"the loss is {loss} at epoch {epoch}, step {step}: the run diverged")


def conv_pool_size(size: int, kernel: int) -> int:
    """Given: the side of a square image after a convolution without padding and a 2 x 2 pooling."""
    if kernel < 1 or size - kernel + 1 < 2:
        raise ValueError(f"a kernel of {kernel} and a pooling don't fit into an image of {size}")
    return (size - kernel + 1) // 2


# Exercise 2.1


def relu_forward(x: Float[Array, "..."]) -> tuple[Float[Array, "..."], object]:
    """max(x, 0), entry by entry, for an array of any shape.

    Returns (out, cache).
    """
    raise NotImplementedError("relu_forward: exercise 2.1 is yours to write")


def relu_backward(dout: Float[Array, "..."], cache: object) -> Float[Array, "..."]:
    """The backward pass of relu_forward: dx. Where x is exactly 0, the gradient is 0."""
    raise NotImplementedError("relu_backward: exercise 2.1 is yours to write")


def linear_forward(
    x: Float[Array, "n d_in"], w: Float[Array, "d_in d_out"], b: Float[Array, " d_out"]
) -> tuple[Float[Array, "n d_out"], object]:
    """A dense layer: out = x @ w + b.

    Returns (out, cache). Raises ValueError when the shapes don't fit together (check_dense).
    """
    raise NotImplementedError("linear_forward: exercise 2.1 is yours to write")


def linear_backward(
    dout: Float[Array, "n d_out"], cache: object
) -> tuple[Float[Array, "n d_in"], Float[Array, "d_in d_out"], Float[Array, " d_out"]]:
    """The backward pass of linear_forward: (dx, dw, db)."""
    raise NotImplementedError("linear_backward: exercise 2.1 is yours to write")


def flatten_forward(x: Float[Array, "n ..."]) -> tuple[Float[Array, "n d"], object]:
    """Lay out each image as one row, in row-major order: (n, c, h, w) becomes (n, c*h*w).

    Returns (out, cache).
    """
    raise NotImplementedError("flatten_forward: exercise 2.1 is yours to write")


def flatten_backward(dout: Float[Array, "n d"], cache: object) -> Float[Array, "n ..."]:
    """The backward pass of flatten_forward: dx, in the shape of x."""
    raise NotImplementedError("flatten_backward: exercise 2.1 is yours to write")


# Exercise 2.2


def softmax_cross_entropy(
    logits: Float[Array, "n classes"], labels: Int[Array, " n"]
) -> tuple[float, Float[Array, "n classes"]]:
    """How surprised the softmax of the logits is by the labels: the mean over the batch.

    loss = the mean over i of -log(p[i, labels[i]]),
    where p[i] = exp(logits[i]) / (the sum of exp(logits[i]))

    Returns (loss, dlogits): a Python float, and the gradient of that mean.
    Logits as large as 1e4 or as small as -1e4 must not overflow: subtract each row's largest first,
    and take the logarithm of the sum, never of a probability that may be 0.
    Raises ValueError for an empty batch, and for labels that are not integers, have another shape
    than (n,) or lie outside 0 ... classes - 1 (check_labels).
    """
    raise NotImplementedError("softmax_cross_entropy: exercise 2.2 is yours to write")


# Exercise 2.3


def he_normal(
    rng: np.random.Generator, shape: tuple[int, ...], fan_in: int, dtype: str = "float32"
) -> Float[Array, "..."]:
    """First weights: independent normal draws, mean 0, standard deviation sqrt(2 / fan_in).

    fan_in: how many numbers go into one output of the layer.
    """
    raise NotImplementedError("he_normal: exercise 2.3 is yours to write")


class LeNet:
    """conv, relu, pool, conv, relu, pool, dense, relu, dense.

    Both convolutions have stride 1 and no padding; both poolings are max poolings over 2 x 2
    windows that don't overlap. What a pooling leaves over at the edge is ignored. Before the first
    dense layer, the maps are flattened in the order channel, row, column.

    parameters: the arrays that are learned, by name.

        conv1.w   (filters[0], 1, kernel, kernel)             conv1.b   (filters[0],)
        conv2.w   (filters[1], filters[0], kernel, kernel)    conv2.b   (filters[1],)
        dense1.w  (filters[1] * side * side, hidden)          dense1.b  (hidden,)
        dense2.w  (hidden, classes)                           dense2.b  (classes,)

    side is what is left of image_size after both convolutions and poolings (conv_pool_size, twice):
    28, 12, 4. With the sizes that are given here there are 46,730 parameters.

    Every w comes from he_normal, with fan_in c_in * kernel * kernel or d_in; every b is 0.
    Every call uses the arrays that are in `parameters` at that moment. Others write into these
    arrays, put new ones into the dict, or put a new dict in its place: so keep no second reference.
    Calls of the model don't change them.
    """

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
        """Draw the first weights. Raises ValueError when the image is too small for the layers."""
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        self.parameters: Arrays = {}
        raise NotImplementedError("LeNet.__init__: exercise 2.3 is yours to write")

    def forward(self, x: Num[Array, "n 1 s s"]) -> Float[Array, "n classes"]:
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
    ) -> tuple[Float[Array, "n classes"], object]:
        """The logits, and whatever backward needs. Tests use only forward and loss_and_gradients.

        Raises ValueError for an empty batch or images of a wrong shape (check_images).
        """
        raise NotImplementedError("LeNet.forward_with_caches: exercise 2.3 is yours to write")

    def backward(self, dlogits: Float[Array, "n classes"], caches: object) -> Arrays:
        """The gradient for each name in `parameters`; caches are those of forward_with_caches."""
        raise NotImplementedError("LeNet.backward: exercise 2.3 is yours to write")


# Exercise 2.4


def sgd_momentum(
    parameters: Arrays,
    gradients: Arrays,
    state: object,
    learning_rate: float,
    momentum: float = 0.9,
) -> tuple[Arrays, object]:
    """One step of gradient descent with momentum, for every array on its own.

    velocity = momentum * velocity + gradient        (0 before the first step)
    parameter = parameter - learning_rate * velocity

    state: None at the first step, then what the step before returned. It may be any plain data:
        dicts, lists and tuples of arrays, numbers and strings.
    Returns (parameters, state): new dicts of new arrays, in the dtype of the old ones. Nothing that
    was handed in is changed, so a step can be repeated from the same state.
    Raises ValueError when the names or shapes of parameters and gradients differ
    (check_same_shapes).
    """
    raise NotImplementedError("sgd_momentum: exercise 2.4 is yours to write")


def adam(
    parameters: Arrays,
    gradients: Arrays,
    state: object,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> tuple[Arrays, object]:
    """One step of Adam, for every entry on its own.

    mean = beta1 * mean + (1 - beta1) * gradient             (0 before the first step)
    square = beta2 * square + (1 - beta2) * gradient**2      (0 before the first step)
    m = mean / (1 - beta1**t),  s = square / (1 - beta2**t)  (t is 1 at the first step)
    parameter = parameter - learning_rate * m / (sqrt(s) + epsilon)

    state, what is returned and what is raised: as in sgd_momentum.
    """
    raise NotImplementedError("adam: exercise 2.4 is yours to write")


# Exercise 2.5


class Data:
    """Given: the images to learn from, and those to choose the best weights by."""

    def __init__(
        self,
        train_images: Num[Array, "n 1 s s"],
        train_labels: Int[Array, " n"],
        validation_images: Num[Array, "m 1 s s"],
        validation_labels: Int[Array, " m"],
    ) -> None:
        """Raises ValueError for no images, and for images and labels that differ in number."""
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
    """Given: how to train. Raises ValueError for settings that make no sense."""

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
        """Each setting has a value that works.

        epochs: how often every image is used, all told: those of a run that goes on count too.
        decay: the learning rate is multiplied by it after each epoch; above 0, at most 1.
        optimizer: "sgd", which is sgd_momentum with `momentum`, or "adam", with its own defaults.
        seed: the same seed gives the same run, another seed gives other mini-batches.
        """
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


def predict(
    model: object, images: Num[Array, "n 1 s s"], batch_size: int = 100
) -> Int[Array, " n"]:
    """Given: the label with the largest logit for each image; the first one on a tie."""
    if len(images) == 0:
        raise ValueError("there are no images")
    starts = range(0, len(images), batch_size)
    return np.concatenate(
        [model.forward(images[start : start + batch_size]).argmax(axis=1) for start in starts]
    )


def evaluate(
    model: object, images: Num[Array, "n 1 s s"], labels: Int[Array, " n"], batch_size: int = 100
) -> tuple[float, float]:
    """Given: the mean loss over all images, and the share of them that get the right label."""
    if len(images) == 0 or len(images) != len(labels):
        raise ValueError(f"there are {len(images)} images and {len(labels)} labels")
    loss, right = 0.0, 0
    for start in range(0, len(images), batch_size):
        batch = slice(start, start + batch_size)
        logits = model.forward(images[batch])
        loss += softmax_cross_entropy(logits, labels[batch])[0] * len(logits)
        right += int((logits.argmax(axis=1) == labels[batch]).sum())
    return loss / len(images), right / len(images)


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> list[Int[Array, " batch"]]:
    """Cut the numbers 0 ... n - 1, in an order that rng draws, into pieces of batch_size.

    Every number is in exactly one piece, and every order is equally likely. The last piece is
    smaller when batch_size doesn't divide n. Both n and batch_size are at least 1.
    Returns a list of integer arrays.
    """
    raise NotImplementedError("minibatches: exercise 2.5 is yours to write")


def train(model: object, data: Data, config: Config, state: object = None) -> dict:
    """Fit a model (a LeNet or an MLP) to the training images.

    Epoch e (the first is 0) has the learning rate config.learning_rate * config.decay**e. It goes
    once through the minibatches of the training images, in a new random order, which depends on
    nothing but config.seed and e. Each mini-batch gives one step of config.optimizer, whose state
    lives on from epoch to epoch. After each epoch the model is measured on all training images and
    on all validation images (evaluate).

    When train returns, model.parameters holds the weights after the epoch with the highest
    validation accuracy; on a tie, the earliest of them.

    Returns history, a dict of lists with one entry per epoch,

        loss, accuracy                          of the training images, after the epoch
        validation_loss, validation_accuracy    of the validation images, after the epoch
        learning_rate                           that of the epoch

    with one entry per step,

        step_loss                               of the mini-batch, before the weights changed

    and with "state": plain data (dicts, lists and tuples of arrays, numbers, strings and None)
    from which a run goes on. Accuracies lie between 0 and 1. Losses and accuracies are floats.

    state: None for a new run, or the history["state"] of a run that ended. A run that goes on takes
        its weights from there, does what is left of config.epochs (all its other settings are as
        before), and ends with exactly the same numbers as a run that never stopped: the same
        weights in the model, and the history of all epochs, the earlier ones included. So the state
        holds the latest weights, the best ones, the optimizer's state and the history so far. With
        no epochs left it returns the history as it was. The state is not changed, so that one can
        go on from it more than once.

    Raises ValueError with epoch and step as soon as a loss is not finite (check_loss): both count
    from 1, steps within their epoch; a loss over all images belongs to the last step of its epoch.
    Raises it too when the arrays of the state don't fit the model (check_same_shapes).
    Shows the loss of each step and a line per epoch while it runs:
    `with TrainingDisplay(total_steps, title="training") as display`, then `display.step(loss=...)`
    after each step and `display.note("...")` after each epoch.
    """
    raise NotImplementedError("train: exercise 2.5 is yours to write")


# Exercise 2.6


class MLP:
    """flatten, dense, relu, dense: a network that doesn't know which pixels are neighbours.

    parameters: the arrays that are learned, by name.

        dense1.w  (image_size * image_size, hidden)    dense1.b  (hidden,)
        dense2.w  (hidden, classes)                    dense2.b  (classes,)

    With the sizes that are given here there are 46,915 parameters, 185 more than in the LeNet.
    First weights, the dtype and the use of `parameters` are as in LeNet.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        image_size: int = 28,
        hidden: int = 59,
        classes: int = 10,
        dtype: str = "float32",
    ) -> None:
        """Draw the first weights."""
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        self.parameters: Arrays = {}
        raise NotImplementedError("MLP.__init__: exercise 2.6 is yours to write")

    def forward(self, x: Num[Array, "n 1 s s"]) -> Float[Array, "n classes"]:
        """The logits. Raises ValueError for an empty batch or wrong shapes (check_images)."""
        raise NotImplementedError("MLP.forward: exercise 2.6 is yours to write")

    def loss_and_gradients(
        self, x: Num[Array, "n 1 s s"], labels: Int[Array, " n"]
    ) -> tuple[float, Arrays]:
        """The mean loss of a batch, and its gradient for each name in `parameters`.

        Raises ValueError as forward and softmax_cross_entropy do.
        """
        raise NotImplementedError("MLP.loss_and_gradients: exercise 2.6 is yours to write")


def permute_pixels(
    images: Num[Array, "n c h w"], rng: np.random.Generator
) -> Num[Array, "n c h w"]:
    """Move the pixels to other places: one random permutation, the same for all images.

    The h * w places of an image are permuted; channels stay apart, and are all permuted alike.
    Every permutation is equally likely, and which one it is depends on rng and on h * w alone: two
    calls with generators of one seed treat training and validation images in the same way.
    Returns new images of the same shape and dtype.
    """
    raise NotImplementedError("permute_pixels: exercise 2.6 is yours to write")


# Exercise 2.7


def receptive_field(layers: list[tuple[int, int]]) -> tuple[int, int]:
    """How much of the image one number sees, after some convolutions and poolings in a row.

    layers: the (kernel, stride) of each layer along one axis, the one nearest the image first.
    Returns (size, jump), two ints: how many pixels lie under one output, edge to edge, and how many
    pixels lie from one output's field to the next one's. Before any layer both are 1. Padding
    doesn't matter.
    Raises ValueError when a kernel or a stride is below 1.
    """
    raise NotImplementedError("receptive_field: exercise 2.7 is yours to write")


def feature_maps(
    model: LeNet, image: Num[Array, "1 s s"]
) -> dict[str, Float[Array, "filters h w"]]:
    """What the filters of a LeNet find in one image.

    image: one image, with its channel: (1, image_size, image_size).
    Returns {"conv1": ..., "conv2": ...}: the maps after each convolution and its relu, before the
    pooling, one for each filter. For the LeNet of 46,730 parameters these are (16, 24, 24) and
    (32, 8, 8), in the dtype of the model.
    Raises ValueError for an image of a wrong shape (check_images).
    """
    raise NotImplementedError("feature_maps: exercise 2.7 is yours to write")
