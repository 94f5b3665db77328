"""Drawing functions for the handouts' figures: grids of numbers, boxes, arrows, charts."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle
from numpy.typing import ArrayLike

Cell = tuple[int, int]
Point = tuple[float, float]

# The palette of Okabe and Ito, which stays apart under the common kinds of color blindness.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
PINK = "#CC79A7"
SKY = "#56B4E9"
RED = "#D55E00"

INK = "#222222"
FAINT = "#707070"
PAPER = "#FFFFFF"

FONT = "DejaVu Sans"
DPI = 130


def canvas(width: float, height: float, cell: float = 0.36) -> tuple[Figure, Axes]:
    """An empty drawing of width x height cells, y growing downwards; cell is in inches."""
    figure = Figure(figsize=(width * cell, height * cell), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    axes.set_axis_off()
    return figure, axes


def chart(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty chart of width x height inches, with only the two axes that carry a scale."""
    figure = Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=9, labelfontfamily=FONT)
    return figure, axes


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG whose bytes depend on nothing but the drawing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, facecolor=PAPER, metadata={"Software": None})
    return path


def tint(color: str, strength: float = 0.3) -> str:
    """The color mixed with white: 0 is white, 1 the color itself."""
    channels = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + strength * (channel - 255)):02X}" for channel in channels)


def shades(values: ArrayLike, color: str, strongest: float = 0.75) -> dict[Cell, str]:
    """A fill for each cell, the stronger the larger its value; values are not negative."""
    array = np.asarray(values, dtype=float)
    top = float(array.max()) or 1.0
    return {cell: tint(color, strongest * value / top) for cell, value in np.ndenumerate(array)}


def number(value: object) -> str:
    """A number as the figures show it, with a true minus sign; anything else as it is."""
    if isinstance(value, int | float | np.number):
        return f"{value:g}".replace("-", "\N{MINUS SIGN}")
    return str(value)


def words(
    axes: Axes,
    at: Point,
    text: str,
    color: str = INK,
    size: float = 10,
    align: str = "center",
    bold: bool = False,
) -> None:
    """Text at a point; align is left, center or right."""
    axes.text(
        *at,
        text,
        color=color,
        fontsize=size,
        fontfamily=FONT,
        ha=align,
        va="center",
        weight="bold" if bold else "normal",
    )


def number_grid(
    axes: Axes,
    values: ArrayLike,
    at: Point = (0, 0),
    fills: Mapping[Cell, str] | None = None,
    title: str = "",
    size: float = 10,
    inks: Mapping[Cell, str] | None = None,
) -> None:
    """A table of cells with its upper left corner at a point, and a title above it.

    fills and inks: the colors of single cells and of their text, by (row, column).
    """
    table = np.atleast_2d(np.asarray(values))
    fills, inks = fills or {}, inks or {}
    left, top = at
    for (row, column), value in np.ndenumerate(table):
        corner = (left + column, top + row)
        fill = fills.get((row, column), PAPER)
        axes.add_patch(Rectangle(corner, 1, 1, facecolor=fill, edgecolor=FAINT, linewidth=0.6))
        ink = inks.get((row, column), INK)
        words(axes, (corner[0] + 0.5, corner[1] + 0.52), number(value), ink, size)
    if title:
        words(axes, (left + table.shape[1] / 2, top - 0.5), title, size=10)


def frame(
    axes: Axes,
    at: Point,
    rows: float,
    columns: float,
    color: str,
    inset: float = 0.0,
    width: float = 2.4,
    dashed: bool = False,
) -> None:
    """An outline around a block of cells with its upper left corner at a point."""
    axes.add_patch(
        Rectangle(
            (at[0] + inset, at[1] + inset),
            columns - 2 * inset,
            rows - 2 * inset,
            fill=False,
            edgecolor=color,
            linewidth=width,
            linestyle="--" if dashed else "-",
            zorder=3,
        )
    )


def box(
    axes: Axes, at: Point, width: float, height: float, text: str, color: str, size: float = 10
) -> None:
    """A filled box around a center, with a word in it."""
    corner = (at[0] - width / 2, at[1] - height / 2)
    patch = Rectangle(corner, width, height, facecolor=tint(color, 0.3), edgecolor=color)
    patch.set(linewidth=1.4, zorder=5)
    axes.add_patch(patch)
    axes.text(
        *at, text, color=INK, fontsize=size, fontfamily=FONT, ha="center", va="center", zorder=6
    )


def line(axes: Axes, *points: Point, color: str = FAINT, width: float = 1.4) -> None:
    """A line through points."""
    across, down = zip(*points, strict=True)
    axes.plot(across, down, color=color, linewidth=width, zorder=4, solid_capstyle="butt")


def arrow(axes: Axes, start: Point, end: Point, color: str = FAINT) -> None:
    """An arrow from one point to another."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=11,
            color=color,
            linewidth=1.4,
            shrinkA=0,
            shrinkB=0,
            zorder=4,
        )
    )
