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
# # Lab 1: edges, padding and stride
#
# Here you look at what a convolution does, before any network has learned one. You make kernels by
# hand, lay them on handwritten digits and on a picture, and see what padding and stride leave of
# it. It takes about an hour.
#
# - Put your answers in place of the three dots, and run the cell below each: it checks the form,
#   and some of the values. Hidden tests decide the rest.
# - Keep the names of the answers (`q1_kernel`, ...), and run everything once more from the top
#   before you submit. Questions 6 and 11 ask for a few sentences, which people read.
# - The lab runs on your own `conv2d_forward`, or on a stand-in as long as yours isn't finished.
#   The next cell says which. After a change of `convolution.py`, restart the kernel. When the lab
#   is graded, it runs on the stand-in, so a mistake in your code costs nothing here.

# %%
import sys

sys.path.insert(0, "../..")  # the course's folder, which holds assignments/ and common/

import matplotlib.pyplot as plt
import numpy as np

from common.data import load_mnist
from common.labs import answered, own_or_standin, slide
from common.labs.pictures import SKY, photograph

example = np.arange(20.0).reshape(1, 1, 4, 5), np.arange(6.0).reshape(1, 1, 2, 3), np.ones(1)
conv2d_forward = own_or_standin(
    "a1_convolution.convolution",
    "conv2d_forward",
    lambda forward: forward(*example, stride=(1, 2), padding=(1, 0))[0],
)


def convolve(image, kernel, stride=1, padding=0):
    """The map of one image in shades of grey under one kernel, both with two axes."""
    x, w = np.asarray(image, float)[None, None], np.asarray(kernel, float)[None, None]
    return conv2d_forward(x, w, np.zeros(1), stride, padding)[0][0, 0]


def show(*pictures, titles, signed=False):
    """Draw pictures side by side. signed: blue below 0, white at 0, red above."""
    figure = plt.figure(figsize=(4 * len(pictures), 3.2))
    for place, (picture, title) in enumerate(zip(pictures, titles, strict=True), 1):
        axis = figure.add_subplot(1, len(pictures), place)
        if signed:
            largest = np.abs(picture).max() or 1
            axis.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest)
        else:
            axis.imshow(picture, cmap="gray")
        axis.set_title(f"{title}: {picture.shape[0]} x {picture.shape[1]}", fontsize=9)
        axis.axis("off")
    plt.show()


digits = load_mnist().test_images[:10, 0].astype(float)  # (10, 28, 28): a 0, a 1, ..., a 9
photo = photograph()  # (96, 128)
show(np.hstack(digits[:5]), np.hstack(digits[5:]), titles=["digits 0 to 4", "digits 5 to 9"])
show(photo, titles=["photograph"])

# %% [markdown]
# ## Edges
#
# An edge is where brightness changes. A kernel finds it by a difference: some weights are
# positive, others negative, and where all pixels under the kernel are alike, the sum is 0. The
# kernel below takes the pixel on the right minus the pixel on the left. Red is positive, blue is
# negative: each stroke has a red side, where you come from the dark paper to the bright ink, and a
# blue one.

# %%
difference = np.array([[-1.0, 0.0, 1.0]])
strokes = np.hstack([convolve(digit, difference) for digit in digits[:5]])
show(strokes, titles=["right minus left"], signed=True)
show(convolve(photo, difference), titles=["right minus left"], signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q1
# points: 4

# %% [markdown]
# **Question 1.** One row of weights sees every speck of grain. Make a 3 x 3 kernel that answers to
# **upright** edges: with a positive number where it gets brighter from left to right, with 0 on
# every flat area, and with 0 where brightness changes from top to bottom only.

# %% [raw]
# # BEGIN SOLUTION

# %%
q1_kernel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert np.shape(q1_kernel) == (3, 3), "q1_kernel must have shape (3, 3)"

# %%
assert abs(np.sum(q1_kernel)) < 1e-9, "on a flat area it must answer with 0"

# %%
bright_columns = [np.sum(np.asarray(q1_kernel)[:, first:]) for first in (1, 2)]
assert min(bright_columns) > -1e-9, "where it gets brighter, it must never be negative"
assert max(bright_columns) > 1e-9, "where it gets brighter, it must be positive"

# %%
# HIDDEN
assert np.allclose(np.sum(q1_kernel, axis=1), 0)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Turned on its side, the same kernel finds level edges. Both together give the outline: the length
# of the arrow whose parts are the two answers.

# %%
answered(q1_kernel=q1_kernel)
upright, level = convolve(photo, q1_kernel), convolve(photo, np.transpose(q1_kernel))
show(upright, level, titles=["upright edges", "level edges"], signed=True)
show(np.hypot(upright, level), titles=["outline"])

# %% [markdown]
# Now make the whole picture brighter by 0.1, and see what a kernel says whose weights are all
# positive, and what yours says.

# %%
answered(q1_kernel=q1_kernel)
brighter = photo + 0.1
mean_kernel = np.full((3, 3), 1 / 9)
for name, kernel in (("mean", mean_kernel), ("yours", np.asarray(q1_kernel))):
    change = convolve(brighter, kernel) - convolve(photo, kernel)
    print(f"{name}: the answers change by {np.abs(change).max():.6f}")

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** To what number must the weights of a kernel add up, if its answers are not to
# change when the whole picture gets brighter?

# %% [raw]
# # BEGIN SOLUTION

# %%
q2_sum = 0  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q2_sum) < 1e-9, "try it: print kernel.sum() of a kernel that passes"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The next cell gives the mean strength of upright and of level edges in each digit, under the
# difference from above and under the same from top to bottom.

