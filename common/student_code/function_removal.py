"""Removes forbidden functions and PyTorch operators from a process for good.

A guard is in the process of the code that it guards, which can find it and all that it holds. So
a process that serves one exercise goes further: Python functions get another body, PyTorch's
operators other kernels, and C functions are let go, so that no copy is left to be found.

Whatever the name, a call of an operator ends at PyTorch's dispatcher, which looks for a kernel
there: calls from torch.ops, torch._C, TorchScript, torch.func and torch.compile, and from C++ code
of other operators. Past the dispatcher lead decompositions, which are Python functions, and a
runtime of TorchScript with kernels of its own. Both are removed too.
"""

import ctypes
import importlib
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from common.errors import ForbiddenCall

# Under these keys operators have kernels that compute. Those under other keys, such as autograd's
# and autocast's, call the dispatcher again.
COMPUTING_KEYS = (
    *("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CPU", "CUDA", "MkldnnCPU"),
    *("CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor"),
    *("NestedTensorCPU", "NestedTensorCUDA", "QuantizedCPU", "QuantizedCUDA", "SparseCPU"),
    *("FuncTorchBatched", "FuncTorchBatchedDecomposition", "FuncTorchVmapMode"),
)
# Modules with a Python function for many operators, of the operator's name.
WRITTEN_IN_PYTHON = ("torch._refs", "torch._refs.nn.functional", "torch._decomp.decompositions")
# Where objects that stand for a function keep it: NumPy's dispatchers, PyTorch's custom operators.
WRAPPED_FUNCTION_ATTRIBUTES = ("_implementation", "_init_fn")
# In torch._C: what runs a TorchScript graph by kernels of its own, or makes nodes that do.
GRAPH_RUNTIMES = (
    *("_jit_to_static_module", "_fuse_to_static_module", "_jit_set_llga_enabled"),
    *("Node.g_", "Node.gs_", "Node.copyAttributes"),
)
REFUSING_SOURCE = """
def refuse(*args, **kwargs):
    from common.errors import ForbiddenCall
    raise ForbiddenCall({text!r})
"""


class Kernel(NamedTuple):
    """One of an operator's kernels."""

    namespace: str
    overload: str  # "native_layer_norm.out"
    key: str


class Operator(NamedTuple):
    """What there is of an operator, where PyTorch is loaded."""

    kernels: list[Kernel]
    decompositions: list[FunctionType]


def find_operators(names: Iterable[str]) -> dict[str, Operator]:
    """Operators by name, such as aten::layer_norm. It takes time, so it is done once."""
    wanted = set(names)
    if not wanted or "torch" not in sys.modules:
        return {name: Operator([], []) for name in wanted}
    found: dict[str, list[str]] = {name: [] for name in wanted}
    for overload in torch_c()._dispatch_get_all_op_names():
        name = overload.partition(".")[0]
        if name in wanted:
            found[name].append(overload)
    return {
        name: Operator(
            [kernel for overload in overloads for kernel in computing_kernels(overload)],
            list(decompositions(name)),
        )
        for name, overloads in found.items()
    }


def torch_c() -> Any:
    """torch._C, without an import of PyTorch where this module is loaded."""
    return importlib.import_module("torch._C")


def computing_kernels(overload: str) -> list[Kernel]:
    """The kernels of an operator's overload that do its work."""
    namespace, _, name = overload.partition("::")
    return [
        Kernel(namespace, name, key)
        for key in COMPUTING_KEYS
        if torch_c()._dispatch_has_kernel_for_dispatch_key(overload, key)
        # That of an overload with out= calls the operator itself, and is slow to replace.
        and not (key == "CompositeExplicitAutograd" and name.endswith("out"))
    ]


def decompositions(operator: str) -> set[FunctionType]:
    """The Python functions loaded with PyTorch that do an operator's work with other operators."""
    torch = importlib.import_module("torch")
    namespace, _, name = operator.partition("::")
    found = [getattr(sys.modules.get(module), name, None) for module in WRITTEN_IN_PYTHON]
    packet = getattr(getattr(torch.ops, namespace), name, None)
    tables = getattr(sys.modules.get("torch._decomp"), "global_decomposition_table", {})
    for overload in packet.overloads() if packet else ():
        operation = getattr(packet, overload)
        found += [kernel for key, kernel in operation.py_kernels.items() if key.name != "Meta"]
        found += [tables[kind].get(operation) for kind in tables if kind != "meta"]
    functions: set[FunctionType] = set()
    for function in found:
        while isinstance(function, FunctionType) and function not in functions:
            functions.add(function)
            function = getattr(function, "__wrapped__", None)
    return functions


def remove_operator(operator: Operator, text: str) -> None:
    """Let an operator do nothing but refuse, with that text."""
    replace_kernels(operator.kernels, text)
    for function in operator.decompositions:
        replace_body(function, text)


def remove_graph_runtimes() -> None:
    """Let TorchScript run graphs by the dispatcher's kernels alone."""
    for path in GRAPH_RUNTIMES:
        *owners, name = path.split(".")
        holder = torch_c()
        for owner in owners:
            holder = getattr(holder, owner)
        delattr(holder, name)


def remove(original: Any, text: str) -> None:
    """Let a function or a class do nothing but refuse, with that text."""
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


def replace_kernels(kernels: Iterable[Kernel], text: str) -> None:
    """Let an operator refuse, however it is called. Nobody can take that back."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ForbiddenCall(text)

    libraries: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there was another kernel before is the point
        for namespace, overload, key in kernels:
            if namespace not in libraries:
                libraries[namespace] = torch_c()._dispatch_library("IMPL", namespace, "")
            libraries[namespace].impl(overload, key, refuse)
    # The kernels last as long as these objects do. They stay, and nothing refers to them.
    for library in libraries.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
