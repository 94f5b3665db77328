"""Tests of the names that a changed input has: those of its parameter, also in a module."""

import torch
from torch import nn

from common.testing.remote.input_changes import changed_by


class Spoils(nn.Module):
    def forward(self, query, keys, *, mask=None):
        keys += 1
        return query


def undecorated(function):
    return lambda *args, **kwargs: function(*args, **kwargs)


def test_an_input_of_a_module_has_the_name_that_its_forward_gives():
    query, keys = torch.zeros(2), torch.zeros(3)
    assert changed_by(Spoils(), (query, keys), {}) == {1: "keys"}
    assert changed_by(Spoils(), (query,), {"keys": keys}) == {"keys": "keys"}


def test_an_input_without_a_name_has_its_place():
    query, keys = torch.zeros(2), torch.zeros(3)
    assert changed_by(undecorated(Spoils()), (query, keys), {}) == {1: "input 2"}
