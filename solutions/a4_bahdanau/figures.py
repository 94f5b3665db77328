"""Draws the figures of the handout of assignment 4: `python -m autograder figures a4`."""

from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from common.training.plots import (
    BLUE,
    FAINT,
    FONT,
    GREEN,
    INK,
    ORANGE,
    RED,
    SKY,
    arrow,
    box,
    canvas,
    line,
    number_grid,
    shades,
    tint,
    words,
)

ENGLISH = ("nine", "hundred", "and", "seventy")
FRENCH = ("neuf", "cent", "soixante", "-dix", "<eos>")


def bottleneck() -> Figure:
    """The decoder sees the source only through one vector."""
    figure, axes = canvas(29.6, 9.8, cell=0.3)
    columns = [1.9 + 2.9 * k for k in range(len(ENGLISH))]
    top, low, narrow = 2.6, 6.6, 14.2
    for x, token in zip(columns, ENGLISH, strict=True):
        box(axes, (x, top), 1.9, 1.1, "GRU", SKY)
        box(axes, (x, low), 1.9, 1.1, "GRU", SKY)
        words(axes, (x, (top + low) / 2), token, size=9.5)
        arrow(axes, (x, 4.1), (x, top + 0.55))
        arrow(axes, (x, 5.1), (x, low - 0.55))
    for x, following in pairwise(columns):
        arrow(axes, (x + 0.95, top), (following - 0.95, top), BLUE)
        arrow(axes, (following - 0.95, low), (x + 0.95, low), BLUE)
    box(axes, (narrow, 4.6), 1.1, 3.1, "c", RED)
    line(axes, (columns[-1] + 0.95, top), (narrow - 0.2, top), color=RED)
    arrow(axes, (narrow - 0.2, top), (narrow - 0.2, 3.05), RED)
    line(axes, (columns[0], low + 0.55), (columns[0], 8.1), color=RED)
    line(axes, (columns[0], 8.1), (narrow, 8.1), color=RED)
    arrow(axes, (narrow, 8.1), (narrow, 6.15), RED)

    steps = [17.6 + 2.6 * k for k in range(len(FRENCH))]
    line(axes, (narrow + 0.2, 3.05), (narrow + 0.2, 2.2), color=RED)
    line(axes, (narrow + 0.2, 2.2), (steps[-1] - 0.35, 2.2), color=RED)
    arrow(axes, (narrow + 0.55, 4.6), (steps[0] - 0.9, 4.6), RED)
    words(axes, (narrow + 1.4, 5.2), "state_0", RED, size=8.5)
    for k, (x, token) in enumerate(zip(steps, ("<bos>", *FRENCH), strict=False)):
        box(axes, (x, 4.6), 1.8, 1.3, "GRU", ORANGE)
        arrow(axes, (x - 0.35, 2.2), (x - 0.35, 3.95), RED)
        arrow(axes, (x + 0.35, 3.95), (x + 0.35, 1.65))
        arrow(axes, (x - 0.35, 2.2), (x + 0.05, 1.65), RED)
        words(axes, (x + 0.35, 1.2), FRENCH[k], size=9.5)
        arrow(axes, (x, 6.9), (x, 5.25))
        words(axes, (x, 7.4), token, size=9.5)
    for x, following in pairwise(steps):
        arrow(axes, (x + 0.9, 4.6), (following - 0.9, 4.6), BLUE)
    words(axes, (6.2, 1.2), "encoder: bidirectional", FAINT, size=9.5)
    words(axes, (narrow, 9.1), "one vector, for 4 words or for 40", RED, size=9.5)
    words(axes, (24.0, 9.1), "decoder: reads its last output", FAINT, size=9.5)
    return figure


