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
# # Lab 7: sampling, scaling and timing
#
# Here you look at three things that come after the model is written. How the next token is drawn.
# What a larger model and more text are worth. And how to measure what all of it costs without
# fooling yourself. It takes about an hour, and nothing is trained.
#
# - Put your answers in place of the three dots, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_temperature`, ...), and run everything once more from the
#   top before you submit. Questions 5 and 11 ask for a few sentences, which people read.
# - The lab runs on your own `next_probabilities`, or on a stand-in as long as yours isn't
#   finished. The next cell says which. After a change of `sampling.py`, restart the kernel. When
#   the lab is graded, it runs on the stand-in, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import time
from collections import Counter
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from common.labs import answered, own_or_standin, slide


def try_sampling(code):
    """Probabilities of four tokens in four settings."""
    logits = torch.tensor([0.5, 2.0, -1.0, 1.0], dtype=torch.float64)
    settings = ({}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.8})
    return torch.stack([code(logits, **setting) for setting in settings])


next_probabilities = own_or_standin("a7_minigpt.sampling", "next_probabilities", try_sampling)

# %% [markdown]
# ## Sampling
#
# Two places in a text, with made-up numbers. After `th` a model is fairly sure how to go on: eight
# characters, most of all an `e`. After a full stop and a space it is not: any of twenty letters
# may begin the next sentence, all equally likely.

# %%
SURE = {"e": 0.60, "a": 0.15, "i": 0.09, "o": 0.06, " ": 0.04, "r": 0.03, "y": 0.02, "u": 0.01}
UNSURE = dict.fromkeys("ABCDEFGHIKLMNOPRSTWY", 0.05)


def probabilities(place, **setting):
    """What is drawn from at such a place, with temperature, top_k or top_p set."""
    logits = torch.tensor(list(place.values()), dtype=torch.float64).log()
    return np.asarray(next_probabilities(logits, **setting))


def draw_settings(place, settings):
    """The probabilities of a place in several settings, side by side."""
    _, axes = plt.subplots(1, len(settings), figsize=(12, 2.4), sharey=True)
    for axis, setting in zip(axes, settings, strict=True):
        axis.bar(range(len(place)), probabilities(place, **setting))
        names = [repr(c) if c == " " else c for c in place]
        axis.set_xticks(range(len(place)), names, fontsize=9 if len(place) < 10 else 7)
        axis.set_title(", ".join(f"{name} {value}" for name, value in setting.items()))
    axes[0].set_ylabel("probability")
    plt.show()


draw_settings(SURE, [{"temperature": t} for t in (0.3, 0.7, 1.0, 2.0, 10.0)])

# %% [markdown]
# A temperature divides the logits. So it takes each probability to the power of 1 / temperature,
# and scales them to a sum of 1 again.

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 1

# %% [markdown]
# **Question 1.** At temperature 1, `e` is 4 times as likely as `a`. At which temperature is it
# only twice as likely?

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_temperature = 2  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q1_temperature > 0, "a temperature above 0"

# %%
assert abs(4 ** (1 / q1_temperature) - 2) < 0.007, "a ratio r becomes r ** (1 / temperature)"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# How much choice is left? The entropy says, $H = -\sum p \ln p$, and $e^H$ is easier to read: it
# is the number of equally likely tokens that would leave as much choice.

# %%
answered(q1_temperature=q1_temperature)


def choices(p):
    """The number of equally likely tokens that leave as much choice as p."""
    p = p[p > 0]
    return float(np.exp(-(p * np.log(p)).sum()))


temperatures = np.geomspace(0.1, 30, 60)
plt.figure(figsize=(6, 2.6))
for place, name in ((SURE, "after th"), (UNSURE, "after a full stop")):
    curve = [choices(probabilities(place, temperature=float(t))) for t in temperatures]
    plt.semilogx(temperatures, curve, label=name)
plt.xlabel("temperature")
plt.ylabel("choices")
plt.legend()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** How many choices are there after `th` at temperature 1? An error of 0.01 is
# allowed. Then look at where the two curves go, on the left and on the right, and say to yourself
# why one of them is level.

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_choices = choices(np.array(list(SURE.values())))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 1 < q2_choices < 8, "between one token and all eight"

