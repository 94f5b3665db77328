"""Measures the peak memory of a call's tensors on the CPU."""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any


def cpu_peak_memory(function: Callable[[], object]) -> int:
    """Call a function; the bytes of tensors alive at the peak, beyond those from before the call.

    Counted are whole storages, each once, however many tensors look into it, for as long as
    anything keeps it: a variable, or autograd for the backward pass. What a kernel needs for
    itself and frees before it returns isn't seen.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    live = LiveStorages()

    def storages(values: Any) -> list[Any]:
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
        return [tensor.untyped_storage() for tensor in tensors if tensor.device.type == "cpu"]

    class WatchOperations(TorchDispatchMode):
        """Sees every operation, those of the backward pass too."""

        def __torch_dispatch__(
            self,
            func: Any,
            types: Any,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            kwargs = kwargs or {}
            # What torch.tensor(...) has just made passes by as an argument, and is new.
            if func is not torch.ops.aten.lift_fresh.default:
                for storage in storages((args, kwargs)):
                    live.add_argument(storage)
            result = func(*args, **kwargs)
            for storage in storages(result):
                live.add_result(storage)
            return result

    with WatchOperations():
        function()
    return live.peak


class LiveStorages:
    """Storages that are alive, and what they took together at most."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # of new storages, by address
        self.old: set[int] = set()  # addresses of those from before
        self.references: dict[int, weakref.ref[Any]] = {}
        self.alive = 0
        self.peak = 0

    def add_argument(self, storage: Any) -> None:
        """A storage that an operation is given: if it isn't known, it was there before the call."""
        if storage._cdata not in self.references:
            self.watch(storage)
            self.old.add(storage._cdata)

    def add_result(self, storage: Any) -> None:
        """A storage that an operation returns: new, or known and maybe resized."""
        address = storage._cdata
        if address not in self.references:
            self.watch(storage)
        if address not in self.old:
            self.alive += storage.nbytes() - self.sizes.get(address, 0)
            self.sizes[address] = storage.nbytes()
            self.peak = max(self.peak, self.alive)

    def watch(self, storage: Any) -> None:
        """Hear of its end."""
        address = storage._cdata
        self.references[address] = weakref.ref(storage, partial(self.remove, address))

    def remove(self, address: int, _: weakref.ref[Any]) -> None:
        """It is gone, and its address may be another's soon."""
        del self.references[address]
        self.old.discard(address)
        self.alive -= self.sizes.pop(address, 0)
