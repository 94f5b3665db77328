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
# # Lab 6: places, norms and who looks at whom
#
# Here you look into a Transformer. First at the vectors that say where a token stands. Then at
# what the place of the norms does to a deep stack. Then at the maps of a small model that you see
# learn, in a few seconds, to write digits backwards. It takes about an hour.
#
# - Put your answers in place of the three dots, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_fast`, ...), and run everything once more from the top
#   before you submit. Questions 7 and 11 ask for a few sentences, which people read.
# - The lab runs on your own code, or on a stand-in for what isn't finished there. The next cell
#   says which. After a change of your code, restart the kernel. When the lab is graded, it runs on
#   the stand-in, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from common.labs import answered, own_or_standin, slide

torch.set_num_threads(1)  # all is so small here that more threads would only wait for each other


def beside(maps):
    """The transformer.py that belongs to the decoding.py of attention_maps."""
    return sys.modules[maps.__module__.replace("decoding", "transformer")]


def fill(model, d_model):
    """Give a model weights that don't hang on chance, to try code out."""
    with torch.no_grad():
        for weight in model.parameters():
            rows, columns = torch.arange(len(weight)) % d_model, torch.arange(weight[0].numel())
            weight.copy_(torch.sin(torch.outer(2 * rows + 1, columns + 1)).view_as(weight) / 2)
    return model


def try_encoder(encoder):
    """What small encoders make of some numbers, in either norm."""
    x = torch.sin(torch.arange(40.0)).view(2, 5, 4)
    stacks = [fill(encoder(4, 2, 6, 2, norm=norm), 4) for norm in ("pre", "post")]
    return torch.stack([stack(x, torch.ones(5, 5).tril() > 0) for stack in stacks]).detach()


def try_maps(maps):
    """The maps of a small Transformer, which comes from the file beside."""
    code = beside(maps)
    model = fill(code.Transformer(code.TransformerConfig(9, 8, 6, 2, 10, 2, 1)), 6)
    weights = maps(model, torch.tensor([[3, 5, 4]]), torch.tensor([[1, 6, 7, 3]]))
    return torch.cat([weight.flatten() for weight in weights.values()])


LAYERS, TRANSFORMER, DECODING = (
    f"a6_transformer.{file}" for file in ("layers", "transformer", "decoding")
)
sinusoidal_encoding = own_or_standin(LAYERS, "sinusoidal_encoding", lambda code: code(5, 6))
shift_matrix = own_or_standin(LAYERS, "shift_matrix", lambda code: code(3, 6))
Encoder = own_or_standin(TRANSFORMER, "Encoder", try_encoder)
attention_maps = own_or_standin(DECODING, "attention_maps", try_maps)
Transformer = beside(attention_maps).Transformer
TransformerConfig = beside(attention_maps).TransformerConfig

# %% [markdown]
# ## Places
#
# Each place gets a vector of sines and cosines. Below are the first 100 places, with 64 features.
# Features go in pairs: pair 0, at the top, turns fastest. Beside them, four of the sines as
# curves.

# %%
encoding = sinusoidal_encoding(2000, 64)  # (2000, 64)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6))
left.imshow(encoding[:100].T, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
left.set(xlabel="place", ylabel="feature")
for pair in (0, 4, 8, 16):
    right.plot(encoding[:100, 2 * pair], label=f"pair {pair}")
right.set(xlabel="place", ylabel="sine")
right.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** After how many places has a pair made one whole turn? Give it for pair 0,
# `q1_fast`, and for the slowest of the 32 pairs, `q1_slow`. Neither need be a whole number; an
# error of 1 % is allowed. Mind which pair is the last one: 1/10000 is a speed that no pair has.

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_fast = 2 * np.pi  # SOLUTION
q1_slow = 2 * np.pi * 10000 ** (62 / 64)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q1_fast - 2 * np.pi) < 0.07, "pair 0 turns by 1 (in radians) from a place to the next"

# %%
assert q1_slow > 1000, "the slowest pair takes thousands of places"

