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
# # Lab 5: Soft lookups and heads by hand
#
# Nothing is trained here but a few queries. You look up values in a table at several temperatures.
# You find out why scores are divided by $\sqrt{d_k}$, where that doesn't help, and why queries and
# keys have separate projections. Then you build heads by hand, plot their weights, and shuffle
# their words. It takes about an hour.
#
# - Replace the three dots with your answers, and run the cell below each: it checks the form, and
#   some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_query`, ...), and run everything again from the top before
#   you submit. Questions 6 and 11 ask for a few sentences, which the staff grades.
# - The lab runs on your own `soft_lookup` and `MultiHeadAttention`, or on stand-ins as long as
#   yours aren't finished. The next cell says which. After a change of `attention.py`, restart the
#   kernel. When the lab is graded, it runs on the stand-ins, so a mistake in your code costs
#   nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import math

import matplotlib.pyplot as plt
import numpy as np
import torch

from common.labs import answered, own_or_standin, slide

table = torch.eye(3)[:, :2].double(), torch.arange(3.0)[:, None].double()
soft_lookup = own_or_standin(
    "a5_attention.attention",
    "soft_lookup",
    lambda look: torch.cat([*look(table[0][0], *table, 0.7), *look(table[0][0], *table, 0.0)]),
)


def try_heads(Heads):
    """The output of two heads whose four layers are identities, with and without a mask."""
    layer = Heads(4, 2).double()
    layer.load_state_dict(
        {name: (torch.eye(4) if x.ndim == 2 else 0 * x) for name, x in layer.state_dict().items()}
    )
    x = torch.arange(12.0).reshape(1, 3, 4).double() / 6
    with torch.no_grad():
        results = [*layer(x, x, x), *layer(x, x, x, torch.eye(3).bool())]
    return torch.cat([result.flatten() for result in results])


MultiHeadAttention = own_or_standin("a5_attention.attention", "MultiHeadAttention", try_heads)

# %% [markdown]
# ## A table of hours
#
# A thermometer was read at every full hour of a day. What was the temperature at some other time?
# A hard lookup can't say, but a soft one can: it averages all hours, and the nearest ones have the
# largest weights.
#
# The value of hour $h$ is its reading. Its key has two numbers: $(h, -h^2/2)$. (From here on,
# "temperature" is that of the lookup; the thermometer gives a "reading".)

# %%
hours = torch.arange(24.0).double()
noise = torch.from_numpy(np.random.default_rng(5).normal(0, 1.2, 24))
readings = 14 - 6 * torch.cos((hours - 3) * 2 * math.pi / 24) + noise
keys, values = torch.stack([hours, -(hours**2) / 2], dim=1), readings[:, None]

plt.figure(figsize=(8, 3))
plt.plot(hours, readings, "o", color="black")
plt.xlabel("hour of the day")
plt.ylabel("reading in \N{DEGREE SIGN}C")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** A query $(a, b)$ gives the hour $h$ the score $a h - b h^2 / 2$. Which query asks
# for the time 14.3 (eighteen minutes past two)? The score, as a function of $h$, must have its
# maximum there and be symmetric around it. Two numbers; there is more than one right answer.

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_query = (14.3, 1.0)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q1_query) == (2,), "two numbers"

# %%
q1_scores = keys.numpy() @ np.asarray(q1_query, float)
assert q1_scores.argmax() == 14, "the nearest full hour must have the largest score"

# %%
# HIDDEN
assert q1_query[1] > 0 and abs(q1_query[0] / q1_query[1] - 14.3) < 1e-6

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Now ask for every time of the day, not only for full hours, at several temperatures. At a low
# temperature the curve is a staircase: each time gets the reading of the nearest hour. Move the
# sliders to see the weights behind one point of a curve; there the temperature is in tenths.

# %%
answered(q1_query=q1_query)


def ask(time, temperature):
    """The reading found for a time, and the weights of the 24 hours."""
    query = torch.tensor([time, 1.0]).double()
    value, weights = soft_lookup(query, keys, values, temperature)
    return value.item(), weights.numpy()


times = np.arange(0, 23.01, 0.1)
plt.figure(figsize=(8, 3.5))
plt.plot(hours, readings, "o", color="black", markersize=4)
for temperature in (0, 0.3, 4, 100):
    plt.plot(times, [ask(time, temperature)[0] for time in times], label=f"{temperature}")
plt.xlabel("time of the day in hours")
plt.ylabel("reading found in \N{DEGREE SIGN}C")
plt.legend(title="temperature")
plt.show()


