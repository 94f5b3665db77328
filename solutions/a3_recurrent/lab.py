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
# # Lab 3: gradients through time
#
# How far back can a recurrent network learn? You measure when gradients vanish, when they explode,
# what clipping does about it and what an LSTM does. Then you train a small character-level language
# model and sample from it at several temperatures. It takes about an hour.
#
# - Replace the three dots in each answer, and run the cell below it: it checks the form, and some
#   of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_steps`, ...), and run everything again from the top before
#   you submit. Questions 5 and 11 are short written answers, graded by the staff.
# - The lab runs on your own functions if they are correct, and on stand-ins otherwise; the next
#   cell prints which. After you change `recurrent.py`, restart the kernel. When the lab is graded,
#   it runs on the stand-ins, so a mistake in your code costs nothing here.

# %%
import sys
from types import SimpleNamespace

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import matplotlib.pyplot as plt
import numpy as np

from common.data import load_shakespeare
from common.labs import answered, own_or_standin, slide

MODULE = "a3_recurrent.recurrent"
waves = np.sin(np.arange(1.0, 1000.0))


def small_weights(*shapes):
    """Arrays of these shapes, the same in every run."""
    return tuple(waves[: np.prod(shape)].reshape(shape) for shape in shapes)


def both_norms(norms):
    """The norms of a small RNN and of a small LSTM, concatenated."""
    x, h, c = small_weights((4, 3), 2, 2)
    rnn = norms("rnn", x, (h,), small_weights((3, 2), (2, 2), 2))
    lstm = norms("lstm", x, (h, c), small_weights((3, 8), (2, 8), 8))
    return np.concatenate([rnn, lstm])


def small_model(network):
    """A small model with fixed parameters."""
    model = network(np.random.default_rng(0), 5, 3, 2, "float64")
    shapes = {name: np.shape(model.parameters[name]) for name in model.parameters}
    model.parameters.update({name: small_weights(shape)[0] for name, shape in shapes.items()})
    return model


few_ids = np.array([0, 3, 1, 4, 2, 2, 0, 1, 3, 3, 4, 0, 2])
short = SimpleNamespace(  # with the fields of TrainConfig
    steps=3, batch_size=2, context_length=3, learning_rate=0.1, decay=0.9, max_norm=0.05
)
gradient_norms_through_time = own_or_standin(MODULE, "gradient_norms_through_time", both_norms)
CharLM = own_or_standin(
    MODULE, "CharLM", lambda network: small_model(network).forward(few_ids[None])[0]
)
train = own_or_standin(
    MODULE, "train", lambda run: run(small_model(CharLM), few_ids, short)["loss"]
)
bits_per_character = own_or_standin(
    MODULE, "bits_per_character", lambda bits: bits(small_model(CharLM), few_ids)
)
sample = own_or_standin(
    MODULE, "sample", lambda draw: draw(small_model(CharLM), few_ids, 9, 0, None)
)


def by_distance(w_hh, steps, start=0.0):
    """The norm of dh_T / dh_t for the distances T - t = 0, 1, ... in an RNN without input."""
    size = len(w_hh)
    weights = np.zeros((1, size)), np.asarray(w_hh, float), np.zeros(size)
    state = (np.full(size, start),)
    return gradient_norms_through_time("rnn", np.zeros((steps, 1)), state, weights)[::-1]


def draw_norms(**curves):
    """Norms against distance, on a logarithmic scale."""
    plt.figure(figsize=(7.5, 3.2))
    for label, norms in curves.items():
        plt.semilogy(norms, label=label.replace("_", " "))
    plt.axhline(1, color="gray", linewidth=0.8, linestyle=":")
    plt.xlabel("distance T - t in steps")
    plt.ylabel("norm of dh_T / dh_t")
    plt.legend(fontsize=8)
    plt.show()


