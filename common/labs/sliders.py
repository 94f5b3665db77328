"""Sliders for the labs' figures; where there are none, a figure is drawn once."""

from collections.abc import Callable
from typing import Any


def slide(draw: Callable[..., Any], **ranges: tuple[int, int]) -> None:
    """Call draw(name=value, ...) for each move of a slider. ranges: lowest and highest value.

    Without ipywidgets it is called once, with the lowest values, and in grading not at all.
    """
    try:
        import ipywidgets
    except ImportError:
        draw(**{name: low for name, (low, _) in ranges.items()})
        return
    sliders = {
        name: ipywidgets.IntSlider(low, low, high, continuous_update=False)
        for name, (low, high) in ranges.items()
    }
    ipywidgets.interact(draw, **sliders)
