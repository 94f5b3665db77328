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
# In this lab you see what a convolution does, before any network has learned one. You design
# kernels by hand, apply them to handwritten digits and to a picture, and measure the effects of
# padding, stride and channels. It takes about an hour.
#
# - Replace the three dots with your answers, and keep their names (`q1_kernel`, ...). The cell
#   below each answer checks its form and some of the values; hidden tests decide the rest.
# - Questions 6 and 11 ask for a few sentences, graded by the staff.
# - The lab runs on your own `conv2d_forward` if it is correct, and on a stand-in otherwise; the
#   next cell prints which. After a change of `convolution.py`, restart the kernel.
# - Before you submit, choose "Restart kernel and run all cells", and save.

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
    """The feature map of one grayscale image under one kernel; all three are 2-d arrays."""
    x, w = np.asarray(image, float)[None, None], np.asarray(kernel, float)[None, None]
    return conv2d_forward(x, w, np.zeros(1), stride, padding)[0][0, 0]


def show(*pictures, titles, signed=False):
    """Draw pictures side by side. signed: blue below 0, white at 0, red above."""
    figure = plt.figure(figsize=(4 * len(pictures), 3.2))
    for column, (picture, title) in enumerate(zip(pictures, titles, strict=True), 1):
        axis = figure.add_subplot(1, len(pictures), column)
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
# An edge is where brightness changes. A kernel detects it with a difference: some weights are
# positive, others negative, and where all pixels under the kernel are equal, the sum is 0. The
# kernel below computes the pixel on the right minus the pixel on the left. Red is positive, blue
# is negative: each stroke has a red side, from dark paper to bright ink, and a blue side.

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
# **Question 1.** A single row of weights responds to every noisy pixel. Design a 3 x 3 kernel that
# detects **vertical** edges. Its response is positive where it gets brighter from left to right, 0
# on every flat area, and 0 where brightness changes only from top to bottom.

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
assert abs(np.sum(q1_kernel)) < 1e-9, "its response on a flat area must be 0"

# %%
bright_columns = [np.sum(np.asarray(q1_kernel)[:, first:]) for first in (1, 2)]
assert min(bright_columns) > -1e-9, "where it gets brighter, its response must not be negative"
assert max(bright_columns) > 1e-9, "where it gets brighter, its response must be positive"

# %%
# HIDDEN
assert np.allclose(np.sum(q1_kernel, axis=1), 0)

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# The transposed kernel detects horizontal edges. The two responses are the components of a vector,
# the image gradient; its length, the **gradient magnitude**, shows the edges of all directions.

# %%
answered(q1_kernel=q1_kernel)
vertical, horizontal = convolve(photo, q1_kernel), convolve(photo, np.transpose(q1_kernel))
show(vertical, horizontal, titles=["vertical edges", "horizontal edges"], signed=True)
show(np.hypot(vertical, horizontal), titles=["gradient magnitude"])

# %% [markdown]
# Now make the whole picture brighter by 0.1. Compare the response of a kernel whose weights are
# all positive with that of yours.

# %%
answered(q1_kernel=q1_kernel)
brighter = photo + 0.1
mean_kernel = np.full((3, 3), 1 / 9)
for name, kernel in (("mean", mean_kernel), ("yours", np.asarray(q1_kernel))):
    change = convolve(brighter, kernel) - convolve(photo, kernel)
    print(f"{name}: the response changes by {np.abs(change).max():.6f}")

# %% [raw]
# # BEGIN QUESTION
# name: q2
# points: 1

# %% [markdown]
# **Question 2.** What must the sum of a kernel's weights be, so that its response doesn't change
# when the whole picture gets brighter?

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
# The next cell prints the mean strength of the vertical and the horizontal edges in each digit,
# with the `difference` kernel from above and with its transpose.

# %%
answered(q2_sum=q2_sum)
vertical_strength = np.array([np.abs(convolve(digit, difference)).mean() for digit in digits])
horizontal_strength = np.array([np.abs(convolve(digit, difference.T)).mean() for digit in digits])
for digit, (first, second) in enumerate(zip(vertical_strength, horizontal_strength, strict=True)):
    print(f"{digit}: vertical {first:.3f}, horizontal {second:.3f}")

# %% [raw]
# # BEGIN QUESTION
# name: q3
# points: 1

# %% [markdown]
# **Question 3.** Which of these ten digits has the largest **ratio** of vertical to horizontal
# edges?

# %% [raw]
# # BEGIN SOLUTION

# %%
q3_digit = int(np.argmax(vertical_strength / horizontal_strength))  # SOLUTION

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
# ## Noise
#
# In bad light, a photograph is noisy: each pixel has a small error, independent of the others.
# Kernels that compute differences amplify noise. Kernels that compute means reduce it.

# %%
answered(q3_digit=q3_digit)
noisy = photograph(noise=0.1)


def edges(picture):
    """The gradient magnitude, at the pixels that both maps have."""
    across, down = convolve(picture, difference)[1:-1], convolve(picture, difference.T)[:, 1:-1]
    return np.hypot(across, down)