# %% [markdown]
# ## How far a gradient reaches
#
# Take an RNN at rest: no input, and all hidden states are 0. There tanh has slope 1, so one step
# back multiplies the gradient by `w_hh` and nothing else. Let `w_hh` be an orthogonal matrix (a
# rotation) times a number `r`. Then all its eigenvalues have the absolute value `r`. The largest
# absolute eigenvalue of a matrix is its **spectral radius**.

# %%
rotation = np.linalg.qr(waves[:81].reshape(9, 9))[0]  # orthogonal, 9 x 9
draw_norms(**{f"radius_{r:g}": by_distance(r * rotation, 60) for r in (0.7, 0.9, 1.0, 1.1)})

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** With a spectral radius of 0.9, what is the smallest distance at which less than a
# thousandth of the gradient is left? A whole number of steps.

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_steps = 66  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q1_steps == int(q1_steps), "a whole number"

# %%
assert 0.9**q1_steps < 1e-3 <= 0.9 ** (q1_steps - 1), "below a thousandth there, not a step before"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# It is often said that the spectral radius decides. In the long run it does, for a network at rest.
# Before that, a matrix whose eigenvectors aren't orthogonal can behave differently. Here are two
# matrices with the same spectral radius of 0.85. The second isn't a rotation: it is a shear.

# %%
answered(q1_steps=q1_steps)
shear = np.array([[0.85, 3.0], [0.0, 0.85]])
for name, matrix in (("rotation", 0.85 * rotation), ("shear", shear)):
    print(name, np.abs(np.linalg.eigvals(matrix)).round(3))
draw_norms(rotation=by_distance(0.85 * rotation, 60), shear=by_distance(shear, 60))

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 2

# %% [markdown]
# **Question 2.** At which distance is the gradient of the network with the shear largest? A whole
# number of steps.

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_peak = int(np.argmax(by_distance(shear, 60)))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q2_peak == int(q2_peak) and q2_peak > 0, "a whole number of steps"

# %%
# HIDDEN
assert q2_peak == 6

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# And with a spectral radius above 1, gradients need not explode. Take one unit with the weight 2:
# at rest, each step doubles the gradient. But the unit doesn't stay at rest. Start it at 0.1 and
# look at its states, and at the gradient back from the last of them. (The bend at large distances
# comes from the first steps, close to rest, where a step still doubles the gradient.)

# %%
answered(q2_peak=q2_peak)
states = [0.1]
for _ in range(12):
    states.append(np.tanh(2 * states[-1]))
print(np.round(states, 4))
draw_norms(at_rest=by_distance([[2.0]], 20), started_at_a_tenth=by_distance([[2.0]], 20, 0.1))

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 2

# %% [markdown]
# **Question 3.** The state converges to the fixed point `h = tanh(2 * h)`. By which factor does one
# step back multiply the gradient there? An error of 0.001 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_factor = 2 * (1 - states[-1] ** 2)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q3_factor > 0, "a positive number"

# %%
one_step_back = by_distance([[2.0]], 40, 0.1)[1]
assert abs(q3_factor - one_step_back) <= 0.001, "the weight times the slope of tanh there"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# With many units it is less simple. The slider sets the spectral radius (in tenths) of a random
# matrix for 32 units without input. At rest, gradients explode above 1. A network that starts from
# other states stays away from 0, where tanh is flatter, and its gradient grows much more slowly, or
# not at all. Below 1 the states decay to 0, and the two curves are nearly the same.

# %%
answered(q3_factor=q3_factor)
noise = np.random.default_rng(0).normal(size=(32, 32)) / np.sqrt(32)


def draw_radius(tenths):
    """Norms of a random network with that spectral radius, from two initial states."""
    matrix = tenths / 10 * noise / np.abs(np.linalg.eigvals(noise)).max()
    draw_norms(at_rest=by_distance(matrix, 60), started_at_a_half=by_distance(matrix, 60, 0.5))


draw_radius(15)
slide(draw_radius, tenths=(5, 40))

