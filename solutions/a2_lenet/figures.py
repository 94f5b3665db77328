"""Draws the figures of the handout of assignment 2: `python -m autograder figures a2`."""

import itertools
import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from common.training.plots import (
    BLUE,
    FAINT,
    FONT,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PINK,
    SKY,
    Point,
    arrow,
    canvas,
    chart,
    frame,
    number_grid,
    tint,
    words,
)

# The worked example of the handout.
LOGITS = np.array([[3, 1, -1], [0, 2, 2]])
LABELS = (1, 2)

# Drawn by hand: how dark each pixel is, from 0 to 9.
DIGITS = [
    np.array([[int(level) for level in row] for row in rows])
    for rows in (
        (
            "000000000000",
            "000599995000",
            "005930079900",
            "000000009900",
            "000003699400",
            "000005899500",
            "000000005950",
            "000000000980",
            "004100003970",
            "006973379930",
            "000479996000",
            "000000000000",
        ),
        (
            "000000000000",
            "007999999970",
            "003544447990",
            "000000006940",
            "000000029700",
            "000000079200",
            "000000397000",
            "000000793000",
            "000002970000",
            "000006930000",
            "000009900000",
            "000000000000",
        ),
    )
]


def stack(axes: Axes, at: Point, size: float, count: int, color: str) -> None:
    """Square maps, one behind the other, with the upper left corner of the first at a point."""
    for layer in reversed(range(min(count, 4))):
        corner = (at[0] + 0.22 * layer, at[1] - 0.22 * layer)
        axes.add_patch(
            Rectangle(corner, size, size, facecolor=tint(color), edgecolor=color, linewidth=1)
        )


def network() -> Figure:
    """The LeNet from left to right: the shapes of its activations, and its parameters."""
    figure, axes = canvas(33.0, 9.6, cell=0.29)
    middle, unit = 4.6, 0.17
    stages = (
        (0.6, 28, 1, FAINT, "1 x 28 x 28"),
        (8.0, 24, 16, BLUE, "16 x 24 x 24"),
        (14.6, 12, 16, BLUE, "16 x 12 x 12"),
        (19.2, 8, 32, GREEN, "32 x 8 x 8"),
        (23.2, 4, 32, GREEN, "32 x 4 x 4"),
    )
    for left, size, count, color, label in stages:
        stack(axes, (left, middle - unit * size / 2), unit * size, count, color)
        words(axes, (left + unit * size / 2 + 0.2, 7.6), label, size=8.5)
    for left, height, label in ((26.6, 5.0, "512"), (29.0, 3.2, "64"), (31.4, 1.4, "10")):
        axes.add_patch(
            Rectangle(
                (left, middle - height / 2),
                0.5,
                height,
                facecolor=tint(ORANGE),
                edgecolor=ORANGE,
                linewidth=1,
            )
        )
        words(axes, (left + 0.25, 7.6), label, size=8.5)
    steps = (
        (5.5, 7.8, "conv 5 x 5\nrelu", "416"),
        (12.9, 14.4, "max pool\n2 x 2", "0"),
        (17.4, 19.0, "conv 5 x 5\nrelu", "12,832"),
        (21.3, 23.0, "max pool\n2 x 2", "0"),
        (24.7, 26.4, "flatten", "0"),
        (27.3, 28.8, "linear\nrelu", "32,832"),
        (29.7, 31.2, "linear", "650"),
    )
    for start, end, name, parameters in steps:
        arrow(axes, (start, middle), (end, middle))
        words(axes, ((start + end) / 2, 0.9), name, size=8)
        color = BLUE if parameters != "0" else FAINT
        words(axes, ((start + end) / 2, 8.9), parameters, color, 8.5)
    words(axes, (0.6, 8.9), "parameters:", BLUE, 8.5, align="left")
    return figure


