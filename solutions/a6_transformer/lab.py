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
# # Lab 6: positions, norms and attention maps
#
# You look inside a Transformer: at its positional encodings, at the effect of pre-norm and
# post-norm on a deep stack, and at the attention maps of a small model that learns, in a few
# seconds, to write digits backwards. It takes about an hour.
#
# - Replace the three dots with your answers, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_fast`, ...), and run all cells again from the top before
#   you submit. Questions 7 and 11 ask for a few sentences; the staff grades them.
# - The lab runs on your own code where it is correct, and on stand-ins otherwise. The next cell
#   prints which. Restart the kernel after you change your code. When the lab is graded, it runs on
#   the stand-ins, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from common.labs import answered, own_or_standin, slide

torch.set_num_threads(1)  # the models are too small for more threads to help


def beside(maps):
    """The transformer.py in the folder of the decoding.py that defines attention_maps."""
    return sys.modules[maps.__module__.replace("decoding", "transformer")]


def fill(model, d_model):
    """Give a model fixed parameters, to compare two implementations."""
    with torch.no_grad():
        for weight in model.parameters():
            rows, columns = torch.arange(len(weight)) % d_model, torch.arange(weight[0].numel())
            weight.copy_(torch.sin(torch.outer(2 * rows + 1, columns + 1)).view_as(weight) / 2)
    return model


def try_encoder(encoder):
    """The outputs of small encoders, with either norm."""
    x = torch.sin(torch.arange(40.0)).view(2, 5, 4)
    stacks = [fill(encoder(4, 2, 6, 2, norm=norm), 4) for norm in ("pre", "post")]
    return torch.stack([stack(x, torch.ones(5, 5).tril() > 0) for stack in stacks]).detach()


def try_maps(maps):
    """The attention maps of a small Transformer from the same folder."""
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
# ## Positional encodings
#
# Each position gets a vector of sines and cosines. Below are the first 100 positions, with 64
# features. Features come in pairs: pair 0, at the top, has the highest frequency. On the right,
# four of the sines as curves.

# %%
encoding = sinusoidal_encoding(2000, 64)  # (2000, 64)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6))
left.imshow(encoding[:100].T.numpy(), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
left.set(xlabel="position", ylabel="feature")
for pair in (0, 4, 8, 16):
    right.plot(encoding[:100, 2 * pair], label=f"pair {pair}")
right.set(xlabel="position", ylabel="sine")
right.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 2

# %% [markdown]
# **Question 1.** What is the period of a pair: after how many positions has it made one full
# rotation? Give it for pair 0, `q1_fast`, and for the slowest of the 32 pairs, `q1_slow`. Neither
# has to be an integer; an error of 1 % is allowed. (The frequency of the last pair is not 1/10000:
# find its index first.)

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
assert abs(q1_fast - 2 * np.pi) < 0.07, "pair 0 rotates by 1 rad from one position to the next"

# %%
assert q1_slow > 1000, "the slowest pair takes thousands of positions"

# %%
# HIDDEN
assert abs(q1_slow / 47117 - 1) < 0.01

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# How similar are two positions? Their dot product measures it. The left plot shows it for all pairs
# of the first 100 positions. Along each diagonal the color is constant.

# %%
answered(q1_fast=q1_fast, q1_slow=q1_slow)
products = encoding[:200] @ encoding[:200].T

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.6))
image = left.imshow(products[:100, :100].numpy(), cmap="viridis")
figure.colorbar(image, ax=left)
left.set(xlabel="position", ylabel="position")
right.plot(products[0, :60], ".-")
right.set(xlabel="distance", ylabel="dot product", ylim=(0, None))
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 2

# %% [markdown]
# **Question 2.** What is the dot product of a position with itself, for 64 features (`q2_same`)?
# And that of position 5000 with position 5003 (`q2_apart`)? The table above ends before position
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
assert abs(q2_same - 32) < 0.01, "each of the pairs adds sin^2 + cos^2"

# %%
assert 0 < q2_apart < 32, "less than that of a position with itself"

# %%
# HIDDEN
assert abs(q2_apart - 25.587) < 0.01

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Neighboring positions are more similar than distant ones. But look closely at the curve.

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** What is the smallest distance at which the dot product is **larger** than at the
# previous distance?

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_rise = 6  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q3_rise == int(q3_rise) and q3_rise > 0, "an integer above 0"

