"""Draws the figures of the handout of assignment 6: `python -m autograder figures a6`."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle

from common.training import plots
from common.training.plots import (
    BLUE,
    FAINT,
    FONT,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PINK,
    RED,
    SKY,
    Point,
    arrow,
    canvas,
    chart,
    frame,
    line,
    number_grid,
    tint,
    words,
)


def box(axes: Axes, at: Point, width: float, text: str, color: str, height: float = 1.2) -> None:
    """A box of the usual height."""
    plots.box(axes, at, width, height, text, color, size=9.5)


def plus(axes: Axes, at: Point) -> None:
    """A circle in which two lines are added."""
    axes.add_patch(Circle(at, 0.42, facecolor=PAPER, edgecolor=INK, linewidth=1.2, zorder=5))
    axes.text(at[0], at[1] + 0.03, "+", fontsize=11, ha="center", va="center", zorder=6, color=INK)


def residual_block(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    """A box with a residual connection around it: in at y + 2, out of the sum at y - 1.5."""
    box(axes, (x, y), 5.2, text, color)
    plus(axes, (x, y - 1.5))
    arrow(axes, (x, y + 2.0), (x, y + 0.6))
    arrow(axes, (x, y - 0.6), (x, y - 1.08))
    line(axes, (x, y + 1.3), (x - 3.2, y + 1.3), (x - 3.2, y - 1.5), color=GREEN)
    arrow(axes, (x - 3.2, y - 1.5), (x - 0.42, y - 1.5), GREEN)


def architecture() -> Figure:
    """The whole Transformer: encoder on the left, decoder on the right, data going upwards."""
    figure, axes = canvas(26, 22.6, cell=0.31)
    left, right = 6.6, 18.8
    for x, tokens, side in (
        (left, "source: ninety -seven", "source_embedding"),
        (right, "target: <bos> quatre -vingt -dix -sept", "target_embedding"),
    ):
        words(axes, (x, 22.0), tokens, size=9.5)
        arrow(axes, (x, 21.6), (x, 20.9))
        box(axes, (x, 20.3), 5.2, side, ORANGE)
        arrow(axes, (x, 19.7), (x, 19.1))
        plus(axes, (x, 18.7))
        words(axes, (x + 3.9, 18.7), "positions", size=9.5)
        arrow(axes, (x + 2.5, 18.7), (x + 0.42, 18.7))
        line(axes, (x, 18.3), (x, 17.4))
    residual_block(axes, left, 15.4, "self_attention", SKY)
    residual_block(axes, left, 11.4, "feed_forward", PINK)
    line(axes, (left, 13.5), (left, 13.4))
    frame(axes, (left - 4.0, 9.1), 8.5, 8.0, FAINT, width=1.2, dashed=True)
    words(axes, (left + 2.9, 9.7), "N times", FAINT, size=9.5)
    line(axes, (left, 9.48), (left, 7.7), (12.8, 7.7), (12.8, 11.4), color=BLUE, width=1.8)
    arrow(axes, (12.8, 11.4), (right - 2.6, 11.4), BLUE)
    words(axes, (left + 2.9, 7.1), "memory: keys and values", BLUE, size=9.5)
    residual_block(axes, right, 15.4, "self_attention, causal", SKY)
    residual_block(axes, right, 11.4, "cross_attention", SKY)
    residual_block(axes, right, 7.4, "feed_forward", PINK)
    line(axes, (right, 13.5), (right, 13.4))
    line(axes, (right, 9.5), (right, 9.4))
    frame(axes, (right - 4.0, 5.1), 12.5, 8.0, FAINT, width=1.2, dashed=True)
    words(axes, (right + 2.9, 5.7), "N times", FAINT, size=9.5)
    arrow(axes, (right, 5.48), (right, 3.9))
    box(axes, (right, 3.3), 5.2, "output", ORANGE)
    arrow(axes, (right, 2.7), (right, 1.7))
    words(axes, (right, 1.2), "logits for: quatre -vingt -dix -sept <eos>", size=9.5)
    words(axes, (0.6, 1.2), "green: residual connections", GREEN, size=9.5, align="left")
    words(axes, (0.6, 2.2), "norms are not shown", FAINT, size=9.5, align="left")
    return figure


def encoding() -> Figure:
    """The sinusoidal encoding of 50 positions with 32 features."""
    positions, features = np.arange(50), np.arange(32)
    angles = positions[:, None] * 10000.0 ** (-(features // 2 * 2) / 32)
    values = np.where(features % 2 == 0, np.sin(angles), np.cos(angles))
    figure, axes = chart(7.0, 3.4)
    image = axes.imshow(values.T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    axes.set_xlabel("position", fontsize=9, fontfamily=FONT)
    axes.set_ylabel("feature", fontsize=9, fontfamily=FONT)
    axes.set_yticks(range(0, 32, 5))
    bar = figure.colorbar(image, ax=axes, ticks=[-1, 0, 1])
    bar.ax.set_yticklabels(["\N{MINUS SIGN}1", "0", "1"], fontsize=9, fontfamily=FONT)
    return figure


def clocks() -> Figure:
    """Each pair of features is a dial's hand; after k positions it has rotated by k times w."""
    figure, axes = canvas(27, 10.4, cell=0.31)
    for index, (w, angle_text) in enumerate(((1.0, "3 rad"), (0.1, "0.3 rad"), (0.01, "0.03 rad"))):
        x, y, radius = 5.0 + 8.5 * index, 5.0, 3.0
        circle = Circle((x, y), radius, facecolor=PAPER, edgecolor=FAINT, linewidth=1.2)
        axes.add_patch(circle)
        axes.plot([x, x], [y - radius, y - radius + 0.35], color=FAINT, linewidth=1.2)
        for position, color in ((5, BLUE), (8, ORANGE)):
            angle = position * w
            tip = (x + 0.93 * radius * np.sin(angle), y - 0.93 * radius * np.cos(angle))
            arrow(axes, (x, y), tip, color)
        # The canvas grows downwards: an angle from 12 o'clock, clockwise, is 90 degrees behind.
        start, end = (np.degrees(position * w) - 90 for position in (5, 8))
        arc = {"color": RED, "linewidth": 1.6, "zorder": 4}
        axes.add_patch(Arc((x, y), 2.6, 2.6, theta1=start, theta2=end, **arc))
        words(axes, (x, 1.3), f"pair {index}: w = {w:g}", size=10)
        words(axes, (x, 8.7), f"rotated by {angle_text}", RED, size=9.5)
    words(axes, (1.0, 9.9), "blue: position 5", BLUE, size=9.5, align="left")
    words(axes, (7.0, 9.9), "yellow: position 8", ORANGE, size=9.5, align="left")
    words(
        axes,
        (13.8, 9.9),
        "a hand points to (sin, cos): position 0 at 12 o'clock",
        FAINT,
        9.5,
        "left",
    )
    return figure


