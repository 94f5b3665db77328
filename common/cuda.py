"""All that can't run without a GPU, and asking whether there is one."""

import importlib


def available() -> bool:
    """Whether there is a GPU here that PyTorch can use."""
    try:
        torch = importlib.import_module("torch")  # only now: NumPy's assignments don't wait for it
    except ModuleNotFoundError:
        return False
    return bool(torch.cuda.is_available())