# %%
assert abs(np.log(q2_choices) - 1.3348) < 0.004, "e to the power of the entropy, with ln"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Temperature leaves every token a chance. Over some thousand characters, each unlikely one comes
# up now and then, and one odd character is enough to lead a model astray. Top-k and top-p cut them
# off.

# %%
answered(q2_choices=q2_choices)
cuts = [{"top_k": 2}, {"top_k": 4}, {"top_p": 0.5}, {"top_p": 0.88}]
for place in (SURE, UNSURE):
    draw_settings(place, cuts)

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** How many tokens does top-p 0.88 keep after `th`, and how many after a full stop?
# A tuple of two numbers. (Add up by hand, or count bars.)

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_kept = (4, 18)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert len(q3_kept) == 2, "two numbers"

# %%
assert q3_kept[0] == (probabilities(SURE, top_p=0.88) > 0).sum(), "the one that reaches p stays"

# %%
assert q3_kept[1] == (probabilities(UNSURE, top_p=0.88) > 0).sum(), "each adds 0.05"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The order matters. First comes the temperature, then the cut.

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** How many tokens does top-p 0.88 keep after `th` at temperature 1.5? And think:
# how many would top-k 4 keep?

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_hot = int((probabilities(SURE, temperature=1.5, top_p=0.88) > 0).sum())  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q4_hot in range(1, 9), "from one to all eight"

# %%
# HIDDEN
assert q4_hot == 6

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Now a whole text. This is no network: it counts, in Shakespeare's plays, which character follows
# each four. Its counts are the probabilities that your settings work on. Move the sliders (the
# first text takes some seconds). `tenths` is the temperature in tenths, and `top_p` is in percent.

# %%
answered(q3_kept=q3_kept, q4_hot=q4_hot)
counts = {}


def count_followers(text, width=4):
    """For each run of four characters, how often each character follows it."""
    for place in range(len(text) - width):
        followers = counts.setdefault(text[place : place + width], Counter())
        followers[text[place + width]] += 1


def write(tenths, top_p, seed):
    """Write 400 characters at a temperature of so many tenths."""
    if not counts:
        from common.data import load_shakespeare

        count_followers(load_shakespeare().train[:1_000_000])
    rng, text = np.random.default_rng(seed), "The "
    while len(text) < 400:
        followers = counts.get(text[-4:]) or Counter(" ")
        logits = torch.tensor([*followers.values()], dtype=torch.float64).log()
        # First the temperature, then the cut: two calls, one setting each.
        warm = next_probabilities(logits, temperature=tenths / 10)
        p = np.asarray(next_probabilities(warm.log(), top_p=top_p / 100))
        text += rng.choice(list(followers), p=p / p.sum())
    print(text)


slide(write, tenths=(1, 30), top_p=(10, 100), seed=(0, 9))

# %% [raw]
# # BEGIN QUESTION
# name: q5
# manual: true
# points: 2

# %% [markdown]
# **Question 5.** Try a low and a high temperature, each with `top_p` 100 and with 50 or so. What
# goes wrong with a low temperature, what with a high one, and what does a cut mend? Which setting
# do you like best? Then say, from question 3, why top-p suits both places above and no single
# top-k does. Four to six sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# With a low temperature the likeliest character always wins, and the text runs in circles. With a
# high one every character that ever followed is about as likely as any other, and words fall
# apart. A cut takes the rare followers away, so that a temperature near 1 stays readable. I like
# temperature 1 with top-p 70. After th four characters hold most of the chance, after a full stop
# eighteen do. A top-k of 4 would forbid most beginnings of a sentence, one of 18 would cut nothing
# after th. Top-p follows how sure the model is.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Scaling
#
# A run from the handout: the mini-GPT with 810,496 weights, its validation loss after so many
# tokens. Both axes are logarithmic: there a power law, loss = c * tokens^slope, is a straight
# line.

# %%
tokens = np.array([102_400, 409_600, 819_200, 1_228_800])
losses = np.array([2.706, 2.343, 2.106, 1.970])

