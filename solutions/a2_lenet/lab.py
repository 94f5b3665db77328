# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lab 2: what a LeNet learned
#
# You train a LeNet on 2,000 digits and analyze it: what its layers cost, what its kernels respond
# to, where it errs, how confident it is, and what shifted, rotated and shuffled pixels do to it.
# The lab takes about an hour.
#
# - Replace the three dots in each answer, and run the cell below it: it checks the form and some of
#   the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_products`, ...). Before you submit, restart the kernel and
#   run all cells. Questions 4 and 11 ask for a few sentences, which the staff grades.
# - The lab runs on your own `LeNet`, `adam` and `feature_maps` if they are correct, and on
#   stand-ins otherwise; the next cell prints which. After a change of `lenet.py`, restart the
#   kernel. When the lab is graded, it runs on the stand-ins, so a mistake in your code costs
#   nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the folder that contains assignments/ and common/

import matplotlib.pyplot as plt
import numpy as np

from common.data import load_mnist
from common.labs import answered, own_or_standin, slide


def small_network(network):
    """A small network with fixed parameters."""
    model = network(np.random.default_rng(0), 16, (2, 3), 3, 5, 10, "float64")
    shapes = {name: model.parameters[name].shape for name in sorted(model.parameters)}
    model.parameters = {
        name: np.sin(1.0 + np.arange(np.prod(shape))).reshape(shape)
        for name, shape in shapes.items()
    }
    return model


some_images, some_labels = np.cos(np.arange(512.0)).reshape(2, 1, 16, 16), np.array([3, 0])


def gradients_of(network):
    """All gradients of a small network in one array."""
    _, gradients = small_network(network).loss_and_gradients(some_images, some_labels)
    return np.concatenate([gradients[name].ravel() for name in sorted(gradients)])


def two_steps(step):
    """A weight of 1 after two steps of Adam."""
    first, state = step({"w": np.ones(1)}, {"w": np.full(1, 0.5)}, None, 0.1)
    return step(first, {"w": np.full(1, -0.1)}, state, 0.1)[0]["w"]


LeNet = own_or_standin("a2_lenet.lenet", "LeNet", gradients_of)
adam = own_or_standin("a2_lenet.lenet", "adam", two_steps)
feature_maps = own_or_standin(
    "a2_lenet.lenet",
    "feature_maps",
    lambda maps: maps(small_network(LeNet), some_images[0])["conv2"],
)


def show(*pictures, titles=None, columns=8, signed=False):
    """Draw pictures in rows. signed: blue below 0, white at 0, red above 0, one scale for all."""
    rows = -(-len(pictures) // columns)
    figure = plt.figure(figsize=(1.3 * columns, 1.5 * rows))
    largest = max(np.abs(picture).max() for picture in pictures) or 1
    style = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest} if signed else {"cmap": "Greys"}
    for index, picture in enumerate(pictures):
        axis = figure.add_subplot(rows, columns, index + 1)
        axis.imshow(picture, **style)
        axis.set_title(titles[index] if titles else "", fontsize=8)
        axis.axis("off")
    plt.show()


mnist = load_mnist()
images, labels = (
    mnist.test_images.astype(float),
    mnist.test_labels,
)  # never used for training
show(*images[:10, 0], columns=10)

# %% [markdown]
# ## What the layers cost
#
# The handout counts the parameters of each layer: 416, 12,832, 32,832 and 650. The cost in time is
# another matter. It depends on the number of multiplications. A linear layer uses each weight once
# per image. A convolution uses each weight again at every position of its map. (Ignore additions,
# biases, ReLUs and poolings.)

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** How many products of a weight and an input does one image need in conv1, conv2,
# linear1 and linear2? Give a tuple of four integers. The shapes of all maps are in the handout's
# section "The network".

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_products = (230400, 819200, 32768, 640)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert len(q1_products) == 4, "four numbers, one per layer"

# %%
assert q1_products[0] == 24 * 24 * 16 * 25, "conv1: positions x kernels x weights of a kernel"

