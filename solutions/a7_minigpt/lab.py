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
# This lab is about three things that come after the model: how the next token is drawn, what more
# parameters and more text are worth, and how to measure time without fooling yourself. It takes
# about an hour, and nothing is trained.
#
# - Replace the three dots in each answer, and run the cell below it: it checks the form, and some
#   of the values. Hidden tests decide the others.
# - Keep the names of the answers (`q1_temperature`, ...), and run everything again from the top
#   before you submit. Questions 5 and 11 ask for a few sentences, which are graded by the staff.
# - The lab runs on your own `next_probabilities`, or on a stand-in until yours is finished. The
#   next cell prints which. After a change to `sampling.py`, restart the kernel. When the lab is
#   graded, it runs on the stand-in, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the folder with assignments/ and common/

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
# Two contexts, with made-up probabilities. After `th` a model is fairly sure: eight characters are
# possible, and `e` is by far the most likely. After a period and a space it isn't: any of twenty
# letters may start the next sentence, all equally likely.

# %%
SURE = {"e": 0.60, "a": 0.15, "i": 0.09, "o": 0.06, " ": 0.04, "r": 0.03, "y": 0.02, "u": 0.01}
UNSURE = dict.fromkeys("ABCDEFGHIKLMNOPRSTWY", 0.05)


def probabilities(context, **setting):
    """The probabilities in a context, with temperature, top_k or top_p set."""
    logits = torch.tensor(list(context.values()), dtype=torch.float64).log()
    return np.asarray(next_probabilities(logits, **setting))


def draw_settings(context, settings):
    """The probabilities in a context with several settings, side by side."""
    _, axes = plt.subplots(1, len(settings), figsize=(12, 2.4), sharey=True)
    for axis, setting in zip(axes, settings, strict=True):
        axis.bar(range(len(context)), probabilities(context, **setting))
        names = [repr(c) if c == " " else c for c in context]
        axis.set_xticks(range(len(context)), names, fontsize=9 if len(context) < 10 else 7)
        axis.set_title(", ".join(f"{name} {value}" for name, value in setting.items()))
    axes[0].set_ylabel("probability")
    plt.show()


draw_settings(SURE, [{"temperature": t} for t in (0.3, 0.7, 1.0, 2.0, 10.0)])

# %% [markdown]
# A temperature divides the logits. So it raises each probability to the power of 1 / temperature,
# and rescales them to a sum of 1.

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
# How uncertain is the next token? The entropy measures it, $H = -\sum p \ln p$. The **perplexity**
# $e^H$ is easier to read: it is the number of equally likely tokens with the same entropy. (The
# perplexity of a language model on a text is $e^{\mathrm{loss}}$, in the same sense: a loss of 1.67
# is a perplexity of 5.3 characters.)

# %%
answered(q1_temperature=q1_temperature)


def perplexity(p):
    """The number of equally likely tokens that have the entropy of p."""
    p = p[p > 0]
    return float(np.exp(-(p * np.log(p)).sum()))


temperatures = np.geomspace(0.1, 30, 60)
plt.figure(figsize=(6, 2.6))
for context, name in ((SURE, "after th"), (UNSURE, "after a period")):
    curve = [perplexity(probabilities(context, temperature=float(t))) for t in temperatures]
    plt.semilogx(temperatures, curve, label=name)
plt.xlabel("temperature")
plt.ylabel("perplexity")
plt.legend()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** What is the perplexity after `th` at temperature 1? An error of 0.01 is allowed.
# Then look at both ends of the two curves, and explain to yourself why one of them is constant.

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_perplexity = perplexity(np.array(list(SURE.values())))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 1 < q2_perplexity < 8, "between one token and all eight"

# %%
assert abs(np.log(q2_perplexity) - 1.3348) < 0.004, "e to the power of the entropy, with ln"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# At any temperature above 0, every token has some probability. Over some thousand characters, each
# unlikely one is drawn now and then, and one wrong character is enough to lead a model astray.
# Top-k and top-p (nucleus sampling, Holtzman et al., 2020) remove them.

# %%
answered(q2_perplexity=q2_perplexity)
cuts = [{"top_k": 2}, {"top_k": 4}, {"top_p": 0.5}, {"top_p": 0.88}]
for context in (SURE, UNSURE):
    draw_settings(context, cuts)

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** How many tokens does top-p 0.88 keep after `th`, and how many after a period?
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
assert q3_kept[0] == (probabilities(SURE, top_p=0.88) > 0).sum(), "the one that reaches p is kept"

