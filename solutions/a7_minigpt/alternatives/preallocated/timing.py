"""Whole arrays: NumPy's quantiles, and the shapes of all products."""

from functools import partial

import numpy as np


def summarise(times: list[float]) -> Timing:
    """The median of the times."""
    if not times:
        raise ValueError("nothing was measured")
    low, median, high = np.quantile(np.asarray(times, dtype=np.float64), [0.1, 0.5, 0.9])
    return Timing(float(median), float(low), float(high), len(times))


def flops_per_token(config: GPTConfig, training: bool = True) -> int:
    """FLOPs in the matrix products of a model, for each token of a full context."""
    d, t = config.width, config.context
    shapes = [(d, 3 * d), (d, t), (t, d), (d, d), (d, 4 * d), (4 * d, d)] * config.layers
    shapes.append((d, config.vocabulary))
    return (6 if training else 2) * sum(b * c for b, c in shapes)


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
