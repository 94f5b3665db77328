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
# # Lab 4: word alignment, and how much fits into one vector
#
# No network is trained here. You align French words with English ones by counting alone (IBM
# Model 1, fitted with EM), and see what this method can't know. You pack sentences into one vector
# until they can no longer be decoded. Then you examine padding, and compare greedy decoding with
# beam search on a tree. It takes about an hour.
#
# - Replace the three dots with your answers, and run the cell below each: it checks the form, and
#   some of the values. Hidden tests decide the others.
# - Keep the names of the answers (`q1_share`, ...), and rerun everything from the top before you
#   submit. Questions 6 and 11 ask for a few sentences, which are graded by the staff.
# - The lab runs on your own `masked_softmax` if it is correct, and on a stand-in otherwise. The
#   next cell prints which. After a change to `bahdanau.py`, restart the kernel. When the lab is
#   graded, it runs on the stand-in, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import math
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import torch

from common.data.numbers import load_numbers, pad
from common.labs import answered, own_or_standin, slide

masked_softmax = own_or_standin(
    "a4_bahdanau.bahdanau",
    "masked_softmax",
    lambda softmax: softmax(
        torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [False] * 3])
    ),
)
numbers = load_numbers()
pairs = numbers.train
for k in range(4):
    print(pairs.numbers[k])
    print("   ", *pairs.source[k])
    print("   ", *pairs.target[k])

# %% [markdown]
# ## Word alignment
#
# `pairs.source[k]` and `pairs.target[k]` are the tokens of the number `pairs.numbers[k]` in English
# and in French, as lists. Their lengths can differ: English has "and" and commas, and French counts
# seventy as sixty and ten.

# %%
lengths = np.array(
    [
        [len(english), len(french)]
        for english, french in zip(pairs.source, pairs.target, strict=True)
    ]
)
table = np.zeros(lengths.max(axis=0) + 1)
np.add.at(table, (lengths[:, 0], lengths[:, 1]), 1)
plt.figure(figsize=(4.5, 4))
plt.imshow(np.sqrt(table), cmap="Blues", origin="lower")
plt.plot([0, 12], [0, 12], color="gray", linewidth=0.8)
plt.title("dark: many pairs; on the line: equal lengths", fontsize=9)
plt.xlabel("French tokens")
plt.ylabel("English tokens")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** In what fraction of the 8,000 training pairs is the French number **longer** than
# the English one, in tokens? A number from 0 to 1; the tolerance is 0.002.

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_share = np.mean(lengths[:, 1] > lengths[:, 0])  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 <= q1_share <= 1, "a number from 0 to 1, not in percent"

# %%
q1_counted = sum(len(f) > len(e) for e, f in zip(pairs.source, pairs.target, strict=True))
assert abs(q1_share - q1_counted / len(pairs)) <= 0.002, "count the pairs where French is longer"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The data has no alignments: nothing says which word translates which. But "cent" occurs wherever
# "hundred" does. **IBM Model 1** (Brown et al., 1993), twenty years before attention, uses this.
# It assumes that each French word comes from one English word, and `probability[e, f]` is the
# probability that English word `e` gives French word `f`. The alignments are hidden, so it is
# fitted with **expectation-maximization (EM)**:
#
# 1. E-step: for each French word, distribute a weight of 1 over the English words of its sentence,
#    in proportion to `probability`. At first all probabilities are equal.
# 2. M-step: sum the weights of each pair of words over all sentences, and normalize the sums: these
#    are the new probabilities.
#
# Repeat both steps. The weights of a French word sum to 1: a soft alignment, like attention
# weights. The cell uses only the numbers below 1,000. In its plots, dark means a large weight.

# %%
answered(q1_share=q1_share)
small = [k for k, number in enumerate(pairs.numbers) if number < 1000]
english, french = pairs.source_vocabulary, pairs.target_vocabulary


def align(source, target, probability):
    """The weight of each English word (columns) for each French word (rows), both as ids."""
    weights = probability[source][:, target].T
    return weights / weights.sum(axis=1, keepdims=True)


