"""Tests that a new PyTorch brings no function for what an exercise forbids that nobody has read."""

import re

import pytest
import torch

from common.assignment import load_assignment

# What the forbidden functions are called, by assignment.
FORBIDDEN = {
    "a4": r"attention",
    "a5": r"attention",
    "a6": r"attention|transformer|layer_?norm|cross_?entropy",
    "a7": r"transformer|multi_?head_?attention",
}
# Names like these that help with nothing: of two classes, and settings.
APPROVED = {
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "LinearCrossEntropyOptions",
}
# What calls a forbidden operator, and so ends at a refusal (`operators` in assignment.toml).
REFUSED = {"layer_norm", "native_layer_norm"}


@pytest.mark.parametrize("short", FORBIDDEN)
def test_every_public_name_like_a_forbidden_one_is_forbidden_or_approved(short):
    assignment = load_assignment(short)
    forbidden = {entry.call for entry in assignment.forbidden}
    found = {
        f"{module.__name__}.{name}": name
        for module in (torch, torch.nn, torch.nn.functional)
        for name in dir(module)
        if re.search(FORBIDDEN[short], name, re.IGNORECASE)
        and not name.startswith("_")
        and callable(getattr(module, name))
    }
    unknown = {
        path
        for path, name in found.items()
        if path not in forbidden and name not in APPROVED and name not in REFUSED
    }
    assert unknown == set()
