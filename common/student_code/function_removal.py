"""Removes forbidden functions and PyTorch operators from a process for good.

A guard is in the process of the code that it guards, which can find it and all that it holds. So
a process that serves one exercise goes further: Python functions get another body, PyTorch's
operators another kernel, and C functions are let go, so that no copy is left to be found.
"""

import ctypes
import importlib
import sys
import warnings
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from common.errors import ForbiddenCall

ATTENTION = ("scaled_dot_product", "flash_attention", "efficient_attention")
HEADS = ("multi_head_attention", "transformer_encoder_layer")
# By call: what the operators are called that do its work, or a part of their names.
OPERATORS = {
    "torch.nn.functional.scaled_dot_product_attention": ATTENTION,
    "torch.nn.functional.multi_head_attention_forward": HEADS,
    "torch.nn.MultiheadAttention": HEADS,
}
NAMESPACE = "aten"
# Under each of these PyTorch looks for an operator's kernel: by device, by kind of tensor, with and
# without gradients, and inside of torch.func's transformations.
KEYS = (
    *("CompositeImplicitAutograd", "CPU", "AutogradCPU", "CUDA", "AutogradCUDA"),
    *("NestedTensorCPU", "AutogradNestedTensor", "QuantizedCPU", "SparseCPU", "MkldnnCPU"),
    *("Batched", "FuncTorchBatched", "FuncTorchDynamicLayerFrontMode", "Functionalize"),
)
# Where objects that stand for a function keep it: NumPy's dispatchers, PyTorch's custom operators.
WRAPPED_FUNCTION_ATTRIBUTES = ("_implementation", "_init_fn")
REFUSING_SOURCE = """
def refuse(*args, **kwargs):
    from common.errors import ForbiddenCall
    raise ForbiddenCall({text!r})
"""


def operators_of(call: str) -> list[str]:
    """The names of PyTorch's operators that do a call's work, where PyTorch is loaded."""
    if call not in OPERATORS or "torch" not in sys.modules:
        return []
    every = importlib.import_module("torch")._C._dispatch_get_all_op_names()
    return [
        name.removeprefix(f"{NAMESPACE}::")
        for name in every
        if name.startswith(f"{NAMESPACE}::")
        and "backward" not in name
        and any(part in name for part in OPERATORS[call])
    ]


def remove(original: Any, operators: list[str], text: str) -> None:
    """Let a function, a class or an operator do nothing but refuse, with that text."""
    if operators:
        replace_kernels(operators, text)
    wrapped = (
        getattr(original, name) for name in WRAPPED_FUNCTION_ATTRIBUTES if hasattr(original, name)
    )
    implementation = next(wrapped, original)
    if isinstance(original, type):
        for method in vars(original).values():
            if isinstance(method, FunctionType):
                replace_body(method, text)
    elif isinstance(implementation, FunctionType):
        replace_body(implementation, text)


def replace_body(function: FunctionType, text: str) -> None:
    """Let a function refuse, by whatever name or reference it is called."""
    function.__code__ = refusing_code(text).replace(co_freevars=function.__code__.co_freevars)


@cache
def refusing_code(text: str) -> CodeType:
    """The body of a function that refuses with that text."""
    module = compile(REFUSING_SOURCE.format(text=text), "<forbidden>", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def replace_kernels(operators: list[str], text: str) -> None:
    """Let operators refuse, however they are called. Nobody can take that back."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ForbiddenCall(text)

    library = importlib.import_module("torch")._C._dispatch_library("IMPL", NAMESPACE, "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there was another kernel before is the point
        for operator in operators:
            for key in KEYS:
                library.impl(operator, key, refuse)
    # The kernels last as long as this object does. It stays, and nothing refers to it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
