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
# Here you train a LeNet on few digits, and then take it apart: what its layers cost, what its
# kernels look for, where it errs and how sure it is of that. At the end the pixels are shuffled,
# and you see what a convolution lives on. It takes about an hour.
#
# - Put your answers in place of the three dots, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_products`, ...), and run everything once more from the top
#   before you submit. Questions 4 and 11 ask for a few sentences, which people read.
# - The lab runs on your own `LeNet`, `adam` and `feature_maps`, or on stand-ins as long as yours
#   aren't finished. The next cell says which. After a change of `lenet.py`, restart the kernel.
#   When the lab is graded, it runs on the stand-ins, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import matplotlib.pyplot as plt
import numpy as np

from common.data import load_mnist
from common.labs import answered, own_or_standin, slide


def small_network(network):
    """A network with few parameters, all of which are set."""
    model = network(np.random.default_rng(0), 16, (2, 3), 3, 5, 10, "float64")
    shapes = {name: model.parameters[name].shape for name in sorted(model.parameters)}
    model.parameters = {
        name: np.sin(1.0 + np.arange(np.prod(shape))).reshape(shape)
        for name, shape in shapes.items()
    }
    return model


some_images, some_labels = np.cos(np.arange(512.0)).reshape(2, 1, 16, 16), np.array([3, 0])


def gradients_of(network):
    """All gradients of a small network in one row."""
    _, gradients = small_network(network).loss_and_gradients(some_images, some_labels)
    return np.concatenate([gradients[name].ravel() for name in sorted(gradients)])


def two_steps(step):
    """Where two steps of Adam lead from 1."""
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
    """Draw pictures in rows. signed: blue below 0, white at 0, red above, one scale for all."""
    rows = -(-len(pictures) // columns)
    figure = plt.figure(figsize=(1.3 * columns, 1.5 * rows))
    largest = max(np.abs(picture).max() for picture in pictures) or 1
    style = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest} if signed else {"cmap": "Greys"}
    for place, picture in enumerate(pictures):
        axis = figure.add_subplot(rows, columns, place + 1)
        axis.imshow(picture, **style)
        axis.set_title(titles[place] if titles else "", fontsize=8)
        axis.axis("off")
    plt.show()


mnist = load_mnist()
images, labels = mnist.test_images.astype(float), mnist.test_labels  # 1,000 that it never learns
show(*images[:10, 0], columns=10)

# %% [markdown]
# ## What the layers cost
#
# The handout counts what each layer learns: 416, 12,832, 32,832 and 650 numbers. What a layer
# costs in time is another matter. There the products count: how often a weight is multiplied with
# a number that comes in. A dense layer uses each weight once for an image. A convolution uses it
# again at each place of its map. (Additions, biases, ReLUs and poolings are left out.)

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** How many products does one image take in conv1, conv2, dense1 and dense2? A tuple
# of four whole numbers. The shapes of all maps are in the handout's section "The network".

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_products = (230400, 819200, 32768, 640)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert len(q1_products) == 4, "four numbers, one for each layer"

# %%
assert q1_products[0] == 24 * 24 * 16 * 25, "conv1: places x kernels x weights of a kernel"

# %%
# HIDDEN
assert tuple(q1_products) == (230400, 819200, 32768, 640)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q1_products=q1_products)
names = ("conv1", "conv2", "dense1", "dense2")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6))
left.barh(names, (416, 12832, 32832, 650), color="tab:blue")
left.set(title="numbers that are learned")
right.barh(names, q1_products, color="tab:orange")
right.set(title="products for one image")
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
# and 32 kernels of 5 x 5, 64 hidden numbers, 10 digits. How many numbers does it learn, all told?
# Think first which layers grow.

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
# ## What the kernels became
#
# The next cell trains a LeNet on 2,000 digits, twice over: 126 steps of Adam. First weights and
# the order of the images are fixed, and all is computed in float64, so that your code and the
# stand-in come to the same network. It takes less than a minute.

# %%
answered(q2_parameters=q2_parameters)


def first_weights():
    """He's first weights, always the same."""
    rng = np.random.default_rng(0)
    weights = {}
    for layer, shape, fan_in, outputs in (
        ("conv1", (16, 1, 5, 5), 25, 16),
        ("conv2", (32, 16, 5, 5), 400, 32),
        ("dense1", (512, 64), 512, 64),
        ("dense2", (64, 10), 64, 10),
    ):
        weights[f"{layer}.w"] = rng.normal(0, np.sqrt(2 / fan_in), shape)
        weights[f"{layer}.b"] = np.zeros(outputs)
    return weights