# %%
# HIDDEN
assert q3_rise == 6

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Now the pairs as the hands of clocks. Position 0 points upwards. Move the slider: after `k`
# positions, each hand has rotated by its own angle, whatever position it started from.
# `shift_matrix(k, 64)` applies all these rotations at once. The cell also shifts positions 10 and
# 500 by `k`, and prints the error.

# %%
answered(q3_rise=q3_rise)


def draw_clocks(k):
    """The hands of six pairs at position k; in gray at position 0."""
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
    print(f"k = {k}: shifted by the matrix, error {error:.1e}")


draw_clocks(5)
slide(draw_clocks, k=(0, 60))

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** A model that saw only pair 0 would confuse some positions with position 0. Which
# of the positions 1 to 50 is closest to position 0 in **pair 0**? Then compare the other hands at
# that position.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_back = 44  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q4_back in range(1, 51), "a position from 1 to 50"

# %%
assert np.cos(q4_back) > 0.995, "look for a hand that points upwards again"

# %%
assert np.cos(q4_back) > 0.9998, "close, but another position is closer"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Pre-norm and post-norm
#
# A stack of 24 layers at initialization, with random input. `norm="post"` normalizes the residual
# stream after each sum. `norm="pre"` normalizes only the input of each sublayer, and leaves the
# residual stream alone. In the forward pass: how large are the vectors after each layer (their mean
# square)? In the backward pass, from a random gradient at the top: how large is the gradient at
# each layer?
#
# (The initial weights are PyTorch's times $\sqrt 3$, so that a linear layer preserves the variance
# of its input.)

# %%
answered(q4_back=q4_back)


def follow(norm, num_layers=24, d_model=64):
    """Mean squares of the vectors, and root mean squares of the gradients, by layer."""
    torch.manual_seed(0)
    stack = Encoder(d_model, 4, 2 * d_model, num_layers, norm=norm)
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
right.set(xlabel="after layer", ylabel="root mean square of the gradient", yscale="log")
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
# - `"a"`: not at all, because every sublayer gets normalized vectors.
# - `"b"`: about linearly: each layer adds about as much as any other.
# - `"c"`: exponentially: they double every few layers.
# - `"d"`: fast at first, and then they stay constant.

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
# A sublayer's output is almost uncorrelated with the residual stream, so the mean squares add up: a
# stream of mean square 1 plus an output of mean square 0.2 has a mean square of about 1.2.

# %% [raw]
# # BEGIN QUESTION
# name: q6
# points: 2

# %% [markdown]
# **Question 6.** Two calculations.
#
# - **Pre-norm.** Assume that the input has mean square 1, and each layer adds a mean square of 1.2.
#   Divide the root mean square of layer 100's output by that of the stream before the output is
#   added: `q6_change`. (For layer 1 it is $\sqrt{1.2}$ = 1.095.)
# - **Post-norm.** Assume that each sublayer, two per layer, adds a mean square of 0.5 to vectors of
#   mean square 1, and the norm after it divides by the square root of the sum. By what factor is a
#   gradient multiplied that passes 24 layers **along the residual connections alone**, `q6_left`?
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
    print(f"{norm}-norm, gradient after layer {shown}")

# %% [raw]
# # BEGIN QUESTION
# name: q7
# manual: true
# points: 2

# %% [markdown]
# **Question 7.** Compare your `q6_left` with the gradient at layer 0 with post-norm. Which path
# does the rest of it take? Then look at the upper ten layers: in which of the two stacks does one
# learning rate suit them all? And what does your `q6_change` say about the top layers of a very
# deep pre-norm stack? Three to six sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# Almost none of it arrives along the residual connections: the norms have scaled it down. It comes
# through the sublayers, attention and feed-forward. So with post-norm the gradient of the lower
# layers has passed through many random matrices. It also falls steeply over the top layers, so one
# learning rate is too large for these or too small for the others until training has evened it
# out: warm-up gives it time. With pre-norm the gradient is almost constant over the upper layers,
# and grows only at the bottom, where the vectors are small. The price is paid at the top: layer 100
# changes its input by only a tenth, so the top layers contribute little.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Which inputs influence which outputs
#
# Three layers that map 12 vectors to 12 vectors: a feed-forward network, a convolution with
# kernel_size 3, and self-attention (without weights: $\mathrm{softmax}(x x^T / \sqrt d)\, x$). The
# plots show how strongly the output at each position depends on the input at each position: the
# norm of the derivative. The cell then reorders the input in two ways: it shifts it by one position
# (`roll`) or shuffles it. If the output is reordered in the same way, the difference is 0.