def attention() -> Figure:
    """One step of the decoder: scores, softmax, weighted average, logits."""
    figure, axes = canvas(29.0, 12.2, cell=0.3)
    columns = [4.4 + 3.2 * k for k in range(len(ENGLISH))]
    weights = (0.02, 0.03, 0.10, 0.85)
    for k, (x, token, weight) in enumerate(zip(columns, ENGLISH, weights, strict=True)):
        box(axes, (x, 9.4), 2.2, 1.2, f"h{k + 1}", SKY)
        words(axes, (x, 11.2), token, size=9.5)
        arrow(axes, (x, 10.8), (x, 10.0))
        arrow(axes, (x, 8.8), (x, 7.3))
        words(axes, (x, 6.8), f"e{k + 1}", size=10.5)
        arrow(axes, (x, 6.3), (x, 4.9))
        height = 2.4 * weight
        bar = {"facecolor": tint(GREEN, 0.5), "edgecolor": GREEN}
        axes.add_patch(Rectangle((x - 0.55, 4.8 - height), 1.1, height, **bar))
        words(axes, (x, 4.3 - height), f"{weight:.2f}", size=9.5)
    for y, text in ((9.4, "keys"), (6.8, "scores"), (4.5, "weights")):
        words(axes, (2.6, y), text, FAINT, size=9.5, align="right")
    words(axes, (columns[-1] + 0.4, 5.6), "softmax", FAINT, size=9, align="left")

    query, cell, seen = 20.4, 26.4, 2.2
    box(axes, (query, 9.4), 3.0, 1.3, "state_k", ORANGE)
    words(axes, (query, 10.6), "the query", FAINT, size=9.5)
    line(axes, (query, 8.75), (query, 8.1), color=ORANGE)
    line(axes, (query, 8.1), (columns[0], 8.1), color=ORANGE)
    axes.plot(columns, [8.1] * len(columns), "o", color=ORANGE, markersize=5, zorder=6)
    words(axes, (columns[-1] + 0.9, 7.5), "scored against each key", FAINT, size=9, align="left")
    box(axes, (query, seen), 3.4, 1.2, "context c_k", GREEN)
    arrow(axes, (columns[-1] + 1.0, seen), (query - 1.7, seen), GREEN)
    words(axes, (columns[-1] + 1.1, 1.1), "weighted average", FAINT, size=9, align="left")
    line(axes, (query + 1.7, seen), (cell - 0.5, seen), color=GREEN)
    arrow(axes, (cell - 0.5, seen), (cell - 0.5, 8.75), GREEN)
    box(axes, (cell, 9.4), 2.4, 1.3, "GRU", ORANGE)
    arrow(axes, (query + 1.5, 9.4), (cell - 1.2, 9.4), BLUE)
    arrow(axes, (cell + 1.2, 9.4), (cell + 2.3, 9.4), BLUE)
    arrow(axes, (cell, 10.8), (cell, 10.05))
    words(axes, (cell, 11.2), "cent", size=9.5)
    arrow(axes, (cell + 0.6, 8.75), (cell + 0.6, 7.3))
    line(axes, (cell - 0.5, seen), (cell + 1.0, seen), color=GREEN)
    arrow(axes, (cell + 1.0, seen), (cell + 1.0, 6.3), GREEN)
    words(axes, (cell + 1.0, 6.8), "soixante", size=9.5)
    return figure


def padding() -> Figure:
    """Three sentences in a batch: where each GRU starts, and where its last state is."""
    sentences = [["nine", "hundred", "and", "two"], ["forty", "-one"], ["six"]]
    figure, axes = canvas(25.4, 9.8, cell=0.33)
    wide = 2.0
    for left, title, forward in ((3.0, "forward", True), (15.4, "backward", False)):
        words(axes, (left + 2 * wide, 0.7), title, size=10.5, bold=True)
        for row, tokens in enumerate(sentences):
            y = 2.6 + 2.2 * row
            for column in range(4):
                real = column < len(tokens)
                last = column == (len(tokens) - 1 if forward else 0)
                color = RED if last else SKY
                fill = tint(color, 0.35) if real else tint(FAINT, 0.2)
                corner = (left + wide * column, y - 0.5)
                axes.add_patch(
                    Rectangle(corner, wide, 1.0, facecolor=fill, edgecolor=FAINT, linewidth=0.6)
                )
                text = tokens[column] if real else "0"
                words(axes, (corner[0] + wide / 2, y), text, INK if real else FAINT, size=9)
            ends = left - 0.5, left + wide * len(tokens) - 0.15
            start, stop = ends if forward else (ends[1] + 0.65, left + 0.15)
            arrow(axes, (start, y - 0.85), (stop, y - 0.85), BLUE)
    for row in range(3):
        words(axes, (2.4, 2.6 + 2.2 * row), f"row {row}", FAINT, size=9, align="right")
    words(axes, (3.0, 8.6), "orange-red: the state used in final", RED, size=9, align="left")
    words(axes, (3.0, 9.3), "gray: padding, states are zeros", FAINT, size=9, align="left")
    words(axes, (15.4, 8.6), "blue: each GRU starts from zeros at", BLUE, size=9, align="left")
    words(axes, (15.4, 9.3), "the sentence's own first or last id", BLUE, size=9, align="left")
    return figure


def shifted() -> Figure:
    """Teacher forcing: what each step reads, what it predicts, and what counts in the loss."""
    figure, axes = canvas(17.4, 8.4, cell=0.38)
    wide = 2.5
    reads = [["<bos>", "quatre", "-vingt", "-neuf"], ["<bos>", "six", "<eos>", "<pad>"]]
    wanted = [["quatre", "-vingt", "-neuf", "<eos>"], ["six", "<eos>", "<pad>", "<pad>"]]
    for k in range(4):
        words(axes, (3.4 + wide * (k + 0.5), 0.7), f"step {k}", FAINT, size=9)
    for sentence in range(2):
        top = 1.3 + 3.3 * sentence
        for row, (name, tokens) in enumerate(
            (("reads", reads[sentence]), ("predicts", wanted[sentence]))
        ):
            y = top + 1.25 * row
            words(axes, (3.1, y + 0.5), name, size=9.5, align="right")
            for k, token in enumerate(tokens):
                counts = wanted[sentence][k] != "<pad>"
                color = (SKY, ORANGE)[row] if counts else FAINT
                corner = (3.4 + wide * k, y)
                axes.add_patch(
                    Rectangle(
                        corner,
                        wide,
                        1.0,
                        facecolor=tint(color, 0.3 if counts else 0.15),
                        edgecolor=FAINT,
                        linewidth=0.6,
                    )
                )
                ink = INK if counts else FAINT
                words(axes, (corner[0] + wide / 2, y + 0.5), token, ink, size=9)
        count = ("4 ids count", "2 ids count")[sentence]
        words(axes, (13.9, top + 1.75), count, size=9.5, align="left")
    words(axes, (3.4, 7.8), "the loss is the mean over these 6 ids", size=9.5, align="left")
    return figure


