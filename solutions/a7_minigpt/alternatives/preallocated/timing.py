"""Whole arrays: NumPy's quantiles, and the shapes of all products."""

from functools import partial

import numpy as np


def summarize(times: list[float]) -> Timing:
    """The median of the times, and percentiles."""
    if not times:
        raise ValueError("nothing was measured")
    low, median, high = np.quantile(np.asarray(times, dtype=np.float64), [0.1, 0.5, 0.9])
    return Timing(float(median), float(low), float(high), len(times))


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context."""
    d, t = config.d_model, config.context_length
    shapes = [(d, 3 * d), (d, t), (t, d), (d, d), (d, 4 * d), (4 * d, d)] * config.num_layers
    shapes.append((d, config.vocab_size))
    return (6 if training else 2) * sum(b * c for b, c in shapes)


def scaling_table(
    lengths: list[int], device: str = "cpu", num_heads: int = 4, d_head: int = 32, repeats: int = 5
) -> list[dict[str, float]]:
    """What attention costs at each length: naive, and fused (F.scaled_dot_product_attention)."""
    if not lengths or any(length < 1 for length in lengths):
        raise ValueError("lengths must be integers of at least 1")

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    table = [{"length": length} for length in lengths]
    for row in table:
        q, k, v = torch.randn(3, 1, num_heads, row["length"], d_head, device=device)
        for name, attention in (("naive", naive_attention), ("fused", fused)):
            call = partial(attention, q, k, v)
            row[f"{name}_ms"] = time_ms(call, device, 1, repeats).median
            row[f"{name}_bytes"] = peak_memory(call, device)
    return table
