"""Draws the figures of the handout of assignment 7: `python -m autograder figures a7`."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

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
    arrow,
    box,
    canvas,
    chart,
    frame,
    line,
    number_grid,
    tint,
    words,
)

MAX_LR, MIN_LR, WARMUP, TOTAL = 2e-3, 2e-4, 100, 2000
LOGITS = np.array([2.0, 1.5, 1.0, 0.0, -1.0])
NUM_HEADS, D_HEAD, BYTES = 4, 32, 4  # of the attention in scaling: float32


def branch(axes: Axes, x: float, y: float, norm: str, sublayer: str, color: str) -> None:
    """A sublayer with its norm and a residual connection, with y as its center."""
    box(axes, (x, y + 1.2), 5.0, 1.1, norm, SKY, size=9.5)
    box(axes, (x, y - 0.6), 5.0, 1.1, sublayer, color, size=9.5)
    axes.add_patch(
        Circle((x, y - 2.1), 0.42, facecolor=PAPER, edgecolor=INK, linewidth=1.2, zorder=5)
    )
    axes.text(x, y - 2.07, "+", fontsize=11, ha="center", va="center", zorder=6, color=INK)
    arrow(axes, (x, y + 2.6), (x, y + 1.75))
    arrow(axes, (x, y + 0.65), (x, y - 0.05))
    arrow(axes, (x, y - 1.15), (x, y - 1.68))
    line(axes, (x, y + 2.2), (x - 3.3, y + 2.2), (x - 3.3, y - 2.1), color=GREEN)
    arrow(axes, (x - 3.3, y - 2.1), (x - 0.42, y - 2.1), GREEN)


def model() -> Figure:
    """The whole GPT, from the ids to the logits."""
    figure, axes = canvas(21, 21.4, cell=0.31)
    x = 8.0
    words(axes, (x, 20.8), "ids (n, t)", size=10)
    arrow(axes, (x, 20.4), (x, 19.75))
    box(axes, (x, 19.2), 7.6, 1.1, "token + position embedding", ORANGE, size=9.5)
    line(axes, (x, 18.65), (x, 17.4))
    branch(axes, x, 14.8, "norm1", "causal attention", BLUE)
    line(axes, (x, 12.28), (x, 11.6))
    branch(axes, x, 9.0, "norm2", "MLP", PINK)
    frame(axes, (2.6, 6.0), 11.7, 10.4, FAINT, width=1.2, dashed=True)
    words(axes, (13.6, 11.8), "a block,\nnum_layers times", FAINT, 9.5, align="left")
    arrow(axes, (x, 6.48), (x, 5.25))
    box(axes, (x, 4.7), 5.0, 1.1, "norm", SKY, size=9.5)
    arrow(axes, (x, 4.15), (x, 3.15))
    box(axes, (x, 2.6), 7.6, 1.1, "token embedding, transposed", ORANGE, size=9.5)
    arrow(axes, (x, 2.05), (x, 1.3))
    words(axes, (x, 0.8), "logits (n, t, vocab_size)", size=10)
    line(axes, (x + 3.8, 19.2), (18.6, 19.2), (18.6, 2.6), color=ORANGE)
    arrow(axes, (18.6, 2.6), (x + 3.8, 2.6), ORANGE)
    words(axes, (18.9, 10.5), "tied", ORANGE, 9.5, align="left")
    return figure


def windows() -> Figure:
    """Windows of a text, and the target at each of their positions."""
    text = "to be or not"
    figure, axes = canvas(18, 9.6, cell=0.36)
    shown = [letter if letter != " " else "\N{OPEN BOX}" for letter in text]
    left = 3.4
    words(axes, (left - 0.4, 1.5), "data", size=10, align="right")
    number_grid(axes, [shown], (left, 1.0))
    for row, (start, color) in enumerate(((0, BLUE), (3, ORANGE), (6, GREEN))):
        frame(axes, (left + start, 1.0), 1, 5, color, inset=0.06 + 0.05 * row)
        top = 2.9 + 2.3 * row
        words(axes, (left - 0.4, top + 0.5), f"x, s = {start}", color, align="right")
        words(axes, (left - 0.4, top + 1.5), "y", color, align="right")
        tinted = {(0, column): tint(color, 0.25) for column in range(5)}
        number_grid(axes, [shown[start : start + 5]], (left + start, top), tinted)
        number_grid(axes, [shown[start + 1 : start + 6]], (left + start, top + 1))
    words(axes, (left + 6, 0.45), "12 characters, windows of 5: 7 starts, from 0 to 6", FAINT, 9)
    return figure


def rate(step: float) -> float:
    """The learning rate of a step."""
    if step < WARMUP:
        return MAX_LR * step / WARMUP
    done = min((step - WARMUP) / (TOTAL - WARMUP), 1.0)
    return MIN_LR + (MAX_LR - MIN_LR) * (1 + math.cos(math.pi * done)) / 2


def schedule() -> Figure:
    """The learning rate over the steps."""
    figure, axes = chart(6.4, 2.8)
    steps = np.arange(1, 2301)
    axes.plot(steps, [rate(step) for step in steps], color=BLUE, linewidth=2)
    for step in (50, 100, 1050, 2000):
        axes.plot([step], [rate(step)], "o", color=ORANGE, markersize=5)
        axes.annotate(
            f"step {step}: {rate(step):g}",
            (step, rate(step)),
            (8, 7),
            textcoords="offset points",
            fontsize=8.5,
            fontfamily=FONT,
            color=INK,
        )
    axes.set_ylim(0, 2.4e-3)
    axes.set_xlabel("step", fontfamily=FONT, fontsize=9, color=INK)
    axes.set_ylabel("learning rate", fontfamily=FONT, fontsize=9, color=INK)
    return figure


def accumulation() -> Figure:
    """Four small batches, one update."""
    figure, axes = canvas(24, 9.2, cell=0.33)
    for index in range(4):
        x = 3.2 + 5.0 * index
        box(axes, (x, 1.4), 4.2, 1.2, f"batch {index + 1}", SKY)
        arrow(axes, (x, 2.0), (x, 3.0))
        box(axes, (x, 3.6), 4.2, 1.2, "loss / 4, backward", BLUE, size=9)
        arrow(axes, (x, 4.2), (x, 5.4))
    box(axes, (10.7, 6.0), 19.2, 1.2, "the gradients add up to their mean", GREEN)
    arrow(axes, (10.7, 6.6), (10.7, 7.4))
    box(axes, (10.7, 8.0), 11.0, 1.2, "clip once, one update", ORANGE)
    return figure


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities."""
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def kept(p: np.ndarray, count: int) -> np.ndarray:
    """The first ones, rescaled to a sum of 1."""
    remaining = np.where(np.arange(len(p)) < count, p, 0)
    return remaining / remaining.sum()


