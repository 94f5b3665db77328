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
# # Lab 4: which word comes from which, and how much fits into one vector
#
# No network is trained here. You find out which French word comes from which English one by
# counting alone, and see what that can't know. You pack sentences into one vector until they can't
# be read any more. Then you look at padding, and search a tree greedily and broadly. It takes about
# an hour.
#
# - Put your answers in place of the three dots, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_share`, ...), and run everything once more from the top
#   before you submit. Questions 6 and 11 ask for a few sentences, which people read.
# - The lab runs on your own `masked_softmax`, or on a stand-in as long as yours isn't finished. The
#   next cell says which. After a change of `bahdanau.py`, restart the kernel. When the lab is
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
for place in range(4):
    print(pairs.numbers[place])
    print("   ", *pairs.source[place])
    print("   ", *pairs.target[place])

# %% [markdown]
# ## Which word comes from which?
#
# `pairs.source[k]` and `pairs.target[k]` are the tokens of the number `pairs.numbers[k]` in English
# and in French, as lists. The two need not have the same length: English says "and" and writes
# commas, and French counts seventy as sixty and ten.

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
plt.plot([0, 12], [0, 12], color="grey", linewidth=0.8)
plt.title("dark: many pairs; on the line: equally long", fontsize=9)
plt.xlabel("French tokens")
plt.ylabel("English tokens")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** In which part of the 8,000 training pairs is the French number **longer** than
# the English one, in tokens? A number from 0 to 1; an error of 0.002 is allowed.

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
# Nobody tells which word belongs to which. But "cent" turns up wherever "hundred" does. In 1993,
# twenty years before attention, a group at IBM made a method of it. Suppose each French word comes
# from one English word, and `chance[e, f]` is how likely English word `e` gives French word `f`.
#
# 1. For each French word, share out one unit of weight among the English words of its sentence, in
#    proportion to `chance`. At first all chances are alike.
# 2. Add up the weights of each pair of words over all sentences, and make them the new chances.
#
# Then again. The weights are rows that sum to 1: soft alignments, as attention has them. The cell
# takes the numbers below 1,000 alone. In its pictures, dark is a large weight.

# %%
answered(q1_share=q1_share)
small = [k for k, number in enumerate(pairs.numbers) if number < 1000]
english, french = pairs.source_vocabulary, pairs.target_vocabulary


def align(source, target, chance):
    """The weight of each English word (across) for each French word (down), both as ids."""
    weights = chance[source][:, target].T
    return weights / weights.sum(axis=1, keepdims=True)


def learn(rounds):
    """The chances after so many rounds over the small numbers."""
    chance = np.full((len(english), len(french)), 1 / len(french))
    for _ in range(rounds):
        counts = np.full(chance.shape, 1e-9)
        for k in small:
            source, target = pairs.source_ids[k], pairs.target_ids[k][1:-1]
            weights = align(source, target, chance)
            np.add.at(counts, (source[None, :], target[:, None]), weights)
        chance = counts / counts.sum(axis=1, keepdims=True)
    return chance


def show_alignment(source, target, chance, axis):
    """A picture of the weights: French down, English across."""
    weights = align(english.encode(source), french.encode(target), chance)
    axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    axis.set_xticks(range(len(source)), source, rotation=90, fontsize=8)
    axis.set_yticks(range(len(target)), target, fontsize=8)


chances = {rounds: learn(rounds) for rounds in (0, 1, 3, 10)}
EXAMPLES = (
    ("seven hundred and ninety -six", "sept cent quatre -vingt -seize"),
    ("two hundred and two", "deux cent deux"),
)
for source, target in EXAMPLES:
    _, panels = plt.subplots(1, 4, figsize=(11, 3))
    for axis, (rounds, chance) in zip(panels, chances.items(), strict=True):
        show_alignment(source.split(), target.split(), chance, axis)
        axis.set_title(f"rounds: {rounds}", fontsize=9)
    plt.tight_layout()
    plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** Look at "two hundred and two" after 10 rounds. The **last** French word is "deux".
# Divide its weight on the last English "two" by its weight on the first one. What do you get?

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_ratio = 1.0  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q2_ratio - 1) < 1e-6, "both have the same chance: look at the last row of the picture"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 2

# %% [markdown]
# **Question 3.** Attention in an encoder and decoder can put all weight on the right "two". What
# does it have that the counting above lacks?
#
# - `"a"`: weights that sum to 1.
# - `"b"`: more rounds over the data.
# - `"c"`: keys that know what stands around a word, and a query that knows what has been written.
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
# ## One vector for all
#
# How much can a decoder find in one vector? Here is an encoder that needs no training. There are 30
# words. Each has a random vector of `size` numbers for each place, all $+1/\sqrt{size}$ or
# $-1/\sqrt{size}$, so its length is 1. A sentence is the **sum** of the vectors of its words. To
# read the word at a place, take the dot product with the vector of each of the 30 words for that
# place. The right one gives 1 and some noise, the others noise alone. The largest wins.

# %%
answered(q3_lack=q3_lack)


def read_back(length, size, sentences=40):
    """Which part of the words is read right, and the scores of all wrong words."""
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
plt.ylabel("words read right")
plt.legend(title="numbers in the vector")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** A sentence of 16 words is packed into a vector of 64 numbers. What is the standard
# deviation of the score of a wrong word? Measure it, or think: it is a sum of 16 dot products of
# independent vectors, and each has the variance 1/64. An error of 0.03 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_noise = math.sqrt(16 / 64)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q4_noise - read_back(16, 64)[1].std()) <= 0.03, "read_back gives the scores"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q4_noise=q4_noise)


