"""Draws the figures of the handout of assignment 1: `python -m autograder figures a1`."""

import numpy as np
from matplotlib.figure import Figure

from common.training.plots import (
    BLUE,
    FAINT,
    FONT,
    GREEN,
    INK,
    ORANGE,
    PINK,
    SKY,
    arrow,
    canvas,
    chart,
    frame,
    number,
    number_grid,
    shades,
    tint,
    words,
)

# Drawn by hand: how dark each pixel is, from 0 to 9.
DIGIT = np.array(
    [
        [int(level) for level in row]
        for row in (
            "000000000000",
            "000479995000",
            "007973379900",
            "003200007930",
            "000000009910",
            "000003699400",
            "000005899600",
            "000000005950",
            "000000000980",
            "004100003970",
            "006973379930",
            "000479996000",
            "000000000000",
        )
    ]
)

# The worked example of the handout.
W = np.array([[1, -1], [2, 3]])
DOUT = np.array([[1, 2], [-1, 3]])

FOUR = (BLUE, ORANGE, GREEN, PINK)


def digit() -> Figure:
    """One image twice: as the strip that a linear layer gets, and as the grid."""
    rows, columns = DIGIT.shape
    figure, axes = canvas(27, 10, cell=0.3)
    ink = {"cmap": "Greys", "vmin": 0, "vmax": 9, "interpolation": "nearest"}
    axes.imshow(DIGIT.reshape(1, -1), extent=(0.6, 16.2, 6.4, 3.8), aspect="auto", **ink)
    frame(axes, (0.6, 3.8), 2.6, 15.6, FAINT, width=0.8)
    words(axes, (8.4, 3.2), f"flattened: {DIGIT.size} numbers in a row")
    top = 9.6 - 7.6 * rows / columns
    axes.imshow(DIGIT, extent=(18.4, 26.0, 9.6, top), aspect="auto", **ink)
    frame(axes, (18.4, top), 9.6 - top, 7.6, FAINT, width=0.8)
    words(axes, (22.2, top - 0.6), f"the grid: {rows} rows of {columns}")
    axes.set(xlim=(0, 27), ylim=(10, 0))
    return figure


def slide() -> Figure:
    """A kernel at two positions of an image, and the two output values."""
    image = np.array(
        [[0, 0, 0, 9, 9], [0, 0, 0, 9, 9], [0, 0, 9, 9, 9], [0, 0, 9, 9, 9], [0, 9, 9, 9, 9]]
    )
    kernel = np.array([[-1, 0, 1]] * 3)
    out = np.array(
        [[np.sum(image[r : r + 3, s : s + 3] * kernel) for s in range(3)] for r in range(3)]
    )
    figure, axes = canvas(18.2, 8.4)
    number_grid(axes, image, (0.6, 1.2), shades(9 - image, FAINT, 0.45), "image, 5 x 5")
    number_grid(axes, kernel, (8.2, 2.2), title="kernel, 3 x 3")
    number_grid(axes, out, (14.2, 2.2), shades(out, SKY, 0.6), "feature map, 3 x 3")
    for (row, column), color in (((0, 1), BLUE), ((2, 2), ORANGE)):
        frame(axes, (0.6 + column, 1.2 + row), 3, 3, color, inset=0.05)
        frame(axes, (14.2 + column, 2.2 + row), 1, 1, color, inset=0.06)
    words(axes, (6.9, 3.7), "*", size=16)
    words(axes, (12.7, 3.7), "=", size=16)
    for line, (row, column), color in ((6.9, (0, 1), BLUE), (7.8, (2, 2), ORANGE)):
        patch = image[row : row + 3, column : column + 3]
        right, left = (" + ".join(number(v) for v in patch[:, side]) for side in (2, 0))
        axes.plot([0.6, 1.4], [line, line], color=color, linewidth=3)
        text = f"at row {row}, column {column}: ({right}) - ({left}) = {out[row, column]}"
        words(axes, (1.8, line), text.replace("- (", "\N{MINUS SIGN} ("), align="left")
    return figure


