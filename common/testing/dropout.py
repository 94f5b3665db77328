"""Detects from a module's output where dropout was applied, and with which rate.

A submodule with constant output shows it: dropout drops each value independently, and divides the
others by 1 - p.
"""

import math
from typing import Any

from common.check_log import check
from common.student_code.values import is_tensor, kind_of
from common.testing.checks import STANDARD_ERRORS


def is_close(values: Any, level: Any) -> Any:
    """Which of the values are the level's, but for rounding."""
    return (values - level).abs() < 1e-9 * (1 + float(level.abs().max()))


def check_tensor(values: Any, shape: tuple[int, ...]) -> None:
    """What came out in training mode is a tensor of that shape."""
    check(
        is_tensor(values) and values.shape == shape,
        "In training mode, out must be a tensor of the right shape.",
        f"got {kind_of(values)}",
    )


def check_levels(values: Any, levels: list[tuple[Any, float]], what: str) -> None:
    """Every number is at one of the levels, and each level has its share of them.

    levels: pairs of a vector, with a number for each feature, and a probability.
    """
    import torch

    hits = [(is_close(values, level), chance) for level, chance in levels]
    everywhere = torch.stack([hit for hit, _ in hits]).any(dim=0)
    check(
        bool(everywhere.all()),
        f"In training mode, dropout must be applied to {what} and to nothing else.",
        f"{int((~everywhere).sum())} of {everywhere.numel()} values can't result from that.",
        "Each kept value is divided by 1 - dropout, as nn.Dropout does.",
    )
    for hit, chance in hits:
        share = float(hit.double().mean())
        allowed = STANDARD_ERRORS * math.sqrt(chance * (1 - chance) / hit.numel())
        check(
            abs(share - chance) <= allowed,
            f"In training mode, dropout has the wrong rate on {what}.",
            f"got a fraction of {share:.3f}, expected {chance:.3f}",
        )
