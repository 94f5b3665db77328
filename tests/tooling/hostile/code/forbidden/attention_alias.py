"""Calls F.scaled_dot_product_attention, which is forbidden, by a name that was bound at import.

As: attention.py
Earns: 5.4
"""

import torch
from torch.nn.functional import scaled_dot_product_attention as innocent


def attend(q, k, v, mask):
    return innocent(q, k, v, attn_mask=mask)


def scaled_dot_product_attention(q, k, v, mask=None, dropout=None):
    keys = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-2], -1, -1)
    return attend(q, k, v, mask), attend(q, k, keys, mask)