show(noisy, edges(noisy), titles=["with noise", "its edges"])


def noise_after_mean(size):
    """The noise in an area of sky after a mean over size x size pixels; size 1 changes nothing."""
    return convolve(noisy, np.full((size, size), 1 / size**2))[SKY].std()


print(f"noise of the picture: {noise_after_mean(1):.3f}")

# %% [raw]
# # BEGIN QUESTION
# name: q4
# points: 1

# %% [markdown]
# **Question 4.** By which factor does a mean over 5 x 5 pixels change the noise? Measure it, or
# derive it: the mean of $n$ independent values has $1/\sqrt n$ of their standard deviation. An
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
assert abs(q4_factor - 0.2) <= 0.02, "the noise after the mean, divided by the noise before"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Apply the mean over 3 x 3 pixels twice: two convolutions, one after the other. Convolution is
# linear, so a single kernel can do the work of both. This cell computes it: the convolution of one
# kernel with the other, with enough padding for every overlap. (Our convolution doesn't flip, so
# one of the two is flipped first.)

# %%
answered(q4_factor=q4_factor)
two_steps = convolve(convolve(noisy, mean_kernel), mean_kernel)
both = convolve(mean_kernel, mean_kernel[::-1, ::-1], padding=2)
one_step = convolve(noisy, both)
print(f"they differ by at most {np.abs(two_steps - one_step).max():.1e}")
show(both, one_step, titles=["the single kernel", "its map"])

# %% [raw]
# # BEGIN QUESTION
# name: q5
# points: 1

# %% [markdown]
# **Question 5.** How many pixels wide is the single kernel that does the work of three 3 x 3
# kernels, one after the other, with stride 1? (For two of them, see `both.shape`.)

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
    """The edges of the noisy picture after a mean over size x size pixels."""
    smooth = convolve(noisy, np.full((size, size), 1 / size**2))
    show(smooth, edges(smooth), titles=[f"mean over {size} x {size}", "its edges"])


slide(draw_smoothed, size=(1, 9))

# %% [raw]
# # BEGIN QUESTION
# name: q6
# manual: true
# points: 2

# %% [markdown]
# **Question 6.** Move the slider. What do you gain with a larger mean, what do you lose, and which
# size would you choose for this picture? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# A larger mean removes more noise, so the edges that remain are those of objects. It also blurs
# the edges, and thin objects vanish: the trunks and the windows first. A size of 3 or 5 keeps them
# and removes most of the noise.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION

# %% [markdown]
# ## Channels
#
# A color image has three channels: red, green and blue. A kernel has a slice for each, so a 3 x 3
# kernel has 27 weights, and still gives one map. This one has positive weights in its red slice
# and negative weights in the other two. (The colors are artificial: each shade of gray gets one.)
# Before you run the cell: which parts of the picture get the largest response, what is the
# response on gray, where all three channels are equal, and what is the shape of the output? (These
# questions have no points.)

# %%
shades = [0.0, 0.12, 0.17, 0.2, 0.3, 0.45, 0.8, 0.9]
colors = [
    [0.3, 0.3, 0.8, 0.2, 0.6, 0.4, 0.5, 0.9],  # red
    [0.2, 0.2, 0.1, 0.4, 0.7, 0.6, 0.7, 0.9],  # green
    [0.1, 0.1, 0.1, 0.2, 0.3, 0.4, 1.0, 0.9],  # blue
]
clean = photograph(noise=0)
color = np.stack([np.interp(clean, shades, channel) for channel in colors])  # (3, 96, 128)
show(color.transpose(1, 2, 0), *color, titles=["color", "red", "green", "blue"])

average = np.full((3, 3), 1 / 9)
red_kernel = np.stack([average, -average / 2, -average / 2])  # (3, 3, 3)
red_map = conv2d_forward(color[None], red_kernel[None], np.zeros(1), 1, 1)[0]
print(f"image {color[None].shape}, kernel {red_kernel[None].shape}, map {red_map.shape}")
show(red_map[0, 0], titles=["red minus the mean of green and blue"], signed=True)

slices = [convolve(color[c], red_kernel[c], padding=1) for c in range(3)]
print(f"the sum of the three slices differs by {np.abs(sum(slices) - red_map[0, 0]).max():.1e}")

# %% [markdown]
# A convolution from `c_in` to `c_out` channels mixes pixels and channels in one step. A
# **depthwise separable** convolution (MobileNets; Howard et al., 2017) does one after the other:
# first one k x k kernel per channel (depthwise), then `c_out` kernels of 1 x 1 that mix the
# channels (pointwise). Before you run the cell, count the parameters of both for 32 to 64 channels
# and 3 x 3 kernels, without biases. (This question has no points.) Each weight is used once per
# output pixel, so the multiplications have the same ratio: $1/c_{out} + 1/k^2$.

# %%
c_in, c_out, k, pixels = 32, 64, 3, 28 * 28
full = c_out * c_in * k * k
separable = c_in * k * k + c_out * c_in
for name, weights in (("full", full), ("depthwise separable", separable)):
    print(f"{name}: {weights:,} parameters, {weights * pixels:,} multiplications")