# %%
# HIDDEN
assert tuple(q1_products) == (230400, 819200, 32768, 640)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q1_products=q1_products)
names = ("conv1", "conv2", "linear1", "linear2")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6))
left.barh(names, (416, 12832, 32832, 650), color="tab:blue")
left.set(title="parameters", xlabel="count")
right.barh(names, q1_products, color="tab:orange")
right.set(title="multiplications per image", xlabel="count")
for axis in (left, right):
    axis.invert_yaxis()
plt.tight_layout()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** Now the images have 56 x 56 pixels, and nothing else in the network changes: 16
# and 32 kernels of 5 x 5, 64 hidden units, 10 digits. How many parameters does the network have in
# total?

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_parameters = 416 + 12832 + (32 * 11 * 11 + 1) * 64 + 650  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q2_parameters == int(q2_parameters) and q2_parameters > 46730, "more than with 28 x 28"

# %%
# HIDDEN
assert q2_parameters == 261770

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## What the kernels learned
#
# The next cell trains a LeNet on 2,000 digits for two epochs: 126 steps of Adam. The initial
# weights and the order of the images are fixed, and everything is computed in float64, so your code
# and the stand-in give the same network. It takes less than a minute.

# %%
answered(q2_parameters=q2_parameters)


def initial_weights():
    """He initialization, with a fixed seed."""
    rng = np.random.default_rng(0)
    weights = {}
    for layer, shape, fan_in, outputs in (
        ("conv1", (16, 1, 5, 5), 25, 16),
        ("conv2", (32, 16, 5, 5), 400, 32),
        ("linear1", (512, 64), 512, 64),
        ("linear2", (64, 10), 64, 10),
    ):
        weights[f"{layer}.w"] = rng.normal(0, np.sqrt(2 / fan_in), shape)
        weights[f"{layer}.b"] = np.zeros(outputs)
    return weights


def train_lenet(pictures, digits, epochs=2, batch_size=32):
    """A LeNet trained on these pictures, and the loss of each step."""
    model = LeNet(np.random.default_rng(0), dtype="float64")
    model.parameters = initial_weights()
    rng, state, losses = np.random.default_rng(0), None, []
    for epoch in range(epochs):
        order = rng.permutation(len(pictures))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            loss, grads = model.loss_and_gradients(pictures[batch], digits[batch])
            learning_rate = 0.002 * 0.7**epoch
            model.parameters, state = adam(model.parameters, grads, state, learning_rate)
            losses.append(loss)
    return model, losses


def logits_of(model, pictures):
    """The logits of many pictures, in batches of 100."""
    starts = range(0, len(pictures), 100)
    return np.concatenate([model.forward(pictures[start : start + 100]) for start in starts])


train_images, train_labels = mnist.train_images[:2000].astype(float), mnist.train_labels[:2000]
lenet, losses = train_lenet(train_images, train_labels)
logits = logits_of(lenet, images)
print(f"test accuracy: {(logits.argmax(axis=1) == labels).mean():.1%}")
plt.figure(figsize=(7, 2.2))
plt.semilogy(range(1, len(losses) + 1), losses)
plt.xlabel("step")
plt.ylabel("loss of the mini-batch")
plt.show()

# %% [markdown]
# These are the 16 kernels of the first layer before training, and below them the same 16 after
# training. Blue is below 0, red above 0.

# %%
answered(q2_parameters=q2_parameters)
before, after = initial_weights(), lenet.parameters
layers, norm = ("conv1.w", "conv2.w", "linear1.w", "linear2.w"), np.linalg.norm
show(*before["conv1.w"][:, 0], titles=[f"{k} before" for k in range(16)], signed=True)
show(*after["conv1.w"][:, 0], titles=[f"{k} after" for k in range(16)], signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** How far did each layer move? Treat all weights `w` of a layer as one long vector:
# divide the norm of its change by its initial norm. Give an array of four numbers, one for each of
# `layers`, computed from `before` and `after`. The tolerance is 0.01.

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_moved = [norm(after[k] - before[k]) / norm(before[k]) for k in layers]  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q3_moved) == (4,), "four numbers"

