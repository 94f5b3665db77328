"""A submission in PyTorch that both faces of `student` call. Tests read this file as text."""

import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x, shift=0.0):
        return x * self.weight + shift, x.detach()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Scale(3)]


def same(x):
    return x


def layout(x):
    return x.stride(), str(x.dtype)


def in_place(x, y):
    return x.add_(y)


def half():
    return torch.zeros(2, dtype=torch.bfloat16)


def constant(x):
    return torch.zeros(3)


def total(module, x, cut=False):
    out = module(x)[0].sum()
    return out.detach() if cut else out


def learn(module, x):
    module(x)[0].sum().backward()


def draw(count):
    return torch.rand(count)


def watch(module):
    inner = nn.Sequential(module)
    inner.register_forward_hook(print)
    module.register_forward_pre_hook(print)
    module.register_full_backward_hook(print)
    return inner


def both(module, x):
    return {"kept": module(x)[0], "cut": module(x)[1], "number": 3}


def descend(module, rate):
    return torch.optim.SGD(module.parameters(), lr=rate)