def fit(rounds):
    """The probabilities of IBM Model 1 after this many rounds of EM over the small numbers."""
    probability = np.full((len(english), len(french)), 1 / len(french))
    for _ in range(rounds):
        counts = np.full(probability.shape, 1e-9)
        for k in small:
            source, target = pairs.source_ids[k], pairs.target_ids[k][1:-1]
            weights = align(source, target, probability)  # E-step
            np.add.at(counts, (source[None, :], target[:, None]), weights)
        probability = counts / counts.sum(axis=1, keepdims=True)  # M-step
    return probability


def show_alignment(source, target, probability, axis):
    """A plot of the weights: French words as rows, English words as columns."""
    weights = align(english.encode(source), french.encode(target), probability)
    axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(source)), source, rotation=90, fontsize=8)
    axis.set_yticks(range(len(target)), target, fontsize=8)


fitted = {rounds: fit(rounds) for rounds in (0, 1, 3, 10)}
EXAMPLES = (
    ("seven hundred and ninety -six", "sept cent quatre -vingt -seize"),
    ("two hundred and two", "deux cent deux"),
)
for source, target in EXAMPLES:
    _, panels = plt.subplots(1, 4, figsize=(11, 3))
    for axis, (rounds, probability) in zip(panels, fitted.items(), strict=True):
        show_alignment(source.split(), target.split(), probability, axis)
        axis.set_title(f"rounds of EM: {rounds}", fontsize=9)
    plt.tight_layout()
    plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** Take "two hundred and two" after 10 rounds. The **last** French word is "deux".
# What is the ratio of its weight on the last English "two" to its weight on the first "two"?

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_ratio = 1.0  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q2_ratio - 1) < 1e-6, "both have the same probability: see the last row of the plot"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 2

# %% [markdown]
# **Question 3.** Attention in an encoder-decoder model can put all weight on the right "two". What
# does it have that IBM Model 1 lacks?
#
# - `"a"`: weights that sum to 1.
# - `"b"`: more rounds over the data.
# - `"c"`: keys that depend on a word's context, and a query that depends on the words generated so
#   far.
# - `"d"`: a larger vocabulary, in which the two "two" are different words.

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_lack = "c"  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q3_lack in ("a", "b", "c", "d"), "one of the four letters"

# %%
# HIDDEN
assert q3_lack == "c"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## One vector for the whole sentence
#
# How much can a decoder recover from one vector? Here is an encoder that needs no training. There
# are 30 words. Each has a random vector of `size` numbers for each position, all $+1/\sqrt{size}$
# or $-1/\sqrt{size}$, so its norm is 1. A sentence is the **sum** of the vectors of its words. To
# decode the word at a position, take the dot product with the vector of each of the 30 words for
# that position. The right word scores 1 plus noise, the others only noise. The highest score wins.

# %%
answered(q3_lack=q3_lack)


def read_back(length, size, sentences=40):
    """The fraction of words that are decoded correctly, and the scores of all wrong words."""
    rng = np.random.default_rng([length, size])
    right, wrong = [], []
    for _ in range(sentences):
        codes = rng.choice([-1.0, 1.0], size=(length, 30, size)) / math.sqrt(size)
        words = rng.integers(30, size=length)
        packed = codes[np.arange(length), words].sum(axis=0)  # (size,): the one vector
        scores = codes @ packed  # (length, 30)
        right.extend(scores.argmax(axis=1) == words)
        others = np.arange(30) != words[:, None]
        wrong.extend(scores[others])
    return np.mean(right), np.array(wrong)


plt.figure(figsize=(8, 3.2))
LENGTHS = (1, 2, 4, 8, 16, 32)
for size in (16, 64, 256):
    plt.plot(LENGTHS, [read_back(length, size)[0] for length in LENGTHS], "o-", label=f"{size}")