def softmax() -> Figure:
    """The worked example: from logits to probabilities, and to the gradient."""
    shifted = LOGITS - LOGITS.max(axis=1, keepdims=True)
    weights = np.exp(shifted)
    p = weights / weights.sum(axis=1, keepdims=True)
    target = np.zeros_like(p)
    target[range(2), LABELS] = 1
    dlogits = (p - target) / 2
    figure, axes = canvas(23.6, 7.0, cell=0.42)
    cells = {(row, label): tint(ORANGE, 0.45) for row, label in enumerate(LABELS)}
    tables = (
        (1.2, LOGITS, "logits"),
        (7.2, shifted, "minus the row's largest"),
        (13.2, p, "softmax: p"),
        (19.2, dlogits, "dlogits"),
    )
    for left, values, title in tables:
        text = [[decimal(value) for value in row] for row in values]
        number_grid(axes, text, (left, 1.7), cells, title, size=8)
    links = (
        (5.7, "the same\nsoftmax"),
        (11.7, "exp, then\ndivide by the\nrow's sum"),
        (17.7, "subtract 1\nat the label,\ndivide by n = 2"),
    )
    for center, text in links:
        arrow(axes, (center - 1.1, 2.7), (center + 1.1, 2.7))
        words(axes, (center, 4.6), text, FAINT, size=8.5)
    losses = [-math.log(p[row, label]) for row, label in enumerate(LABELS)]
    parts = ", ".join(
        f"\N{MINUS SIGN}log {p[row, label]:.3f} = {losses[row]:.3f}"
        for row, label in enumerate(LABELS)
    )
    words(axes, (1.2, 6.3), f"loss: the mean of {parts}, so {np.mean(losses):.3f}", align="left")
    words(axes, (22.2, 6.3), "orange: the label", ORANGE, size=9, align="right")
    return figure


def decimal(value: float) -> str:
    """An integer without decimals, another number with three."""
    text = f"{value:g}" if float(value).is_integer() else f"{value:.3f}"
    return text.replace("-", "\N{MINUS SIGN}")


def initialization() -> Figure:
    """The root mean square of the signal in 20 layers, for three variances of the weights."""
    depth, width = 20, 256
    rng = np.random.default_rng(0)
    figure, axes = chart(7.4, 3.2)
    first = rng.normal(size=(200, width))
    layers = rng.normal(size=(depth, width, width))
    for scale, color, label in (
        (4, ORANGE, "variance 4 / fan_in"),
        (2, BLUE, "2 / fan_in (He)"),
        (1, PINK, "1 / fan_in"),
    ):
        x, sizes = first, [1.0]
        for layer in layers:
            x = np.maximum(x @ (layer * math.sqrt(scale / width)), 0)
            sizes.append(float(np.sqrt(np.mean(x**2))))
        axes.plot(range(depth + 1), sizes, color=color, linewidth=2)
        axes.text(depth + 0.4, sizes[-1], label, color=color, fontsize=9, va="center")
    axes.set(yscale="log", xlim=(0, depth + 6.5), xticks=range(0, depth + 1, 5))
    axes.minorticks_off()
    axes.set_xlabel("layer (linear 256 to 256, then relu)", fontsize=9, fontfamily=FONT)
    axes.set_ylabel("root mean square", fontsize=9, fontfamily=FONT)
    return figure