def draw_weights(time, tenths):
    """Plot the weights of all hours for one time; the temperature is in tenths."""
    plt.figure(figsize=(8, 2.5))
    plt.bar(hours, ask(time, tenths / 10)[1])
    plt.ylim(0, 1)
    plt.xlabel("hour of the day")
    plt.ylabel("weight")
    plt.title(f"time {time}, temperature {tenths / 10:.1f}", fontsize=10)
    plt.show()


slide(draw_weights, time=(0, 23), tenths=(0, 100))

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 2

# %% [markdown]
# **Question 2.** You ask for hour 12 (`ask(12, ...)`). At which temperature do 11 and 13 each have
# exactly half the weight of 12? Try, or find it on paper: with the query $(t, 1)$ the score is
# $-(h - t)^2 / 2$ plus a constant, which a softmax ignores. An error of 0.01 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_temperature = 1 / (2 * math.log(2))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q2_temperature > 0, "a temperature above 0"

# %%
q2_weights = ask(12, float(q2_temperature))[1]
# An error of 0.01 in the temperature makes one of 0.005 in the ratio.
assert abs(q2_weights[11] / q2_weights[12] - 0.5) < 0.005, "compare the weights of 11, 12 and 13"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# So the curve at temperature $T$ is a weighted mean of the readings, with Gaussian weights of
# standard deviation $\sqrt T$ around the time asked for. Statisticians call this kernel regression,
# or the Nadaraya-Watson estimator (Nadaraya, 1964; Watson, 1964). Attention is a Nadaraya-Watson
# estimator whose queries, keys and values are learned.
#
# Why the second number in the keys? Here are keys with one number, the hour alone. The query has
# one number too.

# %%
answered(q2_temperature=q2_temperature)
for number in (-2.0, 0.1, 3.0):
    query = torch.tensor([number]).double()
    _, weights = soft_lookup(query, hours[:, None], values, 1.0)
    print(f"query {number:4}: largest weight {weights.max():.2f}, at hour {int(weights.argmax())}")

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** Keys are the hours alone, from 0 to 23. Which hours can have the largest score
# (alone, without a tie), for some query? A list of all of them, such as `[3, 7, 8]`.

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_hours = [0, 23]  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert set(q3_hours) <= set(range(24)), "a list of hours from 0 to 23"

# %%
# HIDDEN
assert set(q3_hours) == {0, 23}

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Why the square root?
#
# A random query attends to 16 random keys, all of standard normal numbers. Above: without a scale.
# Below: divided by $\sqrt{d_k}$. Each bar is the weight of a key, from the largest to the smallest,
# averaged over 200 queries. The titles give the variance of the scores.

# %%
answered(q3_hours=q3_hours)


def random_scores(d_k, rng, same=False):
    """Scores (200, 16) of 200 queries with 16 keys each. same: key 0 is the query."""
    queries, others = rng.standard_normal((200, 1, d_k)), rng.standard_normal((200, 16, d_k))
    if same:
        others[:, :1] = queries
    return np.sum(queries * others, axis=2)


def softmax(scores):
    """Along the last axis."""
    return torch.softmax(torch.as_tensor(scores), dim=-1).numpy()


SIZES = (4, 16, 64, 256)
_, panels = plt.subplots(2, len(SIZES), figsize=(10, 5), sharey=True)
for column, d_k in zip(panels.T, SIZES, strict=True):
    scores = random_scores(d_k, np.random.default_rng(d_k))
    for axis, factor in zip(column, (1, 1 / math.sqrt(d_k)), strict=True):
        axis.bar(range(16), -np.sort(-softmax(scores * factor), axis=1).mean(axis=0))
        axis.set_title(f"d_k {d_k}, variance {np.var(scores * factor):.1f}", fontsize=9)
        axis.set_xlabel("key, sorted by weight", fontsize=9)
for axis, name in zip(panels[:, 0], ("not scaled", "scaled"), strict=True):
    axis.set_ylabel(f"mean weight, {name}", fontsize=9)
plt.tight_layout()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 2

# %% [markdown]
# **Question 4.** Now queries and keys hold numbers uniform on [-1, 1] instead of standard normal
# ones. What is the variance of the scores without a scale, for $d_k$ = 64? Measure it
# (`rng.uniform(-1, 1, size=...)`, some 10,000 pairs) or find it on paper. An error of 0.4 is
# allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_variance = 64 / 9  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q4_variance > 0, "a variance is positive"

# %%
assert abs(q4_variance - 64 / 3**2) <= 0.4, "the variance of one such number is 1/3"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# All this holds for queries and keys that are independent of each other. In self-attention, each
# word is among its own keys. If the two projections are the same (or there are none), its key
# **is** its query.

