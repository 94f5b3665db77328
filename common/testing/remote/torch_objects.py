"""Remote operations that create or watch PyTorch objects: generators, optimizers, devices."""

from collections.abc import Callable, Sequence
from typing import Any

from common.student_code.values import Handle, JudgeFunction, is_tensor


def torch_generator(student: Handle, seed: int) -> Handle:
    """A torch.Generator on the CPU, seeded, whatever the student's code imports."""
    return student._face.operate("torch_generator", "torch_generator", (seed,), {})


def gradient_descent(module: Handle, rate: float) -> Handle:
    """A torch.optim.SGD for all parameters: its steps show the gradients as they are."""
    return module._face.operate("gradient_descent", "gradient_descent", (module, rate), {})


def vectors_through(module: Handle, part: str, function: Handle, *args: Any, **kwargs: Any) -> int:
    """Call a function, and count the vectors that run through a part of a module meanwhile.

    part: the name of a module in it, such as "layers.0". Where there is none, nothing runs.
    """
    details = (module, part, function, args, kwargs)
    return function._face.operate("vectors_through", function._label, details, {})


def devices_of(function: Handle, *args: Any, **kwargs: Any) -> list[str]:
    """Call a function; the device type of each tensor that it returns."""
    return function._face.operate("devices_of", function._label, (function, args, kwargs), {})


def allocating_function(student: Handle, sizes: Sequence[int], device: str = "cpu") -> Handle:
    """A function without arguments that makes tensors of these sizes in bytes, one after another.

    Each is given up before the next one is made; the last is returned. It asks for the sizes in
    each call: student code can't look them up before.
    """
    details = (JudgeFunction(lambda: list(sizes)), device)
    return student._face.operate("allocating_function", "allocating_function", details, {})


def product_function(student: Handle, size: int, device: str = "cpu") -> Handle:
    """A function without arguments that multiplies two square matrices of that size."""
    return student._face.operate("product_function", "product_function", (size, device), {})


def _torch_generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed)


def _gradient_descent(module: Any, rate: float) -> Any:
    import torch

    return torch.optim.SGD(module.parameters(), lr=rate)


def _vectors_through(
    module: Any,
    part: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> int:
    watched, count = dict(module.named_modules()).get(part), 0

    def add(_: Any, inputs: tuple[Any, ...]) -> None:
        nonlocal count
        count += sum(value.numel() // value.shape[-1] for value in inputs if is_tensor(value))

    added = watched.register_forward_pre_hook(add) if watched is not None else None
    try:
        function(*args, **kwargs)
    finally:
        if added is not None:
            added.remove()
    return count


def _devices_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[str]:
    found = function(*args, **kwargs)
    values = found if isinstance(found, tuple | list) else [found]
    return [value.device.type if is_tensor(value) else "none" for value in values]


class Allocating:
    """Makes tensors, each of which replaces the one before."""

    def __init__(self, sizes: Callable[[], list[int]], device: str) -> None:
        self.sizes = sizes
        self.device = device

    def __call__(self) -> Any:
        import torch

        last = None
        for size in self.sizes():
            last = None
            last = torch.zeros(size, dtype=torch.uint8, device=self.device)
        return last


class Product:
    """Multiplies two matrices that it was made with."""

    def __init__(self, size: int, device: str) -> None:
        import torch

        self.factor = torch.ones(size, size, device=device)

    def __call__(self) -> Any:
        return self.factor @ self.factor


TORCH_OBJECT_OPERATIONS: dict[str, Callable[..., Any]] = {
    "torch_generator": _torch_generator,
    "gradient_descent": _gradient_descent,
    "vectors_through": _vectors_through,
    "devices_of": _devices_of,
    "allocating_function": Allocating,
    "product_function": Product,
}