# %% [markdown]
# ## Clipping
#
# The handout clips **by norm**: one factor for the whole gradient, as in PyTorch's
# `clip_grad_norm_`. Code often clips **by value** instead, each entry on its own, as in
# `clip_grad_value_`. For the gradient (4, 1) and the bound 1:

# %%
gradient = np.array([4.0, 1.0])
by_norm = gradient / np.linalg.norm(gradient)
by_value = np.clip(gradient, -1, 1)
plt.figure(figsize=(6, 2.4))
arrows = (gradient, "lightgray"), (by_norm, "tab:blue"), (by_value, "tab:orange")
for arrow, color in arrows:
    plt.arrow(0, 0, *arrow, color=color, width=0.02, length_includes_head=True)
plt.xlim(-0.2, 4.2)
plt.ylim(-0.2, 1.3)
plt.title("gray: gradient; blue: clipped by norm; orange: clipped by value", fontsize=9)
plt.gca().set_aspect("equal")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** By how many degrees does clipping by value rotate this gradient? An error of 0.1
# is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_degrees = float(np.degrees(np.arctan2(1, 1) - np.arctan2(1, 4)))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 < q4_degrees < 90, "an angle in degrees"

# %%
cosine = by_norm @ by_value / np.sqrt(2)
assert abs(np.cos(np.radians(q4_degrees)) - cosine) < 1e-3, "the angle between the two arrows"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q5
# manual: true
# points: 2

# %% [markdown]
# **Question 5.** Someone says that clipping fixes both exploding and vanishing gradients. What does
# it do for each of them, and why? What would happen if small gradients were scaled up to norm 1?
# Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# Clipping shortens a gradient that is too large and keeps its direction, so steps stay small where
# the loss is steep. That is all that is needed against explosion. What vanishes is the part of the
# gradient that comes from distant steps; it is summed with the part from near steps, which is as
# large as before. Scaling up the sum scales both: the distant part stays the same small fraction.
# The steps would only get larger in the direction that the near part gives.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## What the LSTM carries
#
# On the direct path from one cell state to the next there is only the factor `f`, the forget gate.
# Here are the gradients of four LSTMs with 16 cells and the same initial weights. They differ in
# the bias of that gate.


# %%
def initial_lstm(forget_bias, input_size=4, hidden_size=16):
    """Initial weights of an LSTM, with a fixed seed."""
    rng = np.random.default_rng(0)
    limit = hidden_size**-0.5
    w_x = rng.uniform(-limit, limit, (input_size, 4 * hidden_size))
    w_h = rng.uniform(-limit, limit, (hidden_size, 4 * hidden_size))
    return w_x, w_h, np.repeat([0.0, forget_bias, 0.0, 0.0], hidden_size)


def lstm_norms(forget_bias, steps=60):
    """The norm of dh_T / dh_t by distance."""
    x = np.random.default_rng(1).normal(size=(steps, 4))
    state = np.zeros(16), np.zeros(16)
    return gradient_norms_through_time("lstm", x, state, initial_lstm(forget_bias))[::-1]


by_bias = {bias: lstm_norms(float(bias)) for bias in (0, 1, 3, 5)}
draw_norms(**{f"forget_bias_{bias}": norms for bias, norms in by_bias.items()})
print("forget bias 5:", by_bias[5][:6].round(3), "...")

# %% [raw]
# # BEGIN QUESTION
# name: q6
# points: 2

# %% [markdown]
# **Question 6.** Consider the cell alone, and let `f` be the sigmoid of its bias at every step.
# Which bias leaves half of a cell's gradient after 1,000 steps? An error of 0.01 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q6_bias = -float(np.log(2 ** (1 / 1000) - 1))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q6_bias > 0, "a gate that is nearly open has a positive bias"

# %%
# HIDDEN
assert abs(q6_bias - 7.274) <= 0.01

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 1