# %%
# HIDDEN
assert abs(q1_slow / 47117 - 1) < 0.01

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# How alike are two places? The dot product says. On the left it is drawn for all pairs of the
# first 100 places. Along each diagonal the colour stays the same.

# %%
answered(q1_fast=q1_fast, q1_slow=q1_slow)
products = encoding[:200] @ encoding[:200].T

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6))
image = left.imshow(products[:100, :100], cmap="viridis")
figure.colorbar(image, ax=left)
left.set(xlabel="place", ylabel="place")
right.plot(products[0, :60], ".-")
right.set(xlabel="how far apart", ylabel="dot product", ylim=(0, None))
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 2

# %% [markdown]
# **Question 2.** What is the dot product of a place with itself, for 64 features (`q2_same`)? And
# that of place 5000 with place 5003 (`q2_apart`)? The table above ends before place
# 2000, and you don't need a longer one. An error of 0.01 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_same = 32  # SOLUTION
q2_apart = float(products[0, 3])  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q2_same - 32) < 0.01, "each of the pairs gives sin^2 + cos^2"

# %%
assert 0 < q2_apart < 32, "below that of a place with itself"

# %%
# HIDDEN
assert abs(q2_apart - 25.587) < 0.01

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Two neighbours are more alike than two strangers. But look closely at the curve.

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** Which is the smallest distance at which the dot product is **larger** than at the
# distance just below it?

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_rise = 6  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q3_rise == int(q3_rise) and q3_rise > 0, "a whole number of places"

# %%
# HIDDEN
assert q3_rise == 6

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Now the pairs as hands of clocks. Place 0 points upwards. Move the slider: `k` places on, each
# hand has turned by its own angle, whatever the place that it started from. `shift_matrix(k, 64)`
# does all these turns at once. The cell also moves places 10 and 500 on by `k`, and tells how far
# off the result is.

# %%
answered(q3_rise=q3_rise)


def draw_clocks(k):
    """Where the hands of six pairs stand at place k; in grey at place 0."""
    moved = encoding[[10, 500]] @ shift_matrix(k, 64).T
    error = (moved - encoding[[10 + k, 500 + k]]).abs().max()
    _, axes = plt.subplots(1, 6, figsize=(12, 2.3))
    for axis, pair in zip(axes, (0, 1, 2, 4, 8, 16), strict=True):
        sine, cosine = encoding[k, 2 * pair : 2 * pair + 2]
        axis.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.7"))
        axis.plot([0, 0], [0, 1], color="0.7")
        axis.plot([0, sine], [0, cosine], color="C0", linewidth=3)
        axis.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), title=f"pair {pair}", aspect="equal")
        axis.axis("off")
    plt.show()
    print(f"k = {k}: moved by the matrix, off by {error:.1e}")


draw_clocks(5)
slide(draw_clocks, k=(0, 60))

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** A model that saw pair 0 alone would take some places for place 0. Which of the
# places 1 to 50 looks most like place 0 to **pair 0**? Then look at what the other hands say of
# it.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_back = 44  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q4_back in range(1, 51), "a place from 1 to 50"

# %%
assert np.cos(q4_back) > 0.995, "look for a hand that points upwards again"

# %%
assert np.cos(q4_back) > 0.9998, "near, but there is a place that comes nearer"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Norms, before and after
#
# A stack of 24 layers, fresh, with random vectors going in. `norm="post"` has a norm on the
# shortcut after each sum. `norm="pre"` has it on the branch, and the shortcut runs through. We
# follow the vectors upwards: how large are they after each layer (their mean square)? And we
# follow a random gradient downwards, from the top: how large is it when it comes to each layer?
#
# (The first weights are PyTorch's times $\sqrt 3$, so that a dense layer neither shrinks nor
# enlarges what it gets.)

# %%
answered(q4_back=q4_back)


