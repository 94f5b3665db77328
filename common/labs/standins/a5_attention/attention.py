"""Stand-ins for the lab of assignment 5, and for exercises that need another: on PyTorch's own.

The exercises that ask for these functions forbid what they call.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAYERS = ("query", "key", "value", "out")


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention and its weights from before dropout; zeros where a query may attend to no key."""
    *front, t_q, d_k = q.shape
    t_k = k.shape[-2]
    if k.shape != (*front, t_k, d_k) or v.shape[:-1] != (*front, t_k) or q.ndim < 2:
        raise ValueError(f"q, k and v don't fit together: {q.shape}, {k.shape}, {v.shape}")
    if 0 in (q.numel(), k.numel(), v.numel()):
        raise ValueError("no axis may have length 0")
    check_mask(mask, (*front, t_q, t_k))
    scores = torch.matmul(q, k.mT).div(math.sqrt(d_k))
    allowed = scores if mask is None else torch.where(mask, scores, -math.inf)
    weights = torch._safe_softmax(allowed, dim=-1)
    return torch.matmul(weights if dropout is None else dropout(weights), v), weights


def check_mask(mask: Tensor | None, shape: tuple[int, ...]) -> None:
    """A ValueError unless the mask is None, or boolean and broadcasts to the shape."""
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise ValueError("mask must be a boolean tensor")
    try:
        mask.expand(shape)
    except RuntimeError as error:
        raise ValueError(f"mask must broadcast to the weights {shape}") from error


def soft_lookup(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """What a query finds in a table, and the weights; temperature 0 is the hard lookup."""
    scores = torch.linalg.vecdot(keys, query)
    best = scores == scores.max() if temperature == 0 else torch.ones_like(scores).bool()
    identity = torch.eye(len(keys), dtype=keys.dtype)  # as values, it returns the weights
    weights = F.scaled_dot_product_attention(
        query[None], keys, identity, attn_mask=best[None], scale=1 / (temperature or 1)
    )[0]
    return torch.tensordot(weights, values, 1), weights


class MultiHeadAttention(nn.Module):
    """Multi-head attention with the layers query, key, value and out."""

    def __init__(self, d_model: int, num_heads: int, bias: bool = True) -> None:
        super().__init__()
        if min(d_model, num_heads) < 1 or d_model % num_heads:
            raise ValueError(f"num_heads must divide d_model, got {num_heads} and {d_model}")
        self.d_model, self.num_heads = d_model, num_heads
        for name in LAYERS:
            self.register_module(name, nn.Linear(*[d_model] * 2, bias))

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """(out, weights), the weights per head; mask: True where a query may attend."""
        sides = (query, key, value)
        if not all(isinstance(x, Tensor) and x.ndim == 3 and x.numel() for x in sides):
            raise ValueError("query, key and value must be tensors (n, t, d_model)")
        n, t_q, d_model = query.shape
        t_k = key.shape[1]
        if d_model != self.d_model or not key.shape == value.shape == (n, t_k, d_model):
            raise ValueError("query, key and value don't fit together")
        check_mask(mask, (n, t_q, t_k))
        if mask is not None and mask.ndim not in (2, 3):
            raise ValueError("mask must be (t_q, t_k) or (n, t_q, t_k)")
        attended = torch.ones(n, t_q, t_k, dtype=torch.bool) if mask is None else mask
        attended = attended.expand(n, t_q, t_k)
        alone = ~attended.any(dim=2)  # (n, t_q): PyTorch's would return NaN there
        refused = ~attended & ~alone[:, :, None]  # there, True means "may not"
        to_q, to_k, to_v, out_proj = (getattr(self, name) for name in LAYERS)
        layers = (to_q, to_k, to_v)
        biases = [torch.zeros(self.d_model) if one.bias is None else one.bias for one in layers]
        out, weights = F.multi_head_attention_forward(
            query.transpose(0, 1),
            key.transpose(0, 1),
            value.transpose(0, 1),
            self.d_model,
            self.num_heads,
            None,
            torch.cat(biases).to(query.dtype),
            None,
            None,
            False,
            0.0,
            out_proj.weight,
            out_proj.bias,
            attn_mask=refused.repeat_interleave(self.num_heads, dim=0),
            use_separate_proj_weight=True,
            q_proj_weight=to_q.weight,
            k_proj_weight=to_k.weight,
            v_proj_weight=to_v.weight,
            average_attn_weights=False,
        )
        nothing = out.new_zeros(d_model) if out_proj.bias is None else out_proj.bias
        out = torch.where(alone[:, :, None], nothing, out.transpose(0, 1))
        return out, torch.where(alone[:, None, :, None], 0.0, weights)
