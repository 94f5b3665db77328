"""Tests that a wrong gradient of assignment 4 is reported under its parameter's name."""

import importlib
import inspect
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from common.errors import Failure
from common.student_code.loader import load_references
from tests.a4_bahdanau import cases


@pytest.mark.parametrize("name", cases.INPUTS)
def test_the_names_of_inputs_are_those_of_the_reference(name):
    (bahdanau,) = load_references(["a4_bahdanau"], "a4_bahdanau.bahdanau")
    kind, _, method = name.partition(".")
    function = getattr(getattr(bahdanau, kind), method or "forward")
    assert ("self", *cases.INPUTS[name]) == tuple(inspect.signature(function).parameters)


def test_a_wrong_gradient_of_the_keys_is_that_of_the_keys(monkeypatch):
    oracle = importlib.import_module("tests.a4_bahdanau.oracle")
    rng = np.random.default_rng(0)
    drawn = cases.draw.module(rng, "AdditiveAttention", 3, 4, 6)
    inputs = cases.draw.floats(rng, 2, 3), cases.draw.floats(rng, 2, 5, 4)
    expected = oracle.answer("AdditiveAttention", drawn.parameters, inputs)

    def wrong_vjp(function, given, upstream):
        right, parameters = oracle.gradients("AdditiveAttention", drawn.parameters, given, upstream)
        return list(expected), [right[0], right[1] + 1], parameters

    monkeypatch.setattr(cases, "vjp", wrong_vjp)
    asked = SimpleNamespace(answer=oracle.answer, gradients=oracle.gradients)
    with pytest.raises(Failure, match="gradient of keys of AdditiveAttention"):
        cases.check_gradients(None, drawn, inputs, "no mask", oracle=asked, rng=rng)
    assert torch.is_tensor(expected[0])
