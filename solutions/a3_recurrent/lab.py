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
# Here you look at how far back a recurrent network can learn: when a gradient dies on the way,
# when it blows up, what clipping does about it and what an LSTM does. Then you train a small
# character model, and let it write, cold and hot. It takes about an hour.
#
# - Put your answers in place of the three dots, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_steps`, ...), and run everything once more from the top
#   before you submit. Questions 5 and 11 ask for a few sentences, which people read.
# - The lab runs on your own functions, or on stand-ins as long as yours aren't finished. The next
#   cell says which. After a change of `recurrent.py`, restart the kernel. When the lab is graded,
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
    """Arrays of these shapes, always the same."""
    return tuple(waves[: np.prod(shape)].reshape(shape) for shape in shapes)


def both_norms(norms):
    """The norms of a small RNN and of a small LSTM, in one row."""
    x, h, c = small_weights((4, 3), 2, 2)
    rnn = norms("rnn", x, (h,), small_weights((3, 2), (2, 2), 2))
    lstm = norms("lstm", x, (h, c), small_weights((3, 8), (2, 8), 8))
    return np.concatenate([rnn, lstm])


def small_model(network):
    """A model with few parameters, all of which are set."""
    model = network(np.random.default_rng(0), 5, 3, 2, "float64")
    shapes = {name: np.shape(model.parameters[name]) for name in model.parameters}
    model.parameters.update({name: small_weights(shape)[0] for name, shape in shapes.items()})
    return model


few_ids = np.array([0, 3, 1, 4, 2, 2, 0, 1, 3, 3, 4, 0, 2])
short = SimpleNamespace(
    steps=3, batch=2, window=3, learning_rate=0.1, decay=0.9, max_norm=0.05
)  # as Config
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
    """The norm of dh_T / dh_t for the distances T - t = 0, 1, ..., of an RNN without input."""
    size = len(w_hh)
    weights = np.zeros((1, size)), np.asarray(w_hh, float), np.zeros(size)
    state = (np.full(size, start),)
    return gradient_norms_through_time("rnn", np.zeros((steps, 1)), state, weights)[::-1]


def draw_norms(**curves):
    """Norms against distance, on a logarithmic scale."""
    plt.figure(figsize=(7.5, 3.2))
    for label, norms in curves.items():
        plt.semilogy(norms, label=label.replace("_", " "))
    plt.axhline(1, color="grey", linewidth=0.8, linestyle=":")
    plt.xlabel("distance T - t in steps")
    plt.ylabel("norm of dh_T / dh_t")
    plt.legend(fontsize=8)
    plt.show()


# %% [markdown]
# ## How far a gradient reaches
#
# Take an RNN that rests: no input, and all its states are 0. There tanh has the slope 1, so one
# step back multiplies the gradient with `w_hh` and nothing else. Let `w_hh` be a rotation times a
# number `r`. All its eigenvalues then have the length `r`, which is called its **spectral
# radius**.

# %%
turn = np.linalg.qr(waves[:81].reshape(9, 9))[0]  # a rotation in 9 dimensions
draw_norms(**{f"radius_{r:g}": by_distance(r * turn, 60) for r in (0.7, 0.9, 1.0, 1.1)})

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** With a radius of 0.9, what is the smallest distance at which less than a
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
# Texts like to say that it is the spectral radius that decides. In the long run it does, for a
# network at rest. On the way there a matrix can do other things. Here are two matrices with the
# same radius of 0.85. The second isn't a rotation: it shears.

# %%
answered(q1_steps=q1_steps)
shear = np.array([[0.85, 3.0], [0.0, 0.85]])
for name, matrix in (("rotation", 0.85 * turn), ("shear", shear)):
    print(name, np.abs(np.linalg.eigvals(matrix)).round(3))
draw_norms(rotation=by_distance(0.85 * turn, 60), shear=by_distance(shear, 60))

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 2