def sublayer(axes: Axes, x: float, y: float, boxes: list[tuple[str, str]], after: str) -> float:
    """A residual connection along y, boxes on a branch below it, and perhaps a norm after the sum.

    Returns where it ends.
    """
    widths = {"norm": 2.6, "attention": 3.6, "feed_forward": 3.9}
    end = x + 1.4
    line(axes, (x + 0.5, y), (x + 0.5, y + 2.2), (x + 1.0, y + 2.2))
    arrow(axes, (x + 0.7, y + 2.2), (end, y + 2.2))
    for index, (name, color) in enumerate(boxes):
        width = widths[name.rstrip("123")]
        box(axes, (end + width / 2, y + 2.2), width, name, color)
        end += width
        if index < len(boxes) - 1:
            arrow(axes, (end, y + 2.2), (end + 0.8, y + 2.2))
            end += 0.8
    line(axes, (end, y + 2.2), (end + 0.9, y + 2.2))
    end += 0.9
    arrow(axes, (end, y + 2.2), (end, y + 0.42))
    line(axes, (x, y), (end - 0.42, y), color=GREEN, width=2)
    plus(axes, (end, y))
    if after:
        arrow(axes, (end + 0.42, y), (end + 1.4, y))
        box(axes, (end + 2.7, y), 2.6, after, ORANGE)
        return end + 4.0
    return end + 0.42


def norms() -> Figure:
    """Where the norms are: in the residual stream, or on the branches."""
    figure, axes = canvas(24.4, 10.6, cell=0.33)
    attention, feed = ("attention", SKY), ("feed_forward", PINK)
    words(
        axes, (0.5, 0.8), 'norm="post": every norm is in the residual stream', size=10, align="left"
    )
    words(axes, (0.9, 2.3), "x", size=12)
    end = sublayer(axes, 1.6, 2.3, [attention], "norm1")
    end = sublayer(axes, end, 2.3, [feed], "norm2")
    arrow(axes, (end, 2.3), (end + 1.4, 2.3))
    words(axes, (0.5, 6.0), 'norm="pre": none is', size=10, align="left")
    words(axes, (0.9, 7.5), "x", size=12)
    end = sublayer(axes, 1.6, 7.5, [("norm1", ORANGE), attention], "")
    line(axes, (end, 7.5), (end + 0.4, 7.5), color=GREEN, width=2)
    end = sublayer(axes, end + 0.4, 7.5, [("norm2", ORANGE), feed], "")
    arrow(axes, (end, 7.5), (end + 1.6, 7.5), GREEN)
    return figure