print(f"ratio {separable / full:.3f}, 1/c_out + 1/k^2 = {1 / c_out + 1 / k**2:.3f}")

# Every depthwise separable convolution is a full one: its kernels are products of the two parts.
depthwise = np.stack([average, np.eye(3), np.outer([1, 2, 1], [-1, 0, 1])])  # (c_in, 3, 3)
pointwise = np.array([[1.0, -1, 0], [0, 2, 1]])  # (c_out, c_in)
steps = np.stack([convolve(color[c], depthwise[c]) for c in range(3)])  # (c_in, h, w)
mixed = conv2d_forward(steps[None], pointwise[:, :, None, None], np.zeros(2), 1, 0)[0]
product = pointwise[:, :, None, None] * depthwise  # (c_out, c_in, 3, 3)
direct = conv2d_forward(color[None], product, np.zeros(2), 1, 0)[0]
print(f"in two steps and in one, the maps differ by at most {np.abs(mixed - direct).max():.1e}")

# %% [markdown]
# ## Padding and stride
#
# Without padding, a map is smaller than its picture. With stride 2, it has only every second row
# and column.


# %%
def draw_map(stride, padding):
    """The map of vertical edges."""
    title = f"stride {stride}, padding {padding}"
    show(convolve(photo, difference, stride, padding), titles=[title], signed=True)


slide(draw_map, stride=(1, 8), padding=(0, 8))

# %% [raw]
# # BEGIN QUESTION
# name: q7
# points: 2

# %% [markdown]
# **Question 7.** The photograph has 96 rows and 128 columns. What is the size of its map under a
# kernel of 5 rows and 3 columns, with stride (2, 3) and padding (2, 0)? A tuple (rows, columns).

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
# Padding has side effects: zeros are black pixels that aren't in the picture. Here are the mean
# and the difference of a picture that is all white.

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
# **Question 8.** With padding 1, what is the mean over 3 x 3 pixels in the corner of an all-white
# picture (all ones)? An error of 0.001 is allowed.

# %% [raw]
# # BEGIN SOLUTION

# %%
q8_corner = 4 / 9  # SOLUTION

# %% [raw]
# # END SOLUTION

# %% [raw]
# # BEGIN TESTS

# %%
assert abs(q8_corner - convolve(white, mean_kernel, padding=1)[0, 0]) <= 1e-3, "see the map"

# %% [raw]
# # END TESTS

# %% [raw]
# # END QUESTION

# %% [markdown]
# Now shift the photograph to the right by a few pixels, and compare the maps, away from the edge.
# With stride 1, the new map is the old one, shifted by the same distance: convolution is
# **translation equivariant**. With a larger stride, the cell tries shifts of the old map by up to
# four pixels, and takes the one that fits best.

# %%
answered(q8_corner=q8_corner)


def smallest_difference(pixels, stride):
    """The largest error of the best shift of the old map, compared with the new map."""
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
# - `"a"`: it shifts by one pixel, as with stride 1.
# - `"b"`: it stays the same, since half a step is no step.
# - `"c"`: it gets other values: no shift of the old map gives the new one.
# - `"d"`: it shifts by two pixels.

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
# Stride also enlarges the **receptive field** of the next layer: the input pixels on which one of
# its outputs depends. A pixel of the first map depends on as many pixels as its kernel has. A
# pixel of the second map depends on all pixels that the first-map pixels under its kernel depend
# on. To find out which, the cell makes one pixel white in a black picture and tests whether the
# center of the second map responds; it does so for every pixel.

# %%
answered(q9_shift=q9_shift)
ones = np.ones((3, 3))


def receptive_field(stride):
    """The pixels on which the center of the second map depends; the first map has that stride."""
    size, w, b = 17, ones[None, None], np.zeros(1)
    pictures = np.eye(size * size).reshape(-1, 1, size, size)  # a different white pixel in each
    first = conv2d_forward(pictures, w, b, stride, 0)[0]
    second = conv2d_forward(first, w, b, 1, 0)[0]  # (pictures, 1, h, h)
    center = second.shape[2] // 2
    return (second[:, 0, center, center] > 0).reshape(size, size)


field = receptive_field(1)
show(field, titles=["receptive field of the center"])
print(f"stride 1: {int(field.any(axis=0).sum())} pixels wide")

# %% [raw]
# # BEGIN QUESTION
# name: q10
# points: 2

# %% [markdown]
# **Question 10.** How many pixels wide is the receptive field of a pixel of the second map, if the
# first map has stride 3 and both kernels are 3 x 3? Work it out on paper first.

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
# **Question 11.** Above are two maps with padding (0, 1). Where is the padding visible in the map
# of the photograph, and why isn't it in that of the digit? Two to four sentences.

# %% [raw]
# # BEGIN SOLUTION

# %% [markdown]
# On the left and the right side of the photograph there is a strong vertical edge, which isn't in
# the picture: the padding is black, and the sky is bright. The digit's paper is 0, like the
# padding, so there is no edge.

# %% [raw]
# # END SOLUTION

# %% [raw]
# # END QUESTION