# %%
torch.manual_seed(3)
linear1, linear2 = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
conv = torch.nn.Conv1d(16, 16, kernel_size=3, padding=1)
LAYERS_TO_COMPARE = {
    "feed-forward": lambda x: linear2(F.relu(linear1(x))),
    "convolution": lambda x: conv(x.T).T,
    "self-attention": lambda x: F.softmax(x @ x.T / 4, dim=1) @ x,
}

x, shuffled = torch.randn(12, 16) / 2, torch.randperm(12)
_, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
for axis, (name, layer) in zip(axes, LAYERS_TO_COMPARE.items(), strict=True):
    derivative = torch.autograd.functional.jacobian(layer, x)  # (12, 16, 12, 16)
    axis.imshow(derivative.square().sum(dim=(1, 3)).sqrt().numpy(), cmap="Blues", vmin=0)
    axis.set(title=name, xlabel="input position", ylabel="output position")
    with torch.no_grad():
        rolled = (layer(x.roll(1, dims=0)) - layer(x).roll(1, dims=0)).abs().amax(dim=1)
        mixed = (layer(x[shuffled]) - layer(x)[shuffled]).abs().max()
    inside, whole = rolled[2:-1].max(), rolled.max()
    print(f"{name}: rolled {whole:.0e} (without the ends {inside:.0e}), shuffled {mixed:.0e}")
plt.show()

# %% [markdown]
# A feed-forward network never mixes positions: its matrix is diagonal. A convolution mixes
# neighbors, and its matrix is a band: it treats all positions alike but for the zeros beyond the
# ends, and depends on which vectors are neighbors. Attention connects every position with every
# other in one layer, but by content alone: shuffle the input, and the output is shuffled. Stacking
# feed-forward and attention layers doesn't change that. So without positional encodings an encoder
# doesn't know the order.
#
# ## A Transformer without positions
#
# Nine digits, each represented by a random vector, go into an encoder of two layers: once with the
# positional encoding added, once without. A row of the plot is the output vector of a digit.

# %%
digits = [3, 1, 4, 1, 5, 9, 2, 6, 5]
torch.manual_seed(1)
rows = torch.randn(10, 32)
stack = Encoder(32, 4, 64, 2)
with torch.no_grad():
    vectors = rows[digits][None]  # (1, 9, 32)
    bare = stack(vectors)[0]
    encoded = stack(vectors + sinusoidal_encoding(9, 32).float())[0]

_, axes = plt.subplots(1, 2, figsize=(12, 3))
for axis, picture, title in zip(axes, (encoded, bare), ("with", "without"), strict=True):
    axis.imshow(picture.numpy(), cmap="RdBu_r", vmin=-3, vmax=3, aspect="auto")
    axis.set_yticks(range(9), digits)
    axis.set(title=f"{title} positions", xlabel="feature")
plt.show()

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** Without positions, how many **different** output vectors does this encoder have?
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
assert q8_different in range(1, 10), "there are nine, and some may be equal"

# %%
assert q8_different == len(set(digits)), "compare the rows of the right plot, two by two"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# So an encoder without positions can't distinguish the two 1s, nor the two 5s. Is it the same in a
# decoder, where a mask hides later positions? Below, a stack without positions and **with a causal
# mask** reads five different digits, and then the same with the first two swapped. `changed`
# returns how much the output changes at each of the five positions.

# %%
answered(q8_different=q8_different)


def changed(layers, before=(3, 1, 4, 5, 9), after=(1, 3, 4, 5, 9)):
    """How much each output changes, in a causal stack of so many layers without positions."""
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
# **Question 9.** At how many of the five positions does the output change with one layer
# (`q9_one`), and with two (`q9_two`)? Think first: which query, keys and values does the third
# position use? A change below 1e-4 is rounding.

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
assert q9_one in range(6) and q9_two in range(6), "integers from 0 to 5"

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
# A causal mask reveals the order by itself, from the second layer on: the second position has
# attended to one digit before it, and the third attends to the result. Decoders without positional
# encodings do learn to model text (Haviv et al., 2022).
#
# ## Attention maps
#
# Now a model with one head, one encoder layer and one decoder layer learns to write six digits
# backwards. It takes a few seconds. The model has no loop over positions and no notion of
# "backwards". There are ten digits and three special tokens. A model that assigns all 13 the same
# probability has the loss $\ln 13$ = 2.56. This one starts slightly above: it guesses, and is
# overconfident.