# %%
assert 0 < np.min(q3_moved) < np.max(q3_moved) < 1, "no layer moved by its whole initial norm"

# %%
# HIDDEN
assert np.allclose(q3_moved, (0.125, 0.396, 0.327, 0.147), atol=0.01)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q4
# manual: true
# points: 2

# %% [markdown]
# **Question 4.** It is often said that the first layer learns edge detectors. Look at the kernels
# above. How many of the 16 would you call edge detectors, and for which edges? Were they edge
# detectors before training? Why can the network read digits anyway? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# A few kernels are red on one side and blue on the other, like edge detectors made by hand. But
# they already were before training, at random: training changed each kernel by only about an eighth
# of its norm. The others look like noise. Even so, sixteen different kernels respond differently to
# different strokes, and the later layers, which moved further, learned to use these responses.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %%
answered(q3_moved=q3_moved)
kernel = after["conv1.w"][0, 0]
maps = feature_maps(lenet, images[3])["conv1"]
show(images[3, 0], maps[0], titles=["image", "feature map of kernel 0"], columns=3)
show(kernel, titles=["kernel 0"], columns=3, signed=True)
print(np.array2string(kernel, precision=2, suppress_small=True))

# %% [markdown]
# The response of a kernel is the sum of its weights times the pixels under them. So you can compute
# which patch gives the largest response.

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 1

# %% [markdown]
# **Question 5.** Pixels are between 0 (paper) and 1 (ink). Which 5 x 5 patch gives the largest
# possible response of `kernel`? An array of shape (5, 5).

# %% [raw]
# # BEGIN SOLUTION

# %%
q5_patch = (kernel > 0).astype(float)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q5_patch) == (5, 5), "an array of shape (5, 5)"

# %%
assert np.min(q5_patch) >= 0 and np.max(q5_patch) <= 1, "pixels are between 0 and 1"

# %%
# HIDDEN
assert np.isclose(np.sum(q5_patch * kernel), np.maximum(kernel, 0).sum())

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# No real digit contains such a patch. Each row below shows one of the first six kernels and the
# patches of 200 test images with its largest responses, at most one patch per image. The title of a
# patch is its response, in percent of the largest possible one.

# %%
answered(q5_patch=q5_patch)
patches = np.lib.stride_tricks.sliding_window_view(images[:200, 0], (5, 5), axis=(1, 2))
for k in range(6):
    weights = after["conv1.w"][k, 0]
    responses = np.einsum("nrcpq,pq->nrc", patches, weights).reshape(200, -1)
    best = np.argsort(-responses.max(axis=1))[:7]
    positions = [np.unravel_index(responses[image].argmax(), (24, 24)) for image in best]
    found = [patches[image][position] for image, position in zip(best, positions, strict=True)]
    shares = responses[best].max(axis=1) / np.maximum(weights, 0).sum()
    titles = [f"kernel {k}", *(f"{share:.0%}" for share in shares)]
    show(weights / np.abs(weights).max(), *found, titles=titles, signed=True)

# %% [markdown]
# ## Shifted digits
#
# A convolution responds to a stroke wherever it is: it is translation equivariant. It is often said
# that convolutional networks are therefore invariant to shifts. Test it.

# %%
answered(q5_patch=q5_patch)


def shifted(pictures, pixels):
    """All pictures, shifted right by some pixels; the left edge is filled with paper."""
    moved = np.zeros_like(pictures)
    moved[..., pixels:] = pictures[..., : pictures.shape[-1] - pixels]
    return moved


all_shifts = [shifted(images[7, 0], pixels) for pixels in range(6)]
show(*all_shifts, titles=[f"by {pixels}" for pixels in range(6)], columns=6)
for pixels in range(6):
    correct = logits_of(lenet, shifted(images, pixels)).argmax(axis=1) == labels
    print(f"shifted by {pixels}: accuracy {correct.mean():.1%}")


def draw_shifted_maps(pixels, kernel):
    """One feature map of each convolution, for a shifted digit."""
    picture = shifted(images[7], pixels)
    found = feature_maps(lenet, picture)
    titles = [f"shifted by {pixels}", f"conv1, map {kernel}", f"conv2, map {kernel}"]
    show(picture[0], found["conv1"][kernel], found["conv2"][kernel], titles=titles, columns=3)


