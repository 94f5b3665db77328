"""Sliders for interactive figures in labs, with a fallback that draws once."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from html import escape
from typing import Any
from unittest import mock

WRAPPED = '<pre style="white-space: pre-wrap">'  # a text may be one line of hundreds of letters


def slide(draw: Callable[..., Any], **ranges: tuple[int, int]) -> None:
    """Call draw(name=value, ...) for each move of a slider. ranges: lowest and highest value.

    Without ipywidgets it is called once, with the lowest values, and in grading not at all.
    """
    lowest = {name: low for name, (low, _) in ranges.items()}
    try:
        import ipywidgets
        from IPython.display import display
    except ImportError:
        draw(**lowest)
        return
    if not ipywidgets:  # nobody moves a slider in grading
        return
    sliders = {
        name: ipywidgets.IntSlider(low, low, high, description=name, continuous_update=False)
        for name, (low, high) in ranges.items()
    }
    # Not ipywidgets.interact: notebooks that it is in hang now and then where they are run by
    # nbclient, as Otter's export does (nbclient's issue 312).
    text, pictures = ipywidgets.HTML(), ipywidgets.VBox()

    def update(change: object = None) -> None:
        printed, drawings = output_of(
            draw, **{name: slider.value for name, slider in sliders.items()}
        )
        text.value = f"{WRAPPED}{escape(printed)}</pre>" if printed else ""
        pictures.children = tuple(ipywidgets.Image(value=png, format="png") for png in drawings)

    for slider in sliders.values():
        slider.observe(update, "value")
    update()
    display(ipywidgets.VBox([*sliders.values(), text, pictures]))


def output_of(draw: Callable[..., Any], **values: int) -> tuple[str, list[bytes]]:
    """What a call prints, and the figures that it draws, each as a picture."""
    from matplotlib import pyplot

    before, printed = set(pyplot.get_fignums()), io.StringIO()
    with redirect_stdout(printed), mock.patch.object(pyplot, "show"):
        draw(**values)
    drawings = []
    for number in sorted(set(pyplot.get_fignums()) - before):
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", bbox_inches="tight")
        pyplot.close(number)
        drawings.append(picture.getvalue())
    return printed.getvalue(), drawings
