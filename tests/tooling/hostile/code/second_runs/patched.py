"""Fails 5.3, and reaches PyTorch's own attention through the names that its stand-in uses.

As: attention.py
Earns: 5.4
"""

import torch as _torch


def scaled_dot_product_attention(q, k, v, mask=None, dropout=None):
    raise NotImplementedError


def reached():
    """PyTorch, as the stand-in sees it."""
    space = scaled_dot_product_attention.__globals__
    scaled_dot_product_attention.__defaults__ = (None, None)
    space["math"] = None
    return space.get("torch") or _torch


class MultiHeadAttention(_torch.nn.Module):
    def __init__(self, d_model, num_heads, bias=True):
        super().__init__()
        self.num_heads = num_heads
        for name in ("query", "key", "value", "out"):
            setattr(self, name, _torch.nn.Linear(d_model, d_model, bias=bias))

    def forward(self, query, key, value, mask=None):
        torch = reached()
        n, t, d = query.shape
        q, k, v = (
            layer(x).reshape(n, x.shape[1], self.num_heads, -1).transpose(1, 2)
            for layer, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        if mask is not None and mask.ndim == 3:
            mask = mask[:, None]
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, attn_mask=mask)
        eye = torch.eye(k.shape[2], dtype=q.dtype).expand(n, self.num_heads, -1, -1)
        weights = attend(q, k, eye, attn_mask=mask)
        return self.out(out.transpose(1, 2).reshape(n, t, d)), weights