# %% [markdown]
# **Question 2.** At which distance is the gradient of the sheared network the largest? A whole
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
# And a radius above 1 need not explode. One unit with the weight 2: at rest each step doubles the
# gradient. But it doesn't stay at rest. Start it at 0.1 and look at its states, and at the gradient
# back from the last of them. (The bend at its far end is the beginning, close to rest, where a step
# still doubles it.)

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
# **Question 3.** The state settles where `h = tanh(2 * h)`. By which factor does one step back
# multiply the gradient there? An error of 0.001 is allowed.

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
assert abs(q3_factor - one_step_back) <= 0.001, "the weight times the slope of tanh at that place"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# With many units things are less simple. The slider sets the radius (in tenths) of a random matrix
# for 32 units, which get no input. At rest, a radius above 1 explodes. A network that was started
# has states away from 0, where tanh is flatter, and its gradient grows much slower, or not at all.
# Below 1 the states die out, and the two curves are nearly the same.

# %%
answered(q3_factor=q3_factor)
noise = np.random.default_rng(0).normal(size=(32, 32)) / np.sqrt(32)


def draw_radius(tenths):
    """Norms of a random network with that radius, at rest and started."""
    matrix = tenths / 10 * noise / np.abs(np.linalg.eigvals(noise)).max()
    draw_norms(at_rest=by_distance(matrix, 60), started=by_distance(matrix, 60, 0.5))


draw_radius(15)
slide(draw_radius, tenths=(5, 40))

# %% [markdown]
# ## Clipping
#
# A gradient that is too long can be cut. The handout multiplies all of it by one factor. Another
# way that one sees in code is to cut each entry by itself. For the gradient (4, 1) and the bound
# 1:

# %%
gradient = np.array([4.0, 1.0])
whole = gradient / np.linalg.norm(gradient)
each = np.clip(gradient, -1, 1)
plt.figure(figsize=(6, 2.4))
for arrow, colour in ((gradient, "lightgrey"), (whole, "tab:blue"), (each, "tab:orange")):
    plt.arrow(0, 0, *arrow, color=colour, width=0.02, length_includes_head=True)
plt.xlim(-0.2, 4.2)
plt.ylim(-0.2, 1.3)
plt.title("grey: gradient; blue: all by one factor; orange: each entry by itself", fontsize=9)
plt.gca().set_aspect("equal")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** By how many degrees does the orange way turn the gradient? An error of 0.1 is
# allowed.

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
assert abs(np.cos(np.radians(q4_degrees)) - whole @ each / np.sqrt(2)) < 1e-3, "use the arrows"

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
# **Question 5.** Suppose someone says that clipping mends exploding and vanishing gradients. What
# does it do for each of them, and why? What would happen if one made a short gradient longer,
# until it has the norm 1? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# Clipping shortens a gradient that has become too long, and keeps its direction. So a step stays
# small where the loss is steep, which is all that one needs there. A gradient that vanishes is the
# part that comes from far away, and the near part, which is as large as ever, lies on top of it in
# the same sum. Making the sum longer makes both longer: the far part stays as small a share as it
# was. One would only take larger steps into the direction that the near part gives.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## What the LSTM carries
#
# On the straight way from one cell to the next there is only the factor `f`, the forget gate. Here
# are the gradients of four LSTMs with 16 cells and the same fresh weights, but for the bias of that
# gate.


# %%
def fresh_lstm(forget_bias, inputs=4, size=16):
    """Weights of an LSTM, always the same but for the forget bias."""
    rng = np.random.default_rng(0)
    limit = size**-0.5
    w_x = rng.uniform(-limit, limit, (inputs, 4 * size))
    w_h = rng.uniform(-limit, limit, (size, 4 * size))
    return w_x, w_h, np.repeat([0.0, forget_bias, 0.0, 0.0], size)


