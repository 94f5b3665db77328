"""Assignment 7, written plainly: sorted lists, and products counted one by one."""

import math
import time
from collections.abc import Callable
from functools import partial

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
    if len(times) == 0:
        raise ValueError("no times")
    ordered = sorted(times)

    def percentile(q: float) -> float:
        place = q / 100 * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return Timing(percentile(50), percentile(10), percentile(90), len(ordered))


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes."""
    if warmup < 0:
        raise ValueError("warmup is below 0")
    if repeats < 1:
        raise ValueError("repeats is below 1")
    on_gpu = torch.device(device).type == "cuda"
    times = []
    for number in range(-warmup, repeats):
        if on_gpu:
            torch.cuda.synchronize()
            begin = torch.cuda.Event(enable_timing=True)
            end = torch.cuda.Event(enable_timing=True)
            begin.record()
            function()
            end.record()
            torch.cuda.synchronize()
            taken = begin.elapsed_time(end)
        else:
            began = time.perf_counter()
            function()
            taken = (time.perf_counter() - began) * 1e3
        if number >= 0:
            times.append(taken)
    return summarise(times)


def tokens_per_second(tokens: int, milliseconds: float) -> float:
    """How many tokens a second are done, where that many take so long."""
    if milliseconds > 0:
        return tokens / (milliseconds / 1000)
    raise ValueError("no time has passed")


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context."""
    t, d, inner = config.context, config.width, 4 * config.width
    count = 0
    for _ in range(config.layers):
        count += 2 * t * d * 3 * d  # queries, keys, values
        count += 2 * t * d * t  # scores: the heads' sizes add up to the width
        count += 2 * t * t * d  # weights times values
        count += 2 * t * d * d  # the layer out
        count += 2 * t * d * inner
        count += 2 * t * inner * d
    count += 2 * t * d * config.vocabulary
    if training:
        count *= 3
    return count // t


def mfu(tokens_per_second: float, flops_per_token: float, peak_flops: float) -> float:
    """Model FLOPs utilisation: the share of the hardware's peak that the model's products use."""
    if peak_flops <= 0 or math.isnan(peak_flops):
        raise ValueError("the peak is not above 0")
    used = tokens_per_second * flops_per_token
    return used / peak_flops


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
    t, size = q.shape[-2:]
    scores = torch.einsum("nhqs,nhks->nhqk", q, k) / size**0.5
    places = torch.arange(t, device=q.device)
    scores = scores.masked_fill(places[None, :] > places[:, None], -math.inf)
    return torch.einsum("nhqk,nhks->nhqs", torch.softmax(scores, dim=3), v)


def scaling_table(
    lengths: list[int], device: str = "cpu", heads: int = 4, size: int = 32, repeats: int = 5
) -> list[dict[str, float]]:
    """What attention costs at each length: by hand, and fused (F.scaled_dot_product_attention)."""
    if len(lengths) == 0:
        raise ValueError("no lengths")
    table = []
    for length in lengths:
        if length < 1:
            raise ValueError("a length is below 1")
        q = torch.randn(1, heads, length, size, device=device)
        k = torch.randn(1, heads, length, size, device=device)
        v = torch.randn(1, heads, length, size, device=device)
        by_hand = partial(attention_by_hand, q, k, v)
        fused = partial(F.scaled_dot_product_attention, q, k, v, is_causal=True)
        row = {"length": length}
        row["by_hand_ms"] = time_ms(by_hand, device, warmup=1, repeats=repeats).median
        row["fused_ms"] = time_ms(fused, device, warmup=1, repeats=repeats).median
        row["by_hand_bytes"] = peak_memory(by_hand, device)
        row["fused_bytes"] = peak_memory(fused, device)
        table.append(row)
    return table
