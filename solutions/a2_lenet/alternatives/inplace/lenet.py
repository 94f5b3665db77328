"""Work in place: training writes into the model's own arrays, and counts steps, not epochs.

The LeNet is written out without the layers' functions, with the relu after the pooling. The loss
is computed in float64. The states of training and of the optimizers are lists.
"""


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
    check_linear(x, w, b)
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


class LeNet:
    def forward(self, x: Array) -> Array:
        """The logits; the relu after the pooling, which gives the same and is less work."""
        check_images(x, self.image_size)
        p = self.parameters
        a, _ = conv2d_forward_fast(x.astype(self.dtype), p["conv1.w"], p["conv1.b"])
        a, _ = max_pool2d_forward(a, 2)
        a, _ = conv2d_forward_fast(np.maximum(a, 0), p["conv2.w"], p["conv2.b"])
        a, _ = max_pool2d_forward(a, 2)
        a = np.maximum(a, 0).reshape(len(x), -1)
        a = np.maximum(a @ p["linear1.w"] + p["linear1.b"], 0)
        return a @ p["linear2.w"] + p["linear2.b"]

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
        h3 = np.maximum(h2 @ p["linear1.w"] + p["linear1.b"], 0)
        logits = h3 @ p["linear2.w"] + p["linear2.b"]

        loss, d4 = softmax_cross_entropy(logits, labels)
        d3 = (d4 @ p["linear2.w"].T) * (h3 > 0)
        d2 = (d3 @ p["linear1.w"].T) * (h2 > 0)
        d2 = max_pool2d_backward(d2.reshape(m2.shape), pool2)
        d1, dw2, db2 = conv2d_backward_fast(d2, conv2)
        d1 = max_pool2d_backward(d1 * (h1 > 0), pool1)
        _, dw1, db1 = conv2d_backward_fast(d1, conv1)
        gradients = {
            "conv1.w": dw1,
            "conv1.b": db1,
            "conv2.w": dw2,
            "conv2.b": db2,
            "linear1.w": h2.T @ d3,
            "linear1.b": d3.sum(axis=0),
            "linear2.w": h3.T @ d4,
            "linear2.b": d4.sum(axis=0),
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


def minibatches(n: int, batch_size: int, rng: np.random.Generator) -> list[Array]:
    """Sample without replacement, then cut at every batch_size."""
    order = rng.choice(n, size=n, replace=False)
    count = (n + batch_size - 1) // batch_size
    return [order[i * batch_size : min(n, (i + 1) * batch_size)] for i in range(count)]


def write(model: object, arrays: Arrays) -> None:
    """Put values into the model's own arrays."""
    for name, array in arrays.items():
        model.parameters[name][...] = array


def snapshot(model: object) -> Arrays:
    """A copy of the model's arrays."""
    return {name: array.copy() for name, array in model.parameters.items()}


def train(model: object, data: Data, config: TrainConfig, state: list | None = None) -> dict:
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
            epoch, position = divmod(step, per_epoch)
            learning_rate = config.learning_rate * config.decay**epoch
            if position == 0:
                # The child of the seed that belongs to this epoch.
                seed = np.random.SeedSequence(config.seed, spawn_key=(epoch,))
                batches = minibatches(n, config.batch_size, np.random.default_rng(seed))
            batch = batches[position]
            loss, gradients = model.loss_and_gradients(
                data.train_images[batch], data.train_labels[batch]
            )
            check_loss(loss, epoch + 1, position + 1)
            if config.optimizer == "adam":
                new, moments = adam(model.parameters, gradients, moments, learning_rate)
            else:
                new, moments = sgd_momentum(
                    model.parameters, gradients, moments, learning_rate, config.momentum
                )
            write(model, new)
            step_losses.append(loss)
            display.step(loss=loss)
            if position < per_epoch - 1:
                continue
            row = [
                *evaluate(model, data.train_images, data.train_labels),
                *evaluate(model, data.validation_images, data.validation_labels),
                learning_rate,
            ]
            check_loss(row[0], epoch + 1, position + 1)
            check_loss(row[2], epoch + 1, position + 1)
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


def permute_pixels(images: Array, rng: np.random.Generator) -> Array:
    """Pixels first, then shuffle them: along their axis, all images together."""
    pixels = np.moveaxis(images.reshape(*images.shape[:2], -1), 2, 0)
    # Not rng.shuffle: it would change the images that were passed in.
    return np.moveaxis(rng.permutation(pixels, axis=0), 0, 2).reshape(images.shape)