# %% [markdown]
# **Question 7.** With a forget bias of 5, the gradient loses most in the very first step back, from
# 1 to the second number that is printed. In the following steps it loses little. (It rises later
# for a different reason: many paths through the gates add up.) Why?
#
# - `"a"`: the forget gate is closed at the last step.
# - `"b"`: only the cell is carried. A change of `h` enters the cell through weights and gates once,
#   and is then kept there.
# - `"c"`: tanh is saturated, which removes most of any gradient.
# - `"d"`: the gradient has been clipped.

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_why = "b"  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q7_why in ("a", "b", "c", "d"), "one of the four letters"

# %%
# HIDDEN
assert q7_why == "b"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## A character-level language model
#
# Now the plays: the first 200,000 characters, 64 cells, 150 updates. The initial weights are fixed
# and everything is computed in float64, so your code and the stand-in train the same model. It
# takes less than a minute.

# %%
answered(q6_bias=q6_bias, q7_why=q7_why)
plays = load_shakespeare()
ids = plays.encode(plays.train[:200_000])
held_out = plays.encode(plays.validation[:10_000])


def initial_parameters(vocab_size, embedding_size=32, hidden_size=64):
    """The initial parameters of a CharLM, with a fixed seed."""
    rng = np.random.default_rng(0)
    limit = hidden_size**-0.5
    return {
        "embedding": rng.normal(size=(vocab_size, embedding_size)),
        "w_x": rng.uniform(-limit, limit, (embedding_size, 4 * hidden_size)),
        "w_h": rng.uniform(-limit, limit, (hidden_size, 4 * hidden_size)),
        "b": np.repeat([0.0, 1.0, 0.0, 0.0], hidden_size),
        "w_out": rng.uniform(-limit, limit, (hidden_size, vocab_size)),
        "b_out": np.zeros(vocab_size),
    }


vocab_size = len(plays.vocabulary)
model = CharLM(np.random.default_rng(0), vocab_size, 32, 64, "float64")
model.parameters = initial_parameters(vocab_size)
config = SimpleNamespace(
    steps=150, batch_size=32, context_length=32, learning_rate=0.02, decay=0.9975, max_norm=1.0
)
history = train(model, ids, config)
updates = np.arange(1, config.steps + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6))
left.plot(updates, np.array(history["loss"]) / np.log(2))
left.set(xlabel="update", ylabel="bits per character")
right.plot(updates, history["norm"])
right.axhline(config.max_norm, color="gray", linestyle=":")
right.set(xlabel="update", ylabel="norm before clipping")
right.set_title("dotted: max_norm", fontsize=9)
plt.tight_layout()
plt.show()
bits = bits_per_character(model, held_out)
print(f"on held-out plays: {bits:.2f} bits per character, a perplexity of {2**bits:.1f}")

# %% [markdown]
# Is that good? Guessing among 70 characters takes 6.1 bits. The simplest model that uses any
# context is a **bigram model**, a table of counts: `bigrams[a, b]` is how often `b` follows `a`,
# and `firsts[a]` how often `a` comes first. Its surprisal at a bigram is the logarithm, to base 2,
# of `firsts[a] / bigrams[a, b]`. Dark means frequent: find "th" and "qu" in the picture.

# %%
answered(q6_bias=q6_bias, q7_why=q7_why)
bigrams = np.zeros((vocab_size, vocab_size))
np.add.at(bigrams, (ids[:-1], ids[1:]), 1)
firsts = np.maximum(bigrams.sum(axis=1, keepdims=True), 1)  # (70, 1); 1 if it never occurs
letters = plays.encode("abcdefghijklmnopqrstuvwxyz ")
plt.figure(figsize=(5, 5))
plt.imshow((bigrams / firsts)[np.ix_(letters, letters)] ** 0.5, cmap="Greys")
plt.xticks(range(27), "abcdefghijklmnopqrstuvwxyz_")
plt.yticks(range(27), "abcdefghijklmnopqrstuvwxyz_")
plt.ylabel("character")
plt.xlabel("next character (_ is a space)")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** How many bits per character does the bigram model need on the `ids` from which it
# is counted? That is its mean surprisal over all 199,999 bigrams. An error of 0.01 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_bits = (bigrams * np.log2(firsts / np.maximum(bigrams, 1))).sum() / bigrams.sum()  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 < q8_bits < 6.2, "a number of bits"