def lstm_norms(forget_bias, steps=60):
    """The norm of dh_T / dh_t by distance."""
    x = np.random.default_rng(1).normal(size=(steps, 4))
    start = np.zeros(16), np.zeros(16)
    return gradient_norms_through_time("lstm", x, start, fresh_lstm(forget_bias))[::-1]


by_bias = {bias: lstm_norms(float(bias)) for bias in (0, 1, 3, 5)}
draw_norms(**{f"forget_bias_{bias}": norms for bias, norms in by_bias.items()})
print("forget bias 5:", by_bias[5][:6].round(3), "...")

# %% [raw]
# # BEGIN QUESTION
# name: q6
# points: 2

# %% [markdown]
# **Question 6.** Look at the cell alone, and let `f` be the sigmoid of its bias at each step. How
# large must the bias be, if half of a cell's gradient is to be left after 1,000 steps? An error of
# 0.01 is allowed.

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
# **Question 7.** With a forget bias of 5, most of the loss happens in the very first step back,
# from 1 to the second number that is printed. In the steps after it, little is lost. (That
# the curve rises later is another matter: many ways through the gates add up.) Why?
#
# - `"a"`: the forget gate is closed at the last step.
# - `"b"`: only the cell is carried. What is moved in `h` gets into the cell through weights and
#   gates once, and is then kept there.
# - `"c"`: tanh is in its flat part, which takes most of any gradient.
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
# ## A model that writes
#
# Now the plays: the first 200,000 characters, 64 cells, 150 updates. First weights are fixed, and
# all is computed in float64, so that your code and the stand-in come to the same model. It takes
# less than a minute.

# %%
answered(q6_bias=q6_bias, q7_why=q7_why)
plays = load_shakespeare()
ids = plays.encode(plays.train[:200_000])
unread = plays.encode(plays.validation[:10_000])


def first_weights(vocabulary, embedding=32, hidden=64):
    """The first parameters of a CharLM, always the same."""
    rng = np.random.default_rng(0)
    limit = hidden**-0.5
    return {
        "embedding": rng.normal(size=(vocabulary, embedding)),
        "w_x": rng.uniform(-limit, limit, (embedding, 4 * hidden)),
        "w_h": rng.uniform(-limit, limit, (hidden, 4 * hidden)),
        "b": np.repeat([0.0, 1.0, 0.0, 0.0], hidden),
        "w_out": rng.uniform(-limit, limit, (hidden, vocabulary)),
        "b_out": np.zeros(vocabulary),
    }


model = CharLM(np.random.default_rng(0), len(plays.vocabulary), 32, 64, "float64")
model.parameters = first_weights(len(plays.vocabulary))
config = SimpleNamespace(
    steps=150, batch=32, window=32, learning_rate=0.02, decay=0.9975, max_norm=1.0
)
history = train(model, ids, config)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6))
left.plot(np.array(history["loss"]) / np.log(2))
left.set(xlabel="update", ylabel="bits per character")
right.plot(history["norm"])
right.axhline(config.max_norm, color="grey", linestyle=":")
right.set(xlabel="update", ylabel="norm before clipping")
right.set_title("dotted: where clipping begins", fontsize=9)
plt.tight_layout()
plt.show()
print(f"on plays that it hasn't read: {bits_per_character(model, unread):.2f} bits per character")

# %% [markdown]
# Is that good? Guessing among 70 characters takes 6.1 bits. The simplest rival that looks back at
# all is a table of pairs: `pairs[a, b]` is how often `b` follows `a`, and `firsts[a]` how often
# `a` is the first of a pair. Its surprise at such a pair is the logarithm, to the base 2, of
# `firsts[a] / pairs[a, b]`. Dark is often: you can find "th" and "qu" in the picture.

