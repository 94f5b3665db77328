"""What the lab of assignment 7 runs on where your own next_probabilities isn't finished.

It is for looking at one setting at a time: it checks nothing, keeps no dtype, and knows no
temperature of 0.
"""

import numpy as np
import torch


def next_probabilities(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """How likely each token is, in float64. Of top_k and top_p at most one is set."""
    p = np.exp(np.asarray(logits, float) / temperature)
    p /= p.sum()
    ranks = (p[None, :] > p[:, None]).sum(axis=1)  # how many are likelier
    likelier = np.where(p[None, :] > p[:, None], p[None, :], 0).sum(axis=1)  # and their sum
    if top_k:
        p = p * (ranks < top_k)
    elif top_p:
        p = p * (likelier < top_p)
    return torch.from_numpy(p / p.sum())