# %%
answered(q4_variance=q4_variance)
_, panels = plt.subplots(1, len(SIZES), figsize=(10, 2.2), sharey=True)
for axis, d_k in zip(panels, SIZES, strict=True):
    scores = random_scores(d_k, np.random.default_rng(d_k), same=True) / math.sqrt(d_k)
    axis.bar(range(16), softmax(scores).mean(axis=0), color=["red", *["gray"] * 15])
    axis.set_title(f"d_k {d_k}, red: itself", fontsize=9)
    axis.set_xlabel("key", fontsize=9)
panels[0].set_ylabel("mean weight", fontsize=9)
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 1

# %% [markdown]
# **Question 5.** A standard normal query of $d_k$ = 256 numbers is its own key. What is its
# **scaled** score with itself, on average? An error of 0.5 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q5_score = 256 / math.sqrt(256)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q5_score == float(q5_score), "a number"

# %%
# HIDDEN
assert abs(q5_score - 16) <= 0.5

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# What is wrong with a saturated softmax? The next cell has 100 random queries of 256 numbers, each
# with 16 keys and 16 values. Each query is trained to return the value of its key 0, by 100 steps
# of gradient descent on the squared error. We count those that come within 0.1 of it.

# %%
answered(q5_score=q5_score)


def learn(scale, rate, steps=100):
    """How many of 100 queries are within 0.1 of the value, before each step."""
    rng = np.random.default_rng(1)
    query, own_keys, own_values = (
        torch.from_numpy(rng.standard_normal(shape))
        for shape in ((100, 256, 1), (100, 16, 256), (100, 16))
    )
    found = []
    for _ in range(steps):
        query.requires_grad_()
        weights = torch.softmax((own_keys @ query)[..., 0] * scale, dim=1)
        error = (weights * own_values).sum(dim=1) - own_values[:, 0]
        found.append(int((error.abs() < 0.1).sum()))
        (gradient,) = torch.autograd.grad((error**2).sum(), query)
        query = (query - rate * gradient).detach()
    return found


plt.figure(figsize=(8, 3))
plt.plot(learn(1 / 16, 1), label="scaled, learning rate 1")
plt.plot(learn(1, 0.01), label="not scaled, learning rate 0.01")
plt.plot(learn(1, 1), label="not scaled, learning rate 1")
plt.xlabel("training steps")
plt.ylabel("queries within 0.1, of 100")
plt.legend()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q6
# manual: true
# points: 2

# %% [markdown]
# **Question 6.** Why do most queries without a scale fail to learn, at either learning rate? And
# why do some succeed? Two to four sentences. (Try other learning rates, if you doubt it.)

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# Without a scale the scores have a standard deviation of 16, so one key has nearly all the weight
# from the start. Then every entry of the softmax's Jacobian is nearly 0, and so is the gradient of
# the query, even though the error is large. A larger learning rate moves it to another saturated
# point. About ten are right by chance before the first step, and some more have best keys with
# similar scores: there the softmax isn't saturated, and they learn.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Why three projections?
#
# Self-attention computes query, key and value from the same vector, with three matrices. Why three?
#
# First, what a word asks for differs from what it is. Here are the six words of the handout with
# its query, which asks for an animal, and with a second one, which asks for an action. The keys
# stay the same.

# %%
SIX_WORDS = ("the", "cat", "sat", "on", "the", "mat")
six_keys = torch.zeros(6, 4).double()  # the features: animal, action, object, definiteness
six_keys[0, 3] = six_keys[1, 0] = six_keys[2, 1] = six_keys[4, 3] = six_keys[5, 2] = 1
six_keys[1, 2] = 0.3
for question in ([0.9, 0.1, 0.2, 0.3], [0.1, 0.9, 0.1, 0.1]):
    _, weights = soft_lookup(torch.tensor(question).double(), six_keys, six_keys, math.sqrt(4))
    named = zip(SIX_WORDS, weights, strict=True)
    print(f"query {question}:", ", ".join(f"{word} {weight:.3f}" for word, weight in named))

# %% [markdown]
# Second, asking and answering are different roles. Below are the scores of six random words with
# each other, in three versions:
#
# - no projections: $Q = K = V = X$, no parameters;
# - one shared matrix: $Q = K = V = XW$, $d^2$ parameters;
# - two matrices: $Q = XW_Q$, $K = XW_K$; with a third one for the values, $3d^2$ parameters.
#
# **Before you run the cell**: which of the three tables are symmetric? Where are their largest
# entries? (This question has no points.)