plt.figure(figsize=(6, 2.8))
plt.loglog(tokens, losses, "o-")
plt.minorticks_off()
plt.yticks((2.0, 2.2, 2.4, 2.6), ("2.0", "2.2", "2.4", "2.6"))
plt.xlabel("tokens")
plt.ylabel("validation loss")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q6
# points: 1

# %% [markdown]
# **Question 6.** Fit a straight line through the four points in this plot, by least squares on
# $\ln$ loss against $\ln$ tokens (`np.polyfit` does it). What is its slope? An error of 0.005 is
# allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q6_slope = np.polyfit(np.log(tokens), np.log(losses), 1)[0]  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q6_slope < 0, "more tokens, less loss"

# %%
assert abs(q6_slope + 0.1262) < 0.005, "logarithms on both axes"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q6_slope=q6_slope)
start = np.log(losses).mean() - q6_slope * np.log(tokens).mean()
far = np.geomspace(1e5, 1e12, 50)
plt.figure(figsize=(6, 2.8))
plt.loglog(tokens, losses, "o")
plt.loglog(far, np.exp(start + q6_slope * np.log(far)), "--")
plt.minorticks_off()
plt.yticks((0.4, 1, 2), ("0.4", "1", "2"))
plt.xlabel("tokens")
plt.ylabel("loss, if the line went on")
plt.show()

# %% [markdown]
# The line goes to 0, and a loss can't: even a perfect model doesn't know which of two good words
# an author took. And these four points come from one run, whose learning rate falls towards its
# end. So four points on a line are no law yet.
#
# Hoffmann and others (2022) trained more than 400 models, and fitted $L = 1.69 + 406.4 / N^{0.34}
# + 410.7 / D^{0.28}$, for $N$ weights and $D$ tokens. The first number is what no model gets
# below. Training costs about $C = 6 N D$ FLOPs: two for each weight and token forward, four
# backward.


# %%
def fitted_loss(weights, tokens):
    """The loss by that formula."""
    return 1.69 + 406.4 / weights**0.34 + 410.7 / tokens**0.28


sizes = np.geomspace(1e7, 1e12, 200)
plt.figure(figsize=(6, 3.2))
for budget in (1e19, 1e20, 1e21, 1e22, 1e23):
    plt.loglog(sizes, fitted_loss(sizes, budget / (6 * sizes)), label=f"{budget:.0e} FLOPs")
plt.xlabel("weights")
plt.ylabel("loss by the formula")
plt.ylim(1.8, 6)
plt.minorticks_off()
plt.yticks((2, 3, 4, 5, 6), "23456")
plt.legend(fontsize=8)
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 1

# %% [markdown]
# **Question 7.** First count. The dense layers of a block of width $d$ (queries, keys and values;
# out; both layers of the MLP) have $12 d^2$ weights, and each is used once for each token. Scores
# and weighted sums take more FLOPs the longer the context is, every place with all places. At
# which context do these two take as many FLOPs for a token as the dense layers do, if the width is
# 128?

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_context = 6 * 128  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q7_context == int(q7_context) and q7_context > 0, "a number of tokens"

# %%
# HIDDEN
assert q7_context == 768

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** By the formula of Hoffmann and others:
#
# - How many times as many weights does it take to halve the part that hangs on $N$, `q8_times`?
# - With a budget of $10^{21}$ FLOPs, how many weights give the lowest loss, `q8_best`? Each curve
#   above has a lowest point: too small a model learns too little, too large a one has seen too
#   little.
#
# An error of 1 % is allowed in the first, of 10 % in the second.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_times = 2 ** (1 / 0.34)  # SOLUTION
q8_best = sizes[fitted_loss(sizes, 1e21 / (6 * sizes)).argmin()]  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
# An error of 1 % becomes one of 0.34 % in that power.
assert abs(q8_times**0.34 / 2 - 1) < 0.00342, "x ** 0.34 must be 2"

# %%
assert 1e7 < q8_best < 1e12, "in the range of the plot"

