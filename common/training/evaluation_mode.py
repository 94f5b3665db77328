"""Puts a module into evaluation mode inside a with block, and restores its mode afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Inside the with block: evaluation mode and no gradients. Afterwards: the mode of before."""
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(was_training)
