"""Assignment 7 on whole arrays: NumPy's quantiles, and nanoseconds as whole numbers."""

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from assignments.a7_minigpt.model import GPTConfig
from common.training.peak_memory import cpu_peak_memory


class Timing:
    """Given: a summary of several measurements, in milliseconds."""

    def __init__(self, median: float, low: float, high: float, n: int) -> None:
        self.median = median
        self.low = low
        self.high = high
        self.n = n


def summarise(times: list[float]) -> Timing:
    """The median of the times."""
    if not times:
        raise ValueError("nothing was measured")
    low, median, high = np.quantile(np.asarray(times, dtype=np.float64), [0.1, 0.5, 0.9])
    return Timing(float(median), float(low), float(high), len(times))


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes."""
    if warmup < 0 or repeats < 1:
        raise ValueError("warmup at least 0, repeats at least 1")
    on_gpu = torch.device(device).type == "cuda"
    for _ in range(warmup):
        function()
    times = np.empty(repeats)
    if on_gpu:
        torch.cuda.synchronize()
        marks = [[torch.cuda.Event(enable_timing=True) for _ in "be"] for _ in times]
        for begin, end in marks:
            begin.record()
            function()
            end.record()
        torch.cuda.synchronize()
        times[:] = [begin.elapsed_time(end) for begin, end in marks]
    else:
        for place in range(repeats):
            begin_ns = time.perf_counter_ns()
            function()
            times[place] = (time.perf_counter_ns() - begin_ns) / 1e6
    return summarise(times.tolist())


def tokens_per_second(tokens: int, milliseconds: float) -> float:
    """How many tokens a second are done, where that many take so long."""
    if milliseconds > 0:
        return tokens / (milliseconds / 1000)
    raise ValueError("no time has passed")


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context."""
    d, t = config.width, config.context
    shapes = [(d, 3 * d), (d, t), (t, d), (d, d), (d, 4 * d), (4 * d, d)] * config.layers
    shapes.append((d, config.vocabulary))
    return (6 if training else 2) * sum(b * c for b, c in shapes)


def mfu(tokens_per_second: float, flops_per_token: float, peak_flops: float) -> float:
    """Model FLOPs utilisation: the share of the hardware's peak that the model's products use."""
    if not peak_flops > 0:
        raise ValueError(f"no peak: {peak_flops}")
    return tokens_per_second / (peak_flops / flops_per_token)


def peak_memory(function: Callable[[], object], device: str = "cpu") -> int:
    """How many bytes of tensors a call has alive at its peak."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    return cpu_peak_memory(function)


def attention_by_hand(
    q: Float[Tensor, "n heads t size"],
    k: Float[Tensor, "n heads t size"],
    v: Float[Tensor, "n heads t size"],
) -> Float[Tensor, "n heads t size"]:
    """Causal attention as in assignment 5, with a matrix of t times t scores for each head."""
    t = q.shape[2]
    later = torch.full((t, t), -math.inf, dtype=q.dtype, device=q.device).triu(1)
    scores = (q / math.sqrt(q.shape[3])) @ k.mT + later
    return F.softmax(scores, dim=-1) @ v


def scaling_table(
    lengths: list[int], device: str = "cpu", heads: int = 4, size: int = 32, repeats: int = 5
) -> list[dict[str, float]]:
    """What attention costs at each length: by hand, and fused (F.scaled_dot_product_attention)."""
    if not lengths or any(length < 1 for length in lengths):
        raise ValueError("each length is at least 1, and there is at least one")

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    table = [{"length": length} for length in lengths]
    for row in table:
        q, k, v = torch.randn(3, 1, heads, row["length"], size, device=device)
        for name, attention in (("by_hand", attention_by_hand), ("fused", fused)):
            call = partial(attention, q, k, v)
            row[f"{name}_ms"] = time_ms(call, device, 1, repeats).median
            row[f"{name}_bytes"] = peak_memory(call, device)
    return table
