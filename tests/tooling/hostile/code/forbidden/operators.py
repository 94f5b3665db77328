"""Reaches the operator of attention past Python: torch.func, torch.jit, kernels, decompositions.

As: attention.py
Earns: 5.4
"""

import torch

TEXT = """
def attend(q, k, v, mask: Optional[Tensor]):
    return torch.{name}(q, k, v, mask)
"""
NAMES = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
)


def ways(q, k, v, mask):
    attend = torch.nn.functional.scaled_dot_product_attention
    yield lambda: torch.func.vmap(attend)(q, k, v)
    yield lambda: torch.func.functionalize(attend)(q, k, v, mask)
    yield lambda: torch.func.jvp(lambda x: attend(x, k, v, mask), (q,), (q,))[0]
    for name in NAMES:
        operator = getattr(torch.ops.aten, name).default
        yield lambda: torch.jit.CompilationUnit(TEXT.format(name=name)).attend(q, k, v, mask)
        yield lambda: operator(q, k, v, attn_mask=mask)
        yield lambda: operator.decompose(q, k, v, attn_mask=mask)
        yield lambda: torch._decomp.decomposition_table[operator](q, k, v, attn_mask=mask)
        for key in ("CompositeImplicitAutograd", "CPU", "AutogradCPU", "Meta", "SparseCPU"):
            kind = getattr(torch._C.DispatchKey, key)
            yield lambda: operator._op_dk(kind, q, k, v, attn_mask=mask)
            yield lambda: torch.library.get_kernel(operator, key).call_boxed(
                torch._C.DispatchKeySet(kind), q, k, v, attn_mask=mask
            )
    yield lambda: torch.func.vmap(torch.func.vmap(attend))(q, k, v)


def attend(q, k, v, mask):
    for way in ways(q, k, v, mask):
        try:
            found = way()
            return found[0] if isinstance(found, tuple) else found
        except BaseException as error:
            last = error
    raise last


def scaled_dot_product_attention(q, k, v, mask=None, dropout=None):
    keys = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-2], -1, -1)
    return attend(q, k, v, mask), attend(q, k, keys, mask)
