"""Draws the figures of the handout of assignment 3: `python -m autograder figures a3`."""

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
    RED,
    SKY,
    arrow,
    box,
    canvas,
    chart,
    line,
    number_grid,
    tint,
    words,
)


def unrolled() -> Figure:
    """Four steps of one network: states go right, gradients come back and add up."""
    figure, axes = canvas(25, 9.6, cell=0.33)
    centers = [5.0 + 5.0 * step for step in range(4)]
    words(axes, (1.2, 4.6), "h0", size=11)
    arrow(axes, (1.8, 4.3), (3.6, 4.3), BLUE)
    arrow(axes, (3.6, 4.95), (1.8, 4.95), RED)
    for step, x in enumerate(centers, start=1):
        box(axes, (x, 4.6), 2.8, 2.0, "tanh", SKY)
        words(axes, (x, 8.3), f"x{step}", size=11)
        arrow(axes, (x - 0.3, 7.8), (x - 0.3, 5.6), BLUE)
        arrow(axes, (x + 0.3, 5.6), (x + 0.3, 7.8), RED)
        words(axes, (x, 0.8), f"loss of h{step}", size=9)
        arrow(axes, (x - 0.3, 3.6), (x - 0.3, 1.4), BLUE)
        arrow(axes, (x + 0.3, 1.4), (x + 0.3, 3.6), RED)
        words(axes, (x + 2.5, 3.6), f"h{step}", size=11)
        if step < 4:
            arrow(axes, (x + 1.4, 4.3), (x + 3.6, 4.3), BLUE)
            arrow(axes, (x + 3.6, 4.95), (x + 1.4, 4.95), RED)
        else:
            arrow(axes, (x + 1.4, 4.3), (x + 3.4, 4.3), BLUE)
    words(axes, (0.6, 9.2), "blue: forward", BLUE, size=9, align="left")
    words(axes, (6.2, 9.2), "red: backward", RED, size=9, align="left")
    words(axes, (12.0, 9.2), "all four boxes use the same weights", FAINT, size=9, align="left")
    return figure


def lstm() -> Figure:
    """The inside of an LSTM step: the path of the cell state, and the gates that act on it."""
    figure, axes = canvas(25, 12.4, cell=0.33)
    top, low = 2.2, 10.2
    line(axes, (2.0, top), (21.4, top), color=GREEN)
    arrow(axes, (21.0, top), (23.0, top), GREEN)
    words(axes, (1.2, top), "c", size=12)
    words(axes, (24.0, top), "c_next", size=11)
    for x, sign in ((6.0, "\N{MULTIPLICATION SIGN}"), (12.5, "+")):
        axes.plot([x], [top], "o", markersize=19, color=tint(GREEN, 0.35), zorder=5)
        axes.text(x, top + 0.05, sign, ha="center", va="center", fontsize=13, color=INK, zorder=6)
    for x, name, kind, color in (
        (6.0, "f", "sigmoid", ORANGE),
        (10.5, "i", "sigmoid", ORANGE),
        (14.5, "g", "tanh", SKY),
        (18.5, "o", "sigmoid", ORANGE),
    ):
        box(axes, (x, 8.0), 2.6, 1.3, kind, color)
        arrow(axes, (x, low), (x, 8.7))
        words(axes, (x + 0.55, 6.6), name, size=12, bold=True)
    line(axes, (2.0, low), (18.5, low))
    words(axes, (1.1, low - 0.5), "x", size=12)
    words(axes, (1.1, low + 0.5), "h", size=12)
    words(axes, (10.0, 11.3), "z = x @ w_x + h @ w_h + b: four blocks, one per box", size=9)
    arrow(axes, (6.0, 7.3), (6.0, top + 0.65))
    mark = {"ha": "center", "va": "center", "fontsize": 13, "color": INK, "zorder": 6}
    axes.plot([12.5], [5.0], "o", markersize=19, color=tint(FAINT, 0.3), zorder=5)
    axes.text(12.5, 5.05, "\N{MULTIPLICATION SIGN}", **mark)
    line(axes, (10.5, 7.35), (10.5, 5.0))
    arrow(axes, (10.5, 5.0), (11.85, 5.0))
    line(axes, (14.5, 7.35), (14.5, 5.0))
    arrow(axes, (14.5, 5.0), (13.15, 5.0))
    arrow(axes, (12.5, 4.35), (12.5, top + 0.65))
    axes.plot([20.6], [6.0], "o", markersize=19, color=tint(FAINT, 0.3), zorder=5)
    axes.text(20.6, 6.05, "\N{MULTIPLICATION SIGN}", **mark)
    line(axes, (18.5, 7.35), (18.5, 6.0))
    arrow(axes, (18.5, 6.0), (19.95, 6.0))
    arrow(axes, (20.6, top), (20.6, 3.5))
    box(axes, (20.6, 4.1), 2.2, 1.1, "tanh", SKY)
    arrow(axes, (20.6, 4.65), (20.6, 5.35))
    arrow(axes, (21.25, 6.0), (23.0, 6.0))
    words(axes, (24.0, 6.0), "h_next", size=11)
    words(
        axes, (2.0, 1.0), "no weight matrix on this path: times f, plus i times g", GREEN, 9, "left"
    )
    return figure