# %%
# HIDDEN
assert 1.64e9 < q8_best < 2.01e9

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The formula is one of three ways in which that paper answers the question. The other two say:
# about 20 tokens for each weight. Their Chinchilla has 70 billion weights and saw 1.4 trillion
# tokens. The formula asks for fewer weights and more tokens than that rule, the more so the larger
# the budget. Others who fitted it again (Besiroglu and others, 2024) came closer to the rule. So
# even more than 400 models leave room for doubt.
#
# ## Timing
#
# Now the clock. Each call of a function is timed by itself, from the very first on, on one thread.
# On a quiet machine the first dot is the highest: the first call finds nothing in the processor's
# caches, and much is set up that later calls find ready. On a busy one, other dots stand out too.
# Run the cell again: how high is the first dot now?

# %%
answered(q7_context=q7_context, q8_times=q8_times, q8_best=q8_best)


def every_call(function, calls):
    """The milliseconds of each call."""
    found = []
    for _ in range(calls):
        start = time.perf_counter()
        function()
        found.append(1000 * (time.perf_counter() - start))
    return found


torch.set_num_threads(1)  # several would wait for each other, the longer the busier the machine
matrix = torch.randn(256, 256)
plt.figure(figsize=(6, 2.4))
plt.semilogy(every_call(lambda: matrix @ matrix, 60), ".")
plt.xlabel("call")
plt.ylabel("ms")
plt.show()

# %% [markdown]
# Eight times of another function, which don't change when you run the cell. In the seventh, the
# machine had something else to do.

# %%
times = [9.1, 2.0, 2.1, 2.0, 2.2, 2.1, 30.5, 2.0]

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** What is the mean of all eight (`q9_mean`)? And what is the median of those that
# are left when the first call counts as warm-up (`q9_median`)? See which of the two says how long
# a call takes.

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_mean = np.mean(times)  # SOLUTION
q9_median = np.median(times[1:])  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q9_mean - 6.5) < 0.01, "the sum, divided by eight"

# %%
assert abs(q9_median - 2.1) < 0.001, "sort the other seven: the one in the middle"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Last, attention by length, with logarithmic axes: once written out with its matrix of scores,
# once fused. The dashed line has the slope 2: twice the length, four times as long.

# %%
answered(q9_mean=q9_mean, q9_median=q9_median)


def written_out(q, k, v):
    """Attention with its scores as a matrix, without a mask."""
    return (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


lengths = [16, 32, 64, 128, 256, 512, 1024]
curves = {written_out: [], F.scaled_dot_product_attention: []}
for places in lengths:
    q, k, v = torch.randn(3, 1, 4, places, 32)
    for attention, curve in curves.items():
        curve.append(np.median(every_call(partial(attention, q, k, v), 12)[2:]))

plt.figure(figsize=(6, 3.2))
for curve, name in zip(curves.values(), ("written out", "fused"), strict=True):
    plt.loglog(lengths, curve, "o-", label=name)
top = curves[written_out][-1]
plt.loglog(lengths, [top * (length / 1024) ** 2 for length in lengths], "--", label="slope 2")
plt.xlabel("length")
plt.ylabel("ms, median of 10")
plt.legend()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** How many bytes do the scores of 4 heads take, for one sequence of 4096 tokens in
# float32 (`q10_bytes`)? And how many times as many multiplications does attention need for 3000
# tokens as for 1000 (`q10_times`)?

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_bytes = 4 * 4096 * 4096 * 4  # SOLUTION
q10_times = 9  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_bytes > 1e8, "for each head a matrix with a row and a column for every token"

# %%
assert q10_bytes == 4 * 4 * 4096**2, "heads, times scores, times 4 bytes"

# %%
assert q10_times > 1, "more"

# %%
# HIDDEN
assert q10_times == 9

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
# **Question 11.** Where does your curve follow the dashed line, and where not? Say what a short
# sequence spends its time on. Then: a friend times one call of each of two functions, once, and
# finds the second faster by 10 %. What would you ask for before you believe it? Three to six
# sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# From a few hundred tokens on the curve is about as steep as the line. Below, it is nearly level:
# each call costs some microseconds before anything is multiplied, and small products don't keep
# the processor busy. Of the friend I would want some warm-up calls that don't count, many repeats
# in turns, and the median with its spread: a difference of 10 % is none if single calls differ by
# more. On a GPU I would ask whether the clock waited for the work to be done.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