def positions() -> Figure:
    """The positions of a kernel of size 3 along one axis, for four pairs of stride and padding."""
    figure, axes = canvas(23.5, 14.2, cell=0.33)
    cases = (
        ((0.6, 1.4), 5, 1, 0),
        ((12.8, 1.4), 5, 1, 1),
        ((0.6, 9.4), 7, 2, 0),
        ((12.8, 9.4), 6, 2, 0),
    )
    for (left, top), size, stride, padding in cases:
        count = (size + 2 * padding - 3) // stride + 1
        cells = np.arange(size + 2 * padding) - padding
        real = (cells >= 0) & (cells < size)
        label = [
            number(cell) if inside else "pad" for cell, inside in zip(cells, real, strict=True)
        ]
        fills = {(0, i): tint(SKY, 0.35) for i in np.flatnonzero(real)}
        inks = {(0, i): FAINT for i in np.flatnonzero(~real)}
        formula = f"({size} + 2·{padding} \N{MINUS SIGN} 3) / {stride}"
        heading = f"size {size}, kernel size 3, stride {stride}, padding {padding}"
        words(axes, (left, top - 0.8), heading, align="left", bold=True)
        number_grid(axes, [label], (left, top), fills, inks=inks, size=9)
        for position in range(count):
            line = top + 1.45 + 0.72 * position
            start = left + position * stride
            axes.plot(
                [start + 0.1, start + 2.9],
                [line, line],
                color=FOUR[position % 4],
                linewidth=6,
                solid_capstyle="butt",
            )
        left_over = size + 2 * padding - 3 - (count - 1) * stride
        if left_over:
            corner = left + size + 2 * padding - left_over
            frame(axes, (corner, top), 1, left_over, INK, inset=0.06, width=1.4, dashed=True)
            words(axes, (corner + left_over + 0.3, top + 0.5), "never used", size=9, align="left")
        down = " rounded down" if left_over else ""
        text = f"{formula}{down} + 1 = {count} positions"
        words(axes, (left, top + 1.45 + 0.72 * count + 0.35), text, align="left")
    return figure


def seen() -> Figure:
    """How many positions of a 3 x 3 kernel contain each pixel, for three paddings."""
    figure, axes = canvas(22, 8.4)
    for left, padding in ((1.0, 0), (8.5, 1), (16.0, 2)):
        counts = np.zeros((5 + 2 * padding, 5 + 2 * padding), dtype=int)
        size = 5 + 2 * padding - 2
        for row in range(size):
            for column in range(size):
                counts[row : row + 3, column : column + 3] += 1
        counts = counts[padding : padding + 5, padding : padding + 5]
        number_grid(axes, counts, (left, 1.4), shades(counts, SKY, 0.8), f"padding {padding}")
        spread = "equal" if counts.min() == counts.max() else f"corner {counts[0, 0]}, center 9"
        words(axes, (left + 2.5, 7.0), spread)
        words(axes, (left + 2.5, 7.8), f"output {size} x {size}", FAINT)
    return figure


def channels() -> Figure:
    """Three channels times the three slices of one kernel; their sum plus a bias is one output."""
    image = np.array(
        [
            [[1, 0, 2], [3, 1, 0], [0, 2, 1]],
            [[0, 1, 1], [2, 1, 3], [1, 1, 0]],
            [[3, 1, 0], [0, 1, 2], [1, 0, 1]],
        ]
    )
    kernel = np.array([[[1, 2], [1, -1]], [[0, 1], [1, 1]], [[2, -1], [1, 0]]])
    bias = 2
    figure, axes = canvas(22.5, 13.0, cell=0.33)
    out = np.array(
        [
            [np.sum(image[:, r : r + 2, s : s + 2] * kernel) + bias for s in range(2)]
            for r in range(2)
        ]
    )
    words(axes, (2.5, 0.7), "x: (3, 3, 3)")
    words(axes, (8.0, 0.7), "one kernel: (3, 2, 2)")
    words(axes, (19.5, 4.5), "one map: (1, 2, 2)")
    sums = []
    for channel, color in enumerate((BLUE, ORANGE, GREEN)):
        top = 1.5 + 4.0 * channel
        patch = {(r, s): tint(color, 0.35) for r in range(2) for s in range(2)}
        number_grid(axes, image[channel], (1.0, top), patch)
        frame(axes, (1.0, top), 2, 2, color)
        number_grid(axes, kernel[channel], (7.0, top), patch)
        frame(axes, (7.0, top), 2, 2, color)
        part = int(np.sum(image[channel, :2, :2] * kernel[channel]))
        sums.append(part)
        words(axes, (5.5, top + 1), "*", size=15)
        words(axes, (10.0, top + 1), "=", size=13)
        number_grid(axes, [[part]], (11.0, top + 0.5), {(0, 0): tint(color, 0.35)})
        arrow(axes, (12.2, top + 1), (13.6, 6.5), color)
    line = " + ".join(number(part) for part in sums)
    words(axes, (13.9, 6.0), f"{line} + {bias}", align="left")
    words(axes, (13.9, 6.9), "bias added once", FAINT, size=9, align="left")
    arrow(axes, (17.1, 6.0), (18.3, 6.0))
    number_grid(axes, out, (18.5, 5.5), {(0, 0): tint(PINK, 0.45)})
    frame(axes, (18.5, 5.5), 1, 1, PINK)
    return figure