def factors() -> Figure:
    """A gradient that is multiplied by the same factor at every step."""
    figure, axes = chart(7.4, 3.9)
    distance = np.arange(0, 101)
    for factor, label, color in (
        (1.1, "1.1", RED),
        (1.0, "1", FAINT),
        (0.9933, "0.993: forget bias 5", GREEN),
        (0.9526, "0.953: forget bias 3", ORANGE),
        (0.7311, "0.731: forget bias 1", BLUE),
        (0.5, "0.5: forget bias 0", PINK),
    ):
        axes.plot(distance, factor**distance, color=color, label=label)
    axes.set(yscale="log", ylim=(1e-12, 1e5), xlim=(0, 100))
    axes.set_yticks([1e-12, 1e-9, 1e-6, 1e-3, 1, 1e3])
    axes.minorticks_off()
    axes.set_xlabel("steps", fontsize=9, fontfamily=FONT)
    axes.set_ylabel("remaining fraction of the gradient", fontsize=9, fontfamily=FONT)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.get_legend().set_title("factor per step", {"size": 9})
    return figure


def mask() -> Figure:
    """Three sequences of different lengths: at a masked step the state is carried over."""
    x = np.array([[1, 2, 0, 3, 1], [2, 1, 4, 0, 0], [5, 0, 0, 0, 0]])
    real = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], dtype=bool)
    state = np.where(real, x, 0).cumsum(axis=1)
    figure, axes = canvas(22.4, 7.0)
    shown = np.where(real, x.astype(object), "pad")
    marks = np.where(real, "True", "False")
    gray = {cell: tint(FAINT, 0.25) for cell in zip(*np.nonzero(~real), strict=True)}
    blue = {cell: tint(SKY, 0.35) for cell in zip(*np.nonzero(real), strict=True)}
    number_grid(axes, shown, (1.0, 1.6), gray, "x", size=9)
    number_grid(axes, marks, (8.6, 1.6), gray, "mask", size=8)
    number_grid(axes, state, (16.2, 1.6), blue | gray, "h, here the running sum of x", size=9)
    for row, column in zip(*np.nonzero(~real), strict=True):
        height = 1.6 + row + 0.82
        arrow(axes, (16.2 + column - 0.25, height), (16.2 + column + 0.25, height), RED)
    words(axes, (16.2 + 4.5, 5.1), "last column:", size=9)
    words(axes, (16.2 + 4.5, 5.8), "last real states", size=9)
    words(axes, (1.0, 5.4), "gray: masked steps", FAINT, size=9, align="left")
    return figure


