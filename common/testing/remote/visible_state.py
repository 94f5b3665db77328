"""What a caller can see of its inputs and of the process, to compare before and after a call."""

import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from common.student_code.values import as_numpy, is_container, is_tensor

# The words for what has changed, about an input and about the process.
INPUT_WORDS = {
    "keys": "the length, the keys or their order of",
    "values": "the values of",
    "requires_grad": "requires_grad of",
    ".grad": "the .grad of",
    "hooks": "the hooks of",
    "mode": "the training mode of",
}
PROCESS_WORDS = {
    "np.seterr": "NumPy's error handling (np.seterr)",
    "np.set_printoptions": "NumPy's print options",
    "warnings": "the filters of warnings",
    "folder": "the working directory",
    "environment": "the environment variables",
    "recursion limit": "Python's recursion limit",
    "default dtype": "PyTorch's default dtype",
    "grad mode": "PyTorch's grad mode",
    "threads": "PyTorch's number of threads",
    "deterministic": "PyTorch's choice of deterministic algorithms",
    "np.random": "NumPy's global random state",
    "random": "the random state of Python's random",
    "torch.random": "PyTorch's global random state",
}
RANDOM = ("np.random", "random", "torch.random")

State = dict[str, Any]


def visible_state(value: Any) -> State:
    """What a caller can see of an array, a tensor, a module, or a container of such, by aspect."""
    state: dict[str, list[Any]] = {aspect: [] for aspect in INPUT_WORDS}
    add_state(state, value)
    return state


def add_state(state: dict[str, list[Any]], value: Any) -> None:
    """Add what can be seen of a value. Bytes, since NaN isn't equal to itself."""
    if isinstance(value, np.ndarray):
        state["values"].append((value.dtype, value.shape, value.tobytes()))
    elif is_tensor(value):
        state["values"].append((value.dtype, tuple(value.shape), bytes_of(value)))
        state["requires_grad"].append(value.requires_grad)
        gradient = value.grad if value.is_leaf else None
        state[".grad"].append(None if gradient is None else bytes_of(gradient))
        state["hooks"].append(len(value._backward_hooks or ()))
    elif is_module(value):
        for module in value.modules():
            state["mode"].append(module.training)
            hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
            state["hooks"].append([len(each) for each in hooks])
        for tensor in (*value.parameters(), *value.buffers()):
            add_state(state, tensor)
    elif is_container(value):
        keys = list(value) if isinstance(value, dict) else len(value)
        state["keys"].append((type(value).__name__, keys))
        for item in value.values() if isinstance(value, dict) else value:
            add_state(state, item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            add_state(state, getattr(value, field.name, None))
    elif isinstance(value, bool | int | float | str):
        state["values"].append(repr(value))


def bytes_of(tensor: Any) -> bytes:
    """The values of a tensor, also of a dtype that NumPy doesn't have."""
    try:
        return as_numpy(tensor).tobytes()
    except TypeError:
        return repr(tensor.tolist()).encode()


def is_module(value: Any) -> bool:
    """Whether a value is a module of PyTorch."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].nn.Module)


def changed_aspects(before: State, after: State) -> list[str]:
    """The aspects that differ, in the order in which they are told."""
    return [aspect for aspect, seen in before.items() if after[aspect] != seen]


def process_state() -> State:
    """The settings of the process that a function must leave alone, by name."""
    legacy = np.random.get_state(legacy=False)
    state: State = {
        "np.seterr": np.geterr(),
        "np.set_printoptions": np.get_printoptions(),
        "warnings": plain_filters(),
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "recursion limit": sys.getrecursionlimit(),
        "np.random": (legacy["state"]["key"].tobytes(), legacy["state"]["pos"]),
        "random": random.getstate(),
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        reads: dict[str, Callable[[], Any]] = {
            "default dtype": torch.get_default_dtype,
            "grad mode": torch.is_grad_enabled,
            "threads": torch.get_num_threads,
            "deterministic": torch.are_deterministic_algorithms_enabled,
            "torch.random": lambda: as_numpy(torch.random.get_rng_state()).tobytes(),
        }
        state |= {name: read() for name, read in reads.items()}
    return state


@contextmanager
def usual_settings() -> Iterator[None]:
    """The settings that a new process has, and random states of their own; then those of before.

    So a function that changes one is noticed even if an earlier call of it did so before.
    """
    torch = sys.modules.get("torch")
    with ExitStack() as restored:
        restored.enter_context(warnings.catch_warnings())
        filters: Any = warnings.filters
        filters[:] = [entry for entry in filters if not is_plain_filter(entry)]
        settings = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
        restored.enter_context(settings)
        restored.callback(np.random.set_state, np.random.get_state(legacy=False))
        restored.callback(random.setstate, random.getstate())
        np.random.random()  # from here on, no seed gives the state that there is
        random.random()
        if torch is not None:
            restored.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
            restored.enter_context(torch.enable_grad())
            restored.enter_context(torch.random.fork_rng(devices=[]))
            torch.rand(1)
        yield


def plain_filters() -> list[Any]:
    """The filters for all messages and modules. Libraries add others when they are first used."""
    return [entry for entry in warnings.filters if is_plain_filter(entry)]


def is_plain_filter(entry: Any) -> bool:
    """Whether a filter of warnings holds for all messages of all modules."""
    return entry[1] is None and entry[3] is None


def changed_settings(before: State) -> list[str]:
    """The names of the settings that differ now."""
    after = process_state()
    return [name for name, seen in before.items() if after[name] != seen]