# %%
answered(q6_bias=q6_bias, q7_why=q7_why)
characters = len(plays.vocabulary)
pairs = np.zeros((characters, characters))
np.add.at(pairs, (ids[:-1], ids[1:]), 1)
firsts = np.maximum(pairs.sum(axis=1, keepdims=True), 1)  # (70, 1); 1 for those that never occur
letters = plays.encode("abcdefghijklmnopqrstuvwxyz ")
plt.figure(figsize=(5, 5))
plt.imshow((pairs / firsts)[np.ix_(letters, letters)] ** 0.5, cmap="Greys")
plt.xticks(range(27), "abcdefghijklmnopqrstuvwxyz_")
plt.yticks(range(27), "abcdefghijklmnopqrstuvwxyz_")
plt.ylabel("this character")
plt.xlabel("is followed by (_ is a space)")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** How many bits per character does the table of pairs need, on the same `ids` from
# which it is counted? That is the mean surprise over all 199,999 pairs. An error of 0.01 is
# allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_bits = (pairs * np.log2(firsts / np.maximum(pairs, 1))).sum() / pairs.sum()  # SOLUTION

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
# To write, the logits are divided by a temperature before the softmax. Here is what the model
# thinks may follow "CLEOPATR" and "the ", at three temperatures, and then whole samples.

# %%
answered(q8_bits=q8_bits)
SPOKEN = {"\n": "line", " ": "space"}


def chances(text, temperature):
    """The chance of each character to follow a text."""
    logits = model.forward(plays.encode(text)[None])[0][0, -1] / temperature
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def draw_chances(tenths):
    """The ten likeliest characters after two texts, at a temperature in tenths."""
    axes = plt.subplots(1, 2, figsize=(9, 2))[1]
    axes[0].set_ylabel("chance")
    for axis, text in zip(axes, ("CLEOPATR", "the "), strict=True):
        likely = np.argsort(-chances(text, 1.0))[:10]
        names = [SPOKEN.get(plays.vocabulary[place], plays.vocabulary[place]) for place in likely]
        axis.bar(names, chances(text, tenths / 10)[likely])
        axis.set(ylim=(0, 1))
        axis.set_title(f"after {text!r}, temperature {tenths / 10:g}", fontsize=9)
    plt.show()


for tenths in (5, 10, 20):
    draw_chances(tenths)
slide(draw_chances, tenths=(1, 30))

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
assert abs(np.exp(2 / q9_temperature) - 10) < 0.3, "the ratio of the chances is exp((3 - 1) / T)"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q9_temperature=q9_temperature)
prime = plays.encode("CLEOPATRA:\n")
for temperature in (0.3, 0.7, 1.0, 1.5):
    written = sample(model, prime, 250, temperature, np.random.default_rng(0))
    print(f"temperature {temperature}\n{'-' * 60}\n{plays.decode(written)}\n")

# %% [markdown]
# At temperature 0 nothing is drawn: always the likeliest character. Nothing leads out of a rut
# then, and after a few words this model says again and again what it has said.

# %%
answered(q9_temperature=q9_temperature)
cold = plays.decode(sample(model, prime, 600, 0, np.random.default_rng(0)))
print(cold)

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** At its end, `cold` repeats itself: from some place on, each character is the one
# that came `q10_period` characters before. What is the smallest such number?

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_period = next(k for k in range(1, 300) if cold[-2 * k :] == 2 * cold[-k:])  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_period == int(q10_period) and q10_period > 0, "a whole number of characters"

# %%
assert cold[-150:] == cold[-150 - q10_period : -q10_period], "compare the last 150 characters"

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
# rises? The likeliest character is taken at each step at temperature 0: why doesn't that give the
# best text? Which temperature would you take? Three to five sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# When it is low, words are right and dull, and the same ones come again; when it is high, there is
# more variety, and more and more words that don't exist. At temperature 0 each character is likely
# after those before it, but the text as a whole is nothing that anyone would write: real texts
# hold a surprise every few characters, and a text without any goes in circles. Somewhere between
# 0.5 and 0.8 most words are right and the text still goes on.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