plt.xscale("log", base=2)
plt.xticks(LENGTHS, LENGTHS)
plt.xlabel("words in the sentence")
plt.ylabel("fraction decoded correctly")
plt.legend(title="size of the vector")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** A sentence of 16 words is packed into a vector of 64 numbers. What is the standard
# deviation of the score of a wrong word? Measure it, or derive it: the score is a sum of 16 dot
# products of independent vectors, and each has variance 1/64. The tolerance is 0.03.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_noise = math.sqrt(16 / 64)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q4_noise - read_back(16, 64)[1].std()) <= 0.03, "read_back returns the scores"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q4_noise=q4_noise)


def draw_scores(length, log_size):
    """The scores of all wrong words, and 1, the score of a right word without noise."""
    size = 2**log_size
    right, wrong = read_back(length, size)
    step = max(2 / size, 1 / 16)  # scores differ by multiples of 2 / size
    plt.figure(figsize=(8, 2.5))
    plt.hist(wrong, np.arange(wrong.min() - 1 / size, wrong.max() + step, step), color="gray")
    plt.axvline(1, color="red")
    plt.xlabel("scores of wrong words; red: a right word without noise")
    plt.title(f"{length} words, {size} numbers: {right:.0%} decoded correctly", fontsize=9)
    plt.show()


slide(draw_scores, length=(2, 32), log_size=(3, 9))

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 2

# %% [markdown]
# **Question 5.** Of 8 words in a vector of 64 numbers, about three in four are decoded correctly.
# How many numbers must the vector have so that of 24 words, too, about three in four are decoded
# correctly (with the same noise)?

# %% [raw]
# # BEGIN SOLUTION

# %%
q5_size = 64 * 24 // 8  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q5_size == int(q5_size) and q5_size > 0, "a whole number"

# %%
# HIDDEN
assert q5_size == 192

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q6
# manual: true
# points: 2

# %% [markdown]
# **Question 6.** With attention, the decoder gets all the word vectors side by side instead of
# their sum. What happens to the noise, and what does it cost? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# There is no noise from the other words: each can be decoded from its own vector, however long the
# sentence is. The model must learn which one to attend to. Memory grows with the length of the
# sentence, and every decoder step compares its query with all keys, so the work grows with the
# product of both lengths.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 1

# %% [markdown]
# **Question 7.** Is the vector simply too small to hold a number? How many **bits** are enough to
# distinguish all numbers from 1 to 999,999? The smallest whole number. (For comparison: 64 float32
# numbers have 2,048 bits. So the limit isn't capacity, but an encoding that a network can learn to
# write and to read.)

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_bits = math.ceil(math.log2(999_999))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q7_bits == int(q7_bits) and q7_bits > 0, "a whole number"

# %%
# HIDDEN
assert q7_bits == 20

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Padding
#
# A batch is rectangular, but sentences differ in length. Here are 64 sources in random order, and
# 64 neighbors after sorting all sources by length (bucketing). Padding is white.

# %%
answered(q7_bits=q7_bits)
unsorted = pairs.source_ids[:64]
by_length = sorted(pairs.source_ids, key=len)[4000:4064]
_, panels = plt.subplots(1, 2, figsize=(8, 4))
batches = {"unsorted": unsorted, "sorted": by_length}
for axis, (name, sources) in zip(panels, batches.items(), strict=True):
    batch, _ = pad(sources)
    axis.imshow(batch != 0, cmap="Blues", vmin=0, vmax=1.5, aspect="auto")
    axis.set_title(f"{name}: {batch.shape[0]} x {batch.shape[1]}", fontsize=9)
    axis.set(xlabel="position", ylabel="sentence")
plt.tight_layout()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** What fraction of the left batch (`pad(unsorted)`) is padding? A number from 0 to
# 1; the tolerance is 0.002.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_padding = np.mean(pad(unsorted)[0] == 0)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 <= q8_padding <= 1, "a number from 0 to 1, not in percent"

# %%
q8_words = sum(map(len, unsorted)) / (64 * max(map(len, unsorted)))
assert abs(q8_padding + q8_words - 1) <= 0.002, "padding has the id 0"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Padding has states and scores like all other positions; only the mask excludes it. Here is a
# sentence of three words (black) with nine columns of padding (red), without and with a mask.