def draw_scores(length, log_size):
    """The scores of all wrong words, and 1, where the right ones lie but for noise."""
    size = 2**log_size
    part, wrong = read_back(length, size)
    step = max(2 / size, 1 / 16)  # scores are whole multiples of 2 / size apart
    plt.figure(figsize=(8, 2.5))
    plt.hist(wrong, np.arange(wrong.min() - 1 / size, wrong.max() + step, step), color="grey")
    plt.axvline(1, color="red")
    plt.xlabel("scores of wrong words; red: a right word without noise")
    plt.title(f"{length} words, {size} numbers: {part:.0%} read right", fontsize=9)
    plt.show()


slide(draw_scores, length=(2, 32), log_size=(3, 9))

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 2

# %% [markdown]
# **Question 5.** Of 8 words in a vector of 64 numbers, about three in four are read right. How many
# numbers must the vector have, so that 24 words are read as well as that (with the same noise)?

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
# **Question 6.** With attention, the decoder gets all the word vectors side by side in place of
# their sum. What becomes of the noise, and what does it cost? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# There is no noise from the other words: each can be read from its own vector, however long the
# sentence. What has to be learned is which one to look at. The memory grows with the sentence, and
# every step of the decoder compares its query with all keys, so the work grows with the product of
# both lengths.

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
# tell all numbers from 1 to 999,999 apart? A whole number, the smallest. (For comparison: 64
# numbers of float32 have 2,048 bits. So what is missing isn't room, but a way to write and to
# read that a network can learn.)

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
# A batch is a rectangle, and sentences are not. Here are 64 sources as they come, and 64 neighbours
# after sorting all by length. Padding is white.

# %%
answered(q7_bits=q7_bits)
as_they_come = pairs.source_ids[:64]
by_length = sorted(pairs.source_ids, key=len)[4000:4064]
_, panels = plt.subplots(1, 2, figsize=(8, 4))
batches = {"as they come": as_they_come, "sorted": by_length}
for axis, (name, sources) in zip(panels, batches.items(), strict=True):
    batch, _ = pad(sources)
    axis.imshow(batch != 0, cmap="Blues", vmin=0, vmax=1.5, aspect="auto")
    axis.set_title(f"{name}: {batch.shape[0]} x {batch.shape[1]}", fontsize=9)
    axis.set(xlabel="place", ylabel="sentence")
plt.tight_layout()
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** Which part of the left rectangle (`pad(as_they_come)`) is padding? A number from 0
# to 1; an error of 0.002 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_padding = np.mean(pad(as_they_come)[0] == 0)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 <= q8_padding <= 1, "a number from 0 to 1, not in percent"

# %%
q8_words = sum(map(len, as_they_come)) / (64 * max(map(len, as_they_come)))
assert abs(q8_padding + q8_words - 1) <= 0.002, "padding has the id 0"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Padding has states and scores like everything else in the rectangle, and only the mask keeps it
# out. Here is a sentence of three words (black) with nine columns of padding (red), without a mask
# and with one.

# %%
answered(q8_padding=q8_padding)
scores = torch.tensor([2.0, 1.0] + [0.0] * 10).double()
real = torch.arange(12) < 3
_, panels = plt.subplots(1, 2, figsize=(8, 2.2), sharey=True)
for axis, mask, name in zip(panels, (None, real), ("no mask", "mask"), strict=True):
    axis.bar(range(12), masked_softmax(scores, mask), color=["black"] * 3 + ["red"] * 9)
    axis.set_xticks(range(12))
    axis.set_title(name, fontsize=9)
panels[0].set_ylabel("weight")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** The three words have the scores 2, 1 and 0, and each of the nine columns of
# padding has the score 0. How much weight goes to the padding altogether, without a mask? An error
# of 0.001 is allowed.

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
# ## Greedy and broad
#
# A decoder writes three words, each a, b or c. Its chances depend on what it has written. The cell
# draws all 27 sentences: the wider a field, the likelier what it stands for. From the top down:
# first word, second word, third word.

# %%
answered(q9_lost=q9_lost)
CHANCES = {
    "": (0.5, 0.3, 0.2),
    "a": (0.4, 0.35, 0.25),
    "b": (0.5, 0.3, 0.2),
    "c": (0.9, 0.06, 0.04),
    "aa": (0.5, 0.3, 0.2),
    "ab": (0.6, 0.2, 0.2),
    "ca": (0.9, 0.05, 0.05),
}  # after all other beginnings: 0.4, 0.3, 0.3


def probability(words):
    """How likely a sentence, or its beginning, is: the product of the chances of its words."""
    result = 1.0
    for place, word in enumerate(words):
        result *= CHANCES.get(words[:place], (0.4, 0.3, 0.3))["abc".index(word)]
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
# **Question 10.** How likely is the sentence that **greedy** decoding writes (`q10_greedy`)? And
# what is the smallest **width** with which beam search finds the likeliest of all 27 sentences
# (`q10_width`)? It keeps that many beginnings after each step. Do it by hand, with `probability`.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_greedy = probability("aaa")  # SOLUTION
q10_width = 3  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
written = ""
for _ in range(3):
    written = max((written + word for word in "abc"), key=probability)
assert abs(q10_greedy - probability(written)) < 1e-6, "the likeliest word at each step, no way back"

# %%
assert q10_width in range(1, 28), "a whole number from 1 to 27"

# %%
# HIDDEN
assert q10_width == 3

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q10_greedy=q10_greedy, q10_width=q10_width)
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
# **Question 11.** Why does greedy decoding miss the likeliest sentence here? And which width would
# find it in every table of chances, for three words of three kinds? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# The likeliest sentence begins with c, which is the least likely first word. Greedy decoding throws
# it away at once, since it can't know how sure everything after it is. A beam that keeps every
# beginning of two words, nine of them, is safe for three words of three kinds. Below that, a table
# can be made in which the one that was dropped leads to the best.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