# %%
assert q3_kept[1] == (probabilities(UNSURE, top_p=0.88) > 0).sum(), "each adds 0.05"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The order matters. The temperature comes first, then the cut.

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** How many tokens does top-p 0.88 keep after `th` at temperature 1.5? (And how many
# would top-k 4 keep?)

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
# Now a whole text. This isn't a network but a 5-gram model: it counts in Shakespeare's plays which
# character follows each sequence of four. Your settings are applied to these counts. Move the
# sliders (the first text takes some seconds). `tenths` is the temperature in tenths, and `top_p` is
# in percent.

# %%
answered(q3_kept=q3_kept, q4_hot=q4_hot)
counts = {}


def count_followers(text, n=4):
    """For each sequence of n characters, how often each character follows it."""
    for start in range(len(text) - n):
        followers = counts.setdefault(text[start : start + n], Counter())
        followers[text[start + n]] += 1


def write(tenths, top_p, seed):
    """Write 400 characters at a temperature in tenths."""
    if not counts:
        from common.data import load_shakespeare

        count_followers(load_shakespeare().train[:1_000_000])
    rng, text = np.random.default_rng(seed), "The "
    while len(text) < 400:
        followers = counts.get(text[-4:]) or Counter(" ")
        logits = torch.tensor([*followers.values()], dtype=torch.float64).log()
        # The temperature, then the cut: two calls, one setting each.
        p = next_probabilities(logits, temperature=tenths / 10)
        p = np.asarray(next_probabilities(p.log(), top_p=top_p / 100))
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
# goes wrong at a low temperature, what at a high one, and what does a cut fix? Which setting do you
# like best? Then explain with question 3 why top-p suits both contexts above and no single top-k
# does. Four to six sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# At a low temperature the most likely character always wins, and the text repeats itself. At a high
# one every character that ever followed is about as likely as any other, and words fall apart. A
# cut removes the rare followers, so that a temperature near 1 stays readable. I like temperature 1
# with top-p 70. After th four characters hold most of the probability, after a period eighteen
# do. A top-k of 4 would forbid most starts of a sentence, one of 18 would cut nothing after th.
# Top-p adapts to how sure the model is.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Scaling
#
# A run from the handout: the validation loss of the mini-GPT with 810,496 parameters against the
# number of training tokens. Both axes are logarithmic, so a power law, loss = c * tokens^slope, is
# a straight line.

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
assert q6_slope < 0, "more tokens, lower loss"

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
plt.ylabel("extrapolated loss")
plt.show()

# %% [markdown]
# The line goes to 0, but a loss can't: even a perfect model doesn't know which of two good words an
# author chose. And these four points come from one run, whose learning rate decays toward its end.
# Four points on a line aren't a scaling law.
#
# Hoffmann et al. (2022) trained more than 400 models, and fitted $L = 1.69 + 406.4 / N^{0.34} +
# 410.7 / D^{0.28}$, for $N$ parameters and $D$ tokens. The first number is the irreducible loss.
# Training costs about $C = 6 N D$ FLOPs: two for each parameter and token forward, four backward.
#
# How large are known models? The handout's formula counts the parameters of a GPT from its sizes.
# Before you run the cell, guess by what factor training GPT-3 took more FLOPs than training a model
# of 110 million parameters on 10 billion tokens.

# %%
# vocab_size, context_length, num_layers, d_model
MODELS = {
    "mini-GPT": (70, 64, 4, 128),
    "GPT-2": (50_257, 1024, 12, 768),
    "GPT-2 XL": (50_257, 1024, 48, 1600),
    "GPT-3": (50_257, 2048, 96, 12_288),
}


def count_parameters(vocab_size, context_length, num_layers, d_model):
    """The parameters of a GPT with tied embeddings."""
    block = 12 * d_model**2 + 13 * d_model
    return (vocab_size + context_length) * d_model + num_layers * block + 2 * d_model


for name, model_sizes in MODELS.items():
    *_, num_layers, d_model = model_sizes
    n = count_parameters(*model_sizes)
    in_matrices = num_layers * 12 * d_model**2 / n
    print(f"{name:9} {n:15,} parameters, {in_matrices:5.1%} in the matrices of its blocks")
    print(f"{'':9} {2 * n:15.2g} FLOPs for a token forward, {6 * n:.2g} in training")

print(f"GPT-3 on 300 billion tokens: {6 * count_parameters(*MODELS['GPT-3']) * 300e9:.2e} FLOPs")
print(f"110 million parameters on 10 billion tokens: {6 * 110e6 * 10e9:.2e} FLOPs")

# %% [markdown]
# Now the fitted loss, for several budgets $C$.


# %%
def fitted_loss(parameters, tokens):
    """The loss by the formula of Hoffmann et al."""
    return 1.69 + 406.4 / parameters**0.34 + 410.7 / tokens**0.28


sizes = np.geomspace(1e7, 1e12, 200)
plt.figure(figsize=(6, 3.2))
for budget in (1e19, 1e20, 1e21, 1e22, 1e23):
    plt.loglog(sizes, fitted_loss(sizes, budget / (6 * sizes)), label=f"{budget:.0e} FLOPs")
plt.xlabel("parameters")
plt.ylabel("fitted loss")
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
# **Question 7.** The linear layers of a block with $d$ = `d_model` (queries, keys and values; the
# output projection; both layers of the MLP) have $12 d^2$ weights, and each is used once for each
# token. Attention scores and weighted sums are computed for all pairs of positions, masked ones
# included, so they take more FLOPs the longer the context is. At which context length do these two
# take as many FLOPs per token as the linear layers, if `d_model` is 128?

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
# **Question 8.** By the formula of Hoffmann et al.:
#
# - How many times as many parameters does it take to halve the part that depends on $N$,
#   `q8_times`?
# - With a budget of $10^{21}$ FLOPs, how many parameters give the lowest loss, `q8_best`? Each
#   curve above has a minimum: too small a model learns too little, too large a one has seen too
#   little.
#
# An error of 1 % is allowed in the first, and of 10 % in the second.

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
# The formula is one of three ways in which that paper answers the question. The other two give
# about 20 tokens per parameter: their Chinchilla has 70 billion parameters and saw 1.4 trillion
# tokens. The formula gives fewer parameters and more tokens than that rule, the more so the larger
# the budget. A second fit of the same data (Besiroglu et al., 2024) is closer to the rule. So even
# more than 400 models leave room for doubt.
#
# ## Fewer bits
#
# Large models are trained in 16 bits, because it saves memory and GPUs have fast units for it.
# There are two formats. Predict each line before you run the cell.

# %%
for dtype in (torch.float16, torch.bfloat16):
    info = torch.finfo(dtype)
    smallest = info.smallest_normal * info.eps
    print(f"{dtype}: from {smallest:.2g} to {info.max:.5g}, with steps of {info.eps:.2g} above 1")
    print(f"    300 * 300 = {(torch.tensor(300, dtype=dtype) ** 2).item():g}")
    gradient = torch.tensor(1e-8)  # a small one, in float32
    scaled = (1024 * gradient).to(dtype)
    print(f"    1e-8 becomes {gradient.to(dtype).item():.2g}, 1024e-8 becomes {scaled.item():.2g}")

# %% [markdown]
# float16 has 5 bits for the exponent: its largest number is 65,504, its smallest is 6e-8, and
# anything below half of that becomes 0. So the loss is multiplied by a large number before
# `backward`, and the gradients are divided by it before the update: **loss scaling** (Micikevicius
# et al., 2018). bfloat16 has the 8 exponent bits of float32 and the same range, but only 2 to 3
# decimal digits. It needs no scaling, which is why exercise 7.5 uses it. With both, the weights
# stay in float32: an update of 0.1 % of a weight would vanish in bfloat16.
#
# ## Timing
#
# Now the clock. Each call of a function is timed separately, including the first, on one thread. On
# an idle machine the first dot is the highest: during the first call, the processor's caches are
# cold, and much is set up that later calls reuse. On a busy one, other dots stand out too. Run the
# cell again: how high is the first dot now?

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


torch.set_num_threads(1)  # several threads wait for each other on a busy machine
matrix = torch.randn(256, 256)
plt.figure(figsize=(6, 2.4))
plt.semilogy(every_call(lambda: matrix @ matrix, 60), ".")
plt.xlabel("call")
plt.ylabel("ms")
plt.show()

# %% [markdown]
# Eight stored times of another function. During the seventh call, the machine was busy with
# something else.

# %%
times = [9.1, 2.0, 2.1, 2.0, 2.2, 2.1, 30.5, 2.0]

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** What is the mean of all eight (`q9_mean`)? And what is the median without the
# first call, which counts as warm-up (`q9_median`)? Which of the two says how long a call takes?

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
# Finally, attention against the length, on logarithmic axes: naive, with its matrix of scores, and
# fused (as in FlashAttention; Dao et al., 2022). The dashed line has slope 2: twice the length
# takes four times as long.

# %%
answered(q9_mean=q9_mean, q9_median=q9_median)


def naive(q, k, v):
    """Unfused attention, without a mask."""
    return (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


lengths = [16, 32, 64, 128, 256, 512, 1024]
curves = {naive: [], F.scaled_dot_product_attention: []}
for n in lengths:
    q, k, v = torch.randn(3, 1, 4, n, 32)
    for attention, curve in curves.items():
        curve.append(np.median(every_call(partial(attention, q, k, v), 12)[2:]))

plt.figure(figsize=(6, 3.2))
for curve, name in zip(curves.values(), ("naive", "fused"), strict=True):
    plt.loglog(lengths, curve, "o-", label=name)
top = curves[naive][-1]
plt.loglog(lengths, [top * (n / 1024) ** 2 for n in lengths], "--", label="slope 2")
plt.xlabel("length")
plt.ylabel("ms, median of 10")
plt.legend()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** How many bytes do the attention scores of 4 heads take, for one sequence of 4096
# tokens in float32 (`q10_bytes`)? And how many times as many multiplications does attention need
# for 3000 tokens as for 1000 (`q10_times`)?

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
# **Question 11.** Where does your curve follow the dashed line, and where doesn't it? Explain what
# a short sequence spends its time on. Then: a friend times one call of each of two functions, and
# finds the second 10 % faster. What would you ask for before you believe it? Three to six
# sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# From a few hundred tokens on, the curve is about as steep as the line. Below, it is nearly flat:
# each call costs some microseconds before anything is multiplied, and small products don't keep the
# processor busy. I would ask the friend for warm-up calls that don't count, many alternating
# repeats, and the median with its spread: a difference of 10 % means nothing if single calls differ
# by more. On a GPU I would ask whether the clock was read after synchronizing.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
