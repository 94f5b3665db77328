"""The speed of assignment 5's reference, against PyTorch on one thread."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from autograder.benchmarks.benchmark_row import Row, measure
from solutions.a5_attention.attention import MultiHeadAttention

D_MODEL, HEADS, BATCH, LENGTH = 128, 4, 64, 24


def rows() -> Iterator[Row]:
    """64 sequences of 24 positions, 128 features and 4 heads, in float32, forward and backward.

    Twice, since PyTorch has a faster path if query, key and value are one tensor.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ours = MultiHeadAttention(D_MODEL, HEADS)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    for kind, count in (("self", 1), ("cross", 3)):
        inputs = [torch.randn(BATCH, LENGTH, D_MODEL, requires_grad=True) for _ in range(count)]
        yield measure(
            f"a5: MultiHeadAttention, {kind}-attention",
            passes(ours, inputs),
            passes(theirs, inputs, need_weights=True, average_attn_weights=False),
            "nn.MultiheadAttention, forward and backward",
            bar=1.5,
            repeats=40,
        )


def passes(module: nn.Module, inputs: list[Tensor], **options: bool) -> Callable[[], object]:
    """A forward and a backward pass: through out and weights, to all inputs and parameters."""
    query, key, value = inputs if len(inputs) == 3 else inputs * 3
    wanted = [*inputs, *module.parameters()]
    shapes = (BATCH, LENGTH, D_MODEL), (BATCH, HEADS, LENGTH, LENGTH)
    cotangents = [torch.randn(shape) for shape in shapes]

    def run() -> object:
        out, weights = module(query, key, value, **options)
        return torch.autograd.grad([out, weights], wanted, cotangents)

    return run