def masks() -> Figure:
    """The masks of a batch of two: which keys each query may attend to."""
    figure, axes = canvas(27.5, 8.0, cell=0.32)
    sources, targets = (4, 2), (4, 3)
    real, pad, shut = tint(SKY, 0.55), tint(FAINT, 0.25), PAPER
    ids = np.array([["8", "5", "9", "4"], ["7", "6", "pad", "pad"]])
    gray = dict.fromkeys(zip(*np.nonzero(ids == "pad"), strict=True), pad)
    number_grid(axes, ids, (0.8, 2.0), gray, "source", size=9)
    for row, length in enumerate(sources):
        fills = {(0, key): real if key < length else shut for key in range(4)}
        number_grid(axes, [[""] * 4], (6.6, 2.0 + row), fills)
    words(axes, (8.6, 1.5), "source_mask", size=10)
    words(axes, (8.6, 5.0), "(2, 1, 4): one row for", FAINT, size=9)
    words(axes, (8.6, 5.7), "all queries of a source", FAINT, size=9)
    for index, length in enumerate(targets):
        left = 15.2 + 6.4 * index
        fills = {
            (q, k): real if k <= q and k < length else shut for q in range(4) for k in range(4)
        }
        number_grid(axes, [[""] * 4] * 4, (left, 2.0), fills, f"target_mask[{index}]")
        words(axes, (left + 2, 7.3), "keys", FAINT, size=9)
        for key in range(4):
            token = ["1", "12", "7", "15"] if index == 0 else ["1", "9", "4", "pad"]
            words(axes, (left + key + 0.5, 6.5), token[key], FAINT, size=8.5)
            words(axes, (left - 0.2, 2.5 + key), token[key], FAINT, size=8.5, align="right")
    words(axes, (0.8, 7.3), "blue: True, may be attended to", BLUE, size=9, align="left")
    words(axes, (9.6, 7.3), "1: <bos>", FAINT, size=9, align="left")
    return figure


def shifted() -> Figure:
    """Teacher forcing: one target is both the input and, shifted by one, the labels."""
    tokens = ["<bos>", "quatre", "-vingt", "-dix", "-sept", "<eos>"]
    figure, axes = canvas(26, 7.0, cell=0.31)
    words(axes, (4.6, 5.9), "target[:, :-1]", size=9.5, align="right")
    words(axes, (4.6, 3.6), "Transformer", FAINT, size=9.5, align="right")
    words(axes, (4.6, 1.3), "target[:, 1:]", size=9.5, align="right")
    for position in range(5):
        x = 7.2 + 4.0 * position
        box(axes, (x, 5.9), 3.0, tokens[position], SKY)
        box(axes, (x, 1.3), 3.0, tokens[position + 1], GREEN)
        arrow(axes, (x, 5.3), (x, 4.1))
        arrow(axes, (x, 3.1), (x, 1.9))
    box(
        axes,
        (15.2, 3.6),
        19.0,
        "position p attends to the source and the inputs 0 ... p",
        FAINT,
        1.0,
    )
    return figure


def rate() -> Figure:
    """noam_rate for three warm-ups."""
    figure, axes = chart(6.8, 3.0)
    steps = np.arange(1, 1001)
    for warmup, color in ((50, ORANGE), (100, BLUE), (400, GREEN)):
        rates = 64**-0.5 * np.minimum(steps**-0.5, steps * warmup**-1.5)
        axes.plot(steps, rates, color=color, label=f"warmup {warmup}")
        axes.plot([warmup], [rates[warmup - 1]], "o", color=color, markersize=4)
    axes.plot(steps[20:], 64**-0.5 * steps[20:] ** -0.5, ":", color=FAINT, linewidth=1)
    axes.set(xlim=(0, 1000), ylim=(0, 0.02))
    axes.set_xlabel("step", fontsize=9, fontfamily=FONT)
    axes.set_ylabel("noam_rate, d_model 64", fontsize=9, fontfamily=FONT)
    axes.legend(frameon=False, fontsize=9)
    return figure


