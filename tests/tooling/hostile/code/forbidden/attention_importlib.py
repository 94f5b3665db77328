"""Calls F.scaled_dot_product_attention, which is forbidden, in a module that is loaded again.

As: attention.py
Earns: 5.4
"""

import importlib

import torch


def attend(q, k, v, mask):
    for name in ("torch.nn.functional", "torch._C._nn"):
        module = importlib.import_module(name)
        try:
            module = importlib.reload(module)
        except Exception:
            pass
        try:
            return module.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        except Exception as error:
            last = error
    raise last


def scaled_dot_product_attention(q, k, v, mask=None, dropout=None):
    keys = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-2], -1, -1)
    return attend(q, k, v, mask), attend(q, k, keys, mask)