def follow(norm, layers=24, d_model=64):
    """Mean squares of the vectors, and root mean squares of the gradients, by layer."""
    torch.manual_seed(0)
    stack = Encoder(d_model, 4, 2 * d_model, layers, norm=norm)
    with torch.no_grad():
        for weight in stack.parameters():
            weight *= 3**0.5 if weight.ndim == 2 else 1
    states = [torch.randn(8, 20, d_model, requires_grad=True)]
    for layer in stack.layers:
        states.append(layer(states[-1]))
        states[-1].retain_grad()
    top = stack.norm(states[-1]) if norm == "pre" else states[-1]
    top.backward(torch.randn(8, 20, d_model))
    squares = [float(state.detach().square().mean()) for state in states]
    gradients = [float(state.grad.square().mean().sqrt()) for state in states]
    return squares, gradients


followed = {norm: follow(norm) for norm in ("pre", "post")}
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained")
for norm, (squares, gradients) in followed.items():
    left.plot(squares, ".-", label=f"{norm}-norm")
    right.plot(gradients, ".-", label=f"{norm}-norm")
left.set(xlabel="after layer", ylabel="mean square of the vectors")
right.set(xlabel="after layer", ylabel="size of the gradient", yscale="log")
left.legend()
right.legend(loc="upper center")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 1

# %% [markdown]
# **Question 5.** How do the mean squares grow with depth, with **pre-norm**?
#
# - `"a"`: not at all, since every part gets normed vectors.
# - `"b"`: about in a straight line: each layer adds about as much as any other.
# - `"c"`: they double every few layers.
# - `"d"`: fast at first, and then they stay where they are.

# %% [raw]
# # BEGIN SOLUTION

# %%
q5_growth = "b"  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q5_growth in ("a", "b", "c", "d"), "one of the four letters"

# %%
# HIDDEN
assert q5_growth == "b"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# What a part adds has little to do with what it is added to, so the mean squares add up: if
# vectors of mean square 1 get something of mean square 0.2, the sum has about 1.2.

# %% [raw]
# # BEGIN QUESTION
# name: q6
# points: 2

# %% [markdown]
# **Question 6.** Two sums to do.
#
# - **Pre-norm.** Say that vectors of mean square 1 go in, and each layer adds a mean square of
#   1.2. How large is what layer 100 adds, compared with what it is added to? Give the ratio of the
#   two **roots** of the mean squares, `q6_change`. (For layer 1 it is $\sqrt{1.2}$ = 1.095.)
# - **Post-norm.** Say that each part, two in a layer, adds a mean square of 0.5 to vectors of mean
#   square 1, and the norm behind it divides by what the root of the sum is. What is left of a
#   gradient that comes down 24 layers **along the shortcut alone**, `q6_left`?
#
# An error of 2 % is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q6_change = (1.2 / (1 + 99 * 1.2)) ** 0.5  # SOLUTION
q6_left = 1.5**-24  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert 0 < q6_change < 1.095, "later layers add to larger vectors than layer 1 does"

# %%
assert abs(q6_change / 0.1001 - 1) < 0.02, "99 layers have added to the input before layer 100"

# %%
assert 0 < q6_left < 1, "each norm divides"

# %%
# HIDDEN
assert abs(q6_left * 1.5**24 - 1) < 0.02

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q5_growth=q5_growth, q6_change=q6_change, q6_left=q6_left)
for norm, (_, gradients) in followed.items():
    shown = ", ".join(f"{layer}: {gradients[layer]:.2f}" for layer in (24, 20, 16, 12, 8, 4, 0))
    print(f"{norm}-norm, the gradient after layer {shown}")

# %% [raw]
# # BEGIN QUESTION
# name: q7
# manual: true
# points: 2

# %% [markdown]
# **Question 7.** Compare your `q6_left` with the gradient that comes to layer 0 with post-norm.
# Along which way does the rest come? Then look at the upper ten layers: in which of the two stacks
# does one learning rate suit them all? And what does your `q6_change` say of the layers at the top
# of a very deep pre-norm stack? Three to six sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# Hardly anything of it comes along the shortcut: the norms have divided it away. It comes through
# the parts, attention and feed-forward, whose weights carry it on. So with post-norm what the
# lower layers learn from has passed through many random matrices. The gradient also falls steeply
# over the uppermost layers, so that one learning rate is too large for these or too small for the
# others, until training has evened it out: warm-up gives it time. With pre-norm the gradient is
# almost even over the upper layers, and grows only at the bottom, where the vectors are small. The
# price is at the top: layer 100 changes its input by a tenth only, so layers up there add little.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## What a model can't tell without places
#
# Nine digits, each with a random vector that stands for it, go into an encoder of two layers: once
# with the encoding added, once without. A row of the picture is the vector that comes out for a
# digit.