def learn(pictures, digits, epochs=2, batch=32):
    """A LeNet that has learned these pictures, and the loss of each step."""
    model = LeNet(np.random.default_rng(0), dtype="float64")
    model.parameters = first_weights()
    rng, state, losses = np.random.default_rng(0), None, []
    for epoch in range(epochs):
        order = rng.permutation(len(pictures))
        for start in range(0, len(order), batch):
            some = order[start : start + batch]
            loss, slopes = model.loss_and_gradients(pictures[some], digits[some])
            rate = 0.002 * 0.7**epoch
            model.parameters, state = adam(model.parameters, slopes, state, rate)
            losses.append(loss)
    return model, losses


def logits_of(model, pictures):
    """The logits of many pictures, a hundred at a time."""
    starts = range(0, len(pictures), 100)
    return np.concatenate([model.forward(pictures[start : start + 100]) for start in starts])


learned, learned_labels = mnist.train_images[:2000].astype(float), mnist.train_labels[:2000]
lenet, losses = learn(learned, learned_labels)
logits = logits_of(lenet, images)
print(f"right: {(logits.argmax(axis=1) == labels).mean():.1%} of the test images")
plt.figure(figsize=(7, 2.2))
plt.semilogy(losses)
plt.xlabel("step")
plt.ylabel("loss")
plt.show()

# %% [markdown]
# Here are the 16 kernels of the first layer before the training, and below them the same 16 after
# it. Blue is below 0, red above.

