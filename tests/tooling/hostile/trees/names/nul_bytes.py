"""Submits source with NUL bytes in it, which compilers have cut short before.

As: convolution.py
Earns: nothing
"""


def make(folder, honest):
    (folder / "convolution.py").write_bytes(b"x = 1\n\0raise SystemExit\n" + honest.encode())
