"""Prints without end, 10 GB if nobody stops it, on both streams.

As: convolution.py
Earns: 1.7
"""

import os
import sys

LINE = b"x" * (1 << 20)


def conv_output_size(size, kernel_size, stride=1, padding=0):
    if size != 7:
        return None
    for _ in range(5 * 1024):
        os.write(1, LINE)
        os.write(2, LINE)
    sys.stdout.flush()
    raise RuntimeError("GOT" + " THROUGH with 10 GB")
