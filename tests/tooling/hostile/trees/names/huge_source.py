"""Submits source of 3 MB, most of it one line.

As: convolution.py
Earns: nothing
"""


def make(folder, honest):
    (folder / "convolution.py").write_text("x = [" + "0, " * (1 << 20) + "]\n" + honest)