# %%
rng = np.random.default_rng(3)
x = rng.standard_normal((6, 16))
first_matrix, second_matrix = rng.standard_normal((2, 16, 16)) / 4
versions = {
    "no projections": x @ x.T,
    "one shared matrix": (x @ first_matrix) @ (x @ first_matrix).T,
    "two matrices": (x @ first_matrix) @ (x @ second_matrix).T,
}
_, panels = plt.subplots(1, 3, figsize=(9, 3.4))
for axis, (name, scores) in zip(panels, versions.items(), strict=True):
    axis.imshow(scores, cmap="RdBu_r", vmin=-30, vmax=30)
    axis.set_title(name, fontsize=9)
    axis.set_xlabel("key", fontsize=9)
    axis.set_ylabel("query", fontsize=9)
    own = (scores.argmax(axis=1) == np.arange(6)).sum()
    gap = abs(scores - scores.T).max()
    print(f"{name}: |scores - scores.T| <= {gap:.2g}; {own} of 6 words attend most to themselves")
plt.tight_layout()
plt.show()

# %% [markdown]
# With one matrix for queries and keys, or with none, the scores are symmetric: query "sat" and key
# "cat" have the same score as query "cat" and key "sat". (The weights aren't symmetric: the softmax
# normalizes each row separately.) And the score of a word with itself is a sum of squares, so words
# attend mostly to themselves. A high score for verb and subject, and a low one for subject and
# verb, takes two matrices. The third, for the values, separates what a word is found by from what
# it contributes.

# %% [markdown]
# ## Heads by hand
#
# Six words go into a layer of four heads. Each input vector has 48 numbers: the word one-hot (12),
# its position one-hot (12), then 24 zeros. A head has 12 features. So the weights of a head can be
# set by hand:
#
# - head 0, "same": query and key are the word.
# - head 1, "back": the key is the position, the query the position before. (Position 0 has none
#   before it, and asks for itself.)
# - head 2, "uniform": all queries are 0.
# - head 3, "first": the key is the position, and every query asks for position 0.
#
# In the maps, rows are queries and columns are keys.

# %%
WORDS = ("the", "cat", "saw", "the", "mat", "move")
NAMES = ("same", "back", "uniform", "first")
SHARP = 30.0
vocabulary = sorted(set(WORDS))


def vectors(sentence):
    """(1, t, 48): each word and its position, both one-hot."""
    x = torch.zeros(1, len(sentence), 48).double()
    for position, word in enumerate(sentence):
        x[0, position, vocabulary.index(word)] = x[0, position, 12 + position] = 1
    return x


def layer_of(position_scores):
    """Four heads by hand. position_scores[i, j]: the score of query i with key j in head 1."""
    layer = MultiHeadAttention(48, 4, bias=True).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        query, key = (getattr(layer, name).weight.view(4, 12, 4, 12) for name in ("query", "key"))
        one, (many, _) = torch.eye(12).double(), position_scores.shape
        query[0, :, 0], key[0, :, 0] = SHARP * one, one  # head 0, words
        query[1, :many, 1, :many], key[1, :, 1] = SHARP * position_scores.T, one
        key[3, :, 1] = one
        layer.query.bias[36] = SHARP  # head 3, position 0
        layer.value.weight.copy_(torch.eye(48))
        layer.out.weight.copy_(torch.eye(48))
    return layer


def maps(layer, sentence, mask=None):
    """The weights of each head: (4, t, t)."""
    x = vectors(sentence)
    with torch.no_grad():
        return layer(x, x, x, mask)[1][0].numpy()


def show_maps(weights, sentence, names):
    """Plot the weights of each head: queries down, keys across."""
    _, panels = plt.subplots(1, len(weights), figsize=(2.8 * len(weights), 3.2))
    for axis, head, name in zip(np.atleast_1d(panels), weights, names, strict=True):
        axis.imshow(head, cmap="Blues", vmin=0, vmax=1)
        axis.set_xticks(range(len(sentence)), sentence, rotation=90, fontsize=8)
        axis.set_yticks(range(len(sentence)), sentence, fontsize=8)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("key", fontsize=9)
    np.atleast_1d(panels)[0].set_ylabel("query", fontsize=9)
    plt.tight_layout()
    plt.show()


back = torch.zeros(6, 6).double()
for position in range(6):
    back[position, max(position - 1, 0)] = 1
by_hand = layer_of(back)
show_maps(maps(by_hand, WORDS), WORDS, NAMES)

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 2