def optimizers() -> Figure:
    """Thirty steps in a long valley, with three rules."""
    figure = Figure(figsize=(9.2, 2.7), facecolor=PAPER, layout="constrained")
    grid = np.meshgrid(np.linspace(-4.6, 1.4, 121), np.linspace(-1.7, 1.7, 101))
    height = slope_height(np.stack(grid, axis=-1))
    paths = (
        ("no momentum, learning rate 0.03", path(lambda g, t, s: momentum(g, s, 0.03, 0.0)), PINK),
        (
            "momentum 0.8, learning rate 0.02",
            path(lambda g, t, s: momentum(g, s, 0.02, 0.8)),
            ORANGE,
        ),
        ("Adam, learning rate 0.15", path(lambda g, t, s: adam(g, t, s, 0.15)), BLUE),
    )
    for axes, (title, points, color) in zip(figure.subplots(1, 3), paths, strict=True):
        axes.contour(*grid, height, levels=np.geomspace(0.2, 80, 9), colors=FAINT, linewidths=0.5)
        axes.plot(*points.T, "o-", color=color, markersize=3, linewidth=1.3)
        axes.plot(0, 0, marker="+", color=INK, markersize=9)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_color(FAINT)
        left = float(np.linalg.norm(points[-1]))
        axes.set_title(title, fontsize=9, color=INK, fontfamily=FONT)
        axes.set_xlabel(f"{left:.2f} from the minimum", fontsize=9, fontfamily=FONT)
    return figure


def slope_height(point: np.ndarray) -> np.ndarray:
    """A valley that is 60 times as steep across as along: (x**2 + 60 * y**2) / 2."""
    return (point[..., 0] ** 2 + 60 * point[..., 1] ** 2) / 2


def path(rule: object, steps: int = 30) -> np.ndarray:
    """The points that a rule visits on the valley."""
    point, state = np.array([-4.0, 1.2]), (np.zeros(2), np.zeros(2))
    points = [point]
    for t in range(1, steps + 1):
        move, state = rule(point * [1, 60], t, state)
        point = point - move
        points.append(point)
    return np.array(points)


def momentum(gradient: np.ndarray, state: tuple, rate: float, kept: float) -> tuple:
    """A step of gradient descent with momentum, and its state."""
    velocity = kept * state[0] + gradient
    return rate * velocity, (velocity, state[1])


def adam(gradient: np.ndarray, t: int, state: tuple, rate: float) -> tuple:
    """A step of Adam, and its state."""
    mean = 0.9 * state[0] + 0.1 * gradient
    square = 0.999 * state[1] + 0.001 * gradient**2
    size = np.sqrt(square / (1 - 0.999**t)) + 1e-8
    return rate * mean / (1 - 0.9**t) / size, (mean, square)


def resume() -> Figure:
    """A run of five epochs, and the same run resumed after the third: what the state contains."""
    scores = ("0.90", "0.94", "0.96", "0.95", "0.96")
    figure, axes = canvas(31.2, 9.4, cell=0.3)
    words(axes, (0.5, 2.0), "uninterrupted", size=9.5, align="left", bold=True)
    words(axes, (0.5, 6.7), "stopped,\nthen resumed", size=9.5, align="left", bold=True)
    lefts = {0: [6.4 + 3.0 * epoch for epoch in range(5)]}
    lefts[1] = [left + (3.6 if epoch > 2 else 0) for epoch, left in enumerate(lefts[0])]
    for row, top in ((0, 1.4), (1, 6.1)):
        for epoch, left in enumerate(lefts[row]):
            color = GREEN if epoch == 2 else SKY
            axes.add_patch(
                Rectangle((left, top), 2.6, 1.3, facecolor=tint(color, 0.4), edgecolor=color)
            )
            words(axes, (left + 1.3, top + 0.4), f"epoch {epoch + 1}", size=8)
            words(axes, (left + 1.3, top + 0.93), scores[epoch], size=8.5)
        end = lefts[row][-1] + 2.6
        arrow(axes, (end + 0.15, top + 0.65), (end + 1.1, top + 0.65))
        words(axes, (end + 1.3, top + 0.4), "model: weights", GREEN, 8.5, align="left")
        words(axes, (end + 1.3, top + 0.95), "after epoch 3", GREEN, 8.5, align="left")
    left = lefts[0][3] + 0.1
    frame(axes, (left, 6.0), 1.5, 3.0, ORANGE, width=1.6)
    words(axes, (left + 1.5, 6.75), "state", ORANGE, 9.5, bold=True)
    words(
        axes,
        (left + 1.5, 8.5),
        "latest weights, best weights,\noptimizer state, history",
        ORANGE,
        8.5,
    )
    words(axes, (lefts[0][2] + 1.3, 0.7), "best", GREEN, 9)
    words(axes, (lefts[0][4] + 1.3, 0.7), "a tie: too late", FAINT, 9)
    words(axes, (lefts[0][2] + 1.3, 3.5), "validation accuracy after each epoch", FAINT, 8.5)
    return figure