def beam() -> Figure:
    """A beam of width 2 finds what greedy decoding misses."""
    figure, axes = canvas(24, 11.0, cell=0.32)
    box(axes, (2.6, 5.5), 3.0, "<bos>", GREEN)
    ends = {}
    for word, y, probability, color in (("a", 2.7, 0.55, BLUE), ("b", 8.3, 0.45, ORANGE)):
        box(axes, (9.0, y), 2.0, word, color)
        arrow(axes, (4.1, 5.5), (8.0, y), color)
        words(axes, (5.8, 5.5 + (y - 5.5) * 0.72), f"{probability}", size=9.5)
        ends[word] = y
    for word, follow, y, step, total, color in (
        ("a", "<eos>", 1.0, 0.4, 0.22, BLUE),
        ("a", "a", 2.7, 0.3, 0.165, FAINT),
        ("a", "b", 4.4, 0.3, 0.165, FAINT),
        ("b", "<eos>", 6.6, 0.9, 0.405, ORANGE),
        ("b", "a", 8.3, 0.05, 0.0225, FAINT),
        ("b", "b", 10.0, 0.05, 0.0225, FAINT),
    ):
        box(axes, (16.4, y), 2.6, follow, color)
        arrow(axes, (10.0, ends[word]), (15.1, y), color)
        words(axes, (13.4, ends[word] + (y - ends[word]) * 0.62 - 0.4), f"{step}", size=9)
        words(axes, (18.2, y), f"{total:g}", INK if color != FAINT else FAINT, 9.5, "left")
    words(axes, (20.4, 1.0), "greedy", BLUE, size=9.5, align="left")
    words(axes, (20.4, 6.6), "beam", ORANGE, size=9.5, align="left")
    words(axes, (2.6, 10.2), "gray: not kept", FAINT, size=9.5)
    return figure


def dots(axes: Axes, left: float, y: float, count: int, color: str = FAINT) -> None:
    """A row of vectors."""
    axes.plot(left + np.arange(count), [y] * count, "o", color=color, markersize=4.5, zorder=6)


def faint_line(axes: Axes, start: Point, end: Point) -> None:
    """A dependency that is not on the path."""
    across, down = zip(start, end, strict=True)
    axes.plot(across, down, color=tint(FAINT, 0.4), linewidth=0.7, zorder=2)


def stack(axes: Axes, left: float, base: float, dilations: list[int], count: int = 9) -> None:
    """Convolutions with kernel_size 3, and the path from the first vector to the last."""
    dots(axes, left, base, count)
    position = 0
    for layer, dilation in enumerate(dilations):
        y = base - 1.7 * layer
        for out in range(count):
            for back in range(3):
                if out - back * dilation >= 0:
                    faint_line(axes, (left + out - back * dilation, y), (left + out, y - 1.7))
        dots(axes, left, y - 1.7, count)
        arrow(axes, (left + position, y), (left + position + 2 * dilation, y - 1.7), RED)
        position += 2 * dilation


def paths() -> Figure:
    """The path length from the first vector to the last, in four kinds of layers."""
    figure, axes = canvas(24, 15.6, cell=0.32)
    n, left, right, base = 9, 1.6, 13.6, 7.4
    words(axes, (left + 4, 8.5), "recurrent: 9 steps", size=10)
    dots(axes, left, base, n)
    dots(axes, left, base - 3.4, n)
    for index in range(n):
        faint_line(axes, (left + index, base), (left + index, base - 3.4))
        if index:
            arrow(axes, (left + index - 1, base - 3.4), (left + index, base - 3.4), RED)
    arrow(axes, (left, base), (left, base - 3.4), RED)

    words(axes, (right + 4, 8.5), "convolution, k = 3: 4 steps", size=10)
    stack(axes, right, base, [1, 1, 1, 1])

    base = 13.8
    words(axes, (left + 4, 14.9), "dilated, k = 3: 2 steps", size=10)
    stack(axes, left, base, [1, 3])

    words(axes, (right + 4, 14.9), "attention: 2 steps, scores and weighted sum", size=10)
    dots(axes, right, base, n)
    dots(axes, right, base - 3.4, n)
    for out in range(n):
        for index in range(n):
            faint_line(axes, (right + index, base), (right + out, base - 3.4))
    arrow(axes, (right, base), (right + n - 1, base - 3.4), RED)
    return figure


FIGURES = {
    "architecture": architecture,
    "encoding": encoding,
    "clocks": clocks,
    "norms": norms,
    "masks": masks,
    "shifted": shifted,
    "rate": rate,
    "beam": beam,
    "paths": paths,
}