def pooling() -> Figure:
    """Max and average pooling with 2 x 2 windows: values forwards, gradients backwards."""
    x = np.array([[1, 3, 2, 2], [5, 4, 0, 2], [-3, -1, 6, 1], [-2, -4, 1, 8]])
    dout = np.array([[4, 8], [-4, 12]])
    largest, mean = np.zeros((2, 2), dtype=int), np.zeros((2, 2))
    dmax, dmean = np.zeros((4, 4), dtype=int), np.zeros((4, 4))
    fills, strong, small = {}, {}, {}
    for index, (r, s) in enumerate(np.ndindex(2, 2)):
        color = FOUR[index]
        window = x[2 * r : 2 * r + 2, 2 * s : 2 * s + 2]
        row, column = divmod(int(window.argmax()), 2)
        largest[r, s], mean[r, s] = window.max(), window.mean()
        dmax[2 * r + row, 2 * s + column] = dout[r, s]
        dmean[2 * r : 2 * r + 2, 2 * s : 2 * s + 2] = dout[r, s] / 4
        small[r, s] = tint(color)
        for p, q in np.ndindex(2, 2):
            fills[2 * r + p, 2 * s + q] = tint(color)
            strong[2 * r + p, 2 * s + q] = tint(color, 0.55 if (p, q) == (row, column) else 0.12)
    figure, axes = canvas(23.2, 12.9, cell=0.34)
    number_grid(axes, x, (0.6, 5.4), fills, "x")
    for top, name, out, gradient, cells in (
        (2.2, "max", largest, dmax, strong),
        (8.4, "average", mean, dmean, fills),
    ):
        number_grid(axes, out, (8.4, top + 1), small, name, size=9)
        number_grid(axes, dout, (13.2, top + 1), small, "dout")
        number_grid(axes, gradient, (18.6, top), cells, "dx")
        arrow(axes, (5.0, 7.4), (8.1, top + 2))
        arrow(axes, (15.5, top + 2), (18.3, top + 2))
    words(axes, (5.5, 0.7), "forward", bold=True)
    words(axes, (17.9, 0.7), "backward", bold=True)
    axes.plot([11.8, 11.8], [0.4, 12.4], color=FAINT, linewidth=0.8, linestyle=":")
    return figure


def parameters() -> Figure:
    """The parameters of each layer on a logarithmic scale, beside a linear first layer."""
    layers = (
        ("linear layer instead of conv 1", 785 * 9216, ORANGE),
        ("whole network", 416 + 12832 + 33482, FAINT),
        ("linear 512 to 64 to 10", 513 * 64 + 65 * 10, BLUE),
        ("conv 2: 32 kernels of 16 x 5 x 5", 401 * 32, BLUE),
        ("conv 1: 16 kernels of 1 x 5 x 5", 26 * 16, BLUE),
    )
    figure, axes = chart(7.6, 2.6)
    names, counts, colors = zip(*layers, strict=True)
    axes.barh(names, counts, color=colors, height=0.62)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(100, 6e7)
    axes.minorticks_off()
    axes.set_xlabel("parameters (logarithmic scale)", fontsize=9)
    axes.xaxis.label.set(color=INK, fontfamily=FONT)
    for row, count in enumerate(counts):
        label = f"{count:,}"
        axes.text(count * 1.2, row, label, va="center", fontsize=9, color=INK, fontfamily=FONT)
    return figure