slide(draw_shifted_maps, pixels=(0, 6), kernel=(0, 15))

# %% [raw]
# # BEGIN QUESTION
# name: q6
# points: 2

# %% [markdown]
# **Question 6.** What is the smallest shift, in pixels, at which the accuracy is below one half?
# And why does it fall? If a digit is shifted by 4 pixels, the maps after the second pooling are
# shifted by one position and otherwise the same, except at the edge. The network still errs,
# because
#
# - `"a"`: the response of a kernel to a patch depends on the position of the patch.
# - `"b"`: pooling discards the position of a stroke, so all shifted digits look alike.
# - `"c"`: the first linear layer has separate weights for each position, and learned strokes at the
#   positions where the training digits have them.
# - `"d"`: a shifted digit has a different amount of ink.

# %% [raw]
# # BEGIN SOLUTION

# %%
q6_pixels = 4  # SOLUTION
q6_why = "c"  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q6_pixels == int(q6_pixels), "a whole number of pixels"

# %%
assert q6_why in ("a", "b", "c", "d"), "one of the four letters"

# %%
# HIDDEN
assert q6_pixels == 4

# %%
# HIDDEN
assert q6_why == "c"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Rotated and mirrored digits
#
# A shift moves a stroke, and the kernels respond to it as before. A rotation changes the stroke
# itself: convolutions are not equivariant to rotations or reflections. The training digits contain
# small rotations, since people write at different slants, but no large ones.

# %%
answered(q6_pixels=q6_pixels, q6_why=q6_why)


def rotated(pictures, degrees):
    """All pictures, rotated counterclockwise about their center, with bilinear interpolation."""
    size, margin = pictures.shape[-1], 10
    padded = np.pad(pictures, [(0, 0)] * (pictures.ndim - 2) + [(margin, margin)] * 2)
    center, angle = (size - 1) / 2, np.deg2rad(degrees)
    down, right = np.mgrid[:size, :size] - center
    # Where the pixel at each position comes from.
    row = center + margin + np.cos(angle) * down + np.sin(angle) * right
    column = center + margin - np.sin(angle) * down + np.cos(angle) * right
    r, c = np.floor(row).astype(int), np.floor(column).astype(int)
    below, beside = row - r, column - c
    return (
        padded[..., r, c] * (1 - below) * (1 - beside)
        + padded[..., r, c + 1] * (1 - below) * beside
        + padded[..., r + 1, c] * below * (1 - beside)
        + padded[..., r + 1, c + 1] * below * beside
    )


angles = (0, 15, 30, 45, 60, 90)
all_angles = [rotated(images[7, 0], degrees) for degrees in angles]
titles = [*(f"by {degrees} degrees" for degrees in angles), "mirrored"]
mirrored = np.flip(images, axis=-1).copy()
show(*all_angles, mirrored[7, 0], titles=titles, columns=7)
for degrees in angles:
    correct = logits_of(lenet, rotated(images, degrees)).argmax(axis=1) == labels
    print(f"rotated by {degrees:2} degrees: accuracy {correct.mean():.1%}")
mirrored_predictions = logits_of(lenet, mirrored).argmax(axis=1)
print("mirrored, by digit:")
for digit in range(10):
    share = (mirrored_predictions[labels == digit] == digit).mean()
    print(f"  {digit}: accuracy {share:.0%}")

# %% [markdown]
# Which rotation costs about as much as a shift by 3 pixels? Which digits survive the reflection,
# and why these? Rotations and reflections that keep the label can be added to the training images
# (data augmentation). For digits, not all of them do: think of 6 and 9, or of a mirrored 2. For
# photographs of cats, which may face either way, a reflection does.

# %% [markdown]
# ## Where it errs
#
# Back to unchanged digits. `labels` holds the labels, `predictions` the predictions of the LeNet.

# %%
answered(q6_pixels=q6_pixels, q6_why=q6_why)
predictions = logits.argmax(axis=1)
print(labels[:20])
print(predictions[:20])

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 3