def shuffled() -> Figure:
    """Two digits, and the same two after one permutation of the pixels."""
    size = DIGITS[0].shape[0]
    order = np.random.default_rng(4).permutation(size * size)
    figure, axes = canvas(30.4, 8.4, cell=0.3)
    marked = {(4, 6): BLUE, (4, 7): ORANGE, (5, 6): GREEN, (5, 7): PINK}
    unit = 6.2 / size
    for index, image in enumerate(DIGITS):
        for left, moved in ((0.6 + 15.2 * index, False), (8.2 + 15.2 * index, True)):
            pixels = image.ravel()[order].reshape(image.shape) if moved else image
            axes.imshow(
                pixels,
                extent=(left, left + 6.2, 7.2, 1.0),
                aspect="auto",
                cmap="Greys",
                vmin=0,
                vmax=9,
                interpolation="nearest",
            )
            frame(axes, (left, 1.0), 6.2, 6.2, FAINT, width=0.8)
            for (row, column), color in marked.items():
                if moved:
                    target = int(np.flatnonzero(order == row * size + column)[0])
                    row, column = divmod(target, size)
                at = (left + unit * column, 1.0 + unit * row)
                frame(axes, at, unit, unit, color, width=2)
            words(axes, (left + 3.1, 7.8), "shuffled" if moved else "ordinary", size=9.5)
    axes.set(xlim=(0, 30.4), ylim=(8.4, 0))
    return figure


def receptive() -> Figure:
    """The receptive field of one activation after the second pooling, along one axis."""
    rows = (  # name, count, jump, first center, first and last cell in the receptive field
        ("after pool 2", 4, 4, 7.5, 1, 1, "size 16, jump 4"),
        ("after conv 2", 8, 2, 6.5, 2, 3, "size 14, jump 2"),
        ("after pool 1", 12, 2, 2.5, 2, 7, "size 6, jump 2"),
        ("after conv 1", 24, 1, 2.0, 4, 15, "size 5, jump 1"),
        ("pixels", 28, 1, 0.0, 4, 19, "size 1, jump 1"),
    )
    figure, axes = canvas(41.0, 13.4, cell=0.225)
    left = 6.4
    edges = []
    for line, (name, count, jump, start, first, last, text) in enumerate(rows):
        top = 1.0 + 2.5 * line
        words(axes, (left - 0.6, top + 0.45), name, size=9, align="right")
        words(axes, (left + 28.8, top + 0.45), text, BLUE, size=9, align="left")
        for index in range(count):
            seen = first <= index <= last
            corner = (left + start + jump * index + 0.05, top)
            fill = tint(ORANGE if line == len(rows) - 1 else SKY, 0.7) if seen else PAPER
            axes.add_patch(
                Rectangle(corner, 0.9, 0.9, facecolor=fill, edgecolor=FAINT, linewidth=0.6)
            )
        ends = [left + start + jump * first, left + start + jump * last + 1]
        edges.append((ends, top))
    for (above, top), (below, next_top) in itertools.pairwise(edges):
        for x_above, x_below in zip(above, below, strict=True):
            axes.plot([x_above, x_below], [top + 1.0, next_top - 0.1], color=FAINT, linewidth=0.8)
    words(axes, (left + 12, 12.7), "receptive field: 16 of 28 pixels", ORANGE, size=9)
    return figure


FIGURES = {
    "network": network,
    "softmax": softmax,
    "initialization": initialization,
    "optimizers": optimizers,
    "resume": resume,
    "shuffled": shuffled,
    "receptive": receptive,
}