# Probabilities of (a, b, eos) after each hypothesis; the handout works this tree by hand.
AFTER = {"": (0.5, 0.4, 0.1), "a": (0.1, 0.5, 0.4), "b": (0.3, 0.1, 0.6), "ab": (0.06, 0.04, 0.9)}


def beam() -> Figure:
    """Beam search with beam width 2 over three steps: kept, dropped and finished hypotheses."""
    figure, axes = canvas(28.0, 12.4, cell=0.31)
    positions = {
        "": (1.6, 6.0),
        "a": (8.4, 3.2),
        "b": (8.4, 8.0),
        "<eos>": (8.4, 10.9),
        "a <eos>": (16.2, 1.6),
        "a b": (16.2, 3.2),
        "a a": (16.2, 4.8),
        "b <eos>": (16.2, 6.8),
        "b a": (16.2, 8.4),
        "b b": (16.2, 10.0),
        "a b <eos>": (24.6, 2.2),
        "a b a": (24.6, 3.8),
        "a b b": (24.6, 5.4),
    }
    kept = {"", "a", "b", "a b", "a b a"}
    finished = {"b <eos>", "a b <eos>"}
    for name, (x, y) in positions.items():
        *parent, _ = name.split() or [""]
        color = GREEN if name in finished else BLUE if name in kept else FAINT
        text = f"{name}   {probability(name.split()):.3g}" if name else "(empty)"
        width = 4.6 if name else 2.6
        if name:
            before = positions[" ".join(parent)]
            start = (before[0] + (2.3 if parent else 1.3), before[1])
            arrow(axes, start, (x - 2.3, y), color)
        if color == FAINT:
            words(axes, (x, y), text, FAINT, size=9.5)
        else:
            box(axes, (x, y), width, 1.15, text, color)
    for x, text in ((8.4, "step 0"), (16.2, "step 1"), (24.6, "step 2")):
        words(axes, (x, 0.5), text, size=10, bold=True)
    words(axes, (21.2, 8.0), "blue: kept, live", BLUE, size=9.5, align="left")
    words(axes, (21.2, 9.0), "green: kept, finished", GREEN, size=9.5, align="left")
    words(axes, (21.2, 10.0), "gray: dropped", FAINT, size=9.5, align="left")
    return figure


def probability(tokens: list[str]) -> float:
    """The probability of a hypothesis: the product of those of its tokens."""
    product = 1.0
    for k, token in enumerate(tokens):
        product *= AFTER["".join(tokens[:k])][("a", "b", "<eos>").index(token)]
    return product


# What `python -m assignments.a4_bahdanau.experiments alignment` prints for 418,973.
READ = (
    *("four", "hundred", "and", "eighteen", "thousand"),
    *(",", "nine", "hundred", "and", "seventy", "-three"),
)
ATTENDED = (
    ("quatre", {0: 0.97}),
    ("cent", {2: 0.70, 3: 0.12}),
    ("dix", {3: 0.99}),
    ("-huit", {3: 0.93}),
    ("mille", {6: 0.81}),
    ("neuf", {6: 0.97}),
    ("cent", {8: 0.80, 9: 0.10}),
    ("soixante", {9: 0.95}),
    ("-treize", {9: 0.73, 10: 0.26}),
    ("<eos>", {3: 0.12, 8: 0.20, 9: 0.13, 10: 0.42}),
)


def heat() -> Figure:
    """The weights of one translation, from 0.1 up."""
    weights = np.zeros((len(ATTENDED), len(READ)))
    for row, (_, seen) in enumerate(ATTENDED):
        for column, weight in seen.items():
            weights[row, column] = weight
    shown = np.where(weights > 0, [[f"{weight:.2f}" for weight in row] for row in weights], "")
    figure, axes = canvas(16.6, 14.0, cell=0.42)
    left, top = 3.4, 2.8
    number_grid(axes, shown, (left, top), shades(weights, BLUE, strongest=0.6), size=8.5)
    for row, (word, _) in enumerate(ATTENDED):
        words(axes, (left - 0.3, top + row + 0.5), word, size=10, align="right")
    for column, word in enumerate(READ):
        axes.text(
            left + column + 0.4,
            top - 0.3,
            word,
            color=INK,
            fontsize=10,
            fontfamily=FONT,
            rotation=55,
            rotation_mode="anchor",
            ha="left",
            va="center",
        )
    words(axes, (left, 13.5), "rows: generated words; columns: source words", FAINT, 9, "left")
    return figure


FIGURES = {
    "bottleneck": bottleneck,
    "attention": attention,
    "padding": padding,
    "shifted": shifted,
    "beam": beam,
    "heat": heat,
}