# %% [markdown]
# **Question 7.** Compute the confusion matrix: `q7_confusion[a, b]` is the number of images with
# label `a` and prediction `b`. Then look at it: which error is the most frequent one? Give a tuple
# (label, prediction).

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_confusion = np.eye(10)[labels].T @ np.eye(10)[predictions]  # SOLUTION
q7_pair = (4, 9)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q7_confusion) == (10, 10), "ten rows and ten columns"

# %%
assert np.sum(q7_confusion) == 1000, "each test image counts once"

# %%
assert len(q7_pair) == 2 and q7_pair[0] != q7_pair[1], "two different digits"

# %%
# HIDDEN
assert np.allclose(np.sum(q7_confusion, axis=1), 100)

# %%
# HIDDEN
assert tuple(q7_pair) == (4, 9)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The figure shows only the errors. Below it are the twelve test images with the highest loss.

# %%
answered(q7_confusion=q7_confusion, q7_pair=q7_pair)
confusion = np.asarray(q7_confusion, float)
plt.figure(figsize=(4, 3.4))
plt.imshow(confusion - np.diag(np.diag(confusion)), cmap="Oranges")
plt.xticks(range(10))
plt.yticks(range(10))
plt.xlabel("prediction")
plt.ylabel("label")
plt.colorbar(label="test images")
plt.show()

exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
worst = np.argsort(probabilities[np.arange(1000), labels])[:12]
titles = [f"{labels[k]} read as {predictions[k]}\n({probabilities[k].max():.0%})" for k in worst]
show(*images[worst, 0], titles=titles, columns=6)

# %% [markdown]
# A network that knows how confident it is can ask for help. Take the largest probability of each
# image as its `confidence`. Images with a low confidence are passed to a person, who makes no
# errors. This is classification with a reject option.

# %%
answered(q7_confusion=q7_confusion, q7_pair=q7_pair)
confidence = probabilities.max(axis=1)
wrong = predictions != labels
bins = np.linspace(0, 1, 21)
plt.figure(figsize=(7, 2.4))
plt.hist([confidence[~wrong], confidence[wrong]], bins, stacked=True, log=True)
plt.xlabel("confidence")
plt.ylabel("test images")
plt.legend(["correct", "wrong"])
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** All images with a `confidence` below 0.9 are passed to a person (`q8_deferred`).
# How many are these, and how many errors are left among the others (`q8_left`)?

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_deferred = int((confidence < 0.9).sum())  # SOLUTION
q8_left = int((wrong & (confidence >= 0.9)).sum())  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 < q8_deferred < 1000, "a number of images"

# %%
assert 0 <= q8_left <= wrong.sum(), "a number of errors"

# %%
# HIDDEN
assert abs(q8_deferred - 250) <= 3

# %%
# HIDDEN
assert abs(q8_left - 4) <= 1

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Shuffled pixels
#
# One fixed permutation shuffles the pixels of every image, in training and in test. No information
# is lost: the inverse permutation undoes it. Here a LeNet is trained on such images.

# %%
answered(q8_deferred=q8_deferred, q8_left=q8_left)
order = np.random.default_rng(0).permutation(28 * 28)


def shuffle(pictures):
    """Put pixel order[k] of each picture at position k."""
    return pictures.reshape(-1, 28 * 28)[:, order].reshape(-1, 1, 28, 28)


show(*images[:5, 0], *shuffle(images[:5])[:, 0], columns=5)
shuffled_lenet, _ = train_lenet(shuffle(train_images), train_labels)
shuffled_logits = logits_of(shuffled_lenet, shuffle(images))
for name, found in (("ordinary", logits), ("shuffled", shuffled_logits)):
    print(f"LeNet, {name} pixels: accuracy {(found.argmax(axis=1) == labels).mean():.1%}")

# %% [markdown]
# For comparison, a linear network (softmax regression): one weight for each pixel and digit, a
# softmax, and 50 steps of gradient descent over all images, from zeros. It learns the shuffled
# pixels too. Its weights for one digit can be drawn as a picture. For shuffled pixels there isn't
# much to see.

