"""Tests of the labs' sliders, without a front end."""

import sys

import ipywidgets
import matplotlib.pyplot as plt
import pytest

from common.labs.cells import Cells
from common.labs.sliders import WRAPPED, slide


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, and nothing is drawn on a screen."""
    plt.switch_backend("Agg")
    found = []
    monkeypatch.setattr("IPython.display.display", found.append)
    return found


def draw(size, steps):
    """One picture for each step, and a sentence."""
    for _ in range(steps):
        plt.figure(figsize=(size, 1))
        plt.show()
    print(f"{steps} < {size}")


def test_each_move_of_a_slider_shows_new_figures_and_what_is_printed(shown):
    slide(draw, size=(1, 9), steps=(2, 5))
    (box,) = shown
    size, steps, text, pictures = box.children
    assert (size.min, size.max, size.value, size.description) == (1, 9, 1, "size")
    assert text.value == f"{WRAPPED}2 &lt; 1\n</pre>"
    first = [bytes(picture.value) for picture in pictures.children]
    assert len(first) == 2 and all(png.startswith(b"\x89PNG") for png in first)
    steps.value = 3
    assert text.value == f"{WRAPPED}3 &lt; 1\n</pre>" and len(pictures.children) == 3
    size.value = 4
    assert bytes(pictures.children[0].value) != first[0]
    assert plt.get_fignums() == []


def test_a_slider_leaves_earlier_figures_alone(shown):
    own = plt.figure()
    slide(draw, size=(1, 2), steps=(1, 2))
    assert plt.get_fignums() == [own.number]
    plt.close(own)


def test_a_slider_needs_no_output_widget(shown, monkeypatch):
    """With one of those, a notebook that nbclient runs hangs now and then."""
    monkeypatch.delattr(ipywidgets, "Output")
    slide(draw, size=(1, 2), steps=(1, 2))
    assert len(shown) == 1


def test_without_ipywidgets_the_figure_is_drawn_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    called = []
    slide(lambda **values: called.append(values), size=(1, 9), steps=(2, 5))
    assert called == [{"size": 1, "steps": 2}]


def test_in_grading_nothing_is_drawn():
    called = []
    with Cells():
        slide(lambda **values: called.append(values), size=(1, 9))
    assert called == []