def sampling() -> Figure:
    """The effect of temperature, top-k and top-p on the same logits."""
    figure = Figure(figsize=(9.4, 2.3), facecolor=PAPER, layout="constrained")
    plain = softmax(LOGITS)
    panels = {
        "temperature 1": plain,
        "temperature 0.5": softmax(LOGITS / 0.5),
        "temperature 2": softmax(LOGITS / 2),
        "top-k 3": kept(plain, 3),
        "top-p 0.7": kept(plain, 2),
    }
    for axes, (title, p) in zip(figure.subplots(1, 5, sharey=True), panels.items(), strict=True):
        axes.bar(range(len(p)), p, color=[BLUE if value else FAINT for value in p], width=0.75)
        for token, value in enumerate(p):
            label = f"{value:.3f}".rstrip("0") if value else "0"
            axes.text(token, value + 0.02, label, ha="center", fontsize=7.5, fontfamily=FONT)
        axes.set_title(title, fontsize=9.5, fontfamily=FONT, color=INK)
        axes.set(xticks=[], ylim=(0, 0.8))
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(left=False, labelleft=False)
    return figure


def window() -> Figure:
    """A full window keeps its newest half."""
    figure, axes = canvas(20, 7.8, cell=0.36)
    rows = (
        ("full", "abcdefgh", 0, "context_length is 8"),
        ("i comes", "efgh", 4, "the oldest half is dropped"),
        ("", "efghi", 0, "the rest moves to the front"),
        ("then", "efghij", 0, "and the window fills up again"),
    )
    for row, (name, letters, start, remark) in enumerate(rows):
        top = 0.9 + 1.7 * row
        words(axes, (3.0, top + 0.5), name, size=10, align="right")
        number_grid(axes, [[""] * 8], (3.4, top))
        fills = {(0, column): tint(BLUE, 0.3) for column in range(len(letters))}
        number_grid(axes, [list(letters)], (3.4 + start, top), fills)
        words(axes, (11.9, top + 0.5), remark, FAINT, 9.5, align="left")
    return figure


def cache() -> Figure:
    """Which positions are computed at which step, without a cache and with one."""
    figure, axes = canvas(21, 11.2, cell=0.34)
    n = 8
    for left, title, with_cache in ((1.8, "without a cache", False), (12.2, "with a cache", True)):
        values = np.full((n, n), "", dtype=object)
        fills = {}
        for step in range(n):
            for position in range(step + 1):
                computed = position == step or not with_cache
                fills[step, position] = tint(RED, 0.45) if computed else tint(GREEN, 0.3)
        number_grid(axes, values, (left, 1.4), fills, title=title)
        words(axes, (left + n / 2, n + 1.9), "position", FAINT, 9)
        axes.text(left - 0.5, 1.4 + n / 2, "step", rotation=90, va="center", ha="center")
    frame(axes, (1.8, 10.35), 0.5, 0.5, RED, width=1)
    words(axes, (2.6, 10.6), "computed in this step", RED, 9, align="left")
    frame(axes, (12.2, 10.35), 0.5, 0.5, GREEN, width=1)
    words(axes, (13.0, 10.6), "cached in earlier steps", GREEN, 9, align="left")
    return figure


def scaling() -> Figure:
    """The bytes of scores and results, by formula."""
    figure, axes = chart(5.8, 3.2)
    lengths = 2 ** np.arange(6, 13)
    for values, label, color in (
        (NUM_HEADS * lengths**2 * BYTES, "scores, n x n per head", RED),
        (NUM_HEADS * lengths * D_HEAD * BYTES, "output, n x 32 per head", BLUE),
    ):
        axes.loglog(lengths, values, "o-", color=color, linewidth=2, markersize=4, label=label)
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.set_yticks([1e4, 1e6, 1e8], ["10 KB", "1 MB", "100 MB"])
    axes.set_xlabel("length n", fontfamily=FONT, fontsize=9, color=INK)
    axes.legend(frameon=False, fontsize=9)
    return figure


FIGURES = {
    "model": model,
    "windows": windows,
    "schedule": schedule,
    "accumulation": accumulation,
    "sampling": sampling,
    "window": window,
    "cache": cache,
    "scaling": scaling,
}