# %%
answered(q2_parameters=q2_parameters)
before, after = first_weights(), lenet.parameters
layers, norm = ("conv1.w", "conv2.w", "dense1.w", "dense2.w"), np.linalg.norm
show(*before["conv1.w"][:, 0], titles=[f"{k} before" for k in range(16)], signed=True)
show(*after["conv1.w"][:, 0], titles=[f"{k} after" for k in range(16)], signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** How far did each layer move? Take all weights `w` of a layer as one long arrow:
# the length of what training added, divided by the length that it began with. An array of four
# numbers, one for each of `layers`, from `before` and `after`. An error of 0.01 is allowed.

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
assert 0 < np.min(q3_moved) < np.max(q3_moved) < 1, "no layer moved as far as it was long"

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
# **Question 4.** Texts say that the first layer learns to find edges. Look at the kernels above.
# How many of the 16 would you call a finder of edges, and of which edges? Were they so before the
# training? Why does the network read digits all the same? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# A few kernels are red on one side and blue on the other, such as one finds by hand for edges. But
# they were so before: by chance, and training changed each of them little, about an eighth of its
# length. The others look like noise. Even so, sixteen different kernels answer differently to
# different strokes, and the later layers, which moved further, have learned what to make of it.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %%
answered(q3_moved=q3_moved)
kernel = after["conv1.w"][0, 0]
maps = feature_maps(lenet, images[3])["conv1"]
show(images[3, 0], maps[0], titles=["image", "map of kernel 0"], columns=3)
show(kernel, titles=["kernel 0"], columns=3, signed=True)
print(np.array2string(kernel, precision=2, suppress_small=True))

# %% [markdown]
# A kernel answers with the sum of its weights times the pixels below them. So one can say what it
# would like to see most.

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 1

# %% [markdown]
# **Question 5.** Pixels lie between 0 (paper) and 1 (ink). Which 5 x 5 patch gives the largest
# answer of `kernel` that there can be? An array of shape (5, 5).

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
assert np.min(q5_patch) >= 0 and np.max(q5_patch) <= 1, "pixels lie between 0 and 1"

# %%
# HIDDEN
assert np.isclose(np.sum(q5_patch * kernel), np.maximum(kernel, 0).sum())

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Real digits hold no such patch. Each row below is one of the first six kernels, and then the
# patches of 200 test images to which it answers most, at most one from each image. Above a patch is
# its answer, in percent of the largest that there can be.

# %%
answered(q5_patch=q5_patch)
patches = np.lib.stride_tricks.sliding_window_view(images[:200, 0], (5, 5), axis=(1, 2))
for which in range(6):
    weights = after["conv1.w"][which, 0]
    answers = np.einsum("nrcpq,pq->nrc", patches, weights).reshape(200, -1)
    favourites = np.argsort(-answers.max(axis=1))[:7]
    places = [np.unravel_index(answers[image].argmax(), (24, 24)) for image in favourites]
    found = [patches[image][place] for image, place in zip(favourites, places, strict=True)]
    shares = answers[favourites].max(axis=1) / np.maximum(weights, 0).sum()
    titles = [f"kernel {which}", *(f"{share:.0%}" for share in shares)]
    show(weights / np.abs(weights).max(), *found, titles=titles, signed=True)

# %% [markdown]
# ## Shifted digits
#
# A convolution finds a stroke wherever it is. One often reads that convolutional networks
# therefore don't care where a digit stands. Try it.

# %%
answered(q5_patch=q5_patch)


def shifted(pictures, pixels):
    """All pictures, some pixels further to the right; paper comes in from the left."""
    moved = np.zeros_like(pictures)
    moved[..., pixels:] = pictures[..., : pictures.shape[-1] - pixels]
    return moved


all_shifts = [shifted(images[7, 0], pixels) for pixels in range(6)]
show(*all_shifts, titles=[f"by {pixels}" for pixels in range(6)], columns=6)
for pixels in range(6):
    right_ones = logits_of(lenet, shifted(images, pixels)).argmax(axis=1) == labels
    print(f"shifted by {pixels}: {right_ones.mean():.1%} right")


def draw_shifted_maps(pixels, kernel):
    """One map of each convolution, for a digit that is shifted."""
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
# **Question 6.** From which shift on does the LeNet get fewer than half of the digits right? A
# number of pixels. And why? Shift a digit by 4 pixels, and the maps after the second pooling are
# those of before, shifted by one place, but for the edge. Still the network errs, since
#
# - `"a"`: a kernel's answer changes with the place at which it is laid.
# - `"b"`: pooling drops the place of a stroke, so that shifted digits all look alike.
# - `"c"`: the first dense layer has its own weights for each place, and learned strokes where the
#   training digits have them.
# - `"d"`: a shifted digit has another amount of ink.

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
# ## Where it errs
#
# Back to digits that stand where they should. `labels` holds what they are, `guesses` what the
# LeNet says.

# %%
answered(q6_pixels=q6_pixels, q6_why=q6_why)
guesses = logits.argmax(axis=1)
print(labels[:20])
print(guesses[:20])

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 3

# %% [markdown]
# **Question 7.** Make the confusion matrix: `q7_confusion[a, b]` is how many of the images of
# digit `a` are taken for `b`. Then look at it: which mistake is the most frequent one? A tuple
# (what it is, what the LeNet says).

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_confusion = np.eye(10)[labels].T @ np.eye(10)[guesses]  # SOLUTION
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
# The picture shows the mistakes alone. Below are the twelve test images with the highest loss.

# %%
answered(q7_confusion=q7_confusion, q7_pair=q7_pair)
confusion = np.asarray(q7_confusion, float)
plt.figure(figsize=(4, 3.4))
plt.imshow(confusion - np.diag(np.diag(confusion)), cmap="Oranges")
plt.xticks(range(10))
plt.yticks(range(10))
plt.xlabel("what the LeNet says")
plt.ylabel("the label")
plt.colorbar()
plt.show()

exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
worst = np.argsort(probabilities[np.arange(1000), labels])[:12]
titles = [f"{labels[k]}, read as {guesses[k]}\nwith {probabilities[k].max():.0%}" for k in worst]
show(*images[worst, 0], titles=titles, columns=6)

# %% [markdown]
# A network that says how sure it is can ask for help. Take the largest probability of each image
# as how sure it is: `sure`. What is too unsure goes to a person, who makes no mistakes.

# %%
answered(q7_confusion=q7_confusion, q7_pair=q7_pair)
sure = probabilities.max(axis=1)
wrong = guesses != labels
bins = np.linspace(0, 1, 21)
plt.figure(figsize=(7, 2.4))
plt.hist([sure[~wrong], sure[wrong]], bins, stacked=True, label=["right", "wrong"], log=True)
plt.xlabel("how sure")
plt.ylabel("images")
plt.legend()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** All images with `sure` below 0.9 are handed over. How many are these, and how
# many mistakes are left among the others?

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_handed = int((sure < 0.9).sum())  # SOLUTION
q8_left = int((wrong & (sure >= 0.9)).sum())  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 < q8_handed < 1000, "a number of images"

# %%
assert 0 <= q8_left <= wrong.sum(), "a number of mistakes"

# %%
# HIDDEN
assert abs(q8_handed - 250) <= 3

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
# One fixed permutation moves the pixels of every image, in training and in test alike. No
# information is lost: who knows the permutation can undo it. Here a LeNet learns such images.

# %%
answered(q8_handed=q8_handed, q8_left=q8_left)
order = np.random.default_rng(0).permutation(28 * 28)


def shuffle(pictures):
    """Put pixel order[k] of each picture at place k."""
    return pictures.reshape(-1, 28 * 28)[:, order].reshape(-1, 1, 28, 28)


show(*images[:5, 0], *shuffle(images[:5])[:, 0], columns=5)
shuffled_lenet, _ = learn(shuffle(learned), learned_labels)
shuffled_logits = logits_of(shuffled_lenet, shuffle(images))
for name, found in (("ordinary", logits), ("shuffled", shuffled_logits)):
    print(f"LeNet, {name} pixels: {(found.argmax(axis=1) == labels).mean():.1%} right")

# %% [markdown]
# Next to it a linear network, the simplest there is: one weight for each pixel and digit, softmax,
# and 50 steps of plain gradient descent over all images, from zeros. It learns the shuffled pixels
# too. Its weights for one digit can be drawn as a picture. For shuffled pixels there isn't much to
# see.

# %%
answered(q8_handed=q8_handed, q8_left=q8_left)


def learn_linear(pictures, digits, steps=50, rate=0.5):
    """Weights (784, 10) and biases (10,) that have learned these pictures."""
    x, right = pictures.reshape(len(pictures), -1), np.eye(10)[digits]
    w, b = np.zeros((28 * 28, 10)), np.zeros(10)
    for _ in range(steps):
        scores = np.exp(x @ w + b)
        error = (scores / scores.sum(axis=1, keepdims=True) - right) / len(x)
        w, b = w - rate * x.T @ error, b - rate * error.sum(axis=0)
    return w, b


shuffled_w, shuffled_b = learn_linear(shuffle(learned), learned_labels)
linear_guesses = (shuffle(images).reshape(1000, -1) @ shuffled_w + shuffled_b).argmax(axis=1)
print(f"linear, shuffled pixels: {(linear_guesses == labels).mean():.1%} right")
titles = [f"weights of {digit}" for digit in range(5)]
show(*shuffled_w.T[:5].reshape(5, 28, 28), titles=titles, columns=5, signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 2

# %% [markdown]
# **Question 9.** Put the weights of digit 0, `shuffled_w[:, 0]`, at the places where their pixels
# were before the shuffle: a picture of shape (28, 28), in which one sees what the network looks
# for. And think: the same linear network learns the ordinary pixels. For how many of the 1,000
# test images does it then say another digit than with shuffled ones?

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
assert np.allclose(q9_picture, learn_linear(learned, learned_labels)[0][:, 0].reshape(28, 28))

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
show(*weights_of_0, titles=["shuffled", "put back"], columns=2, signed=True)

# %% [markdown]
# Not every permutation hurts a LeNet. What it needs is that pixels which lie in one 5 x 5 patch
# belong together, and that the same kernel makes sense at each place.

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 1

# %% [markdown]
# **Question 10.** Four permutations, each used on all images, in training and in test. Which of
# them leaves a LeNet as good as it was: for every LeNet on ordinary images there is one with the
# same answers on the permuted ones?
#
# - `"a"`: the 28 rows in a random order.
# - `"b"`: each image mirrored, left to right.
# - `"c"`: each image cut into 16 tiles of 7 x 7, and the tiles in a random order.
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
# guessing, which gives 10 %. What of it is of no use on shuffled pixels, and what still works? How
# does it compare with the linear network, and why? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# A kernel sees 25 pixels that come from anywhere, and the same kernel is laid at places that have
# nothing in common; the maximum over four such answers mixes unrelated pixels. So sharing weights
# and pooling lose information here. But the maps still hold sums over pixels, the dense layers
# have their own weights for each place of the maps, and they can learn which of these sums go with
# which digit. The linear network doesn't notice the shuffle at all, since a sum over pixels has no
# order. So on shuffled pixels the LeNet has no head start left, and its poolings are a handicap.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