# %%
# HIDDEN
assert abs(q8_bits - 3.4923) <= 0.01

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# For sampling, the logits are divided by a temperature before the softmax. Here are the model's
# probabilities of the character after "CLEOPATR" and "the " at three temperatures. Whole samples
# follow.

# %%
answered(q8_bits=q8_bits)
NAMES = {"\n": "newline", " ": "space"}


def probabilities(text, temperature):
    """The probability of each character after a text."""
    logits = model.forward(plays.encode(text)[None])[0][0, -1] / temperature
    p = np.exp(logits - logits.max())
    return p / p.sum()


def draw_probabilities(tenths):
    """The ten most likely characters after two texts, at a temperature in tenths."""
    axes = plt.subplots(1, 2, figsize=(9, 2))[1]
    axes[0].set_ylabel("probability")
    for axis, text in zip(axes, ("CLEOPATR", "the "), strict=True):
        top = np.argsort(-probabilities(text, 1.0))[:10]
        labels = [NAMES.get(plays.vocabulary[k], plays.vocabulary[k]) for k in top]
        axis.bar(labels, probabilities(text, tenths / 10)[top])
        axis.set(ylim=(0, 1))
        axis.set_title(f"after {text!r}, temperature {tenths / 10:g}", fontsize=9)
    plt.show()


for tenths in (5, 10, 20):
    draw_probabilities(tenths)
slide(draw_probabilities, tenths=(1, 30))

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** Two characters have the logits 3 and 1. At which temperature is the first one 10
# times as likely as the second? An error of 0.01 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_temperature = 2 / float(np.log(10))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q9_temperature > 0, "a temperature above 0"

# %%
assert abs(np.exp(2 / q9_temperature) - 10) < 0.3, (
    "the ratio of the probabilities is exp((3 - 1) / T)"
)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q9_temperature=q9_temperature)
prompt = plays.encode("CLEOPATRA:\n")
for temperature in (0.3, 0.7, 1.0, 1.5):
    sampled = sample(model, prompt, 250, temperature, np.random.default_rng(0))
    print(f"temperature {temperature}\n{'-' * 60}\n{plays.decode(sampled)}\n")

# %% [markdown]
# At temperature 0, sampling is **greedy**: it always takes the most likely character. Then nothing
# leads out of a loop, and after a few words this model repeats itself.

# %%
answered(q9_temperature=q9_temperature)
greedy = plays.decode(sample(model, prompt, 600, 0, np.random.default_rng(0)))
print(greedy)

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** At its end, `greedy` repeats itself: from some position on, each character equals
# the one `q10_period` characters earlier. What is the smallest such number?

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_period = next(k for k in range(1, 300) if greedy[-2 * k :] == 2 * greedy[-k:])  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_period == int(q10_period) and q10_period > 0, "a whole number of characters"

# %%
repeated = greedy[-150 - q10_period : -q10_period]
assert greedy[-150:] == repeated, "the last 150 characters don't repeat with this period"

# %%
# HIDDEN
assert q10_period == 10

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
# **Question 11.** Read the samples again. What gets better and what gets worse as the temperature
# rises? Temperature 0 takes the most likely character at each step: why doesn't that give the best
# text? Which temperature would you choose? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# At low temperatures words are correct but dull, and they repeat; at high temperatures there is
# more variety, and more and more words don't exist. At temperature 0 each character is likely given
# the previous ones, but the text as a whole is nothing that anyone would write: real texts contain
# a surprise every few characters, and a text without any ends in a loop. Between about 0.5 and 0.8
# most words are correct and the text doesn't repeat.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