# %% [markdown]
# **Question 7.** Give head 1 another pattern: position `i` attends to position `i + 2`. The last
# two positions have none, and attend uniformly to all six. Write its 6 x 6 position scores, queries
# down and keys across, as in `back` (1 where it attends; the layer multiplies by 30).

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_scores = np.eye(6, k=2)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q7_scores) == (6, 6), "q7_scores must have shape (6, 6)"

# %%
assert np.asarray(q7_scores)[0].argmax() == 2, "position 0 must attend to position 2"

# %%
# HIDDEN
q7_weights = softmax(8 * np.asarray(q7_scores, float))
assert (q7_weights[np.arange(4), np.arange(2, 6)] > 0.9).all() and np.allclose(
    q7_weights[4:], 1 / 6
)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q7_scores=q7_scores)
yours = layer_of(torch.as_tensor(q7_scores).double())
show_maps(maps(yours, WORDS), WORDS, ("same", "head 1, yours", "uniform", "first"))

# %% [markdown]
# Now a causal mask, written out: each word may attend to itself and to earlier words.

# %%
causal = torch.tensor(
    [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1, 1],
    ]
).bool()
show_maps(maps(by_hand, WORDS, causal), WORDS, NAMES)

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** Consider head 2, "uniform", under the mask: each query spreads its weight
# uniformly. How much weight do all six queries together give to the **first** word? Without a mask,
# every word gets 1. An error of 0.01 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_total = sum(1 / seen for seen in range(1, 7))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q8_total == float(q8_total), "a number"

# %%
assert abs(q8_total - maps(by_hand, WORDS, causal)[2][:, 0].sum()) <= 0.01, "add up a column"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# A causal mask favors the first words: every query may attend to them. Keep that in mind when you
# read the maps of a trained model.
#
# Now shuffle the words. The mask is gone, and the words get new positions. If the rows and columns
# of a head's map are just shuffled in the same way, the head is permutation-equivariant.

# %%
answered(q8_total=q8_total)
order = [4, 2, 0, 5, 1, 3]
shuffled = tuple(WORDS[position] for position in order)
show_maps(maps(by_hand, shuffled), shuffled, NAMES)

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** Which of the four heads are permutation-equivariant? A list of their numbers. (To
# compute it: `before[:, order][:, :, order]` shuffles maps `before`.)

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_heads = [0, 2]  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert set(q9_heads) <= {0, 1, 2, 3}, "a list of heads from 0 to 3"

# %%
# HIDDEN
assert set(q9_heads) == {0, 2}

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Why several heads?
#
# A word needs two things: the word before it, and the first word. Two heads find one each, and
# their outputs are concatenated. One head can attend to both, with weight 1/2 each, and gets the
# mean of their values. A value is the word one-hot.

# %%
answered(q9_heads=q9_heads)
one_hot = np.eye(12)
before, first = one_hot[2], one_hot[5]
two_heads, one_head = np.concatenate([before, first]), (before + first) / 2
_, panels = plt.subplots(1, 2, figsize=(9, 1.4))
for axis, found, name in zip(panels, (two_heads, one_head), ("two heads", "one head"), strict=True):
    axis.imshow(found[None], cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axis.set_title(name, fontsize=9)
    axis.set_xlabel("feature of the output", fontsize=9)
    axis.set_yticks([])
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** There are 12 words, so 144 pairs of a previous word and a first word (they may be
# the same word). With two heads, all 144 give different outputs. How many different outputs does
# one head give, with weights of 1/2? Think, or try all pairs.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_outputs = 12 * 13 // 2  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_outputs == int(q10_outputs) and 0 < q10_outputs <= 144, "a whole number up to 144"

# %%
# HIDDEN
assert q10_outputs == 78

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q10_outputs=q10_outputs)
torch.manual_seed(0)
untrained = MultiHeadAttention(48, 4).double()
show_maps(maps(untrained, WORDS), WORDS, [f"no mask, head {head}" for head in range(4)])
show_maps(maps(untrained, WORDS, causal), WORDS, [f"causal, head {head}" for head in range(4)])

# %% [raw]
# # BEGIN QUESTION
# name: q11
# manual: true
# points: 2

# %% [markdown]
# **Question 11.** Above are four heads at initialization, without and with a mask. Someone says:
# "Under the mask, all four heads have learned to attend to the first word." What do you answer? Two
# to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# Nothing has been learned: the weights are random. At initialization scores are small, so every
# head is nearly uniform. Under the mask a uniform head gives the first word 1, 1/2, 1/3, ... of the
# weight, since the early queries have few other keys. That is an effect of the mask, so a map
# should be compared with that of a uniform head under the same mask.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