# %%
digits = [3, 1, 4, 1, 5, 9, 2, 6, 5]
torch.manual_seed(1)
rows = torch.randn(10, 32)
stack = Encoder(32, 4, 64, 2)
with torch.no_grad():
    vectors = rows[digits][None]  # (1, 9, 32)
    bare = stack(vectors)[0]
    placed = stack(vectors + sinusoidal_encoding(9, 32).float())[0]

_, axes = plt.subplots(1, 2, figsize=(12, 3))
for axis, picture, title in zip(axes, (placed, bare), ("with", "without"), strict=True):
    axis.imshow(picture, cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
    axis.set_yticks(range(9), digits)
    axis.set(title=f"{title} places", xlabel="feature")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** Without places, how many **different** vectors come out of this encoder?
# (Two vectors count as one if they differ by less than 1e-4: that is rounding.)

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_different = 7  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q8_different in range(1, 10), "nine come out, and some may be the same"

# %%
assert q8_different == len(set(digits)), "compare the rows of the right picture, two by two"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# So an encoder without places can't tell the two 1s apart, nor the two 5s. Is it the same in a
# decoder, where a mask hides what comes later? Below, a stack without places and **with a causal
# mask** reads five different digits, and then the same with the first two swapped. `changed` gives
# how far the output moves at each of the five places.

# %%
answered(q8_different=q8_different)


def changed(layers, before=(3, 1, 4, 5, 9), after=(1, 3, 4, 5, 9)):
    """How far each output moves, in a causal stack of so many layers and without places."""
    torch.manual_seed(2)
    stack, causal = Encoder(32, 4, 64, layers), torch.ones(5, 5).tril() > 0
    with torch.no_grad():
        first, second = (stack(rows[list(ids)][None], causal)[0] for ids in (before, after))
    return (first - second).abs().amax(dim=1)


print("no layers:", (rows[[3, 1, 4, 5, 9]] - rows[[1, 3, 4, 5, 9]]).abs().amax(dim=1))

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 2

# %% [markdown]
# **Question 9.** At how many of the five places does the output change with one layer (`q9_one`),
# and with two (`q9_two`)? Think first: what does the third place see, of which queries, keys and
# values? A change below 1e-4 is rounding.

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_one = int((changed(1) > 1e-4).sum())  # SOLUTION
q9_two = int((changed(2) > 1e-4).sum())  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q9_one in range(6) and q9_two in range(6), "numbers from 0 to 5"

# %%
assert q9_one == 2, "print changed(1)"

# %%
# HIDDEN
assert q9_two == 5

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# A causal mask gives the order away by itself, from the second layer on: the second place has seen
# one digit before it, and the third can see what the second made of that. Decoders without any
# places do learn to write texts (Haviv and others, 2022).
#
# ## Who looks at whom
#
# Now a model with one head, one encoder layer and one decoder layer learns to write six digits
# backwards. It takes a few seconds. It has no loop over places and knows nothing of "backwards".
# There are ten digits and three special tokens. A model that took all 13 for equally likely would
# have the loss $\ln 13$ = 2.56. This one begins somewhat above: it guesses, and is too sure.

# %%
answered(q9_one=q9_one, q9_two=q9_two)
BEGIN, END, FIRST, LENGTH = 1, 2, 3, 6  # ids; FIRST is that of the digit 0


def backwards(source):
    """What is to be written: BEGIN, the digits from the last to the first, END."""
    column = torch.ones(len(source), 1, dtype=torch.int64)
    return torch.cat([BEGIN * column, source.flip(1), END * column], dim=1)


torch.manual_seed(0)
model = Transformer(TransformerConfig(13, 13, 32, 1, 64, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
losses = []
for _ in range(200):
    source = torch.randint(FIRST, FIRST + 10, (64, LENGTH))
    target = backwards(source)
    logits = model(source, target[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

plt.figure(figsize=(6, 2.4))
plt.plot(losses)
plt.xlabel("step")
plt.ylabel("loss")
plt.show()

# %% [markdown]
# Its three maps, for one row of digits. Each row is a place that looks, each column one that it
# looks at. In the decoder a row is labelled by the token that it **reads**. It writes the next
# one.

# %%
answered(q9_one=q9_one, q9_two=q9_two)
KINDS = {"encoder": "the encoder itself", "decoder": "the decoder itself", "cross": "across"}


def draw_maps(written_by, digits):
    """The three maps of a model for some digits, and what goes into the decoder."""
    source = torch.tensor([digits]) + FIRST
    target = backwards(source)[:, :-1]
    weights = attention_maps(written_by, source, target)
    read = list(map(str, digits))
    reads = ["<begin>", *read[::-1]]
    _, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    sides = {"encoder": (read, read), "decoder": (reads, reads), "cross": (reads, read)}
    for axis, (kind, (queries, keys)) in zip(axes, sides.items(), strict=True):
        axis.imshow(weights[kind][0, 0, 0], cmap="Blues", vmin=0, vmax=1)
        axis.set_xticks(range(len(keys)), keys)
        axis.get_xticklabels()[0].set_rotation(90 if keys is reads else 0)  # <begin> is long
        axis.set_yticks(range(len(queries)), queries)
        axis.set(title=KINDS[kind], xlabel="at whom")
    axes[0].set_ylabel("who looks")
    plt.show()
    return weights


maps = draw_maps(model, [7, 1, 8, 2, 8, 3])

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** The decoder reads seven tokens here, `<begin>` and six digits. How many of the
# 49 weights of **its own** map must be 0 (`q10_zeros`)? And in the map **across**: at which source
# place, counted from 0, does each of the first six rows look most? A tuple of six numbers,
# `q10_places`, from the row `<begin>` on.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_zeros = 7 * 6 // 2  # SOLUTION
q10_places = (5, 4, 3, 2, 1, 0)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_zeros == (maps["decoder"][0, 0, 0] == 0).sum(), "what belongs to later tokens"

# %%
assert len(q10_places) == 6, "six numbers"

# %%
# HIDDEN
assert tuple(q10_places) == (5, 4, 3, 2, 1, 0)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Last, the same model with five digits, and with eight. It has only ever seen six.

# %%
answered(q10_zeros=q10_zeros, q10_places=q10_places)
for others in ([7, 1, 8, 2, 8], [7, 1, 8, 2, 8, 1, 8, 2]):
    draw_maps(model, others)
    source = torch.tensor([others]) + FIRST
    with torch.no_grad():
        guessed = model(source, backwards(source)[:, :-1])[0].argmax(dim=-1) - FIRST
    names = {BEGIN - FIRST: "<begin>", END - FIRST: "<end>", -FIRST: "<padding>"}
    print("wanted: ", *others[::-1], "<end>")
    print("written:", *(names.get(one, one) for one in guessed.tolist()))

# %% [raw]
# # BEGIN QUESTION
# name: q11
# manual: true
# points: 2

# %% [markdown]
# **Question 11.** What has this model learned, and what has it not? Use the two maps across and
# what is written. Which of its three attentions would have to change its ways for it to work at
# every length, and what would that one have to find out? Three to six sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# It has learned a table of places: row 0 looks at place 5, row 1 at place 4, and so on, whatever
# stands there. With five digits row 0 still looks for place 5, which isn't there, and the weight
# goes to some neighbour; with eight it starts near place 5, not at the last, and ends after six. It
# has not learned "start from the last". The row that begins would have to know how long the source
# is. The encoder could tell: its attention would have to find the last place and write into each
# vector how far it is from the end. In training with one length nothing asks for that.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
