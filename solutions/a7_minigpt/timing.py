"""Assignment 7, exercise 7.9: how long things take, how much memory, and how well that is.

Conventions
    Times are in milliseconds, memory is in bytes, a FLOP is one addition or one multiplication.
    A device is "cpu" or "cuda". A GPU works by itself: a call returns before its work is done. So
    on a GPU, a clock on the CPU measures next to nothing, unless it waits (synchronize) first.
"""

import math
import time
from collections.abc import Callable

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
    """The median of the times, the 10th percentile (low), the 90th (high), and how many there are.

    Percentiles are interpolated: with the times sorted, the q-th lies at place q / 100 * (n - 1),
    and between two places on the straight line between them. That is what torch.quantile and
    numpy.quantile do. Raises ValueError for an empty list.
    """
    # BEGIN SOLUTION
    if not times:
        raise ValueError("there are no times to summarise")
    quantiles = torch.tensor([0.5, 0.1, 0.9], dtype=torch.float64)
    median, low, high = torch.tensor(times, dtype=torch.float64).quantile(quantiles).tolist()
    return Timing(median, low, high, len(times))
    # END SOLUTION


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes: warmup calls that don't count, then repeats that are timed one by one.

    On a CPU by time.perf_counter, which never goes backwards. On a GPU by a pair of
    torch.cuda.Event(enable_timing=True) around each call, read after torch.cuda.synchronize(); the
    GPU is also synchronised after the warm-up, so that none of it is measured.
    Raises ValueError for a warmup below 0 or repeats below 1.
    """
    # BEGIN SOLUTION
    if warmup < 0 or repeats < 1:
        raise ValueError(f"warmup at least 0 and repeats at least 1, got {warmup} and {repeats}")
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
        return summarise([before.elapsed_time(after) for before, after in events])
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(1000 * (time.perf_counter() - start))
    return summarise(times)
    # END SOLUTION


def tokens_per_second(tokens: int, milliseconds: float) -> float:
    """How many tokens a second are done, where that many take so long.

    Raises ValueError unless the time is above 0.
    """
    # BEGIN SOLUTION
    if not milliseconds > 0:
        raise ValueError(f"a time is above 0, got {milliseconds}")
    return 1000 * tokens / milliseconds
    # END SOLUTION


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context.

    A product of (a, b) with (b, c) takes 2 * a * b * c. Count, for each layer: queries, keys and
    values; scores (every place with all places, since a mask saves no work in a plain product);
    weights times values; the layer out; both layers of the MLP. Then the output layer, once.
    Embeddings are looked up, and norms, softmax, GELU and additions are left out.
    training: a step computes two further products for each of these, the gradients of both
    factors: three times as much. Else the forward pass alone.
    """
    # BEGIN SOLUTION
    d = config.width
    dense = 2 * (3 * d * d + d * d + 8 * d * d)  # qkv, out, both layers of the MLP
    attention = 2 * 2 * config.context * d  # scores, weights times values
    forward = config.layers * (dense + attention) + 2 * d * config.vocabulary
    return 3 * forward if training else forward
    # END SOLUTION


def mfu(tokens_per_second: float, flops_per_token: float, peak_flops: float) -> float:
    """Model FLOPs utilisation: the share of the hardware's peak that the model's products use.

    peak_flops: FLOPs per second, as the hardware's data sheet has it. Raises ValueError unless it
    is above 0.
    """
    # BEGIN SOLUTION
    if not peak_flops > 0:
        raise ValueError(f"the peak is above 0, got {peak_flops}")
    return tokens_per_second * flops_per_token / peak_flops
    # END SOLUTION


def peak_memory(function: Callable[[], object], device: str = "cpu") -> int:
    """How many bytes of tensors a call has alive at its peak, beyond those that were there before.

    On a CPU cpu_peak_memory counts. On a GPU PyTorch does: after torch.cuda.synchronize() note
    torch.cuda.memory_allocated(), call torch.cuda.reset_peak_memory_stats(), run the function,
    synchronise, and see how far torch.cuda.max_memory_allocated() lies above.
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


def attention_by_hand(
    q: Float[Tensor, "n heads t size"],
    k: Float[Tensor, "n heads t size"],
    v: Float[Tensor, "n heads t size"],
) -> Float[Tensor, "n heads t size"]:
    """Causal attention as in assignment 5, with a matrix of t times t scores for each head.

    Without F.scaled_dot_product_attention: this is what it is compared with.
    """
    # BEGIN SOLUTION
    t, size = q.shape[2:]
    scores = q @ k.transpose(2, 3) / math.sqrt(size)  # (n, heads, t, t)
    later = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(later, -math.inf).softmax(dim=-1) @ v
    # END SOLUTION


def scaling_table(
    lengths: list[int], device: str = "cpu", heads: int = 4, size: int = 32, repeats: int = 5
) -> list[dict[str, float]]:
    """What attention costs at each length: by hand, and fused (F.scaled_dot_product_attention).

    For each length one sequence of random q, k and v, (1, heads, length, size) in float32 on the
    device; both are causal. Returns a row for each length, in the order given, with
    "length", "by_hand_ms", "fused_ms" (medians of time_ms with one warm-up and those repeats),
    "by_hand_bytes" and "fused_bytes" (peak_memory).
    Raises ValueError for lengths below 1, and for none at all.
    """
    # BEGIN SOLUTION
    if not lengths or min(lengths) < 1:
        raise ValueError(f"lengths of at least 1 are needed, got {lengths}")
    rows = []
    for length in lengths:
        q, k, v = (torch.randn(1, heads, length, size, device=device) for _ in range(3))

        def by_hand(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            return attention_by_hand(q, k, v)

        def fused(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        rows.append(
            {
                "length": length,
                "by_hand_ms": time_ms(by_hand, device, 1, repeats).median,
                "fused_ms": time_ms(fused, device, 1, repeats).median,
                "by_hand_bytes": peak_memory(by_hand, device),
                "fused_bytes": peak_memory(fused, device),
            }
        )
    return rows
    # END SOLUTION
