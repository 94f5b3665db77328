"""Submits honest work that begins with a byte order mark, as some editors write it.

As: convolution.py
Earns: 1.7
"""


def make(folder, honest):
    (folder / "convolution.py").write_bytes(b"\xef\xbb\xbf" + honest.encode())