# %%
answered(q9_one=q9_one, q9_two=q9_two)
BOS, EOS, FIRST, LENGTH = 1, 2, 3, 6  # ids, FIRST that of the digit 0; and the source's length


def backwards(source):
    """The target: BOS, the digits from the last to the first, EOS."""
    column = torch.ones(len(source), 1, dtype=torch.int64)
    return torch.cat([BOS * column, source.flip(1), EOS * column], dim=1)


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
# Its three attention maps, for one sequence of digits. Each row is a query, each column a key. In
# the decoder a row is labeled by the token that it **reads**. It predicts the next one.

# %%
answered(q9_one=q9_one, q9_two=q9_two)
KINDS = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


def draw_maps(model, digits):
    """Plot the three maps of a model for some digits, and return them."""
    source = torch.tensor([digits]) + FIRST
    target = backwards(source)[:, :-1]
    weights = attention_maps(model, source, target)
    read = list(map(str, digits))
    reads = ["<bos>", *read[::-1]]
    _, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    sides = {"encoder": (read, read), "decoder": (reads, reads), "cross": (reads, read)}
    for axis, (kind, (queries, keys)) in zip(axes, sides.items(), strict=True):
        axis.imshow(weights[kind][0, 0, 0].numpy(), cmap="Blues", vmin=0, vmax=1)
        axis.set_xticks(range(len(keys)), keys)
        axis.get_xticklabels()[0].set_rotation(90 if keys is reads else 0)  # <bos> is long
        axis.set_yticks(range(len(queries)), queries)
        axis.set(title=KINDS[kind], xlabel="key")
    axes[0].set_ylabel("query")
    plt.show()
    return weights


maps = draw_maps(model, [7, 1, 8, 2, 8, 3])

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** The decoder reads seven tokens here, `<bos>` and six digits. How many of the 49
# weights of its **self-attention** map must be 0 (`q10_zeros`)? And in the **cross-attention** map:
# to which source position, counted from 0, does each of the first six rows attend most? A tuple of
# six integers, `q10_positions`, from the row `<bos>` on.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_zeros = 7 * 6 // 2  # SOLUTION
q10_positions = (5, 4, 3, 2, 1, 0)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_zeros == (maps["decoder"][0, 0, 0] == 0).sum(), "count the weights of later tokens"

# %%
assert len(q10_positions) == 6, "six integers"

# %%
# HIDDEN
assert tuple(q10_positions) == (5, 4, 3, 2, 1, 0)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Finally, the same model with five digits, and with eight. In training it has only seen six.

# %%
answered(q10_zeros=q10_zeros, q10_positions=q10_positions)
for others in ([7, 1, 8, 2, 8], [7, 1, 8, 2, 8, 1, 8, 2]):
    draw_maps(model, others)
    source = torch.tensor([others]) + FIRST
    with torch.no_grad():
        guessed = model(source, backwards(source)[:, :-1])[0].argmax(dim=-1) - FIRST
    names = {BOS - FIRST: "<bos>", EOS - FIRST: "<eos>", -FIRST: "<pad>"}
    print("expected: ", *others[::-1], "<eos>")
    print("predicted:", *(names.get(one, one) for one in guessed.tolist()))

# %% [raw]
# # BEGIN QUESTION
# name: q11
# manual: true
# points: 2

# %% [markdown]
# **Question 11.** What has this model learned, and what has it not? Use the two cross-attention
# maps and the predictions. Which of its three attentions would have to change for the model to work
# at every length, and what would it have to compute? Three to six sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# It has learned a table of positions: row 0 attends to position 5, row 1 to position 4, and so on,
# whatever digits are there. With five digits row 0 still searches for position 5, which doesn't
# exist, and the weight goes to some neighbor; with eight it starts near position 5, not at the
# last, and stops after six. It has not learned "start from the last". The first row would have to
# know the length of the source. The encoder could provide it: its attention would have to find the
# last position and write into each vector its distance from the end. Training with one length never
# requires that.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
