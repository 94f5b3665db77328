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
    raise NotImplementedError("summarise: exercise 7.9 is yours to write")


def time_ms(
    function: Callable[[], object], device: str = "cpu", warmup: int = 3, repeats: int = 20
) -> Timing:
    """How long a call takes: warmup calls that don't count, then repeats that are timed one by one.

    On a CPU by time.perf_counter, which never goes backwards. On a GPU by a pair of
    torch.cuda.Event(enable_timing=True) around each call, read after torch.cuda.synchronize(); the
    GPU is also synchronised after the warm-up, so that none of it is measured.
    Raises ValueError for a warmup below 0 or repeats below 1.
    """
    raise NotImplementedError("time_ms: exercise 7.9 is yours to write")


def tokens_per_second(tokens: int, milliseconds: float) -> float:
    """How many tokens a second are done, where that many take so long.

    Raises ValueError unless the time is above 0.
    """
    raise NotImplementedError("tokens_per_second: exercise 7.9 is yours to write")


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context.

    A product of (a, b) with (b, c) takes 2 * a * b * c. Count, for each layer: queries, keys and
    values; scores (every place with all places, since a mask saves no work in a plain product);
    weights times values; the layer out; both layers of the MLP. Then the output layer, once.
    Embeddings are looked up, and norms, softmax, GELU and additions are left out.
    training: a step computes two further products for each of these, the gradients of both
    factors: three times as much. Else the forward pass alone.
    """
    raise NotImplementedError("flops_per_token: exercise 7.9 is yours to write")


def mfu(tokens_per_second: float, flops_per_token: float, peak_flops: float) -> float:
    """Model FLOPs utilisation: the share of the hardware's peak that the model's products use.

    peak_flops: FLOPs per second, as the hardware's data sheet has it. Raises ValueError unless it
    is above 0.
    """
    raise NotImplementedError("mfu: exercise 7.9 is yours to write")


def peak_memory(function: Callable[[], object], device: str = "cpu") -> int:
    """How many bytes of tensors a call has alive at its peak, beyond those that were there before.

    On a CPU cpu_peak_memory counts. On a GPU PyTorch does: after torch.cuda.synchronize() note
    torch.cuda.memory_allocated(), call torch.cuda.reset_peak_memory_stats(), run the function,
    synchronise, and see how far torch.cuda.max_memory_allocated() lies above.
    """
    raise NotImplementedError("peak_memory: exercise 7.9 is yours to write")


def attention_by_hand(
    q: Float[Tensor, "n heads t size"],
    k: Float[Tensor, "n heads t size"],
    v: Float[Tensor, "n heads t size"],
) -> Float[Tensor, "n heads t size"]:
    """Causal attention as in assignment 5, with a matrix of t times t scores for each head.

    Without F.scaled_dot_product_attention: this is what it is compared with.
    """
    raise NotImplementedError("attention_by_hand: exercise 7.9 is yours to write")


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
    raise NotImplementedError("scaling_table: exercise 7.9 is yours to write")
