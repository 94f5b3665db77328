"""Closures: the cache of a layer is the function that runs it backwards.

The last layer's weights are drawn first. The loss is a logaddexp over one-hot labels. The
optimizers put all parameters into one long vector. Training draws every epoch's order from one
generator, whose state is saved as numbers.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

Backward = Callable[[Array], object]


def relu_forward(x: Array) -> tuple[Array, Backward]:
    """max(x, 0)."""
    slope = (x > 0).astype(x.dtype)
    return x * slope, lambda dout: dout * slope


def relu_backward(dout: Array, cache: Backward) -> Array:
    """dx."""
    return cache(dout)


def linear_forward(x: Array, w: Array, b: Array) -> tuple[Array, Backward]:
    """x @ w + b."""
    check_linear(x, w, b)

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


def linear(p: Arrays, name: str) -> Callable:
    """The same for a linear layer."""

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
        self.image_size = image_size
        self.dtype = np.dtype(dtype)
        first, second = filters
        side = conv_pool_size(conv_pool_size(image_size, kernel_size), kernel_size)
        area, flat = kernel_size**2, second * side * side
        window = (kernel_size, kernel_size)
        # The last layer first: the order of the draws is free.
        self.parameters = {
            "linear2.b": np.zeros(num_classes, dtype),
            "linear2.w": he_normal(rng, (hidden_size, num_classes), hidden_size, dtype),
            "linear1.b": np.zeros(hidden_size, dtype),
            "linear1.w": he_normal(rng, (flat, hidden_size), flat, dtype),
            "conv2.b": np.zeros(second, dtype),
            "conv2.w": he_normal(rng, (second, first, *window), first * area, dtype),
            "conv1.b": np.zeros(first, dtype),
            "conv1.w": he_normal(rng, (first, 1, *window), area, dtype),
        }

    def layers(self) -> list[Callable]:
        """The layers, with the parameters of this moment."""
        p = self.parameters
        convolutions = [convolution(p, "conv1"), RELU, POOL, convolution(p, "conv2"), RELU, POOL]
        return [*convolutions, FLATTEN, linear(p, "linear1"), RELU, linear(p, "linear2")]

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


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> list[Array]:
    """The order in which n random numbers would be sorted, cut at every batch_size."""
    order = np.argsort(rng.random(n))
    batches = []
    while len(order):
        batches.append(order[:batch_size])
        order = order[batch_size:]
    return batches


def train(model: object, data: Data, config: TrainConfig, state: dict | None = None) -> dict:
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


def permute_pixels(images: Array, rng: np.random.Generator) -> Array:
    """Put each pixel at the position that the permutation gives."""
    rows, columns = np.unravel_index(
        np.argsort(rng.random(images.shape[2] * images.shape[3])), images.shape[2:]
    )
    permuted = np.empty_like(images)
    permuted[:, :, rows, columns] = images.reshape(*images.shape[:2], -1)
    return permuted


def receptive_field(layers: list[tuple[int, int]]) -> tuple[int, int]:
    """One output at a time, walked back to the image."""
    if any(number < 1 for layer in layers for number in layer):
        raise ValueError(f"kernel_size and stride must be at least 1, got {layers}")
    size = 1
    for kernel_size, stride in reversed(layers):
        size = (size - 1) * stride + kernel_size
    return int(size), math.prod(int(stride) for _, stride in layers)


def feature_maps(model: LeNet, image: Array) -> Arrays:
    """What comes out of the relu after each convolution."""
    check_images(image[None], model.image_size)
    layers = model.layers()
    first, _ = chain(image[None].astype(model.dtype), layers[:2])
    second, _ = chain(first, layers[2:5])
    return {"conv1": first[0], "conv2": second[0]}
