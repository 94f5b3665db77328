"""Goes through all operators that PyTorch has, and calls each whose name speaks of attention.

As: attention.py
Earns: 5.4
"""

import torch

WORDS = ("attention", "attn", "mha", "sdpa", "multi_head")


def operators():
    for whole in torch._C._dispatch_get_all_op_names():
        space, _, name = whole.partition("::")
        name, _, overload = name.partition(".")
        if any(word in name for word in WORDS) and "backward" not in name:
            packet = getattr(getattr(torch.ops, space), name)
            yield getattr(packet, overload or "default")


def attend(q, k, v, mask):
    """By any operator, in types and modes of which each has kernels of its own."""
    parts = [part.reshape(1, -1, *part.shape[-2:]) for part in (q, k, v)]
    half = [part.bfloat16() for part in parts]
    for operator in operators():
        for inputs in (parts, half):
            for more in ([mask], [], [mask, 0.0, False]):
                try:
                    with torch.inference_mode():
                        found = operator(*inputs, *more)
                    out = (found[0] if isinstance(found, tuple | list) else found).to(v.dtype)
                    return out.reshape(*q.shape[:-1], v.shape[-1])
                except BaseException as error:
                    last = error
    raise last


def scaled_dot_product_attention(q, k, v, mask=None, dropout=None):
    identity = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-2], -1, -1)
    return attend(q, k, v, mask), attend(q, k, identity, mask)
