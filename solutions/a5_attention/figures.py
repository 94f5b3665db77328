"""Draws the figures of the handout of assignment 5: `python -m autograder figures a5`."""

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
    PINK,
    RED,
    SKY,
    Point,
    arrow,
    box,
    canvas,
    chart,
    number_grid,
    shades,
    tint,
    words,
)

TIMES = "\N{MULTIPLICATION SIGN}"


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis."""
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def digits(array: np.ndarray, decimals: int) -> np.ndarray:
    """Numbers as text, all with the same number of decimals."""
    return np.array([[f"{number:.{decimals}f}" for number in row] for row in array])


def flow() -> Figure:
    """Cat eats fish, from the query to the output."""
    q = np.array([[0.8, 0.2]])
    k = np.array([[0.9, 0.1], [0.4, 0.3], [0.5, 0.5]])
    v = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    scores = q @ k.T
    weights = softmax(scores / np.sqrt(2))
    figure, axes = canvas(27.0, 6.2, cell=0.38)
    center, under = 3.2, 5.5
    blocks = (
        (0.8, digits(q, 1), "q", "(t_q, d_k)", {}),
        (4.2, digits(k.T, 1), "k transposed", "(d_k, t_k)", {}),
        (8.8, digits(scores, 2), "scores", "(t_q, t_k)", {}),
        (14.0, digits(weights, 3), "weights", "(t_q, t_k)", shades(weights, BLUE, 0.6)),
        (18.6, digits(v, 1), "v", "(t_k, d_v)", {}),
        (23.8, digits(weights @ v, 3), "out", "(t_q, d_v)", shades(weights @ v, GREEN, 0.5)),
    )
    for left, block, name, shape, fills in blocks:
        rows, columns = block.shape
        number_grid(axes, block, (left, center - rows / 2), fills, size=8)
        words(axes, (left + columns / 2, 0.7), name, bold=True)
        words(axes, (left + columns / 2, under), shape, FAINT, size=9)
    for x, sign in ((3.5, TIMES), (8.0, "="), (17.8, TIMES), (22.9, "=")):
        words(axes, (x, center), sign, size=13)
    arrow(axes, (12.0, center), (13.8, center))
    words(axes, (12.9, center - 0.9), "divide by", size=8)
    words(axes, (12.9, center - 0.45), "sqrt(d_k)", size=8)
    words(axes, (12.9, center + 0.6), "softmax", size=8)
    for row, name in enumerate(("cat", "eats", "fish")):
        words(axes, (4.7 + row, center - 1.35), name, FAINT, size=8)
        words(axes, (9.3 + row, center - 0.85), name, FAINT, size=8)
        words(axes, (14.5 + row, center - 0.85), name, FAINT, size=8)
        words(axes, (20.8, center - 1.0 + row), name, FAINT, size=8, align="left")
    return figure


def backward() -> Figure:
    """The steps of attention, with outputs forward and gradients backward."""
    figure, axes = canvas(27.0, 8.2, cell=0.33)
    line = 4.2
    steps = ((6.0, "q @ k.T"), (11.4, "scale"), (16.6, "softmax"), (22.0, "weights @ v"))
    widths = (3.0, 2.2, 2.6, 3.6)
    for (x, name), width in zip(steps, widths, strict=True):
        box(axes, (x, line), width, 1.6, name, SKY)
    passes = ((7.5, 10.3, "scores"), (12.5, 15.3, "scaled"), (17.9, 20.2, "weights"))
    for start, end, name in passes:
        arrow(axes, (start, line - 0.3), (end, line - 0.3), BLUE)
        arrow(axes, (end, line + 0.3), (start, line + 0.3), RED)
        words(axes, ((start + end) / 2, line - 0.85), name, BLUE, size=9)
        words(axes, ((start + end) / 2, line + 0.95), f"d{name}", RED, size=9)
    for name, y, inner in (("q", 1.7, line - 0.75), ("k", 6.0, line + 0.3)):
        words(axes, (1.0, y), name, BLUE, size=12, bold=True)
        words(axes, (1.0, y + 0.75), f"d{name}", RED, size=10)
        arrow(axes, (1.7, y - 0.05), (4.45, inner), BLUE)
        arrow(axes, (4.45, inner + 0.55), (1.7, y + 0.65), RED)
    words(axes, (22.0, 0.7), "v", BLUE, size=12, bold=True)
    words(axes, (23.4, 0.7), "dv", RED, size=10)
    arrow(axes, (21.7, 1.2), (21.7, line - 0.85), BLUE)
    arrow(axes, (22.6, line - 0.85), (22.6, 1.2), RED)
    arrow(axes, (23.8, line - 0.3), (25.2, line - 0.3), BLUE)
    arrow(axes, (25.2, line + 0.3), (23.8, line + 0.3), RED)
    words(axes, (26.1, line - 0.4), "out", BLUE, size=11)
    words(axes, (26.1, line + 0.5), "dout", RED, size=11)
    words(axes, (8.0, 7.5), "blue: forward", BLUE, size=9, align="left")
    words(axes, (13.0, 7.5), "orange: backward", RED, size=9, align="left")
    return figure


def masks() -> Figure:
    """A causal mask, a padding mask, and their logical and."""
    figure, axes = canvas(24.6, 9.2, cell=0.36)
    causal = np.tri(5, dtype=bool)
    padding = np.arange(5)[None] < 3
    blocks = (
        (2.2, 2.4, causal, "causal_mask(5): (5, 5)"),
        (10.2, 4.4, padding, "padding_mask(tensor([3]), 5): (1, 1, 5)"),
        (17.8, 2.4, causal & padding, "combined: (1, 5, 5)"),
    )
    for left, top, mask, title in blocks:
        fills = {cell: tint(GREEN if may else FAINT, 0.35) for cell, may in np.ndenumerate(mask)}
        inks = {cell: INK if may else FAINT for cell, may in np.ndenumerate(mask)}
        number_grid(axes, np.where(mask, "True", "False"), (left, top), fills, inks=inks, size=7.5)
        words(axes, (left + 2.5, top - 1.3), title, size=9.5)
        for key in range(5):
            words(axes, (left + key + 0.5, top - 0.4), f"k{key}", FAINT, size=8)
        for query in range(len(mask)):
            label = f"q{query}" if len(mask) > 1 else "all q"
            words(axes, (left - 0.2, top + query + 0.5), label, FAINT, size=8, align="right")
    words(axes, (8.1, 4.9), "and", size=11)
    words(axes, (16.2, 4.9), "=", size=13)
    words(axes, (2.2, 8.4), "True: this query may attend to this key", FAINT, 9, "left")
    return figure


def heads() -> Figure:
    """Three positions with four features, split into two heads: the right way, and a wrong one."""
    x = np.arange(1, 13).reshape(3, 4)
    rows = np.repeat(np.arange(3), 4).reshape(3, 4)
    colors = (BLUE, ORANGE, GREEN)
    figure, axes = canvas(25.0, 9.4, cell=0.34)

    def draw(values: np.ndarray, owners: np.ndarray, at: Point, title: str) -> None:
        fills = {cell: tint(colors[owner], 0.35) for cell, owner in np.ndenumerate(owners)}
        number_grid(axes, values, at, fills, title)

    draw(x, rows, (2.2, 3.4), "x: (3, 4)")
    for position in range(3):
        words(axes, (1.9, 3.9 + position), f"t = {position}", FAINT, size=8.5, align="right")
    ways = (
        (1.6, "split the features, then swap axes", x.reshape(3, 2, 2).swapaxes(0, 1), "right"),
        (6.0, "reshape to (2, 3, 2) at once", x.reshape(2, 3, 2), "wrong"),
    )
    for top, how, split, verdict in ways:
        color = GREEN if verdict == "right" else RED
        for head in range(2):
            owners = (split[head] - 1) // 4
            draw(split[head], owners, (16.0 + 3.4 * head, top), f"head {head}")
        arrow(axes, (6.8, 4.9), (15.4, top + 1.5), color)
        words(axes, (22.3, top + 1.5), verdict, color, size=11, bold=True, align="left")
        words(axes, (10.6, top + (0.7 if top < 4 else 2.4)), how, INK, size=9)
    return figure


def saturation() -> Figure:
    """Largest weight and Jacobian norm of the softmax of two scores against their gap."""
    figure, axes = chart(7.4, 3.6)
    gap = np.linspace(0, 14, 281)
    s = 1 / (1 + np.exp(-gap))
    axes.plot(gap, s, color=BLUE, label="largest weight: s")
    norm = "Jacobian norm: 2 s (1 \N{MINUS SIGN} s)"
    axes.plot(gap, 2 * s * (1 - s), color=ORANGE, label=norm)
    for typical, label in (
        (np.sqrt(2), "scaled,\nany d_k"),
        (np.sqrt(2 * 4), "not scaled,\nd_k = 4"),
        (np.sqrt(2 * 64), "not scaled,\nd_k = 64"),
    ):
        axes.axvline(typical, color=FAINT, linewidth=0.9, linestyle=":")
        axes.text(typical + 0.12, 0.63, label, color=INK, fontsize=8.5, fontfamily=FONT)
    axes.set(xlim=(0, 14), ylim=(0, 1.03))
    axes.set_xlabel("gap between the two scores", fontsize=9, fontfamily=FONT)
    axes.legend(frameon=False, fontsize=9, loc="center", bbox_to_anchor=(0.62, 0.35))
    return figure


def temperature() -> Figure:
    """The weights of the six words at three temperatures."""
    names = ("the", "cat", "sat", "on", "the", "mat")
    scores = np.array([0.30, 0.96, 0.10, 0.00, 0.30, 0.20])
    figure, axes = chart(7.4, 2.9)
    for bar, (heat, color) in enumerate(((0.1, BLUE), (0.5, SKY), (2.0, ORANGE))):
        weights = softmax(scores / heat)
        across = np.arange(6) + 0.28 * (bar - 1)
        axes.bar(across, weights, width=0.26, color=color, label=f"temperature {heat:g}")
        for at, weight in zip(across, weights, strict=True):
            label = f"{weight:.2f}"
            axes.text(at, weight + 0.015, label, ha="center", fontsize=7.5, fontfamily=FONT)
    labels = [f"{name}\nscore {score:.2f}" for name, score in zip(names, scores, strict=True)]
    axes.set_xticks(range(6), labels)
    axes.set_ylabel("weight", fontsize=9, fontfamily=FONT)
    axes.set_ylim(0, 1.08)
    axes.legend(frameon=False, fontsize=9)
    return figure


def order() -> Figure:
    """A sentence and a reordered one: without a mask each word keeps its output."""
    sentence = ("the", "dog", "chased", "the", "cat")
    colors = {"the": FAINT, "dog": BLUE, "chased": GREEN, "cat": ORANGE}
    figure, axes = canvas(27.0, 10.6, cell=0.32)
    for left, permutation in ((3.6, (0, 1, 2, 3, 4)), (16.0, (0, 4, 2, 3, 1))):
        for column, index in enumerate(permutation):
            word, x = sentence[index], left + 2.3 * column
            box(axes, (x, 1.6), 2.1, 1.1, word, colors[word])
            arrow(axes, (x, 2.2), (x, 3.2))
            arrow(axes, (x, 4.8), (x, 5.8))
            box(axes, (x, 6.4), 2.1, 1.1, f"out {index}", colors[word])
            allowed = [sentence[i] for i in permutation[: column + 1]]
            for row, earlier in enumerate(allowed):
                mark = Rectangle((x - 0.9 + 0.36 * row, 9.2), 0.32, 0.5, color=colors[earlier])
                axes.add_patch(mark)
        box(axes, (left + 4.6, 4.0), 11.3, 1.5, "self-attention, no mask", PINK)
    words(axes, (0.3, 1.6), "x", align="left", bold=True)
    words(axes, (0.3, 6.4), "out", align="left", bold=True)
    words(axes, (0.3, 9.4), "causal", align="left", bold=True)
    words(axes, (3.6 - 1.05, 7.6), "the same outputs, in the new order", FAINT, 9, "left")
    words(axes, (3.6 - 1.05, 8.7), "with a causal mask, the keys of each query:", FAINT, 9, "left")
    return figure


FIGURES = {
    "flow": flow,
    "backward": backward,
    "masks": masks,
    "heads": heads,
    "saturation": saturation,
    "temperature": temperature,
    "order": order,
}