# %%
answered(q2_sum=q2_sum)
upright_strength = np.array([np.abs(convolve(digit, difference)).mean() for digit in digits])
level_strength = np.array([np.abs(convolve(digit, difference.T)).mean() for digit in digits])
for digit, (first, second) in enumerate(zip(upright_strength, level_strength, strict=True)):
    print(f"{digit}: upright {first:.3f}, level {second:.3f}")

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** Which of these ten digits is the most upright one: the one with the largest
# **ratio** of upright to level edges?

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_digit = int(np.argmax(upright_strength / level_strength))  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q3_digit in range(10), "a digit from 0 to 9"

# %%
# HIDDEN
assert q3_digit == 4

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Grain
#
# In bad light, a photograph has more grain: each pixel is off by a little, on its own. A kernel
# that takes differences makes much of it. Means take it away: they are the opposite of
# differences.

# %%
answered(q3_digit=q3_digit)
grainy = photograph(grain=0.1)


def outline(picture):
    """The strength of all edges: both differences, at the places that both maps have."""
    across, down = convolve(picture, difference)[1:-1], convolve(picture, difference.T)[:, 1:-1]
    return np.hypot(across, down)


show(grainy, outline(grainy), titles=["with grain", "its outline"])


def grain_after_mean(size):
    """The grain in a piece of sky after a mean over size x size pixels; size 1 changes nothing."""
    return convolve(grainy, np.full((size, size), 1 / size**2))[SKY].std()


print(f"grain of the picture: {grain_after_mean(1):.3f}")

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** By which factor does a mean over 5 x 5 pixels change the grain? Measure it, or
# think: a mean of $n$ independent values has a standard deviation of $1/\sqrt n$ of theirs. An
# error of 0.02 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q4_factor = 1 / 5  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q4_factor - 0.2) <= 0.02, "the grain after the mean, divided by the grain before"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Take the mean over 3 x 3 pixels, and of that the mean again: two convolutions, one after the
# other. Both are sums of products, so one kernel can do the work of both. This cell finds it: the
# two kernels are laid over each other in all ways, which is what a convolution with enough padding
# does. (It slides without flipping, so one of the two is flipped first.)

# %%
answered(q4_factor=q4_factor)
two_steps = convolve(convolve(grainy, mean_kernel), mean_kernel)
both = convolve(mean_kernel, mean_kernel[::-1, ::-1], padding=2)
one_step = convolve(grainy, both)
print(f"they differ by at most {np.abs(two_steps - one_step).max():.1e}")
show(both, one_step, titles=["the one kernel", "its map"])

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 1

# %% [markdown]
# **Question 5.** How many pixels wide is the one kernel that does the work of three 3 x 3 kernels,
# one after the other, with stride 1? (For two of them, look at `both.shape`.)

# %% [raw]
# # BEGIN SOLUTION

# %%
q5_size = 7  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q5_size == int(q5_size), "a whole number"

# %%
# HIDDEN
assert q5_size == 7

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q5_size=q5_size)


def draw_smoothed(size):
    """The outline of the grainy picture, after a mean over size x size pixels."""
    smooth = convolve(grainy, np.full((size, size), 1 / size**2))
    show(smooth, outline(smooth), titles=[f"mean over {size} x {size}", "its outline"])


slide(draw_smoothed, size=(1, 9))

# %% [raw]
# # BEGIN QUESTION
# name: q6
# manual: true
# points: 2

# %% [markdown]
# **Question 6.** Move the slider. What do you gain with a larger mean, what do you lose, and which
# size would you take for this picture? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# A larger mean takes grain away, so that what is left of the outline is the outline of things. It
# also makes edges wide, and thin things vanish: the trunks and the windows go first. A size of 3
# or 5 keeps them and takes most of the grain.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Padding and stride
#
# Without padding, a map is smaller than its picture. With stride 2, every other place is left out.


# %%
def draw_map(stride, padding):
    """The map of upright edges."""
    title = f"stride {stride}, padding {padding}"
    show(convolve(photo, difference, stride, padding), titles=[title], signed=True)


slide(draw_map, stride=(1, 8), padding=(0, 8))

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 2