def windows() -> Figure:
    """A text of 26 letters as 3 streams of 2 windows of 4."""
    text = "abcdefghijklmnopqrstuvwxyz"
    figure, axes = canvas(27.4, 9.4, cell=0.32)
    colors = (BLUE, ORANGE, GREEN)
    fills = {(0, k): tint(colors[k // 8], 0.4 if k % 8 < 4 else 0.18) for k in range(24)}
    inks = {(0, k): FAINT for k in (24, 25)}
    number_grid(axes, [list(text)], (0.7, 1.4), fills, inks=inks)
    words(
        axes,
        (0.7, 0.7),
        "26 ids, batch_size 3, context_length 4: count = 25 // 12 = 2",
        align="left",
    )
    words(axes, (25.0, 2.9), "never an input", FAINT, size=9)
    for window in range(2):
        left = 3.6 + 6.2 * window
        block = np.array([list(text[8 * b + 4 * window :][:4]) for b in range(3)])
        strength = 0.4 if window == 0 else 0.18
        shade = {(b, k): tint(colors[b], strength) for b in range(3) for k in range(4)}
        number_grid(axes, block, (left, 5.2), shade, f"inputs[{window}]")
    for stream in range(3):
        arrow(axes, (7.7, 5.7 + stream), (9.7, 5.7 + stream))
        words(axes, (3.3, 5.7 + stream), f"stream {stream}", FAINT, size=9, align="right")
    words(axes, (8.7, 8.8), "the state is carried along each row", FAINT, size=9)
    follow = np.array([list(text[8 * b + 1 :][:4]) for b in range(3)])
    shade = {(b, k): tint(colors[b], 0.18 if k == 3 else 0.4) for b in range(3) for k in range(4)}
    number_grid(axes, follow, (20.0, 5.2), shade, "targets[0]")
    words(axes, (22.0, 8.8), "the next id of each input", FAINT, size=9)
    return figure


def truncation() -> Figure:
    """States cross the boundary of a window, gradients don't."""
    figure, axes = canvas(27, 6.4, cell=0.31)
    for step in range(9):
        x = 2.2 + 2.8 * step
        box(axes, (x, 3.0), 1.4, 1.2, f"h{step + 1}", (BLUE, ORANGE, GREEN)[step // 3])
        if step < 8:
            arrow(axes, (x + 0.7, 2.75), (x + 2.1, 2.75), BLUE)
            if step % 3 < 2:
                arrow(axes, (x + 2.1, 3.3), (x + 0.7, 3.3), RED)
            else:
                boundary = x + 1.4
                axes.plot(
                    [boundary, boundary], [1.0, 5.0], color=INK, linewidth=1.4, linestyle="--"
                )
    for window in range(3):
        words(axes, (5.0 + 8.4 * window, 1.2), f"window {window}", size=10)
    words(axes, (2.0, 5.8), "blue: the state is carried over", BLUE, size=9, align="left")
    words(axes, (13.0, 5.8), "red: the gradient stops at the boundary", RED, size=9, align="left")
    return figure


def temperatures() -> Figure:
    """One set of logits at three temperatures."""
    logits = np.array([2.0, 1.0, 0.0, -1.0])
    figure, axes = chart(7.2, 2.8)
    for index, (temperature, color) in enumerate(((0.5, BLUE), (1.0, SKY), (2.0, ORANGE))):
        exponentials = np.exp(logits / temperature)
        probabilities = exponentials / exponentials.sum()
        centers = np.arange(4) + 0.27 * (index - 1)
        axes.bar(
            centers, probabilities, width=0.25, color=color, label=f"temperature {temperature:g}"
        )
        for x, p in zip(centers, probabilities, strict=True):
            axes.text(x, p + 0.015, f"{p:.3f}", ha="center", fontsize=8, fontfamily=FONT)
    axes.set_xticks(
        range(4), [f"logit {logit:g}".replace("-", "\N{MINUS SIGN}") for logit in logits]
    )
    axes.set_ylabel("probability", fontsize=9, fontfamily=FONT)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize=9)
    return figure


FIGURES = {
    "unrolled": unrolled,
    "mask": mask,
    "factors": factors,
    "lstm": lstm,
    "windows": windows,
    "truncation": truncation,
    "temperature": temperatures,
}