# %%
answered(q8_deferred=q8_deferred, q8_left=q8_left)


def train_linear(pictures, digits, steps=50, learning_rate=0.5):
    """Weights (784, 10) and biases (10,) trained on these pictures."""
    x, one_hot = pictures.reshape(len(pictures), -1), np.eye(10)[digits]
    w, b = np.zeros((28 * 28, 10)), np.zeros(10)
    for _ in range(steps):
        powers = np.exp(x @ w + b)
        dlogits = (powers / powers.sum(axis=1, keepdims=True) - one_hot) / len(x)
        w, b = w - learning_rate * x.T @ dlogits, b - learning_rate * dlogits.sum(axis=0)
    return w, b


shuffled_w, shuffled_b = train_linear(shuffle(train_images), train_labels)
linear_predictions = (shuffle(images).reshape(1000, -1) @ shuffled_w + shuffled_b).argmax(axis=1)
print(f"linear, shuffled pixels: accuracy {(linear_predictions == labels).mean():.1%}")
titles = [f"weights of {digit}" for digit in range(5)]
show(*shuffled_w.T[:5].reshape(5, 28, 28), titles=titles, columns=5, signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 2

# %% [markdown]
# **Question 9.** Put the weights of digit 0, `shuffled_w[:, 0]`, at the positions that their pixels
# had before the shuffle: a picture of shape (28, 28) that shows what the network responds to. Then
# suppose that the same linear network is trained on ordinary pixels. For how many of the 1,000 test
# images do the two networks predict different digits?

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_picture = shuffled_w[np.argsort(order), 0].reshape(28, 28)  # SOLUTION
q9_changed = 0  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q9_picture) == (28, 28), "a picture of shape (28, 28)"

# %%
assert np.allclose(np.sort(np.ravel(q9_picture)), np.sort(shuffled_w[:, 0])), "the same weights"

# %%
assert q9_changed in range(1001), "a number of images"

# %%
# HIDDEN
assert np.allclose(q9_picture, train_linear(train_images, train_labels)[0][:, 0].reshape(28, 28))

# %%
# HIDDEN
assert q9_changed == 0

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q9_picture=q9_picture, q9_changed=q9_changed)
weights_of_0 = shuffled_w[:, 0].reshape(28, 28), np.asarray(q9_picture)
show(*weights_of_0, titles=["shuffled", "in order"], columns=2, signed=True)

# %% [markdown]
# Not every permutation hurts a LeNet. It relies on two assumptions: the pixels of one 5 x 5 patch
# belong together, and the same kernel is useful at every position.

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 1

# %% [markdown]
# **Question 10.** Each of these four permutations is applied to all images, in training and in
# test. With exactly one of them a LeNet is as good as before: for every LeNet on ordinary images
# there is one with the same predictions on the permuted images. Give its letter.
#
# - `"a"`: the 28 rows in a random order.
# - `"b"`: each image mirrored, left to right.
# - `"c"`: each image split into 16 tiles of 7 x 7, and the tiles in a random order.
# - `"d"`: every other column first, then the columns between them.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_harmless = "b"  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_harmless in ("a", "b", "c", "d"), "one of the four letters"

# %%
# HIDDEN
assert q10_harmless == "b"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q11
# manual: true
# points: 2

# %% [markdown]
# **Question 11.** On shuffled pixels the LeNet is worse than on ordinary ones, but far better than
# guessing, which gives 10 %. Which parts of it are useless on shuffled pixels, and which still
# work? How does it compare with the linear network, and why? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# A kernel sees 25 unrelated pixels, and the same kernel is used at positions that have nothing in
# common; the maximum over four such responses mixes unrelated pixels. So weight sharing and pooling
# lose information here. But the maps still contain sums over pixels, the linear layers have
# separate weights for each position of the maps, and they can learn which of these sums indicate
# which digit. The linear network is not affected by the shuffle at all, because a sum over pixels
# has no order. So on shuffled pixels the LeNet has lost its advantage, and its poolings are a
# handicap.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