def backward() -> Figure:
    """The worked example: each entry of dout adds its multiple of the kernel to dx."""
    dx = np.zeros((3, 3), dtype=int)
    figure, axes = canvas(24.4, 9.9, cell=0.33)
    fills = {cell: tint(FOUR[i], 0.4) for i, cell in enumerate(np.ndindex(2, 2))}
    number_grid(axes, DOUT, (1.5, 1.4), fills, "dout")
    number_grid(axes, W, (1.5, 5.6), title="w")
    words(axes, (2.5, 4.2), "times", FAINT, size=9)
    for index, (row, column) in enumerate(np.ndindex(2, 2)):
        part = np.zeros((3, 3), dtype=int)
        part[row : row + 2, column : column + 2] = DOUT[row, column] * W
        dx += part
        left, top = 6.6 + 5.6 * column, 1.4 + 4.9 * row
        cells = {(row + p, column + q): tint(FOUR[index], 0.4) for p, q in np.ndindex(2, 2)}
        text = np.full((3, 3), "", dtype=object)
        for cell in cells:
            text[cell] = number(part[cell])
        number_grid(axes, text, (left, top), cells, f"{number(DOUT[row, column])} · w")
        frame(axes, (left + column, top + row), 2, 2, FOUR[index])
        if column == 0:
            words(axes, (left + 4.3, top + 1.5), "+", size=14)
    words(axes, (10.9, 5.1), "+", size=14)
    words(axes, (17.5, 5.4), "=", size=16)
    number_grid(axes, dx, (19.6, 3.9), {(1, 1): tint(SKY, 0.5)}, "dx")
    words(axes, (21.1, 7.6), "center: 3 + 4 + 1 + 3", size=9)
    return figure


def columns() -> Figure:
    """im2col of a (1, 2, 3, 4) image with a 2 x 2 kernel: each patch becomes a column."""
    x = np.arange(1, 25).reshape(2, 3, 4)
    cols = np.stack([x[:, r : r + 2, s : s + 2].ravel() for r in range(2) for s in range(3)], 1)
    chosen = {0: BLUE, 2: ORANGE, 4: GREEN}
    figure, axes = canvas(21, 11.3, cell=0.34)
    for channel in range(2):
        top = 1.6 + 5.2 * channel
        number_grid(axes, x[channel], (1.0, top), title=f"channel {channel}")
        for pixel, color in chosen.items():
            row, column = divmod(pixel, 3)
            frame(axes, (1.0 + column, top + row), 2, 2, color, inset=0.05 + 0.02 * pixel)
    fills = {(row, pixel): tint(c, 0.4) for pixel, c in chosen.items() for row in range(8)}
    left, top = 10.6, 2.8
    number_grid(axes, cols, (left, top), fills)
    words(axes, (left + 3, 0.7), "cols[0]: 8 rows, 6 columns")
    for pixel in range(6):
        row, column = divmod(pixel, 3)
        words(axes, (left + pixel + 0.5, top - 1.25), f"{row},{column}", FAINT, size=8.5)
        words(axes, (left + pixel + 0.5, top - 0.5), f"{pixel}", INK, size=9)
    words(axes, (left + 6.3, top - 1.25), "output pixel r,s", FAINT, size=8.5, align="left")
    words(axes, (left + 6.3, top - 0.5), "r · 3 + s", INK, size=9, align="left")
    for row, (channel, p, q) in enumerate(np.ndindex(2, 2, 2)):
        text = f"{channel}, {p}, {q}"
        words(axes, (left - 0.3, top + row + 0.5), text, FAINT, size=8.5, align="right")
    words(axes, (left - 0.3, top - 0.5), "c, p, q", INK, size=9, align="right")
    axes.plot([left, left + 6], [top + 4, top + 4], color=INK, linewidth=1.6)
    arrow(axes, (5.4, 5.7), (7.2, 5.7))
    return figure


FIGURES = {
    "digit": digit,
    "slide": slide,
    "positions": positions,
    "seen": seen,
    "channels": channels,
    "pooling": pooling,
    "parameters": parameters,
    "backward": backward,
    "im2col": columns,
}