# %%
answered(q8_padding=q8_padding)
scores = torch.tensor([2.0, 1.0] + [0.0] * 10).double()
real = torch.arange(12) < 3
_, panels = plt.subplots(1, 2, figsize=(8, 2.2), sharey=True)
for axis, mask, name in zip(panels, (None, real), ("no mask", "mask"), strict=True):
    axis.bar(range(12), masked_softmax(scores, mask).numpy(), color=["black"] * 3 + ["red"] * 9)
    axis.set_xticks(range(12))
    axis.set_title(name, fontsize=9)
    axis.set_xlabel("position")
panels[0].set_ylabel("attention weight")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** The three words have the scores 2, 1 and 0, and each of the nine columns of
# padding has the score 0. How much weight does the padding get in total, without a mask? The
# tolerance is 0.001.

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_lost = 9 / (math.exp(2) + math.exp(1) + 10)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q9_lost - float(masked_softmax(scores)[3:].sum())) <= 0.001, "add up the red bars"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Greedy decoding and beam search
#
# A decoder generates three words, each a, b or c. The probabilities depend on the words so far. The
# cell draws all 27 sentences; the width of a field is its probability. From top to bottom: the
# first word, two words, three words.

# %%
answered(q9_lost=q9_lost)
PROBABILITIES = {
    "": (0.5, 0.3, 0.2),
    "a": (0.4, 0.35, 0.25),
    "b": (0.5, 0.3, 0.2),
    "c": (0.9, 0.06, 0.04),
    "aa": (0.5, 0.3, 0.2),
    "ab": (0.6, 0.2, 0.2),
    "ca": (0.9, 0.05, 0.05),
}  # of a, b and c after these words; after any others: 0.4, 0.3, 0.3


def probability(words):
    """The probability of a sentence or of its first words: a product over its words."""
    result = 1.0
    for k, word in enumerate(words):
        result *= PROBABILITIES.get(words[:k], (0.4, 0.3, 0.3))["abc".index(word)]
    return result


figure = plt.figure(figsize=(10, 3))
for depth in (1, 2, 3):
    left = 0.0
    for words in map("".join, product("abc", repeat=depth)):
        width = probability(words)
        plt.barh(-depth, width, left=left, color=f"C{'abc'.index(words[-1])}", edgecolor="white")
        if width > 0.03:
            plt.text(left + width / 2, -depth, words, ha="center", va="center", fontsize=8)
        left += width
plt.axis("off")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 3

# %% [markdown]
# **Question 10.** What is the probability of the sentence that **greedy** decoding generates
# (`q10_greedy`)? And what is the smallest **beam width** with which beam search finds the most
# likely of all 27 sentences (`q10_beam_width`)? Beam search keeps that many hypotheses after each
# step. Do it by hand, with `probability`.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_greedy = probability("aaa")  # SOLUTION
q10_beam_width = 3  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
written = ""
for _ in range(3):
    written = max((written + word for word in "abc"), key=probability)
assert abs(q10_greedy - probability(written)) < 1e-6, "take the most likely word at each step"

# %%
assert q10_beam_width in range(1, 28), "a whole number from 1 to 27"

# %%
# HIDDEN
assert q10_beam_width == 3

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q10_greedy=q10_greedy, q10_beam_width=q10_beam_width)
ranked = sorted(("".join(words) for words in product("abc", repeat=3)), key=probability)[::-1]
plt.figure(figsize=(10, 2.5))
plt.bar(ranked, [probability(words) for words in ranked])
plt.xticks(rotation=90)
plt.ylabel("probability")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q11
# manual: true
# points: 2

# %% [markdown]
# **Question 11.** Why does greedy decoding miss the most likely sentence here? And which beam width
# would find it for any table of probabilities, with sentences of three words and a vocabulary of
# three? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# The most likely sentence starts with c, which is the least likely first word. Greedy decoding
# drops it immediately, since it can't know how certain the words after it are. A beam that keeps
# all nine hypotheses of two words is safe for three words from a vocabulary of three. With fewer,
# there is a table in which a dropped hypothesis leads to the best sentence.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
