"""Puts a model into evaluation mode inside a with block, and restores its mode afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside the with block: evaluation mode and no gradients. Afterwards: the previous mode."""
    import torch  # not above: assignments without PyTorch load this folder, too

    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
