"""Assignment 7, exercise 7.9: time, memory, and how well the hardware is used.

Conventions
    - Units: milliseconds, bytes, and FLOPs: one addition or multiplication each.
    - Devices are "cpu" or "cuda". GPU calls are asynchronous: a call returns before its work is
      done. A clock on the CPU measures the work only after torch.cuda.synchronize().
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from assignments.a7_minigpt.model import GPTConfig
from common.training.peak_memory import cpu_peak_memory


@dataclass(frozen=True)
class Timing:
    """Given: a summary of n measurements, in milliseconds."""

    median: float
    low: float
    high: float
    n: int


def summarize(times: list[float]) -> Timing:
    """The median of the times, the 10th percentile (low), the 90th (high), and their number (n).

    Percentiles are interpolated: with the times sorted, the q-th is at index q / 100 * (n - 1), and
    linear between two indices, as in torch.quantile and numpy.quantile. Raises ValueError for an
    empty list.
    """
    # BEGIN SOLUTION
    if not times:
        raise ValueError("times must have at least one entry, got none")
    quantiles = torch.tensor([0.5, 0.1, 0.9], dtype=torch.float64)
    median, low, high = torch.tensor(times, dtype=torch.float64).quantile(quantiles).tolist()
    return Timing(median, low, high, len(times))
    # END SOLUTION


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes: warmup calls that don't count, then repeats that are timed one by one.

    On a CPU by time.perf_counter, which never goes backwards. On a GPU by a pair of
    torch.cuda.Event(enable_timing=True) around each call. Read the pairs after
    torch.cuda.synchronize(), once after all calls or after each. Also synchronize after the
    warm-up, so that none of it is measured.
    Raises ValueError for a warmup below 0 or repeats below 1.
    """
    # BEGIN SOLUTION
    if warmup < 0 or repeats < 1:
        raise ValueError(
            f"warmup must be at least 0 and repeats at least 1, got {warmup} and {repeats}"
        )
    for _ in range(warmup):
        function()
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
        events = []
        for _ in range(repeats):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            function()
            after.record()
            events.append((before, after))
        torch.cuda.synchronize(device)
        return summarize([before.elapsed_time(after) for before, after in events])
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(1000 * (time.perf_counter() - start))
    return summarize(times)
    # END SOLUTION


def tokens_per_second(tokens: int, milliseconds: float) -> float:
    """The throughput: tokens per second, for a number of tokens in a time.

    Raises ValueError unless the time is above 0.
    """
    # BEGIN SOLUTION
    if not milliseconds > 0:
        raise ValueError(f"milliseconds must be above 0, got {milliseconds}")
    return 1000 * tokens / milliseconds
    # END SOLUTION


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context.

    A product of (a, b) with (b, c) takes 2 * a * b * c. Count, for each layer: queries, keys and
    values; scores (all pairs of positions, since a mask saves no work in a plain product); weights
    times values; the output projection; both layers of the MLP. Then the output layer, once.
    Embeddings are lookups, and norms, softmax, GELU and additions are left out.
    training: a training step computes two more products for each of these, the gradients of both
    factors: three times as much. Otherwise the forward pass alone.
    """
    # BEGIN SOLUTION
    d = config.d_model
    linear = 2 * (3 * d * d + d * d + 8 * d * d)  # qkv, out, both layers of the MLP
    attention = 2 * 2 * config.context_length * d  # scores, weights times values
    forward = config.num_layers * (linear + attention) + 2 * d * config.vocab_size
    return 3 * forward if training else forward
    # END SOLUTION


def mfu(tokens_per_second: float, flops_per_token: float, peak_flops: float) -> float:
    """Model FLOPs utilization: the share of the hardware's peak that the model's products use.

    peak_flops: FLOPs per second, from the hardware's data sheet. Raises ValueError unless it is
    above 0.
    """
    # BEGIN SOLUTION
    if not peak_flops > 0:
        raise ValueError(f"peak_flops must be above 0, got {peak_flops}")
    return tokens_per_second * flops_per_token / peak_flops
    # END SOLUTION


def peak_memory(function: Callable[[], object], device: str = "cpu") -> int:
    """The most bytes of tensors that a call has alive at a time, beyond those from before the call.

    On a CPU cpu_peak_memory counts. On a GPU PyTorch does: after torch.cuda.synchronize() read
    torch.cuda.memory_allocated(), call torch.cuda.reset_peak_memory_stats(), run the function,
    synchronize, and subtract that reading from torch.cuda.max_memory_allocated().
    """
    # BEGIN SOLUTION
    if torch.device(device).type != "cuda":
        return cpu_peak_memory(function)
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    function()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before
    # END SOLUTION


def naive_attention(
    q: Float[Tensor, "n num_heads t d_head"],
    k: Float[Tensor, "n num_heads t d_head"],
    v: Float[Tensor, "n num_heads t d_head"],
) -> Float[Tensor, "n num_heads t d_head"]:
    """Unfused causal attention as in assignment 5, with a (t, t) matrix of scores for each head.

    Without F.scaled_dot_product_attention, because this is the baseline for it.
    """
    # BEGIN SOLUTION
    t, d_head = q.shape[2:]
    scores = q @ k.transpose(2, 3) / math.sqrt(d_head)  # (n, num_heads, t, t)
    later = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(dim=-1) @ v
    # END SOLUTION


def scaling_table(
    lengths: list[int], device: str = "cpu", num_heads: int = 4, d_head: int = 32, repeats: int = 5
) -> list[dict[str, float]]:
    """What attention costs at each length: naive, and fused (F.scaled_dot_product_attention).

    For each length one sequence of random q, k and v, (1, num_heads, length, d_head) in float32 on
    the device; both are causal. Returns a row for each length, in the given order, with
    "length", "naive_ms", "fused_ms" (medians of time_ms with one warm-up and those repeats),
    "naive_bytes" and "fused_bytes" (peak_memory).
    Raises ValueError for lengths below 1, and for an empty list.
    """
    # BEGIN SOLUTION
    if not lengths or min(lengths) < 1:
        raise ValueError(f"lengths must be integers of at least 1, got {lengths}")
    rows = []
    for length in lengths:
        q, k, v = (torch.randn(1, num_heads, length, d_head, device=device) for _ in range(3))

        def naive(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            return naive_attention(q, k, v)

        def fused(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        rows.append(
            {
                "length": length,
                "naive_ms": time_ms(naive, device, 1, repeats).median,
                "fused_ms": time_ms(fused, device, 1, repeats).median,
                "naive_bytes": peak_memory(naive, device),
                "fused_bytes": peak_memory(fused, device),
            }
        )
    return rows
    # END SOLUTION
