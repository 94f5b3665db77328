"""The speed of assignment 1's reference, against PyTorch on one thread."""

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F

from autograder.benchmarks.benchmark_row import Row, measure
from solutions.a1_convolution.convolution import conv2d_backward_fast, conv2d_forward_fast


def rows() -> Iterator[Row]:
    """16 images of (16, 28, 28) with 32 kernels of 5 x 5, in float32."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 16, 28, 28)).astype(np.float32)
    w = rng.normal(size=(32, 16, 5, 5)).astype(np.float32)
    b = rng.normal(size=32).astype(np.float32)
    tensors = [torch.from_numpy(array).requires_grad_() for array in (x, w, b)]
    yield measure(
        "a1: conv2d_forward_fast",
        lambda: conv2d_forward_fast(x, w, b),
        lambda: F.conv2d(*tensors),
        "F.conv2d",
        bar=3,
        repeats=30,
    )
    out, cache = conv2d_forward_fast(x, w, b)
    result = F.conv2d(*tensors)
    dout = rng.normal(size=out.shape).astype(np.float32)
    cotangent = torch.from_numpy(dout)
    yield measure(
        "a1: conv2d_backward_fast",
        lambda: conv2d_backward_fast(dout, cache),
        lambda: torch.autograd.grad(result, tensors, cotangent, retain_graph=True),
        "F.conv2d's backward",
        bar=3,
        repeats=30,
    )
