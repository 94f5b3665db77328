"""Assignment 7 by functions: Python's own statistics, and a clock for each device."""

import math
import time
from collections.abc import Callable
from functools import partial
from statistics import median, quantiles

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
        raise ValueError("no measurements")
    if len(times) == 1:
        return Timing(times[0], times[0], times[0], 1)
    low, *_, high = quantiles(times, n=10, method="inclusive")
    return Timing(median(times), low, high, len(times))


def timed_on_cpu(function: Callable[[], object]) -> float:
    """Milliseconds of one call by the CPU's clock."""
    before = time.perf_counter()
    function()
    return (time.perf_counter() - before) * 1000.0


def timed_on_gpu(function: Callable[[], object]) -> float:
    """Milliseconds of one call by the GPU's clock."""
    torch.cuda.synchronize()
    first, second = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    function()
    second.record()
    torch.cuda.synchronize()
    return first.elapsed_time(second)


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes."""
    if warmup < 0 or repeats < 1:
        raise ValueError(f"{warmup=}, {repeats=}")
    timed = timed_on_gpu if torch.device(device).type == "cuda" else timed_on_cpu
    for _ in range(warmup):
        timed(function)
    return summarise([timed(function) for _ in range(repeats)])


def tokens_per_second(tokens: int, milliseconds: float) -> float:
    """How many tokens a second are done, where that many take so long."""
    if milliseconds > 0:
        return tokens / (milliseconds / 1000)
    raise ValueError("no time has passed")


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context."""
    d = config.width
    layer = 24 * d**2 + 4 * d * config.context
    return (layer * config.layers + 2 * d * config.vocabulary) * (3 if training else 1)


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
    if not all(length >= 1 for length in lengths or [0]):
        raise ValueError(f"lengths {lengths}")
    kinds = {
        "by_hand": attention_by_hand,
        "fused": partial(F.scaled_dot_product_attention, is_causal=True),
    }
    table = []
    for length in lengths:
        shape = 1, heads, length, size
        given = [torch.randn(shape, device=device) for _ in "qkv"]
        calls = {kind: partial(attention, *given) for kind, attention in kinds.items()}
        times = {f"{kind}_ms": time_ms(call, device, 1, repeats) for kind, call in calls.items()}
        table.append(
            {"length": length}
            | {name: timing.median for name, timing in times.items()}
            | {f"{kind}_bytes": peak_memory(call, device) for kind, call in calls.items()}
        )
    return table
