"""Fails 1.1 on purpose, and asks the process of its stand-in for all that it was not asked for.

As: convolution.py
Earns: 1.7
"""

import gc

MODULE = "convolution"
NAMES = (
    *("conv2d_forward", "np", "np.correlate", "__builtins__", "eval", "Size"),
    *("conv_output_size.__globals__", "conv_output_size.__code__", "executed"),
)


def conv_output_size(size, kernel_size, stride=1, padding=0):
    raise NotImplementedError


def gained():
    found = []
    for thing in [t for t in gc.get_objects() if type(t).__name__ == "AskedStandins"]:
        for name in NAMES:
            for args in ((), ("1 + 1",), ("conv2d_forward",)):
                try:
                    found.append((name, thing.ask(f"{MODULE}.{name}", args, {})))
                except Exception:
                    continue
    if found:
        raise RuntimeError("GOT " + f"THROUGH to {found[:5]}")


def conv2d_forward(x, w, b, stride=1, padding=0):
    conv_output_size(5, 3)  # so that the process is there
    gained()
    raise RuntimeError("in vain")


max_pool2d_forward = avg_pool2d_forward = conv2d_forward
