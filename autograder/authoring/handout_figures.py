"""Draws the figures of a handout from solutions/aN/figures.py (`make figures`)."""

import importlib
from pathlib import Path

from common.assignment import ROOT, Assignment


def has_figures(assignment: Assignment) -> bool:
    """Whether the handout has figures."""
    return (ROOT / "solutions" / assignment.name / "figures.py").is_file()


def draw_figures(assignment: Assignment, folder: Path) -> list[Path]:
    """Draw every figure into the folder; two runs write the same bytes."""
    from common.training.plots import save  # only here: to load matplotlib takes long

    drawings = importlib.import_module(f"solutions.{assignment.name}.figures").FIGURES
    return [save(draw(), folder / f"{name}.png") for name, draw in drawings.items()]