# %% [markdown]
# **Question 7.** The photograph has 96 rows and 128 columns. How large is its map under a kernel
# of 5 rows and 3 columns, with stride (2, 3) and padding (2, 0)? A tuple (rows, columns).

# %% [raw]
# # BEGIN SOLUTION

# %%
q7_shape = (48, 42)  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
map_shape = convolve(photo, np.ones((5, 3)), (2, 3), (2, 0)).shape
assert tuple(q7_shape) == map_shape, "floor((N + 2p - k) / s) + 1, for each axis with its own sizes"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Padding isn't free: zeros are dark pixels that nobody has seen. Here is the mean of a picture
# that is all white, and what the difference says of it.

# %%
answered(q7_shape=q7_shape)
white = np.ones((7, 9))
white_mean = convolve(white, mean_kernel, padding=1)
white_difference = convolve(white, difference, padding=(0, 1))
show(white_mean, white_difference, titles=["mean", "right minus left"], signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q8
# points: 2

# %% [markdown]
# **Question 8.** What is the mean over 3 x 3 pixels of an all-white picture (all ones) in its
# corner, with padding 1? An error of 0.001 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_corner = 4 / 9  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q8_corner - convolve(white, mean_kernel, padding=1)[0, 0]) <= 1e-3, "look at the map"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Now shift the photograph to the right by a few pixels, and compare the maps, away from the edge.
# With stride 1, the new map is the old one, shifted as far. With a larger stride, the cell tries
# shifts of the old map by up to four places, and takes the one that fits best.

# %%
answered(q8_corner=q8_corner)


def smallest_difference(pixels, stride):
    """How far the map of the shifted picture is from the nearest shift of the old map."""
    old = convolve(photo, difference, stride)
    new = convolve(np.roll(photo, pixels, axis=1), difference, stride)
    inner = slice(8, -8)
    shifts = [np.roll(old, shift, axis=1) for shift in range(-4, 5)]
    return min(np.abs(new - shifted)[:, inner].max() for shifted in shifts)


for pixels, stride in ((1, 1), (1, 2), (2, 2), (2, 4), (4, 4)):
    print(f"shift {pixels}, stride {stride}: off by {smallest_difference(pixels, stride):.2f}")

# %% [raw]
# # BEGIN QUESTION
# name: q9
# points: 1

# %% [markdown]
# **Question 9.** A picture is shifted by one pixel. What happens to its map with stride 2?
#
# - `"a"`: it shifts by one, as with stride 1.
# - `"b"`: it stays the same, since half a step is no step.
# - `"c"`: it gets other values: no shift of the old map gives the new one.
# - `"d"`: it shifts by two.

# %% [raw]
# # BEGIN SOLUTION

# %%
q9_shift = "c"  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q9_shift in ("a", "b", "c", "d"), "one of the four letters"

# %%
# HIDDEN
assert q9_shift == "c"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Stride also lets the next layer see more. One place of a map sees as many pixels as its kernel
# has. A place of the next map sees the pixels of all the places under its kernel. To find out
# which, make one pixel white in a black picture, and see whether the middle of the second map
# answers. The cell does so for each pixel.

# %%
answered(q9_shift=q9_shift)
ones = np.ones((3, 3))


def seen_by_the_middle(stride):
    """The pixels that the middle of the second of two maps sees; the first map has that stride."""
    size, w, b = 17, ones[None, None], np.zeros(1)
    pictures = np.eye(size * size).reshape(-1, 1, size, size)  # in each, another pixel is white
    first = conv2d_forward(pictures, w, b, stride, 0)[0]
    second = conv2d_forward(first, w, b, 1, 0)[0]  # (pictures, 1, h, h)
    middle = second.shape[2] // 2
    return (second[:, 0, middle, middle] > 0).reshape(size, size)


seen = seen_by_the_middle(1)
show(seen, titles=["what the middle sees"])
print(f"stride 1: {int(seen.any(axis=0).sum())} pixels wide")

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** How many pixels wide is what a place of the second map sees, if the first map
# has stride 3 and both kernels are 3 x 3? Find it on paper first.

# %% [raw]
# # BEGIN SOLUTION

# %%
q10_field = 9  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert q10_field == int(q10_field), "a whole number"

# %%
# HIDDEN
assert q10_field == 9

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %%
answered(q10_field=q10_field)
padded = [convolve(picture, difference, padding=(0, 1)) for picture in (photo, digits[3])]
show(*padded, titles=["photograph", "digit"], signed=True)

# %% [raw]
# # BEGIN QUESTION
# name: q11
# manual: true
# points: 2

# %% [markdown]
# **Question 11.** Above are two maps with padding (0, 1). Where has the padding left a mark on the
# map of the photograph, and why not on that of the digit? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# On the left and the right side of the photograph there is a strong upright edge, which isn't in
# the picture: the padding is black, and the sky is bright. The digit's paper is 0 itself, like the
# padding, so nothing changes there.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
